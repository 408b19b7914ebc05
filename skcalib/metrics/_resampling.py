"""Calibration errors of resampled samples, and of labels drawn from the probabilities."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from ..utils._binning import bin_index, uniform_edges
from ..utils._validation import check_predictions
from ._bins import gap_norm
from ._calibration_error import expected_calibration_error, maximum_calibration_error
from ._debiased import debiased_calibration_error
from ._ks import ks_calibration_error
from ._smooth import GridPlaces, error_of_excess, grid_steps, smooth_calibration_error
from ._top_label import top_label

# A metric as a function of (codes, how often every sample was drawn, None for once each).
Statistic = Callable[[NDArray[np.intp], NDArray[np.intp] | None], float]

# They see a sample as (confidence, correct), so that is all that has to be resampled.
_TOP_LABEL_METRICS = (
    expected_calibration_error,
    maximum_calibration_error,
    debiased_calibration_error,
    ks_calibration_error,
    smooth_calibration_error,
)


class Resampler(NamedTuple):
    """A metric, and the samples that are drawn."""

    statistic: Statistic
    codes: NDArray[np.intp]
    proba: NDArray[Any]

    @classmethod
    def of(
        cls,
        metric: Callable[..., float],
        options: dict[str, Any],
        y_true: ArrayLike,
        y_proba: ArrayLike,
        **given: Any,
    ) -> Resampler:
        """Check one call of the metric; `given` are weights and labels."""
        predictions = check_predictions(y_true, y_proba, **given)
        codes, proba, weight = predictions.codes, predictions.proba, predictions.counts
        if metric in _TOP_LABEL_METRICS:
            # From here on two classes: the confidence is the probability of "correct".
            proba, correct = top_label(predictions)
            codes = correct.astype(np.intp)
        if weight is not None:
            # A sample of weight 0 is none; drawn, it would take the place of one.
            kept = weight > 0
            codes, proba, weight = codes[kept], proba[kept], weight[kept]
        return cls(_statistic(metric, codes, proba, weight, options), codes, proba)

    def estimate(self) -> float:
        """Return the metric of the samples themselves."""
        return self.statistic(self.codes, None)

    def bootstrap(self, seeds: NDArray[np.int64]) -> list[float]:
        """Return the metric of samples drawn with replacement."""
        n = len(self.codes)
        draws = (np.random.default_rng(seed).integers(n, size=n) for seed in seeds)
        return [self.statistic(self.codes, np.bincount(draw, minlength=n)) for draw in draws]

    def null(self, seeds: NDArray[np.int64]) -> list[float]:
        """Return the metric of labels drawn from the probabilities."""
        proba = self.proba
        # The drawn class is the number of cumulative probabilities that u reaches. The last of
        # them is left out: rounded below 1, it would let u reach a class that is not there.
        below = np.cumsum(proba, axis=1, dtype=np.float64)[:, :-1] if proba.ndim == 2 else None
        values = []
        for seed in seeds:
            u = np.random.default_rng(seed).uniform(size=len(proba))
            codes = u < proba if below is None else (u[:, np.newaxis] >= below).sum(axis=1)
            values.append(self.statistic(codes.astype(np.intp), None))
        return values


def check_metric(metric: Callable[..., float], *needed: str) -> None:
    """Raise unless a metric takes the parameters `needed`."""
    try:
        parameters = inspect.signature(metric).parameters.values()
    except ValueError:  # some functions written in C do not tell
        return
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    missing = [name for name in needed if name not in {p.name for p in parameters}]
    if missing:
        raise TypeError(
            f"metric must be a function of (y_true, y_proba) that takes {' and '.join(needed)}, "
            f"got {getattr(metric, '__name__', metric)}, which has no {missing[0]}."
        )


def as_number(value: Any) -> float:
    """Return what a metric returned, which has to be one number."""
    if np.ndim(value) or not np.issubdtype(np.asarray(value).dtype, np.number):
        raise TypeError(f"metric must return a number, got {type(value).__name__}.")
    return float(value)


def draw_seeds(random_state: Any, n: int) -> NDArray[np.int64]:
    """Return a seed for every resample, so that the number of jobs changes nothing."""
    return check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n)


def run(
    draw: Callable[[NDArray[np.int64]], list[float]],
    seeds: NDArray[np.int64],
    n_jobs: int | None,
) -> NDArray[np.float64]:
    """Return the value of every seed."""
    # Several chunks a job, so that a slow one does not keep the others waiting.
    chunks = np.array_split(seeds, min(len(seeds), 4 * effective_n_jobs(n_jobs)))
    return np.concatenate(Parallel(n_jobs=n_jobs)(delayed(draw)(chunk) for chunk in chunks))


def _statistic(
    metric: Callable[..., float],
    codes: NDArray[np.intp],
    proba: NDArray[Any],
    weight: NDArray[np.float64] | None,
    options: dict[str, Any],
) -> Statistic:
    """Return the metric as a function of (codes, count of every sample)."""
    classes = np.arange(2 if proba.ndim == 1 else proba.shape[1])
    whole = partial(metric, labels=classes, **options)
    check_metric(metric, "sample_weight", "labels")
    # An error in the options shows up here.
    as_number(whole(codes, proba, sample_weight=weight))
    if metric in (expected_calibration_error, maximum_calibration_error):
        # Options as the metric itself completes them; the maximum error has no norm to choose.
        bound = inspect.signature(metric).bind(codes, proba, **options)
        bound.apply_defaults()
        if bound.arguments["strategy"] == "uniform":
            norm = bound.arguments.get("norm", "max")
            return _from_bin_sums(proba, weight, bound.arguments["n_bins"], norm)
    if metric is smooth_calibration_error:
        return _from_grid(proba, weight, **options)

    def anew(codes: NDArray[np.intp], count: NDArray[np.intp] | None) -> float:
        # Equal weights are spelled out only where there are some: many metrics do better without.
        mass = None if weight is None and count is None else _mass(weight, count, len(codes))
        return float(whole(codes, proba, sample_weight=mass))

    return anew


def _from_bin_sums(
    proba: NDArray[Any], weight: NDArray[np.float64] | None, n_bins: int, norm: str
) -> Statistic:
    """Return the error over bins of equal width, in which only the sums change."""
    index = bin_index(proba, uniform_edges(n_bins))
    confidence = proba.astype(np.float64)

    def error(codes: NDArray[np.intp], count: NDArray[np.intp] | None) -> float:
        mass = _mass(weight, count, len(codes))
        # No minlength: bins above the last filled one are empty and count 0.
        sums = [np.bincount(index, part * mass) for part in (1.0, confidence, codes)]
        return float(gap_norm(np.stack(sums), norm))

    return error


def _from_grid(
    proba: NDArray[Any], weight: NDArray[np.float64] | None, bandwidth: float | None = None
) -> Statistic:
    """Return the smooth error, in which only the gaps on the grid change."""
    places = GridPlaces.of(proba, grid_steps(bandwidth))
    confidence = proba.astype(np.float64)

    def error(codes: NDArray[np.intp], count: NDArray[np.intp] | None) -> float:
        mass = _mass(weight, count, len(codes))
        excess = places.spread((confidence - codes) * mass)
        return error_of_excess(excess / mass.sum(), bandwidth)

    return error


def _mass(
    weight: NDArray[np.float64] | None, count: NDArray[np.intp] | None, n_samples: int
) -> NDArray[np.float64]:
    mass = np.ones(n_samples) if weight is None else weight
    return mass if count is None else mass * count
