"""Calibration error group by group."""

from __future__ import annotations

from numbers import Integral, Real
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.parallel import Parallel, delayed

from ..utils.checking._groups import group_codes, holm
from ..utils.checking._validation import check_predictions
from ..utils.meta._private import Interval, validate_params
from ..utils.meta._tables import as_table
from ._calibration_error import expected_calibration_error
from ._gaps import GapError, OneSeed
from ._inversion import interval_of, pvalue_of
from ._names import AnyMetric
from ._resampling import (
    TOLD_CONSTRAINTS,
    Resampled,
    draw_seeds,
    warn_of_few_groups,
)

if TYPE_CHECKING:
    import pandas as pd

# A group with a p-value up to this is tested again: one of a hundred that are calibrated.
_SMALL = 0.01
# New resamples per group of the table, so that the smallest corrected p-value is .005; and the
# most numbers that are drawn for one group.
_DRAWS_PER_GROUP, _MOST_NUMBERS = 200, 200_000_000
# With up to so many samples, one seed draws all resamples.
_FEW_SAMPLES = 5000


@validate_params(
    TOLD_CONSTRAINTS
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
        better), the ends ``low`` and ``high`` of its interval, and ``pvalue``, corrected.

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
    names, index = group_codes(by, len(truth), name="by")
    together = None if groups is None else group_codes(groups, len(truth), name="groups")[1]
    counted = np.ones(len(truth), dtype=bool) if weight is None else weight > 0
    n_samples = np.bincount(index[counted], minlength=len(names))
    groups_judged = np.flatnonzero(n_samples >= min_samples)
    draws = _Draws(n_resamples, _DRAWS_PER_GROUP * len(groups_judged), confidence_level)
    members = [counted & (index == g) for g in groups_judged]
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
    calls = [delayed(_judged)(*pair, draws) for pair in zip(sets, seeds)]
    found = Parallel(n_jobs=n_jobs, verbose=verbose)(calls)
    if found:
        results[:, groups_judged] = np.transpose(found)
    clusters = [resampled.groups for resampled in sets]
    warn_of_few_groups(*clusters)
    error, low, high, pvalue = results
    columns = {"group": names, "n_samples": n_samples, "error": error, "low": low, "high": high}
    tested = ~np.isnan(pvalue)
    pvalue[tested] = holm(pvalue[tested])
    return as_table({**columns, "pvalue": pvalue}, as_frame=as_frame)


class _Draws(NamedTuple):
    """Number of resamples, number of new ones after a small p-value, and level of the interval."""

    n: int
    more: int
    confidence_level: float


def _judged(resampled: Resampled, seed: int, draws: _Draws) -> tuple[float, float, float, float]:
    """Return the error of a group, the ends of its interval, and its p-value.

    The p-value is that of the first resamples or, if it is small, that of new ones alone: either
    is valid, and few resamples cannot give a small p-value.
    """
    error = resampled.error
    few = isinstance(error, GapError) and len(error.codes) <= _FEW_SAMPLES
    first, second = np.random.default_rng(seed).integers(2**31, size=2)
    seeds: Any = OneSeed(int(first), draws.n) if few else draw_seeds(int(first), draws.n)
    by_chance = resampled.by_chance(seeds, None)
    bootstrap = methodcaller("bootstrap", seeds)
    ends = interval_of(resampled, bootstrap(error), by_chance, draws.confidence_level, bootstrap)
    pvalue = pvalue_of(resampled.statistic, by_chance)
    more = min(draws.more, _MOST_NUMBERS // error.proba.size)
    if isinstance(error, GapError) and pvalue <= _SMALL and more > draws.n:
        seeds = OneSeed(int(second), more) if few else draw_seeds(int(second), more)
        pvalue = pvalue_of(resampled.statistic, resampled.by_chance(seeds, None))
    return resampled.estimate, *ends, pvalue
