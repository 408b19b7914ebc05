"""Test of a mean probability by the outcomes, and its confidence interval.

If a model is calibrated, the outcome of sample i is 1 with its probability p_i, independently of
the other samples. So the sum of the outcomes has a known distribution, the Poisson binomial, and
the mean probability is tested without resampling: at any level, for any number of samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtr

# Probabilities are clipped to this distance from 0 and 1, which float32 hardly resolves at 1: no
# outcome is taken to be impossible.
SMALLEST = 1e-7
# With more samples, logits are rounded to two decimals, which leaves few distinct ones.
MANY = 10_000
# Largest shift of logits: beyond it, probabilities are 0 or 1.
FARTHEST = 40.0


def mean_test(
    outcome: NDArray[Any],
    proba: NDArray[Any],
    weight: NDArray[Any] | None,
    effect: float = 1.0,
    count: NDArray[Any] | None = None,
) -> float:
    """Return the p-value of the sum of outcomes, if the probabilities are calibrated.

    Two-sided: twice the smaller tail. `effect` is the design effect of samples that belong
    together: n of them count as n / effect independent ones. A row stands for `count` samples of
    this probability, and its outcome is their mean.
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
    """Return the confidence interval, of this level, of the mean probability.

    All probabilities are shifted by one number, on the scale of logits, as long as
    :func:`mean_test` does not reject them: the mean probability lies outside exactly where the
    test rejects it. With equal probabilities this is the interval of Clopper and Pearson. `effect`
    and `count` are those of :func:`mean_test`.
    """
    x, w, n, s = _prepared(outcome, proba, weight, effect, count)
    tail, total = (1 - level) / 2, float(w @ n)

    def excess(shift: float, sign: int) -> float:
        observed = s if sign > 0 else total - s
        return _tail(sign * (x + shift), w, n, observed) - tail

    ends = []
    # At the lower end P(sum >= s) equals the tail, at the upper end P(sum <= s).
    for sign, extreme, at in ((1, 0.0, 0.0), (-1, total, 1.0)):
        # With a design effect, s may be a fraction that no shift contradicts.
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
    """Return logits x, weights w of mean 1, numbers n of samples with them, and the sum s."""
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
    is above 2, and within ten elsewhere. Where all outcomes are 1 except those of probability
    near 0, it may be up to ten times the exact tail.
    """
    if s <= n * w @ expit(x):
        return 1.0  # it is about 1/2 or more: no test needs the value
    if s >= (w @ n) * (1 - 1e-12):
        return float(np.exp(-n @ np.logaddexp(0, -x)))  # all outcomes are 1
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
