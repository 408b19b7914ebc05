"""Maximum mean calibration error (MMCE) as a regularizer of the cross-entropy."""

from __future__ import annotations

import torch
from torch import Tensor

from ._base import CalibrationLoss, check_flag, check_range
from ._batch import check_batch
from ._softmax import answer_residual, cross_entropy_terms

# With no more samples the double sum takes less time, forward and backward: .13 ms for 32 samples,
# where the sum on a line takes .23; .18 and .25 for 128; .32 and .25 for 256 (CPU, one thread).
FEW_SAMPLES = 128


def _check_parameters(strength: float, weighted: bool, bandwidth: float) -> tuple[float, float]:
    check_flag("weighted", weighted)
    # exp(1 / bandwidth) must stay far from the largest float32.
    return check_range("strength", strength, 0), check_range("bandwidth", bandwidth, 0.02)


# MMCE on a line
# --------------
# The square of the error is a sum over pairs of samples,
#
#     Q = sum_ij a_i a_j exp(-|r_i - r_j|),    r = confidence / bandwidth,
#
# of n^2 terms, too many for a large batch. But r lies on a line. Sort it from the largest,
# r_1 >= r_2 >= ..., and keep one running sum, the kernel sum at r_i over the samples so far:
#
#     s_i = sum_(j <= i) a_j exp(-(r_j - r_i)),    s_(i+1) = exp(-d_i) s_i + a_(i+1),
#
# with the gaps d_i = r_i - r_(i+1). To the sum over pairs of the first i - 1 samples, sample i
# adds a_i^2 + 2 a_i (s_i - a_i) = s_i^2 - (s_i - a_i)^2, and s_i - a_i is exp(-d_(i-1)) s_(i-1).
# Added up, and sorted by s_i, with an infinite gap d_n behind the last sample:
#
#     Q = sum_i (1 - exp(-2 d_i)) s_i^2.
#
# No term is negative, so nothing cancels, and equal confidences (d = 0) count once, all together.
# The running sum itself is a cumulative sum: s_i = exp(r_i) * cumsum(a exp(-r))_i.
def _laplace_norm(coefficient: Tensor, confidence: Tensor, bandwidth: float) -> Tensor:
    """Compute ``sqrt(Q)``; of many samples in n log n time and linear memory."""
    if len(confidence) <= FEW_SAMPLES:
        kernel = ((confidence.unsqueeze(1) - confidence).abs() / -bandwidth).exp()
        squared = coefficient.dot(kernel.mv(coefficient))
    else:
        r, order = (confidence / bandwidth).sort(descending=True)
        a = coefficient.gather(0, order)
        rise = r.exp()
        running = rise * (a / rise).cumsum(0)
        step = torch.cat([r[1:], torch.full_like(r[:1], -torch.inf)]) - r
        squared = (-(step + step).expm1() * running).dot(running)
    # The slope of the square root at 0 is taken as 0.
    return (squared > 0) * squared.clamp_min(torch.finfo(squared.dtype).tiny).sqrt()


def _fractions(
    sample_weight: Tensor | None, correct: Tensor, weighted: bool, like: Tensor
) -> Tensor | float:
    """Return the weights over their sum or, with `weighted`, over that of the (in)correct ones."""
    if sample_weight is None and not weighted:
        return 1 / len(like)
    weight = torch.ones_like(like) if sample_weight is None else sample_weight
    if weighted:
        # A pair counts with the product of its two fractions, so each block of pairs (both
        # correct, both wrong, one of each) is a weighted mean.
        total = torch.where(correct, (weight * correct).sum(), (weight * ~correct).sum())
    else:
        total = weight.sum()
    # Where the total is 0, so is every weight: 0 / tiny = 0.
    return weight / total.clamp_min(torch.finfo(weight.dtype).tiny)


def mmce_loss(
    logits: Tensor,
    target: Tensor,
    *,
    strength: float = 2.0,
    weighted: bool = False,
    bandwidth: float = 0.4,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cross-entropy plus `strength` times the maximum mean calibration error.

    Parameters
    ----------
    logits, target : of :meth:`CrossEntropyLoss.forward`
    strength, weighted, bandwidth, ignore_index : of :class:`MMCELoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`MMCELoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.MMCELoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import mmce_loss
    >>> logits = torch.tensor([[3.0, 0.0], [3.0, 0.0]])
    >>> mmce_loss(logits, torch.tensor([0, 1]), strength=0.0)
    tensor(1.5486)
    >>> mmce_loss(logits, torch.tensor([0, 1]), strength=1.0)
    tensor(2.0012)
    """
    strength, bandwidth = _check_parameters(strength, weighted, bandwidth)
    batch = check_batch(logits, target, sample_weight, ignore_index=ignore_index, soft=False)
    logits, target = batch.rows
    nll, residual = cross_entropy_terms(logits, target)
    gap, correct = answer_residual(logits, target, residual)
    coefficient = gap * _fractions(batch.weight, correct, weighted, nll)
    mmce = _laplace_norm(coefficient, gap + correct, bandwidth)
    # The (weighted) mean of a constant is the constant: added to every sample, it counts once.
    return batch.reduce(nll + strength * mmce, reduction)


class MMCELoss(CalibrationLoss):
    """Cross-entropy plus the maximum mean calibration error of the batch [1]_.

    With r the confidence and c the correctness (0 or 1, a constant) of the n samples of the batch,
    ``MMCE^2 = n^-2 sum_ij (c_i - r_i) (c_j - r_j) exp(-|r_i - r_j| / bandwidth)``. A sample is
    correct if no class stands above its label. The target must hold class indices. In the
    population the penalty vanishes for a calibrated classifier; on a finite batch it is never 0.
    It takes n log n time and linear memory.

    Parameters
    ----------
    strength : float in [0, inf), default=2.0
        Strength of the MMCE; 0 is the cross-entropy, [1]_ uses 2 to 4.
    weighted : bool, default=False
        If True, correct and incorrect samples are averaged separately (MMCE_w of [1]_), so that
        correct samples do not dominate a batch with few errors. Each block of pairs is a
        mean; it is normalized once.
    bandwidth : float in [0.02, inf), default=0.4
        Width of the Laplace kernel, in units of confidence.
    ignore_index : int, default=None
        Label of the samples to leave out (torch: -100); None: every label must be a class.
    reduction : {"none", "sum", "mean"}, default="mean"
        The MMCE belongs to the batch and counts once in the "mean". "none" adds it to every
        sample, so that the (weighted) mean over the samples is the "mean".

    See Also
    --------
    skcalib.losses.functional.mmce_loss : The function.
    CorrectnessRankingLoss : Another penalty over pairs of samples.
    skcalib.metrics.smooth_calibration_error : A kernel calibration error as a metric.

    Notes
    -----
    Near 0 the MMCE grows like the square root of its inputs: the rounding of float32 confidences
    shows up as about 1e-4 there.

    References
    ----------
    .. [1] A. Kumar, S. Sarawagi, U. Jain, "Trainable Calibration Measures for Neural Networks from
       Kernel Mean Embeddings", ICML 2018.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import MMCELoss
    >>> MMCELoss(strength=1.0)(torch.tensor([[3.0, 0.0], [3.0, 0.0]]), torch.tensor([0, 1]))
    tensor(2.0012)
    """

    takes_soft_target = False
    _function = staticmethod(mmce_loss)
    strength: float
    weighted: bool
    bandwidth: float

    def __init__(
        self,
        *,
        strength: float = 2.0,
        weighted: bool = False,
        bandwidth: float = 0.4,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        _check_parameters(strength, weighted, bandwidth)
        super().__init__(
            strength=strength,
            weighted=weighted,
            bandwidth=bandwidth,
            ignore_index=ignore_index,
            reduction=reduction,
        )
