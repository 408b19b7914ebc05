"""What is fitted by sums over chunks is what is fitted in memory."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skcalib import posthoc
from skcalib.posthoc import PostHocCalibratedClassifier
from skcalib.posthoc._linear_fit import _Problem
from skcalib.selection import SelectiveClassifier
from skcalib.selection._risk_control import control_risk, control_risk_of_counts
from skcalib.utils._backends import compute_log_bins
from tests.posthoc._sample import sample

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

EXACT = [
    "DirichletCalibration", "MatrixScaling", "StructuredMatrixScaling", "StructuredVectorScaling",
    "TemperatureScaling", "VectorScaling",
]  # fmt: skip
IN_CELLS = ["BetaCalibration", "HistogramBinning", "IsotonicCalibration"]


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def chunks(array):
    n = len(array)
    whole = (array.shape[1:],) if array.ndim > 1 else ()
    return da.from_array(array, chunks=((n // 2, 0, n // 3, n - n // 2 - n // 3), *whole))


def noisy(n=3000, k=4):
    """Logits that are too large, of which some labels are wrong, in no random order."""
    logits, y = sample(n, k, temperature=2.5, bias=[0.5, 0, 0, -0.5][:k])
    y[::40] = 0
    order = np.argsort(y + logits[:, 0] / 4, kind="stable")
    return logits[order], y[order]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_maps_of_sums(name, monkeypatch):
    # A part of the samples leads the way.
    monkeypatch.setattr("skcalib.posthoc._dask._SAMPLE_SIZE", 1500)
    # In memory the search ends where a step would save 1e-9 of the log-loss: 2e-6 off.
    monkeypatch.setattr("skcalib.posthoc._linear_fit._LEAST_GAIN", 1e-13)
    monkeypatch.setitem(_Problem.solve.__kwdefaults__, "least", 1e-13)
    logits, y = noisy()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    proba = softmax(logits, axis=1).astype(np.float32)
    for options, X, w in (
        ({}, logits, None),
        ({"input": "proba"}, proba, weight),
        ({"mix_uniform": True}, logits.astype(np.float32), None),
    ):
        expected = getattr(posthoc, name)(**options).fit(X, y, sample_weight=w)
        lazy = None if w is None else chunks(w)
        found = getattr(posthoc, name)(**options).fit(chunks(X), chunks(y), sample_weight=lazy)
        for attribute in ("temperature_", "uniform_weight_"):
            np.testing.assert_allclose(
                getattr(found, attribute), getattr(expected, attribute), rtol=1e-4, atol=1e-7
            )
        np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-6)
        assert found.n_features_in_ == 4
        np.testing.assert_array_equal(found.classes_, expected.classes_)


@pytest.mark.parametrize("name", IN_CELLS)
@pytest.mark.parametrize("k", [2, 4])
def test_maps_of_histograms(name, k):
    logits, y = noisy(k=k)
    proba = softmax(logits, axis=1)
    proba[:3] = np.eye(k)[: 3 % k + 1][[0, 0, 1]]
    labels = np.array(["a", "b", "c", "d"])[y]
    calibrator = getattr(posthoc, name)(input="proba")
    expected = calibrator.fit(proba, labels).predict_proba(proba)
    found = calibrator.fit(chunks(proba), labels).predict_proba(proba)
    # Cells have a width of 1 in 2000 of the log-odds: what is smooth differs by much less.
    if name == "BetaCalibration":
        np.testing.assert_allclose(found, expected, atol=3e-6)
    else:
        assert np.abs(found - expected).mean() < 2e-3
        assert np.mean(np.abs(found - expected) < 1e-3) > 0.9


def test_steps_of_equal_width_are_exact():
    logits, y = noisy()
    binning = posthoc.HistogramBinning(strategy="uniform")
    expected = binning.fit(logits, y).predict_proba(logits)
    found = binning.fit(chunks(logits), chunks(y)).predict_proba(logits)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_one_score_for_two_classes():
    logits, y = noisy(k=2)
    score = logits[:, 1] - logits[:, 0]
    for name in ("TemperatureScaling", "StructuredVectorScaling", "BetaCalibration"):
        calibrator = getattr(posthoc, name)()
        expected = calibrator.fit(score, y).predict_proba(score)
        found = calibrator.fit(chunks(score), y).predict_proba(score)
        np.testing.assert_allclose(found, expected, atol=2e-6)


def test_options_that_do_not_exist():
    logits, y = noisy()
    logits[(np.arange(4) == 3) & (y[:, None] < 3)] = -np.inf
    scaling = posthoc.TemperatureScaling()
    expected = scaling.fit(logits, y).predict_proba(logits)
    found = scaling.fit(chunks(logits), chunks(y)).predict_proba(logits)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_every_label_on_top():
    logits = np.random.default_rng(0).normal(size=(300, 3))
    y = logits.argmax(axis=1)
    for options in ({}, {"mix_uniform": True}):
        scaling = posthoc.TemperatureScaling(**options)
        temperatures = []
        for X in (logits, chunks(logits)):
            if options:
                temperatures.append(scaling.fit(X, y).temperature_)
            else:
                with pytest.warns(match="lower bound"):
                    temperatures.append(scaling.fit(X, y).temperature_)
        np.testing.assert_allclose(*temperatures, rtol=1e-5)


def test_what_is_wrong_with_a_chunk_is_said():
    logits, y = noisy()
    scaling = posthoc.TemperatureScaling()
    broken = np.where(np.arange(len(y))[:, None] == 2900, np.nan, logits)
    with pytest.raises(ValueError, match="NaN"):
        scaling.fit(chunks(broken), y)
    with pytest.raises(ValueError, match="y must have the samples of X"):
        scaling.fit(chunks(logits), y[:-1])
    with pytest.raises(ValueError, match="classes must name the columns of X"):
        scaling.fit(chunks(logits), y % 3 + 5)
    with pytest.raises(ValueError, match="groups must be None"):
        scaling.fit(chunks(logits), y, groups=y)
    with pytest.raises(TypeError, match=r"X must be in memory .* X\[::100\]"):
        posthoc.StackedCalibration().fit(chunks(logits), y)


def test_a_frozen_classifier_in_chunks():
    logits, y = noisy()
    names = np.array(["a", "b", "c", "d"])[y]
    frozen = FrozenEstimator(LogisticRegression().fit(logits[::7], names[::7]))
    model = PostHocCalibratedClassifier(frozen, "temperature")
    expected = model.fit(logits, names).predict_proba(logits)
    found = model.fit(chunks(logits), chunks(names)).predict_proba(logits)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    with pytest.raises(TypeError, match=r"PostHocCalibratedClassifier\(FrozenEstimator"):
        PostHocCalibratedClassifier(LogisticRegression()).fit(chunks(logits), y)


@pytest.mark.parametrize("confidence", ["msp", "entropy", "margin", "energy"])
def test_a_threshold_of_counts(confidence):
    logits, y = noisy(9000)
    frozen = FrozenEstimator(LogisticRegression().fit(logits[::7], y[::7]))
    model = SelectiveClassifier(frozen, confidence=confidence, risk=0.25)
    expected = model.fit(logits, y)
    coverage, accepted = expected.coverage_, expected.accept(logits)
    found = model.fit(chunks(logits), chunks(y))
    now = found.accept(logits)
    # All samples of a cell, or none; so the counts are those of the samples that are accepted.
    assert abs(found.coverage_ - coverage) < 0.01
    assert np.mean(now != accepted) < 0.01
    assert now.mean() == found.coverage_
    wrong = frozen.predict(logits)[now] != y[now]
    np.testing.assert_allclose(found.error_rate_, wrong.mean())
    assert found.risk_bound_ <= 0.25


@pytest.mark.slow
def test_a_threshold_of_counts_keeps_its_promise():
    # Confidences of ten values only, and a risk that is exactly at its limit for half of them.
    rng = np.random.default_rng(0)
    exceeded = []
    for _ in range(300):
        confidence = rng.integers(1, 11, 400) / 10
        wrong = rng.random(400) < np.where(confidence > 0.5, 0.1, 0.3)
        cells = compute_log_bins(confidence, np.array([np.ones(400), wrong]), are_proba=True)
        counts = cells.sums.astype(int)
        found = control_risk_of_counts(cells.largest, *counts, risk=0.1, delta=0.2)
        exceeded.append(found.threshold < 0.5)
        np.testing.assert_allclose(cells.largest, np.arange(1, 11) / 10)
        alone = control_risk(confidence, ~wrong, risk=0.1, delta=0.2)
        assert found == alone
    assert np.mean(exceeded) <= 0.2


def test_selective_classifiers_say_what_chunks_need():
    logits, y = noisy()
    with pytest.raises(TypeError, match=r"SelectiveClassifier\(FrozenEstimator\(model\)\)"):
        SelectiveClassifier(LogisticRegression()).fit(chunks(logits), y)
