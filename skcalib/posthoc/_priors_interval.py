"""Intervals of class frequencies that were estimated from unlabeled samples.

The estimate has two errors: of the random sample, and of the calibration of the scores. For the
first, the profile likelihood gives an interval for every class. For the second, the log-odds of a
class are moved by an offset and a slope, as uncertain as those of a calibrator fitted to as many
samples as there are training scores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, logsumexp, softmax
from scipy.stats import chi2

from ._limits import LEVEL, PRIOR_VARIANCE

# Largest log-odds; a frequency beyond counts as 0 or 1.
_FARTHEST = 30.0


class Estimated(NamedTuple):
    """Estimated frequencies, and the data behind them.

    ``proba`` (n, K) are the probabilities of the new samples, and ``weight`` is how many samples
    each counts for. ``priors`` are the estimated frequencies, with ``pseudo`` pseudo-samples per
    class. ``training`` are the training frequencies; ``training_proba`` are probabilities of
    held-out training samples, or None.
    """

    proba: NDArray[np.float64]
    weight: NDArray[np.float64]
    priors: NDArray[np.float64]
    training: NDArray[np.float64]
    pseudo: NDArray[np.float64]
    training_proba: NDArray[np.float64] | None


def priors_interval(found: Estimated, error_of_frequencies: float) -> NDArray[np.float64]:
    """Return a 95 % interval for every class, (K, 2)."""
    ratio = found.proba / found.training
    logits = np.log(found.priors)
    posterior = ratio * found.priors
    posterior /= posterior.sum(axis=1, keepdims=True)
    covariance = _covariance(posterior, found)
    ends = np.empty((len(logits), 2))
    for k, prior in enumerate(found.priors):
        # Gradient of the log-odds of class k in the logits of all classes.
        slope = -found.priors / (1 - prior)
        slope[k] = 1.0
        direction = covariance @ slope
        variance = float(slope @ direction)
        # Along this path the log-odds of class k change by 1 per step, at the least loss.
        path = direction / variance
        # By the delta method, from the covariance of the calibrator's offset and slope.
        by_calibrator = slope @ covariance @ _score_by_calibrator(posterior, found, k)
        of_calibrator = _calibrator_covariance(posterior, found, k, error_of_frequencies)
        calibration_variance = float(by_calibrator @ of_calibrator @ by_calibrator)
        for column, sign in enumerate((-1.0, 1.0)):
            step = _distance_along(ratio, found, logits, sign * path, np.sqrt(variance))
            moved = softmax(logits + sign * step * path)[k]
            distance = logit(np.clip(moved, 1e-13, 1 - 1e-13)) - logit(prior)
            far = np.hypot(distance, np.sqrt(chi2.ppf(LEVEL, 1) * calibration_variance))
            ends[k, column] = expit(np.clip(logit(prior) + sign * far, -_FARTHEST, _FARTHEST))
    return ends


def _covariance(posterior: NDArray[np.float64], found: Estimated) -> NDArray[np.float64]:
    """Return the covariance of the logits of the estimated frequencies."""
    score = posterior - found.priors
    of_pseudo = np.diag(found.priors) - np.outer(found.priors, found.priors)
    information = score.T @ (score * found.weight[:, np.newaxis]) + found.pseudo.sum() * of_pseudo
    # Logits are defined up to a constant: the information is singular.
    return np.linalg.pinv(information, hermitian=True)


def _distance_along(
    ratio: NDArray[np.float64],
    found: Estimated,
    logits: NDArray[np.float64],
    path: NDArray[np.float64],
    spread: float,
) -> float:
    """Return how far along a path the log-likelihood falls by half a quantile of chi-squared."""
    most = chi2.ppf(LEVEL, 1) / 2

    def log_likelihood(step: float) -> float:
        at = logits + step * path
        at = at - logsumexp(at)
        return float(found.weight @ np.log(ratio @ np.exp(at) + 1e-300) + found.pseudo @ at)

    best = log_likelihood(0.0)

    def missing(step: float) -> float:
        return best - log_likelihood(step) - most

    far = spread
    while missing(far) < 0 and far < 2 * _FARTHEST:
        far *= 2
    return far if missing(far) < 0 else float(brentq(missing, 0.0, far, xtol=1e-4))


def _score_by_calibrator(
    posterior: NDArray[np.float64], found: Estimated, k: int
) -> NDArray[np.float64]:
    """Return the derivative of the score by an offset and a slope of class k, (K, 2)."""
    moves = np.zeros((len(found.priors), 2))
    for column, z in enumerate(_offset_and_slope(found.proba[:, k])):
        excess = -posterior * (posterior[:, k] * z)[:, np.newaxis]
        excess[:, k] += posterior[:, k] * z
        if found.training_proba is not None:  # the training frequencies move too
            of_k = found.training_proba[:, k]
            z_before = _offset_and_slope(of_k)[column]
            change = -(found.training_proba * (of_k * z_before)[:, np.newaxis]).mean(axis=0)
            change[k] += (of_k * z_before).mean()
            relative = change / found.training
            excess -= posterior * (relative - (posterior @ relative)[:, np.newaxis])
        moves[:, column] = found.weight @ excess
    return moves


def _offset_and_slope(proba: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the derivatives of the log-odds by an offset and a slope, (2, n)."""
    x = np.clip(logit(np.clip(proba, 1e-13, 1 - 1e-13)), -_FARTHEST, _FARTHEST)
    return np.stack([np.ones_like(x), x])


def _calibrator_covariance(
    posterior: NDArray[np.float64], found: Estimated, k: int, error: float
) -> NDArray[np.float64]:
    """Return the covariance of the offset and the slope of class k."""
    if found.training_proba is not None:
        of_k = found.training_proba[:, k]
        z = _offset_and_slope(of_k)
        information = (z * (of_k * (1 - of_k))) @ z.T + np.eye(2) / PRIOR_VARIANCE
        return np.linalg.inv(information).astype(np.float64)
    of_k = found.proba[:, k]
    # Reweight the new samples to the training frequencies.
    as_trained = found.weight * (posterior @ (found.training / found.priors))
    steep = float(as_trained @ (of_k * (1 - of_k)) / as_trained.sum())
    variance = error / len(found.priors) * found.training[k] / max(steep, 1e-6) ** 2
    return np.diag([min(variance, PRIOR_VARIANCE), 0.0])
