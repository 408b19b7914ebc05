"""Tables of files of any form: text, JSON, parquet, feather, npz; lists in cells are expanded."""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils._output import ignoring, import_optional, shorten_error, warn
from ..utils._proba import TOLERANCE

# Names of a column of labels, the likeliest first.
LABELS = (
    *("label", "labels", "y_true", "y", "target", "targets", "true_label", "truth", "actual"),
    *("class", "gold", "gold_label", "ground_truth", "true_class", "y_test", "obs", "observed"),
)
# Whether an answer is right: labels of its confidence, where there are no others.
OUTCOMES = ("correct", "is_correct")
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
# Bytes of numbers that are no burden, whatever the size of the file.
SMALL = 2**30


def strip_name(name: str) -> str:
    """Return a label as columns name it: "1.0", as pandas reads a 1 beside a gap, becomes "1"."""
    name = unicodedata.normalize("NFC", name).strip()
    return name.split(".")[0] if re.fullmatch(r"-?\d+\.0+", name) else name


def sort_naturally(names: Iterable[str]) -> list[str]:
    """Return names sorted as people do: class_2 before class_10."""
    return sorted(
        names,
        key=lambda name: [
            (0, int(part), "") if part.isdecimal() and len(part) < 20 else (1, 0, part)
            for part in re.split(r"(\d+)", name)
            if part
        ],
    )


def list_names(names: Iterable[str]) -> str:
    names = list(names)
    more = f", ... ({len(names)} in all)" if len(names) > MOST_LISTED else ""
    shown = [name if len(name) <= 40 else f"{name[:37]}..." for name in names[:MOST_LISTED]]
    return ", ".join(shown) + more


# --- Files ---------------------------------------------------------------------------------------


@dataclass
class File:
    """A table of a file: its columns by name, rows numbered as in the file."""

    path: Path
    frame: Any
    encoding: str
    lines: dict[str, Any] = field(default_factory=dict)
    # Columns of lists, {name: their columns}.
    lists: dict[str, list[str]] = field(default_factory=dict)
    twice: set[str] = field(default_factory=set)
    # Whether probabilities are percentages, from 0 to 100.
    percent: bool = False
    _numbers: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return list(self.frame.columns)

    def check_name(self, name: str) -> None:
        """Raise if there is no such column, or if it stands there twice."""
        if name not in self.frame.columns:
            raise ValueError(
                f"{self.path} must have a column {name!r}, got {list_names(self.names)}."
            )
        if name in self.twice:
            raise ValueError(f"{self.path} must have distinct columns, got {name} twice.")

    def as_numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as numbers, NaN for others; 41.0% is .41, and 41 of percentages."""
        if name not in self._numbers:
            pandas = import_optional("pandas", extra="report")
            cells = self.frame[name]
            signs = is_percent(cells)
            if signs:
                cells = cells.astype(str).str.strip().str.removesuffix("%")
            numbers = pandas.to_numeric(cells, errors="coerce").to_numpy(
                np.float64, na_value=np.nan
            )
            # 0 and 1 alone are outcomes and marks, not percentages.
            percent = signs or (self.percent and not np.isin(numbers, (0, 1)).all())
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
            percent &= bool(((numbers >= 0) & (numbers <= 100)).all()) and not self.percent
            raise ValueError(
                f"Column {name!r} of {self.path} must hold {what}, got "
                f"{list_names([str(self.frame[name].iloc[row])])} in line {self.frame.index[row]}"
                f"{'; --percent (percent=True) divides percentages by 100' if percent else ''}."
            )
        return numbers

    def probabilities(self, name: str) -> NDArray[np.float64]:
        """Return a column of probabilities."""
        low, high = -TOLERANCE, 1 + TOLERANCE
        return self.numbers(name, "probabilities in [0, 1]", low, high).clip(0, 1)


def is_percent(cells: Any) -> bool:
    """Tell whether most of the first cells that are not empty end with a percent sign."""
    if cells.dtype.kind in "biuf":
        return False
    first = [str(cell).strip() for cell in islice(cells.dropna(), LOOK)]
    return 2 * sum(cell.endswith("%") for cell in first) > len(first)


def read_file(path: Path, asked: Sequence[str]) -> File:
    """Return the table of a file of any form that is read; labels and `asked` columns as text."""
    with path.open("rb") as opened:
        head = opened.read(HEAD)
    if head[:4] == b"PAR1":
        file = File(path, _read_arrow(path, "parquet"), "parquet")
    elif head[:6] == b"ARROW1" or head[:4] == b"FEA1":
        file = File(path, _read_arrow(path, "feather"), "feather")
    elif head[:4] in (b"PK\x03\x04", b"PK\x05\x06") and path.suffix.lower() == ".npz":
        file = _read_npz(path)
    else:
        text, how = _decode(path)
        if re.match(r"\s*(\[\s*\{|\{)", text):
            file = File(path, _read_json(path, text), "JSON")
        else:
            file = _read_text(path, text, how, asked)
    if not len(file.frame):
        raise ValueError(f"{path} must have one line for each sample, got none.")
    _expand_lists(file)
    if file.encoding in ("parquet", "feather", "JSON", "npz"):
        wanted = {*asked, *(name for name in file.names if is_label(name))}
        as_text = {name: _as_text(file.frame[name]) for name in file.names if name in wanted}
        file.frame = file.frame.assign(**as_text)
    return file


def is_label(name: str) -> bool:
    return name.strip().lower() in (*LABELS, *OUTCOMES, "predicted")


def _as_text(column: Any) -> Any:
    """Return values as text; missing values stay missing."""
    return column.astype(object).map(str, na_action="ignore")


def _number_rows(frame: Any) -> Any:
    """Return the frame with rows counted from 1 and distinct names as text."""
    frame = frame.reset_index(drop=True).rename(columns=str)
    frame.index += 1
    return frame


def _read_arrow(path: Path, form: str) -> Any:
    """Return the frame of a parquet or feather file."""
    pandas = import_optional("pandas", extra="report")
    try:
        if form == "parquet":
            found = import_module("pyarrow.parquet").read_metadata(path)
            _check_unpacked(path, 8 * found.num_rows * found.num_columns)
        frame = (pandas.read_parquet if form == "parquet" else pandas.read_feather)(path)
    except ImportError as error:
        raise ImportError(
            f"{path} is a {form} file, which pandas reads with pyarrow: pip install pyarrow"
        ) from error
    except Exception as error:  # of a broken file pyarrow and pandas raise any kind
        raise ValueError(
            f"{path} must be a whole {form} file, got: {shorten_error(error)}."
        ) from None
    frame = _number_rows(frame)
    if not frame.columns.is_unique:
        twice = sort_naturally(frame.columns[frame.columns.duplicated()])
        raise ValueError(f"{path} must have distinct columns, got {list_names(twice)} twice.")
    return frame


def _read_json(path: Path, text: str) -> Any:
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
    return _number_rows(frame)


def _read_npz(path: Path) -> File:
    """Return the arrays of an npz file: those of one number for each sample, and of K numbers."""
    pandas = import_optional("pandas", extra="report")
    try:
        with zipfile.ZipFile(path) as archive:
            _check_unpacked(path, sum(member.file_size for member in archive.infolist()))
        with np.load(path, allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files}
            if not all(isinstance(array, np.ndarray) for array in arrays.values()):
                raise ValueError("other files than arrays")
    except Exception as error:  # of a broken file numpy and zipfile raise any kind
        raise ValueError(
            f"{path} must be a whole npz file of arrays, got: {shorten_error(error)}."
        ) from None
    rows = {len(array) for array in arrays.values() if array.ndim in (1, 2)}
    if len(rows) != 1:
        shapes = list_names(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(
            f"{path} must hold arrays with one row for each sample, got shapes "
            f"{shapes or 'of none'}."
        )
    odd = [
        f"{name} of {array.dtype}" for name, array in arrays.items() if array.dtype.kind in "cV"
    ]
    if odd:
        raise ValueError(f"{path} must hold arrays of numbers or text, got {list_names(odd)}.")
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            columns[name] = array
        elif array.ndim == 2 and is_label(name) and is_one_hot(array):
            columns[name] = array.argmax(axis=1)
        elif array.ndim == 2:
            columns[name] = list(array)
    return File(path, _number_rows(pandas.DataFrame(columns)), "npz")


def _check_unpacked(path: Path, size: int) -> None:
    """Raise if a file is far larger unpacked: it would fill the memory."""
    if size > max(MOST_UNPACKED * path.stat().st_size, SMALL):
        raise ValueError(
            f"more than {MOST_UNPACKED} times its size unpacked, {size / 1e9:.0f} GB: keep labels "
            "and probabilities alone"
        )


def is_one_hot(values: NDArray[Any]) -> bool:
    return bool(np.isin(values, (0, 1)).all() and (values.sum(axis=1) == 1).all())


def _decode(path: Path) -> tuple[str, dict[str, Any]]:
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


def _read_text(path: Path, text: str, how: dict[str, Any], asked: Sequence[str]) -> File:
    """Return the table of a CSV-like file: separator, decimal sign and index are found."""
    pandas = import_optional("pandas", extra="report")
    skipped = _ABOVE.match(text).end()  # type: ignore[union-attr]
    body, above = text[skipped:], text.count("\n", 0, skipped)
    records = {separator: _read_records(body, separator) for separator in SEPARATORS}
    separator = max(records, key=lambda s: len(records[s][0]) if records[s] else 0)
    if not body.strip() or re.fullmatch('"?sep=.?"?', body.strip()):
        raise ValueError(f"{path} must have a header and one line for each sample, got no header.")
    if len(records[separator]) < 2:
        raise ValueError(
            f"{path} must have a header and one line for each sample, got one line, "
            f"{list_names([' '.join(body.split())])}; quotation marks must come in pairs."
        )
    first, *rows = records[separator]
    names, distribution = _read_header(path, first, rows)
    header, twice = _make_distinct(names)
    above += "".join(first).count("\n")
    comma = separator != "," and any(re.match(r"\s*-?\d*,\d", cell) for r in rows for cell in r)
    as_text = [name for name in header if name in asked or is_label(name)]
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
    frame = _drop_empty_rows(frame)
    lines = _count_lines_without_rows(text, frame, above)
    file = File(path, frame, how["encoding"], lines, twice=twice)
    if distribution:
        _name_distribution(file, distribution)
    return file


def _read_records(text: str, separator: str) -> list[list[str]]:
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


def _read_header(
    path: Path, names: list[str], rows: list[list[str]]
) -> tuple[list[str], list[str]]:
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


def _make_distinct(names: list[str]) -> tuple[list[str], set[str]]:
    """Return names of which a second one has its number, and those that stand there twice."""
    seen: dict[str, int] = {}
    found, twice = [], set()
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            twice.add(name)
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found, twice | {f"{name} ({k})" for name in twice for k in range(2, seen[name] + 1)}


def _drop_empty_rows(frame: Any) -> Any:
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


def _count_lines_without_rows(text: str, frame: Any, above: int) -> dict[str, Any]:
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


def _name_distribution(file: File, columns: list[str]) -> None:
    """Name the columns of Weka's distribution by the classes, "1:no" and "2:yes"; mark no star."""
    names = {k: str(k) for k in range(len(columns))}
    frame = file.frame.copy()
    for name in file.names:
        if is_label(name):
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


def _expand_lists(file: File) -> None:
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
            cell = _parse_cell(cell)
        if isinstance(cell, np.ndarray):
            cell = cell.tolist()
        if isinstance(cell, dict) and isinstance(cell.get("values"), list | tuple | np.ndarray):
            if cell.get("indices") is not None and len(cell["indices"]) != cell.get("size"):
                return None
            cell = list(cell["values"])
        if isinstance(cell, dict):
            return {strip_name(str(key)): float(value) for key, value in cell.items()}
        if cell and isinstance(cell[0], dict):
            pairs = {strip_name(str(item["label"])): float(item["score"]) for item in cell}
            return dict(sorted(pairs.items())) if len(pairs) == len(cell) else None
        return {str(k): float(value) for k, value in enumerate(cell)}
    except (KeyError, TypeError, ValueError, RecursionError, SyntaxError, MemoryError):
        return None


def _parse_cell(text: str) -> Any:
    """Return the list or mapping of a cell, written as JSON, Python, numpy, torch or Spark do."""
    text = text.strip()
    if "{" in text:
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return ast.literal_eval(text)
    inside = text[text.index("[") + 1 : text.rindex("]")]
    return [float(part) for part in inside.replace(",", " ").split()]
