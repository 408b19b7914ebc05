"""From predictions to (confidence, correct): what every calibration error compares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils._arrays import to_host
from ..utils._blocks import ENOUGH_ROWS, FEW_COLUMNS
from ..utils._proba import iter_proba_blocks
from ..utils._validation import Predictions


def iter_top_label(
    predictions: Predictions,
) -> Iterator[tuple[slice, NDArray[Any], NDArray[np.bool_]]]:
    """Yield (rows, confidence, correct) in blocks of rows whose probabilities are checked.

    Probabilities of shape (n, K) are judged on the top label: confidence is the largest
    probability, and a prediction is correct if it is that of the true class, the first of equals
    as in `predict`. Probabilities of shape (n,) are judged on the positive class: confidence is
    the probability, and correct means positive.
    """
    gathered: list[tuple[NDArray[Any], NDArray[np.bool_]]] = []
    start = 0
    for rows, block in iter_proba_blocks(predictions.proba, on_device=True):
        codes = predictions.codes[rows]
        gathered.append((block, codes == 1) if block.ndim == 1 else _top_label(block, codes))
        # Wide blocks have few rows: what follows should not be called for each.
        if rows.stop - start >= ENOUGH_ROWS or rows.stop == len(predictions.proba):
            confidence, correct = zip(*gathered)
            yield slice(start, rows.stop), np.concatenate(confidence), np.concatenate(correct)
            gathered, start = [], rows.stop


def _top_label(block: Any, codes: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    if not isinstance(block, np.ndarray):
        # A number a sample leaves the device. Of equals, torch takes the first, too.
        values, labels = block.max(dim=1)
        return to_host(values), to_host(labels) == codes
    index = np.arange(len(block))
    if block.shape[1] <= FEW_COLUMNS:
        # Where no row has two largest values, the maximum tells the class, without an argmax.
        columns = np.ascontiguousarray(block.T)
        confidence = columns.max(axis=0)
        if np.count_nonzero(columns == confidence) == len(block):
            return confidence, columns[codes, index] == confidence
    # With ties, only the first of equals is the prediction.
    top = block.argmax(axis=1)
    return block[index, top], top == codes


def top_label(predictions: Predictions) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return confidence and correctness of all samples, each (n,)."""
    blocks = [(confidence, correct) for _, confidence, correct in iter_top_label(predictions)]
    confidence, correct = zip(*blocks)
    return np.concatenate(confidence), np.concatenate(correct)
