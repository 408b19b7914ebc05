"""Samples grouped by equal scores: metrics of a ranking are sums over these groups."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..utils._backends import get_back_end, sum_by_index


class TieGroups(NamedTuple):
    """Groups of samples of equal score, in decreasing order of the score; all (n_groups,).

    ``weight`` is the total weight of a group, ``positive`` the weight of its positive samples:
    correct predictions in selective prediction, the positive class in detection. A sample on which
    people differ counts by its fraction.
    """

    score: NDArray[Any]
    weight: NDArray[np.float64]
    positive: NDArray[np.float64]


def tie_groups(score: Any, positive: Any, weight: NDArray[np.float64] | None) -> TieGroups:
    """Return the distinct scores, with the total and the positive weight of each.

    They are tensors where `score` and `positive` are tensors on an accelerator.
    """
    xp, place = get_back_end(score)
    if weight is None and xp is np and positive.dtype == bool:
        # Sorted values do, in a third of the time.
        distinct, count = np.unique(score, return_counts=True)
        hits, n_hits = np.unique(score[positive], return_counts=True)
        of_positive = np.zeros(len(distinct))
        of_positive[np.searchsorted(distinct, hits)] = n_hits
        return TieGroups(distinct[::-1], count[::-1].astype(np.float64), of_positive[::-1])
    if weight is not None and not weight.all():
        # A score that only samples of weight 0 have would be a group of weight 0: 0 / 0 in means.
        used = np.flatnonzero(weight)
        score, positive, weight = score[place(used)], positive[place(used)], weight[used]
    distinct, index = xp.unique(score, return_inverse=True)
    weight = place(np.ones(len(score)) if weight is None else weight)
    total, of_positive = (
        sum_by_index(index, part, len(distinct)) for part in (weight, weight * positive)
    )
    return TieGroups(*(xp.flip(part, (0,)) for part in (distinct, total, of_positive)))
