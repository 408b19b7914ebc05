"""Focal loss whose exponent depends on the probability of the label (FLSD-53)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ._base import CalibrationLoss, check_inputs, check_range
from ._closed_form import evaluate
from ._softmax import expectation, label_softmax, miss_probability, power, target_nll


def _check_parameters(gammas: Sequence[float], thresholds: Sequence[float]) -> None:
    if len(gammas) != len(thresholds) + 1:
        raise ValueError(
            "gammas must have one entry more than thresholds, "
            f"got {len(gammas)} gammas and {len(thresholds)} thresholds."
        )
    for gamma in gammas:
        check_range("gammas (each)", gamma, 0)
    for threshold in thresholds:
        check_range("thresholds (each)", threshold, 0, 1)
    if list(thresholds) != sorted(set(thresholds)):
        raise ValueError(f"thresholds must be strictly increasing, got {thresholds!r}.")


def _limits(thresholds: Sequence[float]) -> list[float]:
    """Return the thresholds as cross-entropies, which resolve probabilities near 0."""
    return [-math.log(threshold) if threshold else math.inf for threshold in thresholds]


def _weight(nll: Tensor, gammas: Sequence[float], thresholds: Sequence[float]) -> Tensor:
    miss = miss_probability(nll)
    weight = power(miss, gammas[-1])
    for gamma, limit in zip(reversed(gammas[:-1]), reversed(_limits(thresholds)), strict=True):
        weight = torch.where(nll > limit, power(miss, gamma), weight)
    return weight


def _formula(
    logits: Tensor,
    target: Tensor,
    gammas: Sequence[float],
    thresholds: Sequence[float],
    detach_weight: bool,
) -> Tensor:
    nll = target_nll(logits, target)
    weight = _weight(nll.detach() if detach_weight else nll, gammas, thresholds)
    return expectation(weight * nll, target)


def _solution(
    logits: Tensor,
    label: Tensor,
    gammas: Sequence[float],
    thresholds: Sequence[float],
    detach_weight: bool,
) -> tuple[Tensor, Tensor]:
    nll, residual, miss = label_softmax(logits, label)
    less = torch.full_like(nll, gammas[-1] - 1)  # gamma - 1
    for gamma, limit in zip(reversed(gammas[:-1]), reversed(_limits(thresholds)), strict=True):
        less.masked_fill_(nll > limit, gamma - 1)
    if min(gammas) < 1:
        miss.clamp_min_(torch.finfo(miss.dtype).tiny)
    root = miss.pow(less)
    weight = root * miss
    values = weight * nll
    if detach_weight:
        return values, residual.mul_(weight)
    slope = torch.addcmul(miss, nll.neg().exp_(), torch.addcmul(nll, nll, less)).mul_(root)
    return values, residual.mul_(slope)


def sample_dependent_focal_weight(
    logits: Tensor,
    target: Tensor,
    *,
    gammas: Sequence[float] = (5.0, 3.0),
    thresholds: Sequence[float] = (0.2,),
) -> Tensor:
    """Compute the focal weight with an exponent that depends on the probability of the label.

    Parameters
    ----------
    logits : Tensor of shape (n, K)
        Finite scores before the softmax.
    target : Tensor of shape (n,) or (n, K)
        Class indices, or class probabilities.
    gammas : sequence of float, default=(5.0, 3.0)
        Exponents: entry i where ``p_y < thresholds[i]`` holds first, the last one elsewhere.
    thresholds : sequence of float, default=(0.2,)
        Increasing probabilities, one fewer than `gammas`.

    Returns
    -------
    weight : Tensor of shape (n,) or, with class probabilities, (n, K)
        In [0, 1]; of the label, or of every class.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import sample_dependent_focal_weight
    >>> logits = torch.tensor([[0.1, 0.9], [0.9, 0.1]]).log()
    >>> sample_dependent_focal_weight(logits, torch.tensor([0, 0]))
    tensor([0.5905, 0.0010])
    """
    _check_parameters(gammas, thresholds)
    logits, target = check_inputs(logits, target)
    return _weight(target_nll(logits, target), gammas, thresholds)


def sample_dependent_focal_loss(
    logits: Tensor,
    target: Tensor,
    *,
    gammas: Sequence[float] = (5.0, 3.0),
    thresholds: Sequence[float] = (0.2,),
    detach_weight: bool = False,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the focal loss with an exponent that depends on the probability of the label.

    The exponent itself is not differentiated; the loss jumps where p_y crosses a threshold.

    Parameters
    ----------
    logits : Tensor of shape (n, K)
        Finite scores before the softmax.
    target : Tensor of shape (n,) or (n, K)
        Class indices, or class probabilities t: the mean of the loss over labels drawn from t.
    gammas : sequence of float, default=(5.0, 3.0)
        Exponents: entry i where ``p_y < thresholds[i]`` holds first, the last one elsewhere.
    thresholds : sequence of float, default=(0.2,)
        Increasing probabilities, one fewer than `gammas`.
    detach_weight : bool, default=False
        If True, the weight is a constant for the gradient (FLSD-GRA).
    sample_weight : Tensor of shape (n,), default=None
        Non-negative weights.
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    Returns
    -------
    loss : Tensor of shape () or (n,)
        Between 0 and the cross-entropy.

    References
    ----------
    .. [1] Mukhoti et al., Calibrating Deep Neural Networks using Focal Loss, NeurIPS 2020
       (FLSD-53).

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import sample_dependent_focal_loss
    >>> logits = torch.tensor([[0.1, 0.9], [0.9, 0.1]]).log()
    >>> sample_dependent_focal_loss(logits, torch.tensor([0, 0]), reduction="none")
    tensor([1.3597e+00, 1.0536e-04])
    """
    _check_parameters(gammas, thresholds)
    logits, target = check_inputs(logits, target)
    parameters = (gammas, thresholds, detach_weight)
    return evaluate(_formula, _solution, logits, target, parameters, sample_weight, reduction)


class SampleDependentFocalLoss(CalibrationLoss):
    """Focal loss with a larger exponent where the label is improbable (FLSD-53).

    Not proper, for the same reason as :class:`FocalLoss`.

    Parameters
    ----------
    gammas : sequence of float, default=(5.0, 3.0)
        Exponents: entry i where ``p_y < thresholds[i]`` holds first, the last one elsewhere.
    thresholds : sequence of float, default=(0.2,)
        Increasing probabilities, one fewer than `gammas`.
    detach_weight : bool, default=False
        If True, the weight is a constant for the gradient (FLSD-GRA).
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    See Also
    --------
    sample_dependent_focal_loss : the function, with its source.

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
        reduction: str = "mean",
    ) -> None:
        _check_parameters(gammas, thresholds)
        super().__init__(
            gammas=gammas,
            thresholds=thresholds,
            detach_weight=detach_weight,
            reduction=reduction,
        )
