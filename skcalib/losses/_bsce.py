"""Cross-entropy weighted by the generalized Brier score: BSCE and BSCE-GRA."""

from __future__ import annotations

import math

from torch import Tensor

from ._base import CalibrationLoss, check_flag, check_range
from ._batch import check_batch, check_inputs
from ._softmax import cross_entropy_terms, power, vector_norm


def _check_parameters(
    order: float, exponent: float, detach_weight: bool = False
) -> tuple[float, float]:
    check_flag("detach_weight", detach_weight)
    return check_range("order", order, 1, math.inf), check_range("exponent", exponent, 0)


def _norm_power(residual: Tensor, order: float, exponent: float) -> Tensor:
    """Compute ``||p - t||_order ^ exponent`` from the residual p - t."""
    if order == 2:  # without the square root, whose slope at 0 is infinite
        return power(residual.square().sum(1), exponent / 2)
    return power(vector_norm(residual, order), exponent)


def generalized_brier_weight(
    logits: Tensor, target: Tensor, *, order: float = 2, exponent: float = 4
) -> Tensor:
    """Compute the generalized Brier score, ``||p - t||_order ^ exponent``.

    Parameters
    ----------
    logits, target : of :func:`focal_weight`
    order, exponent : of :class:`BSCELoss`

    Returns
    -------
    weight : Tensor of shape (n,)
        Weight of every sample, in [0, 2^(exponent / order)]; larger = counts more.

    See Also
    --------
    skcalib.losses.BSCELoss : A loss with this weight.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import generalized_brier_weight
    >>> generalized_brier_weight(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), exponent=2)
    tensor([0.0284])
    """
    order, exponent = _check_parameters(order, exponent)
    logits, target = check_inputs(logits, target)
    _, residual = cross_entropy_terms(logits, target)
    return _norm_power(residual, order, exponent)


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
    order, exponent = _check_parameters(order, exponent, detach_weight)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    nll, residual = cross_entropy_terms(logits, target)
    # d(u nll)/dz = u (p - t) + nll du/dz; with u constant (BSCE-GRA) the first term is left.
    factor = _norm_power(residual.detach() if detach_weight else residual, order, exponent)
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
    skcalib.losses.functional.generalized_brier_weight : The weight.

    References
    ----------
    .. [1] J. Lin, L. Tao, M. Dong, C. Xu, "Uncertainty Weighted Gradients for Model Calibration",
       CVPR 2025.

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
        _check_parameters(order, exponent, detach_weight)
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
       CVPR 2025, Eq. 10.

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
