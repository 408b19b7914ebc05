"""Cross-entropy weighted by uncertainty: BSCE, BSCE-GRA, and any measure that users give."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor

from ._base import (
    Batch,
    CalibrationLoss,
    check_batch,
    check_flag,
    check_non_negative,
    check_range,
)
from ._softmax import (
    average_over_target,
    compute_cross_entropy,
    compute_norm,
    compute_power,
    compute_target_nll,
)

# Cross-entropy weighted by the generalized Brier score: BSCE and BSCE-GRA.


def _check_bsce(order: float, exponent: float, detach_weight: bool = False) -> tuple[float, float]:
    check_flag("detach_weight", detach_weight)
    return check_range("order", order, 1, math.inf), check_range("exponent", exponent, 0)


def _compute_norm_power(residual: Tensor, order: float, exponent: float) -> Tensor:
    """Compute ``||p - t||_order ^ exponent`` from the residual p - t."""
    if order == 2:  # without the square root, whose slope at 0 is infinite
        return compute_power(residual.square().sum(1), exponent / 2)
    return compute_power(compute_norm(residual, order), exponent)


def bsce_loss(
    logits: Tensor,
    target: Tensor,
    *,
    order: float = 2,
    exponent: float = 4,
    detach_weight: bool = False,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the Brier-weighted cross-entropy, ``-||p - t||_order^exponent log p_y``.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    order, exponent, detach_weight, weight, ignore_index : of :class:`BSCELoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`BSCELoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.BSCELoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import bsce_loss
    >>> bsce_loss(torch.tensor([[0.0, 1.0]]), torch.tensor([0]), exponent=2)
    tensor(1.4037)
    """
    order, exponent = _check_bsce(order, exponent, detach_weight)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    nll, residual = compute_cross_entropy(logits, target)
    # d(u nll)/dz = u (p - t) + nll du/dz; with u constant (BSCE-GRA) the first term is left.
    factor = _compute_norm_power(residual.detach() if detach_weight else residual, order, exponent)
    return batch.reduce(factor * nll, reduction)


def bsce_gra_loss(
    logits: Tensor,
    target: Tensor,
    *,
    order: float = 2,
    exponent: float = 4,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the BSCE loss with a weight that is constant for the gradient.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    order, exponent, weight, ignore_index : of :class:`BSCEGRALoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`BSCEGRALoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.BSCEGRALoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import bsce_gra_loss
    >>> logits = torch.tensor([[0.0, 1.0]], requires_grad=True)
    >>> bsce_gra_loss(logits, torch.tensor([0]), exponent=2).backward()
    >>> logits.grad
    tensor([[-0.7814,  0.7814]])
    """
    return bsce_loss(
        logits,
        target,
        order=order,
        exponent=exponent,
        detach_weight=True,
        weight=weight,
        ignore_index=ignore_index,
        sample_weight=sample_weight,
        reduction=reduction,
    )


class BSCELoss(CalibrationLoss):
    """Cross-entropy weighted by the generalized Brier score of the prediction [1]_.

    ``-||p - t||_order^exponent log p_y``. With class probabilities t it is the distance of p from
    t times the cross-entropy against t; the mean over labels drawn from t would be another
    extension.

    Parameters
    ----------
    order : float in [1, inf], default=2
        Order of the norm. With class indices, ``inf`` is the focal loss with ``gamma=exponent``.
    exponent : float in [0, inf), default=4
        Exponent of the norm; 0 is the cross-entropy. On small data 1 or 2 work better (the user
        guide shows how).
    detach_weight : bool, default=False
        If True, the weight is a constant for the gradient (BSCE-GRA).
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.bsce_loss : The function.
    BSCEGRALoss : With ``detach_weight=True``, the form that the paper recommends.

    References
    ----------
    .. [1] J. Lin, L. Tao, M. Dong, C. Xu, "Uncertainty Weighted Gradients for Model Calibration",
       CVPR 2025. Calls: :ref:`paper-gra`.

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
    detach_weight: bool

    def __init__(
        self,
        *,
        order: float = 2,
        exponent: float = 4,
        detach_weight: bool = False,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        _check_bsce(order, exponent, detach_weight)
        super().__init__(
            order=order,
            exponent=exponent,
            detach_weight=detach_weight,
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
        )


class BSCEGRALoss(BSCELoss):
    """Cross-entropy whose gradient is weighted by the generalized Brier score (BSCE-GRA) [1]_.

    :class:`BSCELoss` with ``detach_weight=True``. The gradient with respect to the logits is ``||p
    - t||_order^exponent (p - t)``. Training does not descend the value of the loss, which need not
    fall. Not proper: its population optimum is less confident than the posterior (the user guide
    computes an example).

    Parameters
    ----------
    order, exponent, weight, ignore_index, reduction : of :class:`BSCELoss`

    See Also
    --------
    skcalib.losses.functional.bsce_gra_loss : The function.
    UncertaintyWeightedLoss : The same with any weight.

    References
    ----------
    .. [1] J. Lin, L. Tao, M. Dong, C. Xu, "Uncertainty Weighted Gradients for Model Calibration",
       CVPR 2025, Eq. 10. Calls: :ref:`paper-gra`.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import BSCEGRALoss
    >>> BSCEGRALoss(exponent=2)(torch.tensor([[0.0, 1.0]]), torch.tensor([0]))
    tensor(1.4037)
    """

    def __init__(
        self,
        *,
        order: float = 2,
        exponent: float = 4,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            order=order,
            exponent=exponent,
            detach_weight=True,
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
        )


# Cross-entropy whose gradient is weighted by any measure of uncertainty.

Uncertainty = Callable[[Tensor, Tensor], Tensor]


def _check_uncertainty(uncertainty: Uncertainty | None) -> None:
    if uncertainty is not None and not callable(uncertainty):
        raise ValueError(
            "uncertainty must be a function of (logits, target), or None to take the weights of "
            f"each batch from difficulty_weight, got {type(uncertainty).__name__}."
        )


def _measure(uncertainty: Uncertainty, logits: Tensor, target: Tensor) -> Tensor:
    """Return the checked values of `uncertainty`, (n,) or, for soft targets, also (n, K)."""
    name = "the value of uncertainty"
    weight = uncertainty(logits.detach(), target)
    if not (target.is_floating_point() and getattr(weight, "shape", None) == logits.shape):
        weight = Batch(logits, target, logits.shape[:1]).per_sample(name, weight)
    check_non_negative(name, weight)
    return weight.to(logits.dtype)


def uncertainty_weighted_loss(
    logits: Tensor,
    target: Tensor,
    *,
    uncertainty: Uncertainty | None = None,
    difficulty_weight: Tensor | None = None,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cross-entropy times an uncertainty that is constant for the gradient.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    uncertainty : of :class:`UncertaintyWeightedLoss`
    difficulty_weight : of :meth:`CrossEntropyLoss.forward`
    weight, ignore_index : of :class:`UncertaintyWeightedLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`UncertaintyWeightedLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.UncertaintyWeightedLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> from functools import partial
    >>> import torch
    >>> from skcalib.losses.functional import brier_loss, uncertainty_weighted_loss
    >>> logits, target = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
    >>> brier = partial(brier_loss, reduction="none")
    >>> uncertainty_weighted_loss(logits, target, uncertainty=brier)
    tensor(0.0036)
    >>> uncertainty_weighted_loss(logits, target, difficulty_weight=torch.tensor([0.5]))
    tensor(0.0635)
    """
    _check_uncertainty(uncertainty)
    if (uncertainty is None) == (difficulty_weight is None):
        raise ValueError(
            "exactly one of uncertainty and difficulty_weight must be given, "
            f"got {'neither' if difficulty_weight is None else 'both'}."
        )
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    if uncertainty is None:
        factor = batch.difficulty_weight(difficulty_weight).detach()
    else:
        # The logits are detached already; the function may have trainable parameters of its own.
        factor = _measure(uncertainty, logits, target).detach()
    # One factor per sample is the same for every class of a soft target.
    if target.is_floating_point() and factor.ndim == 1:
        factor = factor.unsqueeze(1)
    values = average_over_target(factor * compute_target_nll(logits, target), target)
    return batch.reduce(values, reduction)


class UncertaintyWeightedLoss(CalibrationLoss):
    """Cross-entropy whose gradient is weighted by any measure of uncertainty.

    The general framework of [1]_: its instances are one line each (see the examples). With weights
    u, constants for the gradient, the gradient with respect to the logits is ``u (p - t)``.
    Training does not descend the value of the loss, which need not fall; it is proper only for a
    constant weight.

    Parameters
    ----------
    uncertainty : callable, default=None
        Function of (logits, target), of shapes (n, K) and (n,) or (n, K) whatever the form of the
        batch, that returns weights of shape (n,), or (n, K), one per class, for soft targets
        (``-sum_k t_k u_k log p_k``). None takes the weights from the ``difficulty_weight`` in [0,
        1] that comes with each batch (``uses_difficulty_weight`` is then True), larger = harder,
        such as 1 - consistency; a net takes them in ``fit``. Unlike `sample_weight`, they do not
        divide the mean, which is ``sum(w u l) / sum(w)``.
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.uncertainty_weighted_loss : The function.
    BSCEGRALoss : With the generalized Brier score as weight.

    References
    ----------
    .. [1] J. Lin, L. Tao, M. Dong, C. Xu, "Uncertainty Weighted Gradients for Model Calibration",
       CVPR 2025, Eq. 10. Calls: :ref:`paper-gra`.

    Examples
    --------
    >>> from functools import partial
    >>> import torch
    >>> from skcalib import losses
    >>> brier = partial(losses.functional.brier_loss, reduction="none")
    >>> bsce_gra = losses.UncertaintyWeightedLoss(uncertainty=brier)
    >>> logits, target = torch.tensor([[0.0, 1.0]]), torch.tensor([0])
    >>> bsce_gra(logits, target), losses.BSCEGRALoss(order=2, exponent=2)(logits, target)
    (tensor(1.4037), tensor(1.4037))
    >>> weighted = losses.UncertaintyWeightedLoss()
    >>> weighted(logits, target, difficulty_weight=torch.tensor([0.5]))
    tensor(0.6566)
    """

    _function = staticmethod(uncertainty_weighted_loss)
    uncertainty: Uncertainty | None

    def __init__(
        self,
        *,
        uncertainty: Uncertainty | None = None,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        _check_uncertainty(uncertainty)
        super().__init__(
            uncertainty=uncertainty, weight=weight, ignore_index=ignore_index, reduction=reduction
        )
        self.uses_difficulty_weight = uncertainty is None
