"""Cross-entropy weighted by the generalized Brier score: BSCE and BSCE-GRA."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ._base import CalibrationLoss, check_inputs, check_range, reduce_loss
from ._closed_form import evaluate, power_and_root
from ._softmax import cross_entropy_terms, label_softmax, miss_probability, power


def _check_parameters(order: float, exponent: float) -> None:
    check_range("order", order, 1, math.inf)
    check_range("exponent", exponent, 0)


def _norm_power(
    nll: Tensor, residual: Tensor, hard: bool, order: float, exponent: float
) -> Tensor:
    """Compute ``||p - t||_order ^ exponent`` from the cross-entropy and the residual."""
    if hard and order == math.inf:
        norm = miss_probability(nll)
    elif order == 1:
        norm = 2 * miss_probability(nll) if hard else residual.abs().sum(1)
    elif order == 2:
        return power(residual.square().sum(1), exponent / 2)
    elif order == math.inf:
        norm = residual.abs().amax(1)
    else:
        # Scaled, because the powers of small residuals would underflow.
        scale = residual.detach().abs().amax(1, keepdim=True)
        scale = scale.clamp_min(torch.finfo(scale.dtype).tiny)
        norm = torch.linalg.vector_norm(residual / scale, order, dim=1) * scale.squeeze(1)
    return power(norm, exponent)


def generalized_brier_weight(
    logits: Tensor, target: Tensor, *, order: float = 2, exponent: float = 4
) -> Tensor:
    """Compute the generalized Brier score, ``||p - t||_order ^ exponent``, of each sample.

    Parameters
    ----------
    logits : Tensor of shape (n, K)
        Finite scores before the softmax.
    target : Tensor of shape (n,) or (n, K)
        Class indices, or class probabilities t.
    order : float in [1, inf], default=2
        Order of the norm. With class indices, ``inf`` is the focal weight ``(1 - p_y)^exponent``
        and 1 is ``2^exponent`` times it.
    exponent : float in [0, inf), default=4
        Exponent of the norm; order 2 with exponent 2 is the Brier score.

    Returns
    -------
    weight : Tensor of shape (n,)
        In [0, 2^(exponent / order)].

    References
    ----------
    .. [1] Lin et al., Uncertainty Weighted Gradients for Model Calibration, CVPR 2025.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import generalized_brier_weight
    >>> generalized_brier_weight(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), exponent=2)
    tensor([0.0284])
    """
    _check_parameters(order, exponent)
    logits, target = check_inputs(logits, target)
    nll, residual = cross_entropy_terms(logits, target)
    return _norm_power(nll, residual, not target.is_floating_point(), order, exponent)


def _formula(
    logits: Tensor, target: Tensor, order: float, exponent: float, detach_weight: bool
) -> Tensor:
    nll, residual = cross_entropy_terms(logits, target)
    terms = (nll.detach(), residual.detach()) if detach_weight else (nll, residual)
    return _norm_power(*terms, not target.is_floating_point(), order, exponent) * nll


def _solution(
    logits: Tensor, label: Tensor, order: float, exponent: float, detach_weight: bool
) -> tuple[Tensor, Tensor]:
    nll, residual, miss = label_softmax(logits, label)
    if detach_weight:
        weight = _norm_power(nll.squeeze(1), residual, True, order, exponent).unsqueeze(1)
        return weight * nll, residual.mul_(weight)
    score = residual.square().sum(1, keepdim=True)
    weight, root = power_and_root(score, exponent / 2)
    # The Brier score has the gradient 2 p_k (r_k - sum_j p_j r_j), the mean being score - miss.
    slope = root.mul_(nll).mul_(exponent)
    offset = weight - slope * (score - miss)
    gradient = torch.addcmul(offset, residual, slope).mul_(residual)
    return weight * nll, gradient.scatter_add_(1, label, slope.mul_(score).neg_())


def _weighted(
    logits: Tensor,
    target: Tensor,
    order: float,
    exponent: float,
    detach_weight: bool,
    sample_weight: Tensor | None,
    reduction: str,
) -> Tensor:
    _check_parameters(order, exponent)
    logits, target = check_inputs(logits, target)
    if order != 2 and not detach_weight:
        values = _formula(logits, target, order, exponent, False)
        return reduce_loss(values, sample_weight, reduction)
    parameters = (order, exponent, detach_weight)
    return evaluate(_formula, _solution, logits, target, parameters, sample_weight, reduction)


def bsce_loss(
    logits: Tensor,
    target: Tensor,
    *,
    order: float = 2,
    exponent: float = 4,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the Brier-score-weighted cross-entropy, ``-||p - t||_order^exponent log p_y``.

    The weight takes part in the gradient; :func:`bsce_gra_loss` holds it constant.

    Parameters
    ----------
    logits : Tensor of shape (n, K)
        Finite scores before the softmax.
    target : Tensor of shape (n,) or (n, K)
        Class indices, or class probabilities t: the distance of p from t times the cross-entropy
        against t. (The mean of the hard-label loss over labels drawn from t is another extension.)
    order : float in [1, inf], default=2
        Order of the norm. With class indices, ``inf`` is the focal loss with ``gamma=exponent``.
    exponent : float in [0, inf), default=4
        Exponent of the norm; 0 is the cross-entropy.
    sample_weight : Tensor of shape (n,), default=None
        Non-negative weights.
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    Returns
    -------
    loss : Tensor of shape () or (n,)
        >= 0.

    References
    ----------
    .. [1] Lin et al., Uncertainty Weighted Gradients for Model Calibration, CVPR 2025.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import bsce_loss
    >>> bsce_loss(torch.tensor([[0.0, 1.0]]), torch.tensor([0]), exponent=2)
    tensor(1.4037)
    """
    return _weighted(logits, target, order, exponent, False, sample_weight, reduction)


def bsce_gra_loss(
    logits: Tensor,
    target: Tensor,
    *,
    order: float = 2,
    exponent: float = 4,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the BSCE loss with its weight held constant for the gradient.

    The gradient with respect to the logits is ``||p - t||_order^exponent (p - t)``; the value is
    that of :func:`bsce_loss`.

    Parameters
    ----------
    logits : Tensor of shape (n, K)
        Finite scores before the softmax.
    target : Tensor of shape (n,) or (n, K)
        Class indices, or class probabilities t, as for :func:`bsce_loss`.
    order : float in [1, inf], default=2
        Order of the norm.
    exponent : float in [0, inf), default=4
        Exponent of the norm; 0 is the cross-entropy. The paper sweeps 3 to 8 and finds 4 best.
    sample_weight : Tensor of shape (n,), default=None
        Non-negative weights.
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    Returns
    -------
    loss : Tensor of shape () or (n,)
        >= 0. What training descends is not this value, so it need not fall.

    References
    ----------
    .. [1] Lin et al., Uncertainty Weighted Gradients for Model Calibration, CVPR 2025, Eq. 10.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import bsce_gra_loss
    >>> logits = torch.tensor([[0.0, 1.0]], requires_grad=True)
    >>> bsce_gra_loss(logits, torch.tensor([0]), exponent=2).backward()
    >>> logits.grad
    tensor([[-0.7814,  0.7814]])
    """
    return _weighted(logits, target, order, exponent, True, sample_weight, reduction)


class BSCELoss(CalibrationLoss):
    """Brier-score-weighted cross-entropy, the weight taking part in the gradient.

    Parameters
    ----------
    order : float in [1, inf], default=2
        Order of the norm of p - t.
    exponent : float in [0, inf), default=4
        Exponent of the norm.
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    See Also
    --------
    bsce_loss : the function, with its source and its extension to soft targets.
    BSCEGRALoss : the form the paper recommends.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import BSCELoss
    >>> BSCELoss(exponent=2)(torch.tensor([[0.0, 1.0]]), torch.tensor([0]))
    tensor(1.4037)
    """

    _function = staticmethod(bsce_loss)
    order: float
    exponent: float

    def __init__(self, *, order: float = 2, exponent: float = 4, reduction: str = "mean") -> None:
        _check_parameters(order, exponent)
        super().__init__(order=order, exponent=exponent, reduction=reduction)


class BSCEGRALoss(CalibrationLoss):
    """Cross-entropy whose gradient is weighted by the generalized Brier score.

    Not proper: its population optimum is less confident than the posterior (the user guide
    computes an example).

    Parameters
    ----------
    order : float in [1, inf], default=2
        Order of the norm of p - t.
    exponent : float in [0, inf), default=4
        Exponent of the norm.
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    See Also
    --------
    bsce_gra_loss : the function, with its source.
    UncertaintyWeightedLoss : the same with any weight.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import BSCEGRALoss
    >>> BSCEGRALoss(exponent=2)(torch.tensor([[0.0, 1.0]]), torch.tensor([0]))
    tensor(1.4037)
    """

    _function = staticmethod(bsce_gra_loss)
    order: float
    exponent: float

    def __init__(self, *, order: float = 2, exponent: float = 4, reduction: str = "mean") -> None:
        _check_parameters(order, exponent)
        super().__init__(order=order, exponent=exponent, reduction=reduction)
