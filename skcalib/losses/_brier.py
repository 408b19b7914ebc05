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
    """Compute the multi-class Brier score, ``sum_k (p_k - t_k)^2`` [1]_.

    Parameters
    ----------
    logits : Tensor of shape (n, K), (n, K, ...) or (n,)
        Finite scores before the softmax; (n,): log-odds of the second of two classes.
    target : Tensor of shape (n,) or (n, ...), or that of `logits`
        Class indices (t is one-hot), or class probabilities t. For the latter the mean over labels
        drawn from t would add ``1 - sum_k t_k^2``, a constant, and have the same gradient.
    weight : Tensor of shape (K,), default=None
        Non-negative weight of every class, for class indices alone. As in torch, the "mean"
        divides by the weights of the labels.
    ignore_index : int, default=None
        Label of the samples to leave out (torch: -100); None: every label must be a class.
    sample_weight : Tensor of shape (n,) or (n, ...), default=None
        Non-negative weights.
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    Returns
    -------
    loss : Tensor of shape () or that of class indices
        In [0, 2]; twice the score of the binary definition at K = 2.

    Raises
    ------
    TypeError, ValueError
        If an input or a parameter is not as described.

    See Also
    --------
    BrierLoss : The module.
    skcalib.metrics.generalized_brier_score : The score as a metric.

    References
    ----------
    .. [1] G. W. Brier, "Verification of Forecasts Expressed in Terms of Probability", Monthly
       Weather Review 1950.

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
    """Brier score [1]_, ``sum_k (p_k - t_k)^2``: proper, bounded, kind to wrong labels.

    Its gradient vanishes where the prediction is certain and wrong, so training can stall there.

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
