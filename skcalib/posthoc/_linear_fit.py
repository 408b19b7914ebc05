"""The fit of the linear calibrators: a softmax of a linear map, mixed with a uniform component.

The probability of the label is ``(1 - w) softmax(x + F theta)_y + w / K``. x are scores after
temperature scaling; theta is the difference of the map from the identity; F holds the features of
every class: for a vector its own score and 1, for a matrix all scores and 1. Let r be the
posterior probability that a label comes from the map, and not from the uniform component. Gradient
and Hessian in theta are then those of a softmax regression with weights r (the Hessian is that of
EM's upper bound of the log-loss), so every Newton step goes downhill.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..metrics._temperature_fit import (
    compute_uniform_prior,
    find_uniform_weight,
    update_uniform_weight,
)
from ..utils._numeric import FEW_COLUMNS, compute_row_max, compute_row_sum
from ..utils._output import warn

# The search starts on a subset with this many samples per entry of theta.
_SAMPLES_PER_ENTRY = 100
# Stop if the next step would lower the mean log-loss by less than this.
_LEAST_GAIN = 1e-9
_LEAST_GAIN_OF_SUBSET = 1e-5
_SHORTEST_STEP = 1e-6
# For sums over chunks, whose Hessian is approximate.
_LEAST_GAIN_OF_SUMS = 1e-12
_LEAST_CHANGE_OF_WEIGHT, _LEAST_CURVATURE = 1e-5, 0.1
# Added to the Hessian, relative to its mean diagonal: it is 0 for a class that is never likely.
_DAMPING = 1e-9
_MOST_CONJUGATE_GRADIENTS = 50
# Memory: a search in float64 holds six matrices of theta's size, 0.8 GB at this many entries.
_MOST_ENTRIES = 2**24
# Numbers in a block, in float64 with its intermediate results in cache; for speed and memory.
FIT_BLOCK = 2**16
# With more scores than this, steps are computed in float32, for speed and memory.
_LARGE = 2**19


class LinearFit(NamedTuple):
    """Slopes, (K,) or (K, K), intercepts (K,), weight of the uniform component, iterations."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    uniform_weight: float
    n_iter: int


class Ridge(NamedTuple):
    """Strengths of the penalties that draw a map to the identity; 1 is the paper's."""

    diagonal: float = 1.0
    off_diagonal: float = 1.0
    intercept: float = 1.0

    def of_entries(self, k: int, n: float, *, vector: bool) -> _Penalty:
        """Return the penalty of theta, for k classes and samples of total weight n.

        The factors are k / n on the diagonal and for the intercepts, k (k - 1) / n off the
        diagonal, where there are k - 1 times as many entries.
        """
        if not vector and k * (k + 1) > _MOST_ENTRIES:
            raise ValueError(
                f"X must have fewer columns for a matrix, which has {k * (k + 1):,} parameters "
                f"for {k:,} classes: use StructuredVectorScaling or TemperatureScaling."
            )
        diagonal, intercept = self.diagonal * k / n, self.intercept * k / n
        return _Penalty(diagonal, self.off_diagonal * k * (k - 1) / n, intercept, vector)


class _Penalty(NamedTuple):
    """Factors of the squared entries of theta that are added to the mean log-loss."""

    diagonal: float
    off_diagonal: float
    intercept: float
    vector: bool

    def fill_gradient(self, theta: NDArray, out: NDArray) -> NDArray:
        """Fill an array with the gradient in theta, and return it."""
        if self.vector:
            return np.multiply(theta, (2 * self.diagonal, 2 * self.intercept), out=out)
        diagonal = np.arange(len(theta))
        np.multiply(theta, 2 * self.off_diagonal, out=out)
        out[diagonal, diagonal] = 2 * self.diagonal * theta[diagonal, diagonal]
        out[:, -1] = 2 * self.intercept * theta[:, -1]
        return out

    def at(self, theta: NDArray) -> float:
        gradient = self.fill_gradient(theta, np.empty_like(theta))
        return 0.5 * float(np.vdot(gradient, theta))


def fit_linear(
    x: NDArray,
    y: NDArray,
    sample_weight: NDArray | None,
    ridge: Ridge,
    *,
    vector: bool,
    uniform_weight: float | None,
    max_iter: int,
    near: LinearFit | None = None,
) -> LinearFit:
    """Return the map of least penalized mean log-loss.

    ``uniform_weight=None`` means no uniform component. With `near`, a fit to nearly the same
    samples, the search starts there and stops earlier.
    """
    k = x.shape[1]
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    theta, least_gain = np.zeros((k, 2 if vector else k + 1)), _LEAST_GAIN
    stride = len(y) // (theta.size * _SAMPLES_PER_ENTRY)
    if near is not None:
        slopes = near.coef[:, None] - 1 if vector else near.coef - np.eye(k)
        theta, least_gain = np.column_stack([slopes, near.intercept]), _LEAST_GAIN_OF_SUBSET
        uniform_weight = near.uniform_weight if uniform_weight else None
    elif stride >= 3:
        # Search on a strided subset first: then few passes over all samples are needed.
        some = slice(None, None, stride)
        problem = _Problem(x[some], y[some], weight[some], ridge, vector, weight.sum())
        theta, uniform_weight, _, _ = _minimize(
            problem, theta, uniform_weight, max_iter, _LEAST_GAIN_OF_SUBSET
        )
    problem = _Problem(x, y, weight, ridge, vector, weight.sum())
    theta, uniform_weight, n_iter, gain = _minimize(
        problem, theta, uniform_weight, max_iter, least_gain
    )
    _warn_of_end(n_iter, max_iter, gain)
    return _make_fit(theta, uniform_weight, n_iter, vector)


def _warn_of_end(n_iter: int, max_iter: int, gain: float) -> None:
    if n_iter >= max_iter:
        warn(
            f"The fit of the calibrator stopped after max_iter={max_iter} iterations, while the "
            f"next one could still lower the log-loss by {gain:.1g}; increase max_iter or the "
            "penalties.",
            ConvergenceWarning,
        )


def _make_fit(
    theta: NDArray, uniform_weight: float | None, n_iter: int, vector: bool
) -> LinearFit:
    k = len(theta)
    slopes = 1 + theta[:, 0] if vector else theta[:, :k].copy()
    if not vector:
        slopes[np.diag_indices(k)] += 1
    # A softmax is invariant to a shift of all intercepts.
    intercept = theta[:, -1] - theta[:, -1].mean()
    return LinearFit(slopes, intercept, uniform_weight or 0.0, max(1, n_iter))


def _minimize(
    problem: _Problem,
    theta: NDArray,
    uniform_weight: float | None,
    max_iter: int,
    least_gain: float,
) -> tuple[NDArray, float | None, int, float]:
    """Change theta in place; return it, the weight of the uniform part, steps, the last gain."""
    gain, length, n_iter = np.inf, 1.0, 0
    state = problem.at(theta, uniform_weight)
    while n_iter < max_iter and gain > least_gain and length > _SHORTEST_STEP:
        n_iter += 1
        step, gain = problem.solve(problem.gradient(theta, state), state)
        length = 1.0
        theta -= step
        while length > _SHORTEST_STEP:
            latest = problem.at(theta, state.uniform_weight)
            # A short enough step lowers the loss, up to rounding.
            if latest.loss <= state.loss - 1e-4 * length * gain + 1e-15 * abs(state.loss):
                state = latest
                break
            length /= 2
            step /= 2
            theta += step
        else:
            theta += step
        del step  # for memory, of the next one
    return theta, state.uniform_weight, n_iter, gain


class LinearSums(NamedTuple):
    """Sums over samples at some theta and weight w of the uniform component.

    The log-loss without penalty and prior, its slopes in theta (K, d), its first and second
    derivatives in w, and the mixed ones (K, d).
    """

    loss: float
    slopes: NDArray[np.float64]
    by_weight: float
    twice_by_weight: float
    mixed: NDArray[np.float64]

    def __add__(self, other: LinearSums) -> LinearSums:  # type: ignore[override]
        return LinearSums(
            self.loss + other.loss,
            self.slopes + other.slopes,
            self.by_weight + other.by_weight,
            self.twice_by_weight + other.twice_by_weight,
            self.mixed + other.mixed,
        )


def compute_linear_sums(
    x: NDArray, y: NDArray, weight: NDArray, theta: NDArray, w: float | None, *, vector: bool
) -> LinearSums:
    """Return the sums over some samples."""
    return _Problem(x, y, weight, Ridge(), vector, 1.0).sums_at(theta, w)


def fit_linear_by_sums(
    sums_at: Callable[[NDArray, float | None], LinearSums],
    sample: tuple[NDArray, NDArray, NDArray],
    ridge: Ridge,
    n: float,
    *,
    vector: bool,
    uniform_weight: float | None,
    max_iter: int,
) -> LinearFit:
    """Return the same as :func:`fit_linear`, from sums over all samples, of total weight n.

    `sums_at` makes one pass over all samples, for loss and gradient. The Hessian only chooses the
    direction, so it is computed from `sample`: (scores, columns of the labels, weights).
    """
    k = sample[0].shape[1]
    problem = _Problem(*sample, ridge, vector, n)
    theta, w, _, _ = _minimize(
        problem, np.zeros((k, 2 if vector else k + 1)), uniform_weight, max_iter, _LEAST_GAIN
    )

    def loss_of(theta: NDArray, w: float | None, sums: LinearSums) -> float:
        loss = sums.loss / n + problem.penalty.at(theta)
        if w is None:
            return loss
        pseudo = compute_uniform_prior(n)
        return loss - (pseudo * np.log(w) + (1 - pseudo) * np.log1p(-w)) / n

    sums = sums_at(theta, w)
    n_iter, gain, moved = 0, np.inf, True
    while n_iter < max_iter and (gain > _LEAST_GAIN_OF_SUMS or moved):
        n_iter += 1
        step, change, gain = _find_step_by_sums(problem, theta, w, sums, n)
        moved = w is not None and abs(change) > max(_LEAST_CHANGE_OF_WEIGHT * w, 1e-9)
        before, length = loss_of(theta, w, sums), 1.0
        while length > _SHORTEST_STEP:
            candidate, v = theta + length * step, None if w is None else w + length * change
            found = sums_at(candidate, v)
            if loss_of(candidate, v, found) <= before + 1e-13 * abs(before):
                theta, w, sums = candidate, v, found
                break
            length /= 2
        else:  # no descent: the sample is unlike the rest
            n_iter = max_iter
    _warn_of_end(n_iter, max_iter, gain)
    return _make_fit(theta, w, n_iter, vector)


def _find_step_by_sums(
    problem: _Problem, theta: NDArray, w: float | None, sums: LinearSums, n: float
) -> tuple[NDArray[np.float64], float, float]:
    """Return the steps in theta and in w, and twice the gain that the first one predicts."""
    gradient = problem.penalty.fill_gradient(theta, np.empty_like(theta)) + sums.slopes / n
    state = problem.state_at(theta, w)
    along, gain = problem.solve(gradient, state, at_best=False, least=_LEAST_GAIN_OF_SUMS)
    if w is None:
        return -along, 0.0, gain
    # As w moves by dw, the best theta moves by -across dw.
    mixed = sums.mixed / n
    slope = sums.by_weight - n * float(np.vdot(mixed, along))
    across, saved = problem.solve(mixed, state, at_best=False, least=_LEAST_GAIN_OF_SUMS)
    # With the sample's Hessian, the difference may be too small or negative.
    curvature = sums.twice_by_weight - n * saved
    curvature = max(curvature, _LEAST_CURVATURE * sums.twice_by_weight)
    change = update_uniform_weight(slope, curvature, w, n) - w
    return -along - across * change, change, gain


class _State(NamedTuple):
    """At some theta: r (n,) or 1, the weight w of the uniform component, the loss.

    The probabilities (n, K) are those of the problem, at the theta of its latest state.
    """

    r: NDArray | float
    uniform_weight: float | None
    loss: float


class _Problem:
    """The penalized mean log-loss as a function of theta (K, d), one row per class.

    A pass over the samples goes block by block, so that intermediate results stay in cache.
    """

    def __init__(
        self, x: NDArray, y: NDArray, weight: NDArray, ridge: Ridge, vector: bool, n: float
    ) -> None:
        self.y, self.vector = y, vector
        # With few classes, store columns contiguously: loops over short rows are slow.
        self.x = np.asfortranarray(x) if x.shape[1] <= FEW_COLUMNS else x
        # Steps need not be exact, so large problems compute them in float32.
        self.dtype = np.dtype(np.float32 if x.size > _LARGE else np.float64)
        self.proba = np.empty_like(self.x, self.dtype)
        self.weight, self.n = weight, weight.sum()
        self.fraction = weight / self.n
        self.penalty = ridge.of_entries(x.shape[1], n, vector=vector)
        # Products of matrices are fast where no side is short.
        k = x.shape[1]
        self.shape = k, 2 if vector else k + 1
        step = max(1 if vector else k // 4, FIT_BLOCK // k)
        self.blocks = [slice(start, start + step) for start in range(0, len(y), step)]
        self.parts = [slice(start, start + step) for start in range(0, k, step)]

    def at(self, theta: NDArray, w: float | None) -> _State:
        """Return the state at theta and the best weight, searched from w."""
        log_q = self._softmax(theta)
        penalty = self.penalty.at(theta)
        if w is None:
            return _State(1.0, None, penalty - float(self.fraction @ log_q))
        q, chance = np.exp(log_q), 1 / len(theta)
        w = find_uniform_weight(q, chance, self.fraction, self.n, w)
        mixed, pseudo = (1 - w) * q + w * chance, compute_uniform_prior(self.n)
        prior = (pseudo * np.log(w) + (1 - pseudo) * np.log1p(-w)) / self.n
        loss = penalty - prior - float(self.fraction @ np.log(mixed))
        return _State((1 - w) * q / mixed, w, loss)

    def sums_at(self, theta: NDArray, w: float | None) -> LinearSums:
        """Return sums at the given theta and w, without penalty and prior."""
        log_q = self._softmax(theta)
        if w is None:
            slopes = self._add_slopes(np.zeros(self.shape), self.weight)
            return LinearSums(-float(self.weight @ log_q), slopes, 0.0, 0.0, np.zeros_like(slopes))
        q, chance = np.exp(log_q), 1 / len(theta)
        mixed = (1 - w) * q + w * chance
        r, gain = (1 - w) * q / mixed, (q - chance) / mixed
        return LinearSums(
            -float(self.weight @ np.log(mixed)),
            self._add_slopes(np.zeros(self.shape), self.weight * r),
            float(self.weight @ gain),
            float(self.weight @ gain**2),
            self._add_slopes(np.zeros(self.shape), self.weight * r * (1 - r) / (w * (w - 1))),
        )

    def state_at(self, theta: NDArray, w: float | None) -> _State:
        """Return the state at the given theta and w, without the loss."""
        log_q = self._softmax(theta)
        if w is None:
            return _State(1.0, None, np.nan)
        q = (1 - w) * np.exp(log_q)
        return _State(q / (q + w / len(theta)), w, np.nan)

    def _softmax(self, theta: NDArray) -> NDArray[np.float64]:
        """Set the probabilities of all classes; return the logarithms of those of the labels."""
        log_q = np.empty(len(self.y))
        for rows in self.blocks:
            x = self.x[rows].astype(np.float64, copy=False)
            z = self._added(theta, x)
            z += x
            z -= compute_row_max(z)[:, None]
            of_label = z[np.arange(len(z)), self.y[rows]]
            total = compute_row_sum(np.exp(z, out=z))
            np.divide(z, total[:, None], out=self.proba[rows], casting="same_kind")
            log_q[rows] = of_label - np.log(total)
        return log_q

    def gradient(self, theta: NDArray, state: _State) -> NDArray:
        """Return the gradient in theta (that in w is 0 at the best w), in the dtype of steps."""
        total = self.penalty.fill_gradient(theta, np.empty_like(theta))
        self._add_slopes(total, self.fraction * state.r)
        return self._narrow(total)

    def _narrow(self, total: NDArray) -> NDArray:
        """Return an array of theta's shape in the dtype of steps; for a vector it is small."""
        return total if self.vector else total.astype(self.dtype, copy=False)

    def _add_slopes(self, total: NDArray, weight: NDArray) -> NDArray:
        """Add the gradient in theta of the weighted sum of -log p of the labels; return it."""
        for rows in self.blocks:
            # By the logits of a sample, it is p less the one-hot label.
            slope = self.proba[rows].astype(np.float64)
            slope[np.arange(len(slope)), self.y[rows]] -= 1
            slope *= weight[rows, None]
            self._add_adjoint(total, slope, self.x[rows].astype(np.float64, copy=False))
        return total

    def solve(
        self, gradient: NDArray, state: _State, *, at_best: bool = True, least: float = _LEAST_GAIN
    ) -> tuple[NDArray, float]:
        """Return approximately the inverse Hessian times the gradient, by conjugate gradients.

        And their product: twice the gain that the quadratic approximation predicts. The gradient
        is overwritten.

        The Hessian is that of the log-loss at the best weight w for every theta or, without
        `at_best`, at a fixed w. The search stops where it would gain less than `least` / 1000.
        """
        r_weight = (self.fraction * state.r).astype(self.dtype)
        product = self._hessian(r_weight, state, at_best)
        diagonal, scale = self._scale(r_weight)
        # For memory, `other` holds one array after the other.
        residual, solution, other = gradient, np.zeros_like(gradient), np.empty_like(gradient)
        direction = scale(residual, np.empty_like(gradient))
        size, gain = float(np.vdot(residual, direction)), 0.0
        # No more precise than the tolerance of the outer loop.
        target = max(size * min(0.5, np.sqrt(size)) ** 2, least / 1000)
        for _ in range(_MOST_CONJUGATE_GRADIENTS):
            if size <= target:
                break
            scaled = np.multiply(direction, diagonal, out=other)
            least_curvature = _DAMPING * float(np.vdot(scaled, direction))
            along = product(direction, other)
            curvature = float(np.vdot(direction, along))
            if curvature <= least_curvature:
                # A uniform component can make the Hessian indefinite: stop at negative curvature.
                return (solution, gain) if gain > 0 else (direction, size)
            length = size / curvature
            gain += length * size
            residual -= np.multiply(along, length, out=along)
            solution += np.multiply(direction, length, out=other)
            scaled = scale(residual, other)
            before, size = size, float(np.vdot(residual, scaled))
            direction *= size / before
            direction += scaled
        return solution, gain

    def _scale(self, r_weight: NDArray) -> tuple[NDArray, Callable[[NDArray, NDArray], NDArray]]:
        """Return the Hessian's diagonal, and the preconditioner as a function that fills an array.

        For a vector, the preconditioner inverts the 2 x 2 block of slope and intercept of every
        class: if the scores are far from 0 on average, the two are nearly collinear.
        """
        diagonal, cross = np.empty(self.shape), np.zeros(self.shape[0])
        self.penalty.fill_gradient(np.broadcast_to(1.0, self.shape), diagonal)
        for rows in self.blocks:
            x, p = self.x[rows].astype(self.dtype, copy=False), self.proba[rows]
            curvature = r_weight[rows, None] * p * (1 - p)
            self._add_adjoint(diagonal, curvature, x**2)
            if self.vector:
                cross += (curvature * x).sum(axis=0)
        # No curvature is left where probabilities are 0 and 1. The square of 1e-100 is above 0.
        diagonal += max(_DAMPING * diagonal.mean(), 1e-100)
        if not self.vector:
            diagonal = self._narrow(diagonal)
            return diagonal, lambda slope, out: np.divide(slope, diagonal, out=out)
        inverse = np.stack([diagonal[:, 1], -cross, -cross, diagonal[:, 0]], axis=1)
        inverse /= (diagonal.prod(axis=1) - cross**2)[:, None]
        inverse = inverse.reshape(-1, 2, 2)

        def scale(slope: NDArray, out: NDArray) -> NDArray:
            np.matmul(inverse, slope[:, :, None], out=out[:, :, None])
            return out

        return diagonal, scale

    def _hessian(
        self, r_weight: NDArray, state: _State, at_best: bool
    ) -> Callable[[NDArray, NDArray], NDArray]:
        """Return the product of the Hessian with a direction, as a function that fills an array.

        By the logits of a sample, it is r (diag(p) - p p^T). Two terms make it smaller: r changes
        with theta, by r (1 - r) times the gradient of the sample, and so does the best w.
        """
        r, w = state.r, state.uniform_weight
        r_variance = np.zeros_like(r_weight)
        if w is not None:
            r_variance[:] = self.fraction * r * (1 - r)
        if w is not None and at_best:
            # The second derivative in w, and the mixed one.
            pseudo = compute_uniform_prior(self.n)
            curvature = self.fraction @ ((r / (1 - w) - (1 - r) / w) ** 2)
            curvature += (pseudo / w**2 + (1 - pseudo) / (1 - w) ** 2) / self.n
            mixed = self._narrow(
                self._add_slopes(np.zeros(self.shape), r_variance / (w * (1 - w)))
            )

        def product(direction: NDArray, out: NDArray) -> NDArray:
            result = self.penalty.fill_gradient(direction, out)
            narrow = direction.astype(self.dtype, copy=False)
            for rows in self.blocks:
                x, p = self.x[rows].astype(self.dtype, copy=False), self.proba[rows]
                label = np.arange(len(p)), self.y[rows]
                change = self._added(narrow, x)
                mean = np.einsum("ik,ik->i", p, change)
                lost = r_variance[rows] * (mean - change[label])
                change *= r_weight[rows, None]
                change -= (r_weight[rows] * mean + lost)[:, None]
                change *= p
                change[label] += lost
                self._add_adjoint(result, change, x)
            if w is not None and at_best:
                result -= mixed * (np.vdot(mixed, direction) / curvature)
            return result

        return product

    def _added(self, theta: NDArray, x: NDArray) -> NDArray:
        """Return F theta, which is added to the logits."""
        if self.vector:
            change = x * theta[:, 0]
        else:
            change = x @ theta[:, :-1].T if x.flags.c_contiguous else (theta[:, :-1] @ x.T).T
        change += theta[:, -1]
        return change

    def _add_adjoint(self, total: NDArray, slope: NDArray, x: NDArray) -> None:
        """Add the gradient in theta, given that in the logits."""
        if self.vector:
            total[:, 0] += np.einsum("ik,ik->k", slope, x)
        else:
            for part in self.parts:  # for memory
                total[part, :-1] += slope[:, part].T @ x
        total[:, -1] += slope.sum(axis=0)
