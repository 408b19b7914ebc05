"""Checks shared by the functions of predictions: labels, votes and histories."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._labels import as_labels, class_positions


def check_predictions(values: ArrayLike, name: str) -> NDArray:
    """Return labels (n_rows, n_columns) as integers or strings."""
    array = np.asarray(values)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} must have 2 dimensions, none of them empty, got {array.shape}.")
    return np.stack([as_labels(row, name=f"{name}[{i}]") for i, row in enumerate(array)])


def check_row_labels(values: ArrayLike, name: str, n_rows: int, like: NDArray) -> NDArray:
    """Return labels (n_rows,) that can be compared with those of `like`."""
    array = as_labels(values, name=name)
    if len(array) != n_rows:
        raise ValueError(f"{name} must have one label a row, {n_rows} in all, got {len(array)}.")
    if (array.dtype.kind == "U") != (like.dtype.kind == "U"):
        raise ValueError(
            f"{name} must hold labels of the type of the predicted ones, {like.dtype}, "
            f"got {array.dtype}."
        )
    return array


def check_numbers(values: ArrayLike, name: str, *, ndim: tuple[int, ...]) -> NDArray:
    """Return finite floats with one of the allowed numbers of dimensions."""
    array = np.asarray(values)
    if array.ndim not in ndim or array.size == 0:
        dims = " or ".join(map(str, ndim))
        raise ValueError(
            f"{name} must have {dims} dimensions, none of them empty, got shape {array.shape}."
        )
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}.")
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
    return array


def check_probabilities(values: ArrayLike, name: str, *, ndim: tuple[int, ...]) -> NDArray:
    """Return floats that lie in [0, 1], up to rounding."""
    array = check_numbers(values, name, ndim=ndim)
    if array.min() < -1e-5 or array.max() > 1 + 1e-5:
        raise ValueError(
            f"{name} must lie in [0, 1], got values from {array.min():.6g} to {array.max():.6g}."
        )
    return array


def label_columns(y: ArrayLike, scores: NDArray, name: str, labels: ArrayLike | None) -> NDArray:
    """Return for every row the column of `scores` (..., n, K) that belongs to its label."""
    array = as_labels(y, name="y")
    n_rows, n_classes = scores.shape[-2:]
    if len(array) != n_rows:
        raise ValueError(f"y must have one label a row, {n_rows} in all, got {len(array)}.")
    if labels is not None:
        known = as_labels(labels, name="labels")
    elif array.dtype.kind != "U" and array.min() >= 0 and array.max() < n_classes:
        return array
    else:
        known = np.unique(array)
    if len(np.unique(known)) != n_classes or len(known) != n_classes:
        raise ValueError(
            f"labels must name each of the {n_classes} columns of {name} once"
            f"{', where y does not tell them' if labels is None else ''}, got {known.tolist()}."
        )
    columns = class_positions(array, known)
    if columns.min() < 0:
        unknown = array[columns < 0][0].item()
        raise ValueError(f"y must hold labels named in labels, got {unknown!r}.")
    return columns
