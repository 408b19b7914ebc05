"""Bootstrap interval of a calibration error."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from ..utils._binning import bin_index, uniform_edges
from ..utils._private import Interval, StrOptions, validate_params
from ..utils._validation import check_predictions
from ._bins import gap_norm
from ._calibration_error import expected_calibration_error, maximum_calibration_error
from ._debiased import debiased_calibration_error
from ._ks import ks_calibration_error
from ._smooth import smooth_calibration_error
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


@validate_params(
    {
        "metric": [callable],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "method": [StrOptions({"basic", "percentile"})],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=False,  # the options of the metric are the user's
)
def calibration_error_interval(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    metric: Callable[..., float] = expected_calibration_error,
    confidence_level: float = 0.95,
    method: str = "basic",
    n_resamples: int = 1000,
    n_jobs: int | None = None,
    random_state: Any = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    **options: Any,
) -> tuple[float, float]:
    """Bootstrap confidence interval of a calibration error.

    The estimate is biased upwards, by more the smaller the sample, and a resample is biased
    once more. ``"percentile"``, the plain bootstrap, adds the bias where it should take it
    away: for a perfectly calibrated model its interval never contains 0. ``"basic"`` [1]_
    reflects the resamples about the estimate, and its lower end is 0 unless the estimate exceeds
    what chance gives a perfectly calibrated model (consistency resampling [2]_: labels drawn from
    the probabilities, at the level 1 - `confidence_level`).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, integers or strings.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, in the order of `labels` or as columns of a DataFrame named
        by them, or of the positive class.
    metric : callable, default=expected_calibration_error
        A calibration error of this package, or a function of the same signature.
    confidence_level : float, default=0.95
        Level in (0, 1).
    method : {"basic", "percentile"}, default="basic"
        How resamples become an interval, see above.
    n_resamples : int, default=1000
        Number of resamples.
    n_jobs : int, default=None
        Number of jobs, as in joblib. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the resamples.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; a weight of k counts as k samples.
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns of `y_proba`, in order. None: integers 0, ..., n_classes - 1 or, if
        `y_true` holds other labels, its sorted distinct values.
    pos_label : int, bool or str, default=None
        Label of the positive class where `y_proba` has shape (n_samples,). None: the second of
        `labels`, or 1 where the labels are in {0, 1} or {-1, 1}.
    **options : dict
        Options of the metric, such as ``n_bins``.

    Returns
    -------
    low, high : float
        Ends of the interval, in [0, 1].

    Raises
    ------
    ValueError
        As :func:`expected_calibration_error`.

    Notes
    -----
    The expected and the maximum error over bins of equal width depend on the samples through
    sums over bins alone: samples are put into bins once, and only the sums are resampled. Other
    metrics are evaluated anew with the counts of the samples as weights.

    References
    ----------
    .. [1] A. C. Davison, D. V. Hinkley, "Bootstrap Methods and Their Application", Cambridge
       University Press 1997, Sec. 5.2.
    .. [2] J. Bröcker, L. A. Smith, "Increasing the Reliability of Reliability Diagrams", Weather
       and Forecasting 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import calibration_error_interval
    >>> rng = np.random.default_rng(0)
    >>> y_proba = rng.uniform(size=500)
    >>> y_true = rng.uniform(size=500) < y_proba**2
    >>> low, high = calibration_error_interval(y_true, y_proba, n_resamples=200, random_state=0)
    >>> round(low, 2), round(high, 2)
    (0.13, 0.19)
    """
    predictions = check_predictions(
        y_true, y_proba, sample_weight=sample_weight, labels=labels, pos_label=pos_label
    )
    codes, proba, weight = predictions.codes, predictions.proba, predictions.counts
    if metric in _TOP_LABEL_METRICS:
        # From here on two classes: the confidence is the probability of "correct".
        proba, correct = top_label(predictions)
        codes = correct.astype(np.intp)
    if weight is not None:
        # A sample of weight 0 is none; drawn, it would take the place of one.
        kept = weight > 0
        codes, proba, weight = codes[kept], proba[kept], weight[kept]
    statistic = _statistic(metric, codes, proba, weight, options)
    chunks = _seed_chunks(random_state, n_resamples, n_jobs)
    estimate = statistic(codes, None)
    tail = (1 - confidence_level) / 2
    values = _run(partial(_bootstrap, statistic, codes), chunks, n_jobs)
    low, high = np.quantile(values, [tail, 1 - tail])
    if method == "basic":
        # estimate - (high - estimate) and estimate + (estimate - low): the quantiles reflected.
        low, high = 2 * estimate - high, 2 * estimate - low
        # The errors that a calibrated model with these probabilities would get.
        chance = _run(partial(_consistent, statistic, proba), chunks, n_jobs)
        if estimate <= np.quantile(chance, confidence_level):
            low = 0.0
    return float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1))


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
    whole(codes, proba, sample_weight=weight)  # an error in the options shows up here
    if metric in (expected_calibration_error, maximum_calibration_error):
        # Options as the metric itself completes them; the maximum error has no norm to choose.
        bound = inspect.signature(metric).bind(codes, proba, **options)
        bound.apply_defaults()
        if bound.arguments["strategy"] == "uniform":
            norm = bound.arguments.get("norm", "max")
            return _from_bin_sums(proba, weight, bound.arguments["n_bins"], norm)

    def anew(codes: NDArray[np.intp], count: NDArray[np.intp] | None) -> float:
        return float(whole(codes, proba, sample_weight=_mass(weight, count, len(codes))))

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
        return gap_norm(np.stack(sums), norm)

    return error


def _mass(
    weight: NDArray[np.float64] | None, count: NDArray[np.intp] | None, n_samples: int
) -> NDArray[np.float64]:
    mass = np.ones(n_samples) if weight is None else weight
    return mass if count is None else mass * count


def _seed_chunks(random_state: Any, n: int, n_jobs: int | None) -> list[NDArray[np.int64]]:
    # A seed for every resample, so that the number of jobs changes nothing.
    seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n)
    # Several chunks a job, so that a slow one does not keep the others waiting.
    return np.array_split(seeds, min(n, 4 * effective_n_jobs(n_jobs)))


def _run(
    draw: Callable[..., list[float]], chunks: list[NDArray[np.int64]], n_jobs: int | None
) -> NDArray[np.float64]:
    return np.concatenate(Parallel(n_jobs=n_jobs)(delayed(draw)(seeds) for seeds in chunks))


def _bootstrap(
    statistic: Statistic, codes: NDArray[np.intp], seeds: NDArray[np.int64]
) -> list[float]:
    """Return the statistic of samples drawn with replacement."""
    n_samples = len(codes)
    draws = (np.random.default_rng(seed).integers(n_samples, size=n_samples) for seed in seeds)
    return [statistic(codes, np.bincount(draw, minlength=n_samples)) for draw in draws]


def _consistent(
    statistic: Statistic, proba: NDArray[Any], seeds: NDArray[np.int64]
) -> list[float]:
    """Return the statistic of labels drawn from the probabilities."""
    # The drawn class is the number of cumulative probabilities that u reaches. The last of them
    # is left out: rounded below 1, it would let u reach a class that is not there.
    below = np.cumsum(proba, axis=1, dtype=np.float64)[:, :-1] if proba.ndim == 2 else None
    values = []
    for seed in seeds:
        uniform = np.random.default_rng(seed).uniform(size=len(proba))
        codes = uniform < proba if below is None else (uniform[:, np.newaxis] >= below).sum(axis=1)
        values.append(statistic(codes.astype(np.intp), None))
    return values
