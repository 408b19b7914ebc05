"""Rows grouped by equal scores: what every metric of a ranking is a sum over."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class TieGroups(NamedTuple):
    """Groups of rows of equal score, in decreasing order of the score; all arrays (n_groups,)."""

    score: NDArray[Any]
    weight: NDArray[np.float64]
    hit: NDArray[np.float64]


def tie_groups(
    score: NDArray[Any], hit: NDArray[np.bool_], weight: NDArray[np.float64] | None
) -> TieGroups:
    """Return the distinct scores, and the weight of the rows and of the hits that have them."""
    if weight is None:
        distinct, total, hits = _count(score, hit)
    else:
        used = weight > 0
        distinct, index = np.unique(score[used], return_inverse=True)
        total, hits = (
            np.bincount(index, part[used]).astype(np.float64, copy=False)
            for part in (weight, weight * hit)
        )
    return TieGroups(distinct[::-1], total[::-1], hits[::-1])


def _count(
    score: NDArray[Any], hit: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]:
    # Sorting all values, and then those of the rarer kind, is cheaper than one argsort.
    ordered = np.sort(score)
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    distinct = ordered[first]
    total = np.diff(first, append=len(ordered)).astype(np.float64)
    hits_are_rare = 2 * np.count_nonzero(hit) < len(hit)
    rare = np.sort(score[hit if hits_are_rare else ~hit])
    count = np.bincount(np.searchsorted(distinct, rare), minlength=len(distinct))
    return distinct, total, (count if hits_are_rare else total - count).astype(np.float64)
