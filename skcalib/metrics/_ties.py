"""Samples grouped by equal scores: what every metric of a ranking is a sum over."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class TieGroups(NamedTuple):
    """Groups of samples of equal score, in decreasing order of the score; all (n_groups,).

    ``weight`` is that of all samples of the group, ``positive`` that of its positive ones: the
    correct predictions in selective prediction, the positive class in detection; of a sample on
    which people differ, its share.
    """

    score: NDArray[Any]
    weight: NDArray[np.float64]
    positive: NDArray[np.float64]


def tie_groups(
    score: NDArray[Any], positive: NDArray[Any], weight: NDArray[np.float64] | None
) -> TieGroups:
    """Return the distinct scores, and the weight of the samples that have them."""
    if weight is not None:
        # A score of samples of weight 0 alone would be a group without weight: 0 / 0 in means.
        used = weight > 0
        score, positive, weight = score[used], positive[used], weight[used]
    distinct, index = np.unique(score, return_inverse=True)
    weight = np.ones(len(score)) if weight is None else weight
    total, of_positive = (
        np.bincount(index, part).astype(np.float64) for part in (weight, weight * positive)
    )
    return TieGroups(distinct[::-1], total[::-1], of_positive[::-1])
