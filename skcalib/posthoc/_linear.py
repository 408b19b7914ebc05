"""Multinomial regression on the scores of a model: the fit behind the linear calibrators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning

_GRADIENT_TOLERANCE = 1e-9


class LinearFit(NamedTuple):
    """Slopes, (K,) or (K, K), intercepts (K,) and the number of iterations."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    n_iter: int


def fit_diagonal(
    scores: NDArray, y: NDArray, sample_weight: NDArray | None, max_iter: int
) -> LinearFit:
    """Return v, b of least mean log-loss of softmax(v * scores + b)."""
    k = scores.shape[1]
    # theta = (v, b). The transpose takes g, one number a logit, to the sums over the samples i of
    # g_ik s_ik for v_k and of g_ik for b_k.
    theta, n_iter = _minimize_log_loss(
        lambda theta: scores * theta[:k] + theta[k:],
        lambda logits: np.concatenate([np.sum(logits * scores, axis=0), logits.sum(axis=0)]),
        start=np.concatenate([np.ones(k), np.zeros(k)]),
        penalty=np.zeros(2 * k),
        y=y,
        sample_weight=sample_weight,
        max_iter=max_iter,
    )
    return LinearFit(theta[:k], theta[k:], n_iter)


def fit_matrix(
    scores: NDArray,
    y: NDArray,
    sample_weight: NDArray | None,
    max_iter: int,
    penalties: tuple[float, float],
) -> LinearFit:
    """Return W, b of least penalized mean log-loss of softmax(scores @ W.T + b).

    The penalties are those of the mean squared off-diagonal entry of W and of the mean squared
    entry of b.
    """
    k = scores.shape[1]
    # A penalty of the mean is one of every entry, divided by their number: k (k - 1) and k.
    off_diagonal = (1 - np.eye(k)) * penalties[0] / (k * (k - 1))
    # theta is W row by row, then b; the transpose of S W^T is g^T S for W.
    theta, n_iter = _minimize_log_loss(
        lambda theta: scores @ theta[:-k].reshape(k, k).T + theta[-k:],
        lambda logits: np.concatenate([(logits.T @ scores).ravel(), logits.sum(axis=0)]),
        start=np.concatenate([np.eye(k).ravel(), np.zeros(k)]),
        penalty=np.concatenate([off_diagonal.ravel(), np.full(k, penalties[1] / k)]),
        y=y,
        sample_weight=sample_weight,
        max_iter=max_iter,
    )
    return LinearFit(theta[:-k].reshape(k, k), theta[-k:], n_iter)


def fit_structured(
    scores: NDArray, y: NDArray, sample_weight: NDArray | None, max_iter: int
) -> LinearFit:
    """Return W, b of least mean log-loss of softmax(scores @ W.T + b) near W = I and b = 0.

    The ridge of Berta et al.: k / n on the intercepts and on the deviations of the diagonal from
    1, k (k - 1) / n off the diagonal, for k classes and samples of total weight n.
    """
    k = scores.shape[1]
    n = len(y) if sample_weight is None else float(sample_weight.sum())
    # A row a class: the k entries of W, then the intercept.
    ridge = np.full((k, k + 1), k * (k - 1) / n)
    np.fill_diagonal(ridge, k / n)
    ridge[:, k] = k / n
    # In units in which the Hessian at the start has a diagonal of ones, a few conjugate gradients
    # are enough, whether the ridge rules (many classes) or the log-loss (many samples). Units need
    # not be exact: weights are left out.
    proba = softmax(scores, axis=1)
    squares = np.column_stack([scores**2, np.ones(len(scores))])
    curvature = 2 * ridge + (proba * (1 - proba)).T @ squares / len(y)
    unit = 1 / np.sqrt(curvature)

    def forward(theta: NDArray) -> NDArray:
        deviation = theta.reshape(k, k + 1) * unit
        return scores @ deviation[:, :k].T + deviation[:, k]

    def adjoint(logits: NDArray) -> NDArray:
        gradient = np.column_stack([logits.T @ scores, logits.sum(axis=0)])
        return (gradient * unit).ravel()

    # With W = I + D the logits are S + S D^T + b: theta, in those units, is (D, b).
    theta, n_iter = _minimize_log_loss(
        forward,
        adjoint,
        offset=scores,
        start=np.zeros(k * (k + 1)),
        penalty=(ridge * unit**2).ravel(),
        y=y,
        sample_weight=sample_weight,
        max_iter=max_iter,
    )
    deviation = theta.reshape(k, k + 1) * unit
    return LinearFit(np.eye(k) + deviation[:, :k], deviation[:, k], n_iter)


def _minimize_log_loss(
    forward: Callable[[NDArray], NDArray],
    adjoint: Callable[[NDArray], NDArray],
    *,
    start: NDArray,
    penalty: NDArray,
    y: NDArray,
    sample_weight: NDArray | None,
    max_iter: int,
    offset: NDArray | float = 0.0,
) -> tuple[NDArray, int]:
    """Minimize the mean log-loss of softmax(offset + forward(theta)) plus ``penalty @ theta**2``.

    `forward` is linear and `adjoint` its transpose, so that the Hessian is applied in one pass of
    each. The problem is convex; shifts that softmax does not see stay as at the start.
    """
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    fraction = (weight / weight.sum())[:, None]
    label = np.arange(len(y)), y
    latest: list[NDArray] = [np.full_like(start, np.nan), np.empty(0)]

    def log_proba(theta: NDArray) -> NDArray:
        # The solver asks for the loss, the gradient and many products at the same theta.
        if not np.array_equal(latest[0], theta):
            latest[:] = theta.copy(), log_softmax(offset + forward(theta), axis=1)
        return latest[1]

    def loss(theta: NDArray) -> float:
        return -float(fraction[:, 0] @ log_proba(theta)[label]) + float(penalty @ theta**2)

    def gradient(theta: NDArray) -> NDArray:
        # The gradient in the logits of a sample is p - e, e the one-hot vector of its label.
        residual = np.exp(log_proba(theta))
        residual[label] -= 1
        return adjoint(fraction * residual) + 2 * penalty * theta

    def hessian_product(theta: NDArray, direction: NDArray) -> NDArray:
        proba = np.exp(log_proba(theta))
        change = forward(direction)
        # The Hessian of the log-loss in the logits of a sample is diag(p) - p p^T.
        change -= np.sum(proba * change, axis=1, keepdims=True)
        return adjoint(fraction * proba * change) + 2 * penalty * direction

    solution = minimize(
        loss,
        start,
        jac=gradient,
        hessp=hessian_product,
        method="trust-ncg",
        options={"maxiter": max_iter, "gtol": _GRADIENT_TOLERANCE},
    )
    if solution.nit >= max_iter:
        warnings.warn(
            f"The fit of the calibrator stopped after max_iter={max_iter} iterations at a "
            f"gradient of {np.abs(solution.jac).max():.1g}; increase max_iter or the penalties.",
            ConvergenceWarning,
            stacklevel=2,
        )
    # scikit-learn wants n_iter_ >= 1, also where the start is the solution.
    return solution.x, max(1, solution.nit)
