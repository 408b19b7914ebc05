"""Slopes and intercepts of least log-loss, one of each a class: Newton's method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from ..utils._blocks import iter_blocks, row_max, row_sum
from ._linear import LinearFit, warn_of_max_iter

# Samples a parameter from which the search starts on a subset.
_SAMPLES_PER_PARAMETER = 200
# What the next step would save of the mean log-loss; Newton's error is of the order of its square.
_LEAST_GAIN = 1e-9
_LEAST_GAIN_OF_SUBSET = 1e-4
_SHORTEST_STEP = 1e-6
# Relative to its mean diagonal, added to the Hessian: a class that is never likely has no slope.
_DAMPING = 1e-8


def fit_vector(
    logits: NDArray,
    y: NDArray,
    sample_weight: NDArray | None,
    max_iter: int,
    temperature: float,
) -> LinearFit:
    """Return v, b of least mean log-loss of softmax(v * logits + b), the sum of b being 0.

    The search starts at `temperature`; a strided subset leads near to the optimum, so that the
    full data are passed over three or four times.
    """
    k = logits.shape[1]
    theta = np.concatenate([np.full(k, 1 / temperature), np.zeros(k)])
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    stride = len(y) // (2 * k * _SAMPLES_PER_PARAMETER)
    if stride >= 3:
        some = slice(None, None, stride)
        theta, _, _ = _newton(
            logits[some], y[some], weight[some], theta, max_iter, _LEAST_GAIN_OF_SUBSET
        )
    theta, n_iter, gradient = _newton(logits, y, weight, theta, max_iter, _LEAST_GAIN)
    if n_iter >= max_iter:
        warn_of_max_iter(max_iter, gradient)
    return LinearFit(theta[:k], theta[k:], n_iter)


def _newton(
    logits: NDArray, y: NDArray, weight: NDArray, theta: NDArray, max_iter: int, least_gain: float
) -> tuple[NDArray, int, float]:
    """Return theta, the number of Newton steps and the largest entry of the last gradient."""
    loss, gradient, hessian = _derivatives(logits, y, weight, theta)
    gain, length, n_iter = np.inf, 1.0, 0
    while n_iter < max_iter and gain > least_gain and length > _SHORTEST_STEP:
        n_iter += 1
        step = -cho_solve(cho_factor(hessian), gradient)
        # Twice what the quadratic approximation promises to save.
        gain = -float(gradient @ step)
        length = 1.0
        while length > _SHORTEST_STEP:
            candidate = theta + length * step
            latest = _derivatives(logits, y, weight, candidate)
            # Convex: a step that is short enough does save something, up to rounding.
            if latest[0] <= loss - 1e-4 * length * gain + 1e-15 * abs(loss):
                theta, (loss, gradient, hessian) = candidate, latest
                break
            length /= 2
    return theta, n_iter, float(np.abs(gradient).max())


def _derivatives(
    logits: NDArray, y: NDArray, weight: NDArray, theta: NDArray
) -> tuple[float, NDArray, NDArray]:
    """Return mean log-loss, gradient and Hessian in theta = (v, b).

    With p = softmax(v z + b) and a = (p z, p) the gradient of a sample is ((p - e) z, p - e), e
    the one-hot vector of its label. Its Hessian is the four diagonal blocks diag(p z^2), diag(p z)
    twice and diag(p), less the outer product of a.
    """
    k = logits.shape[1]
    loss, gradient = 0.0, np.zeros((2, k))
    outer, diagonals = np.zeros((2 * k, 2 * k)), np.zeros((3, k))
    for rows, block in iter_blocks(logits):
        z, w = block.astype(np.float64, copy=False), weight[rows]
        label = np.arange(len(z)), y[rows]
        mapped = z * theta[:k] + theta[k:]
        mapped -= row_max(mapped)[:, None]
        terms = np.exp(mapped)
        total = row_sum(terms)
        loss += float(w @ (np.log(total) - mapped[label]))
        # The product of an array and its own transpose takes half the time: weights go to both.
        root = np.sqrt(w)
        a = np.empty((len(z), 2 * k))
        a[:, k:] = terms * (root / total)[:, None]
        np.multiply(a[:, k:], z, out=a[:, :k])
        outer += a.T @ a
        diagonals += np.einsum("ik,ik,i->k", a[:, :k], z, root), root @ a[:, :k], root @ a[:, k:]
        gradient[0] -= np.bincount(y[rows], w * z[label], minlength=k)
        gradient[1] -= np.bincount(y[rows], w, minlength=k)
    gradient += diagonals[1:]
    entries = np.arange(k)
    hessian = -outer
    hessian[entries, entries] += diagonals[0]
    hessian[entries, k + entries] += diagonals[1]
    hessian[k + entries, entries] += diagonals[1]
    hessian[k + entries, k + entries] += diagonals[2]
    # Softmax does not see a shift of b: curvature there keeps the sum of b at 0.
    hessian[k:, k:] += diagonals[2].sum() / k
    hessian[np.diag_indices(2 * k)] += _DAMPING * np.trace(hessian) / (2 * k)
    n = weight.sum()
    return loss / n, gradient.ravel() / n, hessian / n
