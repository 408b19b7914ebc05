"""How many samples to choose, and which."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Fraction of the samples where neither a fraction nor a number is given.
DEFAULT_FRACTION = 0.3


def count_to_choose(n: int, *, fraction: float | None, n_samples: int | None) -> int:
    """Return how many of n samples to choose: `n_samples`, or a `fraction`, 0.3 by default."""
    if n_samples is None:
        # Halves are rounded up; round() would round them to the even number.
        return max(1, int((DEFAULT_FRACTION if fraction is None else fraction) * n + 0.5))
    if fraction is not None:
        raise ValueError(
            f"n_samples must be None where fraction is given, got n_samples={n_samples!r} and "
            f"fraction={fraction!r}."
        )
    if n_samples > n:
        raise ValueError(f"n_samples must be at most the number of rows, {n}, got {n_samples}.")
    return n_samples


def drawn_scores(weights: NDArray[np.floating], uniform: NDArray[np.floating]) -> NDArray:
    """Return scores whose n largest are a draw without replacement, in proportion to weights.

    They are the logarithms of the weights plus Gumbel noise, made of uniform numbers in [0, 1).
    """
    with np.errstate(divide="ignore"):  # a weight of 0 comes last
        return np.log(weights) - np.log(-np.log(uniform))


def top_rows(
    scores: NDArray[np.floating], *, fraction: float | None, n_samples: int | None
) -> NDArray[np.bool_]:
    """Return the mask of the largest scores, as many as :func:`count_to_choose` says.

    Ties at the cut are broken by row order.
    """
    n = len(scores)
    count = count_to_choose(n, fraction=fraction, n_samples=n_samples)
    # The count-th largest score: all larger ones are chosen, and the first of those equal to it.
    cut = np.partition(scores, n - count)[n - count]
    chosen = scores > cut
    ties = np.flatnonzero(scores == cut)
    chosen[ties[: count - chosen.sum()]] = True
    return chosen
