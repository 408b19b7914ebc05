"""The display draws what the metrics return."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from skcalib.metrics import area_under_risk_coverage, coverage_at_risk, risk_coverage_curve
from skcalib.plots import RiskCoverageDisplay
from skcalib.selection import SelectiveClassifier
from skcalib.utils.checking._proba import binomial_interval


def sample(k=3):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(k), 150)
    return np.array([rng.choice(k, p=row) for row in proba]), proba, rng.uniform(0.1, 2, 150)


def example(**options):
    y, proba, _ = sample()
    return RiskCoverageDisplay.from_predictions(y, proba, **options)


@pytest.mark.parametrize("confidence", ["msp", "entropy", "array"])
def test_the_line_is_the_curve(confidence):
    y, proba, weight = sample()
    given = weight if confidence == "array" else confidence
    options = {"confidence": given, "sample_weight": weight}
    display = RiskCoverageDisplay.from_predictions(y, proba, name="forest", **options)
    curve = risk_coverage_curve(y, proba, **options)
    # From 30 samples on, by weight.
    start = np.flatnonzero(curve.coverage * weight.sum() >= 30)[0]
    np.testing.assert_array_equal(display.line_.get_xdata(), curve.coverage[start:])
    np.testing.assert_array_equal(display.line_.get_ydata(), curve.risk[start:])
    assert display.area == area_under_risk_coverage(y, proba, **options)
    assert display.ax_.get_title() == f"forest\nAURC: {display.area:.4f}"
    assert display.figure_ is display.ax_.figure
    for axis in (display.ax_.xaxis, display.ax_.yaxis):
        said = [float(label.get_text().rstrip("%")) / 100 for label in axis.get_ticklabels()]
        np.testing.assert_allclose(said, axis.get_ticklocs())
    # The reference is the curve of a confidence that has all errors last.
    right = (proba.argmax(axis=1) == y).astype(float)
    best = risk_coverage_curve(y, proba, confidence=right, sample_weight=weight)
    oracle = display.ax_.lines[1].get_xydata()
    np.testing.assert_allclose(oracle[1], [best.coverage[0], 0], atol=1e-12)
    np.testing.assert_allclose(oracle[-1], [1, best.risk[-1]])
    # Half of the errors: the risk is (c - a) / c.
    half = (1 + best.coverage[0]) / 2
    assert np.interp(half, *oracle.T) == pytest.approx(1 - best.coverage[0] / half, abs=1e-4)


def test_the_band_is_an_interval_of_the_error_rate():
    y, proba, weight = sample()
    display = RiskCoverageDisplay.from_predictions(y, proba, sample_weight=weight)
    curve = risk_coverage_curve(y, proba, sample_weight=weight)
    vertices = display.ax_.collections[0].get_paths()[0].vertices
    low, high = binomial_interval(curve.risk, curve.coverage * weight.sum(), 0.95)
    at_the_end = vertices[np.isclose(vertices[:, 0], 1)][:, 1]
    assert at_the_end.min() == pytest.approx(low[-1])
    assert at_the_end.max() == pytest.approx(high[-1])
    bare = RiskCoverageDisplay.from_predictions(y, proba, confidence_level=None)
    assert not bare.ax_.collections


def test_the_point_of_a_target_risk_or_of_a_threshold():
    y_proba, y_true = np.linspace(0.99, 0.5, 200), np.ones(200, dtype=int)
    y_true[[50, 60, 150]] = 0
    risky = RiskCoverageDisplay.from_predictions(y_true, y_proba, target_risk=0.015)
    coverage = coverage_at_risk(y_true, y_proba, risk=0.015)
    assert risky.chosen == pytest.approx((coverage, 0.015 if coverage == 1 else 2 / 150))
    at = RiskCoverageDisplay.from_predictions(y_true, y_proba, threshold=y_proba[100])
    assert at.chosen == (0.5, 0.02)
    texts = [text.get_text() for text in at.ax_.get_legend().get_texts()]
    assert "Error 2.0% at coverage 50.0%" in texts
    none = RiskCoverageDisplay.from_predictions(y_true, y_proba, threshold=0.99)
    assert none.chosen is None
    with pytest.raises(ValueError, match="threshold must be None with target_risk"):
        RiskCoverageDisplay.from_predictions(y_true, y_proba, threshold=0.5, target_risk=0.1)


def test_the_threshold_of_a_classifier_that_abstains():
    X, y = load_breast_cancer(return_X_y=True)
    model = SelectiveClassifier(GaussianNB(), risk=0.1).fit(X[::2], y[::2])
    display = RiskCoverageDisplay.from_estimator(model, X[1::2], y[1::2])
    accepted = model.accept(X[1::2])
    wrong = GaussianNB().fit(X[::2], y[::2]).predict(X[1::2]) != y[1::2]
    assert display.chosen == pytest.approx((accepted.mean(), wrong[accepted].mean()))


@pytest.mark.parametrize("classes", [["no", "yes"], ["ant", "bee", "cat"]])
def test_from_estimator_reads_its_classes(classes):
    y, proba, _ = sample(len(classes))
    names = np.array(classes)[y]
    model = LogisticRegression().fit(proba, names)
    # A fold that lacks a class.
    kept = y != 0
    display = RiskCoverageDisplay.from_estimator(model, proba[kept], names[kept])
    curve = risk_coverage_curve(names[kept], model.predict_proba(proba[kept]), labels=classes)
    np.testing.assert_array_equal(display.risk, curve.risk)
    assert display.line_.get_label().startswith("LogisticRegression: AURC: ")


def test_two_curves_on_given_axes():
    y, proba, _ = sample()
    _, ax = plt.subplots()
    first = RiskCoverageDisplay.from_predictions(y, proba, ax=ax, name="a", ref_line=False)
    second = RiskCoverageDisplay.from_predictions(
        y, proba, ax=ax, name="b", confidence="margin", ref_line=False, color="red"
    )
    assert first.ax_ is second.ax_ is ax
    assert len(ax.lines) == 2
    assert second.line_.get_color() == "red"
    assert len(ax.get_legend().get_texts()) == 2


def test_plot_again_under_another_name():
    y, proba, _ = sample()
    display = RiskCoverageDisplay.from_predictions(y, proba)
    assert display.line_.get_label() == f"AURC: {display.area:.4f}"
    first = display.ax_
    assert display.plot(name="again") is display
    assert display.ax_ is not first
    assert display.line_.get_label().startswith("again")
    bare = RiskCoverageDisplay(display.coverage, display.risk).plot()
    texts = [text.get_text() for text in bare.ax_.get_legend().get_texts()]
    assert texts == ["Best possible ranking"]


def test_one_error_at_the_top_does_not_flatten_the_curve():
    """Before, the axes went up to the error rate of the first sample, 1."""
    y_proba = np.linspace(0.99, 0.5, 200)
    y_true = np.ones(200, dtype=int)
    y_true[[0, 150, 170]] = 0
    display = RiskCoverageDisplay.from_predictions(y_true, y_proba)
    assert display.risk[0] == 1
    assert display.risk[29:].max() <= display.ax_.get_ylim()[1] <= 0.05


def test_a_million_samples_are_drawn_without_a_warning(tmp_path):
    coverage = np.arange(1, 1_000_001) / 1_000_000
    display = RiskCoverageDisplay(coverage, coverage**2 / 5, name="large").plot()
    display.figure_.savefig(tmp_path / "large.svg")
    # Half a million vertices as text would be tens of megabytes.
    assert (tmp_path / "large.svg").stat().st_size < 300_000
