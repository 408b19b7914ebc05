"""Cross-entropy with a penalty: on confidence, of all samples or the hard ones, or on logits."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ._base import LARGEST, CalibrationLoss, check_range
from ._batch import check_batch
from ._softmax import cross_entropy_terms, expectation, quick_to_call, target_nll, vector_norm


@quick_to_call
class _ResidualTimesLogits(torch.autograd.Function):
    """``sum_k r_k z_k`` of the residual r = p - t of class indices, with its gradient for z.

    That is ``r_k + p_k (z_k - sum_j p_j z_j)``. Measured from the label y, as in
    :mod:`~skcalib.losses._softmax`, the inner sum is ``sum_j r_j (z_j - z_y)``, the value itself.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(logits: Tensor, residual: Tensor, label: Tensor) -> Tensor:
        return _ahead_of_label(logits, label.unsqueeze(1)).mul_(residual).sum(1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        logits, residual, label, value = ctx.saved_tensors
        label, value, grad = label.unsqueeze(1), value.unsqueeze(1), grad.unsqueeze(1)
        gradient = (_ahead_of_label(logits, label) * grad).add_(grad - grad * value).mul_(residual)
        return gradient.scatter_add_(1, label, -grad * value), None, None


def _ahead_of_label(logits: Tensor, label: Tensor) -> Tensor:
    # A class with a logit of -inf does not exist: its residual, 0, times infinity would be NaN.
    return (logits - logits.gather(1, label)).clamp_(min=-LARGEST)


def _cross_entropy_and_entropy(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    nll, residual = cross_entropy_terms(logits, target)
    # H = logsumexp(z) - sum_k p_k z_k, and -log p_t = logsumexp(z) - sum_k t_k z_k.
    # Their difference is -log p_t - H = sum_k (p_k - t_k) z_k.
    if target.is_floating_point():
        return nll, nll - (residual * logits.clamp_min(-LARGEST)).sum(1)
    return nll, nll - _ResidualTimesLogits.apply(logits, residual, target)


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
    weight, ignore_index, reduction
        As in :class:`CrossEntropyLoss`.

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
    weight, ignore_index, reduction
        As in :class:`CrossEntropyLoss`.

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


def _check_parameters(alpha: float, p: float) -> tuple[float, float]:
    return check_range("alpha", alpha, 0), check_range("p", p, 1, math.inf)


def logit_norm_loss(
    logits: Tensor,
    target: Tensor,
    *,
    alpha: float = 0.01,
    p: float = 1,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cross-entropy plus alpha times the p-norm of the logits.

    See :class:`LogitNormLoss` for the parameters, and its ``forward`` for the inputs.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import logit_norm_loss
    >>> logit_norm_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), alpha=0.1)
    tensor(0.3269)
    """
    alpha, p = _check_parameters(alpha, p)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    values = expectation(target_nll(logits, target), target)
    return batch.reduce(values + alpha * vector_norm(logits, p), reduction)


class LogitNormLoss(CalibrationLoss):
    """Cross-entropy plus alpha times the p-norm of the logits [1]_.

    The method of Wei et al. (2022) is something else: it divides the logits by their norm. Unlike
    the other losses, this one changes when a constant is added to a row of logits. Not proper: it
    pulls all logits to 0, hence the prediction toward uniform.

    Parameters
    ----------
    alpha : float in [0, inf), default=0.01
        Strength; 0 is the cross-entropy. 0.05 suits CIFAR-10 and 0.01 CIFAR-100: the 1-norm grows
        with the number of classes.
    p : float in [1, inf], default=1
        Order of the norm. Where a logit (p = 1) or all of them (p > 1) are 0, the gradient of the
        norm is taken as 0.
    weight, ignore_index, reduction
        As in :class:`CrossEntropyLoss`.

    See Also
    --------
    logit_norm_loss : The function.
    EntropyRegularizedLoss : Penalizes confidence in place of the norm.

    References
    ----------
    .. [1] T. Joo, U. Chung, "Revisiting Explicit Regularization in Neural Networks for
       Well-Calibrated Predictive Uncertainty", 2020.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import LogitNormLoss
    >>> LogitNormLoss(alpha=0.1)(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(0.3269)
    """

    _function = staticmethod(logit_norm_loss)
    alpha: float
    p: float

    def __init__(
        self,
        *,
        alpha: float = 0.01,
        p: float = 1,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        _check_parameters(alpha, p)
        super().__init__(
            alpha=alpha, p=p, weight=weight, ignore_index=ignore_index, reduction=reduction
        )
