"""Histograms of numbers that add up over chunks, with cells that do not depend on the data.

A cell holds numbers that agree in their sign, their exponent and the next eleven bits: they differ
by less than 1 in 2000. For probabilities, the cells are those of their log-odds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Bits of a float32 that are dropped. Twelve leave at most some 60 000 cells between -16 and 16.
_DROPPED_BITS = 12


class Cells(NamedTuple):
    """Sorted cells (m,), sums over each of them (c, m), and the largest value in each (m,)."""

    keys: NDArray[np.int32]
    sums: NDArray[np.float64]
    largest: NDArray[np.float64]

    def __add__(self, other: Cells) -> Cells:  # type: ignore[override]
        keys, place = np.unique(np.concatenate([self.keys, other.keys]), return_inverse=True)
        return _gathered(
            keys,
            place,
            np.hstack([self.sums, other.sums]),
            np.concatenate([self.largest, other.largest]),
        )


def cells_of(
    values: NDArray[np.float64], summands: NDArray[np.float64], *, are_proba: bool
) -> Cells:
    """Return the sums of `summands` (c, n) over the cells of the values (n,)."""
    scale = values
    if are_proba:
        with np.errstate(divide="ignore"):
            scale = np.log(values) - np.log1p(-values)
    bits = scale.astype(np.float32).view(np.int32)
    # Negative floats are ordered by their magnitude; the shift rounds all downward.
    ordered = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits) >> _DROPPED_BITS
    keys, place = np.unique(ordered, return_inverse=True)
    return _gathered(keys.astype(np.int32), place, summands, values)


def _gathered(
    keys: NDArray[np.int32],
    place: NDArray[np.intp],
    summands: NDArray[np.float64],
    values: NDArray[np.float64],
) -> Cells:
    """Return cells of these keys: sums of `summands` (c, n) and largest of `values` (n,)."""
    sums = np.array([np.bincount(place, row, len(keys)) for row in summands])
    largest = np.full(len(keys), -np.inf)
    np.maximum.at(largest, place, values)
    return Cells(keys, sums, largest)
