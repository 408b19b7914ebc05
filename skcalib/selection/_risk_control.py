"""Thresholds of confidence that keep an error rate, by exact binomial tests.

Accept the samples that are more confident than some value u. If m of the calibration samples are,
these are m independent draws from all samples above u: the number of wrong ones among them is
binomial, and no approximation is needed.
"""

from __future__ import annotations

from math import ceil, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, betaincinv


class RiskControl(NamedTuple):
    """A threshold and what it does on the calibration samples.

    Samples of larger confidence than `threshold` are accepted: `n_accepted` of them, of which
    `n_errors` are wrong. `bound` is the exact upper confidence bound of their error rate, 1 where
    none is accepted.
    """

    threshold: float
    n_accepted: int
    n_errors: int
    bound: float


def risk_control(
    confidence: NDArray[np.floating], correct: NDArray[np.bool_], *, risk: float, delta: float
) -> RiskControl:
    """Return the laxest threshold found for which P(error rate > risk) <= delta."""
    values, n_accepted, n_errors = _accepted_counts(confidence, correct)
    last = _fixed_sequence(n_accepted, n_errors, risk, delta)
    if last < 0:
        return RiskControl(np.inf, 0, 0, 1.0)
    # The boundary is the largest value that is not accepted, so that what lies between the two
    # on new data is accepted too: this is the event that the test is exact for.
    threshold = float(values[last + 1]) if last + 1 < len(values) else -np.inf
    n, k = int(n_accepted[last]), int(n_errors[last])
    return RiskControl(threshold, n, k, upper_bound(k, n, delta))


def upper_bound(n_errors: int, n_samples: int, delta: float) -> float:
    """Return Clopper and Pearson's bound: an error rate above it has probability `delta`."""
    if n_errors == n_samples:
        return 1.0
    # The rate u at which P(Binomial(n, u) <= k) = delta. That probability is 1 - I_u(k + 1, n - k)
    # with the regularized incomplete beta function I; u is a quantile of Beta(k + 1, n - k).
    return float(betaincinv(n_errors + 1, n_samples - n_errors, 1 - delta))


def _accepted_counts(
    confidence: NDArray[np.floating], correct: NDArray[np.bool_]
) -> tuple[NDArray[np.floating], NDArray[np.intp], NDArray[np.intp]]:
    """Return distinct values from high to low, and for each the samples and errors at or above."""
    # unique sorts upward, so negated. Equal confidences are accepted or declined together.
    values, group = np.unique(-confidence, return_inverse=True)
    size = np.bincount(group)
    wrong = np.bincount(group, ~correct).astype(np.intp)
    return -values, np.cumsum(size), np.cumsum(wrong)


def _fixed_sequence(
    n_accepted: NDArray[np.intp], n_errors: NDArray[np.intp], risk: float, delta: float
) -> int:
    """Return the last threshold that passes its test in an unbroken run, -1 where none does.

    The hypotheses "the error rate above this threshold exceeds `risk`" are tested from strict to
    lax by their exact binomial p-values. A sequence that has not failed yet tests the next one at
    its whole level, so their number costs nothing. But a wrong label among the first few samples
    would end a single sequence. So others begin further on, each with a part of `delta`; a
    sequence that gets there unbroken adds its level to theirs.
    """
    level, best = 0.0, -1
    # P(Binomial(n, risk) <= k): the larger the true rate, the less likely so few errors are, so
    # this is the largest probability under "the error rate is at least risk".
    p_value = bdtr(n_errors, n_accepted, risk)
    starts, levels = _starts(n_accepted, risk, delta)
    for start, stop, own_level in zip(starts, [*starts[1:], len(n_accepted)], levels):
        level += own_level
        failed = p_value[start:stop] > level
        n_passed = int(np.argmax(failed)) if failed.any() else stop - start
        if n_passed:
            best = start + n_passed - 1
        # A failure ends all sequences that came this far: the next one has its own level only.
        if n_passed < stop - start:
            level = 0.0
    return best


def _starts(
    n_accepted: NDArray[np.intp], risk: float, delta: float
) -> tuple[list[int], list[float]]:
    """Return where the sequences begin, and the level of each; the levels sum to `delta`.

    Half goes to the strictest threshold at which a sample without error could pass, the rest in
    equal parts to thresholds that accept 4, 16, 64, ... times as many. Where there is room for one
    of them alone, all of `delta` goes to the strictest threshold that could pass with it.
    """
    # n samples without error have the p-value (1 - risk)^n; solved for delta / 2.
    counts, count = [], ceil(log(delta / 2) / log(1 - risk))
    while count <= n_accepted[-1]:
        counts.append(count)
        count *= 4
    # The first threshold that accepts at least so many. With tied confidences two counts may
    # lead to the same one.
    starts = np.unique(np.searchsorted(n_accepted, counts)).tolist()
    if len(starts) <= 1:
        count = ceil(log(delta) / log(1 - risk))
        starts = [int(np.searchsorted(n_accepted, count))] if count <= n_accepted[-1] else []
        return starts, [delta] * len(starts)
    rest = delta / 2 / (len(starts) - 1)
    return starts, [delta / 2] + [rest] * (len(starts) - 1)
