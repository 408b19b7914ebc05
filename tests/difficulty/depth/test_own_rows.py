import numpy as np

from skcalib.difficulty.depth._own_rows import OwnRows


def test_finds_rows_whatever_their_number_type():
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    rows = OwnRows().fit(X, np.zeros(20, dtype=int))
    np.testing.assert_array_equal(rows.find(X[::-1]), np.arange(20)[::-1])
    np.testing.assert_array_equal(rows.find(X.astype(np.float64)), np.arange(20))
    np.testing.assert_array_equal(rows.find(np.asfortranarray(X)), np.arange(20))
    np.testing.assert_array_equal(rows.find(X + 1), np.full(20, -1))


def test_minus_zero_is_zero():
    assert OwnRows().fit(np.array([[0.0, 1.0]]), np.array([0])).find(np.array([[-0.0, 1]])) == [0]


def test_label_tells_duplicates_apart():
    X = np.zeros((4, 2))
    rows = OwnRows().fit(X, np.array([0, 1, 1, 0]))
    np.testing.assert_array_equal(rows.find(X, np.array([0, 1, 1, 0])), [0, 1, 1, 0])
    np.testing.assert_array_equal(rows.find(X), [0, 0, 0, 0])
    np.testing.assert_array_equal(rows.find(X[:1], np.array([-1])), [0])
