"""Shifts and a slope of log-probabilities under a normal prior, and their evidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ._base import SMALLEST

_MOST_STEPS = 50
_LEAST_GAIN = 1e-9
_SHORTEST = 1e-6


def compute_log_proba(proba: NDArray) -> NDArray[np.float64]:
    return np.log(np.maximum(proba.astype(np.float64), SMALLEST))


def fit_shifts(
    log_proba: NDArray, y: NDArray, weight: NDArray, shift: float, slope: float
) -> tuple[NDArray[np.float64], float]:
    """Return the most probable shifts b and slope s (K + 1,), and their log evidence.

    The map is softmax((1 + s) log_proba + b); b and s are normal around 0, with the standard
    deviations `shift` and `slope`. The evidence is relative to b = s = 0 (Laplace).
    """
    n, k = log_proba.shape
    free = np.append(np.full(k, shift > 0), slope > 0)
    precision = np.append(np.full(k, shift), slope)[free] ** -2.0
    label = np.arange(n), y
    theta = np.zeros(k + 1)

    def loss_at(theta: NDArray) -> tuple[float, NDArray]:
        logits = (1 + theta[k]) * log_proba + theta[:k]
        log_q = logits - logsumexp(logits, axis=1, keepdims=True)
        penalty = 0.5 * float(precision @ theta[free] ** 2)
        return penalty - float(weight @ log_q[label]), np.exp(log_q)

    loss, proba = loss_at(theta)
    loss_of_none = loss
    for _ in range(_MOST_STEPS):
        residual = weight[:, None] * proba
        residual[label] -= weight
        gradient = np.append(residual.sum(axis=0), np.vdot(residual, log_proba))[free]
        gradient += precision * theta[free]
        hessian = _compute_hessian(log_proba, proba, weight)[np.ix_(free, free)] + np.diag(
            precision
        )
        step = np.zeros(k + 1)
        step[free] = -np.linalg.solve(hessian, gradient)
        gain, length = -float(gradient @ step[free]), 1.0
        if gain < _LEAST_GAIN:
            break
        latest, proba = loss_at(theta + step)
        while latest > loss and length > _SHORTEST:
            length /= 2
            latest, proba = loss_at(theta + length * step)
        if latest > loss:  # by rounding: this is the least loss
            break
        theta, loss = theta + length * step, latest
    _, volume = np.linalg.slogdet(hessian)
    return theta, loss_of_none - loss + 0.5 * float(np.log(precision).sum() - volume)


def _compute_hessian(log_proba: NDArray, proba: NDArray, weight: NDArray) -> NDArray[np.float64]:
    """Return the Hessian of the summed log-loss in the shifts and the slope."""
    weighted = weight[:, None] * proba
    mean = np.einsum("ik,ik->i", proba, log_proba)
    centered = weighted * (log_proba - mean[:, None])
    shifts = np.diag(weighted.sum(axis=0)) - weighted.T @ proba
    cross = centered.sum(axis=0)
    return np.block([[shifts, cross[:, None]], [cross, np.vdot(centered, log_proba)]])
