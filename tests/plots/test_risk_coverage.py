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
from skcalib.utils._numeric import compute_binomial_interval


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
    low, high = compute_binomial_interval(curve.risk, curve.coverage * weight.sum(), 0.95)
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_million_samples_are_drawn_without_a_warning(tmp_path):
    coverage = np.arange(1, 1_000_001) / 1_000_000
    display = RiskCoverageDisplay(coverage, coverage**2 / 5, name="large").plot()
    display.figure_.savefig(tmp_path / "large.svg")
    # Half a million vertices as text would be tens of megabytes.
    assert (tmp_path / "large.svg").stat().st_size < 300_000


def test_markers_stand_in_every_eighth_and_those_of_two_curves_apart():
    coverage = np.arange(1, 1001) / 1000
    ax = plt.subplots()[1]
    places = []
    for _ in range(3):
        display = RiskCoverageDisplay(coverage, coverage / 9).plot(ax=ax, ref_line=False)
        places.append(display.line_.get_xdata()[display.line_.get_markevery()])
        np.testing.assert_array_equal((8 * places[-1]).astype(int), np.arange(8))
    assert min(np.diff(np.sort(np.concatenate(places)))) > 0.005


@pytest.mark.parametrize(("n", "start"), [(20, 0.2), (60, 0.2), (150, 0.2), (300, 0.1)])
def test_the_curve_begins_at_30_samples_or_a_fifth(n, start):
    coverage = np.arange(1, n + 1) / n
    display = RiskCoverageDisplay(coverage, coverage / 5, n_samples=n).plot()
    assert display.line_.get_xdata()[0] == pytest.approx(start)
    # Of an unknown number of samples, all is drawn.
    bare = RiskCoverageDisplay(display.coverage, display.risk).plot(ref_line=False)
    np.testing.assert_array_equal(bare.line_.get_xdata(), display.coverage)
    assert not bare.ax_.collections


def test_the_axes_end_above_the_curve():
    coverage = np.arange(1, 101) / 100
    for risk, least, most in ((0.3 * coverage, 0.3, 0.4), (0 * coverage, 1, 1)):
        display = RiskCoverageDisplay(coverage, risk).plot()
        bottom, top = display.ax_.get_ylim()
        assert bottom == 0
        assert least <= top <= most
        assert display.ax_.get_xlim() == (0, 1)
    # Below a coverage of a twentieth are few samples.
    for first, most in ((0.05, 1.3), (0.04, 0.26)):
        few = RiskCoverageDisplay(np.array([first, 1]), np.array([1, 0.2])).plot()
        assert most / 1.3 <= few.ax_.get_ylim()[1] <= most


def test_the_chosen_point_is_marked_down_to_both_axes():
    display = RiskCoverageDisplay(
        np.array([0.5, 1]), np.array([0.1, 0.2]), chosen=(0.5, 0.1)
    ).plot(ref_line=False)
    _, down, star = display.ax_.lines
    np.testing.assert_array_equal(down.get_xydata(), [(0.5, 0), (0.5, 0.1), (0, 0.1)])
    np.testing.assert_array_equal(star.get_xydata(), [(0.5, 0.1)])
    assert {down.get_color(), star.get_color()} == {display.line_.get_color()}


def test_the_best_ranking_of_two_models_is_named_once():
    coverage = np.arange(1, 101) / 100
    ax = plt.subplots()[1]
    for name, risk in (("a", coverage / 5), ("b", coverage / 3)):
        RiskCoverageDisplay(coverage, risk, area=0.1, name=name).plot(ax=ax)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(texts) == ["Best possible ranking", "a: 0.1000", "b: 0.1000"]
    dotted = [line for line in ax.lines if line.get_linestyle() == ":"]
    assert [line.get_ydata()[-1] for line in dotted] == pytest.approx([1 / 5, 1 / 3])


def test_the_band_of_many_samples_has_fewer_points_and_both_ends():
    coverage = np.arange(1, 3001) / 3000
    display = RiskCoverageDisplay(coverage, coverage / 5, n_samples=3000).plot()
    x = display.ax_.collections[0].get_paths()[0].vertices[:, 0]
    assert 900 < len(np.unique(x)) <= 1000
    assert (x.min(), x.max()) == pytest.approx((0.01, 1))
