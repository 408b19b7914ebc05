"""Confidence interval of a calibration error, and test of calibration."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from ..utils.meta._private import Interval, validate_params
from ._calibration_error import expected_calibration_error
from ._inversion import bootstrap_interval, pvalue_of
from ._names import AnyMetric
from ._resampling import (
    TOLD_CONSTRAINTS,
    Resampled,
    draw_seeds,
    warn_of_few_groups,
)


class CalibrationTestResult(NamedTuple):
    """Calibration error, and the probability of one at least as large by chance."""

    statistic: float
    pvalue: float


@validate_params(
    TOLD_CONSTRAINTS | {"confidence_level": [Interval(Real, 0, 1, closed="neither")]},
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

    The error of a sample exceeds that of the population, because chance adds gaps: a perfectly
    calibrated model has an error above 0. The interval is for the error of the population. It
    contains every true error under which the observed one is neither unusually large nor unusually
    small. Chance makes the observed error larger, so it **may lie above its own interval**. How
    often it holds the true error is measured in the user guide, regime by regime.

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels, pos_label : of :func:`expected_calibration_error`
    metric : callable or str, default=expected_calibration_error
        A calibration error of this package, its name or its scorer, or a function of the same
        signature.
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
        Ends of the interval: in [0, 1], and for a metric of your own in its unit.

    See Also
    --------
    calibration_test : Is there an error at all?
    groupwise_calibration_error : The interval of every group.
    compare_calibration : The interval of the difference of two models.

    Notes
    -----
    The errors of this package are norms of gaps. A bootstrap sample has the gaps of the samples
    plus noise, so adding t - 1 times the gaps of the samples gives errors that would be observed
    if the true gaps were t times these. The interval consists of the true errors for all t at
    which the observed error lies between the quantiles of those [1]_, with a tail of half of 1 -
    `confidence_level` on each side. In addition,

    - it begins at 0 if :func:`calibration_test` does not reject at the level of one tail;
    - its lower end is computed for the gaps, and for gaps shrunk by their noise, and is the
      smaller of the two, since chance adds more to an error that comes from few bins;
    - where bins hold fewer than 20 samples (or groups) on average, its lower end is that of larger
      bins, merged from neighbors. Their true error is no larger, and the bootstrap of a bin with
      one sample underestimates its noise;
    - its upper end is no lower than that of a calibrated model with the median error by chance,
      nor than the limit of the difference of mean confidence and accuracy (from the exact
      distribution of the number of correct predictions, the Poisson binomial, which is narrow
      where the model is sure) or, for the Kolmogorov-Smirnov error, of the largest cumulative gap;
    - with 100 cells or more, as in the classwise error of many classes, its upper end is the
      larger of those for the observed gaps and for gaps of expected size under the distribution
      that makes the observed ones most likely (empirical Bayes), since noise hides small gaps.

    A ``functools.partial`` of an error of this package is that error with options. A `metric` of
    your own counts as a calibration error if it is 0 where all labels occur as often as the
    probabilities say. Its interval is the basic one, the quantiles of the bootstrap reflected
    about the estimate, but begins at 0 where chance explains the error, and ends no lower than the
    estimate. The interval of any other metric, such as the log-loss, is normal. Its standard error
    is that of the bootstrap or, if larger, that of labels drawn for the resamples from the
    probabilities, with four pseudo-samples spread evenly over the classes: few samples may contain
    none of the large losses of rare labels.

    With 131 072 samples or more, and neither weights nor groups nor several columns, samples of
    nearly equal confidence (8192 cells) are drawn together: a resample is one number per cell. The
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
@validate_params(TOLD_CONSTRAINTS, prefer_skip_nested_validation=False)
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
    """Test whether a model is calibrated: is its error larger than chance makes it?

    The null hypothesis is that labels follow the probabilities. Labels are drawn from the
    probabilities `n_resamples` times (consistency resampling [1]_), and the p-value is the
    fraction of errors at least as large as the one observed, which counts as one of them:
    ``(1 + #{T* >= T}) / (n_resamples + 1)``. The test keeps its level for every metric and every
    number of independent samples; which departures it finds depends on the metric. Samples that
    belong together, such as those of a patient, need `groups`: without them, a calibrated model is
    rejected too often.

    Parameters
    ----------
    y_true, y_proba, labels, pos_label : of :func:`expected_calibration_error`
    metric : callable or str, default=expected_calibration_error
        A calibration error of this package, its name or its scorer, or a function of the same
        signature; larger = worse.
        A metric of the top label tests the confidence in it alone,
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
        Named tuple of ``statistic``, the error (larger = worse), and ``pvalue``, in
        [1 / (n_resamples + 1), 1]; small = evidence against calibration.

    See Also
    --------
    calibration_error_interval : How large may the error be?
    groupwise_calibration_error : A corrected p-value for every group.

    Notes
    -----
    With `groups`, the error is also compared with those of gaps (confidence minus correctness)
    with a random sign for every group: if the model is calibrated, the gaps of a group have mean 0
    however alike its samples are (the wild bootstrap [2]_). The p-value is the larger of the two,
    since rare errors may not have occurred among the samples.

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
    return CalibrationTestResult(resampled.estimate, pvalue_of(resampled.statistic, by_chance))
