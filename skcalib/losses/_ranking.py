"""Correctness ranking loss, and the record of past correctness it needs."""

from __future__ import annotations

import math
from numbers import Integral

import torch
from torch import Tensor

from ._base import (
    CalibrationLoss,
    check_batch,
    check_option,
    check_range,
    check_tensor,
    find_extremes,
)
from ._softmax import (
    average_over_target,
    compute_class_nll,
    compute_largest_probabilities,
    compute_target_nll,
)

_CONFIDENCES = ("msp", "margin", "entropy")


def _check_parameters(strength: float, confidence: str) -> float:
    check_option("confidence", confidence, _CONFIDENCES)
    return check_range("strength", strength, 0)


def _compute_confidence(logits: Tensor, target: Tensor, nll: Tensor, kind: str) -> Tensor:
    """Compute the confidence of each sample, larger = more confident."""
    n_classes = logits.shape[1]
    if kind == "entropy":
        # -H / log K with H = sum_k p_k (-log p_k); for K = 1, where H = 0, over log 2, not log 1.
        # A class with a logit of -inf has p log p = 0; an infinite log p would make it NaN.
        every_nll = compute_class_nll(logits).clamp_max(torch.finfo(logits.dtype).max)
        return -((-every_nll).exp() * every_nll).sum(1) / math.log(max(n_classes, 2))
    # A single class has no second-largest probability; its margin is its probability.
    if kind == "msp" or n_classes == 1:
        return compute_largest_probabilities(logits, target, nll).squeeze(1)
    first, second = compute_largest_probabilities(logits, target, nll, 2).unbind(1)
    return first - second


def _take_next_sample(values: Tensor, sample_weight: Tensor | None) -> Tensor:
    """Return the values of the next sample of the batch, the first after the last.

    Samples of weight 0 are skipped, as if they were not in the batch.
    """
    if sample_weight is None:
        return values.roll(-1)
    n = len(values)
    position = torch.arange(2 * n, device=values.device)  # the batch twice: its end wraps around
    counts = sample_weight.repeat(2) > 0
    # From the end, the least position so far that counts is the next one.
    least = torch.where(counts, position, 2 * n).flip(0).cummin(0).values.flip(0)
    # After sample i: from i + 1 on. A single sample that counts is compared with itself, at i + n;
    # where none counts, 2 n stands for no position, and 2 n % n = 0 is a valid one.
    return values[least[1 : n + 1] % n]


class CorrectnessHistory:
    """How often each training sample has been classified correctly so far [1]_.

    The loss asks for confidence in the order of these fractions, in [0, 1]; larger = easier.

    Parameters
    ----------
    n_samples : int
        Number of training samples, at least 1.
    device : torch.device or str, default=None
        Device of the record; batches must be on the same one.

    See Also
    --------
    CorrectnessRankingLoss : The loss that needs it.
    skcalib.difficulty.training_dynamics.consistency_score : The same from a recorded training.

    References
    ----------
    .. [1] J. Moon, J. Kim, Y. Shin, S. Hwang, "Confidence-Aware Learning for Deep Neural
       Networks", ICML 2020.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import CorrectnessHistory
    >>> history = CorrectnessHistory(3)
    >>> history.record(torch.tensor([0, 2]), torch.tensor([[2.0, 0.0]] * 2), torch.tensor([0, 1]))
    >>> history.fraction_correct(torch.tensor([0, 1, 2]))
    tensor([1., 0., 0.])
    """

    def __init__(self, n_samples: int, *, device: torch.device | str | None = None) -> None:
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be an integer >= 1, got {n_samples!r}.")
        self.n_seen: Tensor = torch.zeros(n_samples, device=device)
        self.n_correct: Tensor = torch.zeros(n_samples, device=device)

    def record(self, index: Tensor, logits: Tensor, target: Tensor) -> None:
        """Count one more prediction for each of the samples `index`.

        Parameters
        ----------
        index : int Tensor of shape (n,)
            Positions of the samples of the batch in the training data.
        logits : Tensor of shape (n, K) or (n,)
            Output of the network.
        target : Tensor of shape (n,), or that of `logits`
            Class indices; or class probabilities, whose largest is taken as the label.
        """
        logits, target = check_batch(logits, target, dense=False).rows
        index = self._check_index(index)
        if index.shape != logits.shape[:1]:
            raise ValueError(
                f"index must have shape ({len(logits)},), one position for every row of logits, "
                f"got shape {tuple(index.shape)}."
            )
        label = target.argmax(1) if target.is_floating_point() else target
        correct = (logits.detach().argmax(1) == label).to(self.n_correct.dtype)
        # `n_seen[index] += 1` would count a repeated index once.
        self.n_seen.index_add_(0, index, torch.ones_like(correct))
        self.n_correct.index_add_(0, index, correct)

    def fraction_correct(self, index: Tensor) -> Tensor:
        """Return the fraction of recorded predictions of the samples `index` that were correct.

        Parameters
        ----------
        index : int Tensor of shape (n,)
            Positions of the samples in the training data.

        Returns
        -------
        fraction : Tensor of shape (n,)
            In [0, 1]; 0 for samples never seen.
        """
        index = self._check_index(index)
        # Never seen: 0 / 1.
        return self.n_correct[index] / self.n_seen[index].clamp_min(1)

    def _check_index(self, index: Tensor) -> Tensor:
        """Return positions of training samples as int64, if they are such."""
        check_tensor("index", index)
        kind = index.dtype
        if index.ndim != 1 or kind.is_floating_point or kind.is_complex or kind == torch.bool:
            raise ValueError(
                f"index must be a 1-D integer tensor, got {kind} of shape {tuple(index.shape)}."
            )
        n_samples = len(self.n_seen)
        found = find_extremes(index) if len(index) else None
        if found is not None and not 0 <= found[0] <= found[1] < n_samples:
            raise ValueError(
                f"index must hold positions in [0, {n_samples - 1}], got values from {found[0]} "
                f"to {found[1]}."
            )
        return index.long()


def correctness_ranking_loss(
    logits: Tensor,
    target: Tensor,
    *,
    history: Tensor,
    strength: float = 1.0,
    confidence: str = "msp",
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cross-entropy plus a penalty on confidence that contradicts past correctness.

    Parameters
    ----------
    logits, target, history : of :meth:`CrossEntropyLoss.forward`
    strength, confidence, ignore_index : of :class:`CorrectnessRankingLoss`
    sample_weight : of :meth:`CrossEntropyLoss.forward`
    reduction : of :class:`CorrectnessRankingLoss`

    Returns
    -------
    loss : of :meth:`CrossEntropyLoss.forward`

    See Also
    --------
    skcalib.losses.CorrectnessRankingLoss : The loss as a module, with its properties.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses.functional import correctness_ranking_loss
    >>> logits, target = torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 0])
    >>> history = torch.tensor([0.0, 1.0])
    >>> correctness_ranking_loss(logits, target, history=history, reduction="none")
    tensor([1.5077, 2.0739])
    """
    strength = _check_parameters(strength, confidence)
    batch = check_batch(logits, target, sample_weight, ignore_index=ignore_index, dense=False)
    logits, target = batch.rows
    past = batch.fraction("history", history).detach()
    nll = compute_target_nll(logits, target)
    confident = _compute_confidence(logits, target, nll, confidence)
    difference = past - _take_next_sample(past, batch.weight)
    # The difference of confidence, positive in the order of the history, should reach
    # |c_i - c_j|. Where c_i = c_j both are 0, and the slope of relu at 0 is 0: no ranking.
    wanted = difference.sign() * (confident - _take_next_sample(confident, batch.weight))
    penalty = (difference.abs() - wanted).relu()
    return batch.reduce(average_over_target(nll, target) + strength * penalty, reduction)


class CorrectnessRankingLoss(CalibrationLoss):
    """Cross-entropy plus a penalty on confidence that contradicts past correctness (CRL) [1]_.

    It trains confidence to order samples, for selective prediction and error detection. Every
    sample i is compared with the next one j of the batch, the last with the first; samples of
    weight 0 are skipped. The penalty is ``max(0, |c_i - c_j| - sign(c_i - c_j) (k_i - k_j))`` with
    c the history and k the confidence; samples with equal history are not ranked, and a soft
    target changes the cross-entropy alone. A `sample_weight` of sample i counts for its pair. The
    loss depends on the order of the samples: shuffle between epochs.

    Parameters
    ----------
    strength : float in [0, inf), default=1.0
        Strength of the penalty; 0 is the cross-entropy.
    confidence : {"msp", "margin", "entropy"}, default="msp"
        Largest probability; largest minus second-largest; ``-H / log K``.
    ignore_index, reduction : of :class:`CrossEntropyLoss`

    See Also
    --------
    skcalib.losses.functional.correctness_ranking_loss : The function.
    CorrectnessHistory : Keeps the history that a training loop hands in.

    References
    ----------
    .. [1] J. Moon, J. Kim, Y. Shin, S. Hwang, "Confidence-Aware Learning for Deep Neural
       Networks", ICML 2020.

    Examples
    --------
    >>> import torch
    >>> from skcalib.losses import CorrectnessHistory, CorrectnessRankingLoss
    >>> logits, target = torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 0])
    >>> index = torch.tensor([7, 3])  # positions of the two samples in the training data
    >>> loss, history = CorrectnessRankingLoss(), CorrectnessHistory(10)
    >>> loss(logits, target, history=history.fraction_correct(index))
    tensor(0.4100)
    >>> history.record(index, logits, target)
    """

    uses_history = True
    _function = staticmethod(correctness_ranking_loss)
    strength: float
    confidence: str

    def __init__(
        self,
        *,
        strength: float = 1.0,
        confidence: str = "msp",
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        _check_parameters(strength, confidence)
        super().__init__(
            strength=strength,
            confidence=confidence,
            ignore_index=ignore_index,
            reduction=reduction,
        )
