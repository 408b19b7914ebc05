import numpy as np
import pytest

from skcalib.difficulty.training_dynamics import corner_distances, difficulty_quadrant


def test_corners():
    forms = difficulty_quadrant([0, 0, 10, 10], [0, 10, 0, 10])
    expected = ["easy", "looks_like_other_class", "ambiguous_without_label", "ambiguous"]
    assert forms.tolist() == expected


def test_equals_the_rule_written_out():
    rng = np.random.default_rng(0)
    held_out, trained = rng.uniform(1, 7, 50), rng.uniform(0, 9, 50)
    for threshold in (None, 4.5):
        cut = threshold
        if cut is None:
            everything = [*held_out, *trained]
            cut = (min(everything) + max(everything)) / 2
        names = {
            (False, False): "easy",
            (False, True): "looks_like_other_class",
            (True, False): "ambiguous_without_label",
            (True, True): "ambiguous",
        }
        expected = [names[bool(h > cut), bool(t > cut)] for h, t in zip(held_out, trained)]
        assert difficulty_quadrant(held_out, trained, threshold=threshold).tolist() == expected


def test_missing_depth_is_undefined_and_moves_nothing():
    forms = difficulty_quadrant([0.0, np.nan, 8.0], [0.0, 100.0, np.nan], threshold=4)
    assert forms.tolist() == ["easy", "undefined", "undefined"]
    assert difficulty_quadrant([np.nan], [np.nan]).tolist() == ["undefined"]


def test_equal_depths_are_easy():
    assert difficulty_quadrant([3, 3], [3, 3]).tolist() == ["easy", "easy"]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0, 1], [0]), {}, "must have the same number of rows, got 2 and 1"),
        (([[0]], [0]), {}, "depth_held_out must be 1-dimensional and not empty"),
        (
            ([-1], [0]),
            {},
            r"depth_held_out must be non-negative and finite, or NaN, got -1.0 in row 0",
        ),
        (([0, 0], [0, np.inf]), {}, r"depth_trained must be .*, got inf in row 1"),
        (([0], [0]), {"threshold": np.nan}, "threshold must be a finite number, got nan"),
    ],
)
def test_bad_input(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        difficulty_quadrant(*arguments, **options)


def test_text_is_no_depth():
    with pytest.raises(TypeError, match="depth_trained must hold real numbers"):
        difficulty_quadrant([0], ["a"])


def test_distances_from_the_corners_one_by_one():
    rng = np.random.default_rng(0)
    held_out, trained = rng.uniform(1, 7, 30), rng.uniform(0, 9, 30)
    low, high = min(*held_out, *trained), max(*held_out, *trained)
    got = corner_distances(held_out, trained)
    for i in range(30):
        for k, (a, b) in enumerate([(low, low), (low, high), (high, low), (high, high)]):
            expected = ((held_out[i] - a) ** 2 + (trained[i] - b) ** 2) ** 0.5
            assert got[i, k] == pytest.approx(expected)
    # The nearest corner is the form, where the limit is in the middle.
    forms = ["easy", "looks_like_other_class", "ambiguous_without_label", "ambiguous"]
    assert difficulty_quadrant(held_out, trained).tolist() == [
        forms[k] for k in got.argmin(axis=1)
    ]
    assert np.isnan(corner_distances([np.nan, 1], [0, 1])[0]).all()
