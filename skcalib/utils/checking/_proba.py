"""Probabilities and logits: type, shape and values.

Probabilities are read in blocks of rows that stay in cache: each block is checked, and the caller
of :func:`iter_proba_blocks` works on it while it is still there. Nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from ..computing._blocks import iter_blocks
from ..computing._tensors import TensorRows, back_end, matrix_on_accelerator
from ._arrays import as_floats, to_host

# Tolerances for the rounding of a value, and of a row sum in low precision.
RANGE_TOLERANCE = 1e-5
ROW_SUM_TOLERANCE = 1e-3
# Least probability that a logarithm or a ratio is taken of. A 0 from counted votes or rounding has
# an unknown logit; an infinite one would let a single sample decide the whole fit.
SMALLEST_PROBABILITY = 1e-12
# Probabilities that differ by less may differ only by the rounding of float32.
FLOAT32_ROUNDING = 1e-6
# Least probability that a log-loss is taken of, as in `sklearn.metrics.log_loss`.
LOSS_FLOOR = float(np.finfo(np.float64).eps)


def as_proba(y_proba: Any, *, name: str = "y_proba", in_blocks: bool = False) -> Any:
    """Return floats (n, K) or (n,), with only type and shape checked.

    :func:`iter_proba_blocks` checks the values. With `in_blocks` the caller reads them through
    that function alone: a matrix on an accelerator stays there and comes as `TensorRows`.
    """
    may_be_there = in_blocks and not isinstance(y_proba, np.ndarray)
    there = matrix_on_accelerator(y_proba) if may_be_there else None
    proba: Any = as_floats(y_proba, name=name) if there is None else there
    if proba.ndim not in (1, 2):
        raise ValueError(
            f"{name} must have shape (n_samples, n_classes) or (n_samples,), "
            f"got shape {proba.shape}."
        )
    if len(proba) == 0:
        raise ValueError(f"{name} must have at least one row, got shape {proba.shape}.")
    if proba.ndim == 2 and proba.shape[1] < 2:
        raise ValueError(
            f"{name} must have a column for every class, at least two, got shape {proba.shape}; "
            "pass the probability of the positive class alone with shape (n_samples,)."
        )
    return proba


def iter_proba_blocks(
    proba: NDArray[Any] | TensorRows, *, name: str = "y_proba", on_device: bool = False
) -> Iterator[tuple[slice, Any]]:
    """Yield (rows, block) as :func:`iter_blocks` does, every block checked."""
    for rows, block in iter_blocks(proba, on_device=True):
        if not _block_is_valid(block):
            _explain_block(to_host(block), rows.start, name)
        yield rows, block if on_device else to_host(block)


def _block_is_valid(block: Any) -> bool:
    """Tell whether all values are in [0, 1] and all rows sum to 1, within the tolerances."""
    xp = np if isinstance(block, np.ndarray) else back_end(block)[0]
    # In the dtype of the block, so that 1.00001 rounded to float32 is within the tolerance.
    kind = np.float64 if block.dtype == xp.float64 else np.float32
    lowest, highest = kind(-RANGE_TOLERANCE), kind(1 + RANGE_TOLERANCE)
    minimum = block.min()
    # Not `minimum < lowest`, which would let NaN pass.
    if not minimum >= lowest:
        return False
    if block.ndim == 1:
        return bool(block.max() <= highest)
    with np.errstate(over="ignore", invalid="ignore"):
        # No product on an accelerator, where a caller's autocast would round it.
        sums = block @ np.ones(block.shape[1], dtype=kind) if xp is np else block.sum(1)
    largest = sums.max()
    off = max(float(largest) - 1, 1 - float(sums.min()))
    # Not `off > ...`, which would let NaN pass.
    if not (off <= ROW_SUM_TOLERANCE or off <= _rounding_of_half(block)):
        return False
    # Non-negative rows that sum to at most 1 hold nothing above 1: no pass for the maximum.
    return bool((minimum >= 0 and largest <= highest) or block.max() <= highest)


def _rounding_of_half(block: Any) -> float:
    """Return the rounding error of a row sum if all values fit into 16 bits, else 0.

    As float32, a bfloat16 has 16 trailing zero bits and a float16 has 13.
    """
    block = to_host(block)
    if block.dtype != np.float32:
        return 0.0
    bits = int(np.bitwise_or.reduce(block.view(np.uint32), axis=None))
    # Twice the spacing above 1.
    return 2.0**-6 if bits % 2**16 == 0 else 2.0**-9 if bits % 2**13 == 0 else 0.0


def _explain_block(block: NDArray[Any], start: int, name: str) -> None:
    """Raise for the first fault of an invalid block."""
    matrix = block if block.ndim == 2 else block[:, np.newaxis]
    lowest, highest = block.dtype.type(-RANGE_TOLERANCE), block.dtype.type(1 + RANGE_TOLERANCE)
    for fault, rule in (
        (np.isnan(matrix), "must not contain NaN"),
        (matrix < lowest, "must hold probabilities in [0, 1]"),
        (matrix > highest, "must hold probabilities in [0, 1]"),
    ):
        if fault.any():
            row, column = np.argwhere(fault)[0]
            value = "NaN" if np.isnan(matrix[row, column]) else float(matrix[row, column])
            place = f"row {start + row}" + (f", column {column}" if block.ndim == 2 else "")
            raise ValueError(f"{name} {rule}, got {value} in {place}.")
    sums = matrix.sum(axis=1, dtype=np.float64)
    row = int(np.argmax(np.abs(sums - 1)))
    raise ValueError(
        f"The rows of {name} must sum to 1, got a sum of {sums[row]:.6g} in row {start + row}."
    )


def check_values(proba: NDArray[Any], *, name: str = "y_proba") -> None:
    """Raise unless every probability and every row is valid."""
    for _ in iter_proba_blocks(proba, name=name):
        pass


def holds_proba(scores: NDArray[Any]) -> bool:
    """Tell whether every row of (n, K) could be class probabilities."""
    return all(_block_is_valid(block) for _, block in iter_blocks(scores))


def check_proba_matrix(y_proba: ArrayLike, *, name: str = "y_proba") -> NDArray[Any]:
    """Return class probabilities as an (n, K) array, dtype kept (float16, 32 or 64), no copy."""
    proba: NDArray[Any] = as_floats(y_proba, name=name)
    if proba.ndim == 1 or proba.shape[1:] == (1,):
        raise ValueError(
            f"{name} must have a column for every class, at least two, got shape {proba.shape}; "
            "np.column_stack([1 - p, p]) makes two of the probability p of the positive class."
        )
    proba = as_proba(proba, name=name)
    check_values(proba, name=name)
    return proba


def check_logits(logits: ArrayLike, *, name: str = "logits") -> NDArray[Any]:
    """Return finite scores of shape (n, K) or (n,), dtype kept, no copy."""
    array = as_floats(logits, name=name)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] < 2):
        raise ValueError(
            f"{name} must have shape (n_samples, n_classes) with at least two classes, "
            f"or (n_samples,), got shape {array.shape}."
        )
    if len(array) == 0:
        raise ValueError(f"{name} must have at least one row, got shape {array.shape}.")
    for rows, block in iter_blocks(array):
        finite = np.isfinite(block)
        if not finite.all():
            place = np.argwhere(~finite)[0]
            raise ValueError(
                f"{name} must be finite, got {block[tuple(place)]} in row {rows.start + place[0]}."
            )
    return array


def label_log_loss(proba: NDArray[Any], codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return -log of the probability of every label, (n,): at most 36.04, at `LOSS_FLOOR`."""
    of_label = np.take_along_axis(proba, codes[:, np.newaxis], axis=1)[:, 0]
    # From 0, so that a probability of 1 has the loss 0.0 and not -0.0.
    return 0.0 - np.log(np.maximum(of_label.astype(np.float64), LOSS_FLOOR))


def with_unseen(proba: NDArray[Any], count: float) -> NDArray[np.float64]:
    """Return (count p + 4 / K) / (count + 4): with four samples spread evenly over K classes."""
    n_classes = 2 if proba.ndim == 1 else proba.shape[1]
    return (count * proba + 4 / n_classes) / (count + 4)


def binomial_interval(
    fraction: NDArray[np.float64], count: NDArray[np.float64], confidence_level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of Clopper and Pearson's interval of a fraction; NaN where `count` is 0.

    It covers the true fraction with a probability of at least `confidence_level`, also of rare
    events.
    """
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1), got {confidence_level!r}.")
    tail = (1 - confidence_level) / 2
    many, others = fraction * count, (1 - fraction) * count
    # A fraction of 0 has the lower end 0, a fraction of 1 the upper end 1; NaN stays NaN.
    low = np.where(many > 0, betaincinv(many, others + 1, tail), 0 * many)
    high = np.where(others > 0, betaincinv(many + 1, others, 1 - tail), 1 + 0 * others)
    return low, high
