"""Cross-entropy, and cross-entropy with smoothed labels."""

from __future__ import annotations

from torch import Tensor

from ._base import CalibrationLoss, WeightedLoss, check_range
from ._batch import check_batch
from ._softmax import expectation, target_logit, target_nll


def cross_entropy_loss(
    logits: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cross-entropy, ``-log p_y``.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    weight, ignore_index : of :class:`CrossEntropyLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`CrossEntropyLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.CrossEntropyLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import cross_entropy_loss
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 40.0]])
    >>> cross_entropy_loss(logits, torch.tensor([0, 1]), reduction="none")
    tensor([1.2693e-01, 4.2484e-18])
    """
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    values = expectation(target_nll(logits, target), target)
    return batch.reduce(values, reduction)


class CrossEntropyLoss(WeightedLoss):
    """Cross-entropy in nats, ``-log p_y``: a proper loss, and the reference for all others.

    Unlike :class:`torch.nn.CrossEntropyLoss` it takes per-sample weights, and it stays exact below
    the precision of the type.

    Parameters
    ----------
    weight : Tensor of shape (K,), default=None
        Non-negative weight of every class, for class indices alone. As in torch, the "mean"
        divides by the weights of the labels.
    ignore_index : int, default=None
        Label of the samples to leave out (torch: -100); None: every label must be a class.
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    See Also
    --------
    skcalib.losses.functional.cross_entropy_loss : The function.
    LabelSmoothingLoss : Against smoothed labels.
    skcalib.nets.CalibratedNetClassifier : Trains a network with it, or with any other loss.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import CrossEntropyLoss
    >>> CrossEntropyLoss()(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(0.1269)
    """

    _function = staticmethod(cross_entropy_loss)


def label_smoothing_loss(
    logits: Tensor,
    target: Tensor,
    *,
    alpha: float = 0.05,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cross-entropy against smoothed labels, ``(1 - alpha) t + alpha / K``.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    alpha, weight, ignore_index : of :class:`LabelSmoothingLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`LabelSmoothingLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.LabelSmoothingLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import label_smoothing_loss
    >>> label_smoothing_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), alpha=0.1)
    tensor(0.2269)
    """
    alpha = check_range("alpha", alpha, 0, 1)
    batch = check_batch(logits, target, sample_weight, weight, ignore_index)
    logits, target = batch.rows
    values = expectation(target_nll(logits, target), target)
    # With -log p_k = -log p_y + z_y - z_k, the smoothed labels add alpha times the mean of the
    # differences; a soft target has its mean logit in the place of z_y.
    difference = target_logit(logits, target) - logits.mean(1)
    return batch.reduce(values.add(difference, alpha=alpha), reduction)


class LabelSmoothingLoss(CalibrationLoss):
    """Cross-entropy against smoothed labels, ``(1 - alpha) t + alpha / K`` [1]_.

    The least value is the entropy of the smoothed labels, not 0. Not proper: its population
    optimum is the smoothed posterior, less confident than the truth by a known amount.

    Parameters
    ----------
    alpha : float in [0, 1], default=0.05
        Mass moved from the target to the uniform distribution over all K classes, the label
        included, as in [1]_ and torch. 0 is the cross-entropy; [2]_ uses .03 to .05 on CIFAR-10.
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.label_smoothing_loss : The function.
    EntropyRegularizedLoss : Penalizes the confidence of the prediction instead.

    References
    ----------
    .. [1] C. Szegedy, V. Vanhoucke, S. Ioffe, J. Shlens, Z. Wojna, "Rethinking the Inception
       Architecture for Computer Vision", CVPR 2016, Sec. 7.
    .. [2] G. Tata, G. K. Gudur, G. Chennupati, M. E. Khan, "Can Calibration Improve Sample
       Prioritization?", NeurIPS Workshop 2022.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import LabelSmoothingLoss
    >>> LabelSmoothingLoss(alpha=0.1)(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(0.2269)
    """

    _function = staticmethod(label_smoothing_loss)
    alpha: float

    def __init__(
        self,
        *,
        alpha: float = 0.05,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        check_range("alpha", alpha, 0, 1)
        super().__init__(
            alpha=alpha, weight=weight, ignore_index=ignore_index, reduction=reduction
        )
