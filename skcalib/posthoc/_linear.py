"""Softmax of a linear map of scores beside a uniform component: the fit of the linear calibrators.

The probability of the label is ``(1 - w) softmax(x + F theta)_y + w / K``: x are scores at their
temperature, theta holds what the map adds to the identity, and F the features of every class: of a
vector map its own score and 1, of a matrix map all scores and 1. With r, the probability that a
label came from the map and not from the uniform component (EM), gradient and Hessian are those of
a softmax regression with weights r; the Hessian is that of EM's upper bound of the log-loss, and
so every step of Newton's method with it is one downhill.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..utils.computing._blocks import BLOCK_SIZE, FEW_COLUMNS, row_max, row_sum
from ..utils.computing._temperature import (
    best_uniform_weight,
    next_uniform_weight,
    uniform_prior,
)
from ..utils.meta._warnings import warn

# Samples an entry of theta from which the search starts on a subset.
_SAMPLES_PER_ENTRY = 100
# What the next step would save of the mean log-loss.
_LEAST_GAIN = 1e-9
_LEAST_GAIN_OF_SUBSET = 1e-5
_SHORTEST_STEP = 1e-6
# Of sums over chunks, whose steps are not quite Newton's.
_LEAST_GAIN_OF_SUMS = 1e-12
_LEAST_CHANGE_OF_WEIGHT, _LEAST_BEND = 1e-5, 0.1
# Relative to the mean diagonal of the Hessian: a class that is never likely has no slope.
_DAMPING = 1e-9
_MOST_CONJUGATE_GRADIENTS = 50
# Memory: the search holds about ten matrices, which of this size take 1.3 GB.
_MOST_ENTRIES = 2**24
# Scores above which steps are found in half the precision, for speed.
_LARGE = 2**20


class LinearFit(NamedTuple):
    """Slopes, (K,) or (K, K), intercepts (K,), weight of the uniform component, iterations."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    uniform_weight: float
    n_iter: int


class Ridge(NamedTuple):
    """Strengths that draw a map to the identity and its intercepts to 0; 1 as in the paper."""

    diagonal: float = 1.0
    off_diagonal: float = 1.0
    intercept: float = 1.0

    def of_entries(self, k: int, n: float, *, vector: bool) -> NDArray[np.float64]:
        """Return the penalty of every squared entry of theta, beside the mean log-loss.

        For k classes and samples of total weight n: k / n on the diagonal and the intercepts,
        k (k - 1) / n off the diagonal, where there are k - 1 times as many entries.
        """
        if not vector and k * (k + 1) > _MOST_ENTRIES:
            raise ValueError(
                f"X must have fewer columns for a matrix, which has {k * (k + 1):,} numbers to "
                f"learn for {k:,} classes: StructuredVectorScaling and TemperatureScaling are for "
                "as many."
            )
        if vector:
            return np.tile([self.diagonal, self.intercept], (k, 1)) * k / n
        penalty = np.full((k, k + 1), self.off_diagonal * k * (k - 1) / n)
        np.fill_diagonal(penalty, self.diagonal * k / n)
        penalty[:, k] = self.intercept * k / n
        return penalty


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
    """Return the map of least penalized mean log-loss; no uniform component where it is None.

    The search begins at `near`, the fit to nearly the same samples, and is content with less then.
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
        # A strided subset leads near to the optimum, so that the rest is read a few times only.
        some = slice(None, None, stride)
        problem = _Problem(x[some], y[some], weight[some], ridge, vector, weight.sum())
        theta, uniform_weight, _, _ = _newton(
            problem, theta, uniform_weight, max_iter, _LEAST_GAIN_OF_SUBSET
        )
    problem = _Problem(x, y, weight, ridge, vector, weight.sum())
    theta, uniform_weight, n_iter, gain = _newton(
        problem, theta, uniform_weight, max_iter, least_gain
    )
    _warn_of_end(n_iter, max_iter, gain)
    return _as_fit(theta, uniform_weight, n_iter, vector)


def _warn_of_end(n_iter: int, max_iter: int, gain: float) -> None:
    if n_iter >= max_iter:
        warn(
            f"The fit of the calibrator stopped after max_iter={max_iter} iterations, the last of "
            f"which promised to save {gain:.1g} of the log-loss; increase max_iter or the "
            "penalties.",
            ConvergenceWarning,
        )


def _as_fit(theta: NDArray, uniform_weight: float | None, n_iter: int, vector: bool) -> LinearFit:
    k = len(theta)
    slopes = 1 + theta[:, 0] if vector else np.eye(k) + theta[:, :k]
    # Softmax does not see a shift of the intercepts.
    intercept = theta[:, -1] - theta[:, -1].mean()
    return LinearFit(slopes, intercept, uniform_weight or 0.0, max(1, n_iter))


def _newton(
    problem: _Problem,
    theta: NDArray,
    uniform_weight: float | None,
    max_iter: int,
    least_gain: float,
) -> tuple[NDArray, float | None, int, float]:
    """Return theta, the weight of the uniform component, the number of steps and the last gain."""
    gain, length, n_iter = np.inf, 1.0, 0
    state = problem.at(theta, uniform_weight)
    while n_iter < max_iter and gain > least_gain and length > _SHORTEST_STEP:
        n_iter += 1
        gradient = problem.gradient(theta, state)
        step = -problem.solve(gradient, state)
        # Twice what the quadratic approximation promises to save.
        gain = -float(np.vdot(gradient, step))
        length = 1.0
        while length > _SHORTEST_STEP:
            candidate = theta + length * step
            latest = problem.at(candidate, state.uniform_weight)
            # A step that is short enough does save something, up to rounding.
            if latest.loss <= state.loss - 1e-4 * length * gain + 1e-15 * abs(state.loss):
                theta, state = candidate, latest
                break
            length /= 2
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


def linear_sums(
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
    """Return what :func:`fit_linear` does, from sums over all samples, of weight n.

    `sums_at` makes one pass. The slopes are those of all samples. The Hessian, which only leads
    the way, is that of `sample`: (scores, columns of the labels, weights) of a part of them.
    """
    k = sample[0].shape[1]
    problem = _Problem(*sample, ridge, vector, n)
    theta, w, _, _ = _newton(
        problem, np.zeros((k, 2 if vector else k + 1)), uniform_weight, max_iter, _LEAST_GAIN
    )

    def loss_of(theta: NDArray, w: float | None, sums: LinearSums) -> float:
        loss = sums.loss / n + float(np.sum(problem.penalty * theta**2))
        if w is None:
            return loss
        pseudo = uniform_prior(n)
        return loss - (pseudo * np.log(w) + (1 - pseudo) * np.log1p(-w)) / n

    sums = sums_at(theta, w)
    n_iter, gain, moved = 0, np.inf, True
    while n_iter < max_iter and (gain > _LEAST_GAIN_OF_SUMS or moved):
        n_iter += 1
        step, change, gain = _step_by_sums(problem, theta, w, sums, n)
        moved = w is not None and abs(change) > max(_LEAST_CHANGE_OF_WEIGHT * w, 1e-9)
        before, length = loss_of(theta, w, sums), 1.0
        while length > _SHORTEST_STEP:
            candidate, v = theta + length * step, None if w is None else w + length * change
            found = sums_at(candidate, v)
            if loss_of(candidate, v, found) <= before + 1e-13 * abs(before):
                theta, w, sums = candidate, v, found
                break
            length /= 2
        else:  # the part that leads the way is unlike the rest
            n_iter = max_iter
    _warn_of_end(n_iter, max_iter, gain)
    return _as_fit(theta, w, n_iter, vector)


def _step_by_sums(
    problem: _Problem, theta: NDArray, w: float | None, sums: LinearSums, n: float
) -> tuple[NDArray[np.float64], float, float]:
    """Return the steps in theta and in w, and twice what the first promises to save."""
    gradient = sums.slopes / n + 2 * problem.penalty * theta
    state = problem.state_at(theta, w)
    along = problem.solve(gradient, state, at_best=False, least=_LEAST_GAIN_OF_SUMS)
    gain = float(np.vdot(gradient, along))
    if w is None:
        return -along, 0.0, gain
    # As w moves by dw, the best theta moves by -across dw.
    mixed = sums.mixed / n
    across = problem.solve(mixed, state, at_best=False, least=_LEAST_GAIN_OF_SUMS)
    slope = sums.by_weight - n * float(np.vdot(mixed, along))
    # Of a part of the samples, the Hessian may leave too little of it.
    bend = sums.twice_by_weight - n * float(np.vdot(mixed, across))
    bend = max(bend, _LEAST_BEND * sums.twice_by_weight)
    change = next_uniform_weight(slope, bend, w, n) - w
    return -along - across * change, change, gain


class _State(NamedTuple):
    """What is known at some theta: p (n, K), r (n,) or 1, the best weight w, the loss there."""

    proba: NDArray
    r: NDArray | float
    uniform_weight: float | None
    loss: float


class _Problem:
    """The penalized mean log-loss as a function of theta (K, d), a row a class.

    Every pass over the samples goes block by block, so that what it computes of a block stays in
    the cache of the processor.
    """

    def __init__(
        self, x: NDArray, y: NDArray, weight: NDArray, ridge: Ridge, vector: bool, n: float
    ) -> None:
        self.y, self.vector = y, vector
        # Of few classes, columns in one piece: rows are too short to work along.
        self.x = np.asfortranarray(x) if x.shape[1] <= FEW_COLUMNS else x
        # A step that is not exact is corrected by the next one: where it pays, half the precision.
        dtype = np.float32 if x.size > _LARGE else np.float64
        self.narrow = self.x.astype(dtype, copy=False)
        self.weight, self.n = weight, weight.sum()
        self.fraction = weight / self.n
        self.penalty = ridge.of_entries(x.shape[1], n, vector=vector)
        # Sums over a block of a matrix map are as large as a matrix.
        step = max(1 if vector else x.shape[1], BLOCK_SIZE // x.shape[1])
        self.blocks = [slice(start, start + step) for start in range(0, len(y), step)]

    def at(self, theta: NDArray, w: float | None) -> _State:
        proba, log_q = self._softmax(theta)
        penalty = float(np.sum(self.penalty * theta**2))
        if w is None:
            return _State(proba, 1.0, None, penalty - float(self.fraction @ log_q))
        q, chance = np.exp(log_q), 1 / len(theta)
        w = best_uniform_weight(q, chance, self.fraction, self.n, w)
        mixed, pseudo = (1 - w) * q + w * chance, uniform_prior(self.n)
        prior = (pseudo * np.log(w) + (1 - pseudo) * np.log1p(-w)) / self.n
        loss = penalty - prior - float(self.fraction @ np.log(mixed))
        return _State(proba, (1 - w) * q / mixed, w, loss)

    def sums_at(self, theta: NDArray, w: float | None) -> LinearSums:
        """Return sums at theta and w as they are, without penalty and prior."""
        proba, log_q = self._softmax(theta)
        if w is None:
            slopes = self._slopes(proba, self.weight)
            return LinearSums(-float(self.weight @ log_q), slopes, 0.0, 0.0, np.zeros_like(slopes))
        q, chance = np.exp(log_q), 1 / len(theta)
        mixed = (1 - w) * q + w * chance
        r, gain = (1 - w) * q / mixed, (q - chance) / mixed
        return LinearSums(
            -float(self.weight @ np.log(mixed)),
            self._slopes(proba, self.weight * r),
            float(self.weight @ gain),
            float(self.weight @ gain**2),
            -self._slopes(proba, self.weight * r * (1 - r)) / (w * (1 - w)),
        )

    def state_at(self, theta: NDArray, w: float | None) -> _State:
        """Return what is known at theta and w as they are; the loss is not."""
        proba, log_q = self._softmax(theta)
        if w is None:
            return _State(proba, 1.0, None, np.nan)
        q = (1 - w) * np.exp(log_q)
        return _State(proba, q / (q + w / len(theta)), w, np.nan)

    def _softmax(self, theta: NDArray) -> tuple[NDArray, NDArray[np.float64]]:
        """Return the probabilities of all classes, and the logarithms of those of the labels."""
        proba, log_q = np.empty_like(self.narrow), np.empty(len(self.y))
        for rows in self.blocks:
            z = self._added(theta, self.x[rows])
            z += self.x[rows]
            z -= row_max(z)[:, None]
            of_label = z[np.arange(len(z)), self.y[rows]]
            total = row_sum(np.exp(z, out=z))
            np.divide(z, total[:, None], out=proba[rows], casting="same_kind")
            log_q[rows] = of_label - np.log(total)
        return proba, log_q

    def gradient(self, theta: NDArray, state: _State) -> NDArray[np.float64]:
        return self._slopes(state.proba, self.fraction * state.r) + 2 * self.penalty * theta

    def _slopes(self, proba: NDArray, weight: NDArray) -> NDArray[np.float64]:
        """Return the weighed sum over samples of the slopes in theta of -log p of the label."""
        total = np.zeros_like(self.penalty)
        for rows in self.blocks:
            # In the logits of a sample it is p - e, e one-hot of the label.
            slope = proba[rows].astype(np.float64)
            slope[np.arange(len(slope)), self.y[rows]] -= 1
            slope *= weight[rows, None]
            total += self._adjoint(slope, self.x[rows])
        return total

    def solve(
        self, gradient: NDArray, state: _State, *, at_best: bool = True, least: float = _LEAST_GAIN
    ) -> NDArray[np.float64]:
        """Return about the Hessian's inverse times the gradient, by conjugate gradients.

        It is that of the log-loss at the best weight of the uniform component or, unless
        `at_best`, at the weight as it is. What would gain less than a thousandth of `least` ends
        the search.
        """
        trust = (self.fraction * state.r).astype(self.narrow.dtype)
        product = self._hessian(trust, state, at_best)
        diagonal, scale = self._scale(trust, state.proba)
        solution, residual = np.zeros_like(gradient), gradient.copy()
        scaled = scale(residual)
        direction, size = scaled, float(np.vdot(residual, scaled))
        # No more precise than the tolerance of the outer loop.
        target = max(size * min(0.5, np.sqrt(size)) ** 2, least / 1000)
        for _ in range(_MOST_CONJUGATE_GRADIENTS):
            if size <= target:
                break
            along = product(direction)
            bend = float(np.vdot(direction, along))
            if bend <= _DAMPING * float(np.vdot(direction * diagonal, direction)):
                # A uniform component can make the Hessian indefinite: stop at negative curvature.
                return solution if solution.any() else scaled
            solution += size / bend * direction
            residual -= size / bend * along
            scaled = scale(residual)
            before, size = size, float(np.vdot(residual, scaled))
            direction = scaled + size / before * direction
        return solution

    def _scale(
        self, trust: NDArray, proba: NDArray
    ) -> tuple[NDArray[np.float64], Callable[[NDArray], NDArray]]:
        """Return the Hessian's diagonal, and the function that takes the scale out of a slope.

        Slope and intercept of a class are scaled together in a vector map: where the scores are
        far from 0 on average, the two are nearly collinear.
        """
        diagonal, both = 2 * self.penalty, np.zeros(len(self.penalty))
        for rows in self.blocks:
            x, p = self.narrow[rows], proba[rows]
            bend = trust[rows, None] * p * (1 - p)
            diagonal += self._adjoint(bend, x**2)
            if self.vector:
                both += (bend * x).sum(axis=0)
        diagonal += _DAMPING * diagonal.mean()
        if not self.vector:
            return diagonal, lambda slope: slope / diagonal
        inverse = np.stack([diagonal[:, 1], -both, -both, diagonal[:, 0]], axis=1)
        inverse /= (diagonal.prod(axis=1) - both**2)[:, None]
        inverse = inverse.reshape(-1, 2, 2)
        return diagonal, lambda slope: (inverse @ slope[:, :, None])[:, :, 0]

    def _hessian(
        self, trust: NDArray, state: _State, at_best: bool
    ) -> Callable[[NDArray], NDArray]:
        """Return the product of the Hessian with a direction, as a function.

        In the logits of a sample it is diag(p) - p p^T, weighed by r. As theta moves, so do r, by
        r (1 - r) times the slope of the sample, and the best w: the log-loss bends less.
        """
        proba, r, w = state.proba, state.r, state.uniform_weight
        doubt = np.zeros_like(trust)
        if w is not None:
            doubt[:] = self.fraction * r * (1 - r)
        if w is not None and at_best:
            # The second derivative in w, and the mixed one.
            pseudo = uniform_prior(self.n)
            bend = self.fraction @ ((r / (1 - w) - (1 - r) / w) ** 2)
            bend += (pseudo / w**2 + (1 - pseudo) / (1 - w) ** 2) / self.n
            mixed = self._slopes(proba, doubt) / (w * (1 - w))

        def product(direction: NDArray) -> NDArray[np.float64]:
            result = 2 * self.penalty * direction
            narrow = direction.astype(proba.dtype)
            for rows in self.blocks:
                x, p = self.narrow[rows], proba[rows]
                label = np.arange(len(p)), self.y[rows]
                change = self._added(narrow, x)
                mean = np.einsum("ik,ik->i", p, change)
                lost = doubt[rows] * (mean - change[label])
                change *= trust[rows, None]
                change -= (trust[rows] * mean + lost)[:, None]
                change *= p
                change[label] += lost
                result += self._adjoint(change, x)
            if w is not None and at_best:
                result -= mixed * (np.vdot(mixed, direction) / bend)
            return result

        return product

    def _added(self, theta: NDArray, x: NDArray) -> NDArray:
        """Return F theta: what theta adds to the logits."""
        if self.vector:
            change = x * theta[:, 0]
        else:
            change = x @ theta[:, :-1].T if x.flags.c_contiguous else (theta[:, :-1] @ x.T).T
        change += theta[:, -1]
        return change

    def _adjoint(self, slope: NDArray, x: NDArray) -> NDArray[np.float64]:
        """Return the slope in theta of what has the given slope in the logits."""
        slopes = np.einsum("ik,ik->k", slope, x)[:, None] if self.vector else slope.T @ x
        return np.hstack([slopes, slope.sum(axis=0)[:, None]])
