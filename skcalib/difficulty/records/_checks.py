"""Checks that the functions of records share: labels, votes, probabilities and depths."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...utils._arrays import as_floats
from ...utils._labels import as_label_matrix, as_labels, check_labels_like, match_columns
from ...utils._proba import check_values
from ...utils._validation import check_ndim


def is_correct(predictions: ArrayLike, y: ArrayLike) -> NDArray[np.bool_]:
    """Return where the predictions (n_records, n_samples) are the labels (n_samples,)."""
    records = as_label_matrix(predictions, name="predictions")
    return records == check_labels_like(y, name="y", n_samples=records.shape[1], like=records)


def check_mask(mask: ArrayLike | None, votes: NDArray) -> NDArray[np.bool_]:
    """Return the mask as booleans of the shape of the votes; None lets every model vote."""
    if mask is None:
        return np.ones(votes.shape, dtype=bool)
    array = np.asarray(mask)
    if array.dtype != bool or array.shape != votes.shape:
        raise ValueError(
            f"mask must be boolean and of the shape of predictions, {votes.shape}, got dtype "
            f"{array.dtype} and shape {array.shape}."
        )
    return array


def as_scores(values: ArrayLike, name: str, *, ndim: tuple[int, ...]) -> NDArray[np.floating]:
    """Return floats with one of the allowed numbers of dimensions, two classes or more in 3-D."""
    scores = as_floats(values, name=name)
    check_ndim(scores, name, ndim)
    if scores.ndim == 3 and scores.shape[-1] < 2:
        raise ValueError(f"{name} must have at least 2 columns, got shape {scores.shape}.")
    return scores


def check_proba(proba: NDArray[np.floating]) -> None:
    """Raise unless (n_records, n_samples) lie in [0, 1], and (..., n_classes) sum to 1 too."""
    for i, record in enumerate(proba):
        check_values(record, name=f"y_proba[{i}]")


def check_label_given(
    scores: NDArray, y: ArrayLike | None, labels: ArrayLike | None, *, name: str
) -> None:
    """Raise unless `y` is given for 3-D scores, whose columns it picks, and only for these."""
    if (scores.ndim == 3) != (y is not None):
        raise ValueError(
            f"y must be given if, and only if, {name} has 3 dimensions, got {name} of shape "
            f"{scores.shape} {'without' if y is None else 'with'} y."
        )
    if y is None and labels is not None:
        raise ValueError(f"labels must be None where {name} has no classes, got {labels!r}.")


def label_columns(
    y: ArrayLike, scores: NDArray, labels: ArrayLike | None, *, name: str
) -> NDArray[np.intp]:
    """Return for every sample the column of `scores` (..., n, K) that belongs to its label."""
    array = as_labels(y, name="y")
    n_samples, n_classes = scores.shape[-2:]
    if len(array) != n_samples:
        raise ValueError(f"y must have shape ({n_samples},), got length {len(array)}.")
    known = None if labels is None else as_labels(labels, name="labels")
    columns, _ = match_columns(
        array, labels=known, n_columns=n_classes, y_name="y", columns_name=name
    )
    return columns


def check_depth(depth: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return depths (n,): not negative, finite, or NaN where a sample has none."""
    array = as_floats(depth, name=name).astype(np.float64)
    check_ndim(array, name, (1,))
    fault = np.isinf(array) | (array < 0)
    if fault.any():
        row = int(np.argmax(fault))
        raise ValueError(
            f"{name} must be non-negative and finite, or NaN, got {array[row]} in row {row}."
        )
    return array
