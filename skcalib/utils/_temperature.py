"""The temperature of least log-loss: a safeguarded Newton search in one dimension."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._blocks import iter_blocks, row_max, row_sum
from ._warnings import warn

DEFAULT_BOUNDS = (1e-3, 1e3)
_SAMPLE_ROWS = 2048
_MAX_ITERATIONS = 200
# Newton's error after a step is of the order of the square of that step.
_RELATIVE_STEP = 1e-6
_RELATIVE_STEP_OF_SAMPLE = 1e-3


def fit_temperature(
    logits: NDArray, y: NDArray, sample_weight: NDArray | None, bounds: tuple[float, float]
) -> float:
    """Return the temperature of least log-loss, with a warning if it is a bound."""
    temperature = minimize_log_loss(logits, y, sample_weight, bounds)
    if bounds[0] < bounds[1] and temperature in bounds:
        which, why = (
            ("lower", "the samples are too few or too well separated to tell a temperature")
            if temperature == bounds[0]
            else ("upper", "the logits say little about the labels, or the opposite")
        )
        warn(f"The temperature is at its {which} bound, {temperature:g}: {why}.")
    return temperature


def minimize_log_loss(
    logits: NDArray, y: NDArray, sample_weight: NDArray | None, bounds: tuple[float, float]
) -> float:
    """Return the T in `bounds` that minimizes the mean log-loss of softmax(logits / T).

    The log-loss is convex in 1 / T, where Newton's steps are taken; a strided subset of the
    samples finds their start, so that the full data are passed over two or three times.
    """
    if _every_label_on_top(logits, y):
        return bounds[0]
    # beta = 1 / T falls as T rises: the bounds change places.
    beta_bounds = (1 / bounds[1], 1 / bounds[0])
    start = float(np.clip(1.0, *beta_bounds))
    stride = len(logits) // _SAMPLE_ROWS
    # A subset pays only where there are several times as many samples.
    if stride >= 3:
        weight = None if sample_weight is None else sample_weight[::stride]
        start = _best_beta(
            logits[::stride], y[::stride], weight, beta_bounds, start, _RELATIVE_STEP_OF_SAMPLE
        )
    beta = _best_beta(logits, y, sample_weight, beta_bounds, start, _RELATIVE_STEP)
    # Rounding in 1 / (1 / bound) may leave the bounds.
    return float(np.clip(1 / beta, *bounds))


def slope_and_curvature(
    logits: NDArray, y: NDArray, sample_weight: NDArray | None, beta: float
) -> tuple[float, float]:
    """Return the first two derivatives in `beta` of the total log-loss of softmax(beta z).

    With p = softmax(beta z) they are E_p[z] - z_y and Var_p[z]. The logits are worked on in
    their own precision and summed in float64.
    """
    slope = curvature = 0.0
    for rows, block in iter_blocks(logits):
        z, label = _below_top(block, y[rows])
        # z <= 0, and 0 at the top: no term overflows, and their sum is at least 1.
        term = np.exp(z * z.dtype.type(beta))
        term_z = term * z
        total = row_sum(term).astype(np.float64)
        mean = row_sum(term_z) / total
        variance = row_sum(term_z * z) / total - mean * mean
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

    It does where no label is below the top of its row and not all rows are constant. The
    slope itself does not tell: it underflows to 0 long before.
    """
    varied = False
    for rows, block in iter_blocks(logits):
        z, label = _below_top(block, y[rows])
        if np.any(label < 0):
            return False
        varied = varied or bool(np.any(z < 0))
    return varied


def _best_beta(
    logits: NDArray,
    y: NDArray,
    sample_weight: NDArray | None,
    bounds: tuple[float, float],
    beta: float,
    tolerance: float,
) -> float:
    """Return the beta in `bounds` of least log-loss, where its slope changes sign.

    The slope rises with beta, for the log-loss is convex. The bracket low < high keeps a negative
    slope (or the lower bound) on its left and a positive one (or the upper bound) on its right::

        slope      - - - - - - - - - 0 + + + + + + + +
                |         |          |        |      |
               low       beta --> Newton     high   bound

    From beta, Newton's step leads to one of four places:

    1. inside of the bracket: there the search goes on, and it ends if the step is short;
    2. out of the bracket, where the slope bends: the same step is taken in log(beta), which
       cannot leave (0, inf), at most by a factor of e; the search goes on there if it is inside;
    3. both outside: to the end of the bracket on that side, once, for the optimum may be the
       bound, or beyond;
    4. that end has been seen: to the middle of the bracket on a log scale.
    """
    low, high = bounds
    seen = set()
    for _ in range(_MAX_ITERATIONS):
        seen.add(beta)
        slope, curvature = slope_and_curvature(logits, y, sample_weight, beta)
        low, high = (beta, high) if slope < 0 else (low, beta)
        if slope == 0 or low == high:
            break
        # A curvature of 0, or below it by rounding, means a step beyond either end.
        step = -slope / curvature if curvature > 0 else np.copysign(np.inf, -slope)
        if abs(step) <= tolerance * beta:
            return float(np.clip(beta + step, low, high))
        end = high if step > 0 else low
        candidates = (beta + step, beta * np.exp(min(step / beta, 1.0)))
        inside = [candidate for candidate in candidates if low < candidate < high]
        if inside:
            beta = float(inside[0])
        elif end not in seen:
            beta = end
        else:
            beta = float(np.sqrt(low * high))
    return beta
