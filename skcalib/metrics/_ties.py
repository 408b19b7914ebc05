"""Samples grouped by equal scores: what every metric of a ranking is a sum over."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class TieGroups(NamedTuple):
    """Groups of samples of equal score, in decreasing order of the score; all (n_groups,).

    ``weight`` is that of all samples of the group, ``positive`` that of its positive ones: the
    correct predictions in selective prediction, the positive class in detection.
    """

    score: NDArray[Any]
    weight: NDArray[np.float64]
    positive: NDArray[np.float64]


def tie_groups(
    score: NDArray[Any], positive: NDArray[np.bool_], weight: NDArray[np.float64] | None
) -> TieGroups:
    """Return the distinct scores, and the weight of the samples that have them."""
    if weight is None:
        distinct, total, of_positive = _count(score, positive)
    else:
        # A score of samples of weight 0 alone would be a group without weight: 0 / 0 in means.
        used = weight > 0
        distinct, index = np.unique(score[used], return_inverse=True)
        total, of_positive = (
            np.bincount(index, part[used]).astype(np.float64, copy=False)
            for part in (weight, weight * positive)
        )
    return TieGroups(distinct[::-1], total[::-1], of_positive[::-1])


def _count(
    score: NDArray[Any], positive: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]:
    # Sorting all values, and then those of the rarer kind, is cheaper than one argsort.
    ordered = np.sort(score)
    # Where each run of equal scores begins; the differences are the sizes of the groups.
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    distinct = ordered[first]
    total = np.diff(first, append=len(ordered)).astype(np.float64)
    positives_are_rare = 2 * np.count_nonzero(positive) < len(positive)
    rare = np.sort(score[positive if positives_are_rare else ~positive])
    count = np.bincount(np.searchsorted(distinct, rare), minlength=len(distinct))
    of_positive = count if positives_are_rare else total - count
    return distinct, total, of_positive.astype(np.float64)
