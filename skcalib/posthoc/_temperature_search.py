"""The temperature of least log-loss: a safeguarded Newton search in one dimension."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..utils._blocks import iter_blocks, row_max, row_sum

_SAMPLE_ROWS = 2048
_MAX_ITERATIONS = 200
# Newton's error after a step is of the order of the square of that step.
_RELATIVE_STEP = 1e-6
_RELATIVE_STEP_OF_SAMPLE = 1e-3


def minimize_log_loss(
    logits: NDArray, y: NDArray, sample_weight: NDArray | None, bounds: tuple[float, float]
) -> float:
    """Return the T in `bounds` that minimizes the mean log-loss of softmax(logits / T).

    The log-loss is convex in 1 / T, where Newton's steps are taken; a strided sample of the rows
    finds their start, so that the full data are passed over two or three times.
    """
    if _every_label_on_top(logits, y):
        return bounds[0]
    beta_bounds = (1 / bounds[1], 1 / bounds[0])
    start = float(np.clip(1.0, *beta_bounds))
    stride = len(logits) // _SAMPLE_ROWS
    if stride >= 3:
        weight = None if sample_weight is None else sample_weight[::stride]
        start = _root(
            logits[::stride], y[::stride], weight, beta_bounds, start, _RELATIVE_STEP_OF_SAMPLE
        )
    beta = _root(logits, y, sample_weight, beta_bounds, start, _RELATIVE_STEP)
    return float(np.clip(1 / beta, *bounds))


def slope_and_curvature(
    logits: NDArray, y: NDArray, sample_weight: NDArray | None, beta: float
) -> tuple[float, float]:
    """Return the first two derivatives in `beta` of the total log-loss of softmax(beta z).

    With p = softmax(beta z) they are E_p[z] - z_y and Var_p[z]. The rows are worked on in their
    own precision and summed in float64.
    """
    slope = curvature = 0.0
    for rows, block in iter_blocks(logits):
        z, label = _below_top(block, y[rows])
        terms = np.exp(z * z.dtype.type(beta))
        total = row_sum(terms).astype(np.float64)
        terms *= z
        mean = row_sum(terms) / total
        terms *= z
        variance = row_sum(terms) / total - mean * mean
        weight = np.ones(len(z)) if sample_weight is None else sample_weight[rows]
        slope += float(weight @ (mean - label))
        curvature += float(weight @ variance)
    return slope, curvature


def _below_top(block: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    """Return the logits less the largest of their row, and of these the label's."""
    z = block - row_max(block)[:, None]
    return z, z[np.arange(len(z)), y].astype(np.float64)


def _every_label_on_top(logits: NDArray, y: NDArray) -> bool:
    """Return whether the log-loss falls all the way to T = 0.

    It does where no label is below the top of its row and the rows are not all constant. The
    slope itself does not tell: it underflows to 0 long before.
    """
    varied = False
    for rows, block in iter_blocks(logits):
        z, label = _below_top(block, y[rows])
        if np.any(label < 0):
            return False
        varied = varied or bool(np.any(z < 0))
    return varied


def _root(
    logits: NDArray,
    y: NDArray,
    sample_weight: NDArray | None,
    bounds: tuple[float, float],
    beta: float,
    tolerance: float,
) -> float:
    """Return where the slope changes sign, or the bound beyond which it does."""
    low, high = bounds
    seen = set()
    for _ in range(_MAX_ITERATIONS):
        seen.add(beta)
        slope, curvature = slope_and_curvature(logits, y, sample_weight, beta)
        low, high = (beta, high) if slope < 0 else (low, beta)
        if slope == 0 or low == high:
            break
        step = -slope / curvature if curvature > 0 else np.copysign(np.inf, -slope)
        if abs(step) <= tolerance * beta:
            return float(np.clip(beta + step, low, high))
        # A step out of the bracket is tried on a log scale, where it cannot leave (0, inf). Then
        # the end of the bracket is looked at, once, and else the bracket is halved.
        end = high if step > 0 else low
        middle = np.sqrt(low * high)
        inside = (
            candidate
            for candidate in (beta + step, beta * np.exp(min(step / beta, 1.0)))
            if low < candidate < high
        )
        beta = float(next(inside, end if end not in seen else middle))
    return beta
