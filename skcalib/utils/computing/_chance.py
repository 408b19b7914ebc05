"""What chance does to a number of outcomes: the test of a mean, and its range.

A calibrated model says p_i, and the outcome of sample i is 1 with that probability, whatever the
other samples do. So the sum of the outcomes has a known distribution, the Poisson binomial, and
what was said on average can be tested without resampling: at any level, for any number of samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtr

# Rounded to float32, a probability this close to 1 is 1: no outcome is taken to be impossible.
SMALLEST = 1e-7
# From so many samples on, logits are rounded to two digits: few are different then.
MANY = 10_000
# Beyond, in logits, a shifted probability is 0 or 1.
FARTHEST = 40.0


def mean_test(
    outcome: NDArray[Any],
    proba: NDArray[Any],
    weight: NDArray[Any] | None,
    effect: float = 1.0,
    count: NDArray[Any] | None = None,
) -> float:
    """Return how probable it is that a calibrated model is as far off as this, on average.

    Two-sided: twice the probability of the nearer tail. Samples that belong together tell as much
    as one in `effect` of them would alone. A sample stands for `count` of them, all alike.
    """
    x, w, n, s = _prepared(outcome, proba, weight, effect, count)
    tails = (_tail(x, w, n, s), _tail(-x, w, n, float(w @ n) - s))
    # Above 0, so that p-values can be compared by their quotients.
    return float(np.clip(2 * min(tails), 1e-300, 1))


def mean_range(
    outcome: NDArray[Any],
    proba: NDArray[Any],
    weight: NDArray[Any] | None,
    level: float,
    effect: float = 1.0,
    count: NDArray[Any] | None = None,
) -> tuple[float, float]:
    """Return the frequencies that the outcomes do not contradict, an interval of this level.

    All probabilities are shifted by one number, on the scale of logits, as far as
    :func:`mean_test` lets them: what was said lies outside exactly where the test rejects it.
    With equal probabilities this is the interval of Clopper and Pearson. A sample stands for
    `count` of them, each with an outcome of its own, all of them alike.
    """
    x, w, n, s = _prepared(outcome, proba, weight, effect, count)
    tail, total = (1 - level) / 2, float(w @ n)

    def excess(shift: float, sign: int) -> float:
        observed = s if sign > 0 else total - s
        return _tail(sign * (x + shift), w, n, observed) - tail

    ends = []
    # Few outcomes contradict a large shift, many a small one.
    for sign, extreme, at in ((1, 0.0, 0.0), (-1, total, 1.0)):
        # Where samples belong together, a part of an outcome may contradict no shift at all.
        if s == extreme or excess(-sign * FARTHEST, sign) > 0:
            ends.append(at)
            continue
        shift = brentq(excess, -FARTHEST, FARTHEST, args=(sign,), xtol=1e-4)
        ends.append(float(n * w @ expit(x + shift) / total))
    return ends[0], ends[1]


def _prepared(
    outcome: NDArray[Any],
    proba: NDArray[Any],
    weight: NDArray[Any] | None,
    effect: float,
    count: NDArray[Any] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]:
    """Return logits, weights of mean 1, how many samples have them, and the sum of outcomes."""
    x = logit(np.clip(proba.astype(np.float64), SMALLEST, 1 - SMALLEST))
    if weight is not None:
        w = weight / weight.mean()
        return x, w, np.full(len(x), 1 / effect), float(w @ outcome) / effect
    if count is not None:
        return x, np.ones(len(x)), count / effect, float(count @ outcome) / effect
    if len(x) > MANY:
        place = np.rint(100 * x).astype(np.intp)
        least = int(place.min())
        n = np.bincount(place - least)
        x, n = (least + np.flatnonzero(n)) / 100, n[n > 0]
    else:
        x, n = np.unique(x, return_counts=True)
    return x, np.ones(len(x)), n / effect, float(np.sum(outcome)) / effect


def _tail(
    x: NDArray[np.float64], w: NDArray[np.float64], n: NDArray[np.float64], s: float
) -> float:
    """Return P(sum_i w_i Y_i >= s), where n_i independent Y_i have log-odds x_i.

    The saddlepoint approximation of Lugannani and Rice (1980), with Daniels's correction for
    whole numbers where all weights are 1: within a per cent of the exact tail where the variance
    is above 2, and within ten elsewhere. Where all outcomes came but those that are all but
    impossible, it may be up to ten times the exact tail.
    """
    if s <= n * w @ expit(x):
        return 1.0  # about half or more, which no test looks at
    if s >= (w @ n) * (1 - 1e-12):
        return float(np.exp(-n @ np.logaddexp(0, -x)))  # all of them
    # Y tilted by t has log-odds x + w t; the tilt under which s is the mean.
    high = 1.0
    while n * w @ expit(x + w * high) < s:
        high *= 2
    t = brentq(lambda t: n * w @ expit(x + w * t) - s, 0, high)
    tilted = expit(x + w * t)
    cumulant = n @ (np.logaddexp(0, x + w * t) - np.logaddexp(0, x))
    r = np.sqrt(max(2 * (t * s - cumulant), 0.0))
    spread = np.sqrt(n * w**2 @ (tilted * (1 - tilted)))
    u = (-np.expm1(-t) if (w == 1).all() else t) * spread
    if r < 1e-3 or u <= 0:
        return 0.5
    with np.errstate(under="ignore"):
        density = np.exp(-(r**2) / 2) / np.sqrt(2 * np.pi)
    return float(np.clip(ndtr(-r) + density * (1 / u - 1 / r), 0, 1))
