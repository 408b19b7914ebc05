"""Read predictions from a file with pandas, and find its labels, probabilities and classes.

Columns are found by what exporters call them, see `FORMS`. Every candidate is tried: one that fits
is taken, of several none, and no name is interpreted beyond the table.
"""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from ..utils._output import ignoring, import_optional, warn
from ..utils._proba import TOLERANCE

# Names of a column of labels, the likeliest first.
LABELS = (
    *("label", "labels", "y_true", "y", "target", "targets", "true_label", "truth", "actual"),
    *("class", "gold", "gold_label", "ground_truth", "true_class", "y_test", "obs", "observed"),
)
# Whether an answer is right: labels of its confidence, where there are no others.
OUTCOMES = ("correct", "is_correct")
# How exporters call the probability of a class: pandas users, tidymodels, mlr3, h2o, JMP,
# CatBoost, PyCaret, RapidMiner. {} is the label.
FORMS = (
    *("{}", "p_{}", "prob_{}", "proba_{}", "pred_{}", "prob.{}", ".pred_{}", "P({})", "p{}"),
    *("probability_{}", "y_proba_{}", "y_prob_{}", "predict_proba_{}", "Prob[{}]"),
    *("Probability:Class={}", "prediction_score_{}", "confidence({})"),
)
FORMS_OF_LOGITS = ("logit_{}", "logits_{}", "logit.{}")
FORMS_OF_TRUTHS = ("{}", "label_{}", "true_{}", "y_true_{}", "target_{}")
# Names of one column, of the positive class.
SINGLE = (
    *("p", "prob", "proba", "probability", "y_prob", "y_proba", "p_hat", "prob_pred"),
    *("pred_prob", "pred_proba", "predicted_probability", "predict_proba"),
)
# The same, taken only where no other column has one of the names above.
UNSURE = (
    *("score", "scores", "y_score", "prediction", "predictions", "pred", "y_pred", "yhat"),
    *("y_hat", "oof", "risk"),
)
LOGITS = ("logit", "logits", "log_odds", "log-odds")
# Pairs of labels; the second is the positive one.
PAIRS = (("0", "1"), ("-1", "1"), ("false", "true"), ("no", "yes"), ("n", "y"))
# Columns that say which samples belong together, or from which model they are.
GROUPS = re.compile(
    r"(patient|user|subject|person|customer|client|session|document|speaker|question|group)"
    r"([ _.-]?(id|number|name|key|code))?"
)
MODELS = re.compile(r"(model|classifier|algorithm|system)([ _.-]?(id|name|version))?")
# Most columns to list in a message.
MOST_LISTED = 12
SEPARATORS = ",;\t|"
# First bytes of a file, among which a zero says that it is binary.
HEAD = 4096
# Records that are read for separator, decimal sign and index.
LOOK = 50
# Longest list in a cell.
LONGEST_LIST = 10_000
# A gzip file may be this many times as large unpacked: text comes to 20, zeros to 1000.
MOST_UNPACKED = 200


def read_predictions(
    path: Path,
    label: str | None = None,
    classes: Sequence[str] | Mapping[str, str] | None = None,
    pos_label: str | None = None,
    sample_weight: str | None = None,
    by: Sequence[str] = (),
    groups: str | None = None,
) -> dict[str, Any]:
    """Return the arguments of a report. Labels and names of columns are compared as text."""
    for name, value in (("by", by), ("classes", classes)):
        if isinstance(value, str):
            raise TypeError(f"{name} must be a sequence of names of columns, got {value!r}.")
    asked = [name for name in (label, *by, groups) if name is not None]
    file = _read(path, asked)
    given = None if classes is None else _classes_given(classes, file.names)
    used = [*asked, *([sample_weight] if sample_weight else [])]
    for name in (*used, *(given or ())):
        file.check_name(name)
    errors = []
    for column in [label] if label else _label_columns(file):
        try:
            table = _Table(file, column, [name for name in used if name != column])
            found = table.find(given, pos_label)
        except ValueError as error:
            errors.append(error)
        else:
            return _arguments(table, found, sample_weight, by, groups)
    raise errors[0]


def _arguments(
    table: _Table, found: _Found, sample_weight: str | None, by: Sequence[str], groups: str | None
) -> dict[str, Any]:
    """Return the arguments of a report; warn of what may be wrong with the columns."""
    file, proba, names = table.file, found.proba, found.labels
    y_true = table.y_true
    if found.by_position:
        y_true = np.array(names)[y_true.astype(int)]
    used = {*table.label_columns, *found.columns, *by, sample_weight, groups}
    unused = [name for name in file.names if name not in used]
    _warn_of_unused(file, unused, groups)
    single = [names[1]] if proba.ndim == 1 else names
    shown = _listed(c if c == n else f"{c} (of {n})" for c, n in zip(found.columns, single))
    return {
        "y_true": y_true,
        "y_proba": proba,
        "labels": names,
        **({"pos_label": names[1]} if proba.ndim == 1 else {}),
        "sample_weight": file.numbers(sample_weight) if sample_weight else None,
        "groups": None if groups is None else _group(file.frame[groups]),
        "by": {name: _group(file.frame[name]) for name in by} or None,
        "source": {
            "file": file.path.name,
            "rows": len(file.frame),
            **file.lines,
            "encoding": file.encoding,
            "column of labels": _listed(table.label_columns),
            "columns of probabilities": shown + found.note,
            "classes": _listed(names),
            "columns not used": _listed(unused) or "-",
        },
    }


def describe(source: Mapping[str, Any]) -> str:
    """Return what was read, for the standard error of a command."""
    rows = [f"{source['rows']} rows"]
    rows += [f"{source[what]} {what}" for what in ("empty lines",) if what in source]
    text = (
        f"Read {', '.join(rows)} as {source['encoding']}; labels: {source['column of labels']}; "
        f"probabilities: {source['columns of probabilities']}; classes: {source['classes']}\n"
    )
    unused = source["columns not used"]
    return text if unused == "-" else f"{text}Columns that were not used: {unused}\n"


# --- Names and labels ----------------------------------------------------------------------------


def _plain(name: str) -> str:
    """Return a label as columns name it: "1.0", as pandas reads a 1 beside a gap, becomes "1"."""
    name = unicodedata.normalize("NFC", name).strip()
    return name.split(".")[0] if re.fullmatch(r"-?\d+\.0+", name) else name


def _natural_order(names: Iterable[str]) -> list[str]:
    """Return names sorted as people do: class_2 before class_10."""
    return sorted(
        names,
        key=lambda name: [
            (0, int(part), "") if part.isdecimal() and len(part) < 20 else (1, 0, part)
            for part in re.split(r"(\d+)", name)
            if part
        ],
    )


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f", ... ({len(names)} in all)" if len(names) > MOST_LISTED else ""
    shown = [name if len(name) <= 40 else f"{name[:37]}..." for name in names[:MOST_LISTED]]
    return ", ".join(shown) + more


def _spellings(label: str) -> list[str]:
    """Return a label as names of columns spell it: True is 1 there as well."""
    number = {"true": "1", "false": "0"}.get(label.lower())
    return [label] if number is None else [label, number]


def _positive_of(labels: list[str]) -> str | None:
    """Return the positive one of labels such as 0 and 1, as written; None for others."""
    for pair in PAIRS:
        if {label.lower() for label in labels} <= set(pair):
            return next((label for label in labels if label.lower() == pair[1]), pair[1])
    return None


def _both(labels: list[str]) -> list[str]:
    """Return both labels of a pair such as 0 and 1 if only one of them occurs."""
    if len(labels) == 1:
        for pair in PAIRS:
            if labels[0].lower() in pair:
                return list(pair) if labels[0] in pair else [x.title() for x in pair]
    return labels


def _class_of_name(name: str, labels: Iterable[str]) -> str | None:
    """Return the label that the name of a column has by one of the forms."""
    name = _plain(name)
    for label in labels:
        for text in _spellings(label):
            if any(name == form.format(text) for form in (*FORMS, *FORMS_OF_LOGITS)):
                return label
    inside = re.fullmatch(r".*\[(.*)\]", name)
    return inside[1] if inside and inside[1] in set(labels) else None


def _classes_given(
    classes: Sequence[str] | Mapping[str, str], names: Sequence[str]
) -> dict[str, str | None]:
    """Return {column: class}; the class is None if only the column is given."""
    if isinstance(classes, Mapping):
        return {str(column): str(name) for column, name in classes.items()}
    given: dict[str, str | None] = {}
    for item in classes:
        column, equals, name = item.rpartition("=")
        # The name of a column may contain an equals sign: P(y=1).
        alone = item in names or not equals
        given[item if alone else column] = None if alone else name
    if len(given) < len(classes):
        raise ValueError(f"classes must name distinct columns, got {_listed(list(classes))}.")
    return given


def _example(columns: Iterable[str]) -> str:
    """Return an example of the option that assigns columns to classes."""
    return "--classes " + " ".join(f"{name}=CLASS" for name in list(columns)[:3])


def _group(column: Any) -> NDArray[Any]:
    codes, distinct = import_optional("pandas", extra="report").factorize(column)
    # An empty cell is a missing value.
    names = [_plain(str(value)) or None for value in distinct]
    return np.array([*names, None], dtype=object)[codes]  # and so is -1, the last one


def _warn_of_unused(file: _File, unused: list[str], groups: str | None) -> None:
    """Warn of columns that say which samples belong together, or from which model they are."""
    n = len(file.frame)
    for name in unused:
        key = name.strip().lower()
        if groups is None and GROUPS.fullmatch(key) and 1 < file.frame[name].nunique() <= n / 2:
            warn(
                f"Values of column {name!r} of {file.path} repeat, {file.frame[name].nunique()} "
                f"in {n} rows: if rows of one value belong together, say so: --groups {name}."
            )
        if MODELS.fullmatch(key) and 1 < file.frame[name].nunique() <= n / 2:
            warn(
                f"Column {name!r} of {file.path} has {file.frame[name].nunique()} values: if "
                "these are models, the numbers mix them; write a file for each."
            )


# --- Files ---------------------------------------------------------------------------------------


@dataclass
class _File:
    """A table of a file: its columns by name, rows numbered as in the file."""

    path: Path
    frame: Any
    encoding: str
    lines: dict[str, Any] = field(default_factory=dict)
    # Columns of lists, {name: their columns}.
    lists: dict[str, list[str]] = field(default_factory=dict)
    twice: set[str] = field(default_factory=set)
    _numbers: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return list(self.frame.columns)

    def check_name(self, name: str) -> None:
        """Raise if there is no such column, or if it stands there twice."""
        if name not in self.frame.columns:
            raise ValueError(
                f"{self.path} must have a column {name!r}, got {_listed(self.names)}."
            )
        if name in self.twice:
            raise ValueError(f"{self.path} must have distinct columns, got {name} twice.")

    def as_numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as numbers, NaN for others; 41.0% is .41."""
        if name not in self._numbers:
            pandas = import_optional("pandas", extra="report")
            cells = self.frame[name]
            percent = _is_percent(cells)
            if percent:
                cells = cells.astype(str).str.strip().str.removesuffix("%")
            numbers = pandas.to_numeric(cells, errors="coerce").to_numpy(
                np.float64, na_value=np.nan
            )
            self._numbers[name] = numbers / 100 if percent else numbers
        return self._numbers[name]

    def numbers(
        self, name: str, what: str = "numbers", low: float = -np.inf, high: float = np.inf
    ) -> NDArray[np.float64]:
        """Return a column of numbers within limits."""
        numbers = self.as_numbers(name)
        fault = ~((numbers >= low) & (numbers <= high))
        if fault.any():
            row = int(fault.argmax())
            percent = high <= 1 + TOLERANCE and fault.mean() > 0.5
            percent &= bool(((numbers >= 0) & (numbers <= 100)).all())
            raise ValueError(
                f"Column {name!r} of {self.path} must hold {what}, got "
                f"{self.frame[name].iloc[row]!s} in line {self.frame.index[row]}"
                f"{'; divide percentages by 100' if percent else ''}."
            )
        return numbers

    def probabilities(self, name: str) -> NDArray[np.float64]:
        """Return a column of probabilities."""
        low, high = -TOLERANCE, 1 + TOLERANCE
        return self.numbers(name, "probabilities in [0, 1]", low, high).clip(0, 1)


def _is_percent(cells: Any) -> bool:
    """Tell whether most of the first cells that are not empty end with a percent sign."""
    if cells.dtype.kind in "biuf":
        return False
    first = [str(cell).strip() for cell in islice(cells.dropna(), LOOK)]
    return 2 * sum(cell.endswith("%") for cell in first) > len(first)


def _read(path: Path, asked: Sequence[str]) -> _File:
    """Return the table of a file of any form that is read; labels and `asked` columns as text."""
    with path.open("rb") as opened:
        head = opened.read(HEAD)
    if head[:4] == b"PAR1":
        file = _File(path, _of_arrow(path, "parquet"), "parquet")
    elif head[:6] == b"ARROW1" or head[:4] == b"FEA1":
        file = _File(path, _of_arrow(path, "feather"), "feather")
    elif head[:4] == b"PK\x03\x04" and path.suffix.lower() == ".npz":
        file = _of_npz(path)
    else:
        text, how = _decoded(path)
        if re.match(r"\s*(\[\s*\{|\{)", text):
            file = _File(path, _of_json(path, text), "JSON")
        else:
            file = _of_text(path, text, how, asked)
    if not len(file.frame):
        raise ValueError(f"{path} must have one line for each sample, got none.")
    _expand_lists(file)
    if file.encoding in ("parquet", "feather", "JSON", "npz"):
        wanted = {*asked, *(name for name in file.names if _is_label(name))}
        as_text = {name: _as_text(file.frame[name]) for name in file.names if name in wanted}
        file.frame = file.frame.assign(**as_text)
    return file


def _is_label(name: str) -> bool:
    return name.strip().lower() in (*LABELS, *OUTCOMES, "predicted")


def _as_text(column: Any) -> Any:
    """Return values as text; missing values stay missing."""
    return column.astype(object).map(str, na_action="ignore")


def _numbered(frame: Any) -> Any:
    """Return the frame with rows counted from 1 and distinct names as text."""
    frame = frame.reset_index(drop=True).rename(columns=str)
    frame.index += 1
    return frame


def _of_arrow(path: Path, form: str) -> Any:
    """Return the frame of a parquet or feather file."""
    pandas = import_optional("pandas", extra="report")
    try:
        frame = (pandas.read_parquet if form == "parquet" else pandas.read_feather)(path)
    except ImportError as error:
        raise ImportError(
            f"{path} is a {form} file, which pandas reads with pyarrow: pip install pyarrow"
        ) from error
    except (OSError, ValueError) as error:  # pyarrow's own errors are of these kinds
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path} must be a whole {form} file, got: {reason}.") from None
    frame = _numbered(frame)
    if not frame.columns.is_unique:
        twice = _natural_order(frame.columns[frame.columns.duplicated()])
        raise ValueError(f"{path} must have distinct columns, got {_listed(twice)} twice.")
    return frame


def _of_json(path: Path, text: str) -> Any:
    """Return the frame of a JSON array of objects, of an object of columns, or of JSON Lines."""
    pandas = import_optional("pandas", extra="report")
    try:
        try:
            records = json.loads(text)
        except json.JSONDecodeError:
            records = [json.loads(line) for line in text.splitlines() if line.strip()]
        if isinstance(records, dict) and not any(
            isinstance(value, dict | list) for value in records.values()
        ):
            records = [records]
        frame = pandas.DataFrame(records)
    except (RecursionError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} must be JSON, an object for every sample, or JSON Lines, got: {error}."
        ) from None
    return _numbered(frame)


def _of_npz(path: Path) -> _File:
    """Return the arrays of an npz file: those of one number for each sample, and of K numbers."""
    pandas = import_optional("pandas", extra="report")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, zlib.error) as error:
        raise ValueError(f"{path} must be a whole npz file of arrays, got: {error}.") from None
    rows = {len(array) for array in arrays.values() if array.ndim in (1, 2)}
    if len(rows) != 1:
        raise ValueError(
            f"{path} must hold arrays with one row for each sample, got shapes "
            f"{_listed(f'{name} {array.shape}' for name, array in arrays.items())}."
        )
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            columns[name] = array
        elif array.ndim == 2 and _is_label(name) and _is_one_hot(array):
            columns[name] = array.argmax(axis=1)
        elif array.ndim == 2:
            columns[name] = list(array)
    return _File(path, _numbered(pandas.DataFrame(columns)), "npz")


def _is_one_hot(values: NDArray[Any]) -> bool:
    return bool(np.isin(values, (0, 1)).all() and (values.sum(axis=1) == 1).all())


def _decoded(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the text of a file, and the options with which pandas reads it."""
    data = path.read_bytes()
    options: dict[str, Any] = {"compression": None, "encoding": "utf-8"}
    if data[:2] == b"\x1f\x8b":
        options["compression"] = "gzip"
        most = MOST_UNPACKED * len(data)
        try:
            with gzip.open(io.BytesIO(data)) as unpacked:
                data = unpacked.read(most + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} must be a whole gzip file, got: {error}.") from None
        if len(data) > most:
            raise ValueError(
                f"{path} must be text in gzip, got more than {MOST_UNPACKED} times its size "
                "unpacked: unpack it first."
            )
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16"), {**options, "encoding": "utf-16"}
    if b"\0" in data[:HEAD] or data[:4] == b"PK\x03\x04" or data[:2] in (b"\x80\x04", b"\x80\x05"):
        kind = "binary data"
        if data[:1] == b"\x80":
            kind = "a pickle, which could run code"
        elif data[:4] == b"PK\x03\x04" and b"xl/" in data:
            kind = "an Excel file"
        raise ValueError(
            f"{path} must be a table of text, got {kind}: write it as CSV, plain or gzip, or as "
            "parquet, feather, JSON or npz."
        )
    try:
        return data.decode("utf-8-sig"), options  # pandas drops the byte order mark itself
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), {**options, "encoding": "cp1252"}


# --- Text ----------------------------------------------------------------------------------------

# Empty lines, and Excel's ``sep=;``, above the header.
_ABOVE = re.compile(r'(?:[^\S\n]*(?:"?sep=.?"?[^\S\n]*)?\n)*')


def _of_text(path: Path, text: str, how: dict[str, Any], asked: Sequence[str]) -> _File:
    """Return the table of a CSV-like file: separator, decimal sign and index are found."""
    pandas = import_optional("pandas", extra="report")
    skipped = _ABOVE.match(text).end()  # type: ignore[union-attr]
    body, above = text[skipped:], text.count("\n", 0, skipped)
    records = {separator: _records(body, separator) for separator in SEPARATORS}
    separator = max(records, key=lambda s: len(records[s][0]) if records[s] else 0)
    if not body.strip() or re.fullmatch('"?sep=.?"?', body.strip()):
        raise ValueError(f"{path} must have a header and one line for each sample, got no header.")
    if len(records[separator]) < 2:
        raise ValueError(
            f"{path} must have a header and one line for each sample, got one line, "
            f"{_listed([' '.join(body.split())])}; quotation marks must come in pairs."
        )
    first, *rows = records[separator]
    names, distribution = _header(path, first, rows)
    header, twice = _distinct(names)
    above += "".join(first).count("\n")
    comma = separator != "," and any(re.match(r"\s*-?\d*,\d", cell) for r in rows for cell in r)
    as_text = [name for name in header if name in asked or _is_label(name)]
    try:
        # No warning about columns of numbers and words: an error names them if they are used.
        with ignoring(pandas.errors.DtypeWarning):
            # Reading the file itself, with low_memory, is three times as fast.
            frame = pandas.read_csv(
                path,
                names=header,
                header=text.count("\n", 0, skipped),
                sep=separator,
                decimal="," if comma else ".",
                dtype=dict.fromkeys(as_text, str),
                # A class may be called NA. An empty cell is a missing value.
                keep_default_na=False,
                na_values=[""],
                skipinitialspace=True,
                skip_blank_lines=False,  # to count lines
                index_col=False,
                encoding_errors="replace",
                **how,
            )
    except pandas.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise ValueError(f"{path} must be a table of text, got: {reason}.") from None
    frame.index += text.count("\n", 0, skipped) + 2  # lines of the file
    frame = _without_empty_rows(frame)
    lines = _lines_without_rows(text, frame, above)
    file = _File(path, frame, how["encoding"], lines, twice=twice)
    if distribution:
        _name_distribution(file, distribution)
    return file


def _records(text: str, separator: str) -> list[list[str]]:
    """Return the cells of the first records that are not empty."""
    found: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            if any(cell.strip() for cell in record) or len(record) > 1:
                found.append(record)
            if len(found) > LOOK:
                break
    except csv.Error:  # too long a cell: a quotation mark is never closed
        pass
    return found


def _header(path: Path, names: list[str], rows: list[list[str]]) -> tuple[list[str], list[str]]:
    """Return the names of all columns, and those of Weka's distribution."""
    header = [" ".join(name.split()) for name in names]  # a name may hold a line break
    n, distribution = len(header), []
    more = len(rows[0]) - n
    if header[-1].lower() == "distribution" and more > 0:
        distribution = [f"distribution[{k}]" for k in range(more + 1)]
        header = header[:-1] + distribution
    elif more > 0 and all(not any(c.strip() for c in row[n:]) for row in rows):
        header += [""] * more  # separators at the end of every row
    elif more == 1 and len({row[0] for row in rows}) == len(rows):
        # R writes an index without a name, and without a separator before the other names.
        header = ["", *header]
    if len(rows[0]) > len(header):
        raise ValueError(f"{path} must have {n} columns, got {len(rows[0])} in line 2.")
    return [name or f"(column {i})" for i, name in enumerate(header, start=1)], distribution


def _distinct(names: list[str]) -> tuple[list[str], set[str]]:
    """Return names of which a second one has its number, and those that stand there twice."""
    seen: dict[str, int] = {}
    found, twice = [], set()
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            twice.add(name)
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found, twice | {f"{name} ({k})" for name in twice for k in range(2, seen[name] + 1)}


def _without_empty_rows(frame: Any) -> Any:
    pandas = import_optional("pandas", extra="report")
    empty = pandas.Series(True, index=frame.index)
    for name in frame:
        cells = frame[name]
        missing = cells.isna()
        if cells.dtype.kind not in "biuf" and empty.any():
            missing |= cells.astype(str).str.strip() == ""
        empty &= missing
        if not empty.any():
            return frame
    return frame[~empty]


def _lines_without_rows(text: str, frame: Any, above: int) -> dict[str, Any]:
    """Return the number of empty lines and of lines within quoted cells; warn of the latter."""
    lines = re.split(r"\r\n|\r|\n", text.rstrip("\r\n"))[above + 1 :]
    empty = sum(not line.strip(' ,;\t|"') for line in lines)
    inside = len(lines) - empty - len(frame)
    found = {"empty lines": empty} if empty else {}
    if inside <= 0:
        return found
    texts = [frame[name] for name in frame if frame[name].dtype.kind not in "biuf"]
    broken = np.any([cells.astype(str).str.contains("\n") for cells in texts], axis=0)
    row = int(np.argmax(broken)) + 1
    warn(
        f"{len(frame)} rows were read, and {inside} more lines stand within quoted cells, the "
        f"first of them in row {row}: is a quotation mark missing there?"
    )
    return found | {"lines within quoted cells": inside}


def _name_distribution(file: _File, columns: list[str]) -> None:
    """Name the columns of Weka's distribution by the classes, "1:no" and "2:yes"; mark no star."""
    names = {k: str(k) for k in range(len(columns))}
    frame = file.frame.copy()
    for name in file.names:
        if _is_label(name):
            parts = frame[name].str.extract(r"^\s*(\d+):(.*)$")
            if parts[0].notna().all():
                codes = dict(zip(parts[0].astype(int) - 1, parts[1].str.strip()))
                names |= {k: label for k, label in codes.items() if k in names}
                frame[name] = parts[1].str.strip()
    for column in columns:
        if frame[column].dtype.kind not in "biuf":
            frame[column] = frame[column].str.replace("*", "", regex=False)
    renamed = {column: f"distribution[{names[k]}]" for k, column in enumerate(columns)}
    file.frame = frame.rename(columns=renamed)
    file.lists["distribution"] = list(renamed.values())


# --- Lists in one cell ---------------------------------------------------------------------------


def _expand_lists(file: _File) -> None:
    """Replace columns of lists of numbers by one column for each place or class."""
    pandas = import_optional("pandas", extra="report")
    parts: list[Any] = []
    for name in file.names:
        cells = file.frame[name]
        if cells.dtype.kind in "biuf" or not _is_list(next(iter(cells.dropna()), None)):
            parts.append(cells)
            continue
        rows = [_as_row(cell) for cell in cells]
        keys = list(rows[0]) if rows[0] else []
        if not keys or len(keys) > LONGEST_LIST or any(row is None for row in rows):
            parts.append(cells)
            continue
        if any(row.keys() != rows[0].keys() for row in rows):  # type: ignore[union-attr]
            parts.append(cells)
            continue
        values = np.array([[row[key] for key in keys] for row in rows])  # type: ignore[index]
        columns = [f"{name}[{key}]" for key in keys]
        parts.append(pandas.DataFrame(values, index=file.frame.index, columns=columns))
        file.lists[name] = columns
    if len(file.lists):
        file.frame = pandas.concat(parts, axis=1)


def _is_list(cell: Any) -> bool:
    if isinstance(cell, str):
        return bool(re.match(r"\s*(?:[A-Za-z.]+\()?\s*[\[{]", cell))
    return isinstance(cell, list | tuple | dict | np.ndarray)


def _as_row(cell: Any) -> dict[str, float] | None:
    """Return the numbers of a cell by class or by place: a list, a mapping, Spark's vector.

    Lists of {"label": ..., "score": ...}, as of Hugging Face, are mappings too.
    """
    try:
        if isinstance(cell, str):
            cell = _parsed(cell)
        if isinstance(cell, np.ndarray):
            cell = cell.tolist()
        if isinstance(cell, dict) and isinstance(cell.get("values"), list | tuple | np.ndarray):
            if cell.get("indices") is not None and len(cell["indices"]) != cell.get("size"):
                return None
            cell = list(cell["values"])
        if isinstance(cell, dict):
            return {_plain(str(key)): float(value) for key, value in cell.items()}
        if cell and isinstance(cell[0], dict):
            pairs = {_plain(str(item["label"])): float(item["score"]) for item in cell}
            return dict(sorted(pairs.items())) if len(pairs) == len(cell) else None
        return {str(k): float(value) for k, value in enumerate(cell)}
    except (KeyError, TypeError, ValueError, RecursionError, SyntaxError, MemoryError):
        return None


def _parsed(text: str) -> Any:
    """Return the list or mapping of a cell, written as JSON, Python, numpy, torch or Spark do."""
    text = text.strip()
    if "{" in text:
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return ast.literal_eval(text)
    inside = text[text.index("[") + 1 : text.rindex("]")]
    return [float(part) for part in inside.replace(",", " ").split()]


# --- Labels --------------------------------------------------------------------------------------


def _label_columns(file: _File) -> list[str | None]:
    """Return the columns that may hold the labels; None stands for one column for each class."""
    by_name: dict[str, list[str]] = {}
    for name in file.names:
        by_name.setdefault(name.strip().lower(), []).append(name)
    found = [name for known in LABELS for name in by_name.get(known, [])]
    found = found or [name for known in OUTCOMES for name in by_name.get(known, [])]
    if len(found) > 1:
        found = [name for name in found if _could_be_labels(file.frame[name])] or found[:1]
    if len(found) > 1 and not _are_alike([file.frame[name] for name in found]):
        raise ValueError(
            f"label must name the column of true labels where {file.path} has several, got "
            f"{_listed(found)}: --label names one of them."
        )
    return [*found] or [None]


def _could_be_labels(cells: Any) -> bool:
    """Tell whether a column has a few values, at least two, and no fractions."""
    distinct = [_plain(str(value)) for value in cells.dropna().unique()]
    if not 2 <= len(distinct) <= max(8, len(cells) / 2):
        return False
    return not any(re.fullmatch(r"-?\d*\.\d+(e-?\d+)?", value) for value in distinct)


def _are_alike(columns: list[Any]) -> bool:
    """Tell whether columns are one another's labels by other names."""
    pandas = import_optional("pandas", extra="report")
    codes = [pandas.factorize(cells)[0] for cells in columns]
    return all(np.array_equal(codes[0], other) for other in codes[1:])


# --- Probabilities -------------------------------------------------------------------------------


@dataclass
class _Found:
    """Probabilities: of the second of two classes, or of every class."""

    proba: NDArray[np.float64]
    labels: list[str]
    columns: list[str]
    by_position: bool = False
    note: str = ""


@dataclass
class _Candidate:
    """Columns that may hold the probabilities, and their classes; None for the positive one."""

    columns: list[str]
    classes: list[str | None]
    logits: bool = False
    further: dict[str, str] = field(default_factory=dict)


class _Table:
    """The labels of a file, and the columns that may hold the probabilities."""

    def __init__(self, file: _File, label: str | None, others: Iterable[str]) -> None:
        self.file, self.path = file, file.path
        self.label_columns, self.y_true = (
            self._one_hot() if label is None else ([label], self._labels(label))
        )
        self.label = label or _listed(self.label_columns)
        taken = {*others, *self.label_columns}
        self.names = [name for name in file.names if name not in taken]
        self.by_plain = {_plain(name): name for name in reversed(self.names)}
        self.labels: list[str] = np.unique(self.y_true).tolist()
        self.of_outcomes = label is not None and label.strip().lower() in OUTCOMES
        self._graded: list[str] | None = None

    def _labels(self, name: str) -> NDArray[Any]:
        """Return the labels as text."""
        self.file.check_name(name)
        pandas = import_optional("pandas", extra="report")
        codes, distinct = pandas.factorize(self.file.frame[name])
        texts = np.array([_plain(str(value)) for value in distinct] or [""])
        missing = (codes < 0) | (texts[codes] == "")
        if missing.any():
            line = self.file.frame.index[missing.argmax()]
            raise ValueError(
                f"Column {name!r} of {self.path} must hold labels, got none in line {line}."
            )
        return texts[codes]

    def _one_hot(self) -> tuple[list[str], NDArray[Any]]:
        """Return columns of 0 and 1, one for each class, beside those of the probabilities."""
        names = set(self.file.names)
        for form in (*FORMS[1:], *FORMS_OF_LOGITS):
            inside = [label for label, _ in _in_form(form, self.file.names)]
            for truth in FORMS_OF_TRUTHS:
                columns = [truth.format(label) for label in inside]
                if form == truth or len(inside) < 2 or not set(columns) <= names:
                    continue
                values = np.column_stack([self.file.as_numbers(name) for name in columns])
                if _is_one_hot(values):
                    return columns, np.array(inside)[values.argmax(axis=1)]
                if np.isin(values, (0, 1)).all():
                    raise ValueError(
                        f"{self.path} must have one label for each sample, got several or none in "
                        f"columns {_listed(columns)}: write a file for each label."
                    )
        raise ValueError(
            f"{self.path} must have a column 'label' in its header, or one that the option label "
            f"names, got {_listed(self.file.names)}."
        )

    def find(self, given: dict[str, str | None] | None, pos_label: str | None) -> _Found:
        """Return the probabilities: those given, or the only candidate that fits."""
        if given is not None:
            return self._given(given, pos_label)
        if pos_label is not None and pos_label not in self.labels and len(self.labels) == 2:
            raise ValueError(
                f"pos_label must be one of the labels of {self.path}, {_listed(self.labels)}, got "
                f"{pos_label!r}."
            )
        found, faults = [], []
        for candidate in self._candidates():
            try:
                found.append((candidate, self._values(candidate)))
            except ValueError as error:
                faults.append((candidate, error))
        found = [pair for pair in found if not _is_0_or_1(pair[1])] or found
        # Beside probabilities, logits are what these were computed from.
        found = [pair for pair in found if not pair[0].logits] or found
        distinct = self._merged(found)
        if len(distinct) > 1:
            several = "; ".join(_listed(pair[0].columns[:3]) for pair in distinct[:4])
            raise ValueError(
                f"classes must say which columns of {self.path} to use, where several could "
                f"be the probabilities: {several}; {self._example_of(distinct[0][0])}."
            )
        if distinct:
            return self._result(*distinct[0], pos_label)
        single = self._only(pos_label, faults)
        return self._result(single, self._values(single), pos_label)

    def _example_of(self, candidate: _Candidate) -> str:
        named = zip(candidate.columns, candidate.classes)
        return "--classes " + " ".join(c if k is None else f"{c}={k}" for c, k in islice(named, 3))

    def _candidates(self) -> Iterator[_Candidate]:
        """Yield the columns that are named as exporters name probabilities."""
        for forms, logits in ((FORMS, False), (FORMS_OF_LOGITS, True)):
            for form in forms:
                yield from self._of_form(form, logits)
        for name, columns in self.file.lists.items():
            inside = [column[len(name) + 1 : -1] for column in columns]
            spelled = {text: label for label in self.labels for text in _spellings(label)}
            if set(self.labels) <= {spelled.get(key, key) for key in inside}:
                yield _Candidate(
                    columns, [spelled.get(key, key) for key in inside], _of_logits(name)
                )
        if len(self.labels) > 2:
            return
        words = ("confidence", "conf") if self.of_outcomes else ()
        for name in self.names:
            word = name.strip().lower()
            if word in SINGLE or word in LOGITS or word in words:
                yield _Candidate([name], [None], word in LOGITS)

    def _of_form(self, form: str, logits: bool) -> Iterator[_Candidate]:
        """Yield the columns of one form: of every label, or of one of two."""
        named: dict[str, str] = {}
        for label in self.labels:
            for text in _spellings(label):
                if (column := self.by_plain.get(form.format(text))) is not None:
                    named.setdefault(label, column)
        if not named:
            return
        place = {name: k for k, name in enumerate(self.names)}
        if len(named) == len(self.labels):
            further = {
                text: name
                for text, name in (_in_form(form, self.names) if form != "{}" else ())
                if name not in named.values()
            }
            if len(named) > 1 or further or form == "{}":
                ordered = sorted(named, key=lambda label: place[named[label]])
                yield _Candidate([named[k] for k in ordered], [*ordered], logits, further)
                if len(named) > 1:
                    return
        if len(self.labels) <= 2 and len(named) == 1:
            [(label, column)] = named.items()
            yield _Candidate([column], [label], logits)

    def _values(self, candidate: _Candidate) -> NDArray[np.float64]:
        """Return the probabilities of a candidate, whose classes may be completed; or raise."""
        for name in candidate.columns:
            self.file.check_name(name)
        if candidate.logits:
            return self._of_logits(candidate)
        if len(candidate.columns) == 1 and not (candidate.further or self._completes(candidate)):
            return self.file.probabilities(candidate.columns[0])
        own = [self.file.probabilities(name) for name in candidate.columns]
        if _sum_to_1(own):
            return np.column_stack(own)
        further = candidate.further
        if not further and self._completes(candidate):
            further = {_plain(name): name for name in self._others(candidate)}
        if further:
            rest = [self.file.as_numbers(name) for name in further.values()]
            inside = all(((values >= 0) & (values <= 1)).all() for values in rest)
            if inside and _sum_to_1([*own, *rest]):
                classes = dict(zip(candidate.columns, candidate.classes))
                classes |= {name: text for text, name in further.items()}
                candidate.columns = [name for name in self.names if name in classes]
                candidate.classes = [classes[name] for name in candidate.columns]
                values = dict(zip([*classes], [*own, *rest]))
                return np.column_stack([values[name] for name in candidate.columns])
        sums = np.sum(own, axis=0)
        row = int(np.abs(sums - 1).argmax())
        raise ValueError(
            f"{self.path} must have probabilities that sum to 1 in columns "
            f"{_listed(candidate.columns)}, got {sums[row]:g} in line "
            f"{self.file.frame.index[row]}; rounded ones need more digits."
        )

    def _completes(self, candidate: _Candidate) -> bool:
        """Tell whether other columns may be classes without samples: names are exact labels."""
        exact = set(candidate.columns) == {self.by_plain.get(k or "") for k in candidate.classes}
        return exact and len(candidate.columns) == len(self.labels) and bool(self.graded)

    def _others(self, candidate: _Candidate) -> list[str]:
        return [name for name in self.graded if name not in candidate.columns]

    def _of_logits(self, candidate: _Candidate) -> NDArray[np.float64]:
        values = [self.file.numbers(name, "finite logits") for name in candidate.columns]
        if not all(np.isfinite(value).all() for value in values):
            raise ValueError(
                f"{self.path} must hold finite logits in columns {_listed(candidate.columns)}."
            )
        if len(values) == 1:
            return expit(values[0])
        lists = self.file.lists.values()
        mirrored = len(values) == 2 and np.allclose(values[0], -values[1], atol=1e-6)
        if mirrored and not any(candidate.columns[0] in list_ for list_ in lists):
            raise ValueError(
                f"Columns {_listed(candidate.columns)} of {self.path} must be logits of a "
                "softmax, got one that is minus the other, as log-odds are: write probabilities."
            )
        return softmax(np.column_stack(values), axis=1)

    @property
    def graded(self) -> list[str]:
        """The columns of numbers in [0, 1] that are not all 0."""
        if self._graded is None:
            self._graded = [name for name in self.names if self._could_be(name)]
        return self._graded

    def _could_be(self, name: str) -> bool:
        cells = self.file.frame[name]
        if cells.dtype.kind not in "fi" and not _is_percent(cells):
            return False
        values = self.file.as_numbers(name)
        return bool(values.min() >= 0 and 0 < values.max() <= 1)

    def _merged(
        self, found: list[tuple[_Candidate, NDArray[np.float64]]]
    ) -> list[tuple[_Candidate, NDArray[np.float64]]]:
        """Return candidates that differ; those of more columns are kept."""
        kept: list[tuple[_Candidate, NDArray[np.float64]]] = []
        for candidate, values in sorted(found, key=lambda pair: -len(pair[0].columns)):
            for other, before in kept:
                if set(candidate.columns) <= set(other.columns):
                    break
                if _says_the_same(values, candidate.classes, before, other.classes):
                    break
            else:
                kept.append((candidate, values))
        return kept

    def _only(
        self, pos_label: str | None, faults: list[tuple[_Candidate, ValueError]]
    ) -> _Candidate:
        """Return the only column of probabilities, whatever its name; or raise what is wrong."""
        graded = [name for name in self.graded if not self._is_0_or_1(name)]
        if faults and (len(graded) != 1 or not self._far_off(faults[0][0].columns)):
            raise faults[0][1]
        if len(self.labels) > 2 or (self.file.lists and not graded):
            raise self._refusal()
        graded = [name for name in graded if name.strip().lower() in UNSURE] or graded
        named = [name for name in self.names if not name.startswith("(column ")]
        graded = graded or [name for name in named if self._nearly([name])] or named
        if len(graded) != 1:
            raise self._refusal()
        [column] = graded
        sure = column.strip().lower() in UNSURE or pos_label is not None
        self.file.probabilities(column)
        if not sure:
            raise self._unclear(column)
        return _Candidate(graded, [None])

    def _unclear(self, column: str, why: str = "") -> ValueError:
        labels = _both(self.labels)
        example = _positive_of(self.labels) or labels[-1]
        return ValueError(
            f"pos_label must say which class column {column!r} of {self.path} gives the "
            f"probability of: {' or '.join(labels)}, got None{why}; --classes {column}={example} "
            f"says so, and --label names another column of labels than {self.label!r}."
        )

    def _far_off(self, names: list[str]) -> bool:
        """Tell whether most numbers of the columns lie outside [0, 1]."""
        values = np.concatenate([self.file.as_numbers(name) for name in names])
        return bool((~((values >= 0) & (values <= 1))).mean() > 0.5)

    def _is_0_or_1(self, name: str) -> bool:
        return bool(np.isin(self.file.as_numbers(name), (0, 1)).all())

    def _nearly(self, names: list[str]) -> bool:
        """Tell whether most numbers of the columns lie within (0, 1)."""
        for name in names:
            values = self.file.as_numbers(name)
            if ((values > 0) & (values < 1)).mean() <= 0.5:
                return False
        return True

    def _refusal(self) -> ValueError:
        fits = _natural_order(self.graded)
        lists = [name for name in self.file.lists if set(self.file.lists[name]) <= set(fits)]
        if lists:
            columns = self.file.lists[lists[0]]
            return ValueError(
                f"classes must name the class of every place of the lists in column {lists[0]!r} "
                f"of {self.path}, whose labels are {_listed(self.labels)}: {_example(columns)}."
            )
        example = f" or one by one ({_example(fits)})" if len(fits) > 1 else ""
        nearly = ""
        for name in self.names:
            if name not in self.graded and self._nearly([name]):
                try:
                    self.file.probabilities(name)
                except ValueError as error:
                    nearly = f". {str(error)[:-1]}"
                    break
        return ValueError(
            f"{self.path} must have a column of probabilities for every class, called like its "
            f"label ({_listed(_natural_order(self.labels))}), or the option classes must name "
            f"them in the order of the classes{example}, got columns {_listed(self.names)} and "
            f"labels {self.label!r} (or --label names them); columns of numbers in [0, 1]: "
            f"{_listed(fits) or 'none'}{nearly}."
        )

    def _result(
        self, candidate: _Candidate, values: NDArray[np.float64], pos_label: str | None
    ) -> _Found:
        note = ""
        if candidate.logits:
            note = f", by the {'logistic function' if values.ndim == 1 else 'softmax'} of logits"
        elif any(_is_percent(self.file.frame[name]) for name in candidate.columns):
            note = ", percent signs divided by 100"
        if values.ndim == 1:
            column = candidate.columns[0]
            return self._positive(column, values, self._class(candidate, values, pos_label), note)
        classes = [str(name) for name in candidate.classes]
        if pos_label is not None and len(classes) == 2 and pos_label in classes:
            k = classes.index(pos_label)
            return self._positive(candidate.columns[k], values[:, k], pos_label, note)
        return _Found(values, classes, list(candidate.columns), note=note)

    def _class(
        self, candidate: _Candidate, values: NDArray[np.float64], pos_label: str | None
    ) -> str:
        """Return the class of the only column of probabilities."""
        [column], [named] = candidate.columns, candidate.classes
        if named is not None and pos_label not in (None, named):
            raise ValueError(
                f"pos_label must be the class that column {column!r} of {self.path} is called "
                f"after, {named}, got {pos_label!r}; if it is of that class, say so: --classes "
                f"{column}={pos_label}."
            )
        positive = _positive_of(self.labels)
        # It could be the confidence of the predicted class, which is never below 1/2.
        unclear = values.min() >= 0.5 and not self.of_outcomes
        if named or pos_label or not (positive is None or unclear):
            return str(named or pos_label or positive)
        why = "; it is never below 0.5, as the confidence in an answer" if unclear else ""
        raise self._unclear(column, why)

    def _positive(
        self, column: str, values: NDArray[np.float64], positive: str, note: str = ""
    ) -> _Found:
        others = sorted(set(self.labels) - {positive})
        if len(others) > 1:
            raise ValueError(
                f"{self.path} must have a column for every class, or two classes of which one is "
                f"{positive!r}; got the other labels {others}."
            )
        if np.isin(values, (0, 1)).all():
            warn(
                f"Column {column!r} of {self.path} holds 0 and 1 alone: if these are predicted "
                "labels, the errors are error rates; write predict_proba in place of predict."
            )
        negative = others[0] if others else f"not {positive}"
        return _Found(values, [negative, positive], [column], note=note)

    def _given(self, given: dict[str, str | None], pos_label: str | None) -> _Found:
        """Return the probabilities of the columns that the option names."""
        labels, columns = self.labels, list(given)
        logits = all(_of_logits(name) for name in columns)
        candidate = _Candidate(columns, [*given.values()], logits)
        if len(given) == 1:
            [(column, name)] = given.items()
            values = self._of_logits(candidate) if logits else self.file.probabilities(column)
            meant = name or _class_of_name(column, _both(labels))
            return self._positive(
                column, values, pos_label or meant or _positive_of(labels) or column
            )
        named = [
            name or _class_of_name(column, labels) or _plain(column)
            for column, name in given.items()
        ]
        if len(set(named)) < len(named):
            raise ValueError(f"classes must name distinct classes, got {_listed(named)}.")
        if logits:
            values = self._of_logits(candidate)
        else:
            values = np.column_stack([self.file.probabilities(name) for name in columns])
        unknown = set(labels) - set(named)
        numbers = {str(k) for k in range(len(given))}
        by_position = bool(unknown) and not any(given.values()) and set(labels) <= numbers
        if unknown and not (by_position and unknown == set(labels)):
            raise ValueError(
                f"The labels of {self.path} must be among the classes {_listed(named)}, or 0, "
                f"1, ... for them in this order, got {_listed(_natural_order(unknown))}; "
                f"name them one by one: {_example(given)}."
            )
        return _Found(values, named, columns, by_position)


def _of_logits(name: str) -> bool:
    return re.match(r"logits?(?![a-z])", name.strip().lower()) is not None


def _in_form(form: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the (text in the label's place, name) of columns of a form."""
    before, after = form.split("{}")
    for name in names:
        inside = name[len(before) : len(name) - len(after)]
        if inside and name.startswith(before) and name.endswith(after):
            yield inside, name


def _is_0_or_1(values: NDArray[np.float64]) -> bool:
    return bool(np.isin(values, (0, 1)).all())


def _sum_to_1(columns: list[NDArray[np.float64]]) -> bool:
    return bool(np.abs(np.sum(columns, axis=0) - 1).max() <= TOLERANCE)


def _says_the_same(
    values: NDArray[np.float64],
    classes: list[str | None],
    others: NDArray[np.float64],
    other_classes: list[str | None],
) -> bool:
    """Tell whether candidates hold the same probabilities, or one the largest of the other."""
    alike = lambda a, b: bool(np.allclose(a, b, rtol=0, atol=TOLERANCE))
    if values.ndim == others.ndim:
        order = [other_classes.index(k) if k in other_classes else -1 for k in classes]
        if values.ndim == 1:
            return classes == other_classes and alike(values, others)
        return values.shape == others.shape and -1 not in order and alike(values, others[:, order])
    if classes[0] in other_classes:
        return alike(values, others[:, other_classes.index(classes[0])])
    return any(alike(values, column) for column in (*others.T, others.max(axis=1)))
