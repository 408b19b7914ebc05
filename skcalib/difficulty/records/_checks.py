"""Checks shared by the functions of predictions: labels, votes and histories."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...utils._labels import as_labels, match_columns
from ...utils._validation import check_numbers


def check_predictions(values: ArrayLike, name: str) -> NDArray:
    """Return labels (n_rows, n_columns) as integers or strings."""
    array = np.asarray(values)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} must have 2 dimensions, none of them empty, got {array.shape}.")
    return np.stack([as_labels(row, name=f"{name}[{i}]") for i, row in enumerate(array)])


def check_probabilities(values: ArrayLike, name: str, *, ndim: tuple[int, ...]) -> NDArray:
    """Return floats that lie in [0, 1], up to rounding."""
    array = check_numbers(values, name, ndim=ndim)
    if array.min() < -1e-5 or array.max() > 1 + 1e-5:
        raise ValueError(
            f"{name} must lie in [0, 1], got values from {array.min():.6g} to {array.max():.6g}."
        )
    return array


def label_columns(
    y: ArrayLike, scores: NDArray, name: str, labels: ArrayLike | None
) -> NDArray[np.intp]:
    """Return for every row the column of `scores` (..., n, K) that belongs to its label."""
    array = as_labels(y, name="y")
    n_rows, n_columns = scores.shape[-2:]
    if len(array) != n_rows:
        raise ValueError(f"y must have shape ({n_rows},), got length {len(array)}.")
    known = None if labels is None else as_labels(labels, name="labels")
    codes, _ = match_columns(
        array, labels=known, n_columns=n_columns, y_name="y", columns_name=name
    )
    return codes
