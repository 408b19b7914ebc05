"""Blocks of rows that stay in cache, reductions along their rows, and the sizes that fit.

With few columns numpy's own reductions along a row spend their time on overhead; on the
transposed block they run along contiguous columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from ..checking._arrays import to_host
from ._tensors import BLOCKS_AT_ONCE, TensorRows, back_end

# Measured in process time, one thread, noisy machine, float32.

# Elements of a block of probabilities or logits, one megabyte of float32. From 2**18 to 2**20 all
# metrics are within a fifth of their best, with 10 classes and 1000; 2**14 costs up to 5 times.
BLOCK_SIZE = 2**18
# With no more columns, reductions run along the columns of the transposed block, else along the
# rows. With 2 columns that is 17 to 40 times as fast, with 8 4 to 12 times; sums break even at 24
# columns, the label of the maximum at 56, the maximum at 96. One number between serves all.
FEW_COLUMNS = 32


def iter_blocks(
    array: NDArray[Any] | TensorRows, *, on_device: bool = False
) -> Iterator[tuple[slice, Any]]:
    """Yield (rows, block): C-contiguous blocks of rows, float16 widened to float32.

    Rows of a tensor on an accelerator come as arrays or, with `on_device`, as tensors.
    """
    n_rows = array.shape[0]
    step = max(1, BLOCK_SIZE // (array.shape[1] if array.ndim == 2 else 1))
    if isinstance(array, TensorRows):
        for rows in gen_batches(n_rows, BLOCKS_AT_ONCE * step):
            yield rows, array[rows] if on_device else to_host(array[rows])
        return
    dtype = np.float32 if array.dtype == np.float16 else array.dtype
    for start in range(0, n_rows, step):
        rows = slice(start, min(start + step, n_rows))
        yield rows, np.ascontiguousarray(array[rows], dtype=dtype)


def two_columns(block: NDArray) -> NDArray:
    """Return (n, K) as it is, and the probability of the positive class as (1 - p, p)."""
    return block if block.ndim == 2 else np.column_stack([1 - block, block])


def _along_rows(block: Any) -> bool:
    """Tell whether to reduce along the rows: of blocks with many columns, and of tensors."""
    return block.shape[1] > FEW_COLUMNS or not isinstance(block, np.ndarray)


def row_sum(block: NDArray) -> NDArray:
    """Return the sum of every row, in the precision of the block.

    Equal rows have equal sums wherever they stand in the block, which a product with a vector of
    ones does not promise: scores that rank the rows must not split ties.
    """
    if _along_rows(block):
        return block.sum(axis=1)
    total = block[:, 0].copy()
    for column in block.T[1:]:
        total += column
    return total


def row_max(block: NDArray) -> NDArray:
    """Return the largest value of every row."""
    if _along_rows(block):
        return back_end(block)[0].amax(block, 1)
    return np.ascontiguousarray(block.T).max(axis=0)


def row_top_two(block: NDArray) -> tuple[NDArray, NDArray]:
    """Return the largest and the second-largest value of every row (equal where tied)."""
    if _along_rows(block):
        return _top_two_of_many(block)
    columns = np.ascontiguousarray(block.T)
    first = columns[0].copy()
    second = np.full_like(first, -np.inf)
    smaller = np.empty_like(first)
    for column in columns[1:]:
        # The smaller of the largest so far and the new value may be the second-largest.
        np.minimum(first, column, out=smaller)
        np.maximum(first, column, out=first)
        np.maximum(second, smaller, out=second)
    return first, second


def _top_two_of_many(block: NDArray) -> tuple[NDArray, NDArray]:
    if not isinstance(block, np.ndarray):
        first, second = block.topk(2, dim=1)[0].T
        return first, second
    rest = block.copy()
    top = np.arange(len(rest)), rest.argmax(axis=1)
    first = rest[top]
    # Only one entry: of two equal largest values, the other is the second-largest.
    rest[top] = -np.inf
    return first, rest.max(axis=1)


def row_margin(block: NDArray) -> NDArray:
    """Return the largest value of every row less the second-largest."""
    first, second = row_top_two(block)
    return first - second


def row_entropy(block: NDArray) -> NDArray:
    """Return the entropy of every row in nats."""
    xp, _ = back_end(block)
    # 0 x log(tiny) = 0, so zeros need no mask; nor does what rounding left below 0.
    terms = block.clip(min=xp.finfo(block.dtype).tiny)
    xp.log(terms, out=terms)
    with np.errstate(under="ignore"):
        xp.multiply(terms, block, out=terms)
    return (-row_sum(terms)).clip(min=0)
