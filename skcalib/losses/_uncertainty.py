"""Cross-entropy whose gradient is weighted by any measure of uncertainty."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ._base import CalibrationLoss, check_non_negative
from ._batch import Batch, check_batch
from ._softmax import expectation, target_nll

Uncertainty = Callable[[Tensor, Tensor], Tensor]


def _check_parameters(uncertainty: Uncertainty | None) -> None:
    if uncertainty is not None and not callable(uncertainty):
        raise ValueError(
            "uncertainty must be a function of (logits, target), or None to take the weights of "
            f"each batch from difficulty_weight, got {type(uncertainty).__name__}."
        )


def _measured(uncertainty: Uncertainty, logits: Tensor, target: Tensor) -> Tensor:
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
    >>> import torch
    >>> from skcalib.losses.functional import focal_weight, uncertainty_weighted_loss
    >>> logits, target = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
    >>> uncertainty_weighted_loss(logits, target, uncertainty=focal_weight)
    tensor(0.0018)
    >>> uncertainty_weighted_loss(logits, target, difficulty_weight=torch.tensor([0.5]))
    tensor(0.0635)
    """
    _check_parameters(uncertainty)
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
        factor = _measured(uncertainty, logits, target).detach()
    # One factor per sample is the same for every class of a soft target.
    if target.is_floating_point() and factor.ndim == 1:
        factor = factor.unsqueeze(1)
    values = expectation(factor * target_nll(logits, target), target)
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
    skcalib.losses.functional.focal_weight : A ready-made weight.
    skcalib.losses.functional.generalized_brier_weight : Another one.

    References
    ----------
    .. [1] J. Lin, L. Tao, M. Dong, C. Xu, "Uncertainty Weighted Gradients for Model Calibration",
       CVPR 2025, Eq. 10.

    Examples
    --------
    >>> from functools import partial
    >>> import torch
    >>> from skcalib import losses
    >>> flsd_gra = losses.UncertaintyWeightedLoss(
    ...     uncertainty=losses.functional.sample_dependent_focal_weight
    ... )
    >>> dfl_gra = losses.UncertaintyWeightedLoss(
    ...     uncertainty=partial(losses.functional.dual_focal_weight, gamma=5.0)
    ... )
    >>> bsce_gra = losses.UncertaintyWeightedLoss(
    ...     uncertainty=partial(losses.functional.generalized_brier_weight, order=2, exponent=4)
    ... )
    >>> logits, target = torch.tensor([[0.0, 1.0]]), torch.tensor([0])
    >>> bsce_gra(logits, target), losses.BSCEGRALoss(order=2, exponent=4)(logits, target)
    (tensor(1.5004), tensor(1.5004))
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
        _check_parameters(uncertainty)
        super().__init__(
            uncertainty=uncertainty, weight=weight, ignore_index=ignore_index, reduction=reduction
        )
        self.uses_difficulty_weight = uncertainty is None
