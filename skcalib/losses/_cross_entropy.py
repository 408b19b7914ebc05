"""Cross-entropy, label smoothing, Brier score, Poly-1 and 0-hinge: losses without a weight."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._base import CalibrationLoss, WeightedLoss, check_batch, check_range
from ._softmax import (
    ExactSoftmax,
    add_vmap,
    average_over_target,
    compute_cross_entropy,
    compute_one_minus_p,
    compute_softmax_vjp,
    compute_target_nll,
    measure_from_label,
    take_target_logit,
)

# Cross-entropy, and cross-entropy with smoothed labels.


def cross_entropy_loss(
    logits: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cross-entropy, ``-log p_y``.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    weight, ignore_index : of :class:`CrossEntropyLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`CrossEntropyLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.CrossEntropyLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import cross_entropy_loss
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 40.0]])
    >>> cross_entropy_loss(logits, torch.tensor([0, 1]), reduction="none")
    tensor([1.2693e-01, 4.2484e-18])
    """
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    values = average_over_target(compute_target_nll(logits, target), target)
    return batch.reduce(values, reduction)


class CrossEntropyLoss(WeightedLoss):
    """Cross-entropy in nats, ``-log p_y``: a proper loss, and the reference for all others.

    Unlike :class:`torch.nn.CrossEntropyLoss` it takes per-sample weights, and it stays exact below
    the precision of the type.

    Parameters
    ----------
    weight : Tensor of shape (K,), default=None
        Non-negative weight of every class, for class indices alone. As in torch, the "mean"
        divides by the weights of the labels.
    ignore_index : int, default=None
        Label of the samples to leave out (torch: -100); None: every label must be a class.
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    See Also
    --------
    skcalib.losses.functional.cross_entropy_loss : The function.
    LabelSmoothingLoss : Against smoothed labels.
    skcalib.nets.CalibratedNetClassifier : Trains a network with it, or with any other loss.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import CrossEntropyLoss
    >>> CrossEntropyLoss()(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(0.1269)
    """

    _function = staticmethod(cross_entropy_loss)


def label_smoothing_loss(
    logits: Tensor,
    target: Tensor,
    *,
    alpha: float = 0.05,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cross-entropy against smoothed labels, ``(1 - alpha) t + alpha / K``.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    alpha, weight, ignore_index : of :class:`LabelSmoothingLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`LabelSmoothingLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.LabelSmoothingLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import label_smoothing_loss
    >>> label_smoothing_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), alpha=0.1)
    tensor(0.2269)
    """
    alpha = check_range("alpha", alpha, 0, 1)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    values = average_over_target(compute_target_nll(logits, target), target)
    # With -log p_k = -log p_y + z_y - z_k, the smoothed labels add alpha times the mean of the
    # differences; a soft target has its mean logit in the place of z_y.
    difference = take_target_logit(logits, target) - logits.mean(1)
    return batch.reduce(values.add(difference, alpha=alpha), reduction)


class LabelSmoothingLoss(CalibrationLoss):
    """Cross-entropy against smoothed labels, ``(1 - alpha) t + alpha / K`` [1]_.

    The least value is the entropy of the smoothed labels, not 0. Not proper: its population
    optimum is the smoothed posterior, less confident than the truth by a known amount.

    Parameters
    ----------
    alpha : float in [0, 1], default=0.05
        Mass moved from the target to the uniform distribution over all K classes, the label
        included, as in [1]_ and torch. 0 is the cross-entropy; [2]_ uses .03 to .05 on CIFAR-10.
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.label_smoothing_loss : The function.
    EntropyRegularizedLoss : Penalizes the confidence of the prediction instead.

    References
    ----------
    .. [1] C. Szegedy, V. Vanhoucke, S. Ioffe, J. Shlens, Z. Wojna, "Rethinking the Inception
       Architecture for Computer Vision", CVPR 2016, Sec. 7.
    .. [2] G. Tata, G. K. Gudur, G. Chennupati, M. E. Khan, "Can Calibration Improve Sample
       Prioritization?", NeurIPS Workshop 2022. Calls: :ref:`paper-prio`.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import LabelSmoothingLoss
    >>> LabelSmoothingLoss(alpha=0.1)(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(0.2269)
    """

    _function = staticmethod(label_smoothing_loss)
    alpha: float

    def __init__(
        self,
        *,
        alpha: float = 0.05,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        check_range("alpha", alpha, 0, 1)
        super().__init__(
            alpha=alpha, weight=weight, ignore_index=ignore_index, reduction=reduction
        )


# Brier score as a loss.


@add_vmap
class _BrierScore(ExactSoftmax):
    """``sum_k r_k^2`` of the residual r = p - t of class indices, shape (n,), and the residual.

    The cross-entropy, which needs the largest logit, is left out.
    """

    @staticmethod
    def forward(logits: Tensor, label: Tensor) -> tuple[Tensor, ...]:
        label = label.unsqueeze(1)
        residual = logits.softmax(1)
        one_minus_p = residual.scatter_(1, label, 0.0).sum(1, keepdim=True)
        residual.scatter_(1, label, one_minus_p.neg_())
        # No squares of shape (n, K): new memory would cost more than the root.
        return torch.linalg.vector_norm(residual, dim=1).square_(), residual

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None]:
        label, score, residual = ctx.saved_tensors
        grad, cotangent = grads
        found = None if cotangent is None else measure_from_label(residual, label, cotangent)
        if grad is None:
            return None if found is None else compute_softmax_vjp(residual, label, *found), None
        # The Jacobian of the softmax times 2 r. From the label, 2 (r - r_y), the mean is the sum
        # over j != y of 2 r_j (r_j - r_y): twice the score.
        twice = 2 * grad
        of_label = residual.gather(1, label.unsqueeze(1)).squeeze(1)
        difference, mean = twice.unsqueeze(1) * residual, twice * score
        if found is not None:
            difference, mean = found[0] + difference, mean + found[1]
        return compute_softmax_vjp(residual, label, difference, mean, -twice * of_label), None


def brier_loss(
    logits: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the Brier score of several classes, ``sum_k (p_k - t_k)^2``.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    weight, ignore_index : of :class:`BrierLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`BrierLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.BrierLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import brier_loss
    >>> brier_loss(torch.tensor([[0.7, 0.2, 0.1]]).log(), torch.tensor([0]))
    tensor(0.1400)
    """
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    if not target.is_floating_point():
        return batch.reduce(_BrierScore.apply(logits, target)[0], reduction)
    # The exact residual p - t: one minus a rounded p_y would lose its digits.
    _, residual = compute_cross_entropy(logits, target)
    return batch.reduce(residual.square().sum(1), reduction)


class BrierLoss(WeightedLoss):
    """Brier score [1]_, ``sum_k (p_k - t_k)^2``: proper, bounded, and robust to wrong labels.

    In [0, 2]: twice the score of the binary definition for two classes. Its gradient vanishes
    where the prediction is certain and wrong, so training can stall there.

    Parameters
    ----------
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.brier_loss : The function.
    skcalib.metrics.generalized_brier_score : The score as a metric.

    References
    ----------
    .. [1] G. W. Brier, "Verification of Forecasts Expressed in Terms of Probability", Monthly
       Weather Review 1950.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import BrierLoss
    >>> BrierLoss()(torch.tensor([[0.7, 0.2, 0.1]]).log(), torch.tensor([0]))
    tensor(0.1400)
    """

    _function = staticmethod(brier_loss)


# Poly-1 loss: cross-entropy with its leading polynomial coefficient changed.


def poly_loss(
    logits: Tensor,
    target: Tensor,
    *,
    epsilon: float = 1.0,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the Poly-1 loss, ``-log p_y + epsilon (1 - p_y)``.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    epsilon, weight, ignore_index : of :class:`PolyLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`PolyLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.PolyLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import poly_loss
    >>> poly_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(0.2461)
    """
    epsilon = check_range("epsilon", epsilon, -1)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    nll = compute_target_nll(logits, target)
    # -log p = sum_j (1 - p)^j / j, so epsilon (1 - p) makes the first coefficient 1 + epsilon.
    values = average_over_target(nll + epsilon * compute_one_minus_p(nll), target)
    return batch.reduce(values, reduction)


class PolyLoss(CalibrationLoss):
    """Poly-1 loss [1]_, ``-log p_y + epsilon (1 - p_y)``.

    With class probabilities t it is the mean over labels drawn from t. Not proper for epsilon !=
    0: with a positive one the population optimum is more confident than the posterior, with a
    negative one less.

    Parameters
    ----------
    epsilon : float in [-1, inf), default=1.0
        Change of the first coefficient of ``-log p = sum_j (1 - p)^j / j``; 0 is the
        cross-entropy, below -1 the loss would reward errors.
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.poly_loss : The function.
    FocalLoss : Another change to the shape of the cross-entropy.

    References
    ----------
    .. [1] Z. Leng, M. Tan, C. Liu, E. D. Cubuk, X. Shi, S. Cheng, D. Anguelov, "PolyLoss: A
       Polynomial Expansion Perspective of Classification Loss Functions", ICLR 2022.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import PolyLoss
    >>> PolyLoss()(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(0.2461)
    """

    _function = staticmethod(poly_loss)
    epsilon: float

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        check_range("epsilon", epsilon, -1)
        super().__init__(
            epsilon=epsilon, weight=weight, ignore_index=ignore_index, reduction=reduction
        )


# 0-hinge loss: how far the wrong classes stand above the label.


def zero_hinge_loss(
    logits: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the 0-hinge loss, ``sum_{j != y} max(0, z_j - z_y)``.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    weight, ignore_index : of :class:`ZeroHingeLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`ZeroHingeLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.ZeroHingeLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import zero_hinge_loss
    >>> logits = torch.tensor([[1.0, 3.0, 1.5], [9.0, 3.0, 1.5]])
    >>> zero_hinge_loss(logits, torch.tensor([0, 0]), reduction="none")
    tensor([2.5000, 0.0000])
    """
    batch = check_batch(logits, target, sample_weight, weight, ignore_index, soft=False)
    logits, target = batch.rows
    # The label needs no mask: its own term is relu(0) = 0, with a slope of 0.
    values = (logits - logits.gather(1, target.unsqueeze(1))).relu().sum(1)
    return batch.reduce(values, reduction)


class ZeroHingeLoss(WeightedLoss):
    """0-hinge loss [1]_, ``sum_{j != y} max(0, z_j - z_y)``: asks for the right class only.

    It is for studies of margins, not for classifiers: on 11 small tasks it cost .052 accuracy on
    average and .14 at worst, against the cross-entropy. Training stops at the first correct
    answer, so margins stay small, and the softmax of the logits carries no probability. The loss
    is 0 as soon as no class is above the label, with a gradient of 0 at ties. The formula is that
    of App. A.7; with the sign printed in Sec. 3.3 it would punish correct margins. The target must
    hold class indices: every class is compared with one label.

    Parameters
    ----------
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.zero_hinge_loss : The function.
    CrossEntropyLoss : The loss that asks for probabilities.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, App. A.7. Calls: :ref:`paper-depth`.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import ZeroHingeLoss
    >>> ZeroHingeLoss()(torch.tensor([[1.0, 3.0, 1.5]]), torch.tensor([0]))
    tensor(2.5000)
    """

    takes_soft_target = False
    _function = staticmethod(zero_hinge_loss)
