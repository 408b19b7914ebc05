from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

from skcalib.metrics import (
    area_under_risk_coverage,
    calibration_error_interval,
    debiased_calibration_error,
    excess_area_under_risk_coverage,
    expected_calibration_error,
)
from skcalib.utils import SkcalibWarning


@pytest.mark.parametrize("truth", [0.0, 0.3, 0.62, 1.0])
def test_unbiased_over_all_outcomes(truth):
    # One bin of 6 samples: the mean over every number of correct ones, in closed form.
    n, p = 6, 0.6
    chance = binom.pmf(np.arange(n + 1), n, truth)
    plain, debiased = [], []
    for n_correct in range(n + 1):
        y = np.arange(n) < n_correct
        plain.append(expected_calibration_error(y, np.full(n, p), norm="l2") ** 2)
        debiased.append(debiased_calibration_error(y, np.full(n, p), squared=True))
    assert chance @ debiased == pytest.approx((p - truth) ** 2, abs=1e-12)
    assert chance @ plain == pytest.approx((p - truth) ** 2 + truth * (1 - truth) / n, abs=1e-12)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_naive_loop(strategy):
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(4), size=90), rng.integers(4, size=90)
    confidence, correct = proba.max(axis=1), proba.argmax(axis=1) == y
    edges = np.linspace(0, 1, 6)
    if strategy == "quantile":
        edges[1:-1] = np.sort(confidence)[[17, 35, 53, 71]]
    expected = 0.0
    for low, high in pairwise(edges):
        rows = (confidence > low) & (confidence <= high)
        n = rows.sum()
        if n > 1:
            accuracy = correct[rows].mean()
            gap = (confidence[rows].mean() - accuracy) ** 2
            expected += n / 90 * (gap - accuracy * (1 - accuracy) / (n - 1))
    options = {"n_bins": 5, "strategy": strategy}
    found = debiased_calibration_error(y, proba, squared=True, **options)
    assert found == pytest.approx(expected, abs=1e-12)
    assert debiased_calibration_error(y, proba, **options) == pytest.approx(np.sqrt(expected))


def test_negative_estimates_have_the_root_zero():
    y, p = [0, 1, 0, 1], [0.5] * 4
    assert debiased_calibration_error(y, p, squared=True) == pytest.approx(-0.25 / 3)
    assert debiased_calibration_error(y, p) == 0


def test_single_rows_count_nothing():
    y, p = [0, 1, 0, 0, 0], [0.1, 0.9, 0.5, 0.5, 0.5]
    found = debiased_calibration_error(y, p, n_bins=5, squared=True)
    assert found == pytest.approx(3 / 5 * 0.25)
    assert debiased_calibration_error([0], [0.9]) == 0


def test_bad_option():
    with pytest.raises(ValueError, match="'squared' parameter"):
        debiased_calibration_error([0, 1], [0.2, 0.7], squared="yes")


@pytest.mark.parametrize(
    "metric",
    [
        debiased_calibration_error,
        area_under_risk_coverage,
        excess_area_under_risk_coverage,
        partial(
            calibration_error_interval,
            metric=debiased_calibration_error,
            n_resamples=20,
            random_state=0,
        ),
        partial(calibration_error_interval, metric=area_under_risk_coverage, n_resamples=20),
    ],
)
def test_normalized_weights_are_named_once_where_their_scale_matters(metric):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 200)
    y, weight = rng.integers(0, 3, 200), rng.uniform(0.5, 2, 200)
    metric(y, proba, sample_weight=weight)  # no warning, which would be an error
    with pytest.warns(SkcalibWarning, match="sample_weight sums to 1 for 200 samples") as caught:
        metric(y, proba, sample_weight=weight / weight.sum())
    assert len(caught) == 1
    # The scale of weights does not matter to this one.
    calibration_error_interval(y, proba, n_resamples=9, sample_weight=weight / weight.sum())
