"""Brier score as a loss."""

from __future__ import annotations

from torch import Tensor

from ._base import CalibrationLoss, check_inputs, reduce_loss
from ._softmax import cross_entropy_terms


def brier_loss(
    logits: Tensor,
    target: Tensor,
    *,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the multi-class Brier score, ``sum_k (p_k - t_k)^2`` [1]_.

    Parameters
    ----------
    logits : Tensor of shape (n, K)
        Finite scores before the softmax.
    target : Tensor of shape (n,) or (n, K)
        Class indices (t is one-hot), or class probabilities t. For the latter the mean over labels
        drawn from t would add ``1 - sum_k t_k^2``, a constant, and have the same gradient.
    sample_weight : Tensor of shape (n,), default=None
        Non-negative weights.
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    Returns
    -------
    loss : Tensor of shape () or (n,)
        In [0, 2]; twice the score of the binary definition at K = 2.

    Raises
    ------
    TypeError, ValueError
        If an input or a parameter is not as described.

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
    logits, target = check_inputs(logits, target)
    # The exact residual p - t: one minus a rounded p_y would lose its digits.
    _, residual = cross_entropy_terms(logits, target)
    return reduce_loss(residual.square().sum(1), sample_weight, reduction)


class BrierLoss(CalibrationLoss):
    """Multi-class Brier score, ``sum_k (p_k - t_k)^2``: proper, bounded, kind to wrong labels.

    Its gradient vanishes where the prediction is certain and wrong, so training can stall there.

    Parameters
    ----------
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    See Also
    --------
    brier_loss : the function.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import BrierLoss
    >>> BrierLoss()(torch.tensor([[0.7, 0.2, 0.1]]).log(), torch.tensor([0]))
    tensor(0.1400)
    """

    _function = staticmethod(brier_loss)

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
