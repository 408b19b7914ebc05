"""Brier score as a loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._base import WeightedLoss
from ._batch import check_batch
from ._softmax import cross_entropy_terms, quick_to_call


@quick_to_call
class _SquaredNorm(torch.autograd.Function):
    """``sum_k r_k^2`` of the residual r = p - t of class indices, with its gradient for z.

    That is ``2 p_k (r_k - sum_j p_j r_j)``. Measured from the label y, as in
    :mod:`~skcalib.losses._softmax`, the sum is ``sum_j r_j (r_j - r_y)``, the score itself.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(logits: Tensor, residual: Tensor, label: Tensor) -> Tensor:
        return residual.square().sum(1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:], output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        residual, label, score = ctx.saved_tensors
        label, score, scale = label.unsqueeze(1), score.unsqueeze(1), 2 * grad.unsqueeze(1)
        shift = residual.gather(1, label) + score
        gradient = (scale * residual).sub_(scale * shift).mul_(residual)
        return gradient.scatter_add_(1, label, -scale * score), None, None


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
    if target.is_floating_point():
        return batch.reduce(residual.square().sum(1), reduction)
    return batch.reduce(_SquaredNorm.apply(logits, residual, target), reduction)


class BrierLoss(WeightedLoss):
    """Brier score [1]_, ``sum_k (p_k - t_k)^2``: proper, bounded, and forgiving of wrong labels.

    In [0, 2]: twice the score of the binary definition for two classes. Its gradient vanishes
    where the prediction is certain and wrong, so training can stall there.

    Parameters
    ----------
    weight, ignore_index, reduction
        As in :class:`CrossEntropyLoss`.

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
