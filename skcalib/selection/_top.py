"""The rows with the largest scores."""

import numpy as np
from numpy.typing import NDArray


def top_rows(
    scores: NDArray[np.floating], *, fraction: float, n_samples: int | None
) -> NDArray[np.bool_]:
    """Return the mask of the largest scores, `n_samples` of them or, with None, a `fraction`.

    Ties at the cut are broken by row order.
    """
    n = len(scores)
    if n_samples is None:
        count = max(1, int(fraction * n + 0.5))
    elif n_samples > n:
        raise ValueError(f"n_samples must be at most the number of rows, {n}; got {n_samples}.")
    else:
        count = n_samples
    cut = np.partition(scores, n - count)[n - count]
    chosen = scores > cut
    ties = np.flatnonzero(scores == cut)
    chosen[ties[: count - chosen.sum()]] = True
    return chosen
