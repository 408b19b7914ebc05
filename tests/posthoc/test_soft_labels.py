"""Calibrators that are fitted to soft labels."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import skcalib.posthoc
from skcalib.posthoc import (
    GroupwiseCalibration,
    PostHocCalibratedClassifier,
    PostHocCalibrator,
    StackedCalibration,
    TemperatureScaling,
)
from skcalib.selection import SelectiveClassifier

ALONE = {"PostHocCalibrator", "PostHocCalibratedClassifier"}


def opinions(n=150, seed=0):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, 3))
    true = np.exp(log_softmax(logits / 2, axis=1))
    shares = np.stack([rng.multinomial(4, row / row.sum()) for row in true]) / 4
    return logits, shares


@pytest.mark.parametrize("name", sorted(set(skcalib.posthoc.__all__) - ALONE))
def test_soft_labels_are_weighted_rows_that_stay_together(name, monkeypatch):
    # Weights as they are: the rows are more than the samples, and only ratios matter.
    monkeypatch.setattr("skcalib.posthoc._base.average_to_one", lambda weight: weight)
    kind = getattr(skcalib.posthoc, name)
    if not issubclass(kind, PostHocCalibrator):
        pytest.skip("no calibrator")
    given = {"training_priors": "uniform"} if name == "PriorShift" else {}
    logits, shares = opinions()
    weight = np.random.default_rng(1).uniform(0.9, 2, len(logits))
    rows, y = np.repeat(np.arange(150), 3), np.tile(np.arange(3), 150)
    of_rows = shares.ravel() * weight[rows]
    found = kind(**given).fit(logits, shares, weight).predict_proba(logits)
    some = of_rows > 0
    expected = kind(**given)._check_and_fit(
        logits[rows[some]], y[some], of_rows[some], rows[some], warns=False
    )
    np.testing.assert_allclose(found, expected.predict_proba(logits), atol=1e-9)


def test_the_temperature_is_that_of_the_cross_entropy():
    logits, shares = opinions(800)

    def loss(log_t):
        return -(shares * log_softmax(logits / np.exp(log_t), axis=1)).sum()

    expected = np.exp(minimize_scalar(loss, bracket=(-1, 1)).x)
    found = TemperatureScaling().fit(logits, shares).temperature_
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_people_who_agree_are_labels():
    logits, shares = opinions()
    y = shares.argmax(axis=1)
    for calibrator in (StackedCalibration(), TemperatureScaling()):
        expected = calibrator.fit(logits, y).predict_proba(logits)
        found = calibrator.fit(logits, np.eye(3)[y]).predict_proba(logits)
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_classes_and_names_of_columns():
    pd = pytest.importorskip("pandas")
    logits, shares = opinions()
    names = np.array(["cat", "ant", "bee"])
    expected = TemperatureScaling().fit(logits, shares).predict_proba(logits)
    named = TemperatureScaling(classes=names)
    for y in (shares, pd.DataFrame(shares, columns=names), pd.DataFrame(shares, columns=names)[
        ["ant", "bee", "cat"]
    ]):  # fmt: skip
        np.testing.assert_allclose(named.fit(logits, y).predict_proba(logits), expected)
        np.testing.assert_array_equal(named.classes_, names)
    with pytest.raises(ValueError, match=r"^classes must be given where the columns of y have"):
        TemperatureScaling().fit(logits, pd.DataFrame(shares, columns=names))
    with pytest.raises(ValueError, match=r"^The rows of y must sum to 1.*multilabel_calibration"):
        TemperatureScaling().fit(logits, 0.5 * shares)
    with pytest.raises(
        ValueError, match=r"^y must hold a fraction for every class of X, 3, got 2"
    ):
        TemperatureScaling().fit(logits, np.full((150, 2), 0.5))


def test_groupwise_soft_labels(monkeypatch):
    for module in ("_base", "_groupwise"):  # weights as they are
        monkeypatch.setattr(f"skcalib.posthoc.{module}.average_to_one", lambda weight: weight)
    logits, shares = opinions(300)
    by = np.arange(300) % 2
    rows, y = np.nonzero(shares)
    found = GroupwiseCalibration("temperature").fit(logits, shares, by=by)
    expected = GroupwiseCalibration("temperature").fit(
        logits[rows], y, shares[rows, y], groups=rows, by=by[rows]
    )
    np.testing.assert_allclose(found.shifts_, expected.shifts_, atol=1e-9)


def test_a_frozen_classifier_and_people():
    X, y = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=500).fit(X[:800] / 16, y[:800])
    rng = np.random.default_rng(0)
    shares = 0.7 * np.eye(10)[y[800:]] + 0.3 * rng.dirichlet(np.ones(10), len(y) - 800)
    found = PostHocCalibratedClassifier(FrozenEstimator(model), "temperature")
    found.fit(X[800:] / 16, shares)
    logits = model.decision_function(X[800:] / 16)
    expected = TemperatureScaling().fit(logits, shares).predict_proba(logits)
    np.testing.assert_allclose(found.predict_proba(X[800:] / 16), expected, atol=1e-9)
    np.testing.assert_array_equal(found.classes_, np.arange(10))
    with pytest.raises(ValueError, match=r"^y must hold one label .*FrozenEstimator"):
        PostHocCalibratedClassifier(model).fit(X[800:], shares)
    with pytest.raises(ValueError, match=r"^y must hold one label .*FrozenEstimator"):
        SelectiveClassifier(model).fit(X[800:], shares)
