"""Row-wise kernels against numpy, on both sides of their column thresholds."""

import numpy as np
import pytest

from skcalib.metrics._per_sample import make_two_columns
from skcalib.utils._numeric import (
    compute_row_entropy,
    compute_row_margin,
    compute_row_max,
    compute_row_sum,
    compute_row_top_two,
    iter_blocks,
)


@pytest.mark.parametrize("k", [2, 3, 32, 33, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_against_numpy(k, dtype):
    block = np.random.default_rng(0).dirichlet(np.ones(k), 97).astype(dtype)
    block[:9, :2] = block[:9].max(axis=1, keepdims=True)  # tied at the top
    wide = block.astype(np.float64)
    ordered = np.sort(block, axis=1)
    first, second = compute_row_top_two(block)
    np.testing.assert_array_equal(first, ordered[:, -1])
    np.testing.assert_array_equal(second, ordered[:, -2])
    np.testing.assert_array_equal(compute_row_max(block), ordered[:, -1])
    np.testing.assert_array_equal(compute_row_margin(block), ordered[:, -1] - ordered[:, -2])
    negative = compute_row_top_two(block - 1)
    np.testing.assert_array_equal(negative[0], np.sort(block - 1, axis=1)[:, -1])
    np.testing.assert_array_equal(negative[1], np.sort(block - 1, axis=1)[:, -2])
    rtol = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(compute_row_sum(block), wide.sum(axis=1), rtol=rtol)
    np.testing.assert_allclose(
        compute_row_entropy(block), -(wide * np.log(wide)).sum(axis=1), rtol=rtol
    )


@pytest.mark.parametrize("k", [3, 40])
@pytest.mark.parametrize("beyond", [0.0, 1e-6])
def test_entropy_of_what_is_sure_is_0(k, beyond):
    # With what validation lets pass beyond 0 and 1.
    block = np.eye(k)[:3] * (1 + beyond)
    block[block == 0] = -beyond / (k - 1)
    assert compute_row_entropy(block).tolist() == [0, 0, 0]
    half = compute_row_entropy((np.eye(k)[:3] + np.eye(k)[-1]) / 2)
    np.testing.assert_allclose(half, np.log([2, 2, 2 if k > 3 else 1]))


def test_blocks_are_left_alone():
    block = np.random.default_rng(0).dirichlet(np.ones(60), 9)
    copy = block.copy()
    for kernel in (
        compute_row_sum,
        compute_row_max,
        compute_row_top_two,
        compute_row_margin,
        compute_row_entropy,
    ):
        kernel(block)
        np.testing.assert_array_equal(block, copy)


def test_positive_class_becomes_two_columns():
    matrix = np.array([[0.25, 0.75]])
    assert make_two_columns(matrix) is matrix
    assert make_two_columns(np.array([0.75, 0.5])).tolist() == [[0.25, 0.75], [0.5, 0.5]]


@pytest.mark.parametrize("shape", [(2**16 + 1, 9), (2**18 + 1,), (2, 2**18 + 1)])
@pytest.mark.parametrize(
    ("dtype", "of_block"),
    [(np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64)],
)
def test_blocks_are_the_rows_in_their_precision(shape, dtype, of_block):
    array = np.random.default_rng(0).random(shape, dtype=np.float32).astype(dtype, order="F")
    blocks = list(iter_blocks(array))
    assert all(block.flags.c_contiguous for _, block in blocks)
    assert max(len(block) for _, block in blocks) == max(1, 2**18 * len(array) // array.size)
    assert len(blocks) > 1
    assert {block.dtype for _, block in blocks} == {np.dtype(of_block)}
    np.testing.assert_array_equal(np.concatenate([block for _, block in blocks]), array)
    np.testing.assert_array_equal(np.concatenate([array[rows] for rows, _ in blocks]), array)
