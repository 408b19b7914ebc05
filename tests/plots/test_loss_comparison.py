"""LossComparisonDisplay draws a dot a seed, the mean and Student's interval."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import t

from skcalib.plots import LossComparisonDisplay

SCORES = {"ce": [0.06, 0.05, 0.08], "focal": [0.03, 0.02, 0.04], "$\\frac{": [0.01, 0.02, 0.01]}


def example(**options):
    return LossComparisonDisplay.from_scores(SCORES, score_name="ECE", **options)


def test_dots_means_and_intervals():
    display = example(confidence_level=0.9)
    lines = display.ax_.lines
    assert len(lines) == 9
    for row, (method, values) in enumerate(SCORES.items()):
        dots, interval, mean = lines[3 * row : 3 * row + 3]
        np.testing.assert_allclose(dots.get_xdata(), values)
        assert np.abs(dots.get_ydata() - row).max() < 0.5
        assert mean.get_xdata()[0] == pytest.approx(np.mean(values))
        half = t.ppf(0.95, 2) * np.std(values, ddof=1) / np.sqrt(3)
        np.testing.assert_allclose(interval.get_xdata(), np.mean(values) + np.array([-half, half]))
        np.testing.assert_allclose(display.intervals_[method], interval.get_xdata())
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == ["ce", "focal", "\\$\\frac{"]
    # The first method is on top.
    assert display.ax_.yaxis_inverted()


def test_differences_to_a_baseline_are_paired():
    display = example(baseline="ce")
    assert list(display.scores) == ["focal", "$\\frac{"]
    np.testing.assert_allclose(display.scores["focal"], [-0.03, -0.03, -0.04])
    assert display.ax_.get_xlabel() == "ECE minus that of ce"
    assert any(line.get_linestyle() == ":" for line in display.ax_.lines)


@pytest.mark.parametrize("values", [[0.1], [0.1, 0.1]])
def test_few_or_equal_seeds(values):
    display = LossComparisonDisplay.from_scores({"one": values})
    display.figure_.canvas.draw()
    assert display.intervals_ == ({} if len(values) == 1 else {"one": (0.1, 0.1)})
    assert not LossComparisonDisplay.from_scores({"one": [1, 2]}, confidence_level=None).intervals_


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": {}}, "scores must be a dict of at least one method"),
        ({"scores": [1, 2]}, "scores must be a dict of at least one method"),
        ({"scores": {"a": [np.nan]}}, r"scores\['a'\] must be finite"),
        ({"baseline": "b"}, r"baseline must be one of \['a'\], got 'b'"),
        ({"scores": {"a": [1, 2], "b": [1]}, "baseline": "b"}, "must hold as many seeds as the"),
        ({"confidence_level": 1}, r"confidence_level must be in \(0, 1\), got 1"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        LossComparisonDisplay.from_scores(**{"scores": {"a": [1, 2]}, **arguments})


@pytest.mark.parametrize("n_seeds", [1, 2, 5])
def test_dots_of_a_row_stand_apart_around_their_mean(n_seeds):
    display = LossComparisonDisplay.from_scores({"a": np.ones(n_seeds), "b": [1, 2]})
    place = display.ax_.lines[0].get_ydata()
    assert len(set(place)) == n_seeds
    assert place.mean() == pytest.approx(0)
    assert np.abs(place).max() < 0.5
    low, high = sorted(display.ax_.get_ylim())
    assert (low, high) == (-0.5, 1.5)


@pytest.mark.slow
@pytest.mark.parametrize(("n_methods", "n_lines"), [(2, 3), (12, 1)])
def test_long_names_leave_the_scores_most_of_the_width(n_methods, n_lines):
    names = [f"{k}" + " a word" * 30 for k in range(n_methods)]
    figure, ax = plt.subplots(figsize=(6.4, 2.4))
    display = LossComparisonDisplay.from_scores({key: [1, 2] for key in names}, ax=ax)
    figure.canvas.draw()
    labels = display.ax_.get_yticklabels()
    assert {label.get_text().count("\n") + 1 for label in labels} == {n_lines}
    width = ax.get_window_extent().width
    assert max(label.get_window_extent().width for label in labels) < 0.5 * width
    extents = [label.get_window_extent() for label in labels]
    assert all(a.y0 >= b.y1 - 2 for a, b in itertools.pairwise(extents))


@pytest.mark.slow
def test_rows_of_a_new_figure_have_room():
    for n_methods in (1, 2, 9):
        display = LossComparisonDisplay.from_scores({f"{k}": [1, 2] for k in range(n_methods)})
        display.figure_.canvas.draw()
        box = display.ax_.get_window_extent()
        inches = box.height / display.figure_.dpi / max(n_methods, 2)
        assert 0.25 < inches < 0.8
