"""The temperature of least calibration error on a grid: all of it searched, little of it tried."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..metrics import expected_calibration_error
from ..utils._blocks import iter_blocks, row_max, row_sum

# Rounding of confidences in single precision: what differs by less is not told apart.
_ROUNDING = 1e-6


def least_calibration_error(
    logits: NDArray, y: NDArray, sample_weight: NDArray | None, grid: NDArray, n_bins: int
) -> float:
    """Return the T in `grid` of least ECE of softmax(logits / T); of equals, the nearest to 1.

    The ECE is at least the absolute difference of mean confidence and accuracy, whatever the bins.
    That difference, signed, falls as T rises: it changes its sign once, and once it is beyond the
    least ECE so far, no temperature farther on that side can be better. So bisection finds the
    change of sign, and from there the grid is tried in both directions until the bound rules out
    the rest.
    """
    correct = logits.argmax(axis=1) == y
    temperatures = np.unique(grid)
    tried: dict[int, tuple[float, float]] = {}

    def difference_and_error(index: int) -> tuple[float, float]:
        if index not in tried:
            confidence = top_confidence(logits, temperatures[index])
            gap = np.average(confidence - correct, weights=sample_weight)
            error = expected_calibration_error(
                correct, confidence, n_bins=n_bins, sample_weight=sample_weight
            )
            tried[index] = float(gap), error
        return tried[index]

    low, high = 0, len(temperatures) - 1
    while low < high:
        middle = (low + high) // 2
        if difference_and_error(middle)[0] > 0:
            low = middle + 1
        else:
            high = middle
    for direction, start in ((1, low), (-1, low - 1)):
        index = start
        while 0 <= index < len(temperatures):
            gap, _ = difference_and_error(index)
            if direction * -gap > min(error for _, error in tried.values()) + _ROUNDING:
                break
            index += direction
    # Nearest to 1 first: a later one is taken only if it is better.
    order = sorted(tried, key=lambda i: abs(np.log(temperatures[i])))
    return float(temperatures[min(order, key=lambda i: tried[i][1])])


def top_confidence(logits: NDArray, temperature: float) -> NDArray:
    """Return the largest probability of every row of softmax(logits / T)."""
    confidence = np.empty(len(logits), dtype=np.result_type(logits.dtype, np.float32))
    for rows, block in iter_blocks(logits):
        # exp(0) / sum_k exp((z_k - z_top) / T).
        below_top = block - row_max(block)[:, None]
        below_top /= below_top.dtype.type(temperature)
        confidence[rows] = 1 / row_sum(np.exp(below_top, out=below_top))
    return confidence
