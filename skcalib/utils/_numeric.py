"""Numbers: blocks of rows that stay in cache, bins and sums over them, a binomial interval."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from sklearn.utils import gen_batches

from ._backends import BLOCKS_AT_ONCE, TensorRows, get_back_end, to_host

# Blocks of rows that stay in cache, reductions along their rows, and the sizes that fit.
#
# With few columns numpy's own reductions along a row spend their time on overhead; on the
# transposed block they run along contiguous columns.

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


def _along_rows(block: Any) -> bool:
    """Return whether to reduce along the rows: of blocks with many columns, and of tensors."""
    return block.shape[1] > FEW_COLUMNS or not isinstance(block, np.ndarray)


def compute_row_sum(block: NDArray) -> NDArray:
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


def compute_row_max(block: NDArray) -> NDArray:
    """Return the largest value of every row."""
    if _along_rows(block):
        return get_back_end(block)[0].amax(block, 1)
    return np.ascontiguousarray(block.T).max(axis=0)


def compute_row_top_two(block: NDArray) -> tuple[NDArray, NDArray]:
    """Return the largest and the second-largest value of every row (equal where tied)."""
    if _along_rows(block):
        return _compute_top_two_of_many(block)
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


def _compute_top_two_of_many(block: NDArray) -> tuple[NDArray, NDArray]:
    if not isinstance(block, np.ndarray):
        first, second = block.topk(2, dim=1)[0].T
        return first, second
    rest = block.copy()
    top = np.arange(len(rest)), rest.argmax(axis=1)
    first = rest[top]
    # Only one entry: of two equal largest values, the other is the second-largest.
    rest[top] = -np.inf
    return first, rest.max(axis=1)


def compute_row_margin(block: NDArray) -> NDArray:
    """Return the largest value of every row less the second-largest."""
    first, second = compute_row_top_two(block)
    return first - second


def compute_row_entropy(block: NDArray) -> NDArray:
    """Return the entropy of every row in nats."""
    xp, _ = get_back_end(block)
    # 0 x log(tiny) = 0, so zeros need no mask; nor does what rounding left below 0.
    terms = block.clip(min=xp.finfo(block.dtype).tiny)
    xp.log(terms, out=terms)
    with np.errstate(under="ignore"):
        xp.multiply(terms, block, out=terms)
    return (-compute_row_sum(terms)).clip(min=0)


# Bins ``(a, b]`` with 0 in the first, and sums over them in float64.
#
# Metrics and calibrators share them, so that a bin is the same everywhere.

# Relative slack of a cumulative weight: rounding must not move a quantile by one sample.
_CUMSUM_SLACK = 1e-12
# With fewer values, a search is faster than a product.
_MANY_VALUES = 2000
# With more bins, a product in float32 may be more than one bin off.
_MANY_BINS = 2**20


def compute_uniform_edges(n_bins: int) -> NDArray[np.float64]:
    """Return the edges of `n_bins` bins of equal width on [0, 1], shape (n_bins + 1,)."""
    return np.arange(n_bins + 1) / n_bins


def compute_quantile_edges(
    values: NDArray[Any],
    n_bins: int,
    weight: NDArray[np.float64] | None = None,
    ends: tuple[float, float] = (0.0, 1.0),
) -> NDArray[np.float64]:
    """Return the edges of at most `n_bins` bins of equal weight, from the first end to the other.

    Inner edges are observed values: the smallest with at least j / n_bins of the weight at or
    below it. Equal edges are merged, so equal values always share a bin.
    """
    return merge_edges(compute_quantiles(values, np.arange(1, n_bins) / n_bins, weight), ends)


def merge_edges(
    observed: NDArray[Any], ends: tuple[float, float] = (0.0, 1.0)
) -> NDArray[np.float64]:
    """Return the edges of bins between the ends: different ones of the observed values inside."""
    inner = np.unique(np.clip(observed.astype(np.float64), *ends))
    # An inner edge of 1 would open a last bin (1, 1], which holds nothing.
    return np.concatenate([ends[:1], inner[inner < ends[1]], ends[1:]])


def compute_quantiles(
    values: NDArray[Any], levels: NDArray[np.float64], weight: NDArray[np.float64] | None
) -> NDArray[Any]:
    """Return the smallest values with at least these fractions of the weight at or below them."""
    if weight is None:
        ordered, rank = np.sort(values), _find_ranks(levels, len(values))
    else:
        order = np.argsort(values)
        ordered, cumulative = values[order], np.cumsum(weight[order])
        # The first cumulative weight that reaches the level.
        rank = np.searchsorted(cumulative, (levels - _CUMSUM_SLACK) * cumulative[-1])
    return ordered[np.maximum(rank, 0)]


def compute_quantiles_of_rows(
    values: Any, levels: NDArray[np.float64], weight: NDArray[np.float64] | None
) -> Any:
    """Return what :func:`compute_quantiles` does for every row (m, n) of a tensor, as a tensor."""
    torch, place = get_back_end(values)
    ordered, order = values.sort()
    if weight is None:
        return ordered[:, place(np.maximum(_find_ranks(levels, values.shape[1]), 0))]
    cumulative = place(weight)[order].cumsum(1)
    wanted = place(levels - _CUMSUM_SLACK) * cumulative[:, -1:]
    return ordered.gather(1, torch.searchsorted(cumulative, wanted))


def _find_ranks(levels: NDArray[np.float64], n: int) -> NDArray[np.intp]:
    """Return the smallest ranks r, from 0, with r + 1 >= level * n."""
    return np.ceil(levels * n - _CUMSUM_SLACK * n).astype(np.intp) - 1


def round_down(edges: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return edges e' of `dtype` for which v > e' if and only if v > e, for all v of `dtype`."""
    if dtype == edges.dtype:
        return edges
    # astype rounds to nearest; where that went up, the next float below is the largest under e.
    rounded = edges.astype(dtype)
    with np.errstate(under="ignore"):
        return np.where(rounded > edges, np.nextafter(rounded, dtype.type(-1)), rounded)


def find_limits(edges: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return limits of the inner edges: a value of `dtype` is in a later bin if it is above one.

    Where bins have equal width, value and edge are compared in float32, whatever the dtype: votes
    and decimals lie on these edges, and their rounding must not decide. Other edges are observed
    values, which are compared exactly.
    """
    if not _have_equal_width(edges):
        return round_down(edges[1:-1], dtype)
    inner = edges[1:-1].astype(np.float32)
    if dtype != np.float64:
        return inner
    # The largest float64 that rounds to the edge or below it.
    middle = (inner.astype(np.float64) + np.nextafter(inner, np.float32(2))) / 2
    return np.where(middle.astype(np.float32) > inner, np.nextafter(middle, -1), middle)


def _have_equal_width(edges: NDArray[np.float64]) -> bool:
    n_bins = len(edges) - 1
    if n_bins > _MANY_BINS or edges[1] != 1 / n_bins:
        return False
    return bool((edges == _make_cached_edges(n_bins)).all())


@lru_cache(maxsize=1)
def _make_cached_edges(n_bins: int) -> NDArray[np.float64]:
    """Return uniform edges that nobody changes."""
    return compute_uniform_edges(n_bins)


def bin_index(values: NDArray[Any], edges: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the bin of every value, the same for float32 and float64 (:func:`find_limits`)."""
    inner = find_limits(edges, values.dtype)
    n_bins = len(edges) - 1
    if len(values) < _MANY_VALUES or not _have_equal_width(edges):
        return np.searchsorted(inner, values)
    # A product finds the bin, or the next one where rounding takes it up to an edge. It never
    # stays below an edge that the value is above: v > k / n means v n >= k, and k is a float. No
    # value that is above a limit is below the edge.
    bounds = np.concatenate([[-np.inf], inner]).astype(values.dtype)
    index = np.clip((values * values.dtype.type(n_bins)).astype(np.intp), 0, n_bins - 1)
    index -= values <= bounds[index]
    return index


def bin_sums(
    values: NDArray[Any],
    outcomes: NDArray[Any],
    weight: NDArray[np.float64] | None,
    edges: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return weight, weighted value and weighted outcome summed over every bin, (3, n_bins).

    Outcomes are true or false, or fractions in between.
    """
    n_bins = len(edges) - 1
    index = bin_index(values, edges)
    value_sum = np.bincount(index, values if weight is None else values * weight, n_bins)
    if outcomes.dtype.kind == "f":
        true = np.bincount(index, outcomes if weight is None else outcomes * weight, n_bins)
        return np.array([np.bincount(index, weight, n_bins), value_sum, true])
    # One pass for both outcomes, with False in the first n_bins.
    false, true = np.bincount(index + n_bins * outcomes, weight, 2 * n_bins).reshape(2, n_bins)
    return np.array([false + true, value_sum, true])


def compute_quantile_sums(
    values: NDArray[Any],
    outcomes: NDArray[Any],
    weight: NDArray[np.float64] | None,
    n_bins: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the edges of `compute_quantile_edges` and the sums of `bin_sums` between them."""
    edges = compute_quantile_edges(values, n_bins, weight)
    return edges, bin_sums(values, outcomes, weight, edges)


def compute_binomial_interval(
    fraction: NDArray[np.float64], count: NDArray[np.float64], confidence_level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of Clopper and Pearson's interval of a fraction; NaN where `count` is 0.

    It covers the true fraction with a probability of at least `confidence_level`, also of rare
    events.
    """
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1), got {confidence_level!r}.")
    tail = (1 - confidence_level) / 2
    many, others = fraction * count, (1 - fraction) * count
    # A fraction of 0 has the lower end 0, a fraction of 1 the upper end 1; NaN stays NaN.
    low = np.where(many > 0, betaincinv(many, others + 1, tail), 0 * many)
    high = np.where(others > 0, betaincinv(many + 1, others, 1 - tail), 1 + 0 * others)
    return low, high
