"""How well are class frequencies known that were estimated from unlabeled samples?

Two things move the estimate: which samples were drawn, and how well the probabilities that go in
are calibrated. The first is in the likelihood, whose profile gives an interval for every class.
The second moves the scores of a class by an offset and a slope, as uncertain as those of a
calibrator that was fitted to as many samples as there are training scores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, logsumexp, softmax
from scipy.stats import chi2

from ._limits import LEVEL, PRIOR_VARIANCE

# Largest log-odds: beyond them a frequency cannot be distinguished from 0 or 1.
_FARTHEST = 30.0


class Estimated(NamedTuple):
    """What the frequencies were estimated from.

    ``proba`` (n, K) are the probabilities of the new samples and ``weight`` how many samples each
    stands for; ``priors`` are most likely under ``pseudo`` further samples of each class;
    ``before`` are the probabilities of samples like those of training, or None where only
    ``training``, their frequencies, are known.
    """

    proba: NDArray[np.float64]
    weight: NDArray[np.float64]
    priors: NDArray[np.float64]
    training: NDArray[np.float64]
    pseudo: NDArray[np.float64]
    before: NDArray[np.float64] | None


def priors_interval(found: Estimated, error_of_frequencies: float) -> NDArray[np.float64]:
    """Return the ends of the interval of every class, (K, 2), each of a level of .95."""
    ratio = found.proba / found.training
    logits = np.log(found.priors)
    belief = ratio * found.priors
    belief /= belief.sum(axis=1, keepdims=True)
    covariance = _covariance(belief, found)
    ends = np.empty((len(logits), 2))
    for k, prior in enumerate(found.priors):
        # How the log-odds of class k follow from the logits of all classes.
        slope = -found.priors / (1 - prior)
        slope[k] = 1.0
        direction = covariance @ slope
        variance = float(slope @ direction)
        path = direction / variance
        beyond = slope @ covariance @ _by_calibration(belief, found, k)
        calibrator = _of_calibrator(belief, found, k, error_of_frequencies)
        of_calibration = float(beyond @ calibrator @ beyond)
        for place, sign in enumerate((-1.0, 1.0)):
            step = _likely(ratio, found, logits, sign * path, np.sqrt(variance))
            moved = softmax(logits + sign * step * path)[k]
            distance = logit(np.clip(moved, 1e-13, 1 - 1e-13)) - logit(prior)
            far = np.hypot(distance, np.sqrt(chi2.ppf(LEVEL, 1) * of_calibration))
            ends[k, place] = expit(np.clip(logit(prior) + sign * far, -_FARTHEST, _FARTHEST))
    return ends


def _covariance(belief: NDArray[np.float64], found: Estimated) -> NDArray[np.float64]:
    """Return the covariance of the estimated logits of the frequencies, up to a constant each."""
    apart = belief - found.priors
    spread = np.diag(found.priors) - np.outer(found.priors, found.priors)
    information = apart.T @ (apart * found.weight[:, np.newaxis]) + found.pseudo.sum() * spread
    return np.linalg.pinv(information, hermitian=True)


def _likely(
    ratio: NDArray[np.float64],
    found: Estimated,
    logits: NDArray[np.float64],
    path: NDArray[np.float64],
    spread: float,
) -> float:
    """Return how far along a path the likelihood is half of chi-square's quantile lower."""
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


def _by_calibration(belief: NDArray[np.float64], found: Estimated, k: int) -> NDArray[np.float64]:
    """Return how the score of the logits follows an offset and a slope of class k, (K, 2)."""
    moves = np.zeros((len(found.priors), 2))
    for column, z in enumerate(_offset_and_slope(found.proba[:, k])):
        excess = -belief * (belief[:, k] * z)[:, np.newaxis]
        excess[:, k] += belief[:, k] * z
        if found.before is not None:  # the frequencies of training follow the calibrator, too
            of_k = found.before[:, k]
            z_before = _offset_and_slope(of_k)[column]
            change = -(found.before * (of_k * z_before)[:, np.newaxis]).mean(axis=0)
            change[k] += (of_k * z_before).mean()
            relative = change / found.training
            excess -= belief * (relative - (belief @ relative)[:, np.newaxis])
        moves[:, column] = found.weight @ excess
    return moves


def _offset_and_slope(proba: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what an offset and a slope multiply, (2, n)."""
    x = np.clip(logit(np.clip(proba, 1e-13, 1 - 1e-13)), -_FARTHEST, _FARTHEST)
    return np.stack([np.ones_like(x), x])


def _of_calibrator(
    belief: NDArray[np.float64], found: Estimated, k: int, error: float
) -> NDArray[np.float64]:
    """Return the covariance of the offset and the slope of class k."""
    if found.before is not None:
        of_k = found.before[:, k]
        z = _offset_and_slope(of_k)
        information = (z * (of_k * (1 - of_k))) @ z.T + np.eye(2) / PRIOR_VARIANCE
        return np.linalg.inv(information).astype(np.float64)
    of_k = found.proba[:, k]
    # The samples as frequent as they are in training.
    as_trained = found.weight * (belief @ (found.training / found.priors))
    steep = float(as_trained @ (of_k * (1 - of_k)) / as_trained.sum())
    variance = error / len(found.priors) * found.training[k] / max(steep, 1e-6) ** 2
    return np.diag([min(variance, PRIOR_VARIANCE), 0.0])
