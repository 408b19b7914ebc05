"""ClassReliabilityDisplay draws the diagram of every class against the rest."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from skcalib.metrics import (
    classwise_calibration_error,
    expected_calibration_error,
    reliability_curve,
)
from skcalib.plots import ClassReliabilityDisplay


def sample(n_classes=4, n_samples=200):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(n_classes), n_samples)
    y = (rng.random((n_samples, 1)) > proba.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return y, proba


def example(**options):
    return ClassReliabilityDisplay.from_predictions(*sample(), **options)


def heading(display):
    texts = [text.get_text() for text in display.figure_.findobj(plt.Text)]
    return next(text for text in texts if "Observed fraction" in text).replace("\n", " ")


@pytest.mark.slow
def test_a_panel_is_the_diagram_of_a_class_and_the_worst_comes_first():
    y, proba = sample()
    weight = np.random.default_rng(1).uniform(1, 2, len(y))
    names = np.array(["ant", "bee", "cat", "dog"])
    display = ClassReliabilityDisplay.from_predictions(
        names[y], proba, labels=names, n_bins=5, sample_weight=weight
    )
    errors = classwise_calibration_error(
        names[y], proba, labels=names, n_bins=5, sample_weight=weight, average=None
    )
    assert list(display.displays) == names[np.argsort(-errors)].tolist()
    for panel, (label, shown) in zip(display.axes_, display.displays.items()):
        k = names.tolist().index(label)
        curve = reliability_curve(y == k, proba[:, k], n_bins=5, sample_weight=weight)
        # No line through bins of fewer than ten samples.
        enough = curve.bin_weight * len(y) / weight.sum() >= 10
        np.testing.assert_allclose(shown.line_.get_ydata(), curve.prob_true[enough])
        assert panel.get_title() == f"{label}\n{errors[k]:.3f}, n = {(y == k).sum()}"
        assert shown.ax_ is panel


@pytest.mark.slow
def test_classes_that_are_left_out_are_counted():
    display = example(n_panels=3, n_columns=2)
    assert display.axes_.shape == (3,)
    assert "3 of 4 classes" in heading(display)
    assert "of 4 classes" not in heading(example())


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [9, 10])
def test_classes_of_few_samples_rank_last(n_samples):
    y, proba = sample()
    y[np.flatnonzero(y == 2)[n_samples:]] = 1
    display = ClassReliabilityDisplay.from_predictions(y, proba, labels=range(4), n_bins=10)
    errors = classwise_calibration_error(y, proba, labels=range(4), n_bins=10, average=None)
    assert errors.argmin() != 2
    ranked = list(display.displays)
    assert (ranked[-1] == 2) == (n_samples < 10)
    others = [k for k in ranked if k != 2 or n_samples == 10]
    assert others == sorted(others, key=lambda k: -errors[k])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_classes", "n_columns", "shape"),
    [(2, None, (1, 2)), (4, None, (1, 4)), (6, None, (2, 4)), (5, 2, (3, 2)), (3, 1, (3, 1))],
)
def test_the_grid_and_its_numbers(n_classes, n_columns, shape):
    y, proba = sample(n_classes, 100)
    display = ClassReliabilityDisplay.from_predictions(y, proba, n_bins=2, name="forest").plot(
        n_columns=n_columns
    )
    display.figure_.canvas.draw()
    boxes = np.array([panel.get_window_extent().bounds for panel in display.axes_])
    columns, rows = (np.unique(x.round(), return_inverse=True)[1] for x in boxes.T[:2])
    place = np.arange(n_classes)
    np.testing.assert_array_equal(columns, place % shape[1])
    np.testing.assert_array_equal(rows.max() - rows, place // shape[1])
    assert rows.max() + 1 == shape[0]
    # Panels have one size whatever their number, and are most of the figure.
    assert 0.9 < boxes[0, 2] / display.figure_.dpi < 2.1
    assert boxes[:, 2] == pytest.approx(boxes[:, 3])
    for k, panel in enumerate(display.axes_):
        below, left = (axis.get_major_ticks()[0].label1 for axis in (panel.xaxis, panel.yaxis))
        assert below.get_visible() == (k + shape[1] >= n_classes)
        assert left.get_visible() == (k % shape[1] == 0)
        np.testing.assert_array_equal(panel.get_xticks(), panel.get_yticks())
        assert panel.get_legend() is None
    text = next(t for t in display.ax_.texts if "Observed fraction" in t.get_text())
    assert text.get_text().startswith("forest\n")
    titles = [panel.title.get_window_extent() for panel in display.axes_]
    assert text.get_window_extent().y0 > max(title.y1 for title in titles)
    assert min(title.x0 for title in titles) >= 0


@pytest.mark.slow
@pytest.mark.parametrize(("width", "n_said", "numbers"), [(9, 4, 4), (6.4, 4, 4), (3, 0, 0)])
def test_narrow_panels_leave_out_what_has_no_room(width, n_said, numbers):
    figure, ax = plt.subplots(figsize=(width, 3))
    display = example(ax=ax)
    figure.canvas.draw()
    assert sum(", n = " in panel.get_title() for panel in display.axes_) == n_said
    assert sum(len(panel.get_xticks()) == 3 for panel in display.axes_) == numbers
    titles = [panel.title.get_window_extent() for panel in display.axes_]
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(titles))


@pytest.mark.slow
def test_estimator_that_misses_a_class():
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X, y)
    display = ClassReliabilityDisplay.from_estimator(model, X[:100], y[:100], kind="isotonic")
    assert sorted(display.displays) == [0, 1, 2]
    assert display.name == "GaussianNB"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_panels": 0}, "n_panels must be an int of at least 1, got 0."),
        ({"n_columns": 0}, "n_columns must be an int of at least 1, got 0."),
        ({"n_columns": True}, "n_columns must be an int of at least 1, got True."),
        ({"kind": "sharp"}, "kind must be 'bins', 'isotonic' or 'smooth'"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        example(**options)


def test_one_column_is_refused():
    with pytest.raises(ValueError, match="y_proba must have a column for every class"):
        ClassReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7])


def test_shares_of_people_are_counted_by_class():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 200)
    shares = np.stack([rng.multinomial(5, row) for row in proba]) / 5
    display = ClassReliabilityDisplay.from_predictions(shares, proba, n_bins=15)
    for k in range(3):
        error = expected_calibration_error(
            np.column_stack([1 - shares[:, k], shares[:, k]]), proba[:, k]
        )
        assert display.displays[k].calibration_error == pytest.approx(error)
        assert display.displays[k].name == f"n = {shares[:, k].sum():,.0f}"


@pytest.mark.slow
def test_the_heading_says_what_bars_of_all_bins_hold():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 300)
    y = (rng.random((300, 1)) > proba.cumsum(axis=1)[:, :-1]).sum(axis=1)
    display = ClassReliabilityDisplay.from_predictions(y, proba, simultaneous=True)
    alone = ClassReliabilityDisplay.from_predictions(y, proba)
    said = "95% for all of a panel at once"
    assert said in display._write_heading("", 3).replace("\n", " ")
    assert said not in alone._write_heading("", 3).replace("\n", " ")
    for k in range(3):
        wide, narrow = (np.nansum(d.displays[k].band[1]) for d in (display, alone))
        assert wide > narrow
