"""Focal loss: confident samples count less."""

from __future__ import annotations

from torch import Tensor

from ._base import CalibrationLoss, check_flag, check_range
from ._batch import check_batch, check_inputs
from ._softmax import expectation, miss_probability, power, target_nll


def focal_weight(logits: Tensor, target: Tensor, *, gamma: float = 2.0) -> Tensor:
    """Compute the focal weight [1]_, ``(1 - p_y)^gamma``.

    Parameters
    ----------
    logits : Tensor of shape (n, K)
        Finite scores before the softmax.
    target : Tensor of shape (n,) or (n, K)
        Class indices, or class probabilities.
    gamma : float in [0, inf), default=2.0
        Exponent; 0 gives 1.

    Returns
    -------
    weight : Tensor of shape (n,) or, with class probabilities, (n, K)
        In [0, 1]; of the label, or of every class.

    Raises
    ------
    TypeError, ValueError
        If an input or a parameter is not as described.

    See Also
    --------
    focal_loss : The loss with this weight.
    UncertaintyWeightedLoss : Takes it as ``uncertainty``.

    References
    ----------
    .. [1] T.-Y. Lin, P. Goyal, R. Girshick, K. He, P. Dollar, "Focal Loss for Dense Object
       Detection", ICCV 2017, Eq. 4.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import focal_weight
    >>> focal_weight(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), gamma=1.0)
    tensor([0.1192])
    """
    gamma = check_range("gamma", gamma, 0)
    logits, target = check_inputs(logits, target)
    return power(miss_probability(target_nll(logits, target)), gamma)


def focal_loss(
    logits: Tensor,
    target: Tensor,
    *,
    gamma: float = 2.0,
    detach_weight: bool = False,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the focal loss, ``-(1 - p_y)^gamma log p_y``.

    See :class:`FocalLoss` for the parameters, and its ``forward`` for the inputs.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import focal_loss
    >>> focal_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), gamma=1.0)
    tensor(0.0151)
    """
    gamma = check_range("gamma", gamma, 0)
    check_flag("detach_weight", detach_weight)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    nll = target_nll(logits, target)
    # For soft targets nll and factor have shape (n, K), the loss of every label that t may bring;
    # the mean over t comes last.
    factor = power(miss_probability(nll.detach() if detach_weight else nll), gamma)
    return batch.reduce(expectation(factor * nll, target), reduction)


class FocalLoss(CalibrationLoss):
    """Focal loss [1]_, [2]_, ``-(1 - p_y)^gamma log p_y``: confident samples count less.

    With class probabilities t it is the mean over labels drawn from t,
    ``-sum_k t_k (1 - p_k)^gamma log p_k``: linear in t, as mixup needs it, and not
    ``-(1 - sum_k t_k p_k)^gamma sum_k t_k log p_k``. Not proper: its population optimum is less
    confident than the posterior.

    Parameters
    ----------
    gamma : float in [0, inf), default=2.0
        Exponent. 0 is the cross-entropy; larger values hold confidence back more. On small data 1
        or 2 are better calibrated than the 3 to 5 of the papers.
    detach_weight : bool, default=False
        If True, the weight ``(1 - p_y)^gamma`` is a constant for the gradient, which is then the
        weight times that of the cross-entropy (the "-GRA" form of [3]_). The value is the same.
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
    focal_loss : The function.
    DualFocalLoss : With a rival class in the weight.
    SampleDependentFocalLoss : With an exponent that depends on the probability.
    focal_weight : The weight.

    References
    ----------
    .. [1] T.-Y. Lin, P. Goyal, R. Girshick, K. He, P. Dollar, "Focal Loss for Dense Object
       Detection", ICCV 2017, Eq. 4.
    .. [2] J. Mukhoti, V. Kulharia, A. Sanyal, S. Golodetz, P. Torr, P. Dokania, "Calibrating Deep
       Neural Networks using Focal Loss", NeurIPS 2020.
    .. [3] J. Lin, L. Tao, M. Dong, C. Xu, "Uncertainty Weighted Gradients for Model Calibration",
       CVPR 2025.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import FocalLoss
    >>> FocalLoss(gamma=1.0)(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(0.0151)
    """

    _function = staticmethod(focal_loss)
    gamma: float
    detach_weight: bool

    def __init__(
        self,
        *,
        gamma: float = 2.0,
        detach_weight: bool = False,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        check_range("gamma", gamma, 0)
        check_flag("detach_weight", detach_weight)
        super().__init__(
            gamma=gamma,
            detach_weight=detach_weight,
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
        )
