"""Predictions ranked by confidence, for selective prediction and error detection."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils.checking._arrays import as_floats, check_same_length, to_host
from ..utils.checking._proba import check_values
from ..utils.checking._validation import Predictions, check_predictions
from ..utils.computing._blocks import iter_blocks, row_entropy, row_margin, two_columns
from ._bins import top_label
from ._ties import TieGroups, tie_groups

CONFIDENCES = ("msp", "entropy", "margin")


class TopLabels(NamedTuple):
    """Checked predictions (n, K), their largest probability, and whether its class is correct.

    Where people differ, ``correct`` is the share of those who agree with the prediction.
    """

    given: Predictions
    top: NDArray[Any]
    correct: NDArray[Any]


def check_top_labels(y_true: ArrayLike, y_proba: ArrayLike, *given: Any) -> TopLabels:
    """Validate predictions, and compare the class of the largest probability with the true one.

    `given` are `sample_weight`, `labels` and `pos_label`.
    """
    predictions = check_predictions(y_true, y_proba, *given, defer_values=True)
    if predictions.proba.ndim == 1:
        # Checked before (1 - p, p) is built: an error should name a column that the user gave.
        check_values(predictions.proba)
        predictions = predictions._replace(proba=two_columns(predictions.proba))
    top, correct = top_label(predictions)
    return TopLabels(predictions, top, correct)


def confidence_of(confidence: str | ArrayLike, predicted: TopLabels) -> NDArray[Any]:
    """Return a confidence by its name, or the array given; larger = more confident."""
    if not isinstance(confidence, str):
        values = check_scores(confidence, name="confidence")
        check_same_length(y_true=predicted.correct, confidence=values)
        return values
    if confidence == "msp":
        return predicted.top
    if confidence not in CONFIDENCES:
        raise ValueError(
            f"confidence must be one of {', '.join(map(repr, CONFIDENCES))} or an array of shape "
            f"(n_samples,), got {confidence!r}."
        )
    # Samples whose probabilities are equal up to their order must tie, whatever the rounding.
    score = row_margin if confidence == "margin" else lambda block: -row_entropy(block)
    scores = []
    for _, block in iter_blocks(predicted.given.proba, on_device=True):
        wide = block.astype(np.float64) if isinstance(block, np.ndarray) else block.double()
        scores.append(to_host(score(wide)).round(12))
    return np.concatenate(scores)


def rank_predictions(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    confidence: str | ArrayLike,
    *given: Any,
    counted: bool = False,
) -> TieGroups:
    """Return the samples grouped by confidence, most confident first; positive means correct.

    `given` are as for :func:`check_top_labels`. Weights are proportions or, with `counted`,
    numbers of samples.
    """
    predicted = check_top_labels(y_true, y_proba, *given)
    weight = predicted.given.counts if counted else predicted.given.weight
    return tie_groups(confidence_of(confidence, predicted), predicted.correct, weight)


def check_scores(values: ArrayLike, *, name: str) -> NDArray[Any]:
    """Return real scores of shape (n,) without NaN; infinite scores have a rank like any other."""
    scores = as_floats(values, name=name)
    if scores.ndim != 1 or len(scores) == 0:
        raise ValueError(f"{name} must have shape (n,) with n >= 1, got shape {scores.shape}.")
    missing = np.isnan(scores)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"{name} must not contain NaN, got NaN in row {row}.")
    return scores
