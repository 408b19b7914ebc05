"""Shifts and a slope of log-probabilities under a normal prior, and their evidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from ..utils._numeric import compute_row_max, compute_row_sum
from ._base import SMALLEST
from ._linear_fit import FIT_BLOCK

_MOST_STEPS = 50
_LEAST_GAIN = 1e-9
_SHORTEST = 1e-6


def compute_log_proba(proba: NDArray) -> NDArray[np.float64]:
    log_proba = proba.astype(np.float64)
    np.maximum(log_proba, SMALLEST, out=log_proba)
    return np.log(log_proba, out=log_proba)


def fit_shifts(
    log_proba: NDArray, y: NDArray, weight: NDArray, shift: float, slope: float
) -> tuple[NDArray[np.float64], float]:
    """Return the most probable shifts b and slope s (K + 1,), and their log evidence.

    The map is softmax((1 + s) log_proba + b); b and s are normal around 0, with the standard
    deviations `shift` and `slope`. The evidence is relative to b = s = 0 (Laplace).
    """
    k = log_proba.shape[1]
    free = np.append(np.full(k, shift > 0), slope > 0)
    precision = np.append(np.full(k, shift), slope)[free] ** -2.0
    theta = np.zeros(k + 1)

    def look_at(theta: NDArray) -> tuple[float, NDArray, NDArray]:
        """Return the loss, its gradient and its Hessian."""
        loss = 0.5 * float(precision @ theta[free] ** 2)
        gradient, hessian = np.zeros(k + 1), np.zeros((k + 1, k + 1))
        for rows in gen_batches(len(log_proba), max(1, FIT_BLOCK // k)):
            block = log_proba[rows]
            logits = (1 + theta[k]) * block
            logits += theta[:k]
            logits -= compute_row_max(logits)[:, None]
            label = np.arange(len(block)), y[rows]
            of_label = logits[label]
            proba = np.exp(logits, out=logits)
            total = compute_row_sum(proba)
            loss -= float(weight[rows] @ (of_label - np.log(total)))
            proba /= total[:, None]
            hessian += _compute_hessian(block, proba, weight[rows])
            proba[label] -= 1
            proba *= weight[rows, None]
            gradient += np.append(proba.sum(axis=0), np.vdot(proba, block))
        gradient = gradient[free] + precision * theta[free]
        return loss, gradient, hessian[np.ix_(free, free)] + np.diag(precision)

    loss, gradient, hessian = look_at(theta)
    loss_of_none = loss
    for _ in range(_MOST_STEPS):
        step = np.zeros(k + 1)
        step[free] = -np.linalg.solve(hessian, gradient)
        gain, length = -float(gradient @ step[free]), 1.0
        if gain < _LEAST_GAIN:
            break
        latest = look_at(theta + step)
        while latest[0] > loss and length > _SHORTEST:
            length /= 2
            latest = look_at(theta + length * step)
        if latest[0] > loss:  # by rounding: this is the least loss
            break
        theta, (loss, gradient, hessian) = theta + length * step, latest
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
