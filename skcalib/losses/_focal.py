"""Focal losses: confident samples count less."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ._base import (
    CalibrationLoss,
    check_batch,
    check_flag,
    check_option,
    check_range,
)
from ._softmax import (
    average_over_target,
    clamp_base,
    compute_largest_probabilities,
    compute_one_minus_p,
    compute_power,
    compute_target_nll,
)

# Focal loss: confident samples count less. Its exponent may depend on the sample (FLSD-53).


def focal_loss(
    logits: Tensor,
    target: Tensor,
    *,
    gamma: float = 2.0,
    detach_weight: bool = False,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the focal loss, ``-(1 - p_y)^gamma log p_y``.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    gamma, detach_weight, weight, ignore_index : of :class:`FocalLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`FocalLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.FocalLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import focal_loss
    >>> focal_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), gamma=1.0)
    tensor(0.0151)
    """
    gamma = check_range("gamma", gamma, 0)
    check_flag("detach_weight", detach_weight)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    nll = compute_target_nll(logits, target)
    # For soft targets nll and factor have shape (n, K), one loss for every possible label; the
    # mean over t comes last.
    factor = compute_power(compute_one_minus_p(nll.detach() if detach_weight else nll), gamma)
    return batch.reduce(average_over_target(factor * nll, target), reduction)


class FocalLoss(CalibrationLoss):
    """Focal loss [1]_, [2]_, ``-(1 - p_y)^gamma log p_y``: confident samples count less.

    With class probabilities t it is the mean over labels drawn from t,
    ``-sum_k t_k (1 - p_k)^gamma log p_k``: linear in t, as mixup needs it, and not
    ``-(1 - sum_k t_k p_k)^gamma sum_k t_k log p_k``. Not proper: its population optimum is less
    confident than the posterior.

    Parameters
    ----------
    gamma : float in [0, inf), default=2.0
        Exponent. 0 is the cross-entropy; larger values lower the confidence more. On small data 1
        or 2 are better calibrated than the 3 to 5 of the papers.
    detach_weight : bool, default=False
        If True, the weight ``(1 - p_y)^gamma`` is a constant for the gradient, which is then the
        weight times that of the cross-entropy (the "-GRA" form of [3]_). The value is the same.
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.focal_loss : The function.
    DualFocalLoss : With a runner-up class in the weight.
    SampleDependentFocalLoss : With an exponent that depends on the probability.

    References
    ----------
    .. [1] T.-Y. Lin, P. Goyal, R. Girshick, K. He, P. Dollar, "Focal Loss for Dense Object
       Detection", ICCV 2017, Eq. 4.
    .. [2] J. Mukhoti, V. Kulharia, A. Sanyal, S. Golodetz, P. Torr, P. Dokania, "Calibrating Deep
       Neural Networks using Focal Loss", NeurIPS 2020.
    .. [3] J. Lin, L. Tao, M. Dong, C. Xu, "Uncertainty Weighted Gradients for Model Calibration",
       CVPR 2025. Calls: :ref:`paper-gra`.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import FocalLoss
    >>> FocalLoss(gamma=1.0)(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(0.0151)
    """

    _function = staticmethod(focal_loss)
    gamma: float
    detach_weight: bool

    def __init__(
        self,
        *,
        gamma: float = 2.0,
        detach_weight: bool = False,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        check_range("gamma", gamma, 0)
        check_flag("detach_weight", detach_weight)
        super().__init__(
            gamma=gamma,
            detach_weight=detach_weight,
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
        )


def _check_exponents(
    gammas: Sequence[float], thresholds: Sequence[float], detach_weight: bool = False
) -> tuple[list[float], list[float]]:
    check_flag("detach_weight", detach_weight)
    for name, values in (("gammas", gammas), ("thresholds", thresholds)):
        if not isinstance(values, Sequence) or isinstance(values, str):
            raise ValueError(f"{name} must be a sequence of numbers, got {values!r}.")
    if len(gammas) != len(thresholds) + 1:
        raise ValueError(
            "gammas must have one entry more than thresholds, "
            f"got {len(gammas)} gammas and {len(thresholds)} thresholds."
        )
    exponents = [check_range("gammas (each)", gamma, 0) for gamma in gammas]
    limits = [check_range("thresholds (each)", threshold, 0, 1) for threshold in thresholds]
    if limits != sorted(set(limits)):
        raise ValueError(f"thresholds must be strictly increasing, got {thresholds!r}.")
    return exponents, limits


def _compute_sample_dependent_weight(
    nll: Tensor, gammas: list[float], thresholds: list[float]
) -> Tensor:
    """Return (1 - p)^gamma in the shape of `nll` = -log p, with gamma by the thresholds of p."""
    # From the largest threshold down, so that the smallest one above p decides.
    gamma_of_sample = torch.full_like(nll, gammas[-1])
    for gamma, threshold in zip(gammas[-2::-1], reversed(thresholds), strict=True):
        # Compared as cross-entropies, which resolve probabilities near 0.
        limit = -math.log(threshold) if threshold else math.inf
        gamma_of_sample = torch.where(nll > limit, gamma, gamma_of_sample)
    # One base for all exponents: it is kept from 0 if any of them has an infinite slope there.
    base = compute_one_minus_p(nll)
    for gamma in gammas:
        base = clamp_base(base, gamma)
    return base**gamma_of_sample


def sample_dependent_focal_loss(
    logits: Tensor,
    target: Tensor,
    *,
    gammas: Sequence[float] = (5.0, 3.0),
    thresholds: Sequence[float] = (0.2,),
    detach_weight: bool = False,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the focal loss with an exponent that depends on the probability of the label.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    gammas, thresholds, detach_weight, weight, ignore_index : of :class:`SampleDependentFocalLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`SampleDependentFocalLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.SampleDependentFocalLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import sample_dependent_focal_loss
    >>> logits = torch.tensor([[0.1, 0.9], [0.9, 0.1]]).log()
    >>> sample_dependent_focal_loss(logits, torch.tensor([0, 0]), reduction="none")
    tensor([1.3597e+00, 1.0536e-04])
    """
    exponents, limits = _check_exponents(gammas, thresholds, detach_weight)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    nll = compute_target_nll(logits, target)
    factor = _compute_sample_dependent_weight(
        nll.detach() if detach_weight else nll, exponents, limits
    )
    return batch.reduce(average_over_target(factor * nll, target), reduction)


class SampleDependentFocalLoss(CalibrationLoss):
    """Focal loss with a larger exponent where the label is improbable (FLSD-53) [1]_.

    The exponent itself is not differentiated; the loss jumps where p_y crosses a threshold. Soft
    targets are treated as by :class:`FocalLoss`, and the loss is not proper for the same reason.

    Parameters
    ----------
    gammas : sequence of float, default=(5.0, 3.0)
        Exponents: entry i where ``p_y < thresholds[i]`` holds first, the last one elsewhere.
    thresholds : sequence of float, default=(0.2,)
        Increasing probabilities, one fewer than `gammas`.
    detach_weight : bool, default=False
        If True, the weight is a constant for the gradient (FLSD-GRA).
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.sample_dependent_focal_loss : The function.
    FocalLoss : One exponent for all.

    References
    ----------
    .. [1] J. Mukhoti, V. Kulharia, A. Sanyal, S. Golodetz, P. Torr, P. Dokania, "Calibrating Deep
       Neural Networks using Focal Loss", NeurIPS 2020 (FLSD-53).

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import SampleDependentFocalLoss
    >>> SampleDependentFocalLoss()(torch.tensor([[0.1, 0.9]]).log(), torch.tensor([0]))
    tensor(1.3597)
    """

    _function = staticmethod(sample_dependent_focal_loss)
    gammas: Sequence[float]
    thresholds: Sequence[float]
    detach_weight: bool

    def __init__(
        self,
        *,
        gammas: Sequence[float] = (5.0, 3.0),
        thresholds: Sequence[float] = (0.2,),
        detach_weight: bool = False,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        _check_exponents(gammas, thresholds, detach_weight)
        super().__init__(
            gammas=gammas,
            thresholds=thresholds,
            detach_weight=detach_weight,
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
        )


# Dual focal loss: the focal loss with the difference from a runner-up class in its weight.

_RUNNERS_UP = ("below_label", "second_largest", "largest_other")


def _check_dual_focal(gamma: float, runner_up: str, detach_weight: bool = False) -> float:
    check_option("runner_up", runner_up, _RUNNERS_UP)
    check_flag("detach_weight", detach_weight)
    return check_range("gamma", gamma, 0)


def _compute_below_label(logits: Tensor, target: Tensor, log_proba: Tensor) -> Tensor:
    """Compute the largest probability strictly below that of the label, shape (n,)."""
    # The logits rank the classes as the probabilities do, and do not tie where these underflow.
    gap = logits.gather(1, target.unsqueeze(1)) - logits
    # The least positive gap; none is infinite, and then p_j is 0.
    nearest = torch.nn.functional.threshold(gap, 0.0, torch.inf).min(1).values
    return (log_proba - nearest).exp()  # log p_j = log p_y - (z_y - z_j)


def _compute_below_every_class(logits: Tensor, nll: Tensor) -> Tensor:
    """Compute for each class the largest probability strictly below its own, shape (n, K)."""
    # Only positions come out of the logits here; the gradient goes through nll. (searchsorted
    # warns of what is not contiguous.)
    logits = logits.detach().contiguous()
    order = logits.argsort(1)
    # In sorted order, the left insertion point of a logit is the number of logits strictly below
    # it; the class before that point is the runner-up. Equal logits share one runner-up.
    n_below = torch.searchsorted(logits.gather(1, order), logits)
    position = order.gather(1, (n_below - 1).clamp_min(0))
    return torch.where(n_below > 0, (-nll).exp().gather(1, position), 0.0)


def _compute_largest_other(logits: Tensor, target: Tensor, log_proba: Tensor) -> Tensor:
    """Compute the largest probability of another class, (n,), or for every class, (n, K)."""
    if not target.is_floating_point():
        label = target.unsqueeze(1)
        gap = logits.scatter(1, label, -torch.inf).max(1).values - logits.gather(1, label)[:, 0]
        return (log_proba + gap).exp()  # log p_j = log p_y + z_j - z_y
    top, place = log_proba.topk(2)
    every = torch.arange(logits.shape[1], device=logits.device)
    return torch.where(every == place[:, :1], top[:, 1:], top[:, :1]).exp()


def _compute_dual_weight(
    logits: Tensor, target: Tensor, nll: Tensor, gamma: float, runner_up: str
) -> Tensor:
    """Return (1 - p_y + p_j)^gamma in the shape of `nll`."""
    log_proba = -nll
    # A single class has no runner-up: p_j = 0.
    if logits.shape[1] == 1:
        return compute_power(compute_one_minus_p(nll), gamma)
    if runner_up == "largest_other":
        proba = _compute_largest_other(logits, target, log_proba)
        return compute_power(proba - log_proba.expm1(), gamma)
    if runner_up == "second_largest":
        proba = compute_largest_probabilities(logits, target, nll, 2)[:, 1]
        # One runner-up for the whole row, so the same one for every class of a soft target.
        proba = proba.unsqueeze(1) if target.is_floating_point() else proba
    elif target.is_floating_point():
        proba = _compute_below_every_class(logits, nll)
    else:
        proba = _compute_below_label(logits, target, log_proba)
    # 1 - p_y + p_j, with 1 - p_y = -expm1(log p_y).
    return compute_power(proba - log_proba.expm1(), gamma)


def dual_focal_loss(
    logits: Tensor,
    target: Tensor,
    *,
    gamma: float = 5.0,
    detach_weight: bool = False,
    runner_up: str = "below_label",
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the dual focal loss, ``-(1 - p_y + p_j)^gamma log p_y``.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    gamma, detach_weight, runner_up, weight, ignore_index : of :class:`DualFocalLoss`
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
    >>> dual_focal_loss(logits, target, gamma=1.0, runner_up="second_largest")
    tensor(0.9163)
    """
    gamma = _check_dual_focal(gamma, runner_up, detach_weight)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    nll = compute_target_nll(logits, target)
    # The weight depends on the logits twice: through p_y (nll) and through p_j.
    terms = (logits.detach(), target, nll.detach()) if detach_weight else (logits, target, nll)
    return batch.reduce(
        average_over_target(_compute_dual_weight(*terms, gamma, runner_up) * nll, target),
        reduction,
    )


class DualFocalLoss(CalibrationLoss):
    """Dual focal loss [1]_, ``-(1 - p_y + p_j)^gamma log p_y`` with p_j of a runner-up class.

    It lies between the overconfidence of the cross-entropy and the underconfidence of the focal
    loss. With class probabilities t it is the mean over labels drawn from t, each with its own
    runner-up. Not proper.

    Parameters
    ----------
    gamma : float in [0, inf), default=5.0
        Exponent; 0 is the cross-entropy.
    detach_weight : bool, default=False
        If True, the weight is a constant for the gradient (DFL-GRA).
    runner_up : {"below_label", "second_largest", "largest_other"}, default="below_label"
        Which probability is p_j. "below_label" is the largest one strictly below p_y, 0 if there
        is none, as [1]_ defines and implements it. "second_largest" is the second-largest of all,
        and "largest_other" the largest of the other classes, as [2]_ states in two places. The
        three are the same where the label is the most probable class.
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.dual_focal_loss : The function.
    FocalLoss : Without the runner-up.

    References
    ----------
    .. [1] L. Tao, M. Dong, C. Xu, "Dual Focal Loss for Calibration", ICML 2023.
    .. [2] J. Lin, L. Tao, M. Dong, C. Xu, "Uncertainty Weighted Gradients for Model Calibration",
       CVPR 2025. Calls: :ref:`paper-gra`.

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
    runner_up: str

    def __init__(
        self,
        *,
        gamma: float = 5.0,
        detach_weight: bool = False,
        runner_up: str = "below_label",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        _check_dual_focal(gamma, runner_up, detach_weight)
        super().__init__(
            gamma=gamma,
            detach_weight=detach_weight,
            runner_up=runner_up,
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
        )
