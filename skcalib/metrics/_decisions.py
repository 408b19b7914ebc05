"""Net benefit of acting where the probability exceeds a threshold, and the decision curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral, Real
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.utils import check_random_state

from ..utils._arrays import as_floats
from ..utils._backends import align_chunks, is_chunked, reduce_chunks
from ..utils._compat import Interval, validate_params
from ..utils._output import as_table
from ..utils._proba import Predictions, check_predictions
from ._per_sample import get_classes_of_chunks
from ._registry import register_losses
from ._resampling import warn_of_few_groups
from ._risk_model import Array, Estimate, Sample, find_root, get_groups, iter_group_blocks

if TYPE_CHECKING:
    import pandas as pd

# From rates below this on, the default thresholds are evenly spaced in their logarithm.
_RARE = 0.05
_N_THRESHOLDS = 99
_AT_ONCE = 2**21
# Below this skewness the cubic transformation is the identity to rounding.
_SYMMETRIC = 1e-8


def check_two_classes(
    y_true: ArrayLike, y_proba: ArrayLike, sample_weight: Any, labels: Any, pos_label: Any
) -> Predictions:
    """Validate predictions, and raise unless they are of two classes."""
    predictions = check_predictions(y_true, y_proba, sample_weight, labels, pos_label)
    if predictions.proba.ndim == 2 and predictions.proba.shape[1] != 2:
        raise ValueError(
            "y_proba must be of two classes, or the probability of one class, of shape "
            f"(n_samples,), got shape {predictions.proba.shape}."
        )
    return predictions


def net_benefit(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    threshold: float | ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float | NDArray[np.float64]:
    """Net benefit of acting on the samples whose probability is at least a threshold.

    Whoever acts from a probability of t on takes 1 - t false actions as the price of t right ones:
    a false action costs ``t / (1 - t)`` of what a right one gains. The net benefit is the mean of
    1 for each positive sample acted on and of ``-t / (1 - t)`` for each negative one [1]_. Acting
    on none has a net benefit of 0, acting on all ``rate - (1 - rate) t / (1 - t)``. Times 100 it
    is the number of right actions per 100 samples, less the false ones at their price.

    Parameters
    ----------
    y_true : of :func:`expected_calibration_error`
    y_proba : array-like or dask array of shape (n_samples,) or (n_samples, 2)
        Probabilities of the positive class or of both classes, of which the second is positive.
        The mean over the chunks of a dask array is computed where they are.
    threshold : float or array-like of shape (n_thresholds,)
        Probability from which on one acts, in [0, 1).
    sample_weight, labels, pos_label : of :func:`expected_calibration_error`

    Returns
    -------
    net_benefit : float or ndarray of shape (n_thresholds,)
        At most the rate of positive samples, larger = better; negative where acting on none would
        be better.

    Raises
    ------
    ValueError
        If a threshold is outside [0, 1), or if `y_proba` has more than two columns.

    See Also
    --------
    decision_curve : At all thresholds, with intervals, beside acting on all.
    expected_cost : Any costs, and more decisions than two.
    skcalib.plots.DecisionCurveDisplay : Plots it.

    References
    ----------
    .. [1] A. J. Vickers, E. B. Elkin, "Decision Curve Analysis: A Novel Method for Evaluating
       Prediction Models", Medical Decision Making 2006.

    Examples
    --------
    >>> from skcalib.metrics import net_benefit
    >>> y_true, y_proba = [0, 0, 0, 1, 1], [0.1, 0.3, 0.6, 0.4, 0.9]
    >>> net_benefit(y_true, y_proba, 0.5)
    0.0
    >>> net_benefit(y_true, y_proba, [0.2, 0.35]).round(3)
    array([0.3  , 0.292])
    """
    if is_chunked(y_proba):
        of_part = partial(net_benefit, threshold=threshold)
        values = average_over_chunks(of_part, y_true, y_proba, sample_weight, labels, pos_label)
        return values if np.ndim(threshold) else float(values[0])
    predictions = check_two_classes(y_true, y_proba, sample_weight, labels, pos_label)
    thresholds = as_floats(threshold, name="threshold").astype(np.float64)
    if thresholds.ndim > 1 or not np.all((thresholds >= 0) & (thresholds < 1)):
        raise ValueError(f"threshold must be in [0, 1), got {threshold!r}.")
    sample = Sample.of(predictions, 1, np.arange(len(predictions.proba)))
    values = _compute_mean_benefit(sample.outcome, sample, np.atleast_1d(thresholds))
    return values if thresholds.ndim else float(values[0])


def _compute_benefits(proba: NDArray[Any], threshold: float) -> Array:
    """Return the benefit of a decision at one threshold under each of two labels, (n, 2)."""
    acted = (proba if proba.ndim == 1 else proba[:, 1]) >= threshold
    return acted[:, np.newaxis] * np.array([-threshold / (1 - threshold), 1.0])


register_losses(net_benefit, _compute_benefits)


def average_over_chunks(
    metric: Callable[..., Any],
    y_true: Any,
    y_proba: Any,
    sample_weight: Any,
    labels: ArrayLike | None,
    pos_label: Any,
) -> Array:
    """Return the mean over all samples of a metric that is a mean, from those of the chunks."""
    proba, truth, weight = align_chunks(
        True, y_proba=y_proba, y_true=y_true, sample_weight=sample_weight
    )
    if labels is None:
        # One chunk alone may lack a class that another chunk has.
        labels = get_classes_of_chunks(truth, proba.shape[1:], pos_label)
    of_chunk = partial(_sum_of_chunk, metric, {"labels": labels, "pos_label": pos_label})
    total = np.atleast_1d(reduce_chunks(of_chunk, add, proba, truth, weight))
    if not total[-1] > 0:
        raise ValueError("y_proba must have samples of positive weight, got none.")
    return np.asarray(total[:-1] / total[-1])


def _sum_of_chunk(
    metric: Callable[..., Any], options: dict[str, Any], proba: Any, truth: Any, weight: Any
) -> Any:
    """Return the sums of a metric, and the weight, which is last; 0 without samples."""
    mass = float(len(proba) if weight is None else np.sum(weight))
    if not mass > 0:
        return 0.0
    return np.append(metric(truth, proba, sample_weight=weight, **options), 1.0) * mass


@validate_params(
    {
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "as_frame": ["boolean"],
    }
)
def decision_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike | Mapping[str, ArrayLike],
    *,
    thresholds: ArrayLike | None = None,
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    random_state: Any = None,
    as_frame: bool = False,
) -> NDArray[Any] | pd.DataFrame:
    """Net benefit at many thresholds, with intervals, a band, and what the model predicts.

    A model is worth acting on at a threshold if its net benefit exceeds 0 (acting on none) and
    that of acting on all [1]_. A calibrated model delivers what it predicts; the difference of
    ``predicted`` and ``net_benefit`` is what its probabilities promise and do not keep.

    Parameters
    ----------
    y_true : of :func:`expected_calibration_error`
    y_proba : array-like of shape (n_samples,) or (n_samples, 2), or dict of str to such arrays
        Probabilities of the positive class or of both classes, of which the second is positive;
        those of several models by their names.
    thresholds : array-like of shape (n_thresholds,), default=None
        Probabilities from which on one acts, in (0, 1). None means .01, .02, ..., .99 or, where
        fewer than 5 % of the samples are positive, 99 thresholds from a tenth of their fraction to
        .99, evenly spaced in the logarithm.
    groups : array-like of shape (n_samples,), default=None
        The group of every sample, such as its patient: texts, numbers, categories. Samples of a
        group are not taken for independent. There should be 30 or more; fewer than 20 bring a
        warning.
    sample_weight, labels, pos_label : of :func:`expected_calibration_error`
    confidence_level : float, default=0.95
        Level, in (0, 1), of the interval at every threshold, and of the band.
    n_resamples : int, default=999
        Number of curves drawn for the width of the band.
    random_state : int, RandomState instance or None, default=None
        Draws these curves.
    as_frame : bool, default=False
        Whether to return a DataFrame instead of a structured array.

    Returns
    -------
    table : structured array or DataFrame, one line per model and threshold
        With ``model`` ("" for an array), ``threshold``, ``net_benefit`` (larger = better), the
        ends ``low`` and ``high`` of its interval, those of a band that holds the whole curve,
        ``band_low`` and ``band_high``, ``predicted``, the net benefit if the probabilities were
        right, ``act_on_all``, that of acting on all samples, and ``interventions_avoided``, how
        many actions per sample the model saves at the same number of positive samples found.

    Raises
    ------
    ValueError
        If a threshold is outside (0, 1), if `y_proba` has more than two columns, or names no
        model.

    Warns
    -----
    SkcalibWarning
        If there are fewer than 20 groups.

    See Also
    --------
    net_benefit : The value at one threshold.
    expected_cost : Any costs, and more decisions than two.
    validation_summary : Slope, calibration in the large and others in a table.
    skcalib.plots.DecisionCurveDisplay : Plots the curve.

    Notes
    -----
    The net benefit is a mean over samples. Its standard error comes from the sums over groups
    (without `groups`, every sample is one), plus one positive and one negative group acted on at
    every threshold: where the model hardly ever acts, the samples alone would give an error of 0.
    The interval is Student's, with the effective number of groups less one as degrees of freedom,
    corrected for the skewness of the sums by Hall's cubic transformation [2]_: few right actions
    of much gain, or few false ones at a high price, make the plain interval fail on one side.
    The band is wider by the quantile of the largest standardized deviation of curves drawn with
    the same covariance (the multiplier bootstrap).

    References
    ----------
    .. [1] A. J. Vickers, E. B. Elkin, "Decision Curve Analysis: A Novel Method for Evaluating
       Prediction Models", Medical Decision Making 2006.
    .. [2] P. Hall, "On the Removal of Skewness by Transformation", Journal of the Royal
       Statistical Society B 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import decision_curve
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.beta(1, 4, size=1000)
    >>> y_true = rng.uniform(size=1000) < risk
    >>> table = decision_curve(
    ...     y_true, {"right": risk, "too high": np.sqrt(risk)}, thresholds=[0.3], random_state=0
    ... )
    >>> for row in table:
    ...     print(f"{row['model']}: {row['net_benefit']:.3f}, predicted {row['predicted']:.3f}")
    right: 0.060, predicted 0.048
    too high: -0.005, predicted 0.197
    """
    models = y_proba if isinstance(y_proba, Mapping) else {"": y_proba}
    if not models:
        raise ValueError("y_proba must name at least one model, got none.")
    rng = check_random_state(random_state)
    parts: list[dict[str, NDArray[Any]]] = []
    for name, of_model in models.items():
        predictions = check_two_classes(y_true, of_model, sample_weight, labels, pos_label)
        group = get_groups(groups, len(predictions.proba))
        if groups is not None and not parts:
            warn_of_few_groups(group)
        sample = Sample.of(predictions, 1, group)
        grid = _check_thresholds(thresholds, float(sample.weight @ sample.outcome))
        drawing = _Drawing(confidence_level, n_resamples, rng)
        parts.append({"model": np.full(len(grid), name, dtype=object)})
        parts[-1] |= _make_curve(sample, grid, drawing)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return as_table(columns, as_frame=as_frame)


class _Drawing(NamedTuple):
    confidence_level: float
    n_resamples: int
    rng: np.random.RandomState


def _check_thresholds(thresholds: ArrayLike | None, rate: float) -> Array:
    """Return the thresholds, checked, or those of the default."""
    if thresholds is None:
        if 0 < rate < _RARE:
            return np.geomspace(rate / 10, 0.99, _N_THRESHOLDS)
        return np.arange(1, _N_THRESHOLDS + 1) / 100
    grid = np.atleast_1d(as_floats(thresholds, name="thresholds")).astype(np.float64)
    if grid.ndim > 1 or not grid.size or not np.all((grid > 0) & (grid < 1)):
        raise ValueError(f"thresholds must be in (0, 1), got {thresholds!r}.")
    return grid


def _compute_mean_benefit(outcome: Array, sample: Sample, thresholds: Array) -> Array:
    """Return the mean of [p >= t] (y - (1 - y) t / (1 - t)) at every threshold."""
    order = np.argsort(sample.proba, kind="stable")[::-1]
    benefit, harm = (
        np.append(0.0, np.cumsum((sample.weight * values)[order]))
        for values in (outcome, 1 - outcome)
    )
    acted = len(order) - np.searchsorted(sample.proba[order[::-1]], thresholds, side="left")
    return benefit[acted] - harm[acted] * thresholds / (1 - thresholds)


def _make_curve(sample: Sample, grid: Array, drawing: _Drawing) -> dict[str, Array]:
    """Return the columns of one model."""
    value = _compute_mean_benefit(sample.outcome, sample, grid)
    covariance, third = _compute_moments(sample, grid, value)
    error, freedom = np.sqrt(np.diag(covariance)), sample.freedom
    skewness = third / error**3
    tail = (1 - drawing.confidence_level) / 2
    reach = float(student.isf(tail, freedom))
    correlation = covariance / np.outer(error, error)
    drawn = drawing.rng.standard_normal((drawing.n_resamples, len(grid))) @ find_root(correlation)
    largest = np.abs(drawn).max(axis=1)
    # The quantile that a further curve would exceed with probability 1 - level.
    most = float(np.quantile(largest, drawing.confidence_level, method="weibull"))
    wide = max(float(student.isf(norm.sf(most), freedom)), reach)
    rate = float(sample.weight @ sample.outcome)
    odds = grid / (1 - grid)
    act_on_all = rate - (1 - rate) * odds
    return {
        "threshold": grid,
        "net_benefit": value,
        "low": value - _invert_skew(reach, skewness) * error,
        "high": value - _invert_skew(-reach, skewness) * error,
        "band_low": value - _invert_skew(wide, skewness) * error,
        "band_high": value - _invert_skew(-wide, skewness) * error,
        "predicted": _compute_mean_benefit(sample.proba, sample, grid),
        "act_on_all": act_on_all,
        "interventions_avoided": (value - act_on_all) / odds,
    }


def _invert_skew(reach: float, skewness: Array) -> Array:
    """Return the t statistics that Hall's transformation takes to `reach`.

    It is t + s t^2 / 3 + s^2 t^3 / 27 + s / 6 for the skewness s of the mean, whose quantiles are
    those of a symmetric statistic to the second order; for s = 0 it is t.
    """
    s = np.where(np.abs(skewness) < _SYMMETRIC, _SYMMETRIC, skewness)
    return 3 / s * (np.cbrt(1 + s * (reach - s / 6)) - 1)


def estimate_benefit(sample: Sample, threshold: float) -> Estimate:
    """Return the net benefit at one threshold, with the influences that its interval uses."""
    grid = np.array([threshold])
    value = _compute_mean_benefit(sample.outcome, sample, grid)
    error = np.sqrt(_compute_moments(sample, grid, value)[0][0])
    return Estimate(float(value[0]), error)


def _compute_moments(sample: Sample, grid: Array, value: Array) -> tuple[Array, Array]:
    """Return the covariance of the net benefits at all thresholds, and their third moments."""
    odds, n = grid / (1 - grid), sample.n_groups
    order = np.argsort(sample.group, kind="stable")
    group = sample.group[order]
    total, cubes = np.zeros((len(grid), len(grid))), np.zeros(len(grid))
    for rows in iter_group_blocks(group, max(1, _AT_ONCE // len(grid))):
        some = order[rows]
        outcome = sample.outcome[some, np.newaxis]
        gain = (sample.proba[some, np.newaxis] >= grid) * (outcome - (1 - outcome) * odds)
        gain = (gain - value) * sample.weight[some, np.newaxis]
        starts = np.flatnonzero(np.diff(group[rows], prepend=-1))
        of_groups = np.add.reduceat(gain, starts, axis=0)
        total += of_groups.T @ of_groups
        cubes += (of_groups * of_groups * of_groups).sum(axis=0)
    total *= n / max(n - 1, 1)
    cubes *= n**2 / max((n - 1) * (n - 2), 1)
    # One positive and one negative group more, acted on at every threshold.
    weight = sample.of_group
    return total + weight**2 * (1 + np.outer(odds, odds)), cubes + weight**3 * (1 - odds**3)
