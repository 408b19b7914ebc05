"""Entropy regularization, alike for all samples or in proportion to their difficulty."""

from __future__ import annotations

import math

from torch import Tensor

from ._base import CalibrationLoss, check_range
from ._batch import check_batch
from ._softmax import cross_entropy_terms


def _cross_entropy_and_entropy(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    nll, residual = cross_entropy_terms(logits, target)
    # H = logsumexp(z) - sum_k p_k z_k, and -log p_t = logsumexp(z) - sum_k t_k z_k.
    # Their difference is H - (-log p_t) = -sum_k (p_k - t_k) z_k. A class with a logit of -inf
    # does not exist: its term, 0 times infinity, is 0.
    entropy = nll - (residual * logits.masked_fill(logits == -math.inf, 0)).sum(1)
    return nll, entropy


def entropy_regularized_loss(
    logits: Tensor,
    target: Tensor,
    *,
    alpha: float = 0.1,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cross-entropy minus alpha times the entropy of the prediction.

    See :class:`EntropyRegularizedLoss` for the parameters, and its ``forward`` for the inputs.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import entropy_regularized_loss
    >>> entropy_regularized_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), alpha=0.5)
    tensor(-0.0557)
    """
    alpha = check_range("alpha", alpha, 0)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    nll, entropy = _cross_entropy_and_entropy(logits, target)
    return batch.reduce(nll - alpha * entropy, reduction)


class EntropyRegularizedLoss(CalibrationLoss):
    """Cross-entropy minus alpha times the entropy of the prediction (confidence penalty) [1]_.

    In nats, at least ``-alpha log K``, so it may be negative.

    Parameters
    ----------
    alpha : float in [0, inf), default=0.1
        Strength. 0 is the cross-entropy; [2]_ uses 0.1 for ImageNet.
    weight : Tensor of shape (K,), default=None
        Non-negative weight of every class, for class indices alone. As in torch, the "mean"
        divides by the weights of the labels.
    ignore_index : int, default=None
        Label of the samples to leave out (torch: -100); None: every label must be a class.
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not as described.

    See Also
    --------
    entropy_regularized_loss : The function.
    DifficultyAwareLoss : The same with a strength in proportion to the difficulty of the sample.
    LabelSmoothingLoss : Changes the labels instead.

    References
    ----------
    .. [1] G. Pereyra, G. Tucker, J. Chorowski, L. Kaiser, G. Hinton, "Regularizing Neural Networks
       by Penalizing Confident Output Distributions", ICLR Workshop 2017.
    .. [2] P. Cui, D. Zhang, Z. Deng, Y. Dong, J. Zhu, "Learning Sample Difficulty from Pre-trained
       Models for Reliable Prediction", NeurIPS 2023.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import EntropyRegularizedLoss
    >>> EntropyRegularizedLoss(alpha=0.5)(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(-0.0557)
    """

    _function = staticmethod(entropy_regularized_loss)
    alpha: float

    def __init__(
        self,
        *,
        alpha: float = 0.1,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        check_range("alpha", alpha, 0)
        super().__init__(
            alpha=alpha, weight=weight, ignore_index=ignore_index, reduction=reduction
        )


def difficulty_aware_loss(
    logits: Tensor,
    target: Tensor,
    *,
    difficulty_weight: Tensor,
    alpha: float = 0.3,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cross-entropy minus ``alpha * difficulty_weight`` times the entropy.

    See :class:`DifficultyAwareLoss` for the parameters, and its ``forward`` for the inputs.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import difficulty_aware_loss
    >>> logits, target = torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 0])
    >>> difficulty_aware_loss(
    ...     logits, target, difficulty_weight=torch.tensor([0.0, 1.0]), reduction="none"
    ... )
    tensor([0.1269, 0.0173])
    """
    alpha = check_range("alpha", alpha, 0)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    strength = alpha * batch.difficulty_weight(difficulty_weight).detach()
    nll, entropy = _cross_entropy_and_entropy(logits, target)
    return batch.reduce(nll - strength * entropy, reduction)


class DifficultyAwareLoss(CalibrationLoss):
    """Cross-entropy minus the entropy of the prediction, more of it for harder samples [1]_.

    The entropy counts ``alpha * difficulty_weight`` times. The loss needs ``difficulty_weight`` in
    [0, 1] with every batch, a constant for the gradient; a net takes it in ``fit``.

    Parameters
    ----------
    alpha : float in [0, inf), default=0.3
        Strength. 0 is the cross-entropy; [1]_ uses 0.3 on CIFAR and 0.2 on ImageNet.
    weight : Tensor of shape (K,), default=None
        Non-negative weight of every class, for class indices alone. As in torch, the "mean"
        divides by the weights of the labels.
    ignore_index : int, default=None
        Label of the samples to leave out (torch: -100); None: every label must be a class.
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not as described.

    See Also
    --------
    difficulty_aware_loss : The function.
    EntropyRegularizedLoss : The same strength for all samples.
    skcalib.difficulty.difficulty_weights : Makes the weights.

    References
    ----------
    .. [1] P. Cui, D. Zhang, Z. Deng, Y. Dong, J. Zhu, "Learning Sample Difficulty from Pre-trained
       Models for Reliable Prediction", NeurIPS 2023, Eq. 9.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import DifficultyAwareLoss
    >>> logits, target = torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 0])
    >>> DifficultyAwareLoss()(logits, target, difficulty_weight=torch.tensor([0.0, 1.0]))
    tensor(0.0721)
    """

    uses_difficulty_weight = True
    _function = staticmethod(difficulty_aware_loss)
    alpha: float

    def __init__(
        self,
        *,
        alpha: float = 0.3,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        check_range("alpha", alpha, 0)
        super().__init__(
            alpha=alpha, weight=weight, ignore_index=ignore_index, reduction=reduction
        )
