"""Calibration errors as norms of residuals, for fast and valid intervals and tests.

A residual is a weighted sum over samples of confidence minus correctness. The errors of this
package are norms of residuals: those of bins, of the bins of every class, the cumulative sums up
to every confidence, or the residuals smoothed by a kernel. Once every sample has its bin, a
resample costs one sum over the samples.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..utils._numeric import bin_index, compute_quantile_edges, compute_uniform_edges
from ._calibration_error import get_kind
from ._smooth import compute_error_of_excess, compute_smooth_on_grid

# Most bins of the Kolmogorov-Smirnov error, whose maximum is taken over their edges. With fewer
# distinct confidences, each is a bin.
_N_GROUPS = 1000
# Steps of the grid of the smooth error within a bandwidth, and in all. A sample goes to the
# nearest point, off by a thirtieth of the bandwidth at most.
_STEPS_PER_BANDWIDTH = 16
_MOST_STEPS = 2**13
# Counts of resampled samples, and residuals whose norm is taken, at once: 16 and 8 megabytes.
_COUNTS_PER_BLOCK = 2**21
_RESIDUALS_PER_BLOCK = 2**20
# From so many samples on, those of nearly equal confidence are drawn together. 200 resamples and
# as many draws of labels take .8 s for 131 072 samples and 1.2 s for a million; one by one, 1.2 s
# and 9.6 s.
_MERGED = 2**17
# With residuals (..., n_classes, n_bins), the mean of the norms over the classes.
_NORMS: dict[str, Callable[[NDArray], NDArray]] = {
    "l1": lambda residuals: np.abs(residuals).sum(axis=-1).mean(axis=-1),
    "l2": lambda residuals: np.sqrt(np.square(residuals).sum(axis=-1)).mean(axis=-1),
    "max": lambda residuals: np.abs(residuals).max(axis=-1).mean(axis=-1),
}


class Draws(NamedTuple):
    """Residuals of resamples, (n_draws, n_classes, n_bins), and the bias of the debiased error."""

    residuals: NDArray[np.float64]
    chance: NDArray[np.float64]


class OneSeed(NamedTuple):
    """One seed for all resamples of a small set: a generator for each would take most of the time.

    The draws depend on the number of resamples per block, so one process makes them all.
    """

    seed: int
    n_draws: int

    def counts(self, n: int, groups: NDArray[np.intp] | None) -> Iterator[NDArray[np.float64]]:
        """Yield how often each of n samples is drawn, (n_draws of a block, n)."""
        n_drawn = n if groups is None else int(groups.max()) + 1
        for size, rng in self._blocks(n):
            drawn = rng.integers(n_drawn, size=(size, n_drawn))
            drawn += n_drawn * np.arange(size)[:, np.newaxis]
            count = np.bincount(drawn.ravel(), minlength=size * n_drawn).reshape(size, n_drawn)
            yield (count if groups is None else count[:, groups]).astype(np.float64)

    def labels(self, proba: NDArray[Any]) -> Iterator[NDArray[np.intp]]:
        """Yield labels drawn from the probabilities, (n_draws of a block, n)."""
        below = np.cumsum(proba, axis=1, dtype=np.float64)[:, :-1] if proba.ndim == 2 else None
        for size, rng in self._blocks(proba.size):
            u = rng.uniform(size=(size, len(proba)))
            codes = u < proba if below is None else (u[..., np.newaxis] >= below).sum(axis=2)
            yield codes.astype(np.intp)

    def several(self) -> NDArray[np.int64]:
        """Return a seed for every resample."""
        return np.random.default_rng(self.seed).integers(2**31, size=self.n_draws)

    def _blocks(self, n: int) -> Iterator[tuple[int, np.random.Generator]]:
        rng, block = np.random.default_rng(self.seed), max(1, _COUNTS_PER_BLOCK // n)
        for start in range(0, self.n_draws, block):
            yield min(block, self.n_draws - start), rng


class ResidualError:
    """A calibration error as the norm of residuals in bins, which can be resampled.

    `rule` defines the residuals, see :meth:`_compute_draws`: "bins", "debiased", "ks", "smooth" or
    "kernel". The error is their `norm`: "l1", "l2" or "max"; with `squared` the metric returns its
    square.
    `index` (n_samples, n_columns) has the bin of every sample in every column, out of `n_bins`.
    For one column, `codes` are 0 or 1. Samples of one of the `groups`, numbered from 0, are
    resampled together. `bandwidth` is that of the smooth error. With `counts`, a row stands for so
    many samples of equal weight, and its `weight` is their sum.
    """

    def __init__(
        self,
        rule: str,
        norm: str,
        index: NDArray[np.intp],
        n_bins: int,
        codes: NDArray[np.intp],
        proba: NDArray[Any],
        weight: NDArray[np.float64],
        groups: NDArray[np.intp] | None = None,
        bandwidth: float = 0.0,
        squared: bool = False,
        counts: NDArray[np.float64] | None = None,
    ) -> None:
        self.rule, self.norm, self.bandwidth, self.squared = rule, norm, bandwidth, squared
        self.counts = counts
        self.n_bins = n_bins
        # Bins are numbered over all columns, as the columns of the matrices are.
        kind = np.int32 if max(index.size, index.shape[1] * n_bins) < 2**31 else np.int64
        self.bins = np.add(index, n_bins * np.arange(index.shape[1]), dtype=kind)
        self.codes, self.proba, self.weight, self.groups = codes, proba, weight, groups
        column = np.arange(index.shape[1])
        self._is_correct = codes[:, np.newaxis] == (column if len(column) > 1 else 1)
        # Sums over bins are products with these, of shape (n_samples, n_columns * n_bins). In
        # float64: a rounded statistic would exceed equal errors by chance.
        residual = proba.reshape(index.shape).astype(np.float64)
        residual -= self._is_correct
        self._residuals = self._make_matrix(residual)
        needs_weight, debiased = norm != "l1" and rule != "ks", rule == "debiased"
        self._bin_weight = self._make_matrix(np.ones(index.shape)) if needs_weight else None
        # Sums over bins times this are sums over merged bins, see :meth:`merge_bins`.
        self._merge: csr_array | None = None
        # Classes that hold too few samples even for one merged bin.
        self.sparse_classes = np.zeros(index.shape[1], bool)
        self._correct = self._make_matrix(self._is_correct) if debiased else None
        # Numbers of samples, which the bias depends on.
        self._size = self._bin_weight
        if debiased and counts is not None:
            self._size = self._make_matrix((counts / weight)[:, np.newaxis])
        self.observed = self.draws(np.ones((1, len(index))))
        self.statistic = float(self.errors(self.observed)[0])

    def merge_bins(self, fewest: int) -> ResidualError | None:
        """Return the error of bins merged to about `fewest` samples; None if none need merging.

        Neighboring bins are merged, class by class. The true error does not grow: merging can
        only cancel residuals. The columns of several classes hold mostly probabilities near 0,
        which say little: there, a sample counts by its variance, ``4 p (1 - p)``.
        """
        n_columns, is_sparse = self.bins.shape[1], False
        sparse_classes = np.zeros(n_columns, bool)
        into = np.tile(np.arange(self.n_bins), (n_columns, 1))
        for k, bins in enumerate(self.bins.T if self.rule in ("bins", "debiased") else []):
            column = bins - k * self.n_bins
            count = self._count_samples(column)
            sparse = count.sum() < fewest * np.count_nonzero(count)
            if n_columns > 1:
                p = self.proba[:, k].astype(np.float64)
                n_rows = np.bincount(column, minlength=self.n_bins)
                information = np.bincount(column, 4 * p * (1 - p), self.n_bins)
                count = count * information / np.maximum(n_rows, 1)
                sparse = (count[n_rows > 0] < fewest).any()
                sparse_classes[k] = count.sum() < fewest and self.norm == "l1"
            if sparse:
                start = np.cumsum(count) - count
                into[k] = np.unique(start // fewest, return_inverse=True)[1]
                is_sparse = True
        if not is_sparse:
            return None
        merged, size = copy(self), into.size
        merged.sparse_classes = sparse_classes
        into += self.n_bins * np.arange(n_columns)[:, np.newaxis]
        merged._merge = csr_array(
            (np.ones(size), (np.arange(size), into.ravel())), shape=(size, size)
        )
        merged.observed = merged.draws(np.ones((1, len(self.bins))))
        merged.statistic = float(merged.errors(merged.observed)[0])
        return merged

    def _count_samples(self, bins: NDArray[np.intp]) -> NDArray[Any]:
        """Return the number of samples, or of groups, in every bin of a column."""
        if self.groups is not None:
            bins = np.unique(np.stack([bins, self.groups]), axis=1)[0]
        return np.bincount(bins, self.counts, self.n_bins)

    def _make_matrix(self, values: NDArray) -> csr_array:
        """Return weights times values as a matrix (n_samples, n_columns * n_bins).

        The `values` are overwritten if they are float64.
        """
        n, n_columns = self.bins.shape
        values = values.astype(np.float64, copy=False)
        values *= self.weight[:, np.newaxis]
        ends = n_columns * np.arange(n + 1, dtype=self.bins.dtype)
        size = n_columns * self.n_bins
        return csr_array((values.ravel(), self.bins.ravel(), ends), shape=(n, size))

    def _sum_by_bin(self, columns: Iterable[Any]) -> NDArray[np.float64]:
        """Return the sums over bins of the weights times columns of values, (n_columns, n_bins).

        Column by column: a matrix of all columns would take as much memory as the residuals.
        """
        sums = [
            np.bincount(bins - k * self.n_bins, self.weight * values, self.n_bins)
            for k, (bins, values) in enumerate(zip(self.bins.T, columns))
        ]
        return np.stack(sums)

    def bootstrap(self, seeds: NDArray[np.int64] | OneSeed) -> list[Draws]:
        """Return the residuals of samples, or of groups, drawn with replacement."""
        n, drawn = len(self.bins), []
        if isinstance(seeds, OneSeed):
            return [self.draws(counts) for counts in seeds.counts(n, self.groups)]
        for part in np.array_split(seeds, -(-len(seeds) * n // _COUNTS_PER_BLOCK)):
            counts = [draw_counts(seed, n, self.groups) for seed in part]
            drawn.append(self.draws(np.array(counts, dtype=np.float64)))
        return drawn

    def by_chance(self, seeds: NDArray[np.int64] | OneSeed) -> list[float]:
        """Return the errors of labels drawn from the probabilities."""
        if isinstance(seeds, OneSeed):
            return self._draw_at_once(seeds)
        n, n_columns = self.bins.shape
        predicted = self._sum_by_bin(self.proba.reshape(self.bins.shape).T)
        bin_weight, values = self._sum_by_bin(repeat(1.0)), []
        for part in np.array_split(seeds, -(-len(seeds) * predicted.size // _RESIDUALS_PER_BLOCK)):
            drawn = np.empty((len(part), *predicted.shape))
            for codes, correct in zip(draw_labels(self.proba, part), drawn):
                row = np.arange(n) if n_columns > 1 else np.flatnonzero(codes)
                column = codes[row] if n_columns > 1 else 0
                index = self.bins[row, column]
                correct[:] = np.bincount(index, self.weight[row], predicted.size).reshape(
                    predicted.shape
                )
            values += self.errors_of_correct(predicted, bin_weight, drawn).tolist()
        return values

    def _draw_at_once(self, seeds: OneSeed) -> list[float]:
        """Return the same as :meth:`by_chance`, all draws of a block at once."""
        n, n_columns = self.bins.shape
        bins = self._make_matrix(np.ones(self.bins.shape))
        predicted = (np.ones(n) @ (self._residuals + self._make_matrix(self._is_correct))).reshape(
            n_columns, -1
        )
        bin_weight, values = (np.ones(n) @ bins).reshape(n_columns, -1), []
        for codes in seeds.labels(self.proba):
            if n_columns == 1:
                correct = codes @ bins
            else:
                correct = np.stack([(codes == k) @ bins for k in range(n_columns)], axis=1)
                of_column = np.arange(n_columns)
                correct = correct.reshape(len(codes), n_columns, n_columns, -1)
                correct = correct[:, of_column, of_column]
            drawn = correct.reshape(len(codes), *predicted.shape)
            values += self.errors_of_correct(predicted, bin_weight, drawn).tolist()
        return values

    def by_signs(self, seeds: NDArray[np.int64] | OneSeed) -> list[float]:
        """Return the errors with every group's residuals times a random sign: the wild bootstrap.

        If the model is calibrated, the residuals of a group have mean 0, however alike its samples
        are, and groups are independent.
        """
        samples = np.arange(len(self.bins))
        members = csr_array((np.ones(len(samples)), (self.groups, samples)))
        of_groups = members @ self._residuals
        once, values = np.ones((1, len(samples))), []
        bin_weight = self._sum_matrix(once, self._bin_weight)
        correct = self._sum_matrix(once, self._correct)
        size = self._sum_matrix(once, self._size)
        if isinstance(seeds, OneSeed):
            seeds = seeds.several()
        for part in np.array_split(
            seeds, -(-len(seeds) * of_groups.shape[1] // _RESIDUALS_PER_BLOCK)
        ):
            generators = map(np.random.default_rng, part)
            signs = np.array([rng.choice([-1.0, 1.0], members.shape[0]) for rng in generators])
            drawn = (signs @ of_groups).reshape(len(part), -1, self.n_bins)
            total = np.full(len(part), self.weight.sum())
            draws = self._compute_draws(drawn, bin_weight, correct, total, size)
            values += self.errors(draws).tolist()
        return values

    def compute_null_variance(self) -> NDArray[np.float64]:
        """Return the variance under calibration of every residual, for bins and the norm "l1".

        It is ``sum_i w_i^2 p_i (1 - p_i) / (sum_i w_i)^2`` over the samples that rows stand for.
        """
        predicted = (p.astype(np.float64) for p in self.proba.reshape(self.bins.shape).T)
        # The samples of a row have independent outcomes, and this weight each.
        times = self.weight if self.counts is None else self.weight / self.counts
        sums = self._sum_by_bin(p * (1 - p) * times for p in predicted)
        sums = sums.ravel() if self._merge is None else sums.ravel() @ self._merge
        return sums / self.weight.sum() ** 2

    def errors_of_correct(
        self,
        predicted: NDArray,
        bin_weight: NDArray,
        correct: NDArray,
        size: NDArray | None = None,
    ) -> NDArray[np.float64]:
        """Return the errors for drawn sums `correct` over bins, (n_draws, n_columns, n_bins).

        The sums of confidence and of weight, (n_columns, n_bins), are the same for all draws.
        `size` are the numbers of samples if they are not the weights.
        """
        total = np.full(len(correct), self.weight.sum())
        size = bin_weight if size is None else size
        return self.errors(
            self._compute_draws(predicted - correct, bin_weight, correct, total, size)
        )

    def draws(self, counts: NDArray[np.float64]) -> Draws:
        """Return the residuals of samples that are counted as often as `counts`, (n_draws, n)."""
        residual = self._sum_matrix(counts, self._residuals)
        bin_weight = self._sum_matrix(counts, self._bin_weight)
        correct = self._sum_matrix(counts, self._correct)
        size = self._sum_matrix(counts, self._size)
        return self._compute_draws(residual, bin_weight, correct, counts @ self.weight, size)

    def _sum_matrix(self, counts: NDArray[np.float64], matrix: csr_array | None) -> Any:
        """Return sums over bins, (n_draws, n_columns, n_bins), of samples counted `counts` times.

        None stands for sums that the norm does not need.
        """
        if matrix is None:
            return None
        sums = counts @ matrix
        if self._merge is not None:
            sums = sums @ self._merge
        return sums.reshape(len(counts), -1, self.n_bins)

    def _compute_draws(
        self, residual: Any, bin_weight: Any, correct: Any, total: NDArray[np.float64], size: Any
    ) -> Draws:
        """Return the residuals whose norm is the error, and the bias of the debiased error.

        `residual`, `bin_weight` and `correct` are sums over bins of the weight times confidence
        minus correctness, 1 and correctness; `total` is the sum of all weights, and `size` the
        number of samples in the bins.
        """
        total, no_bias = total[:, np.newaxis, np.newaxis], np.zeros(len(residual))
        if self.rule == "ks":
            return Draws(np.cumsum(residual, axis=-1) / total, no_bias)
        if self.rule in ("smooth", "kernel"):
            n_steps = self.n_bins - 1
            density = compute_smooth_on_grid(residual / total, self.bandwidth) / n_steps
            density[..., [0, -1]] /= 2  # the trapezoidal rule
            return Draws(density, no_bias)
        if self.norm == "l1":
            return Draws(residual / total, no_bias)
        divisor = np.where(bin_weight > 0, bin_weight, 1.0)
        if self.norm == "max":
            return Draws(residual / divisor, no_bias)
        # sum_b weight_b / total (residual_b / weight_b)^2 is the square of this norm.
        residuals = residual / np.sqrt(divisor * total)
        if self.rule != "debiased":
            return Draws(residuals, no_bias)
        # A bin of one sample has no unbiased estimate and counts 0.
        several = size > 1
        accuracy = correct / divisor
        variance = bin_weight * accuracy * (1 - accuracy) / np.where(several, size - 1, 1.0)
        return Draws(residuals * several, (variance * several / total).sum(axis=(1, 2)))

    def errors(self, draws: Draws, shape: Any = 0.0, scale: float = 0.0) -> NDArray[np.float64]:
        """Return the errors of ``draws.residuals + scale * shape``.

        The debiased ones are squared, and may be negative.
        """
        step = max(1, _RESIDUALS_PER_BLOCK // draws.residuals[0].size)
        blocks = [
            _NORMS[self.norm](draws.residuals[start : start + step] + scale * shape)
            for start in range(0, len(draws.residuals), step)
        ]
        errors = np.concatenate(blocks)
        return errors**2 - draws.chance if self.rule == "debiased" else errors

    def true_error(self, shape: NDArray, scale: float) -> float:
        """Return the error of true residuals ``scale * shape``, without noise."""
        if self.rule == "smooth" and shape is self.observed.residuals:
            # A scaled error has another bandwidth.
            excess = (np.ones(len(self.bins)) @ self._residuals) / self.weight.sum()
            return compute_error_of_excess(scale * excess, None)
        return scale * float(_NORMS[self.norm](shape)[0])


class MergedError(ResidualError):
    """An error of very many samples, of which those of nearly equal confidence are drawn together.

    A row stands for all samples with the same bin, correctness and 8192nd of [0, 1]: its weight
    is their number, its confidence their mean, which leaves the error as it is. Resamples lose the
    variance of the confidence within a row: 1e-9, far below that of correctness.
    """

    def bootstrap(self, seeds: NDArray[np.int64] | OneSeed) -> list[Draws]:
        """Return the residuals of samples drawn with replacement: row counts are multinomial."""
        total = self.weight.sum()
        drawn = [
            rng.multinomial(round(total), self.weight / total) for rng in _make_generators(seeds)
        ]
        return [self.draws(np.array(drawn) / self.weight)]

    def by_chance(self, seeds: NDArray[np.int64] | OneSeed) -> list[float]:
        """Return the errors of labels drawn from the probabilities."""
        bins, size = self.bins[:, 0], self.n_bins
        predicted, bin_weight = (
            np.bincount(bins, values, size)[np.newaxis]
            for values in (self.weight * self.proba, self.weight)
        )
        count = np.rint(self.weight).astype(np.int64)
        drawn = [
            np.bincount(bins, rng.binomial(count, self.proba), size)
            for rng in _make_generators(seeds)
        ]
        return self.errors_of_correct(
            predicted, bin_weight, np.array(drawn)[:, np.newaxis]
        ).tolist()


def _make_generators(seeds: NDArray[np.int64] | OneSeed) -> Iterator[np.random.Generator]:
    several = seeds.several() if isinstance(seeds, OneSeed) else seeds
    return map(np.random.default_rng, several)


def merge_rows(error: ResidualError) -> ResidualError:
    """Return the error of very many samples as a :class:`MergedError`, others as they are."""
    n_samples, n_columns = error.bins.shape
    plain = error.groups is None and n_columns == 1 and not np.ptp(error.weight)
    merges = plain and error.counts is None and n_samples >= _MERGED
    if not merges or error.weight[0] != 1:
        return error
    step = np.minimum((error.proba.ravel() * _MOST_STEPS).astype(np.intp), _MOST_STEPS - 1)
    key = 2 * (_MOST_STEPS * error.bins[:, 0].astype(np.intp) + step) + (error.codes == 1)
    _, first, place, n_rows = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    count = n_rows.astype(np.float64)
    proba = np.bincount(place, error.proba.ravel()) / count
    samples = error.bins[first], error.n_bins, error.codes[first], proba, count
    return MergedError(
        error.rule,
        error.norm,
        *samples,
        bandwidth=error.bandwidth,
        squared=error.squared,
        counts=count,
    )


def make_binned_error(
    rule: str, norm: str, sums: NDArray[np.float64], norms: NDArray[np.float64]
) -> ResidualError:
    """Return the error of sums over bins, (3, n_bins).

    Two rows stand for a bin: one for all correct samples, one for all wrong ones. `norms`,
    (2, n_bins), are the Euclidean norms of the weights of each, and say how many samples of equal
    weight have the same variance.
    """
    some = sums[0] > 0
    (total, confidence, correct), n_bins = sums[:, some], int(some.sum())
    weight = np.concatenate([correct, np.maximum(total - correct, 0)])
    counts = count_effective(weight, norms[:, some].ravel())
    index, codes = np.tile(np.arange(n_bins), 2), np.repeat([1, 0], n_bins)
    proba, some = np.clip(np.tile(confidence / total, 2), 0, 1), counts > 0
    samples = index[some, np.newaxis], n_bins, codes[some], proba[some], weight[some]
    return ResidualError(rule, norm, *samples, counts=counts[some])


def count_effective(weight: NDArray[np.float64], norm: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the effective numbers of samples, (sum w)^2 / sum w^2, of sums and norms of weights.

    Equal weights give whole numbers, without rounding.
    """
    counts = np.square(np.divide(weight, norm, out=np.zeros_like(weight), where=norm > 0))
    whole = np.rint(counts)
    return np.where(np.abs(counts - whole) <= 1e-9 * whole, whole, counts)


def draw_binned(error: ResidualError, n_draws: int, rng: np.random.Generator) -> list[Draws]:
    """Return the bootstrap of a :func:`make_binned_error`, from its sums alone.

    The numbers of right and wrong samples of the bins are multinomial. Within a bin, the
    confidence counts as constant.
    """
    counts: Any = error.counts
    n = max(round(counts.sum()), 1)  # weights that count samples may sum to less
    drawn = rng.multinomial(n, counts / counts.sum(), size=n_draws)
    return [error.draws(drawn / counts)]


def draw_null_errors_of_bins(
    error: ResidualError,
    sums: NDArray[np.float64],
    norms: NDArray[np.float64],
    n_draws: int,
    rng: np.random.Generator,
) -> list[float]:
    """Return the errors of labels drawn with the mean confidence of every bin."""
    some = sums[0] > 0
    total, confidence, _ = sums[:, some]
    counts = np.maximum(np.rint(count_effective(total, np.hypot(*norms[:, some]))), 1)
    predicted = np.clip(confidence / total, 0, 1)
    correct = rng.binomial(counts.astype(np.int64), predicted, size=(n_draws, 1, len(total)))
    return error.errors_of_correct(confidence, total, correct * (total / counts), counts).tolist()


def draw_counts(seed: Any, n: int, groups: NDArray[np.intp] | None) -> NDArray[np.intp]:
    """Return how often each of n samples is drawn, (n,); groups are drawn as a whole."""
    n_drawn = n if groups is None else int(groups.max()) + 1
    drawn = np.random.default_rng(seed).integers(n_drawn, size=n_drawn)
    count = np.bincount(drawn, minlength=n_drawn)
    return count if groups is None else count[groups]


def draw_labels(proba: NDArray[Any], seeds: NDArray[np.int64]) -> Iterator[NDArray[np.intp]]:
    """Yield labels drawn from the probabilities, (n,), for every seed."""
    # The drawn class is the number of cumulative probabilities that u reaches. The last of them is
    # left out: rounded below 1, it would give a class that does not exist.
    below = cumulate(proba) if proba.ndim == 2 else None
    for seed in seeds:
        u = np.random.default_rng(seed).uniform(size=len(proba))
        yield (u < proba).astype(np.intp) if below is None else count_reached(below, u)


def cumulate(proba: NDArray[Any]) -> NDArray[np.float64]:
    """Return the cumulative probabilities of all classes but the last, (n_classes - 1, n)."""
    below = np.array(proba.T[:-1], dtype=np.float64, order="C")
    return np.cumsum(below, axis=0, out=below)


def count_reached(
    below: NDArray[np.float64], u: NDArray[np.float64], rows: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Return how many of the cumulative probabilities `below`, of some rows, each u reaches."""
    # Bytes add up in place: a sum along a short axis would take ten times as long.
    codes: NDArray[Any] = np.zeros(len(u), np.uint8 if len(below) < 2**8 else np.intp)
    for column in below:
        codes += u >= (column if rows is None else column.take(rows))
    return codes.astype(np.intp)


def prepare_residual_error(
    metric: Callable[..., float],
    options: dict[str, Any],
    estimate: float,
    codes: NDArray[np.intp],
    proba: NDArray[Any],
    weight: NDArray[np.float64] | None,
    groups: NDArray[np.intp] | None,
) -> ResidualError | None:
    """Return the error as a norm of residuals; None if the metric is not of this package."""
    kind = get_kind(metric)
    if kind is None:
        return None
    samples = codes, proba, np.ones(len(codes)) if weight is None else weight, groups
    columns = proba.reshape(len(codes), -1)
    if kind.rule == "ks":
        edges = compute_quantile_edges(proba, _N_GROUPS)
        return ResidualError("ks", "max", bin_index(columns, edges), len(edges) - 1, *samples)
    if kind.rule == "smooth":
        # The bandwidth stays that of the estimate. A smooth error exceeds the estimate if and only
        # if the error at this bandwidth does, so one pass per resample gives the same answer.
        bandwidth = options.get("bandwidth") or max(estimate, 1 / _MOST_STEPS)
        n_steps = min(int(2 ** np.ceil(np.log2(_STEPS_PER_BANDWIDTH / bandwidth))), _MOST_STEPS)
        index = np.rint(np.clip(columns, 0, 1) * n_steps).astype(np.intp)
        rule = "kernel" if options.get("bandwidth") else "smooth"
        return ResidualError(rule, "l1", index, n_steps + 1, *samples, bandwidth)
    bound = inspect.signature(metric).bind(codes, proba, **options)
    bound.apply_defaults()
    given = bound.arguments
    every = [compute_uniform_edges(given["n_bins"])] * columns.shape[1]
    if given["strategy"] == "quantile":
        every = [compute_quantile_edges(column, given["n_bins"], weight) for column in columns.T]
    index = np.empty(columns.shape, dtype=np.int32)
    for k, edges in enumerate(every):
        index[:, k] = bin_index(columns[:, k], edges)
    norm = given.get("norm", kind.norm)
    n_bins = max(map(len, every)) - 1
    return ResidualError(
        kind.rule, norm, index, n_bins, *samples, squared=given.get("squared", False)
    )
