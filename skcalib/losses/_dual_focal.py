"""Dual focal loss: the focal loss with the gap to a rival class in its weight."""

from __future__ import annotations

import torch
from torch import Tensor

from ._base import CalibrationLoss, check_inputs, check_option, check_range
from ._closed_form import arg_max, evaluate, move_probability, power_and_root, probability_from
from ._softmax import (
    expectation,
    label_softmax,
    miss_probability,
    power,
    probability_at,
    target_nll,
)

_RIVALS = ("below_label", "second_largest")


def _check_parameters(gamma: float, rival: str) -> None:
    check_range("gamma", gamma, 0)
    check_option("rival", rival, _RIVALS)


def _rival_of_label(logits: Tensor, target: Tensor, nll: Tensor, rival: str) -> Tensor:
    if rival == "second_largest":
        second = logits.topk(2).indices[:, 1:]
        return probability_at(logits, second, target, nll).squeeze(1)
    # The largest logit below that of the label has the smallest 1 / (z - z_y), if any is negative;
    # masking the others takes three times as long.
    lead = logits.detach() - logits.detach().gather(1, target.unsqueeze(1))
    index = lead.reciprocal().argmin(1, keepdim=True)
    proba = probability_at(logits, index, target, nll)
    return torch.where(lead.gather(1, index) < 0, proba, 0.0).squeeze(1)


def _rival_of_every_class(logits: Tensor, nll: Tensor, rival: str) -> Tensor:
    if rival == "second_largest":
        return (-nll.topk(2, largest=False).values[:, 1:]).exp()
    logits = logits.detach().contiguous()
    order = logits.argsort(1)
    n_below = torch.searchsorted(logits.gather(1, order), logits)
    proba = (-nll).exp().gather(1, order.gather(1, (n_below - 1).clamp_min(0)))
    return torch.where(n_below > 0, proba, 0.0)


def _weight(logits: Tensor, target: Tensor, nll: Tensor, gamma: float, rival: str) -> Tensor:
    base = miss_probability(nll)
    if logits.shape[1] > 1 and target.is_floating_point():
        base = base + _rival_of_every_class(logits, nll, rival)
    elif logits.shape[1] > 1:
        base = base + _rival_of_label(logits, target, nll, rival)
    return power(base, gamma)


def _formula(
    logits: Tensor, target: Tensor, gamma: float, detach_weight: bool, rival: str
) -> Tensor:
    nll = target_nll(logits, target)
    terms = (logits.detach(), target, nll.detach()) if detach_weight else (logits, target, nll)
    return expectation(_weight(*terms, gamma, rival) * nll, target)


def _rival(logits: Tensor, label: Tensor, residual: Tensor, rival: str) -> tuple[Tensor, Tensor]:
    """Return the rival and its probability, as :func:`_rival_of_label`, each of shape (n, 1)."""
    if rival == "second_largest":
        index = arg_max(logits.scatter(1, arg_max(logits), -torch.inf))
        return index, probability_from(residual, index, label)
    closeness = (logits - logits.gather(1, label)).reciprocal_().neg_()
    index = arg_max(closeness)
    exists = closeness.gather(1, index).sign_().relu_()
    return index, residual.gather(1, index).mul_(exists)


def _solution(
    logits: Tensor, label: Tensor, gamma: float, detach_weight: bool, rival: str
) -> tuple[Tensor, Tensor]:
    nll, residual, miss = label_softmax(logits, label)
    index, p_rival = _rival(logits, label, residual, rival)
    weight, root = power_and_root(miss.add_(p_rival), gamma)
    values = weight * nll
    if detach_weight:
        return values, residual.mul_(weight)
    of_base = root.mul_(nll.mul(gamma))
    slope = weight.addcmul_(of_base, nll.neg_().exp_())
    return values, move_probability(residual, index, label, of_base.mul_(p_rival), slope)


def dual_focal_weight(
    logits: Tensor, target: Tensor, *, gamma: float = 5.0, rival: str = "below_label"
) -> Tensor:
    """Compute the dual focal weight, ``(1 - p_y + p_j)^gamma``.

    Parameters
    ----------
    logits : Tensor of shape (n, K)
        Finite scores before the softmax.
    target : Tensor of shape (n,) or (n, K)
        Class indices, or class probabilities.
    gamma : float in [0, inf), default=5.0
        Exponent; 0 gives 1.
    rival : {"below_label", "second_largest"}, default="below_label"
        Which probability is p_j; see :func:`dual_focal_loss`.

    Returns
    -------
    weight : Tensor of shape (n,) or, with class probabilities, (n, K)
        Non-negative; of the label, or of every class.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import dual_focal_weight
    >>> logits = torch.tensor([[0.5, 0.4, 0.1]]).log()
    >>> dual_focal_weight(logits, torch.tensor([0]), gamma=1.0)
    tensor([0.9000])
    """
    _check_parameters(gamma, rival)
    logits, target = check_inputs(logits, target)
    return _weight(logits, target, target_nll(logits, target), gamma, rival)


def dual_focal_loss(
    logits: Tensor,
    target: Tensor,
    *,
    gamma: float = 5.0,
    detach_weight: bool = False,
    rival: str = "below_label",
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the dual focal loss, ``-(1 - p_y + p_j)^gamma log p_y``.

    Parameters
    ----------
    logits : Tensor of shape (n, K)
        Finite scores before the softmax.
    target : Tensor of shape (n,) or (n, K)
        Class indices, or class probabilities t: the mean of the loss over labels drawn from t,
        each label with its own rival.
    gamma : float in [0, inf), default=5.0
        Exponent; 0 is the cross-entropy.
    detach_weight : bool, default=False
        If True, the weight is a constant for the gradient (DFL-GRA).
    rival : {"below_label", "second_largest"}, default="below_label"
        Which probability is p_j. "below_label" is the largest one strictly below p_y, 0 if there
        is none, as [1]_ defines and implements it. "second_largest" is the second-largest of all,
        the words of [2]_. The two differ wherever the label is not the first choice.
    sample_weight : Tensor of shape (n,), default=None
        Non-negative weights.
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    Returns
    -------
    loss : Tensor of shape () or (n,)
        >= the focal loss of the same gamma.

    References
    ----------
    .. [1] Tao, Dong and Xu, Dual Focal Loss for Calibration, ICML 2023.
    .. [2] Lin et al., Uncertainty Weighted Gradients for Model Calibration, CVPR 2025.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import dual_focal_loss
    >>> logits, target = torch.tensor([[0.5, 0.4, 0.1]]).log(), torch.tensor([1])
    >>> dual_focal_loss(logits, target, gamma=1.0)
    tensor(0.6414)
    >>> dual_focal_loss(logits, target, gamma=1.0, rival="second_largest")
    tensor(0.9163)
    """
    _check_parameters(gamma, rival)
    logits, target = check_inputs(logits, target)
    parameters = (gamma, detach_weight, rival)
    return evaluate(_formula, _solution, logits, target, parameters, sample_weight, reduction)


class DualFocalLoss(CalibrationLoss):
    """Dual focal loss, ``-(1 - p_y + p_j)^gamma log p_y``, p_j the probability of a rival class.

    Between the over-confidence of the cross-entropy and the under-confidence of the focal loss.
    Not proper.

    Parameters
    ----------
    gamma : float in [0, inf), default=5.0
        Exponent; 0 is the cross-entropy.
    detach_weight : bool, default=False
        If True, the weight is a constant for the gradient (DFL-GRA).
    rival : {"below_label", "second_largest"}, default="below_label"
        Which probability is p_j.
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    See Also
    --------
    dual_focal_loss : the function, with its sources and the two readings of p_j.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import DualFocalLoss
    >>> DualFocalLoss(gamma=1.0)(torch.tensor([[0.5, 0.4, 0.1]]).log(), torch.tensor([1]))
    tensor(0.6414)
    """

    _function = staticmethod(dual_focal_loss)
    gamma: float
    detach_weight: bool
    rival: str

    def __init__(
        self,
        *,
        gamma: float = 5.0,
        detach_weight: bool = False,
        rival: str = "below_label",
        reduction: str = "mean",
    ) -> None:
        _check_parameters(gamma, rival)
        super().__init__(
            gamma=gamma, detach_weight=detach_weight, rival=rival, reduction=reduction
        )
