"""Predictions from a CSV file, without pandas."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_predictions(
    path: Path,
    *,
    label: str = "label",
    pos_label: str | None = None,
    sample_weight: str | None = None,
    groups: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the arguments of `from_predictions`.

    All columns but those of the label, the weight and the groups are probabilities of the
    classes that their names say; labels are compared as text.
    """
    if isinstance(groups, str):
        raise TypeError(f"groups must be a sequence of names of columns, got {groups!r}.")
    header, lines = _read_lines(path)
    special = [label, *([sample_weight] if sample_weight else []), *groups]
    for name in special:
        if name not in header:
            raise ValueError(f"{path} must have a column {name!r}, got {', '.join(header)}.")
    classes = [name for name in header if name not in special]
    if pos_label is not None:
        if pos_label not in classes:
            raise ValueError(f"pos_label must be one of the columns {classes}, got {pos_label!r}.")
        classes = [pos_label]
    if not classes:
        raise ValueError(f"{path} must have a column of probabilities a class, got none.")
    columns = {name: [line[header.index(name)].strip() for line in lines] for name in header}
    proba = np.column_stack([_probabilities(columns[name], path, name) for name in classes])
    return {
        "y_true": np.array(columns[label]),
        **_judged(np.array(columns[label]), proba, classes, path),
        "sample_weight": (
            _numbers(columns[sample_weight], path, sample_weight) if sample_weight else None
        ),
        "groups": {name: np.array(columns[name]) for name in groups} or None,
    }


def _judged(
    labels: NDArray[Any], proba: NDArray[np.float64], classes: list[str], path: Path
) -> dict[str, Any]:
    """Return probabilities and names of the classes; a single column is the positive class."""
    if len(classes) > 1:
        return {"y_proba": proba, "labels": classes}
    others = sorted(set(labels.tolist()) - set(classes))
    if len(others) != 1:
        raise ValueError(
            f"{path} must have a column for every class, or two classes of which one is the "
            f"column {classes[0]!r}; got the other labels {others}."
        )
    return {"y_proba": proba[:, 0], "labels": [*others, *classes], "pos_label": classes[0]}


def _read_lines(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the header and the lines below it, all as long as the header."""
    # utf-8-sig: spreadsheets put a mark before the first letter.
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(
                f"{path} must be a CSV file in UTF-8, got another: {error}."
            ) from None
    for separator in (";", "\t"):
        if rows and len(rows[0]) == 1 and separator in rows[0][0]:
            raise ValueError(f"{path} must have commas between columns, got {separator!r}.")
    if len(rows) < 2:
        raise ValueError(f"{path} must have a header and a line a sample, got {len(rows)} lines.")
    header = [name.strip() for name in rows[0]]
    if len(set(header)) < len(header):
        raise ValueError(f"{path} must have distinct columns, got {', '.join(header)}.")
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != len(header):
            raise ValueError(
                f"{path} must have {len(header)} columns, got {len(row)} in sample {number}."
            )
    return header, rows[1:]


def _probabilities(texts: list[str], path: Path, name: str) -> NDArray[np.float64]:
    """Return numbers in [0, 1]; a column of something else was not told to be one."""
    numbers = _numbers(texts, path, name)
    outside = ~((numbers >= 0) & (numbers <= 1))
    if outside.any():
        first = int(outside.argmax())
        raise ValueError(
            f"Column {name!r} of {path} must hold probabilities in [0, 1], got "
            f"{texts[first]!r} in sample {first + 1}."
        )
    return numbers


def _numbers(texts: list[str], path: Path, name: str) -> NDArray[np.float64]:
    numbers = []
    for number, text in enumerate(texts, start=1):
        try:
            numbers.append(float(text))
        except ValueError:
            raise ValueError(
                f"Column {name!r} of {path} must hold numbers, got {text!r} in sample {number}."
            ) from None
    return np.array(numbers)
