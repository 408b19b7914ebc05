"""Class labels: integers or strings in, codes of columns out."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._proba import as_array


def as_labels(values: ArrayLike, *, name: str) -> NDArray[Any]:
    """Return labels as a non-empty 1-D array of integers or of strings.

    Booleans and whole floats become integers. NaN, fractions and mixed types are errors.
    """
    array = as_array(values, name=name)
    if array.ndim != 1 or array.shape[0] == 0:
        raise ValueError(f"{name} must have shape (n,) with n >= 1, got shape {array.shape}.")
    if array.dtype.kind == "U" and isinstance(values, list | tuple):
        # numpy has made text of whatever stood beside a string.
        array = np.array(values, dtype=object)
    if array.dtype.kind in "OT":
        array = _from_objects(array, name)
    if array.dtype.kind == "f":
        fault = ~(np.isfinite(array) & (array == np.floor(array)))
        if fault.any():
            row = int(np.argmax(fault))
            raise ValueError(
                f"{name} must hold class labels, integers or strings, got {float(array[row])} "
                f"in row {row}."
            )
        return array.astype(np.int64)
    if array.dtype.kind not in "biuU":
        raise TypeError(
            f"{name} must hold class labels, integers or strings, got dtype {array.dtype}."
        )
    return array.astype(np.int64) if array.dtype.kind == "b" else array


def _from_objects(array: NDArray[Any], name: str) -> NDArray[Any]:
    kinds = {str if issubclass(kind, str) else kind for kind in set(map(type, array.tolist()))}
    if kinds == {str} or kinds <= {bool, int, float}:
        return np.array(array.tolist())
    raise TypeError(
        f"{name} must hold class labels of one type, integers or strings, "
        f"got {', '.join(sorted(kind.__name__ for kind in kinds))}."
    )


def class_positions(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the position of every label in `classes`, in any order; -1 where it is not there."""
    nowhere = np.full(labels.shape, -1, dtype=np.intp)
    numeric = {a.dtype.kind in "biuf" for a in (labels, classes) if a.dtype.kind != "O"}
    if len(numeric) == 2:
        return nowhere
    try:
        order = np.argsort(classes, kind="stable")
        place = np.searchsorted(classes, labels, sorter=order)
    except TypeError:  # objects that do not compare
        return nowhere
    positions = order[np.minimum(place, len(classes) - 1)]
    return np.where(classes[positions] == labels, positions, -1)


def _is_text(array: NDArray[Any]) -> bool:
    return array.dtype.kind == "U"


def _lookup(y: NDArray[Any], classes: NDArray[Any], *, known: str) -> NDArray[np.intp]:
    """Return the position of every label among the classes."""
    codes = class_positions(y, classes)
    if codes.min() < 0:
        row = int(np.argmin(codes))
        raise ValueError(
            f"y_true holds {y[row].item()!r} in row {row}, "
            f"which is not among {known} {_shown(classes)}."
        )
    return codes


def _shown(classes: NDArray[Any]) -> str:
    items = classes.tolist()
    return str(items) if len(items) <= 10 else f"{str(items[:10])[:-1]}, ...]"


def _check_distinct(labels: NDArray[Any], n_classes: int, what: str) -> None:
    if len(labels) != n_classes or len(np.unique(labels)) != n_classes:
        raise ValueError(
            f"labels must hold {n_classes} distinct classes, {what}, got {_shown(labels)}."
        )


def encode_labels(
    y: NDArray[Any], *, labels: NDArray[Any] | None, n_classes: int
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return (codes, classes): the column of every label, and the label of every column."""
    if labels is not None:
        _check_distinct(labels, n_classes, "one for every column of y_proba")
        return _lookup(y, labels, known="labels"), labels
    if not _is_text(y) and y.min() >= 0 and y.max() < n_classes:
        return y.astype(np.intp, copy=False), np.arange(n_classes)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) != n_classes:
        raise ValueError(
            "labels must name the columns of y_proba where y_true does not tell them: y_true "
            f"holds {len(classes)} classes, {_shown(classes)}, y_proba has {n_classes} columns."
        )
    return codes.astype(np.intp, copy=False), classes


def encode_binary(
    y: NDArray[Any], *, labels: NDArray[Any] | None, pos_label: Any
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return (codes, classes): 1 where the label is positive, and (negative, positive)."""
    if labels is not None:
        _check_distinct(labels, 2, "for y_proba of shape (n_samples,)")
        codes = _lookup(y, labels, known="labels")
        if pos_label is None:
            return codes, labels
        positive = _lookup_positive(pos_label, labels)
        return (codes, labels) if positive else (1 - codes, labels[::-1])
    classes = _distinct_binary(y)
    if pos_label is None:
        return _encode_signs(y, classes)
    if len(classes) == 2:
        positive = _lookup_positive(pos_label, classes)
    else:
        # The other class is nowhere in sight; the one label is positive or it is not.
        value = as_labels([pos_label], name="pos_label")
        positive = int(_is_text(value) == _is_text(y) and value[0] == classes[0])
        return np.full(len(y), positive, dtype=np.intp), np.append(classes, value)
    hits = (y == classes[positive]).astype(np.intp)
    return hits, classes if positive else classes[::-1]


def _distinct_binary(y: NDArray[Any]) -> NDArray[Any]:
    if not _is_text(y) and y.min() >= 0 and y.max() <= 1:
        return np.arange(2)
    classes = np.unique(y)
    if len(classes) > 2:
        raise ValueError(
            f"y_true must hold two classes where y_proba has shape (n_samples,), "
            f"got {len(classes)}: {_shown(classes)}."
        )
    return classes


def _encode_signs(y: NDArray[Any], classes: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    if not _is_text(classes):
        for pair in ([0, 1], [-1, 1]):
            if np.isin(classes, pair).all():
                return (y == 1).astype(np.intp), np.array(pair)
    raise ValueError(
        "pos_label must be given where y_proba has shape (n_samples,) and y_true is neither in "
        f"{{0, 1}} nor in {{-1, 1}}, got the classes {_shown(classes)}."
    )


def _lookup_positive(pos_label: Any, classes: NDArray[Any]) -> int:
    value = as_labels([pos_label], name="pos_label")
    if _is_text(value) == _is_text(classes):
        found = np.flatnonzero(classes == value[0])
        if len(found):
            return int(found[0])
    raise ValueError(f"pos_label must be one of {_shown(classes)}, got {pos_label!r}.")
