"""DifficultyDisplay draws what error_rate_by_difficulty says."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.difficulty import RMDScorer, error_rate_by_difficulty
from skcalib.plots import DifficultyDisplay


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
    np.testing.assert_allclose(display.line_.get_xdata(), [12.5, 37.5, 62.5, 87.5])
    np.testing.assert_array_equal(display.line_.get_ydata(), rate)
    assert display.line_.get_color() == "C3"
    assert display.overall == pytest.approx(np.mean(y_true != y_pred))
    assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == ["All samples", "RMD"]
    assert display.ax_.get_ylim()[0] == 0
    assert display.ax_.get_ylabel() == "Error rate"


def test_two_curves_share_axes():
    y_true, y_pred, difficulty = _predictions()
    first = DifficultyDisplay.from_predictions(y_true, y_pred, difficulty, name="one")
    second = DifficultyDisplay.from_predictions(
        y_true, y_pred, -difficulty, name="two", ax=first.ax_
    )
    assert second.figure_ is first.figure_
    texts = [t.get_text() for t in second.ax_.get_legend().get_texts()]
    assert texts == ["All samples", "one", "two"]


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


def test_plot_alone_without_a_legend():
    display = DifficultyDisplay(np.array([0.1, 0.2])).plot()
    assert display.ax_.get_legend() is None
    assert display.plot(name="again").ax_.get_legend() is not None


def test_bad_input():
    with pytest.raises(ValueError, match="difficulty must be finite"):
        DifficultyDisplay.from_predictions([0, 1], [0, 1], [0.0, np.nan], n_groups=1)
