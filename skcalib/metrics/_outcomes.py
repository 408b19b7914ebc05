"""From predictions to (confidence, hit): what every calibration error compares."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils._validation import Predictions, iter_proba_blocks

# Up to here, the maximum over the rows of the transposed block is faster than argmax.
_FEW_CLASSES = 64


def iter_outcomes(
    predictions: Predictions,
) -> Iterator[tuple[slice, NDArray[Any], NDArray[np.bool_]]]:
    """Yield (rows, confidence, hit) in blocks of rows whose probabilities are checked.

    Probabilities of shape (n, K) are judged on the top label: confidence is the largest
    probability and a hit is a row whose class it is, the first of equals as in `predict`.
    Probabilities of shape (n,) are judged on the positive class.
    """
    for rows, block in iter_proba_blocks(predictions.proba):
        codes = predictions.codes[rows]
        if block.ndim == 1:
            yield rows, block, codes == 1
        else:
            yield rows, *_top_label(block, codes)


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
