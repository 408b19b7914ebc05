"""A program that makes numpy raise on underflow gets numbers all the same: underflow is 0."""

import numpy as np
import pytest

from skcalib import metrics, posthoc

RNG = np.random.default_rng(0)
PROBA = RNG.dirichlet(np.full(3, 0.05), size=300)
PROBA[0], PROBA[1] = [1 - 1e-310, 1e-310, 0], [5e-324, 1, 0]
Y = RNG.integers(3, size=300)


@pytest.mark.parametrize(
    "name",
    [
        "expected_calibration_error", "smooth_calibration_error", "debiased_calibration_error",
        "ks_calibration_error", "classwise_calibration_error", "calibration_error_interval",
        "calibration_test", "reliability_curve", "score_decomposition",
        "generalized_brier_score", "area_under_risk_coverage",
    ],
)  # fmt: skip
def test_metrics(name):
    metric = getattr(metrics, name)
    options = {"random_state": 0} if "interval" in name or "test" in name else {}
    expected = metric(Y, PROBA, **options)
    with np.errstate(all="raise"):
        np.testing.assert_equal(metric(Y, PROBA, **options), expected)


def test_entropies():
    with np.errstate(all="raise"):
        entropy = metrics.predictive_entropy(PROBA)
    assert entropy[1] == pytest.approx(0, abs=1e-300)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize(
    "name", ["StackedCalibration", "TemperatureScaling", "HistogramBinning", "BetaCalibration"]
)
def test_calibrators(name):
    calibrator = getattr(posthoc, name)(input="proba")
    expected = calibrator.fit(PROBA, Y).predict_proba(PROBA)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(calibrator.fit(PROBA, Y).predict_proba(PROBA), expected)
