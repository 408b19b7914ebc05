"""Class labels: integers or strings in, positions among the classes out.

The columns of a DataFrame of probabilities are named by labels, or they are positions. Anything
in between is an error: a guess could score one class by the probability of another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from ..computing._chunked import distinct
from ._arrays import as_array, form_of, is_missing, naming, refuse_unreadable, to_host

# Larger floats do not fit into int64.
_INT64_END = 2.0**63


def as_labels(values: ArrayLike, *, name: str) -> NDArray[Any]:
    """Return labels as a non-empty 1-D array of integers or of strings.

    Booleans and whole floats become integers. NaN, fractions and mixed types are errors.
    """
    array = as_array(values, name=name)
    if array.ndim != 1 or array.shape[0] == 0:
        got = form_of(array, values)
        raise ValueError(f"{name} must have shape (n,) with n >= 1, got {got}.")
    if array.dtype.kind == "U":
        array = _undo_text(array, values)
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
        # In float64: float16 does not reach 2**63, and int64 ends one below it.
        wide = array.astype(np.float64, copy=False)
        beyond = (wide < -_INT64_END) | (wide >= _INT64_END)
        if beyond.any():
            row = int(np.argmax(beyond))
            raise ValueError(
                f"{name} must hold class labels within the range of 64-bit integers, "
                f"got {float(array[row])} in row {row}."
            )
        return array.astype(np.int64)
    if array.dtype.kind not in "biuU":
        raise TypeError(
            f"{name} must hold class labels, integers or strings, got dtype {array.dtype}."
        )
    # numpy compares int64 with uint64 as floats, which merge labels beyond 2**53.
    fits = array.dtype == np.uint64 and int(array.max()) < _INT64_END
    return array.astype(np.int64) if fits or array.dtype.kind == "b" else array


def _undo_text(array: NDArray[Any], values: ArrayLike) -> NDArray[Any]:
    """Return a list as objects: numpy has turned numbers that stand beside text into text."""
    return np.array(values, dtype=object) if isinstance(values, list | tuple) else array


def _from_objects(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Return objects as an array of numbers or of strings; missing and mixed ones are errors."""
    # Subclasses of str, np.str_ among them, are text like any other.
    kinds = {str if issubclass(kind, str) else kind for kind in set(map(type, array.tolist()))}
    if kinds == {str} or kinds <= {bool, int, float}:
        # From a list numpy finds the dtype of the objects.
        return np.array(array.tolist())
    missing = np.flatnonzero(is_missing(array))
    if len(missing):
        raise TypeError(
            f"{name} must have a label for every sample, got none for {len(missing)} of "
            f"{array.size}, first in row {missing[0]}: drop these samples."
        )
    raise TypeError(
        f"{name} must hold class labels of one type, integers or strings, "
        f"got {', '.join(sorted(kind.__name__ for kind in kinds))}."
    )


def as_label_matrix(values: ArrayLike, *, name: str) -> NDArray[Any]:
    """Return labels (n_rows, n_columns) as integers or strings, all of one type."""
    array = as_array(values, name=name)
    if array.dtype.kind == "U":
        array = _undo_text(array, values)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            f"{name} must be 2-dimensional and not empty, got {form_of(array, values)}."
        )
    if array.dtype.kind in "iuU":
        return array
    # One row at a time, so that an error names the row.
    rows = [as_labels(row, name=f"{name}[{i}]") for i, row in enumerate(array)]
    if len({_is_text(row) for row in rows}) > 1:
        raise TypeError(
            f"{name} must hold class labels of one type, integers or strings, got both."
        )
    return np.stack(rows)


def check_labels_like(
    values: ArrayLike, *, name: str, n_samples: int, like: NDArray[Any]
) -> NDArray[Any]:
    """Return labels (n_samples,) that can be compared with those of `like`."""
    array = as_labels(values, name=name)
    if len(array) != n_samples:
        raise ValueError(f"{name} must have shape ({n_samples},), got length {len(array)}.")
    if (array.dtype.kind == "U") != (like.dtype.kind == "U"):
        raise ValueError(
            f"{name} must hold labels of the same type as the others, {like.dtype}, "
            f"got {array.dtype}."
        )
    return array


def check_class_labels(y: ArrayLike, *, name: str = "y") -> NDArray[Any]:
    """Return the labels given to `fit` of an estimator, 1-D, in their own dtype.

    scikit-learn warns of a column vector; NaN and continuous values are errors.
    """
    if y is None:
        raise ValueError("The fit requires y to be passed, but the target y is None.")
    refuse_unreadable(y, name=name)
    with naming(name):
        labels = column_or_1d(to_host(y), warn=True)
        if labels.dtype.kind in "mMV":
            raise TypeError(f"{name} must hold class labels, got dtype {labels.dtype}.")
        assert_all_finite(labels, input_name=name)
    if labels.dtype.kind == "U":
        _check_one_type(_undo_text(labels, y).ravel(), name)
    try:
        with naming(name):
            check_classification_targets(labels)
    except (TypeError, ValueError):  # objects that do not compare, or that begin with a number
        _check_one_type(labels, name)
        raise
    return labels


def _check_one_type(labels: NDArray[Any], name: str) -> None:
    """Raise if labels have several types."""
    kinds = {str if issubclass(kind, str) else kind for kind in map(type, labels.tolist())}
    if len(kinds) > 1:
        names = sorted(kind.__name__ for kind in kinds)
        raise ValueError(f"{name} must hold labels of one type, got {', '.join(names)}.")


def check_several_classes(classes: NDArray[Any], *, name: str = "y") -> None:
    """Raise unless there are at least two classes."""
    if len(classes) < 2:
        got = f"one class: {classes.tolist()[0]!r}" if len(classes) else "no samples"
        raise ValueError(f"{name} must hold at least two classes, got {got}.")


def class_positions(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the position of every label in `classes`, which may have any order; -1 if absent."""
    if labels.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes))):
        # Integers are their own positions: ten times as fast as the search below.
        inside = (labels >= 0) & (labels < len(classes))
        # As intp first: a dtype such as uint8 has no -1.
        return np.where(inside, labels.astype(np.intp, copy=False), -1)
    nowhere = np.full(labels.shape, -1, dtype=np.intp)
    # Numbers and text never match; searchsorted would compare them as text.
    numeric = {a.dtype.kind in "biuf" for a in (labels, classes) if a.dtype.kind != "O"}
    if len(numeric) == 2:
        return nowhere
    try:
        order = np.argsort(classes, kind="stable")
        place = np.searchsorted(classes, labels, sorter=order)
    except TypeError:  # objects that do not compare
        return nowhere
    positions = order[np.minimum(place, len(classes) - 1)]
    # For an unknown label searchsorted returns the place of another class.
    return np.where(classes[positions] == labels, positions, -1)


def encode(y: NDArray[Any], classes: NDArray[Any], *, name: str = "y") -> NDArray[np.intp]:
    """Return the position of every label among distinct `classes`, which need not be sorted.

    Unknown labels are an error; :func:`class_positions` marks them with -1 instead.
    """
    positions = class_positions(y, classes)
    if len(positions) and positions.min() < 0:
        row = int(np.argmin(positions))
        unknown = y[row : row + 1].tolist()[0]
        raise ValueError(
            f"{name} must hold labels among {shown(classes)}, got {cut(unknown)} in row {row}."
        )
    return positions


def joined_classes(
    classes: NDArray[Any], others: NDArray[Any], *, name: str, before: str = "those before"
) -> NDArray[Any]:
    """Return the sorted classes of both; numbers and text do not mix."""
    text = {isinstance(label, str) for label in [*classes.tolist()[:1], *others.tolist()[:1]]}
    if len(text) > 1:
        raise ValueError(
            f"{name} must hold labels of the type of {before}, {shown(classes)}, "
            f"got {shown(others)}."
        )
    return np.union1d(classes, others)


# A message holds two lists at most, and stays below 500 characters.
_MOST_LETTERS, _MOST_OF_A_NAME, _MOST_NAMES = 150, 50, 10


def shown(classes: Iterable[Any]) -> str:
    """Return classes or names as text for messages: ten or as many as fit, and how many more."""
    items = [
        cut(item) for item in (classes.tolist() if isinstance(classes, np.ndarray) else classes)
    ]
    n_shown = 0
    most = min(len(items), _MOST_NAMES)
    while n_shown < most and len(", ".join(items[: n_shown + 1])) <= _MOST_LETTERS:
        n_shown += 1
    rest = len(items) - n_shown
    return f"[{', '.join(items[:n_shown])}{f' and {rest} more' if rest else ''}]"


def cut(value: Any) -> str:
    """Return a value as text for messages, a long one without its end."""
    text = repr(value)
    return text if len(text) <= _MOST_OF_A_NAME else f"{text[: _MOST_OF_A_NAME - 3]}..."


def check_column_labels(
    labels: NDArray[Any], n_columns: int, *, what: str, name: str = "labels"
) -> None:
    """Raise unless `labels` are as many distinct classes as there are columns."""
    if len(labels) != n_columns or len(np.unique(labels)) != n_columns:
        raise ValueError(
            f"{name} must hold {n_columns} distinct classes, {what}, got {shown(labels)}."
        )


def _is_text(array: NDArray[Any]) -> bool:
    return array.dtype.kind == "U"


def match_columns(
    y: NDArray[Any],
    *,
    labels: NDArray[Any] | None,
    n_columns: int,
    y_name: str = "y_true",
    columns_name: str = "y_proba",
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return (codes, classes): the column of every label, and the label of every column.

    Without `labels`, integers in 0..K-1 are columns, and other labels are sorted, numbers as text
    like any text; then all K have to occur, since it is unknown which column belongs to an absent
    class.
    """
    if labels is not None:
        check_column_labels(labels, n_columns, what=f"one for every column of {columns_name}")
        return encode(y, labels, name=y_name), labels
    if not _is_text(y) and y.min() >= 0 and y.max() < n_columns:
        return y.astype(np.intp, copy=False), np.arange(n_columns)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) != n_columns:
        raise ValueError(
            f"labels must name the columns of {columns_name} where {y_name} lacks a class, "
            f"got {len(classes)} classes in {y_name}, {shown(classes)}, and {n_columns} columns."
        )
    return codes.astype(np.intp, copy=False), classes


def match_binary(
    y: NDArray[Any], *, labels: NDArray[Any] | None, pos_label: Any
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return (codes, classes): 1 where the label is positive, and (negative, positive)."""
    if labels is not None:
        check_column_labels(labels, 2, what="for y_proba of shape (n_samples,)")
        codes = encode(y, labels, name="y_true")
        if pos_label is None:
            return codes, labels
        positive = position_of_positive(pos_label, labels)
        return (codes, labels) if positive else (1 - codes, labels[::-1])
    classes = _distinct_binary(y)
    if pos_label is None:
        return _encode_signs(y, classes)
    if len(classes) == 2:
        positive = position_of_positive(pos_label, classes)
    else:
        # The other class does not occur: the one label is positive or not.
        value = check_labels_like([pos_label], name="pos_label", n_samples=1, like=y)
        positive = int(value[0] == classes[0])
        return np.full(len(y), positive, dtype=np.intp), np.append(classes, value)
    codes = (y == classes[positive]).astype(np.intp)
    return codes, classes if positive else classes[::-1]


def _distinct_binary(y: NDArray[Any]) -> NDArray[Any]:
    """Return the classes of binary labels, at most two."""
    # Both classes, even if only one of them occurs.
    if not _is_text(y) and y.min() >= 0 and y.max() <= 1:
        return np.arange(2)
    classes = np.unique(y)
    if len(classes) > 2:
        raise ValueError(
            "y_true must hold two classes where y_proba has shape (n_samples,), the probability "
            f"of the positive class, got {len(classes)}: {shown(classes)}."
        )
    return classes


def _encode_signs(y: NDArray[Any], classes: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return (codes, classes) of labels in {0, 1} or {-1, 1}, of which 1 is positive."""
    if not _is_text(classes):
        for pair in ([0, 1], [-1, 1]):
            if np.isin(classes, pair).all():
                return (y == 1).astype(np.intp), np.array(pair)
    offer = " or ".join(f"pos_label={label!r}" for label in classes.tolist())
    raise ValueError(
        "pos_label must name the positive class, unless the labels are in {0, 1} or {-1, 1}; "
        f"here {offer}, got None."
    )


def position_of_positive(pos_label: Any, classes: NDArray[Any]) -> int:
    """Return the position of the positive label among the two classes."""
    value = as_labels([pos_label], name="pos_label")
    if _is_text(value) == _is_text(classes):
        found = np.flatnonzero(classes == value[0])
        if len(found):
            return int(found[0])
    raise ValueError(f"pos_label must be one of {shown(classes)}, got {cut(pos_label)}.")


def column_names(y_proba: Any) -> list[Any] | None:
    """Return the names of the columns of a frame, None where they are 0, ..., n_classes - 1."""
    columns = getattr(y_proba, "columns", None)
    if columns is None or callable(columns):
        return None
    # `columns` of a pyarrow table holds the values.
    names = list(getattr(y_proba, "column_names", columns))
    return None if names == list(range(len(names))) else names


def match_names(
    proba: NDArray[Any],
    names: list[Any],
    y: NDArray[Any],
    labels: NDArray[Any] | None,
    *,
    name: str = "y_proba",
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return (proba, labels) with the columns in the order of the labels.

    Where the names are `labels`, or include all labels of `y`, columns are matched by name. Names
    such as ``class_0``, ``class_1`` in order are positions and change nothing.
    """
    try:
        classes = as_labels(names, name=f"columns of {name}")
    except (TypeError, ValueError):
        classes = None
    wanted = np.unique(y) if labels is None else labels
    if classes is not None and len(np.unique(classes)) == len(classes):
        positions = class_positions(wanted, classes)
        # The names include all labels of y: they are the classes, even those absent from y.
        if positions.min() >= 0 and labels is None:
            return proba, classes
        if positions.min() >= 0 and len(wanted) == len(classes):
            # The names are `labels`: columns in another order are moved.
            in_order = np.array_equal(positions, np.arange(len(classes)))
            return (proba if in_order else proba[:, positions]), labels
    # Names of a common prefix and the position of the column, from 0 on, do not name classes.
    prefix = str(names[0]).removesuffix("0")
    if names == [f"{prefix}{i}" for i in range(len(names))]:
        return proba, labels
    raise ValueError(
        f"{name} must have columns that are named by the labels, {shown(wanted)}, or no names, "
        f"got the columns {shown(np.array(names, dtype=object))}."
    )


def classes_of_chunks(
    labels: Any, columns: tuple[int, ...], pos_label: Any
) -> NDArray[Any] | None:
    """Return the classes that the labels of all chunks imply, as for arrays in memory.

    It takes one pass over the labels, a dask array. Shares of people name no classes.
    """
    if getattr(labels, "values", labels).ndim == 2:
        return None
    found = distinct(labels)
    if not len(found):
        return None
    found = as_labels(found, name="y_true")
    if columns:
        return match_columns(found, labels=None, n_columns=columns[0])[1]
    classes = match_binary(found, labels=None, pos_label=pos_label)[1]
    # (label, label): all are positive, and the other class is not known.
    return classes if classes[0] != classes[1] else None
