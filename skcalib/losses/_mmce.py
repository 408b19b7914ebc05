"""Maximum mean calibration error (MMCE) as a regularizer of the cross-entropy."""

from __future__ import annotations

import torch
from torch import Tensor

from ._base import CalibrationLoss, check_inputs, check_per_sample, check_range, reduce_loss
from ._closed_form import arg_max, evaluate, move_probability, probability_from
from ._softmax import cross_entropy_terms, label_softmax, miss_probability, probability_at


def _check_parameters(weight: float, bandwidth: float) -> None:
    check_range("weight", weight, 0)
    # exp(1 / bandwidth) must stay far from the largest float32.
    check_range("bandwidth", bandwidth, 0.02)


def _laplace_norm(coefficient: Tensor, confidence: Tensor, bandwidth: float) -> Tensor:
    """Compute ``sqrt(sum_ij a_i a_j exp(-|r_i - r_j| / bandwidth))`` in n log n and linear memory.

    On a line the kernel is that of a Markov process: with r sorted from the largest, the quadratic
    form is ``sum_i (1 - exp(-2 (r_i - r_(i+1)) / b)) s_i^2`` with the running sums
    ``s_i = sum_(j <= i) a_j exp(-(r_j - r_i) / b)``. All terms are >= 0, so nothing cancels.
    """
    order = confidence.detach().argsort(descending=True)
    r, a = confidence[order] / bandwidth, coefficient[order]
    running = r.exp() * (a * (-r).exp()).cumsum(0)
    fresh = torch.cat([-torch.expm1(2 * (r[1:] - r[:-1])), torch.ones_like(r[:1])])
    squared = (fresh * running.square()).sum()
    # The square root of 0 has no slope; 0 is taken.
    positive = squared > 0
    return torch.where(positive, torch.where(positive, squared, 1.0).sqrt(), 0.0)


def _laplace_solution(
    coefficient: Tensor, confidence: Tensor, bandwidth: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return :func:`_laplace_norm` and its slopes in the coefficients and the confidences."""
    order = confidence.argsort(descending=True)
    r, a = confidence.gather(0, order).div_(bandwidth), coefficient.gather(0, order)
    grow, shrink = r.exp(), r.neg().exp_()
    # Sums over the rows above and below in confidence, the row itself included in both.
    above = (a * shrink).cumsum_(0).mul_(grow)
    below = grow.mul_(a).flip(0).cumsum_(0).flip(0).mul_(shrink)
    step, head = r[1:] - r[:-1], above[:-1]
    fresh = step.add_(step).expm1_().neg_()
    norm = above[-1].square().add_(torch.dot(fresh.mul_(head), head)).sqrt_()
    # The slope at 0 is taken as 0, also where the squares have underflown.
    scale = norm.reciprocal().nan_to_num_(nan=torch.nan, posinf=0.0)
    in_a = torch.empty_like(a).scatter_(0, order, (above + below).sub_(a).mul_(scale))
    in_r = above.sub_(below).mul_(a).mul_(scale.div_(bandwidth))
    return norm, in_a, torch.empty_like(a).scatter_(0, order, in_r)


def _mmce(
    confidence: Tensor,
    correct: Tensor,
    nll: Tensor,
    sample_weight: Tensor | None,
    weighted: bool,
    bandwidth: float,
) -> Tensor:
    gap = torch.where(correct, miss_probability(nll), -confidence)
    share = torch.ones_like(gap) if sample_weight is None else sample_weight
    return _laplace_norm(gap * _shares(share, correct, weighted), confidence, bandwidth)


def _shares(weight: Tensor, correct: Tensor, weighted: bool) -> Tensor:
    """Return the weights over their sum, with `weighted` over that of the (in)correct rows."""
    if weighted:
        total = torch.where(correct, (weight * correct).sum(), (weight * ~correct).sum())
    else:
        total = weight.sum()
    return weight / total.clamp_min(torch.finfo(weight.dtype).tiny)


def _formula(
    logits: Tensor,
    target: Tensor,
    sample_weight: Tensor | None,
    weight: float,
    weighted: bool,
    bandwidth: float,
) -> Tensor:
    values, _ = cross_entropy_terms(logits, target)
    if not weight:
        return values
    top = logits.argmax(1, keepdim=True)
    confidence = probability_at(logits, top, target, values).squeeze(1)
    correct = (logits.gather(1, target.unsqueeze(1)) == logits.gather(1, top)).squeeze(1)
    return values + weight * _mmce(confidence, correct, values, sample_weight, weighted, bandwidth)


def _solution(
    logits: Tensor, label: Tensor, _: None, weight: float, weighted: bool, bandwidth: float
) -> tuple[Tensor, Tensor]:
    """Solve for rows that count alike."""
    nll, residual, miss = label_softmax(logits, label)
    top = arg_max(logits)
    confidence = probability_from(residual, top, label)
    correct = logits.gather(1, label) == logits.gather(1, top)
    share = _shares(torch.ones_like(nll), correct, True) if weighted else 1 / len(nll)
    coefficient = torch.where(correct, miss, -confidence).mul_(share)
    norm, in_a, in_r = _laplace_solution(coefficient[:, 0], confidence[:, 0], bandwidth)
    # The norm is part of the loss of every row, hence n times in their sum.
    in_gap = in_a.unsqueeze(1).mul_(share * (weight * len(nll)))
    in_r = in_r.mul_(weight * len(nll)).unsqueeze(1)
    # The gap of a correct row is 1 - p_y, of another one minus its confidence.
    rate = torch.where(correct, in_r, in_r - in_gap).mul_(confidence)
    slope = nll.neg().exp_().mul_(in_gap).mul_(correct).add_(1)
    return nll.add_(norm, alpha=weight), move_probability(residual, top, label, rate, slope)


def mmce_loss(
    logits: Tensor,
    target: Tensor,
    *,
    weight: float = 2.0,
    weighted: bool = False,
    bandwidth: float = 0.4,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cross-entropy plus `weight` times the maximum mean calibration error.

    With r the confidence and c the correctness (0 or 1, a constant) of the n rows of the batch,
    ``MMCE^2 = n^-2 sum_ij (c_i - r_i) (c_j - r_j) exp(-|r_i - r_j| / bandwidth)``.

    Parameters
    ----------
    logits : Tensor of shape (n, K)
        Finite scores before the softmax.
    target : Tensor of shape (n,)
        Class indices. A row is correct if no class stands above its label.
    weight : float in [0, inf), default=2.0
        Strength of the MMCE; 0 is the cross-entropy, [1]_ uses 2 to 4.
    weighted : bool, default=False
        If True, correct and incorrect rows are averaged apart (MMCE_w of [1]_), so that a batch
        with few errors is not judged on its correct rows alone. Each block of pairs is a mean; it
        is normalized once.
    bandwidth : float in [0.02, inf), default=0.4
        Width of the Laplace kernel, in units of confidence.
    sample_weight : Tensor of shape (n,), default=None
        Non-negative weights, of the cross-entropy and of the means inside the MMCE.
    reduction : {"none", "sum", "mean"}, default="mean"
        The MMCE belongs to the batch and counts once in the "mean". "none" adds it to every row,
        so that the (weighted) mean of the rows is the "mean".

    Returns
    -------
    loss : Tensor of shape () or (n,)
        >= 0. Takes n log n time and linear memory.

    Notes
    -----
    Near 0 the MMCE goes with the square root of its inputs: the rounding of float32 confidences
    shows as some 1e-4 there.

    References
    ----------
    .. [1] Kumar, Sarawagi and Jain, Trainable Calibration Measures for Neural Networks from Kernel
       Mean Embeddings, ICML 2018.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import mmce_loss
    >>> logits = torch.tensor([[3.0, 0.0], [3.0, 0.0]])
    >>> mmce_loss(logits, torch.tensor([0, 1]), weight=0.0)
    tensor(1.5486)
    >>> mmce_loss(logits, torch.tensor([0, 1]), weight=1.0)
    tensor(2.0012)
    """
    _check_parameters(weight, bandwidth)
    logits, target = check_inputs(logits, target, soft=False)
    if sample_weight is not None:
        sample_weight = check_per_sample("sample_weight", sample_weight, logits)
    parameters = (sample_weight, weight, weighted, bandwidth)
    if sample_weight is not None or reduction == "none":
        return reduce_loss(_formula(logits, target, *parameters), sample_weight, reduction)
    return evaluate(_formula, _solution, logits, target, parameters, sample_weight, reduction)


class MMCELoss(CalibrationLoss):
    """Cross-entropy plus the maximum mean calibration error of the batch.

    The regularizer vanishes in the population for a calibrated classifier; on a finite batch it
    is never 0.

    Parameters
    ----------
    weight : float in [0, inf), default=2.0
        Strength of the MMCE; 0 is the cross-entropy.
    weighted : bool, default=False
        If True, correct and incorrect rows are averaged apart.
    bandwidth : float in [0.02, inf), default=0.4
        Width of the Laplace kernel, in units of confidence.
    reduction : {"none", "sum", "mean"}, default="mean"
        "mean" is the weighted mean.

    See Also
    --------
    mmce_loss : the function, with its source.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import MMCELoss
    >>> MMCELoss(weight=1.0)(torch.tensor([[3.0, 0.0], [3.0, 0.0]]), torch.tensor([0, 1]))
    tensor(2.0012)
    """

    _function = staticmethod(mmce_loss)
    weight: float
    weighted: bool
    bandwidth: float

    def __init__(
        self,
        *,
        weight: float = 2.0,
        weighted: bool = False,
        bandwidth: float = 0.4,
        reduction: str = "mean",
    ) -> None:
        _check_parameters(weight, bandwidth)
        super().__init__(
            weight=weight, weighted=weighted, bandwidth=bandwidth, reduction=reduction
        )
