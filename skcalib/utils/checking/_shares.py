"""Labels as shares of people, (n_samples, n_classes), with rows that sum to 1.

A sample with shares counts as one row for every class with a positive share, weighted by it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._labels import (
    as_labels,
    check_column_labels,
    class_positions,
    position_of_positive,
    shown,
)
from ._proba import as_proba, check_values


class Rows(NamedTuple):
    """One row for every positive share, sample after sample; the arrays are (n_rows,)."""

    samples: NDArray[np.intp]
    codes: NDArray[np.intp]
    weight: NDArray[np.float64]


def as_shares(y: ArrayLike, *, name: str) -> NDArray[np.float64]:
    """Return shares as float64, (n_samples, n_classes); rounding below 0 counts as 0."""
    try:
        shares = as_proba(y, name=name)
        check_values(shares, name=name)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{str(error)[:-1]}. Labels have shape (n,); with a column for every class {name} "
            "holds shares of people, whose rows sum to 1. Where a sample may have several labels, "
            "take multilabel_calibration_error, and fit one calibrator per label: "
            "fit(X[:, j], y[:, j])."
        ) from error
    return np.maximum(shares.astype(np.float64, copy=False), 0.0)


def rows_of(shares: NDArray[np.float64], weight: NDArray[np.float64] | None = None) -> Rows:
    """Return one row for every positive share, of weight share times sample weight."""
    samples, codes = np.nonzero(shares)
    share = shares[samples, codes]
    return Rows(samples, codes, share if weight is None else share * weight[samples])


def two_sided(part: NDArray[Any]) -> NDArray[Any]:
    """Return binary labels as 0 or 1, (n,); floats are shares of yes: return (no, yes), (n, 2)."""
    if part.dtype.kind == "f":
        return np.column_stack([1 - part, part])
    return part.astype(np.intp)


def match_shares(
    shares: NDArray[np.float64],
    columns: list[Any] | None,
    classes: NDArray[Any] | None,
    n_classes: int,
    *,
    names: tuple[str, str, str] = ("y_true", "y_proba", "labels"),
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return shares with their columns in the order of the classes, and the classes.

    `columns` names the columns of `shares`, `classes` those of the probabilities. Where `classes`
    is None, the classes are these names, which must be sorted, or 0, ..., n_classes - 1.
    """
    name, of_proba, of_classes = names
    if shares.shape[1] != n_classes:
        raise ValueError(
            f"{name} must hold a share for every class of {of_proba}, {n_classes}, "
            f"got {shares.shape[1]} columns."
        )
    named = None if columns is None else classes_of_names(columns)
    if classes is None:
        if named is None:
            return shares, np.arange(n_classes)
        if not np.array_equal(named, np.unique(named)):
            raise ValueError(
                f"{of_classes} must be given where the columns of {name} have names that are not "
                f"sorted and those of {of_proba} have none, got {shown(named)}."
            )
        return shares, named
    if named is None:
        return shares, classes
    positions = class_positions(classes, named)
    if positions.min() < 0 or len(set(positions.tolist())) < n_classes:
        raise ValueError(
            f"{name} must have columns that are named by the classes, {shown(classes)}, or no "
            f"names, got {shown(named)}."
        )
    return shares[:, positions], classes


def match_two_shares(
    shares: NDArray[np.float64],
    names: list[Any] | None,
    *,
    labels: NDArray[Any] | None,
    pos_label: Any,
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return shares of (negative, positive), (n, 2), and these two classes."""
    if labels is not None:
        check_column_labels(labels, 2, what="for y_proba of shape (n_samples,)")
    shares, classes = match_shares(shares, names, labels, 2)
    if pos_label is None:
        return shares, classes
    if labels is None and names is None:
        raise ValueError(
            "labels must name the columns of y_true where pos_label is given, got None."
        )
    if position_of_positive(pos_label, classes):
        return shares, classes
    return shares[:, ::-1], classes[::-1]


def classes_of_names(names: list[Any]) -> NDArray[Any] | None:
    """Return the labels that columns are named by, None where they are numbered."""
    prefix = str(names[0]).removesuffix("0")
    if names == [f"{prefix}{k}" for k in range(len(names))]:
        return None
    return as_labels(names, name="names of columns")
