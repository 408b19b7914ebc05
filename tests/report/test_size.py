"""Very many samples: sums of all of them, and a stated part for what takes several passes."""

import numpy as np
import pytest

from skcalib.datasets import make_predictions
from skcalib.metrics import calibration_error_interval
from skcalib.report import CalibrationReport, _data, _sections
from skcalib.report._data import read_data


def test_the_part_has_the_fraction_of_every_class_and_group():
    rng = np.random.default_rng(0)
    n = 200_000
    y, by = rng.choice(3, n, p=[0.9, 0.09, 0.01]), rng.choice(2, n, p=[0.98, 0.02])
    data = read_data(y, rng.dirichlet(np.ones(3), n), labels=range(3), by=by)
    part = data.sample
    assert len(part.codes) == 50_000
    for k in range(3):
        for g in range(2):
            in_all = np.mean((data.codes == k) & (data.by["group"].codes == g))
            in_part = np.mean((part.codes == k) & (part.by["group"].codes == g))
            assert in_part == pytest.approx(in_all, abs=1.5 / 50_000)
    np.testing.assert_array_equal(part.proba, data.proba[data.sampled])
    np.testing.assert_array_equal(part.numbers, data.sampled)


def test_samples_that_belong_together_stay_together():
    rng = np.random.default_rng(0)
    n = 150_000
    patient = rng.integers(30_000, size=n)
    data = read_data(rng.integers(2, size=n), rng.uniform(size=n), labels=[0, 1], groups=patient)
    taken = np.isin(data.groups, data.groups[data.sampled])
    assert 49_000 < len(data.sampled) <= 50_000
    assert np.flatnonzero(taken).tolist() == data.sampled.tolist()


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(_data, "MANY_SAMPLES", 2000)
    monkeypatch.setattr(_data, "N_SAMPLED", 1000)
    monkeypatch.setattr(_sections, "MANY_SAMPLES", 2000)


@pytest.mark.slow
def test_a_report_of_very_many_samples_says_what_it_judged_on_a_part(small_limits):
    y, proba, _ = make_predictions(6000, temperature=1.6, random_state=0)
    found = CalibrationReport.from_predictions(y, proba).results_
    assert found["method"]["n_sampled"] == 1000
    assert "are tested on 1\xa0000 of them" in found["warnings"][0]
    assert found["summary"]["kind"] == "overconfident"
    # Averages are those of all samples, and so is the interval, from sums over bins.
    overall = found["group_tests"][0]
    assert overall["n_samples"] == 6000
    error = found["calibration"]["views"]["top_label"]["errors"]["expected_calibration_error"]
    of_samples = calibration_error_interval(
        y, proba, confidence_level=0.99, n_resamples=500, random_state=0
    )
    assert (error["low"], error["high"]) == pytest.approx(of_samples, abs=0.006)


@pytest.mark.slow
def test_a_small_report_judges_all_samples():
    y, proba, _ = make_predictions(300, random_state=0)
    found = CalibrationReport.from_predictions(y, proba).results_
    assert found["method"]["n_sampled"] == 300
    assert not any("Many samples" in text for text in found["warnings"])
