"""Calibration errors as norms of gaps, for fast and valid intervals and tests.

A gap is a weighted sum over samples of confidence minus correctness. The errors of this package
are norms of gaps: those of bins, of the bins of every class, the cumulative sums up to every
confidence, or the gaps smoothed by a kernel. Once every sample has its cell, a resample costs one
sum over the samples.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..utils._numeric import bin_index, quantile_edges, uniform_edges
from ._calibration_error import get_kind
from ._smooth import error_of_excess, smooth_on_grid

# Most cells of the Kolmogorov-Smirnov error, whose maximum is taken over their edges. With fewer
# distinct confidences, each is a cell.
_N_GROUPS = 1000
# Steps of the grid of the smooth error within a bandwidth, and in all. A sample goes to the
# nearest point, off by a thirtieth of the bandwidth at most.
_STEPS_PER_BANDWIDTH = 16
_MOST_STEPS = 2**13
# Counts of resampled samples, and gaps whose norm is taken, at once: 16 and 8 megabytes.
_COUNTS_PER_BLOCK = 2**21
_RESIDUALS_PER_BLOCK = 2**20
# From so many samples on, those of nearly equal confidence are drawn together. 200 resamples and
# as many draws of labels take .8 s for 131 072 samples and 1.2 s for a million; one by one, 1.2 s
# and 9.6 s.
_MERGED = 2**17
# With gaps (..., n_classes, n_cells), the mean of the norms over the classes.
_NORMS: dict[str, Callable[[NDArray], NDArray]] = {
    "l1": lambda gaps: np.abs(gaps).sum(axis=-1).mean(axis=-1),
    "l2": lambda gaps: np.sqrt(np.square(gaps).sum(axis=-1)).mean(axis=-1),
    "max": lambda gaps: np.abs(gaps).max(axis=-1).mean(axis=-1),
}


class Draws(NamedTuple):
    """Gaps of resamples, (n_draws, n_classes, n_cells), and the bias that "debiased" subtracts."""

    gaps: NDArray[np.float64]
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
    """A calibration error as the norm of gaps in cells, which can be resampled.

    `rule` defines the gaps, see :meth:`_gaps`: "bins", "debiased", "ks", "smooth" or "kernel". The
    error is their `norm`: "l1", "l2" or "max"; with `squared` the metric returns its square.
    `index` (n_samples, n_columns) has the cell of every sample in every column, out of `n_cells`.
    For one column, `codes` are 0 or 1. Samples of one of the `groups`, numbered from 0, are
    resampled together. `bandwidth` is that of the smooth error. With `counts`, the weight of a
    sample is the number of samples that it stands for.
    """

    def __init__(
        self,
        rule: str,
        norm: str,
        index: NDArray[np.intp],
        n_cells: int,
        codes: NDArray[np.intp],
        proba: NDArray[Any],
        weight: NDArray[np.float64],
        groups: NDArray[np.intp] | None = None,
        bandwidth: float = 0.0,
        squared: bool = False,
        counts: bool = False,
    ) -> None:
        self.rule, self.norm, self.bandwidth, self.squared = rule, norm, bandwidth, squared
        self.counts = counts
        self.n_cells = n_cells
        # Cells are numbered over all columns, as the columns of the matrices are.
        kind = np.int32 if max(index.size, index.shape[1] * n_cells) < 2**31 else np.int64
        self.cells = np.add(index, n_cells * np.arange(index.shape[1]), dtype=kind)
        self.codes, self.proba, self.weight, self.groups = codes, proba, weight, groups
        column = np.arange(index.shape[1])
        self._is_correct = codes[:, np.newaxis] == (column if len(column) > 1 else 1)
        # Sums over cells are products with these, of shape (n_samples, n_columns * n_cells). In
        # float64: a rounded statistic would exceed equal errors by chance.
        gap = proba.reshape(index.shape).astype(np.float64)
        gap -= self._is_correct
        self._gap = self._matrix(gap)
        needs_mass, debiased = norm != "l1" and rule != "ks", rule == "debiased"
        self._mass = self._matrix(np.ones(index.shape)) if needs_mass else None
        self._correct = self._matrix(self._is_correct) if debiased else None
        self.observed = self.draws(np.ones((1, len(index))))
        self.statistic = float(self.errors(self.observed)[0])

    def with_larger_cells(self, fewest: int) -> ResidualError | None:
        """Return the error of cells merged to about `fewest` samples; None if none need merging.

        Neighboring cells are merged, class by class. The true error does not grow: merging can
        only cancel gaps.
        """
        n_columns = self.cells.shape[1]
        index = self.cells - self.n_cells * np.arange(n_columns)
        is_sparse = False
        for column in index.T if self.rule in ("bins", "debiased") else []:
            count = self._n_samples_of(column)
            if count.sum() < fewest * np.count_nonzero(count):
                start = np.cumsum(count) - count
                column[:] = np.unique(start // fewest, return_inverse=True)[1][column]
                is_sparse = True
        if not is_sparse:
            return None
        return type(self)(
            self.rule,
            self.norm,
            *(index, self.n_cells, self.codes, self.proba, self.weight, self.groups),
            squared=self.squared,
            counts=self.counts,
        )

    def _n_samples_of(self, cells: NDArray[np.intp]) -> NDArray[Any]:
        """Return the number of samples, or of groups, in every cell of a column."""
        if self.groups is not None:
            cells = np.unique(np.stack([cells, self.groups]), axis=1)[0]
        return np.bincount(cells, self.weight if self.counts else None, self.n_cells)

    def _matrix(self, values: NDArray) -> csr_array:
        """Return weights times values as a matrix (n_samples, n_columns * n_cells).

        The `values` are overwritten if they are float64.
        """
        n, n_columns = self.cells.shape
        values = values.astype(np.float64, copy=False)
        values *= self.weight[:, np.newaxis]
        ends = n_columns * np.arange(n + 1, dtype=self.cells.dtype)
        size = n_columns * self.n_cells
        return csr_array((values.ravel(), self.cells.ravel(), ends), shape=(n, size))

    def _sums(self, columns: Iterable[Any]) -> NDArray[np.float64]:
        """Return the sums over cells of the weights times columns of values, (n_columns, n_cells).

        Column by column: a matrix of all columns would take as much memory as the gaps.
        """
        sums = [
            np.bincount(cells - k * self.n_cells, self.weight * values, self.n_cells)
            for k, (cells, values) in enumerate(zip(self.cells.T, columns))
        ]
        return np.stack(sums)

    def bootstrap(self, seeds: NDArray[np.int64] | OneSeed) -> list[Draws]:
        """Return the gaps of samples, or of groups, drawn with replacement."""
        n, drawn = len(self.cells), []
        if isinstance(seeds, OneSeed):
            return [self.draws(counts) for counts in seeds.counts(n, self.groups)]
        for part in np.array_split(seeds, -(-len(seeds) * n // _COUNTS_PER_BLOCK)):
            counts = [drawn_counts(seed, n, self.groups) for seed in part]
            drawn.append(self.draws(np.array(counts, dtype=np.float64)))
        return drawn

    def by_chance(self, seeds: NDArray[np.int64] | OneSeed) -> list[float]:
        """Return the errors of labels drawn from the probabilities."""
        if isinstance(seeds, OneSeed):
            return self._of_one_seed(seeds)
        n, n_columns = self.cells.shape
        stated = self._sums(self.proba.reshape(self.cells.shape).T)
        mass, values = self._sums(repeat(1.0)), []
        for part in np.array_split(seeds, -(-len(seeds) * stated.size // _RESIDUALS_PER_BLOCK)):
            drawn = np.empty((len(part), *stated.shape))
            for codes, correct in zip(drawn_labels(self.proba, part), drawn):
                row = np.arange(n) if n_columns > 1 else np.flatnonzero(codes)
                column = codes[row] if n_columns > 1 else 0
                cell = self.cells[row, column]
                correct[:] = np.bincount(cell, self.weight[row], stated.size).reshape(stated.shape)
            values += self.errors_of_correct(stated, mass, drawn).tolist()
        return values

    def _of_one_seed(self, seeds: OneSeed) -> list[float]:
        """Return the same as :meth:`by_chance`, all draws of a block at once."""
        n, n_columns = self.cells.shape
        cells = self._matrix(np.ones(self.cells.shape))
        stated = (np.ones(n) @ (self._gap + self._matrix(self._is_correct))).reshape(n_columns, -1)
        mass, values = (np.ones(n) @ cells).reshape(n_columns, -1), []
        for codes in seeds.labels(self.proba):
            if n_columns == 1:
                correct = codes @ cells
            else:
                correct = np.stack([(codes == k) @ cells for k in range(n_columns)], axis=1)
                of_column = np.arange(n_columns)
                correct = correct.reshape(len(codes), n_columns, n_columns, -1)
                correct = correct[:, of_column, of_column]
            drawn = correct.reshape(len(codes), *stated.shape)
            values += self.errors_of_correct(stated, mass, drawn).tolist()
        return values

    def by_signs(self, seeds: NDArray[np.int64] | OneSeed) -> list[float]:
        """Return the errors with the gaps of every group times a random sign: the wild bootstrap.

        If the model is calibrated, the gaps of a group have mean 0, however alike its samples are,
        and groups are independent.
        """
        samples = np.arange(len(self.cells))
        members = csr_array((np.ones(len(samples)), (self.groups, samples)))
        of_groups = members @ self._gap
        mass, correct = (
            None if m is None else (np.ones(len(samples)) @ m).reshape(-1, self.n_cells)
            for m in (self._mass, self._correct)
        )
        values = []
        if isinstance(seeds, OneSeed):
            seeds = seeds.several()
        for part in np.array_split(
            seeds, -(-len(seeds) * of_groups.shape[1] // _RESIDUALS_PER_BLOCK)
        ):
            generators = map(np.random.default_rng, part)
            signs = np.array([rng.choice([-1.0, 1.0], members.shape[0]) for rng in generators])
            drawn = (signs @ of_groups).reshape(len(part), -1, self.n_cells)
            total = np.full(len(part), self.weight.sum())
            values += self.errors(self._gaps(drawn, mass, correct, total)).tolist()
        return values

    def by_stated(self) -> NDArray[np.float64]:
        """Return the variance under calibration of every gap, for bins and the norm "l1".

        It is ``sum_i w_i^2 p_i (1 - p_i) / (sum_i w_i)^2``, with w_i in place of w_i^2 if weights
        are counts.
        """
        stated = (p.astype(np.float64) for p in self.proba.reshape(self.cells.shape).T)
        # Samples that a count stands for have independent outcomes.
        times = 1.0 if self.counts else self.weight
        sums = self._sums(p * (1 - p) * times for p in stated)
        return sums.ravel() / self.weight.sum() ** 2

    def errors_of_correct(
        self, stated: NDArray, mass: NDArray, correct: NDArray
    ) -> NDArray[np.float64]:
        """Return the errors for drawn sums `correct` over cells, (n_draws, n_columns, n_cells).

        The sums of confidence and of weight, (n_columns, n_cells), are the same for all draws.
        """
        total = np.full(len(correct), self.weight.sum())
        return self.errors(self._gaps(stated - correct, mass, correct, total))

    def draws(self, counts: NDArray[np.float64]) -> Draws:
        """Return the gaps of samples that are counted as often as `counts`, (n_draws, n)."""
        gap, mass, correct = (
            None if m is None else (counts @ m).reshape(len(counts), -1, self.n_cells)
            for m in (self._gap, self._mass, self._correct)
        )
        return self._gaps(gap, mass, correct, counts @ self.weight)

    def _gaps(self, gap: Any, mass: Any, correct: Any, total: NDArray[np.float64]) -> Draws:
        """Return the gaps whose norm is the error, and the bias that the debiased error subtracts.

        `gap`, `mass` and `correct` are sums over cells of the weight times confidence minus
        correctness, 1 and correctness; `total` is the sum of all weights.
        """
        of_all, nothing = total[:, np.newaxis, np.newaxis], np.zeros(len(gap))
        if self.rule == "ks":
            return Draws(np.cumsum(gap, axis=-1) / of_all, nothing)
        if self.rule in ("smooth", "kernel"):
            n_steps = self.n_cells - 1
            density = smooth_on_grid(gap / of_all, self.bandwidth) / n_steps
            density[..., [0, -1]] /= 2  # the trapezoidal rule
            return Draws(density, nothing)
        if self.norm == "l1":
            return Draws(gap / of_all, nothing)
        some = np.where(mass > 0, mass, 1.0)
        if self.norm == "max":
            return Draws(gap / some, nothing)
        # sum_b mass_b / total (gap_b / mass_b)^2 is the square of this norm.
        gaps = gap / np.sqrt(some * of_all)
        if self.rule != "debiased":
            return Draws(gaps, nothing)
        # A cell of one sample has no unbiased estimate and counts 0.
        several = mass > 1
        accuracy = correct / some
        variance = mass * accuracy * (1 - accuracy) / np.where(several, mass - 1, 1.0)
        return Draws(gaps * several, (variance * several / of_all).sum(axis=(1, 2)))

    def errors(self, draws: Draws, shape: Any = 0.0, scale: float = 0.0) -> NDArray[np.float64]:
        """Return the errors of ``draws.gaps + scale * shape``.

        The debiased ones are squared, and may be negative.
        """
        step = max(1, _RESIDUALS_PER_BLOCK // draws.gaps[0].size)
        blocks = [
            _NORMS[self.norm](draws.gaps[start : start + step] + scale * shape)
            for start in range(0, len(draws.gaps), step)
        ]
        errors = np.concatenate(blocks)
        return errors**2 - draws.chance if self.rule == "debiased" else errors

    def true_error(self, shape: NDArray, scale: float) -> float:
        """Return the error of true gaps ``scale * shape``, without noise."""
        if self.rule == "smooth" and shape is self.observed.gaps:
            # A scaled error has another bandwidth.
            excess = (np.ones(len(self.cells)) @ self._gap) / self.weight.sum()
            return error_of_excess(scale * excess, None)
        return scale * float(_NORMS[self.norm](shape)[0])


class MergedError(ResidualError):
    """An error of very many samples, of which those of nearly equal confidence are drawn together.

    A row stands for all samples with the same cell, correctness and 8192nd of [0, 1]: its weight
    is their number, its confidence their mean, which leaves the error as it is. Resamples lose the
    variance of the confidence within a row: 1e-9, far below that of correctness.
    """

    def bootstrap(self, seeds: NDArray[np.int64] | OneSeed) -> list[Draws]:
        """Return the gaps of samples drawn with replacement: row counts are multinomial."""
        total = self.weight.sum()
        drawn = [rng.multinomial(round(total), self.weight / total) for rng in _generators(seeds)]
        return [self.draws(np.array(drawn) / self.weight)]

    def by_chance(self, seeds: NDArray[np.int64] | OneSeed) -> list[float]:
        """Return the errors of labels drawn from the probabilities."""
        cells, size = self.cells[:, 0], self.n_cells
        stated, mass = (
            np.bincount(cells, values, size)[np.newaxis]
            for values in (self.weight * self.proba, self.weight)
        )
        count = np.rint(self.weight).astype(np.int64)
        drawn = [
            np.bincount(cells, rng.binomial(count, self.proba), size) for rng in _generators(seeds)
        ]
        return self.errors_of_correct(stated, mass, np.array(drawn)[:, np.newaxis]).tolist()


def _generators(seeds: NDArray[np.int64] | OneSeed) -> Iterator[np.random.Generator]:
    several = seeds.several() if isinstance(seeds, OneSeed) else seeds
    return map(np.random.default_rng, several)


def merged(error: ResidualError) -> ResidualError:
    """Return the error of very many samples as a :class:`MergedError`, others as they are."""
    n_samples, n_columns = error.cells.shape
    plain = error.groups is None and n_columns == 1 and not np.ptp(error.weight)
    if not plain or error.counts or n_samples < _MERGED or error.weight[0] != 1:
        return error
    step = np.minimum((error.proba.ravel() * _MOST_STEPS).astype(np.intp), _MOST_STEPS - 1)
    key = 2 * (_MOST_STEPS * error.cells[:, 0].astype(np.intp) + step) + (error.codes == 1)
    _, first, place, count = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    proba = np.bincount(place, error.proba.ravel()) / count
    samples = error.cells[first], error.n_cells, error.codes[first], proba, count.astype(float)
    return MergedError(
        error.rule,
        error.norm,
        *samples,
        bandwidth=error.bandwidth,
        squared=error.squared,
        counts=True,
    )


def binned_error(rule: str, norm: str, sums: NDArray[np.float64]) -> ResidualError:
    """Return the error of sums over bins, (3, n_bins), of weights that count samples.

    Two rows stand for a bin: one for all correct samples, one for all wrong ones.
    """
    count, confidence, correct = sums[:, sums[0] > 0]
    n_bins = len(count)
    weight = np.concatenate([correct, np.maximum(count - correct, 0)])
    some = weight > 0
    index, codes = np.tile(np.arange(n_bins), 2), np.repeat([1, 0], n_bins)
    proba = np.clip(np.tile(confidence / count, 2), 0, 1)
    samples = index[some, np.newaxis], n_bins, codes[some], proba[some], weight[some]
    error = ResidualError(rule, norm, *samples, counts=True)
    return error


def draws_of_binned(error: ResidualError, n_draws: int, rng: np.random.Generator) -> list[Draws]:
    """Return the bootstrap of a :func:`binned_error`, from its sums alone.

    The numbers of right and wrong samples of the bins are multinomial. Within a bin, the
    confidence counts as constant.
    """
    total = error.weight.sum()
    drawn = rng.multinomial(round(total), error.weight / total, size=n_draws)
    return [error.draws(drawn / error.weight)]


def errors_by_chance_of_bins(
    error: ResidualError, sums: NDArray[np.float64], n_draws: int, rng: np.random.Generator
) -> list[float]:
    """Return the errors of labels drawn with the mean confidence of every bin."""
    count, confidence, _ = sums[:, sums[0] > 0]
    stated = np.clip(confidence / count, 0, 1)
    correct = rng.binomial(np.rint(count).astype(np.int64), stated, size=(n_draws, 1, len(count)))
    return error.errors_of_correct(confidence, count, correct.astype(np.float64)).tolist()


def drawn_counts(seed: Any, n: int, groups: NDArray[np.intp] | None) -> NDArray[np.intp]:
    """Return how often each of n samples is drawn, (n,); groups are drawn as a whole."""
    n_drawn = n if groups is None else int(groups.max()) + 1
    drawn = np.random.default_rng(seed).integers(n_drawn, size=n_drawn)
    count = np.bincount(drawn, minlength=n_drawn)
    return count if groups is None else count[groups]


def drawn_labels(proba: NDArray[Any], seeds: NDArray[np.int64]) -> Iterator[NDArray[np.intp]]:
    """Yield labels drawn from the probabilities, (n,), for every seed."""
    # The drawn class is the number of cumulative probabilities that u reaches. The last of them is
    # left out: rounded below 1, it would give a class that does not exist.
    below = proba[:, :-1].astype(np.float64) if proba.ndim == 2 else None
    if below is not None:
        np.cumsum(below, axis=1, out=below)
    for seed in seeds:
        u = np.random.default_rng(seed).uniform(size=len(proba))
        codes = u < proba if below is None else (u[:, np.newaxis] >= below).sum(axis=1)
        yield codes.astype(np.intp)


def prepare_residual_error(
    metric: Callable[..., float],
    options: dict[str, Any],
    estimate: float,
    codes: NDArray[np.intp],
    proba: NDArray[Any],
    weight: NDArray[np.float64] | None,
    groups: NDArray[np.intp] | None,
) -> ResidualError | None:
    """Return the error as a norm of gaps, None where the metric is not one of this package."""
    kind = get_kind(metric)
    if kind is None:
        return None
    samples = codes, proba, np.ones(len(codes)) if weight is None else weight, groups
    columns = proba.reshape(len(codes), -1)
    if kind.rule == "ks":
        edges = quantile_edges(proba, _N_GROUPS)
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
    every = [uniform_edges(given["n_bins"])] * columns.shape[1]
    if given["strategy"] == "quantile":
        every = [quantile_edges(column, given["n_bins"], weight) for column in columns.T]
    index = np.empty(columns.shape, dtype=np.int32)
    for k, edges in enumerate(every):
        index[:, k] = bin_index(columns[:, k], edges)
    norm = given.get("norm", kind.norm)
    n_cells = max(map(len, every)) - 1
    return ResidualError(
        kind.rule, norm, index, n_cells, *samples, squared=given.get("squared", False)
    )
