"""Comparison of several models on the same samples."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtr, ndtri

from ..utils._compat import Interval, print_elapsed, validate_params
from ..utils._labels import encode_groups
from ..utils._output import as_table
from ..utils._proba import LOSS_FLOOR, Predictions, check_predictions
from ._binned_draws import ResidualError
from ._calibration_error import compute_top_label, expected_calibration_error
from ._intervals import Inversion, bootstrap_interval, compute_score_interval
from ._registry import AnyMetric
from ._resampling import (
    VERBOSE_CONSTRAINTS,
    Resampled,
    draw_seeds,
    run,
    warn_of_few_groups,
    warning_once,
)

if TYPE_CHECKING:
    import pandas as pd


# Is one model worse calibrated than another on the same samples? A paired test.
#
# Cox's recalibration, logit q = a + b logit p, raises the log-likelihood by G nats per sample; G
# is 0 if the model is calibrated. 2 n G is about the squared distance of (a, b) from (0, 1) in
# standard errors. So the standard error of sqrt(2 G) is about 1 / sqrt(n) for every G, while
# that of G grows with G. Therefore the roots are compared.

_STEPS, _ENOUGH = 50, 1e-9  # most Newton steps; a gain below so many nats per sample ends them
_SHORTEST = 1e-6  # shortest part of a step, which is halved until the likelihood grows
_RIDGE = 1e-9  # keeps the Hessian invertible where all probabilities are equal


class Recalibration(NamedTuple):
    """The distance from calibration, sqrt(2 G), and what every sample contributes to it, (n,)."""

    distance: float
    influence: NDArray[np.float64]


def fit_recalibration(
    proba: NDArray[np.floating], outcome: NDArray[Any], weight: NDArray[np.float64]
) -> Recalibration:
    """Fit Cox's recalibration, and return sqrt(2 G) with the contributions of the samples."""
    x = logit(np.clip(proba.astype(np.float64), LOSS_FLOOR, 1 - LOSS_FLOOR))
    design = np.stack([np.ones_like(x), x])
    normalized = weight / weight.sum()

    def log_likelihood(line: NDArray[np.float64]) -> NDArray[np.float64]:
        return outcome * (line @ design) - np.logaddexp(0, line @ design)

    before = log_likelihood(np.array([0.0, 1.0]))
    line = np.array([0.0, 1.0])
    best = normalized @ before
    for _ in range(_STEPS):
        fitted = expit(line @ design)
        slope = design @ (normalized * (outcome - fitted))
        curvature = (design * (normalized * fitted * (1 - fitted))) @ design.T + _RIDGE * np.eye(2)
        step = np.linalg.solve(curvature, slope)
        size = 1.0
        while (
            found := normalized @ log_likelihood(line + size * step)
        ) < best and size > _SHORTEST:
            size /= 2
        if found - best < _ENOUGH:
            break
        line, best = line + size * step, found
    gain = log_likelihood(line) - before
    mean = float(normalized @ gain)
    distance = float(np.sqrt(2 * max(mean, 0.0)))
    # The coefficients maximize the mean gain, so that to first order only the gains move it.
    return Recalibration(distance, (gain - mean) / distance if distance else 0 * gain)


def compute_paired_pvalue(
    first: Recalibration,
    other: Recalibration,
    weight: NDArray[np.float64],
    groups: NDArray[np.intp] | None,
) -> float:
    """Return the two-sided p-value of the null hypothesis that G of two models is equal."""
    parts = weight * (other.influence - first.influence)
    if groups is not None:
        parts = np.bincount(groups, parts).astype(np.float64)
    n = np.count_nonzero(parts)
    if n < 2:
        return 1.0  # the same predictions
    error = np.sqrt(n / (n - 1) * (parts @ parts)) / weight.sum()
    return float(2 * ndtr(-abs(other.distance - first.distance) / error))


# Comparison of the calibration errors of several models on the same samples.


class _Model(NamedTuple):
    """The error of a model, the ends of its interval, and values for differences of two models.

    ``center`` is the error without its bias by chance, ``resamples`` are resampled errors around
    it, (n_resamples,), and ``source`` is the error that was resampled.
    """

    source: Any
    error: float
    low: float
    high: float
    center: float
    resamples: NDArray[np.float64]


@validate_params(
    VERBOSE_CONSTRAINTS
    | {"confidence_level": [Interval(Real, 0, 1, closed="neither")], "as_frame": ["boolean"]},
    prefer_skip_nested_validation=False,  # the options of the metric are the user's
)
def compare_calibration(
    y_true: ArrayLike,
    y_probas: Mapping[str, ArrayLike],
    *,
    metric: AnyMetric = expected_calibration_error,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    as_frame: bool = False,
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    **options: Any,
) -> NDArray[Any] | pd.DataFrame:
    """Compare the calibration errors of models on the same samples.

    Every model has the interval of :func:`calibration_error_interval`, and every model but the
    first the interval of the difference between its error and that of the first. All models are
    evaluated on the same resamples, so whatever makes samples hard for all of them cancels. Two
    intervals may overlap although the difference of the errors is clear.

    Parameters
    ----------
    y_true : of :func:`expected_calibration_error`
    y_probas : dict of str -> array-like of shape (n_samples, n_classes) or (n_samples,)
        The probabilities of every model by its name. The others are compared with the first model.
    metric : callable or str, default=expected_calibration_error
        A metric of this package by its function, its short name (such as "ece"), its full name or
        its scorer, or a function of the same signature, such as :func:`sklearn.metrics.log_loss`;
        smaller = better.
    confidence_level : float, default=0.95
        Level of every single interval, in (0, 1).
    as_frame : bool, default=False
        Whether to return a DataFrame instead of a structured array.
    n_resamples, n_jobs, random_state, verbose : of :func:`calibration_error_interval`
    groups, sample_weight, labels, pos_label, **options : of :func:`calibration_error_interval`

    Returns
    -------
    table : structured array or DataFrame, one line per model
        In the order of `y_probas`, with ``model``, ``error`` (smaller = better), the ends ``low``
        and ``high`` of its interval, and its error minus that of the first model: ``difference``
        (negative = better than the first), ``difference_low`` and ``difference_high``. For the
        first model the difference is 0 and its interval NaN. ``gain`` is the log-likelihood per
        sample, in nats, that recalibration would gain (larger = worse calibrated), and ``pvalue``,
        in [0, 1], that of a paired test of equal gains; small = the model of the larger gain is
        worse calibrated. Of a score, such as the Brier score, `gain` is NaN and ``pvalue`` that of
        equal scores, with the standard error of the interval: below .05 where the interval of 95 %
        excludes 0. Of a calibration error of your own both are NaN.

    Raises
    ------
    ValueError
        If `y_probas` names no model.
    TypeError
        If `y_probas` is not a dict.

    See Also
    --------
    calibration_error_interval : The interval of one model.
    groupwise_calibration_error : One model, many groups.
    skcalib.plots.ReliabilityDisplay : Several models in one picture.

    Notes
    -----
    For the errors of this package, the bias by chance is removed before the difference d is taken:
    each error is replaced by the true error for which the observed one is the median. The interval
    of d follows from the intervals of the two errors and the correlation r of their resamples
    (MOVER [1]_). Its lower end is ``d - sqrt(a^2 + b^2 - 2 r a b)``, where a is the distance from
    the error of the model to its lower end, and b that from the first error to its upper end.
    Where one of the two intervals begins at 0, r is -1, the worst case. Models that agree on every
    sample differ by exactly 0.

    For a `metric` of your own the interval of the difference is that of
    :func:`calibration_error_interval`, with labels drawn from the mean of the two models: normal
    for a score such as the log-loss, basic for a calibration error.

    Where one of two models is calibrated, its interval begins at 0, and the interval of the
    difference, which assumes the worst case, rarely excludes 0. The p-value has power there. It
    compares the gains of recalibration: Cox's ``logit q = a + b logit p`` [2]_ of the confidence
    (with several classes, of the top label) raises the log-likelihood of a model by G per sample.
    The test compares ``sqrt(2 G)`` of the two models, with a standard error from the contributions
    of the samples, or groups, to the difference. It detects probabilities that are too extreme,
    too moderate or too high, not those that are wrong in some ranges and right on average.

    References
    ----------
    .. [1] G. Y. Zou, A. Donner, "Construction of Confidence Limits About Effect Measures: A
       General Approach", Statistics in Medicine 2008.
    .. [2] D. R. Cox, "Two Further Applications of a Model for Binary Regression", Biometrika 1958.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import compare_calibration
    >>> rng = np.random.default_rng(0)
    >>> true = rng.uniform(size=1000)
    >>> y_true = rng.uniform(size=1000) < true
    >>> table = compare_calibration(
    ...     y_true, {"good": true, "overconfident": np.sqrt(true)}, random_state=0
    ... )
    >>> table["error"].round(2), table["difference_low"][1] > 0
    (array([0.04, 0.16]), np.True_)
    """
    if not isinstance(y_probas, Mapping):
        raise TypeError(
            "y_probas must be a dict of probabilities by the names of models, "
            f"got {type(y_probas).__name__}."
        )
    if not y_probas:
        raise ValueError("y_probas must name at least one model, got none.")
    seeds = draw_seeds(random_state, n_resamples)
    given: dict[str, Any] = {
        "sample_weight": sample_weight,
        "labels": labels,
        "pos_label": pos_label,
    }
    models, recalibrated = [], []
    with warning_once():
        values = [
            Resampled.of(metric, options, y_true, y_proba, groups=groups, **given)
            for y_proba in y_probas.values()
        ]
    for (name, y_proba), resampled in zip(y_probas.items(), values):
        with print_elapsed("compare_calibration", verbose, name):
            drawn, ends = bootstrap_interval(resampled, seeds, n_jobs, confidence_level, verbose)
        center = _center(resampled, drawn)
        models.append(_Model(resampled.error, resampled.estimate, *ends, *center))
        own = isinstance(resampled.error, ResidualError)
        if own:
            predictions = check_predictions(y_true, y_proba, **given)
            recalibrated.append(_fit_recalibration(predictions))
    warn_of_few_groups(resampled.groups)
    differences = [(0.0, np.nan, np.nan, np.nan)]
    for model in models[1:]:
        if np.array_equal(models[0].resamples, model.resamples):
            differences.append((0.0, 0.0, 0.0, 1.0))  # equal on every resample
        elif own:
            differences.append((*_compute_difference(models[0], model), np.nan))
        else:
            more = seeds, n_jobs
            differences.append(
                _compute_difference_of_any(models[0], model, confidence_level, *more)
            )
    columns: dict[str, Any] = {"model": list(y_probas)}
    columns |= {name: [getattr(m, name) for m in models] for name in ("error", "low", "high")}
    names = "difference", "difference_low", "difference_high", "gain", "pvalue"
    columns |= dict.fromkeys(names, [np.nan] * len(models))
    columns |= dict(zip((*names[:3], "pvalue"), zip(*differences)))
    if own:
        codes = None if groups is None else encode_groups(groups, len(recalibrated[0][1]))[1]
        (first, weight), *others = recalibrated
        pvalues = [compute_paired_pvalue(first, other, weight, codes) for other, _ in others]
        columns |= {"gain": [found.distance**2 / 2 for found, _ in recalibrated]}
        columns |= {"pvalue": [np.nan, *pvalues]}
    return as_table(
        {name: np.array(column) for name, column in columns.items()}, as_frame=as_frame
    )


def _fit_recalibration(predictions: Predictions) -> tuple[Recalibration, NDArray[np.float64]]:
    """Return Cox's recalibration of the confidence, and the weights of the samples."""
    proba, outcome = compute_top_label(predictions)
    weight = np.ones(len(proba)) if predictions.weight is None else predictions.weight
    return fit_recalibration(proba, outcome, weight), weight


def _center(resampled: Resampled, drawn: list[Any]) -> tuple[float, NDArray[np.float64]]:
    """Return the error without its bias by chance, and the resampled errors around it."""
    if not isinstance(resampled.error, ResidualError):
        return resampled.estimate, np.array(drawn)
    center, errors = Inversion(resampled.error, drawn).median()
    return (center**2 if resampled.error.squared else center), errors


def _compute_difference_of_any(
    first: _Model,
    other: _Model,
    confidence_level: float,
    seeds: NDArray[np.int64],
    n_jobs: int | None,
) -> tuple[float, float, float, float]:
    """Return the difference in a user's metric, the ends of its interval, and its p-value."""
    models = first.source, other.source
    difference, drawn = other.center - first.center, other.resamples - first.resamples
    if any(model.is_zero_of_expected_labels() for model in models):
        tail = (1 - confidence_level) / 2
        low, high = 2 * difference - np.quantile(drawn, [1 - tail, tail])
        return difference, float(low), float(high), np.nan
    # Labels that did not occur still may: draw them from the mean probabilities of both models.
    mean_proba = np.mean([model.columns() for model in models], axis=0)
    before, after = (
        np.array(run(partial(model.of_drawn_labels, mean_proba), seeds, n_jobs))
        for model in models
    )
    low, high = compute_score_interval(difference, drawn, after - before, confidence_level)
    error = (high - low) / (2 * ndtri((1 + confidence_level) / 2))
    pvalue = float(2 * ndtr(-abs(difference) / error)) if error else float(difference == 0)
    return difference, low, high, pvalue


def _compute_difference(first: _Model, other: _Model) -> tuple[float, float, float]:
    """Return the difference of two errors of this package and the ends of its interval."""
    difference = other.center - first.center
    # If an error may be due to chance alone, the signs of its true differences are unknown, and
    # chance may move the two errors in opposite directions: r = -1 is the worst case.
    r = -1.0
    both = np.stack([first.resamples, other.resamples])
    if min(first.low, other.low) > 0 and both.std(axis=1).min() > 0:
        r = float(np.corrcoef(*both)[0, 1])

    def distance(a: float, b: float) -> float:
        return float(np.sqrt(max(a**2 + b**2 - 2 * r * a * b, 0.0)))

    down = distance(other.center - other.low, first.high - first.center)
    up = distance(other.high - other.center, first.center - first.low)
    return difference, difference - down, difference + up
