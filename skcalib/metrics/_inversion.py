"""The interval of a calibration error from its resamples, and the p-value."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri
from sklearn.utils import check_random_state

from ..utils.checking._groups import design_effect
from ..utils.computing._chance import mean_range
from ._gaps import Draws, GapError, binned_error, draws_of_binned, errors_by_chance_of_bins
from ._resampling import ByChance, Resampled, run

# Equal errors, summed in another order, differ by less.
_ROUNDING = 1e-12
# Standard errors from 0 beyond which the sign of a gap is clear.
_CLEAR = 3.0
# Samples, or groups, that a cell should hold on average for the lower end of an interval. With the
# cells as they are, it lies above the true error in up to .88 of draws; with neighbors joined to
# 10 samples in at most .02 for "l1" and .12 for "l2", to 20 in .02 and .07 (benchmarks/fine_bins).
_FEWEST_PER_CELL = 20
# From so many cells on, the distribution of their true gaps is estimated.
_MANY_CELLS = 100
# Scales of gaps in standard errors, and steps of EM for their weights.
_SCALES, _STEPS = np.concatenate([[0.0], 2.0 ** np.arange(-2, 9, 0.5)]), 200


def bootstrap_interval(
    resampled: Resampled,
    seeds: NDArray[np.int64],
    n_jobs: int | None,
    confidence_level: float,
    verbose: int = 0,
) -> tuple[list[Any], tuple[float, float]]:
    """Return the resamples (gaps, or values of a user's metric) and the ends of the interval."""
    error = resampled.error
    drawn = run(error.bootstrap, seeds, n_jobs, verbose)
    if isinstance(error, GapError):
        by_chance = resampled.by_chance(seeds, n_jobs, verbose)
    elif error.is_zero_of_expected_labels():
        by_chance = [run(error.by_chance, seeds, n_jobs, verbose)]
    else:
        draw = partial(error.of_drawn_labels, error.columns())
        of_drawn = run(draw, seeds, n_jobs, verbose)
        return drawn, interval_of_score(resampled.estimate, drawn, of_drawn, confidence_level)

    def bootstrap(error: GapError) -> list[Draws]:
        return run(error.bootstrap, seeds, n_jobs, verbose)

    return drawn, interval_of(resampled, drawn, by_chance, confidence_level, bootstrap)


def interval_of(
    resampled: Resampled,
    drawn: list[Any],
    by_chance: ByChance,
    confidence_level: float,
    bootstrap: Callable[[GapError], list[Draws]],
) -> tuple[float, float]:
    """Return the interval from the resamples and the errors by chance.

    `bootstrap` resamples the error with larger cells.
    """
    tail = (1 - confidence_level) / 2
    if not isinstance(resampled.error, GapError):
        # Reflected: estimate - (high - estimate) and estimate + (estimate - low). Chance makes the
        # estimate larger, and its resamples once more: the interval may lie below the true error.
        high, low = 2 * resampled.estimate - np.quantile(drawn, [tail, 1 - tail])
        high = max(high, resampled.estimate)
    else:
        low, high = Inversion(resampled.error, drawn).interval(tail)
        # The bootstrap of cells with few samples is too narrow. The true error of larger cells is
        # no larger, so its lower end is valid, too.
        larger = resampled.error.with_larger_cells(_FEWEST_PER_CELL)
        if larger is not None:
            low = Inversion(larger, bootstrap(larger)).interval(tail)[0]
    largest = max(float(np.quantile(errors, 1 - tail)) for errors in by_chance)
    low = low if resampled.statistic > largest + _ROUNDING else 0.0
    if not isinstance(resampled.error, GapError):
        return float(low), float(high)
    if resampled.error.squared:
        low, high = low**2, high**2
    return float(low), float(min(high, 1.0))


def interval_of_score(
    estimate: float, drawn: ArrayLike, of_drawn_labels: ArrayLike, confidence_level: float
) -> tuple[float, float]:
    """Return the normal interval of a score, or of a difference of scores.

    Its standard error is the larger one of the bootstrap and of drawn labels: the samples may
    contain none of the large losses of rare labels, and the probabilities may be too extreme.
    """
    half = ndtri((1 + confidence_level) / 2) * max(
        np.std(np.asarray(drawn)), np.std(np.asarray(of_drawn_labels))
    )
    return float(estimate - half), float(estimate + half)


def pvalue_of(statistic: float, by_chance: ByChance) -> float:
    """Return the largest p-value ``(1 + #{T* >= T}) / (n + 1)`` over the lists of errors T*."""
    as_large = np.array(by_chance) >= statistic - _ROUNDING
    n_as_large = int(np.count_nonzero(as_large, axis=1).max())
    return (1 + n_as_large) / (1 + as_large.shape[1])


def interval_of_bins(
    rule: str,
    norm: str,
    sums: NDArray[np.float64],
    confidence_level: float,
    n_resamples: int,
    random_state: Any,
) -> tuple[float, float]:
    """Return the interval of the error of sums over bins, whose weights count samples."""
    error = binned_error(rule, norm, sums)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    drawn = draws_of_binned(error, n_resamples, rng)
    by_chance = errors_by_chance_of_bins(error, sums, n_resamples, rng)
    resampled = Resampled(error.statistic, error.statistic, error)
    bootstrap = partial(draws_of_binned, n_draws=n_resamples, rng=rng)
    return interval_of(resampled, drawn, [by_chance], confidence_level, bootstrap)


class Inversion:
    """Errors to be observed if the true gaps were a multiple of the observed ones."""

    def __init__(self, error: GapError, drawn: list[Draws]) -> None:
        self.error, self.gaps = error, error.observed.gaps
        self.resamples = Draws(*(np.concatenate(parts) for parts in zip(*drawn)))
        # The bootstrap: resample minus sample imitates sample minus population.
        self.noise = self.resamples._replace(gaps=self.resamples.gaps - self.gaps)
        self.by_noise = error.errors(self.noise)

    def interval(self, tail: float) -> tuple[float, float]:
        """Return the ends of the interval, each missed with probability `tail`."""
        observed = self.error.statistic
        low = 0.0
        if (self.by_noise >= observed).mean() < tail:
            variance = self.noise.gaps.var(axis=0)
            square = np.where(self.gaps != 0, self.gaps**2, 1.0)
            shrunk = self.gaps * np.clip(1 - variance / square, 0, 1)
            low = min(
                self._true_error(shape, lambda errors: (errors >= observed).mean() >= tail)
                for shape in (self.gaps, shrunk)
                if shape.any()
            )
        # An error below the median of a calibrated model must not lower the upper end.
        least = max(observed, float(np.median(self.by_noise)))
        high = max(
            self._true_error(shape, lambda errors: (errors <= least).mean() < tail)
            for shape in (self.gaps, *self._likely_gaps())
        )
        return low, max(high, self._least_upper_end(tail))

    def _likely_gaps(self) -> list[NDArray[np.float64]]:
        """Return true gaps of expected size, by empirical Bayes; nothing if there are few cells.

        Noise hides many small true gaps. Multiples of the observed gaps, whose small ones are
        noise alone, give too low an upper end.
        """
        error = self.error
        if error.rule != "bins" or error.norm != "l1" or self.gaps.size < _MANY_CELLS:
            return []
        gaps = self.gaps.ravel()
        spread = np.sqrt(np.maximum(self.noise.gaps.var(axis=0).ravel(), error.by_stated()))
        sizes = np.abs(gaps)
        some = spread > 0
        sizes[some] = spread[some] * expected_sizes(gaps[some] / spread[some])
        return [np.where(gaps < 0, -sizes, sizes).reshape(self.gaps.shape)]

    def median(self) -> tuple[float, NDArray[np.float64]]:
        """Return the true error for which the observed one is the median, and errors around it."""
        observed = self.error.statistic
        scale = self._scale(self.gaps, lambda errors: np.median(errors) >= observed)
        return self.error.true_error(self.gaps, scale), self._errors(self.gaps, scale)

    def _errors(self, shape: NDArray, scale: float) -> NDArray[np.float64]:
        return self.error.errors(self.noise, shape, scale)

    def _true_error(self, shape: NDArray, holds: Callable[[NDArray], Any]) -> float:
        return self.error.true_error(shape, self._scale(shape, holds))

    def _scale(self, shape: NDArray, holds: Callable[[NDArray], Any]) -> float:
        """Return the least multiple of `shape` whose errors satisfy `holds`."""
        if not shape.any() or holds(self.by_noise):
            return 0.0
        low, high = 0.0, 1.0
        while not holds(self._errors(shape, high)) and high < 2.0**20:
            low, high = high, 2 * high
        while high - low > 1e-4 * high:
            middle = (low + high) / 2
            if holds(self._errors(shape, middle)):
                high = middle
            else:
                low = middle
        return high

    def _least_upper_end(self, tail: float) -> float:
        """Return the upper limit of a signed sum of the gaps, which is at most the error.

        With any signs of the cells, the sum of the gaps is no larger than the error. Gaps that are
        clearly negative get the sign -1, so that they do not cancel positive ones.
        """
        error, gaps = self.error, self.error.observed.gaps
        if gaps.shape[1] > 1:
            return 0.0  # such a sum is no bound of the mean over the classes
        proba, correct = error.proba.ravel().astype(np.float64), error.codes == 1
        if error.rule in ("bins", "debiased"):
            clear = gaps[0, 0] < -_CLEAR * self.noise.gaps[:, 0].std(axis=0)
            turned = clear[error.cells[:, 0]]
            proba, correct = np.where(turned, 1 - proba, proba), correct ^ turned
        ends = np.array(self._mean_range(correct, proba, tail))
        limit = float(np.abs(ends - np.average(proba, weights=error.weight)).max())
        if error.rule == "ks":
            place = np.abs(gaps[0, 0]).argmax()
            sums = np.sign(gaps[0, 0, place]) * self.resamples.gaps[:, 0, place]
            limit = max(limit, float(np.quantile(sums, 1 - tail)))
        return limit

    def _mean_range(
        self, correct: NDArray[np.bool_], proba: NDArray[np.float64], tail: float
    ) -> tuple[float, float]:
        """Return the ends of the confidence interval of the mean correctness, with these tails."""
        error, effect = self.error, 1.0
        if error.groups is not None:
            weighted = error.weight / error.weight.mean() * (correct - proba)
            effect = design_effect(weighted, error.groups)
        if error.counts:
            return mean_range(correct, proba, None, 1 - 2 * tail, effect, count=error.weight)
        weight = error.weight if np.ptp(error.weight) > 0 else None
        return mean_range(correct, proba, weight, 1 - 2 * tail, effect)


def expected_sizes(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return E[|delta| | z] of every z = delta + N(0, 1), by empirical Bayes.

    The prior of delta is a mixture of normal distributions with mean 0 and a grid of scales. Its
    weights maximize the likelihood of all z (EM).
    """
    variance = 1 + _SCALES**2
    likelihood = np.exp(-(z[:, np.newaxis] ** 2) / (2 * variance)) / np.sqrt(variance) + 1e-300
    weight = np.full(len(_SCALES), 1 / len(_SCALES))
    for _ in range(_STEPS):
        posterior = likelihood * weight
        posterior /= posterior.sum(axis=1, keepdims=True)
        weight = posterior.mean(axis=0)
    # Given the scale, delta is normal, with this mean and variance.
    shrinkage = _SCALES**2 / variance
    mean, spread = z[:, np.newaxis] * shrinkage, np.sqrt(shrinkage)
    x = mean / np.maximum(spread, 1e-300)
    size = spread * np.sqrt(2 / np.pi) * np.exp(-(x**2) / 2) + mean * (2 * ndtr(x) - 1)
    return (posterior * size).sum(axis=1)
