"""Brier score as a loss."""

from __future__ import annotations

from torch import Tensor

from ._base import CalibrationLoss
from ._batch import check_batch
from ._softmax import cross_entropy_terms


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

    See :class:`BrierLoss` for the parameters, and its ``forward`` for the inputs.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import brier_loss
    >>> brier_loss(torch.tensor([[0.7, 0.2, 0.1]]).log(), torch.tensor([0]))
    tensor(0.1400)
    """
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    # The exact residual p - t: one minus a rounded p_y would lose its digits.
    _, residual = cross_entropy_terms(logits, target)
    return batch.reduce(residual.square().sum(1), reduction)


class BrierLoss(CalibrationLoss):
    """Brier score [1]_, ``sum_k (p_k - t_k)^2``: proper, bounded, and forgiving of wrong labels.

    In [0, 2]: twice the score of the binary definition for two classes. Its gradient vanishes
    where the prediction is certain and wrong, so training can stall there.

    Parameters
    ----------
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
    brier_loss : The function.
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

    def __init__(
        self,
        *,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
