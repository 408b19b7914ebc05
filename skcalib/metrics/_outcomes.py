"""From predictions to (confidence, hit): what every calibration error compares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils._proba import iter_proba_blocks
from ..utils._validation import Predictions

# Up to here, the maximum over the rows of the transposed block is faster than argmax.
_FEW_CLASSES = 64
# Wide blocks have few rows: they are gathered, so that what follows is not called too often.
_ENOUGH_ROWS = 2**14


def iter_outcomes(
    predictions: Predictions,
) -> Iterator[tuple[slice, NDArray[Any], NDArray[np.bool_]]]:
    """Yield (rows, confidence, hit) in blocks of rows whose probabilities are checked.

    Probabilities of shape (n, K) are judged on the top label: confidence is the largest
    probability and a hit is a row whose class it is, the first of equals as in `predict`.
    Probabilities of shape (n,) are judged on the positive class.
    """
    pending, start = [], 0
    for rows, block in iter_proba_blocks(predictions.proba):
        codes = predictions.codes[rows]
        pending.append((block, codes == 1) if block.ndim == 1 else _top_label(block, codes))
        if rows.stop - start >= _ENOUGH_ROWS or rows.stop == len(predictions.proba):
            confidence, hit = zip(*pending)
            yield slice(start, rows.stop), np.concatenate(confidence), np.concatenate(hit)
            pending, start = [], rows.stop


def _top_label(
    block: NDArray[Any], codes: NDArray[np.intp]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    index = np.arange(len(block))
    if block.shape[1] <= _FEW_CLASSES:
        columns = np.ascontiguousarray(block.T)
        confidence = columns.max(axis=0)
        if np.count_nonzero(columns == confidence) == len(block):
            return confidence, columns[codes, index] == confidence
    top = block.argmax(axis=1)
    return block[index, top], top == codes


def outcomes(predictions: Predictions) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return confidence and hit of all rows, each (n,)."""
    blocks = [(confidence, hit) for _, confidence, hit in iter_outcomes(predictions)]
    confidence, hit = zip(*blocks)
    return np.concatenate(confidence), np.concatenate(hit)
