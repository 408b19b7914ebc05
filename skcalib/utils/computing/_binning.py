"""Bins ``(a, b]`` with 0 in the first, and sums over them in float64.

Metrics and calibrators share them, so that a bin is the same everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Relative slack of a cumulative weight: rounding must not move a quantile by one sample.
_CUMSUM_SLACK = 1e-12
# With fewer values, a search is faster than a product.
_MANY_VALUES = 2000
# With more bins, a product in float32 may be more than one bin off.
_MANY_BINS = 2**20


def uniform_edges(n_bins: int) -> NDArray[np.float64]:
    """Return the edges of `n_bins` bins of equal width on [0, 1], shape (n_bins + 1,)."""
    return np.arange(n_bins + 1) / n_bins


def quantile_edges(
    values: NDArray[Any], n_bins: int, weight: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the edges of at most `n_bins` bins of equal weight.

    Inner edges are observed values: the smallest with at least j / n_bins of the weight at or
    below it. Equal edges are merged, so equal values always share a bin.
    """
    observed = quantiles(values, np.arange(1, n_bins) / n_bins, weight)
    inner = np.unique(np.clip(observed.astype(np.float64), 0, 1))
    # An inner edge of 1 would open a last bin (1, 1], which holds nothing.
    return np.concatenate([[0.0], inner[inner < 1], [1.0]])


def quantiles(
    values: NDArray[Any], levels: NDArray[np.float64], weight: NDArray[np.float64] | None
) -> NDArray[Any]:
    """Return the smallest values with at least these fractions of the weight at or below them."""
    if weight is None:
        ordered, n = np.sort(values), len(values)
        # The smallest rank r, from 0, with r + 1 >= level * n.
        rank = np.ceil(levels * n - _CUMSUM_SLACK * n).astype(np.intp) - 1
    else:
        order = np.argsort(values)
        ordered, mass = values[order], np.cumsum(weight[order])
        # The first cumulative weight that reaches the level.
        rank = np.searchsorted(mass, (levels - _CUMSUM_SLACK) * mass[-1])
    return ordered[np.maximum(rank, 0)]


def round_down(edges: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return edges e' of `dtype` for which v > e' if and only if v > e, for all v of `dtype`."""
    # astype rounds to nearest; where that went up, the next float below is the largest under e.
    rounded = edges.astype(dtype)
    with np.errstate(under="ignore"):
        return np.where(rounded > edges, np.nextafter(rounded, dtype.type(-1)), rounded)


def bin_index(values: NDArray[Any], edges: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the bin of every value, as exact arithmetic would, whatever the dtype."""
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
        return np.stack([np.bincount(index, weight, n_bins), value_sum, true])
    # One pass for both outcomes, False in the first n_bins cells.
    false, true = np.bincount(index + n_bins * outcomes, weight, 2 * n_bins).reshape(2, n_bins)
    return np.stack([false + true, value_sum, true])


def quantile_sums(
    values: NDArray[Any],
    outcomes: NDArray[Any],
    weight: NDArray[np.float64] | None,
    n_bins: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the edges of `quantile_edges` and the sums of `bin_sums` between them."""
    edges = quantile_edges(values, n_bins, weight)
    return edges, bin_sums(values, outcomes, weight, edges)
