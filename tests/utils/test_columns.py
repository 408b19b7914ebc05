from types import SimpleNamespace

import numpy as np
import pytest

from skcalib.utils._labels import get_column_names, match_names

PROBA = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
Y = np.array(["cat", "bird"])


@pytest.mark.parametrize(
    ("columns", "names"), [([0, 1, 2], None), (["a", "b"], ["a", "b"]), ([1, 0], [1, 0])]
)
def test_numbers_in_order_are_no_names(columns, names):
    assert get_column_names(SimpleNamespace(columns=columns)) == names
    assert get_column_names(PROBA) is None


def test_names_of_the_columns_are_the_labels():
    proba, labels = match_names(PROBA, ["cat", "dog", "bird"], Y, None)
    assert proba is PROBA
    assert labels.tolist() == ["cat", "dog", "bird"]


def test_columns_follow_the_labels_that_are_given():
    given = np.array(["bird", "cat", "dog"])
    proba, labels = match_names(PROBA, ["cat", "dog", "bird"], Y, given)
    assert labels is given
    np.testing.assert_array_equal(proba, PROBA[:, [2, 0, 1]])
    assert match_names(PROBA, given.tolist(), Y, given)[0] is PROBA


def test_numbered_names_are_positions():
    assert match_names(PROBA, ["p0", "p1", "p2"], Y, None) == (PROBA, None)


@pytest.mark.parametrize("names", [["cat", "dog", "emu"], ["p1", "p0", "p2"], ["cat", "bird", 3]])
def test_other_names_are_errors(names):
    with pytest.raises(ValueError, match=r"^p must have columns .* named by the labels, \['bird'"):
        match_names(PROBA, names, Y, None, name="p")
