"""Calibration error group by group, and label by label where a sample may have several."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.parallel import Parallel, delayed

from ..utils._arrays import as_floats, check_weights
from ..utils._compat import Interval, StrOptions, validate_params
from ..utils._labels import encode_groups, get_column_names
from ..utils._output import as_table
from ..utils._proba import check_predictions, check_values
from ._binned_draws import OneSeed, ResidualError
from ._calibration_error import expected_calibration_error
from ._intervals import bootstrap_interval, compute_pvalue
from ._registry import AnyMetric, get_metric
from ._resampling import (
    VERBOSE_CONSTRAINTS,
    Resampled,
    as_number,
    check_metric,
    draw_seeds,
    warn_of_few_groups,
    warning_once,
)

if TYPE_CHECKING:
    import pandas as pd


def correct_by_holm(
    pvalues: NDArray[np.float64], weight: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return p-values after Holm's correction, weighted by `weight`; by default all are equal.

    In increasing order, each quotient of p-value and weight is multiplied by the sum of the
    weights from its own on, and none falls below one before it.
    """
    weight = np.ones(len(pvalues)) if weight is None else weight
    order = np.argsort(pvalues / weight, kind="stable")
    left = np.cumsum(weight[order][::-1])[::-1]
    corrected = np.empty(len(pvalues))
    corrected[order] = np.maximum.accumulate(pvalues[order] / weight[order] * left)
    return np.minimum(corrected, 1)


# Calibration error group by group.

# A group with a p-value up to this is tested again: one of a hundred that are calibrated.
_SMALL = 0.01
# New resamples per group of the table, so that the smallest corrected p-value is .005; and the
# most numbers that are drawn for one group.
_DRAWS_PER_GROUP, _MOST_NUMBERS = 200, 200_000_000
# With up to so many samples, one seed draws all resamples.
_FEW_SAMPLES = 5000


@validate_params(
    VERBOSE_CONSTRAINTS
    | {
        "min_samples": [Interval(Integral, 1, None, closed="left")],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "as_frame": ["boolean"],
    },
    prefer_skip_nested_validation=False,  # the options of the metric are the user's
)
def groupwise_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    by: Any,
    *,
    metric: AnyMetric = expected_calibration_error,
    min_samples: int = 30,
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
    """Calibration error of every group of samples, with an interval and a p-value.

    A model that is calibrated on the whole may be overconfident for some people and underconfident
    for others. Small groups have large errors by chance alone, and among many groups some have a
    small p-value by chance. Therefore the intervals are those of
    :func:`calibration_error_interval`, and the p-values those of :func:`calibration_test` after
    Holm's correction [1]_: the probability of any false alarm is at most the level, if samples are
    independent or `groups` names those that belong together.

    Parameters
    ----------
    by : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
        The group of every sample: texts, numbers, booleans, intervals as of ``pandas.cut``, or
        categories, which keep their order. Missing values are a group of their own, None. Of
        several columns, every combination that occurs is a group, called "name=value, ...".
    min_samples : int, default=30
        Groups of fewer samples have NaN except for their number of samples, and the p-values are
        not corrected for them.
    n_resamples : int, default=999
        Number of resamples. A p-value of .01 or less is computed again from new resamples, 200
        times as many as there are groups, so that one bad group among hundreds can be found. With
        a metric of your own, no corrected p-value of m groups is below m / (n_resamples + 1).
    verbose : int, default=0
        Progress of the groups, as in :class:`joblib.Parallel`; 0 prints nothing.
    as_frame : bool, default=False
        Whether to return a DataFrame instead of a structured array.
    groups : array-like of shape (n_samples,), default=None
        Source of every sample, such as its patient: texts, numbers, categories. Samples of one
        source are dependent; every interval and p-value allows for it. Fewer than 20 bring a
        warning. The metric has to be a calibration error of this package then.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples. Samples of weight 0 are not counted.
    y_true, y_proba, metric, confidence_level, n_jobs : of :func:`calibration_error_interval`
    random_state, labels, pos_label, **options : of :func:`calibration_error_interval`

    Returns
    -------
    table : structured array or DataFrame, one line per group
        Groups in sorted order, with ``group``, ``n_samples``, ``error`` (in [0, 1], smaller =
        better; of a score, in its unit), the ends ``low`` and ``high`` of its interval, and
        ``pvalue``, corrected.

    Raises
    ------
    ValueError
        If `by` has another length than `y_true`.
    TypeError
        If `by` holds values that cannot be sorted, such as numbers beside texts.

    See Also
    --------
    calibration_error_interval : The interval of all samples.
    calibration_test : The test of all samples.
    classwise_calibration_error : An error over the classes.

    References
    ----------
    .. [1] S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian
       Journal of Statistics 1979.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import groupwise_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> y_proba, by = rng.uniform(size=900), np.repeat(["a", "b", "c"], 300)
    >>> y_true = rng.uniform(size=900) < np.where(by == "b", y_proba**2, y_proba)
    >>> table = groupwise_calibration_error(y_true, y_proba, by, random_state=0)
    >>> table["group"][table["pvalue"] < 0.05].tolist()
    ['b']
    """
    given = {"sample_weight": sample_weight, "labels": labels, "pos_label": pos_label}
    predictions = check_predictions(y_true, y_proba, **given)
    truth, proba, weight = predictions.truth, predictions.proba, predictions.counts
    names, index = encode_groups(by, len(truth), name="by")
    together = None if groups is None else encode_groups(groups, len(truth), name="groups")[1]
    counted = np.ones(len(truth), dtype=bool) if weight is None else weight > 0
    n_samples = np.bincount(index[counted], minlength=len(names))
    groups_judged = np.flatnonzero(n_samples >= min_samples)
    draws = _Draws(n_resamples, _DRAWS_PER_GROUP * len(groups_judged), confidence_level)
    members = [counted & (index == g) for g in groups_judged]
    with warning_once(weight):
        sets = [
            Resampled.of(
                metric,
                options,
                truth[rows],
                proba[rows],
                groups=None if together is None else together[rows],
                sample_weight=None if weight is None else weight[rows],
                labels=np.arange(2 if proba.ndim == 1 else proba.shape[1]),
            )
            for rows in members
        ]
    seeds = draw_seeds(random_state, len(sets))
    results = np.full((4, len(names)), np.nan)
    calls = [delayed(_test_group)(*pair, draws) for pair in zip(sets, seeds)]
    found = Parallel(n_jobs=n_jobs, verbose=verbose)(calls)
    if found:
        results[:, groups_judged] = np.transpose(found)
    clusters = [resampled.groups for resampled in sets]
    warn_of_few_groups(*clusters)
    error, low, high, pvalue = results
    columns = {"group": names, "n_samples": n_samples, "error": error, "low": low, "high": high}
    tested = ~np.isnan(pvalue)
    pvalue[tested] = correct_by_holm(pvalue[tested])
    return as_table({**columns, "pvalue": pvalue}, as_frame=as_frame)


class _Draws(NamedTuple):
    """Number of resamples, number of new ones after a small p-value, and level of the interval."""

    n: int
    more: int
    confidence_level: float


def _test_group(
    resampled: Resampled, seed: int, draws: _Draws
) -> tuple[float, float, float, float]:
    """Return the error of a group, the ends of its interval, and its p-value.

    The p-value is that of the first resamples or, if it is small, that of new ones alone: either
    is valid, and few resamples cannot give a small p-value.
    """
    error = resampled.error
    few = isinstance(error, ResidualError) and len(error.codes) <= _FEW_SAMPLES
    first, second = np.random.default_rng(seed).integers(2**31, size=2)
    seeds: Any = OneSeed(int(first), draws.n) if few else draw_seeds(int(first), draws.n)
    by_chance = resampled.by_chance(seeds, None)
    ends = bootstrap_interval(resampled, seeds, None, draws.confidence_level, by_chance=by_chance)[
        1
    ]
    pvalue = compute_pvalue(resampled.statistic, by_chance)
    more = min(draws.more, _MOST_NUMBERS // error.proba.size)
    if isinstance(error, ResidualError) and pvalue <= _SMALL and more > draws.n:
        seeds = OneSeed(int(second), more) if few else draw_seeds(int(second), more)
        pvalue = compute_pvalue(resampled.statistic, resampled.by_chance(seeds, None))
    return resampled.estimate, *ends, pvalue


# Calibration error where a sample may have several labels.


@validate_params(
    {"metric": [callable, str], "average": [StrOptions({"macro", "micro"}), None]},
    prefer_skip_nested_validation=False,  # the options of the metric are the user's
)
def multilabel_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    metric: AnyMetric = expected_calibration_error,
    average: str | None = "macro",
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> NDArray[np.float64] | float:
    """Calibration error where a sample may have several labels, or none: smaller = better.

    Every label is a binary problem of its own: its column of `y_proba` is the probability that the
    sample has it. Unlike the probabilities of classes, those of a row need not sum to 1. (For
    classes, :func:`classwise_calibration_error` covers every column.)

    Parameters
    ----------
    y_true : array-like of shape (n_samples, n_labels)
        Label indicators: 1 where the sample has the label, else 0.
    y_proba : array-like of shape (n_samples, n_labels)
        Probabilities of the labels. Forests predict a list of arrays (n_samples, 2), one per
        label: give ``np.column_stack([p[:, 1] for p in y_proba])``.
    metric : callable or str, default=expected_calibration_error
        A metric of this package by its function, its short name (such as "ece"), its full name or
        its scorer, or a function of the same signature.
    average : {"macro", "micro"} or None, default="macro"
        "macro" is the mean over the labels, "micro" the error of all pairs of a sample and a
        label taken together, None the error of every label.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; a weight of k counts as k samples.
    **options : dict
        Options of the metric, such as ``n_bins``.

    Returns
    -------
    error : float or ndarray of shape (n_labels,)
        In the unit of the metric.

    Raises
    ------
    ValueError
        If `y_true` does not hold 0 and 1 alone, if the shapes or the names of the columns of two
        DataFrames differ, or if `y_proba` holds NaN or values outside [0, 1].
    TypeError
        If `metric` does not take weights or returns no number.

    See Also
    --------
    classwise_calibration_error : For one class per sample.
    expected_calibration_error : For one class per sample, of the predicted class.

    Examples
    --------
    >>> from skcalib.metrics import multilabel_calibration_error
    >>> y_true = [[1, 0], [1, 1], [0, 0], [1, 0]]
    >>> y_proba = [[0.9, 0.3], [0.9, 0.3], [0.2, 0.1], [0.9, 0.1]]
    >>> round(multilabel_calibration_error(y_true, y_proba), 3)
    0.138
    >>> multilabel_calibration_error(y_true, y_proba, average=None).round(3)
    array([0.125, 0.15 ])
    """
    for name in ("labels", "pos_label"):
        if name in options:
            raise TypeError(
                f"{name} must not be given: every column is a label of its own, "
                f"got {options[name]!r}."
            )
    error = get_metric(metric)
    check_metric(error, "sample_weight")
    indicator, proba = _check_indicator(y_true), as_floats(y_proba, name="y_proba")
    names, wanted = get_column_names(y_proba), get_column_names(y_true)
    if names is not None and wanted is not None and names != wanted:
        raise ValueError(f"y_proba must have the columns of y_true, {wanted}, got {names}.")
    if proba.shape != indicator.shape:
        raise ValueError(
            "y_proba must have the shape of y_true, (n_samples, n_labels), "
            f"got {proba.shape} and {indicator.shape}."
        )
    for column in proba.T:
        check_values(column)
    n_samples, n_labels = indicator.shape
    weight = check_weights(sample_weight, n_samples)
    if average == "micro":
        pair_weight = None if weight is None else np.repeat(weight, n_labels)
        return as_number(
            error(indicator.ravel(), proba.ravel(), sample_weight=pair_weight, **options)
        )
    with warning_once():
        errors = np.array(
            [
                as_number(error(has_label, column, sample_weight=weight, **options))
                for has_label, column in zip(indicator.T, proba.T)
            ]
        )
    return errors if average is None else float(errors.mean())


def _check_indicator(y_true: ArrayLike) -> NDArray[np.intp]:
    if issparse(y_true):
        raise TypeError("y_true must be dense, got a sparse matrix; y_true.toarray() makes it so.")
    array = as_floats(y_true, name="y_true")
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            "y_true must hold label indicators of shape (n_samples, n_labels), "
            f"got shape {array.shape}."
        )
    fault = ~np.isin(array, [0, 1])
    if fault.any():
        row, label = np.argwhere(fault)[0]
        raise ValueError(
            "y_true must hold label indicators, 0 and 1, "
            f"got {array[row, label]:g} in row {row}, column {label}."
        )
    return array.astype(np.intp)
