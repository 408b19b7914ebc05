"""Multinomial regression on the scores of a model: the fit behind the matrix calibrators."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

_GRADIENT_TOLERANCE = 1e-8
# Where nothing is penalized and a class is never likely, the log-loss hardly bends.
_LEAST_CURVATURE = 1e-12
# Of the steps: more than the rounding of single precision, which must not look like a saddle.
_DAMPING = 1e-6


class LinearFit(NamedTuple):
    """Slopes, (K,) or (K, K), intercepts (K,) and the number of iterations."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    n_iter: int


class Ridge(NamedTuple):
    """Strengths that draw a matrix to the identity and its intercepts to 0; 1 as in the paper."""

    diagonal: float = 1.0
    off_diagonal: float = 1.0
    intercept: float = 1.0

    def of_entries(self, k: int, n: float) -> NDArray[np.float64]:
        """Return the penalty of every squared entry of (W - I, b), beside the mean log-loss.

        For k classes and samples of total weight n: k / n on the diagonal and the intercepts,
        k (k - 1) / n off the diagonal, where there are k - 1 times as many entries.
        """
        penalty = np.full((k, k + 1), self.off_diagonal * k * (k - 1) / n)
        np.fill_diagonal(penalty, self.diagonal * k / n)
        penalty[:, k] = self.intercept * k / n
        return penalty


def fit_matrix(
    scores: NDArray,
    y: NDArray,
    sample_weight: NDArray | None,
    max_iter: int,
    ridge: Ridge,
) -> LinearFit:
    """Return W, b of least penalized mean log-loss of softmax(scores @ W.T + b)."""
    k = scores.shape[1]
    objective = _Objective(scores, y, sample_weight, ridge)
    solution = minimize(
        objective.loss,
        np.zeros(k * (k + 1)),
        jac=objective.gradient,
        hessp=objective.hessian_product,
        method="trust-ncg",
        options={"maxiter": max_iter, "gtol": _GRADIENT_TOLERANCE},
    )
    if solution.nit >= max_iter:
        warn_of_max_iter(max_iter, np.abs(solution.jac).max())
    deviation = solution.x.reshape(k, k + 1) * objective.unit
    intercept = deviation[:, k] - deviation[:, k].mean()
    # scikit-learn wants n_iter_ >= 1, also where the start is the solution.
    return LinearFit(np.eye(k) + deviation[:, :k], intercept, max(1, solution.nit))


def warn_of_max_iter(max_iter: int, gradient: float) -> None:
    """Tell that the solver has not converged."""
    warnings.warn(
        f"The fit of the calibrator stopped after max_iter={max_iter} iterations at a "
        f"gradient of {gradient:.1g}; increase max_iter or the penalties.",
        ConvergenceWarning,
        stacklevel=2,
    )


class _Objective:
    """The penalized mean log-loss of softmax(S W^T + b) as a function of theta.

    Theta holds (W - I, b), a row a class, in units in which the Hessian at the start has a
    diagonal of ones: a few conjugate gradients are then enough, whether the ridge rules (many
    classes) or the log-loss (many samples). The problem is convex; shifts that softmax does not
    see stay as at the start.
    """

    def __init__(
        self, scores: NDArray, y: NDArray, sample_weight: NDArray | None, ridge: Ridge
    ) -> None:
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        self.scores = scores
        # A step that is not exact is corrected by the next one: half the precision, half the time.
        self.narrow = scores.astype(np.float32)
        self.label = np.arange(len(y)), y
        self.fraction = (weight / weight.sum())[:, None]
        penalty = ridge.of_entries(scores.shape[1], weight.sum())
        proba = np.exp(log_softmax(scores, axis=1))
        squares = np.column_stack([scores**2, np.ones(len(scores))])
        curvature = 2 * penalty + (self.fraction * proba * (1 - proba)).T @ squares
        self.unit = 1 / np.sqrt(np.maximum(curvature, _LEAST_CURVATURE))
        self.penalty = (penalty * self.unit**2).ravel()
        self._theta = np.full(penalty.size, np.nan)

    def loss(self, theta: NDArray) -> float:
        mean = -float(self.fraction[:, 0] @ self._log_proba(theta)[self.label])
        return mean + float(self.penalty @ theta**2)

    def gradient(self, theta: NDArray) -> NDArray:
        # The gradient in the logits of a sample is p - e, e the one-hot vector of its label.
        residual = np.exp(self._log_proba(theta))
        residual[self.label] -= 1
        return self._adjoint(self.fraction * residual, self.scores) + 2 * self.penalty * theta

    def hessian_product(self, theta: NDArray, direction: NDArray) -> NDArray:
        proba = np.exp(self._log_proba(theta), dtype=np.float32, casting="same_kind")
        change = self._change(direction, self.narrow)
        # The Hessian of the log-loss in the logits of a sample is diag(p) - p p^T.
        change -= np.sum(proba * change, axis=1, keepdims=True)
        change *= proba
        change *= self.fraction.astype(np.float32)
        return self._adjoint(change, self.narrow) + (2 * self.penalty + _DAMPING) * direction

    def _log_proba(self, theta: NDArray) -> NDArray:
        # The solver asks for the loss, the gradient and many products at the same theta.
        if not np.array_equal(self._theta, theta):
            self._theta = theta.copy()
            self._latest = log_softmax(self.scores + self._change(theta, self.scores), axis=1)
        return self._latest

    def _change(self, theta: NDArray, scores: NDArray) -> NDArray:
        """Return S (W - I)^T + b: what theta adds to the logits."""
        k = scores.shape[1]
        deviation = (theta.reshape(k, k + 1) * self.unit).astype(scores.dtype)
        change = scores @ deviation[:, :k].T
        change += deviation[:, k]
        return change

    def _adjoint(self, residual: NDArray, scores: NDArray) -> NDArray[np.float64]:
        """Return the gradient in theta of what has the gradient `residual` in the logits."""
        gradient = np.column_stack([residual.T @ scores, residual.sum(axis=0, dtype=np.float64)])
        return (gradient * self.unit).ravel()
