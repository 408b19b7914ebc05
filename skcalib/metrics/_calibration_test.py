"""Test of the hypothesis that a model is calibrated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..utils._private import validate_params
from ._calibration_error import expected_calibration_error
from ._resampling import RESAMPLING_CONSTRAINTS, Resampled, draw_seeds, run

# Equal errors, summed in another order, differ by less.
_ROUNDING = 1e-12


class CalibrationTestResult(NamedTuple):
    """Calibration error, and the probability of one as large by chance."""

    statistic: float
    pvalue: float


# Nested calls are validated: the options of the metric are the user's.
@validate_params(RESAMPLING_CONSTRAINTS, prefer_skip_nested_validation=False)
def calibration_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    metric: Callable[..., float] = expected_calibration_error,
    n_resamples: int = 999,
    n_jobs: int | None = None,
    random_state: Any = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    **options: Any,
) -> CalibrationTestResult:
    """Test whether a model is calibrated: is its error larger than chance makes it?

    The null hypothesis is that labels follow the probabilities. Labels are drawn from the
    probabilities `n_resamples` times (consistency resampling [1]_), and the p-value is the
    fraction of errors that are as large as the one observed, which counts as one of them:
    ``(1 + #{T* >= T}) / (n_resamples + 1)``. The test keeps its level for every metric and every
    number of samples; which departures it finds depends on the metric.

    Parameters
    ----------
    y_true, y_proba, labels, pos_label
        As for :func:`expected_calibration_error`.
    metric : callable, default=expected_calibration_error
        A calibration error of this package, or a function of the same signature; larger = worse.
        A metric of the top label tests the confidence in it alone,
        :func:`classwise_calibration_error` all columns.
    n_resamples : int, default=999
        Number of times that labels are drawn.
    n_jobs : int, default=None
        Number of jobs, as in joblib. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples. A sample gets one label whatever its weight: samples that were
        counted together have to be repeated instead.
    **options : dict
        Options of the metric, such as ``n_bins``.

    Returns
    -------
    result : CalibrationTestResult
        Named tuple of ``statistic``, the error (larger = worse), and ``pvalue``, in
        [1 / (n_resamples + 1), 1]; small = evidence against calibration.

    See Also
    --------
    calibration_error_interval : How large may the error be?
    groupwise_calibration_error : A corrected p-value for every group.

    References
    ----------
    .. [1] J. Bröcker, L. A. Smith, "Increasing the Reliability of Reliability Diagrams", Weather
       and Forecasting 2007.

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
    resampled = Resampled.of(metric, options, y_true, y_proba, **given)
    by_chance = run(resampled.error.by_chance, draw_seeds(random_state, n_resamples), n_jobs)
    return CalibrationTestResult(resampled.estimate, pvalue_of(resampled.statistic, by_chance))


def pvalue_of(statistic: float, by_chance: list[float]) -> float:
    """Return the p-value of an error, from the errors by chance."""
    n_as_large = int(np.count_nonzero(np.array(by_chance) >= statistic - _ROUNDING))
    return (1 + n_as_large) / (1 + len(by_chance))
