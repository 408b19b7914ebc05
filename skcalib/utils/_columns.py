"""Columns that have names, and labels that have an order of their own.

The columns of a DataFrame of probabilities are named by labels, or they are positions. Whatever
lies between is an error: a guess would judge one class by the probability of another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._labels import as_labels, class_positions, shown


def column_names(y_proba: Any) -> list[Any] | None:
    """Return the names of the columns of a frame, None where they are 0, ..., n_classes - 1."""
    columns = getattr(y_proba, "columns", None)
    if columns is None or callable(columns):
        return None
    names = list(columns)
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

    Where the names are `labels`, or hold all labels of `y`, columns are matched by name. Names
    such as ``class_0``, ``class_1`` in order are positions and change nothing.
    """
    try:
        classes = as_labels(names, name=f"columns of {name}")
    except (TypeError, ValueError):
        classes = None
    wanted = np.unique(y) if labels is None else labels
    if classes is not None and len(np.unique(classes)) == len(classes):
        positions = class_positions(wanted, classes)
        # The names hold all labels of y: they are the classes, those absent from y included.
        if positions.min() >= 0 and labels is None:
            return proba, classes
        if positions.min() >= 0 and len(wanted) == len(classes):
            # The names are `labels`: where the order differs, the columns are moved.
            in_order = np.array_equal(positions, np.arange(len(classes)))
            return (proba if in_order else proba[:, positions]), labels
    if _are_numbered(names):
        return proba, labels
    raise ValueError(
        f"{name} must have columns that are named by the labels, {shown(wanted)}, or not named, "
        f"got the columns {shown(np.array(names, dtype=object))}."
    )


def refuse_names_in_other_order(X: Any, classes: NDArray[Any], *, name: str) -> None:
    """Raise if the columns of a frame are named by the classes and are in another order.

    For scores whose columns are classes by their position: other names say nothing.
    """
    names = column_names(X)
    if names is None:
        return
    # As text, since a column of class 0 may have the name "0".
    found, wanted = [str(label) for label in names], [str(label) for label in classes.tolist()]
    if found != wanted and sorted(found) == sorted(wanted):
        raise ValueError(
            f"{name} must have the columns in the order of the classes, {wanted}, got {found}."
        )


def _are_numbered(names: list[Any]) -> bool:
    """Tell whether names are one prefix and the position of the column, from 0 on."""
    prefix = str(names[0]).removesuffix("0")
    return names == [f"{prefix}{i}" for i in range(len(names))]


def refuse_other_order(y: Any, *, name: str = "y_true") -> None:
    """Raise for an ordered categorical whose order is not the one in which labels are sorted.

    Columns without names are in the order of the sorted labels, or in that of the categories:
    nothing tells which.
    """
    dtype = getattr(y, "dtype", None)
    if not getattr(dtype, "ordered", False):
        return
    categories = list(dtype.categories)  # type: ignore[union-attr]
    if categories != sorted(categories):
        raise ValueError(
            f"labels must be given where {name} is an ordered categorical in another order than "
            f"the sorted one, got the categories {shown(np.array(categories, dtype=object))}."
        )
