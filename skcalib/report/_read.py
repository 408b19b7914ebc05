"""Read predictions from a CSV-like or parquet file, as pandas writes them."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils.checking._names import label_of, natural_order, plain_label, sets_of_columns
from ..utils.checking._proba import ROW_SUM_TOLERANCE
from ..utils.meta._optional import import_optional
from ..utils.meta._warnings import ignoring, warn

LABELS = ("label", "labels", "y_true", "y", "target", "true_label", "truth", "actual", "class")
# Pairs of labels; the second is the positive one.
PAIRS = (("0", "1"), ("-1", "1"), ("false", "true"), ("no", "yes"), ("n", "y"))
# Most columns to list in a message.
MOST_LISTED = 12
SEPARATORS = ",;\t|"
# First bytes of a file, among which a zero says that it is binary.
HEAD = 4096


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
    whole = _read_parquet(path) if _is_parquet(path) else None
    if whole is None:
        text, how = _decoded(path)
        header, layout, above = _layout(text, path)
    else:
        header, how = list(whole.columns), {"encoding": "parquet"}
    label = label or _label_column(header, path)
    special = [label, *([sample_weight] if sample_weight else []), *by]
    together = [] if groups is None else [groups]
    special += together
    given = None if classes is None else _classes_given(classes, header)
    for name in (*special, *(given or ())):
        if name not in header:
            raise ValueError(f"{path} must have a column {name!r}, got {_listed(header)}.")
    as_text = [label, *by, *together]
    if whole is None:
        frame = _read(path, header, {**how, **layout}, as_text=as_text)
        rows = _lines_without_rows(text, frame, above)
    else:
        frame = whole.assign(**{name: _as_text(whole[name]) for name in as_text})
        rows = {}
    y_true, found = _labels(frame, label, path)
    table = _Table(path, frame, [name for name in header if name not in special], label)
    judged = table.judged(found, given, pos_label)
    if judged.pop("by_position", False):
        y_true = np.array(judged["labels"])[y_true.astype(int)]
    columns = judged.pop("columns")
    used = {*special, *columns}
    ignored = ", ".join(name for name in header if name not in used)
    return {
        "y_true": y_true,
        **judged,
        "sample_weight": table.numbers(sample_weight) if sample_weight else None,
        "groups": None if groups is None else _group(frame[groups]),
        "by": {name: _group(frame[name]) for name in by} or None,
        "source": {
            "file": path.name,
            "rows": len(frame),
            **rows,
            "encoding": how["encoding"],
            "column of labels": label,
            "columns of probabilities": _columns_and_classes(columns, judged),
            "columns not used": ignored or "-",
        },
    }


def _columns_and_classes(columns: list[str], judged: dict[str, Any]) -> str:
    """Return the list of columns, with the class that each was read as."""
    names = [judged["pos_label"]] if "pos_label" in judged else judged["labels"]
    return _listed(c if c == n else f"{c} (of {n})" for c, n in zip(columns, names))


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


def _decoded(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the text of a file, and the options with which pandas reads it."""
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
    if b"\0" in data[:HEAD]:
        raise ValueError(
            f"{path} must be a table of text, got binary data: write it as CSV, plain or gzip, or "
            "as parquet."
        )
    try:
        return data.decode("utf-8-sig"), options  # pandas drops the byte order mark itself
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), {**options, "encoding": "cp1252"}


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _read_parquet(path: Path) -> Any:
    """Return a DataFrame of a parquet file, with rows counted from 1 and names as text."""
    pandas = import_optional("pandas", extra="report")
    try:
        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise ImportError(
            f"{path} is a parquet file, which pandas reads with pyarrow: pip install pyarrow"
        ) from error
    except (OSError, ValueError) as error:  # pyarrow's own errors are of these kinds
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path} must be a whole parquet file, got: {reason}.") from None
    frame = frame.reset_index(drop=True).rename(columns=str)
    if not frame.columns.is_unique:
        twice = natural_order(frame.columns[frame.columns.duplicated()])
        raise ValueError(f"{path} must have distinct columns, got {_listed(twice)} twice.")
    frame.index += 1
    return frame


def _as_text(column: Any) -> Any:
    """Return values as text; missing values stay missing."""
    return column.astype(object).map(str, na_action="ignore")


def _layout(text: str, path: Path) -> tuple[list[str], dict[str, Any], int]:
    """Return names of columns, options of pandas, and the line breaks before the header's end.

    Empty lines and Excel's ``sep=;`` above the header are skipped.
    """
    above = 0  # records above the header
    body = text
    while True:
        line, _, rest = body.partition("\n")
        if line.strip() and not re.fullmatch('"?sep=.?"?', line.strip()):
            break
        if not rest:
            raise ValueError(
                f"{path} must have a header and one line for each sample, got no header."
            )
        above, body = above + 1, rest
    first = {s: _records(body, s) for s in SEPARATORS}
    separator = max(first, key=lambda s: len(first[s][0]) if first[s] else 0)
    if len(first[separator]) < 2:
        raise ValueError(
            f"{path} must have a header and one line for each sample, got one line, "
            f"{_listed([' '.join(body.split())])}; quotation marks must come in pairs."
        )
    names, cells = first[separator]
    header = [" ".join(name.split()) for name in names]  # a name may hold a line break
    # R writes an index without a name, and without a separator before the other names.
    header = ["", *header] if len(cells) == len(header) + 1 else header
    header = [name or f"(column {i})" for i, name in enumerate(header, start=1)]
    if len(cells) > len(header):
        raise ValueError(f"{path} must have {len(header)} columns, got {len(cells)} in line 2.")
    if len(set(header)) < len(header):
        twice = natural_order({name for name in header if header.count(name) > 1})
        raise ValueError(f"{path} must have distinct columns, got {_listed(twice)} twice.")
    comma = separator != "," and any(re.match(r"\s*-?\d*,\d", cell) for cell in cells)
    layout = {"sep": separator, "decimal": "," if comma else ".", "header": above}
    return header, layout, above + "".join(names).count("\n")


def _records(text: str, separator: str) -> list[list[str]]:
    """Return the cells of the first two records that are not empty, if there are two."""
    found: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            if any(cell.strip() for cell in record) or len(record) > 1:
                found.append(record)
            if len(found) == 2:
                break
    except csv.Error:  # too long a cell: a quotation mark is never closed
        pass
    return found


def _label_column(header: list[str], path: Path) -> str:
    found = [name for known in LABELS for name in header if name.lower() == known]
    if not found:
        raise ValueError(
            f"{path} must have a column 'label' in its header, or one that the option label "
            f"names, got {_listed(header)}."
        )
    return found[0]


def _read(path: Path, header: list[str], options: dict[str, Any], *, as_text: list[str]) -> Any:
    """Return a DataFrame: columns in `as_text` as they are written, others as numbers."""
    pandas = import_optional("pandas", extra="report")
    numbers = [name for name in header if name not in as_text]
    try:
        # No warning about columns of numbers and words: an error names them if they are used.
        with ignoring(pandas.errors.DtypeWarning):
            # Reading the file itself, with low_memory, is three times as fast.
            frame = pandas.read_csv(
                path,
                names=header,
                dtype=dict.fromkeys(as_text, str),
                # A class may be called NA. In columns of numbers, an empty cell is NaN.
                keep_default_na=False,
                na_values={name: [""] for name in numbers},
                skipinitialspace=True,
                skip_blank_lines=False,  # to count lines
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
    texts = np.array([plain_label(str(value)) for value in distinct] or [""])
    missing = (codes < 0) | (texts[codes] == "")
    if missing.any():
        line = frame.index[missing.argmax()]
        raise ValueError(f"Column {name!r} of {path} must hold labels, got none in line {line}.")
    return texts[codes], np.unique(texts).tolist()


def _positive_of(labels: list[str]) -> str | None:
    """Return the positive one of labels such as 0 and 1, as written; None for others."""
    for pair in PAIRS:
        if {label.lower() for label in labels} <= set(pair):
            return next((label for label in labels if label.lower() == pair[1]), pair[1])
    return None


def _group(column: Any) -> NDArray[Any]:
    codes, distinct = import_optional("pandas", extra="report").factorize(column)
    names = [
        plain_label(str(value)) or None for value in distinct
    ]  # an empty cell is a missing value
    return np.array([*names, None], dtype=object)[codes]  # and so is -1, the last one


def _both(labels: list[str]) -> list[str]:
    """Return both labels of a pair such as 0 and 1 if only one of them occurs."""
    if len(labels) == 1:
        for pair in PAIRS:
            if labels[0].lower() in pair:
                return list(pair) if labels[0] in pair else [x.title() for x in pair]
    return labels


def _classes_given(
    classes: Sequence[str] | Mapping[str, str], header: list[str]
) -> dict[str, str | None]:
    """Return {column: class}; the class is None if only the column is given."""
    if isinstance(classes, Mapping):
        return {str(column): str(name) for column, name in classes.items()}
    given: dict[str, str | None] = {}
    for item in classes:
        column, equals, name = item.rpartition("=")
        # The name of a column may contain an equals sign: P(y=1).
        alone = item in header or not equals
        given[item if alone else column] = None if alone else name
    if len(given) < len(classes):
        raise ValueError(f"classes must name distinct columns, got {_listed(list(classes))}.")
    return given


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f", ... ({len(names)} in all)" if len(names) > MOST_LISTED else ""
    shown = [name if len(name) <= 40 else f"{name[:37]}..." for name in names[:MOST_LISTED]]
    return ", ".join(shown) + more


def _example(columns: Iterable[str]) -> str:
    """Return an example of the option that assigns columns to classes."""
    return "--classes " + " ".join(f"{name}=CLASS" for name in list(columns)[:3])


class _Table:
    """The columns of a file that may hold probabilities."""

    def __init__(self, path: Path, frame: Any, names: list[str], label: str) -> None:
        self.path, self.frame, self.names, self.label = path, frame, names, label
        self.fits = [name for name in names if self._could_be(name)]

    def judged(
        self, labels: list[str], classes: dict[str, str | None] | None, pos_label: str | None
    ) -> dict[str, Any]:
        """Return probabilities, the labels of their columns, and the names of the columns."""
        if classes is not None:
            return self._given(labels, classes, pos_label)
        if pos_label is not None and pos_label not in labels and len(labels) == 2:
            raise ValueError(
                f"pos_label must be one of the labels of {self.path}, {_listed(labels)}, got "
                f"{pos_label!r}."
            )
        named = self._named(labels)
        if pos_label is not None:
            column = named.get(pos_label, pos_label if pos_label in self.names else None)
            return self._positive(labels, column or self._single(labels, pos_label), pos_label)
        if len(named) == 1 and len(labels) == 2 and not self._fills(list(named.values())):
            [(name, column)] = named.items()
            return self._positive(labels, column, name)
        if not named:
            column = self._single(labels)
            return self._positive(labels, column, self._class_of(column, labels))
        if not set(labels) <= set(named):
            raise self._refusal(labels)
        columns = self._fills(list(named.values()))
        if columns is None:
            sums = self._sums(list(named.values()))
            row = np.abs(sums - 1).argmax()
            raise ValueError(
                f"{self.path} must have probabilities that sum to 1 in columns "
                f"{_listed(named.values())}, got {sums[row]:g} in line {self.frame.index[row]}; "
                "rounded ones need more digits."
            )
        names = {column: name for name, column in named.items()}
        columns = [name for name in self.names if name in columns]
        return self._result(
            columns, [names.get(column, plain_label(column)) for column in columns]
        )

    def _given(
        self, labels: list[str], classes: dict[str, str | None], pos_label: str | None
    ) -> dict[str, Any]:
        if len(classes) == 1:
            [(column, name)] = classes.items()
            meant = name or label_of(column, _both(labels), self.label)[0]
            return self._positive(
                labels, column, pos_label or meant or _positive_of(labels) or column
            )
        named = [name or self._meant(column, labels) for column, name in classes.items()]
        if len(set(named)) < len(named):
            raise ValueError(f"classes must name distinct classes, got {_listed(named)}.")
        found = self._result(list(classes), named)
        unknown = set(labels) - set(found["labels"])
        by_position = not any(classes.values()) and unknown <= {
            str(k) for k in range(len(classes))
        }
        if unknown and not (by_position and unknown == set(labels)):
            raise ValueError(
                f"The labels of {self.path} must be among the classes {_listed(named)}, or 0, "
                f"1, ... for them in this order, got {_listed(natural_order(unknown))}; "
                f"name them one by one: {_example(classes)}."
            )
        return {**found, "by_position": bool(unknown)}

    def _meant(self, column: str, labels: list[str]) -> str:
        """Return the label that a column is clearly named after, else its own name."""
        label, sure = label_of(column, labels, self.label)
        return label if label is not None and sure else plain_label(column)

    def _named(self, labels: list[str]) -> dict[str, str]:
        """Return {label: column}, by names that equal the labels or differ only by them."""
        sets = sets_of_columns(self.names, labels, self.label) if len(labels) > 1 else []
        if len(sets) > 1:
            sets = [s for s in sets if set(s.values()) <= set(self.fits)] or sets
            # Prefer sets of probabilities to sets of zeros and ones (predicted classes).
            graded = [s for s in sets if not all(self._is_0_or_1(name) for name in s.values())]
            sets = graded or sets
            sets = [s for s in sets if self._fills(list(s.values()))] or sets
        if len(sets) > 1:
            several = "; ".join(_listed(list(s.values())[:3]) for s in sets[:4])
            raise ValueError(
                f"classes must say which columns of {self.path} are judged, where several sets "
                f"have the names of the labels: {several}."
            )
        if sets:
            # Further columns of the same form are classes only if rows need them to sum to 1.
            own = {name: sets[0][name] for name in labels}
            return own if self._fills(list(own.values())) == list(own.values()) else sets[0]
        return {plain_label(name): name for name in self.names if plain_label(name) in labels}

    def _is_0_or_1(self, name: str) -> bool:
        return bool(self.frame[name].isin([0, 1]).all())

    def _class_of(self, column: str, labels: list[str]) -> str:
        """Return the class of the only column of probabilities."""
        positive = _positive_of(labels)
        label, sure = label_of(column, _both(labels), self.label)
        if label is not None and (sure or label == positive):
            return label
        # It could be the confidence of the predicted class, which is never below 1/2.
        if not sure or positive is None or self.probabilities(column).min() >= 0.5:
            raise ValueError(
                f"pos_label must say which class column {column!r} of {self.path} gives the "
                f"probability of: {' or '.join(labels)}, got None."
            )
        return positive

    def _fills(self, columns: list[str]) -> list[str] | None:
        """Return the columns, or these with all others, if their rows sum to 1; else None."""
        others = [name for name in self.fits if name not in columns]
        for chosen in (columns, [*columns, *others]):
            if np.abs(self._sums(chosen) - 1).max() <= ROW_SUM_TOLERANCE:
                return chosen
        return None

    def _sums(self, columns: list[str]) -> NDArray[np.float64]:
        return sum((self.probabilities(name) for name in columns), np.zeros(len(self.frame)))

    def _could_be(self, name: str) -> bool:
        """Tell whether a column may be probabilities: numbers in [0, 1], not all 0."""
        values = self.frame[name]
        if values.dtype.kind not in "fi":
            return False
        return bool(values.min() >= 0 and 0 < values.max() <= 1 and not values.isna().any())

    def _mostly_fits(self, name: str) -> bool:
        cells = import_optional("pandas", extra="report").to_numeric(
            self.frame[name], errors="coerce"
        )
        inside = cells.between(0, 1) & ~cells.isin([0, 1])
        return bool(inside.mean() > 0.5)

    def _single(self, labels: list[str], pos_label: str | None = None) -> str:
        """Return the only column of probabilities, whatever its name."""
        named = [name for name in self.names if not name.startswith("(column ")]
        # Columns of 0 and 1 may be predicted classes: prefer others; then columns that are mostly
        # probabilities (the error will name the bad cell); then the only column, whatever it is.
        graded = [name for name in self.fits if not self._is_0_or_1(name)]
        graded = graded or [name for name in self.names if self._mostly_fits(name)] or named
        if len(graded) != 1 or len(labels) > 2:
            raise self._refusal(labels)
        label, sure = label_of(graded[0], _both(labels), self.label)
        if None not in (pos_label, label) and sure and label != pos_label:
            raise ValueError(
                f"pos_label must be the class that column {graded[0]!r} of {self.path} is called "
                f"after, {label}, got {pos_label!r}; if it is of that class, say so: --classes "
                f"{graded[0]}={pos_label}."
            )
        return graded[0]

    def _refusal(self, labels: list[str]) -> ValueError:
        fits = natural_order(self.fits)
        example = f" or one by one ({_example(fits)})" if len(fits) > 1 else ""
        return ValueError(
            f"{self.path} must have a column of probabilities for every class, called like its "
            f"label ({_listed(natural_order(labels))}), or the option classes must name them in "
            f"the order of the classes{example}, got columns {_listed(self.names)}; columns of "
            f"numbers in [0, 1]: {_listed(fits) or 'none'}{self._nearly()}."
        )

    def _nearly(self) -> str:
        """Return a sentence on the first bad cell of a column that is mostly probabilities."""
        for name in self.names:
            if name not in self.fits and self._mostly_fits(name):
                try:
                    self.probabilities(name)
                except ValueError as error:
                    return f". {str(error)[:-1]}"
        return ""

    def _positive(self, labels: list[str], column: str, positive: str) -> dict[str, Any]:
        others = sorted(set(labels) - {positive})
        if len(others) > 1:
            raise ValueError(
                f"{self.path} must have a column for every class, or two classes of which one is "
                f"{positive!r}; got the other labels {others}."
            )
        negative = others[0] if others else f"not {positive}"
        if self._is_0_or_1(column):
            warn(
                f"Column {column!r} of {self.path} holds 0 and 1 alone: if these are predicted "
                "labels, the errors are error rates; write predict_proba in place of predict."
            )
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
