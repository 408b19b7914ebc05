"""Focal loss whose exponent depends on the probability of the label (FLSD-53)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ._base import CalibrationLoss, check_flag, check_range
from ._batch import check_batch, check_inputs
from ._softmax import expectation, finite_slope, miss_probability, target_nll


def _check_parameters(
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


def _weight(nll: Tensor, gammas: list[float], thresholds: list[float]) -> Tensor:
    # From the largest threshold down: the smallest one that holds has the last word.
    gamma_of_sample = torch.full_like(nll, gammas[-1])
    for gamma, threshold in zip(gammas[-2::-1], reversed(thresholds), strict=True):
        # Compared as cross-entropies, which resolve probabilities near 0.
        limit = -math.log(threshold) if threshold else math.inf
        gamma_of_sample = torch.where(nll > limit, gamma, gamma_of_sample)
    # One base for all exponents: it is kept from 0 if any of them has an infinite slope there.
    miss = miss_probability(nll)
    for gamma in gammas:
        miss = finite_slope(miss, gamma)
    return miss**gamma_of_sample


def sample_dependent_focal_weight(
    logits: Tensor,
    target: Tensor,
    *,
    gammas: Sequence[float] = (5.0, 3.0),
    thresholds: Sequence[float] = (0.2,),
) -> Tensor:
    """Compute the focal weight with an exponent that depends on the probability of the label [1]_.

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

    Raises
    ------
    TypeError, ValueError
        If an input or a parameter is not as described.

    See Also
    --------
    sample_dependent_focal_loss : The loss with this weight.
    UncertaintyWeightedLoss : Takes it as ``uncertainty``.

    References
    ----------
    .. [1] J. Mukhoti, V. Kulharia, A. Sanyal, S. Golodetz, P. Torr, P. Dokania, "Calibrating Deep
       Neural Networks using Focal Loss", NeurIPS 2020 (FLSD-53).

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import sample_dependent_focal_weight
    >>> logits = torch.tensor([[0.1, 0.9], [0.9, 0.1]]).log()
    >>> sample_dependent_focal_weight(logits, torch.tensor([0, 0]))
    tensor([0.5905, 0.0010])
    """
    exponents, limits = _check_parameters(gammas, thresholds)
    logits, target = check_inputs(logits, target)
    return _weight(target_nll(logits, target), exponents, limits)


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

    See :class:`SampleDependentFocalLoss` for the parameters, and its ``forward`` for the inputs.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import sample_dependent_focal_loss
    >>> logits = torch.tensor([[0.1, 0.9], [0.9, 0.1]]).log()
    >>> sample_dependent_focal_loss(logits, torch.tensor([0, 0]), reduction="none")
    tensor([1.3597e+00, 1.0536e-04])
    """
    exponents, limits = _check_parameters(gammas, thresholds, detach_weight)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    nll = target_nll(logits, target)
    factor = _weight(nll.detach() if detach_weight else nll, exponents, limits)
    return batch.reduce(expectation(factor * nll, target), reduction)


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
    sample_dependent_focal_loss : The function.
    FocalLoss : One exponent for all.
    sample_dependent_focal_weight : The weight.

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
        _check_parameters(gammas, thresholds, detach_weight)
        super().__init__(
            gammas=gammas,
            thresholds=thresholds,
            detach_weight=detach_weight,
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
        )
