"""The display draws what decision_curve returns."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

from skcalib.metrics import decision_curve
from skcalib.plots import DecisionCurveDisplay

GRID = np.arange(2, 60, 2) / 100


def sample(n=300):
    rng = np.random.default_rng(0)
    proba = rng.beta(1, 4, n)
    return rng.random(n) < proba, proba


def example(**options):
    return DecisionCurveDisplay.from_predictions(
        *sample(), thresholds=GRID, random_state=0, **options
    )


@pytest.mark.parametrize("interval", ["pointwise", "band", None])
def test_lines_and_band(interval):
    display = example(interval=interval, name="forest")
    table = decision_curve(*sample(), thresholds=GRID, random_state=0)
    np.testing.assert_array_equal(
        display.line_.get_xydata(), np.column_stack([GRID, table["net_benefit"]])
    )
    np.testing.assert_array_equal(display.predicted_.get_ydata(), table["predicted"])
    by_label = {line.get_label(): line for line in display.ax_.lines}
    np.testing.assert_array_equal(by_label["Act on all"].get_ydata(), table["act_on_all"])
    np.testing.assert_array_equal(by_label["Act on none"].get_ydata(), [0, 0])
    assert display.ax_.get_title() == "forest"
    if interval is None:
        assert not display.ax_.collections
        return
    ends = ("low", "high") if interval == "pointwise" else ("band_low", "band_high")
    vertices = display.ax_.collections[0].get_paths()[0].vertices
    for end, pick in zip(ends, (np.min, np.max)):
        found = [pick(vertices[np.isclose(vertices[:, 0], t), 1]) for t in GRID]
        np.testing.assert_allclose(found, table[end], atol=1e-12)


def test_a_second_model_shares_the_reference_lines():
    display = example(name="first")
    y, proba = sample()
    other = DecisionCurveDisplay.from_predictions(
        y, proba**2, thresholds=GRID, random_state=0, ax=display.ax_, name="second"
    )
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["first", "second", "As predicted", "Act on all", "Act on none"]
    assert other.line_.get_color() != display.line_.get_color()
    assert len(display.ax_.child_axes) == 1


def test_options_leave_lines_out():
    display = example(predicted=False, ref_line=False, linewidth=3)
    assert display.predicted_ is None
    assert len(display.ax_.lines) == 1
    assert display.line_.get_linewidth() == 3


@pytest.mark.slow
def test_the_upper_axis_has_the_costs():
    display = example()
    (upper,) = display.ax_.child_axes
    display.figure_.canvas.draw()
    labels = [label.get_text() for label in upper.get_xticklabels()]
    assert {"9", "4", "1"} <= set(labels)
    for label, t in zip(labels, upper.get_xticks()):
        assert float(label) == pytest.approx((1 - t) / t, rel=0.01)


@pytest.mark.slow
def test_rare_events_have_a_logarithmic_axis():
    rng = np.random.default_rng(0)
    proba = rng.beta(0.05, 5, 5000)
    display = DecisionCurveDisplay.from_predictions(
        rng.random(5000) < proba, proba, random_state=0
    )
    assert display.ax_.get_xscale() == "log"
    display.figure_.canvas.draw()


@pytest.mark.slow
def test_from_estimator():
    X, y = load_breast_cancer(return_X_y=True)
    model = LogisticRegression(max_iter=5000).fit(X[::2], y[::2])
    display = DecisionCurveDisplay.from_estimator(model, X[1::2], y[1::2], random_state=0)
    expected = decision_curve(y[1::2], model.predict_proba(X[1::2])[:, 1], random_state=0)
    np.testing.assert_allclose(display.curve["net_benefit"], expected["net_benefit"])
    assert display.ax_.get_title() == "LogisticRegression"


def test_errors():
    with pytest.raises(ValueError, match="interval must be 'pointwise', 'band' or None"):
        example(interval="95%")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")
