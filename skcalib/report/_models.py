"""Predictions of several models, from a file for each or from the columns of one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils._labels import format_labels
from ._files import list_names, read_file, strip_name
from ._read import read_predictions

# What separates the name of a model from that of a class.
_SEPARATORS = ("_", ".", "-", " ", ":", "/")


def read_models(
    paths: Sequence[Path],
    models: Sequence[str] | None = None,
    *,
    paired: bool = True,
    pos_label: str | None = None,
    **options: Any,
) -> tuple[dict[str, NDArray[Any]], Any, dict[str, Any]]:
    """Return the arguments of `CalibrationReport.compare`, and what was read.

    `options` are those of `read_predictions`. The last dict has ``labels``, ``pos_label``,
    ``groups`` and ``sample_weight``, and a ``source`` for every model.
    """
    if models is None:
        if len(paths) < 2:
            raise ValueError(
                f"predictions must be two files or more, or models the names of columns, got "
                f"{paths[0]} alone."
            )
        names = _name_files(paths)
        tables = [read_predictions(path, pos_label=pos_label, **options) for path in paths]
    elif len(paths) > 1 or options.get("classes") is not None:
        raise ValueError("models must be None with several files, or with classes, got both.")
    else:
        names, tables = list(models), []
        for model in names:
            classes = _find_columns_of(paths[0], model, names, pos_label)
            tables.append(
                read_predictions(
                    paths[0], **{**options, "classes": classes, "pos_label": pos_label}
                )
            )
    if len(set(names)) < max(2, len(names)):
        raise ValueError(f"models must be two or more distinct names, got {format_labels(names)}.")
    if any(table["of_answers"] for table in tables):
        raise ValueError(
            "predictions must be probabilities of classes to be compared, got the confidence in "
            "answers, whose right and wrong differ between models."
        )
    _align(names, tables)
    first = tables[0]
    truths = dict(zip(names, (table["y_true"] for table in tables)))
    if paired:
        _check_same_samples(truths)
    elif any(first[key] is not None for key in ("groups", "sample_weight")):
        raise ValueError("groups and weight must be None for different samples, got one.")
    about = {key: first.get(key) for key in ("labels", "pos_label", "groups", "sample_weight")}
    about["source"] = {name: table["source"] for name, table in zip(names, tables)}
    probas = {name: table["y_proba"] for name, table in zip(names, tables)}
    return probas, first["y_true"] if paired else truths, about


def _name_files(paths: Sequence[Path]) -> list[str]:
    stems = [path.stem for path in paths]
    return stems if len(set(stems)) == len(stems) else [str(path) for path in paths]


def _find_columns_of(
    path: Path, model: str, models: Sequence[str], pos_label: str | None
) -> list[str] | dict[str, str]:
    """Return the columns of a model: its own, or those with a class before or after its name."""
    file = read_file(path, ())
    if model in file.names:
        return [model] if pos_label is None else {model: pos_label}
    if model in file.lists:
        return file.lists[model]
    found = {}
    others = [name for name in models if name != model and name.startswith(model)]
    for column in file.names:
        if any(column.startswith(name) for name in others):
            continue
        for sign in _SEPARATORS:
            rest = column.removeprefix(model + sign)
            rest = column.removesuffix(sign + model) if rest == column else rest
            if rest != column:
                found[column] = strip_name(rest)
                break
    if not found:
        raise ValueError(
            f"models must name columns of {path}, or what the names of their columns begin or end "
            f"with, got {model!r} and columns {list_names(file.names)}."
        )
    return found


def _align(names: Sequence[str], tables: Sequence[dict[str, Any]]) -> None:
    """Give all tables the classes of the first, in its order."""
    single = [table.get("pos_label") for table in tables]
    if len(set(single)) > 1:  # a column of one class beside columns of all classes
        for table in tables:
            if table["y_proba"].ndim == 1:
                table["y_proba"] = np.column_stack([1 - table["y_proba"], table["y_proba"]])
            table.pop("pos_label", None)
    if tables[0]["y_proba"].ndim == 1:
        return
    classes = tables[0]["labels"]
    for name, table in zip(names, tables):
        own = list(table["labels"])
        if sorted(own) != sorted(classes):
            raise ValueError(
                f"All models must have the same classes, got {list_names(classes)} for "
                f"{names[0]!r} and {list_names(own)} for {name!r}."
            )
        table["y_proba"] = table["y_proba"][:, [own.index(label) for label in classes]]
        table["labels"] = classes


def _check_same_samples(truths: dict[str, NDArray[Any]]) -> None:
    """Raise unless all models have the same labels, row by row."""
    (first, labels), *others = truths.items()
    for name, truth in others:
        if len(truth) != len(labels):
            what = f"{len(labels)} and {len(truth)} samples"
        elif (truth != labels).any():
            row = int((truth != labels).argmax())
            what = f"the labels {labels[row]!s} and {truth[row]!s} in sample {row + 1}"
        else:
            continue
        raise ValueError(
            f"{first!r} and {name!r} must hold the same samples in the same order, got {what}; "
            "--different-samples compares different ones, such as those of two months."
        )
