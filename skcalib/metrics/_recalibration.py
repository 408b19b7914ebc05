"""Is one model worse calibrated than another on the same samples? A paired test.

Cox's recalibration, logit q = a + b logit p, raises the log-likelihood by G nats per sample; G is
0 if the model is calibrated. 2 n G is about the squared distance of (a, b) from (0, 1) in standard
errors. So the standard error of sqrt(2 G) is about 1 / sqrt(n) for every G, while that of G grows
with G. Therefore the roots are compared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr

from ..utils.checking._proba import LOSS_FLOOR

_STEPS, _ENOUGH = 50, 1e-9  # most Newton steps; a gain below so many nats per sample ends them
_SHORTEST = 1e-6  # shortest part of a step, which is halved until the likelihood grows
_RIDGE = 1e-9  # keeps the Hessian invertible where all probabilities are equal


class Recalibration(NamedTuple):
    """The distance from calibration, sqrt(2 G), and what every sample contributes to it, (n,)."""

    distance: float
    influence: NDArray[np.float64]


def recalibration(
    proba: NDArray[np.floating], outcome: NDArray[Any], weight: NDArray[np.float64]
) -> Recalibration:
    """Fit Cox's recalibration, and return sqrt(2 G) with the contributions of the samples."""
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
    """Return the two-sided p-value of the null hypothesis that G of two models is equal."""
    parts = weight * (other.influence - first.influence)
    if groups is not None:
        parts = np.bincount(groups, parts).astype(np.float64)
    n = np.count_nonzero(parts)
    if n < 2:
        return 1.0  # the same predictions
    error = np.sqrt(n / (n - 1) * (parts @ parts)) / weight.sum()
    return float(2 * ndtr(-abs(other.distance - first.distance) / error))
