"""Cross-entropy with a penalty on the norm of the logits."""

from __future__ import annotations

import math

from torch import Tensor

from ._base import CalibrationLoss, check_range
from ._batch import check_batch
from ._softmax import expectation, target_nll, vector_norm


def _check_parameters(alpha: float, p: float) -> tuple[float, float]:
    return check_range("alpha", alpha, 0), check_range("p", p, 1, math.inf)


def logit_norm_loss(
    logits: Tensor,
    target: Tensor,
    *,
    alpha: float = 0.01,
    p: float = 1,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cross-entropy plus alpha times the p-norm of the logits.

    See :class:`LogitNormLoss` for the parameters, and its ``forward`` for the inputs.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import logit_norm_loss
    >>> logit_norm_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), alpha=0.1)
    tensor(0.3269)
    """
    alpha, p = _check_parameters(alpha, p)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    values = expectation(target_nll(logits, target), target)
    return batch.reduce(values + alpha * vector_norm(logits, p), reduction)


class LogitNormLoss(CalibrationLoss):
    """Cross-entropy plus alpha times the p-norm of the logits [1]_.

    The method of Wei et al. (2022) is something else: it divides the logits by their norm. Unlike
    the other losses, this one changes when a constant is added to a row of logits. Not proper: it
    pulls all logits to 0, hence the prediction toward uniform.

    Parameters
    ----------
    alpha : float in [0, inf), default=0.01
        Strength; 0 is the cross-entropy. 0.05 suits CIFAR-10 and 0.01 CIFAR-100: the 1-norm grows
        with the number of classes.
    p : float in [1, inf], default=1
        Order of the norm. Where a logit (p = 1) or all of them (p > 1) are 0, the gradient of the
        norm is taken as 0.
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
    logit_norm_loss : The function.
    EntropyRegularizedLoss : Penalizes confidence in place of the norm.

    References
    ----------
    .. [1] T. Joo, U. Chung, "Revisiting Explicit Regularization in Neural Networks for
       Well-Calibrated Predictive Uncertainty", 2020.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import LogitNormLoss
    >>> LogitNormLoss(alpha=0.1)(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(0.3269)
    """

    _function = staticmethod(logit_norm_loss)
    alpha: float
    p: float

    def __init__(
        self,
        *,
        alpha: float = 0.01,
        p: float = 1,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        _check_parameters(alpha, p)
        super().__init__(
            alpha=alpha, p=p, weight=weight, ignore_index=ignore_index, reduction=reduction
        )
