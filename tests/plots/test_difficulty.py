"""DifficultyDisplay draws what error_rate_by_difficulty says."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.difficulty import RMDScorer, error_rate_by_difficulty
from skcalib.plots import DifficultyDisplay
from skcalib.utils._numeric import compute_binomial_interval


def _predictions(n=60):
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=n)
    y_true = rng.integers(0, 2, n)
    return y_true, np.where(difficulty > 1, 1 - y_true, y_true), difficulty


def example(**options):
    return DifficultyDisplay.from_predictions(*_predictions(), **options)


def test_curve_and_labels():
    y_true, y_pred, difficulty = _predictions()
    display = DifficultyDisplay.from_predictions(
        y_true, y_pred, difficulty, n_groups=4, name="RMD", color="C3"
    )
    rate = error_rate_by_difficulty(y_true, y_pred, difficulty, n_groups=4)
    np.testing.assert_array_equal(display.error_rate, rate)
    # The middle of every group: of 60 sorted samples in fours, those at 7.5, 22.5, ...
    ordered = np.sort(difficulty)
    np.testing.assert_allclose(display.line_.get_xdata(), ordered[[7, 22, 37, 52]])
    np.testing.assert_array_equal(display.line_.get_ydata(), rate)
    assert display.line_.get_color() == "C3"
    (overall,) = [line for line in display.ax_.lines if line.get_label() == "All samples"]
    assert overall.get_ydata() == pytest.approx(np.full(2, np.mean(y_true != y_pred)))
    area = roc_auc_score(y_true != y_pred, difficulty)
    assert display.area == pytest.approx(area)
    texts = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert texts == ["All samples"]
    assert display.ax_.get_title() == f"RMD\nAUROC for errors: {area:.3f}"
    assert display.ax_.get_xlim() == (display.bins.edges[0], display.bins.edges[-1])
    assert display.ax_.get_ylim()[0] == 0
    assert display.ax_.get_ylabel() == "Error rate"
    assert display.histogram_ax_.get_xlabel() == "Difficulty"


def test_the_percentile_makes_measures_comparable():
    display = DifficultyDisplay.from_predictions(*_predictions(), n_groups=4, histogram=False)
    np.testing.assert_allclose(display.line_.get_xdata(), [12.5, 37.5, 62.5, 87.5])
    assert display.histogram_ax_ is None
    assert display.ax_.get_xlim() == (0, 100)
    (overall,) = [line for line in display.ax_.lines if line.get_label() == "All samples"]
    np.testing.assert_array_equal(overall.get_xdata(), (0, 100))
    assert display.ax_.get_xlabel() == "Difficulty percentile (easy to hard)"


@pytest.mark.parametrize("shift", [-2, 2])
def test_axes_of_two_displays_show_both(shift):
    y_true, y_pred, difficulty = _predictions()
    first = DifficultyDisplay.from_predictions(y_true, y_pred, difficulty)
    second = DifficultyDisplay.from_predictions(y_true, y_pred, difficulty + shift, ax=first.ax_)
    edges = np.concatenate([first.bins.edges, second.bins.edges])
    assert second.ax_.get_xlim() == pytest.approx((edges.min(), edges.max()))


def test_the_ends_of_the_histogram_hold_what_lies_beyond():
    difficulty = np.linspace(0, 1, 2001)
    wrong = np.arange(2001) % 2
    bins = DifficultyDisplay.from_predictions(wrong, np.zeros(2001), difficulty).bins
    assert bins.edges[[0, -1]] == pytest.approx([0.005, 0.995], abs=0.001)
    assert len(bins.right) == 30
    beyond = difficulty < bins.edges[1]
    assert bins.wrong[0] == wrong[beyond].sum()
    assert bins.right[0] == (1 - wrong)[beyond].sum()
    equal = DifficultyDisplay.from_predictions([0, 1, 0], [0, 1, 1], np.full(3, 7.0), n_groups=1)
    assert equal.bins.edges.mean() == pytest.approx(7)
    assert np.ptp(equal.bins.edges) == 1
    assert (equal.bins.right.sum(), equal.bins.wrong.sum()) == (2, 1)


def test_the_histogram_counts_every_sample_once():
    y_true, y_pred, difficulty = _predictions(1000)
    difficulty[0] = 1e6
    weight = np.random.default_rng(1).uniform(1, 2, 1000)
    display = DifficultyDisplay.from_predictions(y_true, y_pred, difficulty, sample_weight=weight)
    wrong = y_true != y_pred
    assert display.bins.right.sum() == pytest.approx(weight[~wrong].sum())
    assert display.bins.wrong.sum() == pytest.approx(weight[wrong].sum())
    # One sample far away does not flatten it.
    assert display.bins.edges[-1] < 5
    middle = (difficulty > display.bins.edges[10]) & (difficulty < display.bins.edges[11])
    assert display.bins.right[10] == pytest.approx(weight[middle & ~wrong].sum())
    total, part = display.histogram_ax_.patches
    np.testing.assert_allclose(total.get_data().values, display.bins.right + display.bins.wrong)
    np.testing.assert_allclose(part.get_data().values, display.bins.wrong)


def test_bars_are_binomial_intervals():
    y_true, y_pred, difficulty = _predictions()
    display = DifficultyDisplay.from_predictions(y_true, y_pred, difficulty, n_groups=4)
    low, high = compute_binomial_interval(display.error_rate, np.full(4, 15.0), 0.95)
    np.testing.assert_allclose(display.band, (low, high))
    segments = display.ax_.collections[0].get_segments()
    np.testing.assert_allclose([s[:, 1] for s in segments], np.transpose([low, high]), atol=1e-12)
    bare = DifficultyDisplay.from_predictions(
        y_true, y_pred, difficulty, n_groups=4, confidence_level=None
    )
    assert not bare.ax_.collections


@pytest.mark.slow
@pytest.mark.parametrize("y_pred", [[0, 0], [1, 1]])
def test_without_errors_or_without_right_answers(y_pred):
    display = DifficultyDisplay.from_predictions([0, 0], y_pred, [1.0, 1.0], n_groups=2)
    assert display.area is None
    display.figure_.canvas.draw()


@pytest.mark.slow
def test_two_curves_share_axes():
    y_true, y_pred, difficulty = _predictions()
    first = DifficultyDisplay.from_predictions(y_true, y_pred, difficulty, name="one")
    second = DifficultyDisplay.from_predictions(
        y_true, y_pred, -difficulty, name="two", ax=first.ax_
    )
    assert second.figure_ is first.figure_
    texts = [t.get_text() for t in second.ax_.get_legend().get_texts()]
    assert texts == ["one: 1.000", "two: 0.000", "All samples"]
    assert second.histogram_ax_ is first.histogram_ax_
    assert len(second.histogram_ax_.patches) == 2


def test_from_estimator():
    X, y = load_iris(return_X_y=True)
    scorer = make_pipeline(StandardScaler(), RMDScorer()).fit(X, y)
    classifier = GaussianNB().fit(X, y)
    display = DifficultyDisplay.from_estimator(classifier, X, y, scorer=scorer, n_groups=5)
    expected = error_rate_by_difficulty(
        y, classifier.predict(X), RMDScorer().fit(X, y).difficulty(X, y), n_groups=5
    )
    np.testing.assert_allclose(display.error_rate, expected)
    assert display.name == "Pipeline"


@pytest.mark.slow
@pytest.mark.parametrize(("n", "style"), [(90, ""), (100, "-"), (110, "-")])
def test_no_line_goes_through_groups_of_few_samples(n, style):
    display = DifficultyDisplay.from_predictions(np.arange(n) % 2, np.zeros(n), np.arange(n))
    assert display.line_.get_linestyle() == (style or "None")


def test_plot_of_the_rates_alone():
    display = DifficultyDisplay(np.array([0.1, 0.2])).plot()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["All samples"]
    assert display.plot(name="again").ax_.get_title() == "again"


def test_bad_input():
    with pytest.raises(ValueError, match="difficulty must be finite"):
        DifficultyDisplay.from_predictions([0, 1], [0, 1], [0.0, np.nan], n_groups=1)


def test_groups_of_equal_difficulty_are_one():
    depth = np.repeat([1, 2, 4], [200, 100, 100])
    y_true = np.zeros(400, dtype=int)
    y_pred = (np.random.default_rng(0).random(400) < 0.1 * depth).astype(int)
    display = DifficultyDisplay.from_predictions(y_true, y_pred, depth, n_groups=8)
    np.testing.assert_array_equal(display.difficulty, [1, 2, 4])
    np.testing.assert_allclose(display.fraction, [0.5, 0.25, 0.25])
    rate = [y_pred[depth == d].mean() for d in (1, 2, 4)]
    np.testing.assert_allclose(display.error_rate, rate)
    np.testing.assert_allclose(
        display.band, compute_binomial_interval(np.array(rate), np.array([200.0, 100, 100]), 0.95)
    )
    (overall,) = [line for line in display.ax_.lines if line.get_label() == "All samples"]
    assert overall.get_ydata() == pytest.approx(np.full(2, y_pred.mean()))
    other = DifficultyDisplay.from_predictions(y_true, y_pred, depth, n_groups=8, histogram=False)
    np.testing.assert_allclose(other.line_.get_xdata(), [25, 62.5, 87.5])
