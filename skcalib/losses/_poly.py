"""Poly-1 loss: cross-entropy with its leading polynomial coefficient changed."""

from __future__ import annotations

from torch import Tensor

from ._base import CalibrationLoss, check_range
from ._batch import check_batch
from ._softmax import expectation, miss_probability, target_nll


def poly_loss(
    logits: Tensor,
    target: Tensor,
    *,
    epsilon: float = 1.0,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the Poly-1 loss, ``-log p_y + epsilon (1 - p_y)``.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    epsilon, weight, ignore_index : of :class:`PolyLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`PolyLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.PolyLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import poly_loss
    >>> poly_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(0.2461)
    """
    epsilon = check_range("epsilon", epsilon, -1)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    nll = target_nll(logits, target)
    # -log p = sum_j (1 - p)^j / j, so epsilon (1 - p) makes the first coefficient 1 + epsilon.
    values = expectation(nll + epsilon * miss_probability(nll), target)
    return batch.reduce(values, reduction)


class PolyLoss(CalibrationLoss):
    """Poly-1 loss [1]_, ``-log p_y + epsilon (1 - p_y)``.

    With class probabilities t it is the mean over labels drawn from t. Not proper for epsilon !=
    0: with a positive one the population optimum is more confident than the posterior, with a
    negative one less.

    Parameters
    ----------
    epsilon : float in [-1, inf), default=1.0
        Change of the first coefficient of ``-log p = sum_j (1 - p)^j / j``; 0 is the
        cross-entropy, below -1 the loss would reward misses.
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.poly_loss : The function.
    FocalLoss : Another change to the shape of the cross-entropy.

    References
    ----------
    .. [1] Z. Leng, M. Tan, C. Liu, E. D. Cubuk, X. Shi, S. Cheng, D. Anguelov, "PolyLoss: A
       Polynomial Expansion Perspective of Classification Loss Functions", ICLR 2022.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import PolyLoss
    >>> PolyLoss()(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(0.2461)
    """

    _function = staticmethod(poly_loss)
    epsilon: float

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        check_range("epsilon", epsilon, -1)
        super().__init__(
            epsilon=epsilon, weight=weight, ignore_index=ignore_index, reduction=reduction
        )
