"""Reductions over the rows of a block of probabilities or logits that sits in the cache.

With few columns numpy's own reductions along a row spend their time on overhead; on the
transposed block they run along contiguous columns.
"""

import numpy as np
from numpy.typing import NDArray

_FEW_COLUMNS = 48


def row_sum(block: NDArray) -> NDArray:
    """Return the sum of every row, in the precision of the block."""
    if block.shape[1] > _FEW_COLUMNS:
        return block.sum(axis=1)
    return block @ np.ones(block.shape[1], dtype=block.dtype)


def row_max(block: NDArray) -> NDArray:
    """Return the largest value of every row."""
    if block.shape[1] > _FEW_COLUMNS:
        return block.max(axis=1)
    return np.ascontiguousarray(block.T).max(axis=0)


def row_top_two(block: NDArray) -> tuple[NDArray, NDArray]:
    """Return the largest and the second-largest value of every row (equal where tied)."""
    if block.shape[1] > _FEW_COLUMNS:
        return _top_two_of_many(block)
    columns = np.ascontiguousarray(block.T)
    first = columns[0].copy()
    second = np.full_like(first, -np.inf)
    loser = np.empty_like(first)
    for column in columns[1:]:
        np.minimum(first, column, out=loser)
        np.maximum(first, column, out=first)
        np.maximum(second, loser, out=second)
    return first, second


def _top_two_of_many(block: NDArray) -> tuple[NDArray, NDArray]:
    rest = block.copy()
    top = np.arange(len(rest)), rest.argmax(axis=1)
    first = rest[top]
    rest[top] = -np.inf
    return first, rest.max(axis=1)


def row_entropy(block: NDArray) -> NDArray:
    """Return the entropy of every row in nats."""
    # 0 x log(tiny) = 0: no mask for the zeros. What validation lets pass beyond [0, 1] has none.
    terms = np.maximum(block, np.finfo(block.dtype).tiny)
    np.log(terms, out=terms)
    np.multiply(terms, block, out=terms)
    return np.maximum(-row_sum(terms), 0)
