"""Positions of labels among the classes of a fit."""

import numpy as np
import pytest

from skcalib.difficulty._label_codes import label_codes


def test_positions():
    np.testing.assert_array_equal(label_codes(np.array(["b", "a"]), np.array(["a", "b"])), [1, 0])


@pytest.mark.parametrize(
    ("y", "classes"),
    [([2], [0, 1]), ([-1], [0, 1]), (["a"], [0, 1]), ([0], ["a", "b"]), (["c"], ["a", "b"])],
)
def test_unknown_labels(y, classes):
    with pytest.raises(
        ValueError, match=r"y must hold labels among the 2 classes of the fit, such as .*, got"
    ):
        label_codes(np.array(y), np.array(classes))


def test_mixed_types():
    with pytest.raises(ValueError, match=r"such as \['a', 'b'\], got \[0\]"):
        label_codes(np.array([0]), np.array(["a", "b"], dtype=object))


def test_labels_of_mixed_type():
    mixed = np.array(["a", 1, "a", 7], dtype=object)
    with pytest.raises(ValueError, match=r"got \['a', 1, 7\]"):
        label_codes(mixed, np.array([0, 1]))
