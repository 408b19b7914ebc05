"""HardestSamplesDisplay shows the right images in the right order."""

import itertools
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skcalib.datasets import flip_labels
from skcalib.difficulty import RelativeMahalanobisScorer
from skcalib.labels import LabelIssueFinder
from skcalib.plots import HardestSamplesDisplay
from skcalib.plots._hardest_samples import align_lines, format_caption_numbers, format_distinct


def _images(n, shape=(4, 5)):
    return np.random.default_rng(0).uniform(size=(n, *shape))


def _shown(axes):
    return np.array([ax.images[0].get_array() for ax in axes])


def example(**options):
    return HardestSamplesDisplay.from_predictions(
        _images(20), np.arange(20.0), labels=np.arange(20) % 3, **options
    )


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3)])
def test_order_and_titles(shape):
    images = _images(6, shape)
    difficulty = np.array([3.0, -1.0, np.nan, 12.5, 0.0, 7.0])
    labels = np.array(list("abcdef"))
    display = HardestSamplesDisplay.from_predictions(
        images, difficulty, labels=labels, n_columns=2
    )
    np.testing.assert_array_equal(display.hardest_, [3, 5])
    np.testing.assert_array_equal(display.easiest_, [1, 4])
    np.testing.assert_allclose(_shown(display.axes_[0]), images[[3, 5]])
    np.testing.assert_allclose(_shown(display.axes_[1]), images[[1, 4]])
    assert display.axes_[0, 0].get_title() == "d\n#3: 12.5"
    assert [ax.get_ylabel() for ax in display.axes_[:, 0]] == ["hardest", "easiest"]
    display.figure_.canvas.draw()
    high, low = (ax.get_position(original=True).height for ax in display.axes_[:, 0])
    assert high == pytest.approx(low)


@pytest.mark.slow
def test_fewer_samples_than_columns_and_given_axes():
    ax = plt.subplots(1, 2)[1][1]
    display = HardestSamplesDisplay.from_predictions(_images(5), [1.0, 2.0, 3.0, 4.0, 5.0], ax=ax)
    np.testing.assert_array_equal(display.hardest_, [4, 3, 2])
    np.testing.assert_array_equal(display.easiest_, [0, 1])
    assert display.axes_.shape == (2, 3)
    assert not display.axes_[1, 2].axison
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    again = display.plot(n_columns=1)
    assert again is display
    assert again.axes_.shape == (2, 1)


@pytest.mark.slow
def test_from_estimator_takes_a_pipeline():
    images = _images(40)
    y = np.arange(40) % 2
    flatten = FunctionTransformer(lambda X: np.reshape(X, (len(X), -1))[:, :6])
    scorer = make_pipeline(flatten, RelativeMahalanobisScorer()).fit(images, y)
    display = HardestSamplesDisplay.from_estimator(scorer, images, y, n_columns=3)
    difficulty = scorer[-1].difficulty(scorer[0].transform(images), y)
    np.testing.assert_array_equal(display.hardest_, np.argsort(-difficulty)[:3])
    other = HardestSamplesDisplay.from_estimator(
        scorer[-1], scorer[0].transform(images), samples=images, n_columns=3
    )
    assert other.labels is None
    np.testing.assert_array_equal(
        other.easiest_, np.argsort(scorer[-1].difficulty(scorer[0].transform(images)))[:3]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"difficulty": [1.0]}, "samples and difficulty must have the same number of rows"),
        ({"difficulty": [np.nan, np.nan]}, "must be 1-D and have a finite value, got 0"),
        ({"difficulty": [[1.0, 2.0]]}, "difficulty must be 1-D"),
        (
            {"samples": [3, 4]},
            r"samples must be texts, rows of a table or images .* of shape \(\)",
        ),
        (
            {"samples": np.ones((2, 1, 1, 1, 1))},
            r"samples must be .* got one of shape \(1, 1, 1, 1\)",
        ),
        ({"labels": [1]}, r"samples and difficulty and labels must have the same number of rows"),
        ({"n_columns": True}, "n_columns must be an int of at least 1 or None, got True"),
        ({"n_columns": 2.0}, "n_columns must be an int of at least 1 or None, got 2.0"),
        ({"n_columns": 0}, "n_columns must be an int of at least 1 or None, got 0"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        HardestSamplesDisplay.from_predictions(
            **{"samples": _images(2), "difficulty": [1.0, 2.0], **arguments}
        )


def test_axes_placed_by_hand():
    ax = plt.figure().add_axes((0.1, 0.1, 0.8, 0.8))
    with pytest.raises(ValueError, match="ax must be part of a grid of subplots"):
        HardestSamplesDisplay.from_predictions(_images(2), [1.0, 2.0], ax=ax)


@pytest.mark.parametrize(
    "difficulty",
    [
        ["1", "2"],
        np.array([1j, 2]),
        np.array([1, 2], dtype="datetime64[s]"),
        np.array([1, 2], dtype="timedelta64[s]"),
    ],
)
def test_difficulty_that_is_no_number_is_refused(difficulty):
    """Before, text and dates were read as numbers, and imaginary parts were dropped."""
    with pytest.raises(TypeError, match="difficulty must hold real numbers"):
        HardestSamplesDisplay.from_predictions(_images(2), difficulty)


def test_masked_difficulty_is_refused():
    difficulty = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    with pytest.raises(ValueError, match="difficulty must not be masked"):
        HardestSamplesDisplay.from_predictions(_images(2), difficulty)


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [1, 2, 3, 7, 16, 17])
def test_no_sample_is_shown_twice(n_samples):
    """Before, up to sixteen samples were the hardest and the easiest at once."""
    difficulty = np.random.default_rng(0).integers(3, size=n_samples)
    display = HardestSamplesDisplay.from_predictions(_images(n_samples), difficulty)
    shown = [*display.hardest_, *display.easiest_]
    assert len(shown) == len(set(shown)) == min(n_samples, 16)
    display.figure_.canvas.draw()


def test_difficulties_that_differ_are_told_apart():
    """Before, all of these were shown as -1.23e+03."""
    difficulty = -1234 + np.arange(8) / 10
    display = HardestSamplesDisplay.from_predictions(_images(8), difficulty)
    titles = [ax.get_title().split()[-1] for ax in display.axes_.ravel()]
    np.testing.assert_allclose([float(t) for t in titles[:4]], difficulty[:3:-1])
    assert format_distinct(np.array([0.5, 0.25])) == ["0.5", "0.25"]
    assert format_distinct(np.array([2e20, 2e20])) == ["2e+20", "2e+20"]
    assert format_distinct(np.array([1234.4, 1234.4])) == ["1234", "1234"]
    # Powers of ten are for numbers from a million on, also below 0.
    assert format_distinct(np.array([1e6, 2.0])) == ["1e+06", "2"]
    assert format_distinct(np.array([-1e6, 2.0])) == ["-1e+06", "2"]
    assert format_distinct(np.array([999_999.0, 2.0])) == ["999999", "2"]
    # Probabilities near 1 had 17 digits, which ran into one another.
    assert max(map(len, format_distinct(1 - np.geomspace(1e-16, 1e-3, 8)))) <= 9


def test_tiny_difficulties_above_images_have_no_powers_of_ten():
    assert format_caption_numbers(np.array([0.98, 0.5, 8.92e-6])) == ["0.98", "0.5", "<0.001"]
    assert format_caption_numbers(np.array([3.0, 2e-5, 0.0])) == ["3", "<0.01", "0"]
    assert format_caption_numbers(np.array([-3.0, -2e-5])) == ["-3", "-2e-05"]
    assert format_caption_numbers(np.zeros(2)) == ["0", "0"]


def test_other_suggested_labels_are_shown_in_color():
    display = HardestSamplesDisplay.from_predictions(
        _images(2), [2.0, 1.0], labels=["$\\frac{$", "b"], suggested_labels=["c", "b"]
    )
    display.figure_.canvas.draw()
    hard, easy = display.axes_[:, 0]
    assert hard.get_title() == "\\$\\frac{\\$, rather c\n#0: 2"
    assert easy.get_title() == "b\n#1: 1"
    assert hard.title.get_color() != easy.title.get_color()


def lines_of(ax):
    """Return the lines of a table, each a list of its entries."""
    return [re.split(r" {2,}", text.get_text().strip()) for text in ax.texts]


def test_texts_are_lines_of_a_table():
    texts = ["a $5 note", "b" * 500, "c\nd"]
    display = HardestSamplesDisplay.from_predictions(
        texts, [1.0, 2.0, 3.0], labels=["x", "y", "y"], suggested_labels=["x", "x", "y"]
    )
    display.figure_.canvas.draw()
    assert display.axes_.shape == (2, 1)
    hard, easy = display.axes_[:, 0]
    assert lines_of(hard)[:2] == [["#", "difficulty", "label", "text"], ["2", "3", "y", "c d"]]
    number, difficulty, label, text = lines_of(hard)[2]
    assert (number, difficulty, label) == ("1", "2", "y, rather x")
    assert text.startswith("bbbb")
    assert text.endswith("..")
    assert lines_of(easy)[1] == ["0", "1", "x", r"a \$5 note"]
    colors = {text.get_position()[1]: text.get_color() for text in hard.texts}
    assert colors[2.5] != colors[1.5]


def test_rows_of_tables_have_a_column_for_every_feature():
    frame = pd.DataFrame({"age": [30, 40], "height": [1.5, 1.75]}, index=["x", "y"])
    display = HardestSamplesDisplay.from_predictions(frame, pd.Series([0.0, 1.0]))
    hard = display.axes_[0, 0]
    assert lines_of(hard) == [["#", "difficulty", "age", "height"], ["y", "1", "40", "1.75"]]
    display = HardestSamplesDisplay.from_predictions(frame.to_numpy(), [0.0, 1.0])
    assert lines_of(display.axes_[0, 0])[0] == ["#", "difficulty", "0", "1"]
    series = pd.Series(["a", "b", "c"], index=[7, 8, 9])
    display = HardestSamplesDisplay.from_predictions(series, [3.0, 2.0, 1.0], n_columns=1)
    assert lines_of(display.axes_[1, 0])[1] == ["9", "1", "c"]


@pytest.mark.slow
def test_columns_without_room_are_counted():
    wide = np.random.default_rng(0).normal(size=(6, 100))
    display = HardestSamplesDisplay.from_predictions(wide, np.arange(6.0))
    names = lines_of(display.axes_[0, 0])[0]
    assert names[-1] == f"+ {100 - (len(names) - 3)} more"
    display.figure_.canvas.draw()
    right = max(text.get_window_extent().x1 for text in display.axes_[0, 0].texts)
    assert right < display.axes_[0, 0].get_window_extent().x1


def test_options_of_images_are_refused_for_texts():
    with pytest.raises(TypeError, match=r"samples must be images for options of imshow, got"):
        HardestSamplesDisplay.from_predictions(["a", "b"], [1.0, 2.0], cmap="gray")


@pytest.mark.slow
def test_the_title_stands_above_the_captions():
    display = HardestSamplesDisplay.from_predictions(_images(8), np.arange(8.0), name="digits")
    display.figure_.canvas.draw()
    title = next(t for t in display.figure_.findobj(plt.Text) if t.get_text() == "digits")
    captions = [ax.title.get_window_extent().y1 for ax in display.axes_[0]]
    assert title.get_window_extent().y0 > max(captions)


def test_samples_may_be_lists_of_numbers():
    display = HardestSamplesDisplay.from_predictions([[1.0, 2.0], [3.0, 4.0]], [0.0, 1.0])
    assert lines_of(display.axes_[0, 0])[1] == ["1", "1", "3", "4"]


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "csc_array", "coo_array"])
def test_sparse_samples_are_rows(kind):
    rows = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])
    display = HardestSamplesDisplay.from_predictions(getattr(sparse, kind)(rows), [0.0, 1.0])
    assert lines_of(display.axes_[0, 0])[1] == ["1", "1", "3", "0", "4"]
    assert lines_of(display.axes_[1, 0])[1] == ["0", "0", "0", "2", "0"]


@pytest.mark.slow
def test_label_issues_are_shown_by_their_arrays():
    X, y = load_wine(return_X_y=True)
    given, _ = flip_labels(y, fraction=0.1, random_state=0)
    issues = LabelIssueFinder().fit(X, given).issues_
    display = HardestSamplesDisplay.from_predictions(
        X,
        1 - issues["p_label_correct"],
        labels=issues["label"],
        suggested_labels=issues["suggested_label"],
    )
    worst = int(issues["p_label_correct"].argmin())
    label, suggested = issues["label"][worst], issues["suggested_label"][worst]
    assert lines_of(display.axes_[0, 0])[1][2] == f"{label}, rather {suggested}"


def test_samples_are_named_as_in_the_index_of_the_user():
    frame = pd.DataFrame({"n": range(6)}, index=[f"patient {i}" for i in range(6)])
    difficulty = np.array([1.0, 5.0, 2.0, 2.0, 9.0, 0.0])
    display = HardestSamplesDisplay.from_predictions(frame, difficulty)
    texts = [text.get_text() for ax in display.axes_.ravel() for text in ax.texts]
    assert [text.split("  ")[0] for text in texts if "patient" in text] == [
        f"patient {i}" for i in (4, 1, 3, 5, 0, 2)
    ]
    images = pd.Series(list(np.zeros((4, 3, 3))), index=list("abcd"))
    display = HardestSamplesDisplay.from_predictions(images, [3.0, 1.0, 2.0, 0.0])
    titles = [ax.get_title() for ax in display.axes_.ravel()]
    assert [title[:2] for title in titles] == ["#a", "#c", "#d", "#b"]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(20, 20), (15, 20), (30, 20)])
@pytest.mark.parametrize(("n_columns", "name"), [(2, None), (4, "digits"), (None, None)])
def test_images_fill_their_cells_and_captions_stand_between(shape, n_columns, name):
    display = HardestSamplesDisplay.from_predictions(
        _images(40, shape),
        np.arange(40.0),
        labels=["a label"] * 40,
        n_columns=n_columns,
        name=name,
    )
    assert len(display.hardest_) == len(display.easiest_) == (n_columns or 8)
    display.figure_.canvas.draw()
    boxes = [[ax.get_window_extent() for ax in row] for row in display.axes_]
    titles = [[ax.title.get_window_extent() for ax in row] for row in display.axes_]
    for row, captions in zip(boxes, titles):
        for box, caption in zip(row, captions):
            assert box.height / box.width == pytest.approx(shape[0] / shape[1], rel=0.02)
            assert box.width > 0.65 * display.figure_.dpi
            assert box.y1 <= caption.y0 < box.y1 + 0.5 * box.height
        assert all(a.x1 < b.x0 for a, b in itertools.pairwise(row))
    assert max(caption.y1 for caption in titles[1]) < min(box.y0 for box in boxes[0]) + 1
    assert max(caption.y1 for caption in titles[0]) < display.figure_.bbox.y1
    images = sum(box.height for box in (boxes[0][0], boxes[1][0]))
    assert images > 0.45 * display.figure_.bbox.height


@pytest.mark.parametrize("width", [4, 6.4, 10])
def test_lines_of_a_table_end_within_their_axes(width):
    figure, ax = plt.subplots(figsize=(width, 4))
    display = HardestSamplesDisplay.from_predictions(["word " * 99] * 4, np.arange(4.0), ax=ax)
    figure.canvas.draw()
    for table in display.axes_[:, 0]:
        box = table.get_window_extent()
        right = max(text.get_window_extent().x1 for text in table.texts)
        assert 0.8 < (right - box.x0) / box.width < 1
        lines = [text.get_window_extent() for text in table.texts]
        assert all(a.y0 > b.y1 - 1 for a, b in itertools.pairwise(lines))
        # The rule is below the names of the columns.
        [rule] = table.lines
        assert table.texts[0].get_position()[1] < rule.get_ydata()[0]
        assert rule.get_ydata()[0] < table.texts[1].get_position()[1]
    # Narrow tables leave out the difficulty, which the order shows.
    assert len(lines_of(display.axes_[0, 0])[0]) == (3 if width > 5 else 2)


@pytest.mark.slow
def test_as_many_lines_as_there_is_room_for():
    texts = [f"text {k}" for k in range(40)]
    for height in (2, 3, 4):
        figure, ax = plt.subplots(figsize=(8, height))
        display = HardestSamplesDisplay.from_predictions(texts, np.arange(40.0), ax=ax)
        assert len(display.hardest_) == len(display.easiest_) < 8
        figure.canvas.draw()
        lines = [text.get_window_extent() for text in display.axes_[0, 0].texts]
        height_of_line = (lines[0].y0 - lines[-1].y0) / (len(lines) - 1)
        assert lines[0].height < height_of_line < 2 * lines[0].height
    display = HardestSamplesDisplay.from_predictions(texts, np.arange(40.0), n_columns=15)
    assert len(display.hardest_) == 15


@pytest.mark.parametrize(
    ("columns", "n_letters", "lines"),
    [
        # What fits is whole; the last column has the room that is left, or is cut to it.
        ([("#", ["1", "2"]), ("text", ["abc", "d"])], 20, ["#  text", "1  abc", "2  d"]),
        ([("#", ["1"]), ("text", ["a" * 17])], 20, ["#  text", "1  " + "a" * 17]),
        ([("#", ["1"]), ("text", ["a" * 18])], 20, ["#  text", "1  " + "a" * 15 + ".."]),
        # A column takes a quarter at most, and eight letters in any case.
        ([("a", ["x" * 12]), ("b", ["y"])], 40, ["a           b", "xxxxxxxx..  y"]),
        ([("a", ["x" * 12]), ("b", ["y"])], 20, ["a         b", "xxxxxx..  y"]),
        # A long name makes no column wide.
        ([("a long name", ["1"]), ("b", ["2"])], 40, ["a l..  b", "1      2"]),
        # Columns without room are counted.
        ([(c, ["1234"]) for c in "abcde"], 26, ["a     b     + 3 more", "1234  1234"]),
        (
            [(c, ["1234"]) for c in "abcde"],
            27,
            ["a     b     c     + 2 more", "1234  1234  1234"],
        ),
        ([(c, ["1234"]) for c in "abcd"], 27, ["a     b     c     d", "1234  1234  1234  1234"]),
        ([("a", ["1234"]), ("b", ["1234"])], 13, ["+ 2 more", ""]),
        ([("a", ["123"]), ("b", ["12345678"])], 14, ["a    b", "123  12345678"]),
        ([("a", ["123"]), ("b", ["1234567890"])], 14, ["a    b", "123  1234567.."]),
    ],
)
def test_lines_of_a_table_by_hand(columns, n_letters, lines):
    assert [line.rstrip() for line in align_lines(columns, n_letters)] == lines
