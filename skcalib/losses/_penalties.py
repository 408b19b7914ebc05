"""Cross-entropy with a penalty: on confidence, of all samples or the hard ones, or on logits."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from ._base import LARGEST, CalibrationLoss, check_range
from ._batch import check_batch
from ._softmax import (
    ExactSoftmax,
    cross_entropy_terms,
    expectation,
    gradient,
    of_rows,
    plus,
    target_nll,
    vector_norm,
)


@of_rows
class _WithProduct(ExactSoftmax):
    """Cross-entropy and ``sum_k r_k z_k`` of the residual r, shape (n,); z - z_y and r, (n, K)."""

    @staticmethod
    def forward(logits: Tensor, label: Tensor) -> tuple[Tensor, ...]:
        nll, residual = ExactSoftmax.forward(logits, label)
        # A logit of -inf masks a class: its residual, 0, times infinity would be NaN.
        ahead = (logits - logits.gather(1, label.unsqueeze(1))).clamp_(min=-LARGEST)
        return nll, (ahead * residual).sum(1), ahead, residual

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None]:
        label, _, product, ahead, residual = ctx.saved_tensors
        grad_nll, grad, of_ahead, vector = grads
        if grad is None:
            result = gradient(residual, label, grad_nll, vector)
        else:
            # The derivative is r, plus the Jacobian of the softmax times z. Measured from the
            # label, the mean is the sum over j != y of r_j (z_j - z_y): the product.
            apart = ahead * grad.unsqueeze(1)
            grad_nll = plus(grad_nll, grad)
            result = gradient(residual, label, grad_nll, vector, apart, grad * product)
        if of_ahead is not None:
            of_label = of_ahead.sum(1, keepdim=True)
            result = plus(result, of_ahead.scatter_add(1, label.unsqueeze(1), -of_label))
        return result, None


def _cross_entropy_and_entropy(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy -log p_t and the entropy H of every row, shape (n,)."""
    # H = logsumexp(z) - sum_k p_k z_k, and -log p_t = logsumexp(z) - sum_k t_k z_k.
    # Their difference is -log p_t - H = sum_k (p_k - t_k) z_k.
    if target.is_floating_point():
        nll, residual = cross_entropy_terms(logits, target)
        return nll, nll - (residual * logits.clamp_min(-LARGEST)).sum(1)
    nll, product, *_ = _WithProduct.apply(logits, target)
    return nll, nll - product


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

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    alpha, weight, ignore_index : of :class:`EntropyRegularizedLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`EntropyRegularizedLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.EntropyRegularizedLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import entropy_regularized_loss
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
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.entropy_regularized_loss : The function.
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

    Parameters
    ----------
    logits, target, difficulty_weight : of :meth:`CrossEntropyLoss.forward`
    alpha, weight, ignore_index : of :class:`DifficultyAwareLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`DifficultyAwareLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.DifficultyAwareLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import difficulty_aware_loss
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
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.difficulty_aware_loss : The function.
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

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    alpha, p, weight, ignore_index : of :class:`LogitNormLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`LogitNormLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.LogitNormLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import logit_norm_loss
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
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.logit_norm_loss : The function.
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
