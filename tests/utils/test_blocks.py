"""Row-wise kernels against numpy, on both sides of their column thresholds."""

import numpy as np
import pytest

from skcalib.utils._blocks import (
    row_entropy,
    row_margin,
    row_max,
    row_sum,
    row_top_two,
    top_rows,
    two_columns,
)


@pytest.mark.parametrize("k", [2, 3, 32, 33, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_against_numpy(k, dtype):
    block = np.random.default_rng(0).dirichlet(np.ones(k), 97).astype(dtype)
    block[:9, :2] = block[:9].max(axis=1, keepdims=True)  # tied at the top
    wide = block.astype(np.float64)
    ordered = np.sort(block, axis=1)
    first, second = row_top_two(block)
    np.testing.assert_array_equal(first, ordered[:, -1])
    np.testing.assert_array_equal(second, ordered[:, -2])
    np.testing.assert_array_equal(row_max(block), ordered[:, -1])
    np.testing.assert_array_equal(row_margin(block), ordered[:, -1] - ordered[:, -2])
    negative = row_top_two(block - 1)
    np.testing.assert_array_equal(negative[0], np.sort(block - 1, axis=1)[:, -1])
    np.testing.assert_array_equal(negative[1], np.sort(block - 1, axis=1)[:, -2])
    rtol = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(row_sum(block), wide.sum(axis=1), rtol=rtol)
    np.testing.assert_allclose(row_entropy(block), -(wide * np.log(wide)).sum(axis=1), rtol=rtol)


def test_blocks_are_left_alone():
    block = np.random.default_rng(0).dirichlet(np.ones(60), 9)
    copy = block.copy()
    for kernel in (row_sum, row_max, row_top_two, row_margin, row_entropy):
        kernel(block)
        np.testing.assert_array_equal(block, copy)


def test_positive_class_becomes_two_columns():
    matrix = np.array([[0.25, 0.75]])
    assert two_columns(matrix) is matrix
    assert two_columns(np.array([0.75, 0.5])).tolist() == [[0.25, 0.75], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("fraction", "n_samples", "count"),
    [
        (0.5, None, 2),
        (0.124, None, 1),
        (0.375, None, 2),
        (1.0, None, 4),
        (None, 1, 1),
        (None, 4, 4),
    ],
)
def test_as_many_rows_as_asked_for(fraction, n_samples, count):
    scores = np.array([0.1, 0.4, 0.3, 0.2])
    chosen = top_rows(scores, fraction=fraction, n_samples=n_samples)
    assert set(np.flatnonzero(chosen)) == set(np.argsort(-scores)[:count])


def test_ties_at_the_cut_are_broken_by_row_order():
    chosen = top_rows(np.array([1.0, 2.0, 1.0, 1.0]), fraction=0.5, n_samples=None)
    assert chosen.tolist() == [True, True, False, False]


def test_more_rows_than_there_are():
    with pytest.raises(ValueError, match=r"^n_samples must be at most .* rows, 3, got 4\.$"):
        top_rows(np.ones(3), fraction=None, n_samples=4)
