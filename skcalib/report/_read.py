"""Predictions from a file of separated values, as spreadsheets and pandas write them."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils.checking._proba import ROW_SUM_TOLERANCE
from ..utils.meta._optional import import_optional
from ..utils.meta._warnings import ignoring

LABELS = ("label", "labels", "y_true", "y", "target", "true_label", "truth", "actual", "class")
# Pairs of labels whose second is the positive one.
PAIRS = (("0", "1"), ("-1", "1"), ("false", "true"), ("no", "yes"), ("n", "y"))
SEPARATORS = ",;\t|"


def read_predictions(
    path: Path,
    label: str | None = None,
    classes: Sequence[str] | None = None,
    pos_label: str | None = None,
    sample_weight: str | None = None,
    by: Sequence[str] = (),
    groups: str | None = None,
) -> dict[str, Any]:
    """Return the arguments of a report; labels are compared with names of columns as text."""
    for name, value in (("by", by), ("classes", classes)):
        if isinstance(value, str):
            raise TypeError(f"{name} must be a sequence of names of columns, got {value!r}.")
    text, how = _decoded(path)
    header, layout = _layout(text, path)
    label = label or _label_column(header, path)
    special = [label, *([sample_weight] if sample_weight else []), *by]
    together = [] if groups is None else [groups]
    special += together
    for name in (*special, *(classes or ())):
        if name not in header:
            raise ValueError(f"{path} must have a column {name!r}, got {', '.join(header)}.")
    frame = _read(
        path,
        header,
        {**how, **layout},
        as_text=[label, *by, *together],
    )
    y_true, found = _labels(frame, label, path)
    table = _Table(path, frame, [name for name in header if name not in special])
    judged = table.judged(found, classes, pos_label)
    if judged.pop("by_position", False):
        y_true = np.array(judged["labels"])[y_true.astype(int)]
    used = {*special, *judged.pop("columns")}
    ignored = ", ".join(name for name in header if name not in used)
    return {
        "y_true": y_true,
        **judged,
        "sample_weight": table.numbers(sample_weight) if sample_weight else None,
        "groups": None if groups is None else _group(frame[groups]),
        "by": {name: _group(frame[name]) for name in by} or None,
        "source": {
            "file": path.name,
            "column of labels": label,
            "columns not used": ignored or "-",
        },
    }


def _decoded(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the text of a file, and how pandas comes to it."""
    data = path.read_bytes()
    options: dict[str, Any] = {"compression": None, "encoding": "utf-8"}
    if data[:2] == b"\x1f\x8b":
        options["compression"] = "gzip"
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} must be a whole gzip file, got: {error}.") from None
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16"), {**options, "encoding": "utf-16"}
    if b"\0" in data[:4096]:
        raise ValueError(
            f"{path} must be a table of text, got binary data: write it as CSV, plain or gzip."
        )
    try:
        return data.decode("utf-8-sig"), options  # pandas drops the mark by itself
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), {**options, "encoding": "cp1252"}


def _layout(text: str, path: Path) -> tuple[list[str], dict[str, Any]]:
    """Return the names of the columns, below Excel's ``sep=;`` if any, and options of pandas."""
    start = text[: 1 << 16].splitlines()
    lines = [x for x in start if x.strip() and not re.fullmatch('"?sep=.?"?', x.strip())][:2]
    if len(lines) < 2:
        raise ValueError(
            f"{path} must have a header and one line for each sample, got {len(lines)} lines."
        )
    rows = {s: next(csv.reader(lines[:1], delimiter=s)) for s in SEPARATORS}
    separator = max(rows, key=lambda s: len(rows[s]))
    header = [name.strip() for name in rows[separator]]
    # The index of pandas has no name, that of R no comma before the names either.
    n_cells = len(next(csv.reader(lines[1:], delimiter=separator)))
    header = ["", *header] if n_cells == len(header) + 1 else header
    header = [name or f"(column {i})" for i, name in enumerate(header, start=1)]
    if n_cells > len(header):
        raise ValueError(f"{path} must have {len(header)} columns, got {n_cells} in line 2.")
    if len(set(header)) < len(header):
        raise ValueError(f"{path} must have distinct columns, got {', '.join(header)}.")
    comma = separator != "," and re.search(rf"(^|{re.escape(separator)})\"?-?\d*,\d", lines[1])
    layout = {"sep": separator, "decimal": "," if comma else ".", "header": start.index(lines[0])}
    return header, layout


def _label_column(header: list[str], path: Path) -> str:
    found = [name for known in LABELS for name in header if name.lower() == known]
    if not found:
        raise ValueError(
            f"{path} must have a column 'label' in its header, or one that the option label "
            f"names, got {', '.join(header)}."
        )
    return found[0]


def _read(path: Path, header: list[str], options: dict[str, Any], *, as_text: list[str]) -> Any:
    """Return a DataFrame: columns of text as they are written, of numbers as numbers."""
    pandas = import_optional("pandas", extra="report")
    numbers = [name for name in header if name not in as_text]
    try:
        # Of a column of numbers and words, which is named where it is used.
        with ignoring(pandas.errors.DtypeWarning):
            # From the file and with low_memory, three times as fast as without.
            frame = pandas.read_csv(
                path,
                names=header,
                dtype=dict.fromkeys(as_text, str),
                # A class may be called NA. Of numbers an empty cell is NaN.
                keep_default_na=False,
                na_values={name: [""] for name in numbers},
                skipinitialspace=True,
                skip_blank_lines=False,  # of which every line has its number
                index_col=False,
                encoding_errors="replace",
                **options,
            )
    except pandas.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise ValueError(f"{path} must be a table of text, got: {reason}.") from None
    frame.index += options["header"] + 2  # lines of the file
    empty = pandas.Series(True, index=frame.index)
    for name in [*numbers, *as_text]:
        cells = frame[name]
        empty &= cells.isna() if name in numbers else cells.fillna("").str.strip() == ""
        if not empty.any():
            return frame
    return frame[~empty]


def _labels(frame: Any, name: str, path: Path) -> tuple[NDArray[Any], list[str]]:
    """Return the labels as text, and the distinct ones."""
    if not len(frame):
        raise ValueError(f"{path} must have one line for each sample, got none.")
    pandas = import_optional("pandas", extra="report")
    codes, distinct = pandas.factorize(frame[name])
    texts = np.array([_plain(str(value)) for value in distinct] or [""])
    missing = (codes < 0) | (texts[codes] == "")
    if missing.any():
        line = frame.index[missing.argmax()]
        raise ValueError(f"Column {name!r} of {path} must hold labels, got none in line {line}.")
    return texts[codes], np.unique(texts).tolist()


def _positive_of(labels: list[str]) -> str | None:
    """Return the positive one of labels such as 0 and 1, as it is written."""
    for pair in PAIRS:
        if {label.lower() for label in labels} <= set(pair):
            return next((label for label in labels if label.lower() == pair[1]), pair[1])
    return None


def _group(column: Any) -> NDArray[Any]:
    codes, distinct = import_optional("pandas", extra="report").factorize(column)
    names = [_plain(str(value)) or None for value in distinct]  # an empty cell is a missing value
    return np.array([*names, None], dtype=object)[codes]  # and so is -1, the last one


def _plain(name: str) -> str:
    """Return a label as a column would be called: integers beside a gap are floats to pandas."""
    name = name.strip()
    return name.split(".")[0] if re.fullmatch(r"-?\d+\.0+", name) else name


class _Table:
    """The columns of a file that may hold probabilities."""

    def __init__(self, path: Path, frame: Any, names: list[str]) -> None:
        self.path, self.frame, self.names = path, frame, names
        self.fits = [name for name in names if self._could_be(name)]

    def judged(
        self, labels: list[str], classes: Sequence[str] | None, pos_label: str | None
    ) -> dict[str, Any]:
        """Return probabilities, the labels of their columns, and the columns."""
        if classes is not None:
            return self._given(labels, list(classes), pos_label)
        named = self._named(labels)
        if pos_label is not None:
            column = named.get(pos_label, pos_label if pos_label in self.names else None)
            return self._positive(labels, column or self._single(labels), pos_label)
        if len(named) == 1 and len(labels) == 2 and not self._fills(list(named.values())):
            [(name, column)] = named.items()
            return self._positive(labels, column, name)
        if not named:
            column, positive = self._single(labels), _positive_of(labels)
            # It could be the confidence of the answer, which is never below a half.
            if positive is None or self.probabilities(column).min() >= 0.5:
                raise ValueError(
                    f"pos_label must say which class column {column!r} of {self.path} gives the "
                    f"probability of: {' or '.join(labels)}, got None."
                )
            return self._positive(labels, column, positive)
        if len(named) < len(labels):
            raise self._refusal(labels)
        columns = self._fills(list(named.values()))
        if columns is None:
            sums = self._sums(list(named.values()))
            row = np.abs(sums - 1).argmax()
            raise ValueError(
                f"{self.path} must have probabilities that sum to 1 in columns "
                f"{', '.join(named.values())}, got {sums[row]:g} in line {self.frame.index[row]}; "
                "rounded ones need more digits."
            )
        names = {column: name for name, column in named.items()}
        columns = [name for name in self.names if name in columns]
        return self._result(columns, [names.get(column, _plain(column)) for column in columns])

    def _given(
        self, labels: list[str], classes: list[str], pos_label: str | None
    ) -> dict[str, Any]:
        if len(classes) == 1:
            named = classes[0] if classes[0] in labels else _positive_of(labels)
            return self._positive(labels, classes[0], pos_label or named or classes[0])
        found = self._result(classes, [_plain(name) for name in classes])
        unknown = set(labels) - set(found["labels"])
        by_position = unknown <= {str(k) for k in range(len(classes))}
        if unknown and not (by_position and unknown == set(labels)):
            raise ValueError(
                f"The labels of {self.path} must be among the classes {', '.join(classes)}, or 0, "
                f"1, ... for them in this order, got {', '.join(sorted(unknown)[:10])}."
            )
        return {**found, "by_position": bool(unknown)}

    def _named(self, labels: list[str]) -> dict[str, str]:
        """Return the columns of labels: called like them, or like p_<label> for all of them."""
        named = {_plain(name): name for name in self.names if _plain(name) in labels}
        if named:
            return named
        for name in self.names:
            before, found, after = name.partition(labels[0])
            columns = {x: before + x + after for x in labels}
            if found and set(columns.values()) <= set(self.names):
                return columns
        return {}

    def _fills(self, columns: list[str]) -> list[str] | None:
        """Return the columns, with others where it takes these, if their rows sum to 1."""
        others = [name for name in self.fits if name not in columns]
        for chosen in (columns, [*columns, *others]):
            if np.abs(self._sums(chosen) - 1).max() <= ROW_SUM_TOLERANCE:
                return chosen
        return None

    def _sums(self, columns: list[str]) -> NDArray[np.float64]:
        return sum((self.probabilities(name) for name in columns), np.zeros(len(self.frame)))

    def _could_be(self, name: str) -> bool:
        """Tell whether a column may be probabilities: numbers in [0, 1], not all of them 0."""
        values = self.frame[name]
        if values.dtype.kind not in "fi":
            return False
        return bool(values.min() >= 0 and 0 < values.max() <= 1 and not values.isna().any())

    def _single(self, labels: list[str]) -> str:
        """Return the one column of probabilities, whatever it is called."""
        named = [name for name in self.names if not name.startswith("(column ")]
        # A predicted class is 0 or 1 as well. A column that is the only one is read as it is.
        graded = [name for name in self.fits if not self.frame[name].isin([0, 1]).all()] or named
        if len(graded) != 1 or len(labels) > 2:
            raise self._refusal(labels)
        return graded[0]

    def _refusal(self, labels: list[str]) -> ValueError:
        return ValueError(
            f"{self.path} must have a column of probabilities for every class, called like its "
            f"label ({', '.join(labels[:10])}), or the option classes must name them in the order "
            f"of the classes, got columns {', '.join(self.names)}; columns "
            f"of numbers in [0, 1]: {', '.join(self.fits) or 'none'}."
        )

    def _positive(self, labels: list[str], column: str, positive: str) -> dict[str, Any]:
        others = sorted(set(labels) - {positive})
        if len(others) > 1:
            raise ValueError(
                f"{self.path} must have a column for every class, or two classes of which one is "
                f"{positive!r}; got the other labels {others}."
            )
        negative = others[0] if others else f"not {positive}"
        return {
            "y_proba": self.probabilities(column),
            "labels": [negative, positive],
            "pos_label": positive,
            "columns": [column],
        }

    def _result(self, columns: list[str], labels: list[str]) -> dict[str, Any]:
        proba = np.column_stack([self.probabilities(name) for name in columns])
        return {"y_proba": proba, "labels": labels, "columns": columns}

    def probabilities(self, name: str) -> NDArray[np.float64]:
        """Return a column of probabilities."""
        return self.numbers(name, "probabilities in [0, 1]", 0.0, 1.0)

    def numbers(
        self, name: str, what: str = "numbers", low: float = -np.inf, high: float = np.inf
    ) -> NDArray[np.float64]:
        """Return a column of numbers within limits."""
        pandas = import_optional("pandas", extra="report")
        numbers = pandas.to_numeric(self.frame[name], errors="coerce").to_numpy(np.float64)
        fault = ~((numbers >= low) & (numbers <= high))
        if fault.any():
            row = int(fault.argmax())
            raise ValueError(
                f"Column {name!r} of {self.path} must hold {what}, got "
                f"{self.frame[name].iloc[row]!s} in line {self.frame.index[row]}."
            )
        return numbers
