"""Bootstrap interval of a calibration error."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._private import Interval, StrOptions, validate_params
from ._calibration_error import expected_calibration_error
from ._resampling import Resampler, draw_seeds, run


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

    See Also
    --------
    calibration_test : Is there an error at all?
    groupwise_calibration_error : The interval of every group.

    Notes
    -----
    The expected and the maximum error over bins of equal width, and the smooth error, depend on
    the samples through sums over bins or over a grid: samples are put there once, and only the
    sums are resampled. Other metrics are evaluated anew with the counts of the samples as weights.

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
    resampler = Resampler.of(
        metric,
        options,
        y_true,
        y_proba,
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
    )
    seeds = draw_seeds(random_state, n_resamples)
    estimate = resampler.estimate()
    values = run(resampler.bootstrap, seeds, n_jobs)
    if method == "percentile":
        return _clipped(*_quantiles(values, confidence_level))
    chance = run(resampler.null, seeds, n_jobs)
    return basic_interval(estimate, values, chance, confidence_level)


def basic_interval(
    estimate: float,
    values: NDArray[np.float64],
    chance: NDArray[np.float64],
    confidence_level: float,
) -> tuple[float, float]:
    """Return the interval of an estimate, from the resamples and from the errors by chance."""
    low, high = _quantiles(values, confidence_level)
    # The quantiles reflected: estimate - (high - estimate) and estimate + (estimate - low).
    low, high = 2 * estimate - high, 2 * estimate - low
    by_chance = estimate <= np.quantile(chance, confidence_level)
    return _clipped(0.0 if by_chance else low, high)


def _quantiles(values: NDArray[np.float64], confidence_level: float) -> NDArray[np.float64]:
    tail = (1 - confidence_level) / 2
    return np.quantile(values, [tail, 1 - tail])


def _clipped(low: float, high: float) -> tuple[float, float]:
    return float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1))
