"""Is one model worse calibrated than another on the same samples? A paired test.

Cox's recalibration, logit q = a + b logit p, gains G nats per sample of log-likelihood, of nothing
where a model is calibrated. 2 G is the squared distance of (a, b) from (0, 1) in units of its
standard error times n, so the standard error of sqrt(2 G) is about 1 / sqrt(n) however far the
model is off, while that of G itself is larger the further it is. Hence the roots are compared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr

from ..utils.checking._proba import LOSS_FLOOR

_STEPS, _ENOUGH = 50, 1e-9  # Newton's steps, which end at a gain per sample of so many nats
_SHORTEST = 1e-6  # of a step that is halved until the likelihood grows
_RIDGE = 1e-9  # where all samples say the same


class Recalibration(NamedTuple):
    """The distance from calibration, sqrt(2 G), and what every sample contributes to it, (n,)."""

    distance: float
    influence: NDArray[np.float64]


def recalibration(
    proba: NDArray[np.floating], outcome: NDArray[Any], weight: NDArray[np.float64]
) -> Recalibration:
    """Return how far probabilities of outcomes are from calibration, by Cox's recalibration."""
    x = logit(np.clip(proba.astype(np.float64), LOSS_FLOOR, 1 - LOSS_FLOOR))
    design = np.stack([np.ones_like(x), x])
    share = weight / weight.sum()

    def log_likelihood(line: NDArray[np.float64]) -> NDArray[np.float64]:
        return outcome * (line @ design) - np.logaddexp(0, line @ design)

    before = log_likelihood(np.array([0.0, 1.0]))
    line = np.array([0.0, 1.0])
    best = share @ before
    for _ in range(_STEPS):
        fitted = expit(line @ design)
        slope = design @ (share * (outcome - fitted))
        curvature = (design * (share * fitted * (1 - fitted))) @ design.T + _RIDGE * np.eye(2)
        step = np.linalg.solve(curvature, slope)
        size = 1.0
        while (found := share @ log_likelihood(line + size * step)) < best and size > _SHORTEST:
            size /= 2
        if found - best < _ENOUGH:
            break
        line, best = line + size * step, found
    gain = log_likelihood(line) - before
    mean = float(share @ gain)
    distance = float(np.sqrt(2 * max(mean, 0.0)))
    # The coefficients maximize the mean gain, so that to first order only the gains move it.
    return Recalibration(distance, (gain - mean) / distance if distance else 0 * gain)


def paired_pvalue(
    first: Recalibration,
    other: Recalibration,
    weight: NDArray[np.float64],
    groups: NDArray[np.intp] | None,
) -> float:
    """Return the p-value of two models that are as far from calibration, two-sided."""
    parts = weight * (other.influence - first.influence)
    if groups is not None:
        parts = np.bincount(groups, parts).astype(np.float64)
    n = np.count_nonzero(parts)
    if n < 2:
        return 1.0  # the same predictions
    error = np.sqrt(n / (n - 1) * (parts @ parts)) / weight.sum()
    return float(2 * ndtr(-abs(other.distance - first.distance) / error))
