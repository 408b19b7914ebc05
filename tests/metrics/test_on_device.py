"""Probabilities of a tensor are reduced where they lie: a number a sample leaves the device."""

import numpy as np
import pytest
import torch

from skcalib import metrics
from skcalib.metrics import CalibrationAccumulator
from skcalib.utils import _numeric

N, K = 500, 40
# What is a function of confidence and correctness, or of a score a sample, alone.
OF_ONE_NUMBER = {
    "expected_calibration_error": {},
    "maximum_calibration_error": {"strategy": "quantile"},
    "debiased_calibration_error": {},
    "ks_calibration_error": {},
    "smooth_calibration_error": {},
    "reliability_curve": {},
    "area_under_risk_coverage": {"confidence": "entropy"},
    "excess_area_under_risk_coverage": {},
    "risk_coverage_curve": {"confidence": "margin"},
    "accuracy_at_coverage": {"coverage": 0.5},
    "coverage_at_risk": {"risk": 0.5},
}


@pytest.fixture
def data(device, monkeypatch):
    monkeypatch.setattr(_numeric, "BLOCK_SIZE", 100)  # several blocks
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(K, 0.2), size=N).astype(np.float32)
    y = (proba.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1).clip(0, K - 1)
    proba[:9] = 1 / K  # ties, of which the first class is predicted
    return y, proba, torch.tensor(y, device=device), torch.tensor(proba, device=device)


@pytest.mark.parametrize("name", OF_ONE_NUMBER)
def test_probabilities_do_not_go_to_the_host(data, trips, name):
    y, proba, y_there, there = data
    metric, options = getattr(metrics, name), OF_ONE_NUMBER[name]
    both = metric(y_there, there, **options), metric(y, proba, **options)
    found, expected = (np.hstack(r if isinstance(r, tuple) else [r]) for r in both)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    assert max(trips) == N


@pytest.mark.parametrize("name", ["predictive_entropy", "confidence_score", "probability_margin"])
def test_scores_are_made_on_the_device(data, trips, name):
    _, proba, _, there = data
    score = getattr(metrics, name)
    found = score(there)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, score(proba), atol=1e-6)
    assert max(trips) < N  # a block
    assert score(there.double()).dtype == np.float64


def test_accumulator_takes_batches_of_tensors(data, trips):
    y, proba, y_there, there = data
    summed = ("classwise_calibration_error", "smooth_calibration_error", "brier")
    ours, expected = CalibrationAccumulator(), CalibrationAccumulator(metrics=summed)
    everything = CalibrationAccumulator(metrics=summed)
    for rows in (slice(0, 200), slice(200, 200), slice(200, N)):
        ours.update(y_there[rows], there[rows])
        expected.update(y[rows], proba[rows])
    assert max(trips) == 300
    for rows in (slice(0, 200), slice(200, N)):
        everything.update(y_there[rows], there[rows])
    np.testing.assert_allclose(ours.sums_, expected.sums_, atol=1e-9)
    for metric in ("expected_calibration_error", *summed):
        assert everything.result(metric) == pytest.approx(expected.result(metric), abs=1e-7)


@pytest.mark.parametrize("name", ["expected_calibration_error", "area_under_risk_coverage"])
def test_autocast_of_the_caller_does_not_round(data, device, name):
    y, proba, y_there, there = data
    metric, options = getattr(metrics, name), OF_ONE_NUMBER.get(name, {})
    with torch.autocast(device, dtype=torch.bfloat16):
        found = metric(y_there, there, **options)
    assert found == pytest.approx(metric(y, proba, **options), abs=1e-7)


@pytest.mark.slow
def test_sums_are_in_float64(device):
    # In float32 a sum of 2**25 halves stops at 2**24.
    there = torch.full((2**25, 2), 0.5, device=device, dtype=torch.float16)
    labels = np.zeros(2**25, dtype=np.int8)
    assert metrics.expected_calibration_error(labels, there) == 0.5
