"""Bins ``(a, b]`` with 0 in the first, and sums over them in float64.

Metrics and calibrators share them, so that a bin is the same everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Relative slack of a cumulative weight, so that rounding never moves a quantile by a sample.
_CUMSUM_SLACK = 1e-12
# Up to here a search is faster than a product.
_MANY_VALUES = 2000
# Beyond, a product in float32 may be more than one bin off.
_MANY_BINS = 2**20


def uniform_edges(n_bins: int) -> NDArray[np.float64]:
    """Return the edges of `n_bins` bins of equal width on [0, 1], shape (n_bins + 1,)."""
    return np.arange(n_bins + 1) / n_bins


def quantile_edges(
    values: NDArray[Any], n_bins: int, weight: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the edges of at most `n_bins` bins of equal weight.

    Inner edges are observed values: the smallest that leaves j / n_bins of the weight at or
    below. Equal edges are merged, so equal values always share a bin.
    """
    if weight is None:
        return _edges_of_ordered(np.sort(values), n_bins, None)
    order = np.argsort(values)
    return _edges_of_ordered(values[order], n_bins, weight[order])


def _edges_of_ordered(
    ordered: NDArray[Any], n_bins: int, weight: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    level = np.arange(1, n_bins) / n_bins
    if weight is None:
        # The smallest rank r, from 0, with r + 1 >= level * n.
        n = len(ordered)
        rank = np.ceil(level * n - _CUMSUM_SLACK * n).astype(np.intp) - 1
    else:
        mass = np.cumsum(weight)
        # The first cumulative weight that reaches the level.
        rank = np.searchsorted(mass, (level - _CUMSUM_SLACK) * mass[-1])
    inner = np.unique(np.clip(ordered[np.maximum(rank, 0)].astype(np.float64), 0, 1))
    # An inner edge of 1 would open a last bin (1, 1], which holds nothing.
    return np.concatenate([[0.0], inner[inner < 1], [1.0]])


def round_down(edges: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return edges e' of `dtype` for which v > e' if and only if v > e, for all v of `dtype`."""
    # astype rounds to the nearest; where that went up, the float below is the largest under e.
    rounded = edges.astype(dtype)
    return np.where(rounded > edges, np.nextafter(rounded, dtype.type(-1)), rounded)


def bin_index(values: NDArray[Any], edges: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the bin of every value, as if compared in exact arithmetic, whatever its dtype."""
    inner = round_down(edges[1:-1], values.dtype)
    n_bins = len(edges) - 1
    few = len(values) < _MANY_VALUES
    if few or n_bins > _MANY_BINS or not np.array_equal(edges, uniform_edges(n_bins)):
        return np.searchsorted(inner, values)
    # A product finds the bin, or the next one where rounding takes it up to an edge. It never
    # stays below an edge that the value is above: v > k / n means v n >= k, and k is a float.
    bounds = np.concatenate([[-np.inf], inner]).astype(values.dtype)
    index = np.clip((values * values.dtype.type(n_bins)).astype(np.intp), 0, n_bins - 1)
    index -= values <= bounds[index]
    return index


def bin_sums(
    values: NDArray[Any],
    outcomes: NDArray[np.bool_],
    weight: NDArray[np.float64] | None,
    edges: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return weight, weighted value and weighted outcome summed over every bin, (3, n_bins)."""
    n_bins = len(edges) - 1
    index = bin_index(values, edges)
    value_sum = np.bincount(index, values if weight is None else values * weight, n_bins)
    # One pass for both outcomes, False in the first n_bins cells.
    false, true = np.bincount(index + n_bins * outcomes, weight, 2 * n_bins).reshape(2, n_bins)
    return np.stack([false + true, value_sum, true])


def quantile_sums(
    values: NDArray[Any],
    outcomes: NDArray[np.bool_],
    weight: NDArray[np.float64] | None,
    n_bins: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the edges of `quantile_edges` and the sums of `bin_sums` between them.

    The bins of ordered values are runs, which end where the edges are: no value is looked up.
    """
    if weight is None:
        ordered = np.sort(values)
        edges = _edges_of_ordered(ordered, n_bins, None)
        end = _ends_of_runs(ordered, edges)
        true = np.diff(_ends_of_runs(np.sort(values[outcomes]), edges), prepend=0)
        return edges, np.stack([np.diff(end, prepend=0), _sums_of_runs(ordered, end), true])
    order = np.argsort(values)
    ordered, mass = values[order], weight[order]
    edges = _edges_of_ordered(ordered, n_bins, mass)
    end = _ends_of_runs(ordered, edges)
    parts = mass, mass * ordered, mass * outcomes[order]
    return edges, np.stack([_sums_of_runs(part, end) for part in parts])


def _ends_of_runs(ordered: NDArray[Any], edges: NDArray[np.float64]) -> NDArray[np.intp]:
    inner = round_down(edges[1:-1], ordered.dtype)
    return np.append(np.searchsorted(ordered, inner, side="right"), len(ordered))


def _sums_of_runs(ordered: NDArray[Any], end: NDArray[np.intp]) -> NDArray[np.float64]:
    start = np.append(0, end[:-1])
    sums = np.zeros(len(end))
    # An empty run, of which reduceat would return a value, is left out and remains 0.
    filled = end > start
    sums[filled] = np.add.reduceat(ordered, start[filled], dtype=np.float64)
    return sums
