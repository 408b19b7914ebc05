"""Dual focal loss: the focal loss with the gap to a rival class in its weight."""

from __future__ import annotations

import torch
from torch import Tensor

from ._base import CalibrationLoss, check_flag, check_option, check_range
from ._batch import check_batch, check_inputs
from ._softmax import expectation, largest_probabilities, miss_probability, power, target_nll

_RIVALS = ("below_label", "second_largest", "largest_other")


def _check_parameters(gamma: float, rival: str, detach_weight: bool = False) -> float:
    check_option("rival", rival, _RIVALS)
    check_flag("detach_weight", detach_weight)
    return check_range("gamma", gamma, 0)


def _below_label(logits: Tensor, target: Tensor, log_proba: Tensor) -> Tensor:
    """Compute the largest probability strictly below that of the label, shape (n,)."""
    # The logits rank the classes as the probabilities do, and do not tie where these underflow.
    gap = logits.gather(1, target.unsqueeze(1)) - logits
    # The least positive gap; none is infinite, and then p_j is 0.
    nearest = torch.nn.functional.threshold(gap, 0.0, torch.inf).min(1).values
    return (log_proba - nearest).exp()  # log p_j = log p_y - (z_y - z_j)


def _below_every_class(logits: Tensor, nll: Tensor) -> Tensor:
    """Compute for each class the largest probability strictly below its own, shape (n, K)."""
    # Only positions come out of the logits here; the gradient goes through nll. (searchsorted
    # warns of what is not contiguous.)
    logits = logits.detach().contiguous()
    order = logits.argsort(1)
    # In sorted order, the left insertion point of a logit is the number of logits strictly below
    # it; the class before that point is the rival. Equal logits share one rival.
    n_below = torch.searchsorted(logits.gather(1, order), logits)
    rival = order.gather(1, (n_below - 1).clamp_min(0))
    return torch.where(n_below > 0, (-nll).exp().gather(1, rival), 0.0)


def _largest_other(logits: Tensor, target: Tensor, log_proba: Tensor) -> Tensor:
    """Compute the largest probability of another class, (n,), or for every class, (n, K)."""
    if not target.is_floating_point():
        label = target.unsqueeze(1)
        gap = logits.scatter(1, label, -torch.inf).max(1).values - logits.gather(1, label)[:, 0]
        return (log_proba + gap).exp()  # log p_j = log p_y + z_j - z_y
    top, place = log_proba.topk(2)
    every = torch.arange(logits.shape[1], device=logits.device)
    return torch.where(every == place[:, :1], top[:, 1:], top[:, :1]).exp()


def _weight(logits: Tensor, target: Tensor, nll: Tensor, gamma: float, rival: str) -> Tensor:
    """Return (1 - p_y + p_j)^gamma in the shape of `nll`."""
    log_proba = -nll
    # A single class has no rival: p_j = 0.
    if logits.shape[1] == 1:
        return power(miss_probability(nll), gamma)
    if rival == "largest_other":
        proba = _largest_other(logits, target, log_proba)
        return power(proba - log_proba.expm1(), gamma)
    if rival == "second_largest":
        proba = largest_probabilities(logits, target, nll, 2)[:, 1]
        # One rival for the whole row, so the same one for every class of a soft target.
        proba = proba.unsqueeze(1) if target.is_floating_point() else proba
    elif target.is_floating_point():
        proba = _below_every_class(logits, nll)
    else:
        proba = _below_label(logits, target, log_proba)
    # 1 - p_y + p_j, with 1 - p_y = -expm1(log p_y).
    return power(proba - log_proba.expm1(), gamma)


def dual_focal_weight(
    logits: Tensor, target: Tensor, *, gamma: float = 5.0, rival: str = "below_label"
) -> Tensor:
    """Compute the dual focal weight, ``(1 - p_y + p_j)^gamma``.

    Parameters
    ----------
    logits, target : of :func:`focal_weight`
    gamma, rival : of :class:`DualFocalLoss`

    Returns
    -------
    weight : Tensor of shape (n,) or, with class probabilities, (n, K)
        Weight of every sample, or of every class of it; larger = counts more. In [0, 1] with the
        default `rival`, else up to 2^gamma.

    See Also
    --------
    skcalib.losses.DualFocalLoss : A loss with this weight.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import dual_focal_weight
    >>> logits = torch.tensor([[0.5, 0.4, 0.1]]).log()
    >>> dual_focal_weight(logits, torch.tensor([0]), gamma=1.0)
    tensor([0.9000])
    """
    gamma = _check_parameters(gamma, rival)
    logits, target = check_inputs(logits, target)
    return _weight(logits, target, target_nll(logits, target), gamma, rival)


def dual_focal_loss(
    logits: Tensor,
    target: Tensor,
    *,
    gamma: float = 5.0,
    detach_weight: bool = False,
    rival: str = "below_label",
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the dual focal loss, ``-(1 - p_y + p_j)^gamma log p_y``.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    gamma, detach_weight, rival, weight, ignore_index : of :class:`DualFocalLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`DualFocalLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.DualFocalLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import dual_focal_loss
    >>> logits, target = torch.tensor([[0.5, 0.4, 0.1]]).log(), torch.tensor([1])
    >>> dual_focal_loss(logits, target, gamma=1.0)
    tensor(0.6414)
    >>> dual_focal_loss(logits, target, gamma=1.0, rival="second_largest")
    tensor(0.9163)
    """
    gamma = _check_parameters(gamma, rival, detach_weight)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    nll = target_nll(logits, target)
    # The weight depends on the logits twice: through p_y (nll) and through p_j.
    terms = (logits.detach(), target, nll.detach()) if detach_weight else (logits, target, nll)
    return batch.reduce(expectation(_weight(*terms, gamma, rival) * nll, target), reduction)


class DualFocalLoss(CalibrationLoss):
    """Dual focal loss [1]_, ``-(1 - p_y + p_j)^gamma log p_y`` with p_j of a rival class.

    It lies between the overconfidence of the cross-entropy and the underconfidence of the focal
    loss. With class probabilities t it is the mean over labels drawn from t, each with its own
    rival. Not proper.

    Parameters
    ----------
    gamma : float in [0, inf), default=5.0
        Exponent; 0 is the cross-entropy.
    detach_weight : bool, default=False
        If True, the weight is a constant for the gradient (DFL-GRA).
    rival : {"below_label", "second_largest", "largest_other"}, default="below_label"
        Which probability is p_j. "below_label" is the largest one strictly below p_y, 0 if there
        is none, as [1]_ defines and implements it. "second_largest" is the second-largest of all,
        and "largest_other" the largest of the other classes, as [2]_ states in two places. The
        three are the same where the label is the most probable class.
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.dual_focal_loss : The function.
    FocalLoss : Without the rival class.
    skcalib.losses.functional.dual_focal_weight : The weight.

    References
    ----------
    .. [1] L. Tao, M. Dong, C. Xu, "Dual Focal Loss for Calibration", ICML 2023.
    .. [2] J. Lin, L. Tao, M. Dong, C. Xu, "Uncertainty Weighted Gradients for Model Calibration",
       CVPR 2025.

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
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        _check_parameters(gamma, rival, detach_weight)
        super().__init__(
            gamma=gamma,
            detach_weight=detach_weight,
            rival=rival,
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
        )
