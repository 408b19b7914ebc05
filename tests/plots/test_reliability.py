import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection, PolyCollection
from scipy.stats import beta
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.naive_bayes import GaussianNB

from skcalib.metrics import (
    calibration_error_interval,
    expected_calibration_error,
    isotonic_reliability_curve,
    reliability_curve,
    score_decomposition,
    smooth_calibration_error,
    smooth_reliability_curve,
)
from skcalib.plots import ReliabilityDisplay
from skcalib.utils._numeric import compute_binomial_interval


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=300)
    return (proba.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1).clip(0, 2), proba


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def title(display):
    return display.ax_.get_title().replace("\n", " ")


def example(**options):
    rng = np.random.default_rng(0)
    y_proba = rng.uniform(size=100)
    return ReliabilityDisplay.from_predictions(rng.uniform(size=100) < y_proba, y_proba, **options)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("binary", [False, True])
def test_draws_what_the_metrics_say(data, strategy, binary):
    y, proba = data
    if binary:
        y, proba = (y == 1).astype(int), proba[:, 1]
    weight = np.arange(300)
    options = {"n_bins": 6, "strategy": strategy, "sample_weight": weight}
    display = ReliabilityDisplay.from_predictions(y, proba, name="model", **options)
    curve = reliability_curve(y, proba, **options)
    count = curve.bin_weight * 300 / weight.sum()
    enough, few = count >= 10, (count > 0) & (count < 10)
    np.testing.assert_array_equal(display.line_.get_xdata(), curve.prob_pred[enough])
    np.testing.assert_array_equal(display.line_.get_ydata(), curve.prob_true[enough])
    dots, empty = [c for c in display.ax_.collections if isinstance(c, PathCollection)]
    np.testing.assert_array_equal(dots.get_offsets()[:, 0], curve.prob_pred[enough])
    np.testing.assert_array_equal(empty.get_offsets()[:, 1], curve.prob_true[few])
    # The area grows with the number of samples.
    sizes = np.concatenate([dots.get_sizes(), empty.get_sizes()])
    order = np.concatenate([count[enough], count[few]])
    np.testing.assert_allclose(np.polyval(np.polyfit(order, sizes, 1), order), sizes)
    error = expected_calibration_error(y, proba, **options)
    assert display.calibration_error == error
    kind = "positive-class" if binary else "top-label"
    bins = "6 bins" if strategy == "uniform" else "6 equal-mass bins"
    measure = f"{kind} ECE, {bins}: {error:.3f}"
    low, high = calibration_error_interval(y, proba, n_resamples=200, random_state=0, **options)
    assert display.interval == (low, high)
    confidence = proba if binary else proba.max(axis=1)
    right = y == (1 if binary else proba.argmax(axis=1))
    means = [np.average(values, weights=weight) for values in (confidence, right)]
    names = (
        ("predicted probability", "observed fraction") if binary else ("confidence", "accuracy")
    )
    facts = [f"{name} {mean:.3f}" for name, mean in zip(names, means)]
    facts = [f"95% interval {low:.3f} to {high:.3f}", *facts, f"n = {weight.sum():,}"]
    assert title(display) == f"model {measure}, {', '.join(facts)}"
    assert display.ax_.get_legend() is None
    assert repr(display) == f"ReliabilityDisplay('model', {measure})"
    assert display.figure_ is display.ax_.figure


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_counts_are_in_bins_of_equal_width(data, strategy):
    y, proba = data
    display = ReliabilityDisplay.from_predictions(y, proba, n_bins=5, strategy=strategy)
    counts, edges, _ = display.histogram_ax_.patches[0].get_data()
    np.testing.assert_allclose(edges, np.linspace(0, 1, 6))
    np.testing.assert_array_equal(counts, np.histogram(proba.max(axis=1), edges)[0])
    assert display.histogram_ax_.get_ylabel() == "Count"
    assert display.histogram_ax_.get_xlabel() == "Confidence"
    assert display.ax_.get_ylabel() == "Accuracy"


@pytest.mark.slow
def test_band(data):
    y, proba = data
    assert ReliabilityDisplay.from_predictions(y, proba, confidence_level=None).band is None
    display = ReliabilityDisplay.from_predictions(y, proba, n_bins=5, confidence_level=0.9)
    curve = reliability_curve(y, proba, n_bins=5)
    expected = compute_binomial_interval(curve.prob_true, curve.bin_weight, 0.9)
    np.testing.assert_array_equal(display.band, expected)
    bars = next(c for c in display.ax_.collections if hasattr(c, "get_segments"))
    drawn = [segment[:, 1] for segment in bars.get_segments()]
    filled = curve.bin_weight > 0
    np.testing.assert_allclose(drawn, np.transpose(expected)[filled], atol=1e-12)


@pytest.mark.slow
def test_the_gap_is_filled_below_a_curve_that_is_alone(data):
    def filled(display):
        return [c for c in display.ax_.collections if isinstance(c, PolyCollection)]

    for kind in ("bins", "isotonic"):
        display = ReliabilityDisplay.from_predictions(*data, kind=kind)
        assert len(filled(display)) == 1
        assert not filled(display.plot(ax=display.ax_))


@pytest.mark.slow
def test_no_line_goes_through_bins_of_few_samples():
    display = ReliabilityDisplay.from_predictions([0, 1] * 8, np.linspace(0, 1, 16), n_bins=4)
    assert not len(display.line_.get_xdata())
    display = ReliabilityDisplay.from_predictions([0, 1] * 20, np.linspace(0, 1, 40), n_bins=4)
    assert len(display.line_.get_xdata()) == 4


def test_estimator_of_several_classes():
    X, y = load_iris(return_X_y=True)
    names = np.array(["ant", "bee", "cat"])[y]
    model = GaussianNB().fit(X, names)
    # One class is missing from the rows that are judged.
    display = ReliabilityDisplay.from_estimator(model, X[:100], names[:100], n_bins=4)
    expected = expected_calibration_error(y[:100], model.predict_proba(X[:100]), n_bins=4)
    assert display.calibration_error == expected
    assert title(display).startswith("GaussianNB top-label ECE, 4 bins: ")
    assert display.ax_.get_ylabel() == "Accuracy"


@pytest.mark.parametrize("pos_label", [None, "benign"])
def test_estimator_of_two_classes(pos_label):
    X, y = load_breast_cancer(return_X_y=True)
    names = np.array(["malignant", "benign"])[y]
    model = GaussianNB().fit(X, names)
    display = ReliabilityDisplay.from_estimator(model, X, names, pos_label=pos_label, name="NB")
    positive = pos_label or "malignant"
    proba = model.predict_proba(X)[:, list(model.classes_).index(positive)]
    expected = expected_calibration_error(names, proba, pos_label=positive)
    assert display.calibration_error == pytest.approx(expected, abs=1e-12)
    assert display.ax_.get_ylabel().split() == f"Observed fraction of class {positive}".split()
    assert title(display).startswith("NB positive-class ECE, 15 bins: ")


def test_unknown_positive_class():
    X, y = load_breast_cancer(return_X_y=True)
    model = GaussianNB().fit(X, y)
    with pytest.raises(ValueError, match="pos_label must be one of"):
        ReliabilityDisplay.from_estimator(model, X, y, pos_label="no")


@pytest.mark.slow
def test_two_models_in_the_same_axes(data):
    y, proba = data
    first = ReliabilityDisplay.from_predictions(y, proba, name="a")
    second = ReliabilityDisplay.from_predictions(
        y,
        proba**2 / (proba**2).sum(axis=1, keepdims=True),
        name="b",
        ax=first.ax_,
    )
    assert second.ax_ is first.ax_
    assert second.histogram_ax_ is first.histogram_ax_
    outlines = [patch for patch in second.histogram_ax_.patches if not patch.get_fill()]
    np.testing.assert_array_equal(outlines[0].get_data().values, first.count)
    np.testing.assert_array_equal(outlines[1].get_data().values, second.count)
    assert legend(second) == [
        f"a: {first.calibration_error:.3f}",
        f"b: {second.calibration_error:.3f}",
    ]
    assert second.ax_.get_legend().get_title().get_text() == "top-label ECE, 15 bins:"
    assert title(second) == ""


def test_plot_again(data):
    display = ReliabilityDisplay.from_predictions(*data, name="a")
    first = display.ax_
    again = display.plot(name="other", ref_line=False, histogram=False, color="red")
    assert again is display
    assert display.ax_ is not first
    assert display.line_.get_color() == "red"
    assert title(display).startswith("other top-label ECE")


def test_a_decomposition_without_an_error_is_drawn(data):
    y, proba = data
    curve = isotonic_reliability_curve(y, proba, random_state=0)
    display = ReliabilityDisplay(
        *curve[:2], np.ones(2), np.arange(3) / 2, decomposition=score_decomposition(y, proba)
    ).plot()
    assert "Brier score" in title(display)
    assert "ECE" not in title(display)


def test_bare_display():
    curve = reliability_curve([0, 1, 1], [0.2, 0.6, 0.9], n_bins=5)
    display = ReliabilityDisplay(
        curve.prob_true, curve.prob_pred, curve.bin_weight, curve.edges
    ).plot()
    assert title(display) == "n = 3"
    assert display.ax_.get_legend() is None
    assert repr(display) == "ReliabilityDisplay()"


@pytest.mark.slow
def test_the_diagram_is_square_and_the_histogram_as_wide(data):
    for layout in (None, "constrained"):
        ax = plt.subplots(figsize=(7, 4), layout=layout)[1]
        display = ReliabilityDisplay.from_predictions(*data, ax=ax)
        display.figure_.canvas.draw()
        box, below = display.ax_.get_window_extent(), display.histogram_ax_.get_window_extent()
        assert box.width == pytest.approx(box.height)
        assert below.width == pytest.approx(box.width)
        assert below.y1 < box.y0
        assert display.histogram_ax_.xaxis.label.get_window_extent().y0 > 0


@pytest.mark.slow
def test_a_class_of_any_name(data):
    """Before, the name was taken for a formula, and a long one ran out of the figure."""
    y, proba = data
    names = np.array(["other", "$\\frac{$" + "a" * 200])
    display = ReliabilityDisplay.from_predictions(
        names[(y == 1).astype(int)], proba[:, 1], labels=names, pos_label=names[1]
    )
    display.figure_.canvas.draw()
    extent = display.ax_.yaxis.label.get_window_extent()
    assert extent.y0 > 0
    assert extent.y1 < display.figure_.bbox.y1


@pytest.mark.slow
def test_bars_of_a_million_samples_are_labeled_in_short():
    curve = reliability_curve([0, 1, 1], [0.2, 0.6, 0.9], n_bins=5)
    display = ReliabilityDisplay(*curve[:2], 1e6 * curve.bin_weight, curve.edges).plot()
    display.figure_.canvas.draw()
    labels = [text.get_text() for text in display.histogram_ax_.get_yticklabels()]
    assert max(map(len, labels)) <= 4


def test_frames_are_read_and_masks_refused(data):
    y, proba = data
    display = ReliabilityDisplay.from_predictions(pd.Series(y), pd.DataFrame(proba))
    assert display.calibration_error == expected_calibration_error(y, proba)
    with pytest.raises(ValueError, match="y_proba must not be masked"):
        ReliabilityDisplay.from_predictions(y, np.ma.masked_less(proba, 0.01))


@pytest.mark.slow
@pytest.mark.parametrize("binary", [False, True])
def test_the_isotonic_curve(data, binary):
    y, proba = data
    if binary:
        y, proba = (y == 1).astype(int), proba[:, 1]
    weight = np.arange(300)
    display = ReliabilityDisplay.from_predictions(
        y, proba, kind="isotonic", sample_weight=weight, name="model"
    )
    curve = isotonic_reliability_curve(y, proba, sample_weight=weight, random_state=0)
    np.testing.assert_allclose(display.line_.get_xdata(), curve.prob_pred)
    np.testing.assert_allclose(display.line_.get_ydata(), curve.prob_true)
    np.testing.assert_allclose(display.band, curve[2:])
    if not binary:
        y, proba = (proba.argmax(axis=1) == y).astype(int), proba.max(axis=1)
    parts = score_decomposition(y, proba, sample_weight=weight)
    np.testing.assert_allclose(display.decomposition, parts)
    judged = "positive-class" if binary else "top-label"
    expected = f"model {judged} Brier miscalibration: {parts.miscalibration:.4f}"
    assert title(display).startswith(expected)
    # The band is the place of calibrated models, and told apart from an interval.
    assert legend(display) == ["95% of calibrated models,\nat each confidence"]
    error = expected_calibration_error(y, proba, sample_weight=weight)
    for part in (
        f"discrimination {parts.discrimination:.4f}",
        f"uncertainty {parts.uncertainty:.4f}",
        f"Brier score {parts.score:.4f}",
        f"ECE, 15 bins: {error:.3f}",
        f"95% interval {display.interval[0]:.3f} to {display.interval[1]:.3f}",
    ):
        assert part in title(display)
    counts = display.histogram_ax_.patches[0].get_data().values
    assert counts.sum() == weight.sum()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["isotonic", "smooth"])
def test_a_band_of_whole_curves_is_wider_and_the_legend_says_so(data, kind):
    y, proba = data
    display = ReliabilityDisplay.from_predictions(y, proba, kind=kind, simultaneous=True)
    assert legend(display) == ["95% of calibrated models,\nas whole curves"]
    lower, upper = ReliabilityDisplay.from_predictions(y, proba, kind=kind).band
    some = ~np.isnan(lower)
    assert np.mean(display.band[1][some] - display.band[0][some]) > np.mean(
        upper[some] - lower[some]
    )


def test_bars_that_hold_at_once_share_the_level(data):
    y, proba = data
    display = ReliabilityDisplay.from_predictions(y, proba, n_bins=8, simultaneous=True)
    assert legend(display) == ["95% intervals,\nall bins at once"]
    filled = display.bin_count > 0
    count = display.bin_count[filled]
    right = display.prob_true[filled] * count
    tail = 0.025 / filled.sum()
    lower, upper = (end[filled] for end in display.band)
    some = right > 0.5
    np.testing.assert_allclose(
        lower[some], beta.ppf(tail, right, count - right + 1)[some], atol=1e-6
    )
    some = right < count - 0.5
    np.testing.assert_allclose(
        upper[some], beta.ppf(1 - tail, right + 1, count - right)[some], atol=1e-6
    )


def test_the_isotonic_curve_without_a_band(data):
    display = ReliabilityDisplay.from_predictions(*data, kind="isotonic", confidence_level=None)
    assert display.band is None
    assert not display.ax_.collections


@pytest.mark.slow
@pytest.mark.parametrize("binary", [False, True])
def test_the_smooth_curve(data, binary):
    y, proba = data
    if binary:
        y, proba = (y == 1).astype(int), proba[:, 1]
    display = ReliabilityDisplay.from_predictions(y, proba, kind="smooth", name="model")
    curve = smooth_reliability_curve(y, proba, random_state=0)
    np.testing.assert_array_equal(display.line_.get_xdata(), curve.prob_pred)
    # NaN is a gap.
    np.testing.assert_array_equal(display.line_.get_ydata(), curve.prob_true)
    np.testing.assert_array_equal(display.band, [curve.lower, curve.upper])
    error = smooth_calibration_error(y, proba)
    judged = "positive-class" if binary else "top-label"
    assert title(display) == f"model {judged} smooth ECE: {error:.3f}, n = 300"
    assert display.interval is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bins", "isotonic", "smooth"])
def test_the_axes_show_rare_positives(kind):
    rng = np.random.default_rng(0)
    proba = rng.beta(1, 60, size=5000)
    y = (rng.uniform(size=5000) < proba).astype(int)
    display = ReliabilityDisplay.from_predictions(
        y, proba, kind=kind, strategy="quantile", zoom=0.99
    )
    low, high = np.quantile(proba, [0.005, 0.995])
    assert display.window == pytest.approx((low, high))
    assert display.ax_.get_xlim() == display.ax_.get_ylim()
    assert -0.01 < display.ax_.get_xlim()[0] <= low
    assert high <= display.ax_.get_xlim()[1] < 0.2
    # The histogram counts all samples, about fifteen of its cells are seen.
    assert display.count.sum() == 5000
    assert np.diff(display.edges)[0] == pytest.approx((high - low) / 15, rel=0.05)
    wide = ReliabilityDisplay.from_predictions(y, proba, ax=display.ax_)
    assert wide.ax_.get_xlim()[1] > 1


def test_the_interval_is_left_out_where_it_takes_long(data):
    y, proba = np.repeat(data[0], 70), np.repeat(data[1], 70, axis=0)
    assert ReliabilityDisplay.from_predictions(y, proba).interval is None
    assert ReliabilityDisplay.from_predictions(*data, interval=False).interval is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "sharp"}, "kind must be 'bins', 'isotonic' or 'smooth', got 'sharp'."),
        ({"kind": "isotonic", "confidence_level": 0}, "'confidence_level' parameter"),
        ({"kind": "smooth", "confidence_level": 0}, "'confidence_level' parameter"),
        ({"confidence_level": 0}, "confidence_level must be"),
        ({"zoom": 0}, "zoom must be a number in"),
        ({"zoom": True}, "zoom must be a number in"),
    ],
)
def test_bad_options_are_named(data, options, message):
    with pytest.raises(ValueError, match=message):
        ReliabilityDisplay.from_predictions(*data, **options)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bins", "isotonic", "smooth"])
def test_shares_of_people(kind):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 200)
    shares = np.stack([rng.multinomial(5, row) for row in proba]) / 5
    rows, y = np.nonzero(shares)
    display = ReliabilityDisplay.from_predictions(shares, proba, kind=kind, interval=False)
    weight = shares[rows, y]
    expected = ReliabilityDisplay.from_predictions(
        y, proba[rows], sample_weight=weight, kind=kind, interval=False
    )
    np.testing.assert_allclose(display.prob_true, expected.prob_true, atol=1e-9)
    assert display.calibration_error == pytest.approx(expected.calibration_error, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(3, 3), (6.4, 4.8), (12, 9)])
def test_the_largest_dot_is_about_a_twentieth_as_wide_as_the_axes(size):
    y, proba = np.tile([0, 1, 1], 40), np.repeat([0.2, 0.6, 0.9], 40)
    figure, ax = plt.subplots(figsize=size)
    display = ReliabilityDisplay.from_predictions(y, proba, n_bins=3, interval=False, ax=ax)
    figure.canvas.draw()
    points = 72 * ax.get_window_extent().width / figure.dpi
    dots = next(c for c in display.ax_.collections if isinstance(c, PathCollection))
    assert 1 / 35 < np.sqrt(dots.get_sizes().max()) / points < 1 / 12


def test_the_axes_show_the_curve_within_the_window():
    x, y = np.array([0.1, 0.2, 0.5, 0.8, 0.9]), np.array([0.0, 0.05, np.nan, 0.97, 1.0])
    display = ReliabilityDisplay(y, x, np.ones(5), np.arange(6) / 5, window=(0.2, 0.8)).plot()
    low, high = display.ax_.get_xlim()
    assert 0 < low < 0.05
    assert 0.97 < high < 1
    # The points at the ends of the window are in it, and two displays show what either does.
    other = ReliabilityDisplay(y, x, np.ones(5), np.arange(6) / 5).plot(ax=display.ax_)
    all_of_it = other.ax_.get_xlim()
    assert all_of_it[0] < 0 < 1 < all_of_it[1]
    display.plot(ax=other.ax_)
    assert other.ax_.get_xlim() == other.ax_.get_ylim() == all_of_it


@pytest.mark.slow
def test_a_window_of_equal_confidences():
    y = np.arange(50) % 2
    display = ReliabilityDisplay.from_predictions(y, np.full(50, 0.5), zoom=0.9, interval=False)
    assert display.window == (0.5, 0.5)
    assert len(display.count) == 3000
    assert display.count.max() == 50
    display.figure_.canvas.draw()


@pytest.mark.parametrize(("level", "shown"), [(None, 0.95), (0.8, 0.8)])
def test_the_level_of_the_interval(data, level, shown):
    display = ReliabilityDisplay.from_predictions(
        *data, confidence_level=level, interval=True, kind="bins"
    )
    low, high = calibration_error_interval(
        *data, n_resamples=200, random_state=0, confidence_level=shown
    )
    assert display.interval == (low, high)
    assert f"{shown:.0%} interval {low:.3f} to {high:.3f}" in title(display)


@pytest.mark.slow
def test_up_to_20_000_samples_have_an_interval(data, monkeypatch):
    monkeypatch.setattr("skcalib.plots._reliability.FEW_SAMPLES", 300)
    y, proba = data
    assert ReliabilityDisplay.from_predictions(y, proba).interval is not None
    more = np.append(y, 0), np.vstack([proba, proba[:1]])
    assert ReliabilityDisplay.from_predictions(*more).interval is None
    assert ReliabilityDisplay.from_predictions(*more, interval=True).interval is not None
    smooth = ReliabilityDisplay.from_predictions(y[:50], proba[:50], kind="smooth")
    assert smooth.interval is None


@pytest.mark.slow
def test_a_level_that_takes_more_curves_than_usual():
    y, proba = np.tile([0, 1, 1], 10), np.tile([0.2, 0.6, 0.9], 10)
    options = {"kind": "isotonic", "simultaneous": True, "interval": False}
    wide, narrow = (
        ReliabilityDisplay.from_predictions(y, proba, confidence_level=level, **options).band
        for level in (0.9995, 0.95)
    )
    assert np.sum(wide[1] - wide[0]) > np.sum(narrow[1] - narrow[0])


@pytest.mark.slow
@pytest.mark.parametrize("pos_label", ["no", "yes"])
def test_the_class_of_one_column_is_named(pos_label):
    proba = np.linspace(0.05, 0.95, 60)
    y = np.where(np.arange(60) % 2, "yes", "no")
    for size, words in (((7, 7), "Observed fraction"), ((3, 3), "Fraction")):
        ax = plt.subplots(figsize=size, layout="constrained")[1]
        display = ReliabilityDisplay.from_predictions(
            y, proba, labels=["no", "yes"], pos_label=pos_label, interval=False, ax=ax
        )
        assert display.pos_label == pos_label
        assert ax.get_ylabel() == f"{words} of class {pos_label}"
        ax.figure.canvas.draw()
        box = ax.get_window_extent()
        assert ax.yaxis.label.get_window_extent().height < 1.05 * box.height


def test_a_class_of_a_long_name_has_a_line_of_its_own():
    curve = np.array([0.2, 0.8])
    display = ReliabilityDisplay(curve, curve, np.ones(2), np.arange(3) / 2, pos_label="ab" * 20)
    display.plot()
    assert display.ax_.get_ylabel().startswith("Observed fraction\nof class abab")
