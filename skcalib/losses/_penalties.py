"""Cross-entropy with a penalty: on confidence, on logits, or on calibration error (MMCE)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ._base import LARGEST, CalibrationLoss, check_batch, check_flag, check_range
from ._softmax import (
    ExactSoftmax,
    add_gradients,
    add_vmap,
    average_over_target,
    compute_answer_residual,
    compute_cross_entropy,
    compute_nll_gradient,
    compute_norm,
    compute_softmax_vjp,
    compute_target_nll,
    measure_from_label,
)

# Cross-entropy with a penalty: on confidence, of all samples or the hard ones, or on logits.


@add_vmap
class _WithProduct(ExactSoftmax):
    """Cross-entropy and ``sum_k r_k z_k`` of the residual r, shape (n,); z - z_y and r, (n, K)."""

    @staticmethod
    def forward(logits: Tensor, label: Tensor) -> tuple[Tensor, ...]:
        nll, residual = ExactSoftmax.forward(logits, label)
        # A logit of -inf masks a class: its residual, 0, times infinity would be NaN.
        above_label = (logits - logits.gather(1, label.unsqueeze(1))).clamp_(min=-LARGEST)
        return nll, (above_label * residual).sum(1), above_label, residual

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None]:
        label, _, product, above_label, residual = ctx.saved_tensors
        grad_nll, grad, of_above, cotangent = grads
        result: Tensor | None
        found = None if cotangent is None else measure_from_label(residual, label, cotangent)
        if grad is not None:
            # The derivative is r, plus the Jacobian of the softmax times z. Measured from the
            # label, the mean is the sum over j != y of r_j (z_j - z_y): the product.
            difference, mean = above_label * grad.unsqueeze(1), grad * product
            if found is not None:
                difference, mean = found[0] + difference, mean + found[1]
            result = compute_softmax_vjp(
                residual, label, difference, mean, add_gradients(grad_nll, grad)
            )
        elif found is not None:
            result = compute_softmax_vjp(residual, label, *found, grad_nll)
        else:
            result = compute_nll_gradient(residual, grad_nll)
        if of_above is not None:
            of_label = of_above.sum(1, keepdim=True)
            result = add_gradients(result, of_above.scatter_add(1, label.unsqueeze(1), -of_label))
        return result, None


def _compute_cross_entropy_and_entropy(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy -log p_t and the entropy H of every row, shape (n,)."""
    # H = logsumexp(z) - sum_k p_k z_k, and -log p_t = logsumexp(z) - sum_k t_k z_k.
    # Their difference is -log p_t - H = sum_k (p_k - t_k) z_k.
    if target.is_floating_point():
        nll, residual = compute_cross_entropy(logits, target)
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
    nll, entropy = _compute_cross_entropy_and_entropy(logits, target)
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
       Models for Reliable Prediction", NeurIPS 2023. Calls: :ref:`paper-rmd`.

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
    nll, entropy = _compute_cross_entropy_and_entropy(logits, target)
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
       Models for Reliable Prediction", NeurIPS 2023, Eq. 9. Calls: :ref:`paper-rmd`.

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


def _check_logit_norm(strength: float, p: float) -> tuple[float, float]:
    return check_range("strength", strength, 0), check_range("p", p, 1, math.inf)


def logit_norm_loss(
    logits: Tensor,
    target: Tensor,
    *,
    strength: float = 0.01,
    p: float = 1,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cross-entropy plus strength times the p-norm of the logits.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    strength, p, weight, ignore_index : of :class:`LogitNormLoss`
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
    >>> logit_norm_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), strength=0.1)
    tensor(0.3269)
    """
    strength, p = _check_logit_norm(strength, p)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    values = average_over_target(compute_target_nll(logits, target), target)
    return batch.reduce(values + strength * compute_norm(logits, p), reduction)


class LogitNormLoss(CalibrationLoss):
    """Cross-entropy plus strength times the p-norm of the logits [1]_.

    The method of Wei et al. (2022) is something else: it divides the logits by their norm. Unlike
    the other losses, this one changes when a constant is added to a row of logits. Not proper: it
    pulls all logits to 0, hence the prediction toward uniform.

    Parameters
    ----------
    strength : float in [0, inf), default=0.01
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
    >>> LogitNormLoss(strength=0.1)(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(0.3269)
    """

    _function = staticmethod(logit_norm_loss)
    strength: float
    p: float

    def __init__(
        self,
        *,
        strength: float = 0.01,
        p: float = 1,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        _check_logit_norm(strength, p)
        super().__init__(
            strength=strength, p=p, weight=weight, ignore_index=ignore_index, reduction=reduction
        )


# Maximum mean calibration error (MMCE) as a regularizer of the cross-entropy.

# With no more samples the double sum takes less time, forward and backward: .13 ms for 32 samples,
# where the sum on a line takes .23; .18 and .25 for 128; .32 and .25 for 256 (CPU, one thread).
FEW_SAMPLES = 128


def _check_mmce(strength: float, weighted: bool, bandwidth: float) -> tuple[float, float]:
    check_flag("weighted", weighted)
    # exp(1 / bandwidth) must stay far from the largest float32.
    return check_range("strength", strength, 0), check_range("bandwidth", bandwidth, 0.02)


# MMCE on a line
# --------------
# The square of the error is a sum over pairs of samples,
#
#     Q = sum_ij a_i a_j exp(-|r_i - r_j|),    r = confidence / bandwidth,
#
# of n^2 terms, too many for a large batch. But r lies on a line. Sort it from the largest,
# r_1 >= r_2 >= ..., and keep one running sum, the kernel sum at r_i over the samples so far:
#
#     s_i = sum_(j <= i) a_j exp(-(r_j - r_i)),    s_(i+1) = exp(-d_i) s_i + a_(i+1),
#
# with the gaps d_i = r_i - r_(i+1). To the sum over pairs of the first i - 1 samples, sample i
# adds a_i^2 + 2 a_i (s_i - a_i) = s_i^2 - (s_i - a_i)^2, and s_i - a_i is exp(-d_(i-1)) s_(i-1).
# Added up, and sorted by s_i, with an infinite gap d_n behind the last sample:
#
#     Q = sum_i (1 - exp(-2 d_i)) s_i^2.
#
# No term is negative, so nothing cancels, and equal confidences (d = 0) count once, all together.
# The running sum itself is a cumulative sum: s_i = exp(r_i) * cumsum(a exp(-r))_i.
def _compute_laplace_norm(coefficient: Tensor, confidence: Tensor, bandwidth: float) -> Tensor:
    """Compute ``sqrt(Q)``; of many samples in n log n time and linear memory."""
    if len(confidence) <= FEW_SAMPLES:
        kernel = ((confidence.unsqueeze(1) - confidence).abs() / -bandwidth).exp()
        squared = coefficient.dot(kernel.mv(coefficient))
    else:
        r, order = (confidence / bandwidth).sort(descending=True)
        a = coefficient.gather(0, order)
        rise = r.exp()
        running = rise * (a / rise).cumsum(0)
        step = torch.cat([r[1:], torch.full_like(r[:1], -torch.inf)]) - r
        squared = (-(step + step).expm1() * running).dot(running)
    # The slope of the square root at 0 is taken as 0.
    return (squared > 0) * squared.clamp_min(torch.finfo(squared.dtype).tiny).sqrt()


def _compute_fractions(
    sample_weight: Tensor | None, correct: Tensor, weighted: bool, like: Tensor
) -> Tensor | float:
    """Return the weights over their sum or, with `weighted`, over that of the (in)correct ones."""
    if sample_weight is None and not weighted:
        return 1 / len(like)
    weight = torch.ones_like(like) if sample_weight is None else sample_weight
    if weighted:
        # A pair counts with the product of its two fractions, so each block of pairs (both
        # correct, both wrong, one of each) is a weighted mean.
        total = torch.where(correct, (weight * correct).sum(), (weight * ~correct).sum())
    else:
        total = weight.sum()
    # Where the total is 0, so is every weight: 0 / tiny = 0.
    return weight / total.clamp_min(torch.finfo(weight.dtype).tiny)


def mmce_loss(
    logits: Tensor,
    target: Tensor,
    *,
    strength: float = 2.0,
    weighted: bool = False,
    bandwidth: float = 0.4,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cross-entropy plus `strength` times the maximum mean calibration error.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    strength, weighted, bandwidth, ignore_index : of :class:`MMCELoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`MMCELoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.MMCELoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import mmce_loss
    >>> logits = torch.tensor([[3.0, 0.0], [3.0, 0.0]])
    >>> mmce_loss(logits, torch.tensor([0, 1]), strength=0.0)
    tensor(1.5486)
    >>> mmce_loss(logits, torch.tensor([0, 1]), strength=1.0)
    tensor(2.0012)
    """
    strength, bandwidth = _check_mmce(strength, weighted, bandwidth)
    batch = check_batch(logits, target, sample_weight, ignore_index=ignore_index, soft=False)
    logits, target = batch.rows
    nll, residual = compute_cross_entropy(logits, target)
    gap, correct = compute_answer_residual(logits, target, residual)
    coefficient = gap * _compute_fractions(batch.weight, correct, weighted, nll)
    mmce = _compute_laplace_norm(coefficient, gap + correct, bandwidth)
    # The (weighted) mean of a constant is the constant: added to every sample, it counts once.
    return batch.reduce(nll + strength * mmce, reduction)


class MMCELoss(CalibrationLoss):
    """Cross-entropy plus the maximum mean calibration error of the batch [1]_.

    With r the confidence and c the correctness (0 or 1, a constant) of the n samples of the batch,
    ``MMCE^2 = n^-2 sum_ij (c_i - r_i) (c_j - r_j) exp(-|r_i - r_j| / bandwidth)``. A sample is
    correct if no class stands above its label. The target must hold class indices. In the
    population the penalty vanishes for a calibrated classifier; on a finite batch it is never 0.
    It takes n log n time and linear memory.

    Parameters
    ----------
    strength : float in [0, inf), default=2.0
        Strength of the MMCE; 0 is the cross-entropy, [1]_ uses 2 to 4.
    weighted : bool, default=False
        If True, correct and incorrect samples are averaged separately (MMCE_w of [1]_), so that
        correct samples do not dominate a batch with few errors. Each block of pairs is a
        mean; it is normalized once.
    bandwidth : float in [0.02, inf), default=0.4
        Width of the Laplace kernel, in units of confidence.
    ignore_index : int, default=None
        Label of the samples to leave out (torch: -100); None: every label must be a class.
    reduction : {"none", "sum", "mean"}, default="mean"
        The MMCE belongs to the batch and counts once in the "mean". "none" adds it to every
        sample, so that the (weighted) mean over the samples is the "mean".

    See Also
    --------
    skcalib.losses.functional.mmce_loss : The function.
    CorrectnessRankingLoss : Another penalty over pairs of samples.
    skcalib.metrics.smooth_calibration_error : A kernel calibration error as a metric.

    Notes
    -----
    Near 0 the MMCE grows like the square root of its inputs: the rounding of float32 confidences
    shows up as about 1e-4 there.

    References
    ----------
    .. [1] A. Kumar, S. Sarawagi, U. Jain, "Trainable Calibration Measures for Neural Networks from
       Kernel Mean Embeddings", ICML 2018.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import MMCELoss
    >>> MMCELoss(strength=1.0)(torch.tensor([[3.0, 0.0], [3.0, 0.0]]), torch.tensor([0, 1]))
    tensor(2.0012)
    """

    takes_soft_target = False
    _function = staticmethod(mmce_loss)
    strength: float
    weighted: bool
    bandwidth: float

    def __init__(
        self,
        *,
        strength: float = 2.0,
        weighted: bool = False,
        bandwidth: float = 0.4,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        _check_mmce(strength, weighted, bandwidth)
        super().__init__(
            strength=strength,
            weighted=weighted,
            bandwidth=bandwidth,
            ignore_index=ignore_index,
            reduction=reduction,
        )
