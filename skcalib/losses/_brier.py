"""Brier score as a loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._base import WeightedLoss
from ._batch import check_batch
from ._softmax import ExactSoftmax, cross_entropy_terms, gradient, of_rows


@of_rows
class _BrierScore(ExactSoftmax):
    """``sum_k r_k^2`` of the residual r = p - t of class indices, shape (n,), and the residual.

    The cross-entropy, which needs the largest logit, is left out.
    """

    @staticmethod
    def forward(logits: Tensor, label: Tensor) -> tuple[Tensor, ...]:
        label = label.unsqueeze(1)
        residual = logits.softmax(1)
        miss = residual.scatter_(1, label, 0.0).sum(1, keepdim=True)
        residual.scatter_(1, label, miss.neg_())
        # No squares of shape (n, K): new memory would cost more than the root.
        return torch.linalg.vector_norm(residual, dim=1).square_(), residual

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None]:
        label, score, residual = ctx.saved_tensors
        grad, vector = grads
        if grad is None:
            return gradient(residual, label, None, vector), None
        # The Jacobian of the softmax times 2 r. From the label, 2 (r - r_y), the mean is the sum
        # over j != y of 2 r_j (r_j - r_y): twice the score.
        twice = 2 * grad
        of_label = residual.gather(1, label.unsqueeze(1)).squeeze(1)
        apart = twice.unsqueeze(1) * residual
        return gradient(residual, label, -twice * of_label, vector, apart, twice * score), None


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

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    weight, ignore_index : of :class:`BrierLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`BrierLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.BrierLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import brier_loss
    >>> brier_loss(torch.tensor([[0.7, 0.2, 0.1]]).log(), torch.tensor([0]))
    tensor(0.1400)
    """
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    if not target.is_floating_point():
        return batch.reduce(_BrierScore.apply(logits, target)[0], reduction)
    # The exact residual p - t: one minus a rounded p_y would lose its digits.
    _, residual = cross_entropy_terms(logits, target)
    return batch.reduce(residual.square().sum(1), reduction)


class BrierLoss(WeightedLoss):
    """Brier score [1]_, ``sum_k (p_k - t_k)^2``: proper, bounded, and robust to wrong labels.

    In [0, 2]: twice the score of the binary definition for two classes. Its gradient vanishes
    where the prediction is certain and wrong, so training can stall there.

    Parameters
    ----------
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.brier_loss : The function.
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
