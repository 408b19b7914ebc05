"""Confidence intervals of calibration errors, and tests of calibration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtr, ndtri
from sklearn.utils import check_random_state

from ..utils._compat import Interval, validate_params
from ..utils._labels import compute_design_effect
from ._binned_draws import (
    Draws,
    OneSeed,
    ResidualError,
    draw_binned,
    draw_null_errors_of_bins,
    make_binned_error,
)
from ._calibration_error import expected_calibration_error
from ._registry import AnyMetric
from ._resampling import (
    VERBOSE_CONSTRAINTS,
    ByChance,
    Resampled,
    draw_seeds,
    run,
    warn_of_few_groups,
)

# Test of a mean probability by the outcomes, and its confidence interval.
#
# If a model is calibrated, the outcome of sample i is 1 with its probability p_i, independently
# of the other samples. So the sum of the outcomes has a known distribution, the Poisson
# binomial, and the mean probability is tested without resampling: at any level, for any number
# of samples.

# Probabilities are clipped to this distance from 0 and 1, which float32 hardly resolves at 1: no
# outcome is taken to be impossible.
SMALLEST = 1e-7
# With more samples, logits are rounded to two decimals, which leaves few distinct ones.
MANY = 10_000
# Largest shift of logits: beyond it, probabilities are 0 or 1.
FARTHEST = 40.0
# Equal sums and errors, added in another order, differ by less.
_ROUNDING = 1e-12


def compute_mean_pvalue(
    outcome: NDArray[Any],
    proba: NDArray[Any],
    weight: NDArray[Any] | None,
    effect: float = 1.0,
    count: NDArray[Any] | None = None,
) -> float:
    """Return the p-value of the sum of outcomes, if the probabilities are calibrated.

    Two-sided: twice the smaller tail. `effect` is the design effect of samples that belong
    together: n of them count as n / effect independent ones. A row stands for `count` samples of
    this probability and weight, and its outcome is their mean.
    """
    x, w, n, s = _prepare(outcome, proba, weight, effect, count)
    tails = (_compute_tail(x, w, n, s), _compute_tail(-x, w, n, float(w @ n) - s))
    # Above 0, so that p-values can be compared by their quotients.
    return float(np.clip(2 * min(tails), 1e-300, 1))


def compute_mean_range(
    outcome: NDArray[Any],
    proba: NDArray[Any],
    weight: NDArray[Any] | None,
    level: float,
    effect: float = 1.0,
    count: NDArray[Any] | None = None,
) -> tuple[float, float]:
    """Return the confidence interval, of this level, of the mean probability.

    All probabilities are shifted by one number, on the scale of logits, as long as
    :func:`compute_mean_pvalue` does not reject them: the mean probability lies outside exactly
    where the test rejects it. With equal probabilities this is the interval of Clopper and
    Pearson. `effect` and `count` are those of :func:`compute_mean_pvalue`.
    """
    x, w, n, s = _prepare(outcome, proba, weight, effect, count)
    tail, total = (1 - level) / 2, float(w @ n)
    # With equal weights, a shift of x changes the tilt by as much: one search serves all shifts.
    inner = _ROUNDING * total < s < (1 - _ROUNDING) * total
    searched = inner and bool((w == 1).all())
    reached = _find_tilt(x, w, n, s, -2 * FARTHEST, 2 * FARTHEST) if searched else None

    def excess(shift: float, sign: int) -> float:
        observed = s if sign > 0 else total - s
        tilt = None if reached is None else sign * (reached - shift)
        return _compute_tail(sign * (x + shift), w, n, observed, tilt) - tail

    ends = []
    # At the lower end P(sum >= s) equals the tail, at the upper end P(sum <= s).
    for sign, extreme, at in ((1, 0.0, 0.0), (-1, total, 1.0)):
        # With a design effect, s may be a fraction that no shift contradicts.
        if abs(s - extreme) <= _ROUNDING * total or excess(-sign * FARTHEST, sign) > 0:
            ends.append(at)
            continue
        shift = brentq(excess, -FARTHEST, FARTHEST, args=(sign,), xtol=1e-4)
        ends.append(float(n * w @ expit(x + shift) / total))
    return ends[0], ends[1]


def _prepare(
    outcome: NDArray[Any],
    proba: NDArray[Any],
    weight: NDArray[Any] | None,
    effect: float,
    count: NDArray[Any] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]:
    """Return logits x, weights w of mean 1, numbers n of samples with them, and the sum s."""
    x = logit(np.clip(proba.astype(np.float64), SMALLEST, 1 - SMALLEST))
    if weight is not None or count is not None:
        n = np.ones(len(x)) if count is None else count
        weight = np.ones(len(x)) if weight is None else weight
        w = weight * (n.sum() / (weight @ n))
        return x, w, n / effect, float(w * n @ outcome) / effect
    if len(x) > MANY:
        place = np.rint(100 * x).astype(np.intp)
        least = int(place.min())
        n = np.bincount(place - least)
        x, n = (least + np.flatnonzero(n)) / 100, n[n > 0]
    else:
        x, n = np.unique(x, return_counts=True)
    return x, np.ones(len(x)), n / effect, float(np.sum(outcome)) / effect


def _find_tilt(
    x: NDArray[np.float64],
    w: NDArray[np.float64],
    n: NDArray[np.float64],
    s: float,
    low: float,
    high: float,
) -> float:
    """Return the t, between two numbers, with which log-odds x + w t give the mean s."""
    return float(brentq(lambda t: n * w @ expit(x + w * t) - s, low, high))


def _compute_tail(
    x: NDArray[np.float64],
    w: NDArray[np.float64],
    n: NDArray[np.float64],
    s: float,
    tilt: float | None = None,
) -> float:
    """Return P(sum_i w_i Y_i >= s), where n_i independent Y_i have log-odds x_i.

    `tilt` is that of :func:`_find_tilt`, where it is known.

    The saddlepoint approximation of Lugannani and Rice (1980), with Daniels's correction for
    whole numbers where all weights are 1: within a per cent of the exact tail where the variance
    is above 2, and within ten elsewhere. Where all outcomes are 1 except those of probability
    near 0, it may be up to ten times the exact tail.
    """
    if s <= n * w @ expit(x):
        return 1.0  # it is about 1/2 or more: no test needs the value
    if s >= (w @ n) * (1 - _ROUNDING):
        return float(np.exp(-n @ np.logaddexp(0, -x)))  # all outcomes are 1
    if (t := tilt) is None:
        high = 1.0
        while n * w @ expit(x + w * high) < s:
            high *= 2
        t = _find_tilt(x, w, n, s, 0, high)
    tilted = expit(x + w * t)
    cumulant = n @ (np.logaddexp(0, x + w * t) - np.logaddexp(0, x))
    r = np.sqrt(max(2 * (t * s - cumulant), 0.0))
    spread = np.sqrt(n * w**2 @ (tilted * (1 - tilted)))
    u = (-np.expm1(-t) if (w == 1).all() else t) * spread
    if r < 1e-3 or u <= 0:
        return 0.5
    with np.errstate(under="ignore"):
        density = np.exp(-(r**2) / 2) / np.sqrt(2 * np.pi)
    return float(np.clip(ndtr(-r) + density * (1 / u - 1 / r), 0, 1))


# The interval of a calibration error from its resamples, and the p-value.

# Standard errors from 0 beyond which the sign of a residual is significant.
_SIGNIFICANT = 3.0
# Samples, or groups, that a bin should hold on average for the lower end of an interval. With the
# bins as they are, it lies above the true error in up to .88 of draws; with neighbors joined to
# 10 samples in at most .02 for "l1" and .12 for "l2", to 20 in .02 and .07 (benchmarks/fine_bins).
# Of several classes a sample counts by 4 p (1 - p), so that 20 are those of p = .5: five expected
# of each outcome, as in a chi-squared test.
_FEWEST_PER_BIN = 20
# From so many bins on, the distribution of their true residuals is estimated.
_MANY_BINS = 100
# Scales of residuals in standard errors, and steps of EM for their weights.
_SCALES, _STEPS = np.concatenate([[0.0], 2.0 ** np.arange(-2, 9, 0.5)]), 200


def bootstrap_interval(
    resampled: Resampled,
    seeds: NDArray[np.int64] | OneSeed,
    n_jobs: int | None,
    confidence_level: float,
    verbose: int = 0,
    by_chance: ByChance | None = None,
) -> tuple[list[Any], tuple[float, float]]:
    """Return the resamples (residuals, or values of a user's metric) and the interval's ends.

    `by_chance` are the errors of a calibrated model, if they are known.
    """
    error = resampled.error
    drawn = run(error.bootstrap, seeds, n_jobs, verbose)
    if not isinstance(error, ResidualError):
        is_score = not error.is_zero_of_expected_labels()
        if not is_score:
            by_chance = by_chance or [run(error.by_chance, seeds, n_jobs, verbose)]
            is_score = error.has_both_signs([resampled.estimate, *drawn, *by_chance[0]])
        if is_score:
            draw = partial(error.of_drawn_labels, error.columns())
            of_drawn = run(draw, seeds, n_jobs, verbose)
            ends = compute_score_interval(resampled.estimate, drawn, of_drawn, confidence_level)
            return drawn, ends
    if by_chance is None:
        by_chance = resampled.by_chance(seeds, n_jobs, verbose)

    def bootstrap(error: ResidualError) -> list[Draws]:
        return run(error.bootstrap, seeds, n_jobs, verbose)

    return drawn, compute_interval(resampled, drawn, by_chance, confidence_level, bootstrap)


def compute_interval(
    resampled: Resampled,
    drawn: list[Any],
    by_chance: ByChance,
    confidence_level: float,
    bootstrap: Callable[[ResidualError], list[Draws]],
) -> tuple[float, float]:
    """Return the interval from the resamples and the errors by chance.

    `bootstrap` resamples the error with larger bins.
    """
    tail, error = (1 - confidence_level) / 2, resampled.error
    largest = max(float(np.quantile(errors, 1 - tail)) for errors in by_chance)
    is_zero = resampled.statistic <= largest + _ROUNDING
    if not isinstance(error, ResidualError):
        # Reflected: estimate - (high - estimate) and estimate + (estimate - low). Chance makes the
        # estimate larger, and its resamples once more: the interval may lie below the true error.
        high, low = 2 * resampled.estimate - np.quantile(drawn, [tail, 1 - tail])
        high = max(high, resampled.estimate)
        return 0.0 if is_zero else float(low), float(high)
    inversion = Inversion(error, drawn)
    low, high = 0.0, inversion.find_high(tail)
    if not is_zero:
        # The bootstrap of bins with few samples is too narrow. The true error of larger bins is
        # no larger, so its lower end is valid, too.
        larger = error.merge_bins(_FEWEST_PER_BIN)
        if larger is not None:
            inversion = Inversion(larger, bootstrap(larger))
            if larger.sparse_classes.any():
                inversion.widen()
        low = inversion.find_low(tail)
    if error.squared:
        low, high = low**2, high**2
    return float(low), float(min(high, 1.0))


def compute_score_interval(
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


def compute_pvalue(statistic: float, by_chance: ByChance) -> float:
    """Return the largest p-value ``(1 + #{T* >= T}) / (n + 1)`` over the lists of errors T*."""
    as_large = np.array(by_chance) >= statistic - _ROUNDING
    n_as_large = int(np.count_nonzero(as_large, axis=1).max())
    return (1 + n_as_large) / (1 + as_large.shape[1])


def compute_binned_interval(
    rule: str,
    norm: str,
    sums: NDArray[np.float64],
    norms: NDArray[np.float64],
    confidence_level: float,
    n_resamples: int,
    random_state: Any,
) -> tuple[float, float]:
    """Return the interval of the error of sums over bins.

    `norms` are the Euclidean norms of the weights of correct and of wrong samples.
    """
    error = make_binned_error(rule, norm, sums, norms)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    drawn = draw_binned(error, n_resamples, rng)
    by_chance = draw_null_errors_of_bins(error, sums, norms, n_resamples, rng)
    resampled = Resampled(error.statistic, error.statistic, error)
    bootstrap = partial(draw_binned, n_draws=n_resamples, rng=rng)
    return compute_interval(resampled, drawn, [by_chance], confidence_level, bootstrap)


class Inversion:
    """Errors to be observed if the true residuals were a multiple of the observed ones."""

    def __init__(self, error: ResidualError, drawn: list[Draws]) -> None:
        self.error, self.residuals = error, error.observed.residuals
        self.resamples = Draws(*(np.concatenate(parts) for parts in zip(*drawn)))
        # The bootstrap: resample minus sample imitates sample minus population.
        self.noise = self.resamples._replace(residuals=self.resamples.residuals - self.residuals)
        self.by_noise = error.errors(self.noise)

    def widen(self) -> None:
        """Give classes that stay sparse in merged bins at least the noise of a calibrated model.

        The bootstrap knows no noise of a class that does not occur, and too little where few
        samples are of a class: where one is expected, its mean size is four fifths of the right
        one, averaged over Poisson counts.
        """
        sparse = self.error.sparse_classes
        variance = self.noise.residuals.var(axis=0)
        null = self.error.compute_null_variance().reshape(variance.shape) * sparse[:, np.newaxis]
        factor = np.sqrt(np.maximum(null / np.where(variance > 0, variance, np.inf), 1))
        self.noise = self.noise._replace(residuals=self.noise.residuals * factor)
        self.by_noise = self.error.errors(self.noise)

    def find_low(self, tail: float) -> float:
        """Return the lower end of the interval, missed with probability `tail`."""
        observed = self.error.statistic
        if (self.by_noise >= observed).mean() >= tail:
            return 0.0
        variance = self.noise.residuals.var(axis=0)
        square = np.where(self.residuals != 0, self.residuals**2, 1.0)
        shrunk = self.residuals * np.clip(1 - variance / square, 0, 1)
        shapes = [self.residuals, shrunk]
        if self.error.sparse_classes.any():
            # Of many classes, a few may be off: what the others seem to be is noise.
            shapes.append(self.residuals * (square > _SIGNIFICANT**2 * variance))
        return min(
            self._true_error(shape, lambda errors: (errors >= observed).mean() >= tail)
            for shape in shapes
            if shape.any()
        )

    def find_high(self, tail: float) -> float:
        """Return the upper end of the interval, missed with probability `tail`."""
        # An error below the median of a calibrated model must not lower the upper end.
        least = max(self.error.statistic, float(np.median(self.by_noise)))
        high = max(
            self._true_error(shape, lambda errors: (errors <= least).mean() < tail)
            for shape in (self.residuals, *self._expect_residuals())
        )
        return max(high, self._least_upper_end(tail))

    def _expect_residuals(self) -> list[NDArray[np.float64]]:
        """Return true residuals of expected size, by empirical Bayes; none if there are few bins.

        Noise hides many small true residuals. Multiples of the observed residuals, whose small
        ones are noise alone, give too low an upper end.
        """
        error = self.error
        if error.rule != "bins" or error.norm != "l1" or self.residuals.size < _MANY_BINS:
            return []
        residuals = self.residuals.ravel()
        spread = np.sqrt(
            np.maximum(self.noise.residuals.var(axis=0).ravel(), error.compute_null_variance())
        )
        sizes = np.abs(residuals)
        some = spread > 0
        sizes[some] = spread[some] * estimate_sizes(residuals[some] / spread[some])
        return [np.where(residuals < 0, -sizes, sizes).reshape(self.residuals.shape)]

    def median(self) -> tuple[float, NDArray[np.float64]]:
        """Return the true error for which the observed one is the median, and errors around it."""
        observed = self.error.statistic
        scale = self._scale(self.residuals, lambda errors: np.median(errors) >= observed)
        return self.error.true_error(self.residuals, scale), self._errors(self.residuals, scale)

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
        """Return the upper limit of a signed sum of the residuals, which is at most the error.

        With any signs of the bins, the sum of the residuals is no larger than the error. Residuals
        that are clearly negative get the sign -1, so that they do not cancel positive ones.
        """
        error, residuals = self.error, self.error.observed.residuals
        if residuals.shape[1] > 1:
            return 0.0  # such a sum is no bound of the mean over the classes
        proba, correct = error.proba.ravel().astype(np.float64), error.codes == 1
        if error.rule in ("bins", "debiased"):
            significant = residuals[0, 0] < -_SIGNIFICANT * self.noise.residuals[:, 0].std(axis=0)
            flipped = significant[error.bins[:, 0]]
            proba, correct = np.where(flipped, 1 - proba, proba), correct ^ flipped
        ends = np.array(self._mean_range(correct, proba, tail))
        limit = float(np.abs(ends - np.average(proba, weights=error.weight)).max())
        if error.rule == "ks":
            place = np.abs(residuals[0, 0]).argmax()
            sums = np.sign(residuals[0, 0, place]) * self.resamples.residuals[:, 0, place]
            limit = max(limit, float(np.quantile(sums, 1 - tail)))
        return limit

    def _mean_range(
        self, correct: NDArray[np.bool_], proba: NDArray[np.float64], tail: float
    ) -> tuple[float, float]:
        """Return the ends of the confidence interval of the mean correctness, with these tails."""
        error, effect = self.error, 1.0
        if error.groups is not None:
            weighted = error.weight / error.weight.mean() * (correct - proba)
            effect = compute_design_effect(weighted, error.groups)
        counts = error.counts
        weight = error.weight if counts is None else error.weight / counts
        equal = counts is None and not np.ptp(weight)
        return compute_mean_range(
            correct, proba, None if equal else weight, 1 - 2 * tail, effect, count=counts
        )


def estimate_sizes(z: NDArray[np.float64]) -> NDArray[np.float64]:
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


# Confidence interval of a calibration error, and test of calibration.


class CalibrationTestResult(NamedTuple):
    """Calibration error, and the probability of one at least as large by chance."""

    statistic: float
    pvalue: float


@validate_params(
    VERBOSE_CONSTRAINTS | {"confidence_level": [Interval(Real, 0, 1, closed="neither")]},
    prefer_skip_nested_validation=False,  # the options of the metric are the user's
)
def calibration_error_interval(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    metric: AnyMetric = expected_calibration_error,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    **options: Any,
) -> tuple[float, float]:
    """Confidence interval of the true calibration error, by the bootstrap.

    The error of a sample exceeds that of the population, because chance adds to it: a perfectly
    calibrated model has an error above 0. The interval is for the error of the population. It
    contains every true error under which the observed one is neither unusually large nor unusually
    small. Chance makes the observed error larger, so it **may lie above its own interval**. How
    often it holds the true error is measured in the user guide, regime by regime.

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels, pos_label : of :func:`expected_calibration_error`
    metric : callable or str, default=expected_calibration_error
        A metric of this package by its function, its short name (such as "ece"), its full name or
        its scorer, or a function of the same signature.
    confidence_level : float, default=0.95
        Level in (0, 1).
    n_resamples : int, default=999
        Number of resamples. With 999, the quantiles of common levels fall on a resample, as ranks
        25 and 975 of 1000 do for .95.
    n_jobs : int, default=None
        Number of jobs, as in joblib. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the resamples.
    verbose : int, default=0
        Progress of the draws, as in :class:`joblib.Parallel`; 0 prints nothing.
    groups : array-like of shape (n_samples,), default=None
        The group of every sample, such as its patient or its user: texts, numbers, categories.
        Groups are resampled as a whole; without them, the interval of repeated measurements is too
        narrow. There should be 30 or more; fewer than 20 bring a warning.
    **options : dict
        Options of the metric, such as ``n_bins``.

    Returns
    -------
    low, high : float
        Ends of the interval: in [0, 1], for "overconfidence" of either sign, and for a score or a
        metric of your own in its unit.

    See Also
    --------
    calibration_test : Whether there is an error at all.
    groupwise_calibration_error : The interval of every group.
    compare_calibration : The interval of the difference of two models.

    Notes
    -----
    The errors of this package are norms of residuals. A bootstrap sample has the
    residuals of the samples plus noise, so adding t - 1 times the residuals of the samples gives
    errors that would be observed if the true residuals were t times these. The interval consists
    of the true errors for all t at which the observed error lies between the quantiles of those
    [1]_, with a tail of half of 1 - `confidence_level` on each side. In addition,

    - it begins at 0 if :func:`calibration_test` does not reject at the level of one tail;
    - its lower end is computed for the residuals, and for residuals shrunk by their noise, and is
      the smaller of the two, since chance adds more to an error that comes from few bins;
    - where bins hold fewer than 20 samples (or groups) on average, its lower end is that of larger
      bins, merged from neighbors. Their true error is no larger, and the bootstrap of a bin with
      one sample underestimates its noise. In the columns of several classes, where most
      probabilities are near 0, a sample counts as ``4 p (1 - p)`` samples; a class with fewer than
      20 of these has at least the noise of a calibrated model, and the lower end is no larger than
      if only residuals beyond three standard errors were real;
    - its upper end is no lower than that of a calibrated model with the median error by chance,
      nor than the limit of the difference of mean confidence and accuracy (from the exact
      distribution of the number of correct predictions, the Poisson binomial, which is narrow
      where the model is sure) or, for the Kolmogorov-Smirnov error, of the largest cumulative
      difference;
    - with 100 bins or more, as in the classwise error of many classes, its upper end is the larger
      of those for the observed residuals and for residuals of expected size under the distribution
      that makes the observed ones most likely (empirical Bayes), since noise hides small
      residuals.

    A ``functools.partial`` of an error of this package is that error with options. A `metric` of
    your own counts as a calibration error if it is 0 where all labels occur as often as the
    probabilities say. Its interval is the basic one, the quantiles of the bootstrap reflected
    about the estimate, but begins at 0 where chance explains the error, and ends no lower than the
    estimate. The interval of any other metric, such as the log-loss, is normal, and that of one
    with both signs, such as "overconfidence", too. Its standard error is that of the bootstrap or,
    if larger, that of labels drawn for the resamples from the probabilities, with four
    pseudo-samples spread evenly over the classes: few samples may contain none of the large losses
    of rare labels. With `groups`, labels of a group are drawn together as often as those of the
    data correlate, given the probabilities and four pairs of equal labels: a few rare labels may
    not show that groups share them.

    With 131 072 samples or more, and neither weights nor groups nor several columns, samples of
    nearly equal confidence (8192 bins) are drawn together: a resample is one number per bin. The
    ends differ by no more than with another `random_state`.

    References
    ----------
    .. [1] J. Carpenter, "Test Inversion Bootstrap Confidence Intervals", Journal of the Royal
       Statistical Society B 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import calibration_error_interval
    >>> rng = np.random.default_rng(0)
    >>> y_proba = rng.uniform(size=500)
    >>> y_true = rng.uniform(size=500) < y_proba**2
    >>> low, high = calibration_error_interval(y_true, y_proba, n_resamples=200, random_state=0)
    >>> round(low, 2), round(high, 2)
    (0.13, 0.2)
    """
    given = {"sample_weight": sample_weight, "labels": labels, "pos_label": pos_label}
    resampled = Resampled.of(metric, options, y_true, y_proba, groups=groups, **given)
    warn_of_few_groups(resampled.groups)
    seeds = draw_seeds(random_state, n_resamples)
    return bootstrap_interval(resampled.alone(), seeds, n_jobs, confidence_level, verbose)[1]


# Nested calls are validated: the options of the metric are the user's.
@validate_params(VERBOSE_CONSTRAINTS, prefer_skip_nested_validation=False)
def calibration_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    metric: AnyMetric = expected_calibration_error,
    n_resamples: int = 999,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    **options: Any,
) -> CalibrationTestResult:
    """Test whether the calibration error of a model is larger than chance makes it.

    The null hypothesis is that labels follow the probabilities. Labels are drawn from the
    probabilities `n_resamples` times (consistency resampling [1]_), and the p-value is the
    fraction of errors at least as bad as the one observed, which counts as one of them:
    ``(1 + #{T* >= T}) / (n_resamples + 1)``. The test keeps its level for every metric and every
    number of independent samples; which departures it finds depends on the metric. Samples that
    belong together, such as those of a patient, need `groups`: without them, a calibrated model is
    rejected too often.

    Parameters
    ----------
    y_true, y_proba, labels, pos_label : of :func:`expected_calibration_error`
    metric : callable or str, default=expected_calibration_error
        A metric of this package by its function, its short name (such as "ece"), its full name or
        its scorer, or a function of the same signature; of your own: larger = worse. Of
        "overconfidence", both signs count; of "accuracy" and others where larger = better, small
        values. A metric of the top label tests the confidence in it alone,
        :func:`classwise_calibration_error` all columns.
    n_resamples : int, default=999
        Number of times that labels are drawn.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples. Every sample gets one drawn label, whatever its weight: repeat
        samples instead of counting them by a weight.
    groups : array-like of shape (n_samples,), default=None
        The group of every sample, such as its patient or its user: texts, numbers, categories.
        There should be 30 or more; fewer than 20 bring a warning. The metric has to be a
        calibration error of this package then.
    n_jobs, random_state, verbose, **options : of :func:`calibration_error_interval`

    Returns
    -------
    result : CalibrationTestResult
        Named tuple of ``statistic``, the value of the metric, and ``pvalue``, in
        [1 / (n_resamples + 1), 1]; small = evidence against calibration.

    See Also
    --------
    calibration_error_interval : How large the error may be.
    groupwise_calibration_error : A corrected p-value for every group.

    Notes
    -----
    With `groups`, the error is also compared with errors of residuals (confidence
    minus correctness) with a random sign for every group: if the model is calibrated, the
    residuals of a group have mean 0 however alike its samples are (the wild bootstrap [2]_). The
    p-value is the larger of the two, since rare errors may not have occurred among the samples.

    References
    ----------
    .. [1] J. Bröcker, L. A. Smith, "Increasing the Reliability of Reliability Diagrams", Weather
       and Forecasting 2007.
    .. [2] A. C. Cameron, J. B. Gelbach, D. L. Miller, "Bootstrap-Based Improvements for Inference
       with Clustered Errors", Review of Economics and Statistics 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import calibration_test
    >>> rng = np.random.default_rng(0)
    >>> y_proba = rng.uniform(size=500)
    >>> calibrated = rng.uniform(size=500) < y_proba
    >>> overconfident = rng.uniform(size=500) < y_proba**2
    >>> calibration_test(calibrated, y_proba, random_state=0).pvalue
    0.832
    >>> calibration_test(overconfident, y_proba, random_state=0).pvalue
    0.001
    """
    given = {"sample_weight": sample_weight, "labels": labels, "pos_label": pos_label}
    resampled = Resampled.of(metric, options, y_true, y_proba, groups=groups, **given)
    warn_of_few_groups(resampled.groups)
    seeds = draw_seeds(random_state, n_resamples)
    by_chance = resampled.alone().by_chance(seeds, n_jobs, verbose)
    return CalibrationTestResult(
        resampled.estimate, compute_pvalue(resampled.statistic, by_chance)
    )
