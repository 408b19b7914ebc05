"""HardestSamplesDisplay shows the right images in the right order."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skcalib.difficulty import RelativeMahalanobisScorer
from skcalib.plots import HardestSamplesDisplay


def _images(n, shape=(4, 5)):
    return np.random.default_rng(0).uniform(size=(n, *shape))


def _shown(axes):
    return np.array([ax.images[0].get_array() for ax in axes])


def example(**options):
    return HardestSamplesDisplay.from_predictions(
        _images(20), np.arange(20.0), labels=np.arange(20) % 3, **options
    )


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
