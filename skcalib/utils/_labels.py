"""Class labels, names of columns, and groups of samples that belong together."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from ._arrays import as_array, as_floats, check_readable, describe_form, is_missing
from ._backends import to_host
from ._compat import _num_samples
from ._output import name_argument, warn

# Class labels: integers or strings in, positions among the classes out.
#
# The columns of a DataFrame of probabilities are named by labels, or they are positions.
# Anything in between is an error: a guess could score one class by the probability of another.

# Larger floats do not fit into int64.
_INT64_END = 2.0**63

NO_REGRESSION = (
    "Fractions are targets of a regression: make classes of them, for example by numpy.digitize; "
    "for intervals of a regression take a package of conformal prediction, such as MAPIE."
)


def as_labels(values: ArrayLike, *, name: str) -> NDArray[Any]:
    """Return labels as a non-empty 1-D array of integers or of strings.

    Booleans and whole floats become integers. NaN, fractions and mixed types are errors.
    """
    array = as_array(values, name=name)
    if array.ndim != 1 or array.shape[0] == 0:
        got = describe_form(array, values)
        raise ValueError(f"{name} must have shape (n,) with n >= 1, got {got}.")
    if array.dtype.kind == "U":
        array = _undo_text(array, values)
    if array.dtype.kind in "OT":
        array = _convert_objects(array, name)
    if array.dtype.kind == "f":
        fault = ~(np.isfinite(array) & (array == np.floor(array)))
        if fault.any():
            row = int(np.argmax(fault))
            # Fractions in [0, 1] may be probabilities in the place of labels.
            beyond = bool(((array < 0) | (array > 1))[fault & np.isfinite(array)].any())
            hint = f" {NO_REGRESSION}" if beyond else ""
            raise ValueError(
                f"{name} must hold class labels, integers or strings, got {float(array[row])} "
                f"in row {row}.{hint}"
            )
        # In float64: float16 does not reach 2**63, and int64 ends one below it.
        wide = array.astype(np.float64, copy=False)
        too_large = (wide < -_INT64_END) | (wide >= _INT64_END)
        if too_large.any():
            row = int(np.argmax(too_large))
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


def _convert_objects(array: NDArray[Any], name: str) -> NDArray[Any]:
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
            f"{name} must be 2-dimensional and not empty, got {describe_form(array, values)}."
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
    if type(y) is np.ndarray and _are_few_integers(y):
        return y
    check_readable(y, name=name)
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"{name} should be a 1d array of one label for every sample, got an array of shape "
            f"{shape} instead. Where a sample may have several labels (multilabel), fit one "
            "estimator per label, as sklearn.multioutput.MultiOutputClassifier does."
        )
    with name_argument(name):
        labels = column_or_1d(to_host(y), warn=True)
        if labels.dtype.kind in "mMV":
            raise TypeError(f"{name} must hold class labels, got dtype {labels.dtype}.")
        assert_all_finite(labels, input_name=name)
    if labels.dtype.kind == "U":
        _check_one_type(_undo_text(labels, y).ravel(), name)
    if labels.dtype.kind == "O" and {bool, np.bool_} >= {type(label) for label in labels}:
        labels = labels.astype(bool)
    try:
        with name_argument(name):
            check_classification_targets(labels)
    except (TypeError, ValueError) as error:  # objects that do not compare, or of several types
        _check_one_type(labels, name)
        if "continuous" not in str(error):
            raise
        raise ValueError(
            f"{name} must hold class labels. Unknown label type: continuous. {NO_REGRESSION}"
        ) from error
    return labels


def _are_few_integers(y: NDArray[Any]) -> bool:
    """Return whether labels are classes for sure, which scikit-learn takes longer to find out."""
    if y.ndim != 1 or y.dtype.kind not in "biu" or not y.size:
        return False
    return 2 * (int(y.max()) - int(y.min()) + 1) <= len(y)


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


def find_positions(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the position of every label in `classes`, which may have any order; -1 if absent."""
    integers = labels.dtype.kind in "iu" and classes.dtype.kind in "iu"
    if integers and (classes == np.arange(len(classes))).all():
        # Integers are their own positions: ten times as fast as the search below.
        if labels.size and labels.min() >= 0 and labels.max() < len(classes):
            return labels.astype(np.intp, copy=False)
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

    Unknown labels are an error; :func:`find_positions` marks them with -1 instead.
    """
    positions = find_positions(y, classes)
    if len(positions) and positions.min() < 0:
        row = int(np.argmin(positions))
        unknown = y[row : row + 1].tolist()[0]
        raise ValueError(
            f"{name} must hold labels among {format_labels(classes)}, got {shorten(unknown)} in "
            f"row {row}."
        )
    return positions


def merge_classes(
    classes: NDArray[Any], others: NDArray[Any], *, name: str, before: str = "those before"
) -> NDArray[Any]:
    """Return the sorted classes of both; numbers and text do not mix."""
    text = {isinstance(label, str) for label in [*classes.tolist()[:1], *others.tolist()[:1]]}
    if len(text) > 1:
        raise ValueError(
            f"{name} must hold labels of the type of {before}, {format_labels(classes)}, "
            f"got {format_labels(others)}."
        )
    return np.union1d(classes, others)


# A message holds two lists at most, and stays below 500 characters.
_MOST_LETTERS, _MOST_OF_A_NAME, _MOST_NAMES = 150, 50, 10


def format_labels(classes: Iterable[Any]) -> str:
    """Return classes or names as text for messages: ten or as many as fit, and how many more."""
    items = [
        shorten(item)
        for item in (classes.tolist() if isinstance(classes, np.ndarray) else classes)
    ]
    n_shown = 0
    most = min(len(items), _MOST_NAMES)
    while n_shown < most and len(", ".join(items[: n_shown + 1])) <= _MOST_LETTERS:
        n_shown += 1
    rest = len(items) - n_shown
    return f"[{', '.join(items[:n_shown])}{f' and {rest} more' if rest else ''}]"


def shorten(value: Any) -> str:
    """Return a value as text for messages, a long one without its end."""
    text = repr(value)
    return text if len(text) <= _MOST_OF_A_NAME else f"{text[: _MOST_OF_A_NAME - 3]}..."


def check_column_labels(
    labels: NDArray[Any], n_columns: int, *, what: str, name: str = "labels"
) -> None:
    """Raise unless `labels` are as many distinct classes as there are columns."""
    if len(labels) != n_columns or len(set(labels.tolist())) != n_columns:
        raise ValueError(
            f"{name} must hold {n_columns} distinct classes, {what}, got {format_labels(labels)}."
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
        # P(y > k) for all but the last class.
        hint = (
            " Columns of an ordinal model, P(y > k), have to become one of every class."
            if len(classes) == n_columns + 1
            else ""
        )
        raise ValueError(
            f"labels must name the columns of {columns_name} where {y_name} lacks a class, "
            f"got {len(classes)} classes in {y_name}, {format_labels(classes)}, and {n_columns} "
            f"columns.{hint}"
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
        positive = find_positive(pos_label, labels)
        return (codes, labels) if positive else (1 - codes, labels[::-1])
    classes = _find_binary_classes(y)
    if pos_label is None:
        return _encode_signs(y, classes)
    if len(classes) == 2:
        positive = find_positive(pos_label, classes)
    else:
        # The other class does not occur: the one label is positive or not.
        value = check_labels_like([pos_label], name="pos_label", n_samples=1, like=y)
        positive = int(value[0] == classes[0])
        return np.full(len(y), positive, dtype=np.intp), np.append(classes, value)
    codes = (y == classes[positive]).astype(np.intp)
    return codes, classes if positive else classes[::-1]


def _find_binary_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Return the classes of binary labels, at most two."""
    # Both classes, even if only one of them occurs.
    if not _is_text(y) and y.min() >= 0 and y.max() <= 1:
        return np.arange(2)
    classes = np.unique(y)
    if len(classes) > 2:
        raise ValueError(
            "y_true must hold two classes where y_proba has shape (n_samples,), the probability "
            f"of the positive class, got {len(classes)}: {format_labels(classes)}."
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


def find_positive(pos_label: Any, classes: NDArray[Any]) -> int:
    """Return the position of the positive label among the two classes."""
    value = as_labels([pos_label], name="pos_label")
    if _is_text(value) == _is_text(classes):
        found = np.flatnonzero(classes == value[0])
        if len(found):
            return int(found[0])
    raise ValueError(
        f"pos_label must be one of {format_labels(classes)}, got {shorten(pos_label)}."
    )


def get_column_names(y_proba: Any) -> list[Any] | None:
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
        positions = find_positions(wanted, classes)
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
        f"{name} must have columns that are named by the labels, {format_labels(wanted)}, or no "
        "names, "
        f"got the columns {format_labels(np.array(names, dtype=object))}."
    )


def get_row_names(table: Any) -> list[Any] | None:
    """Return the names of the rows of a frame, None where they are 0, ..., n_rows - 1."""
    index = getattr(table, "index", None)
    if index is None or callable(index):
        return None
    names = list(index)
    return None if names == list(range(len(names))) else names


def order_columns(table: Any, classes: NDArray[Any], *, name: str) -> Any:
    """Return a table with a column for every class in order: those of a frame by their names."""
    names = get_column_names(table)
    if names is None:
        return table
    return match_names(as_floats(table, name=name), names, classes, classes, name=name)[0]


# Samples that belong together: by the groups that users give, and by equal rows of X.
#
# Groups come as users have them: texts, numbers, intervals, categories, columns. Without them,
# samples with equal rows and equal labels may be duplicates: the nearest neighbor of a sample
# could be its duplicate, and the training part of a fold could hold duplicates of the part left
# out. The module also corrects the p-values of many groups.

# With fewer distinct rows, ten for each of five folds, equal rows are expected and are no
# duplicates: many people give the same answers to three yes-or-no questions.
_FEWEST_DISTINCT = 50
# So many distinct rows do not all occur equally often by chance: 40 samples that fall at random
# in 20 entries are two in each with a probability of 7e-11.
_DISTINCT_OF_TABLE = 20
# More duplicates than this fraction of the rows bring a warning. Fits do not depend on it.
_MANY_DUPLICATES = 0.1
# Hashes in the sketch of the samples of a fit: the part that is seen again is known within .06.
_SKETCHED = 256


def encode_groups(
    groups: Any, n_samples: int, *, name: str = "groups"
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the groups that occur, sorted, and the position of every sample among them.

    Categories keep their order. Missing values (None, NaN, NaT, NA) form the last group, called
    None. Combinations of several columns are called "name=value, name=value".
    """
    columns = _iter_columns(groups, name)
    if len(columns[0][1]) != n_samples:
        raise ValueError(
            f"{name} must have one entry for every sample, {n_samples}, got {len(columns[0][1])}."
        )
    parts = [_encode_column(values, name) for _, values in columns]
    if len(parts) == 1:
        return parts[0]
    joint = np.zeros(n_samples, dtype=np.intp)
    for names, codes in parts:
        joint = joint * len(names) + codes
    _, first, codes = np.unique(joint, return_index=True, return_inverse=True)
    titles = ["" if title is None else f"{title}=" for title, _ in columns]
    combined = [
        ", ".join(f"{t}{names[c[row]]}" for t, (names, c) in zip(titles, parts)) for row in first
    ]
    return np.array(combined), codes


def _iter_columns(groups: Any, name: str) -> list[tuple[Any, Any]]:
    """Return (name or None, values) of every column."""
    if hasattr(groups, "columns") and hasattr(groups, "iloc"):  # a DataFrame
        if not groups.shape[1]:
            raise ValueError(f"{name} must have at least one column, got none.")
        return [(title, groups.iloc[:, k]) for k, title in enumerate(groups.columns)]
    if isinstance(groups, list | tuple):
        nested = bool(groups) and isinstance(groups[0], list | tuple | np.ndarray)
        # As objects: numpy would turn a missing value beside text into text.
        array = np.array(groups, dtype=object) if nested else np.fromiter(groups, object)
    elif _find_categories(groups) is not None:
        return [(None, groups)]
    else:
        array = as_array(groups, name=name)
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            f"{name} must have shape (n_samples,) or (n_samples, n_columns), "
            f"got {describe_form(array, groups)}."
        )
    if array.ndim == 1:
        return [(None, array)]
    titles = get_column_names(groups) or [None] * array.shape[1]
    return list(zip(titles, array.T))


def _find_categories(values: Any) -> Any:
    """Return what has `categories` and `codes`: a Categorical, or that of a Series; else None."""
    values = getattr(values, "cat", values)
    return values if hasattr(values, "categories") and hasattr(values, "codes") else None


def _encode_column(values: Any, name: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct values of a column, missing ones last as None, and the codes (n,)."""
    categorical = _find_categories(values)
    if categorical is not None:
        codes = np.asarray(categorical.codes).astype(np.intp)
        codes = np.where(codes < 0, len(categorical.categories), codes)
        used, codes = np.unique(codes, return_inverse=True)
        return _take_names([*categorical.categories, None], used), codes
    array = as_array(values, name=name)
    if array.dtype.kind in "biuU":
        return np.unique(array, return_inverse=True)
    entries = array.astype(object)
    missing = is_missing(entries)
    known = entries[~missing]
    try:
        distinct = sorted(set(known.tolist()))
    except TypeError:
        kinds = sorted({type(entry).__name__ for entry in known})
        raise TypeError(
            f"{name} must hold values of one kind, such as texts, numbers or intervals, "
            f"got {', '.join(kinds)}."
        ) from None
    place = {entry: k for k, entry in enumerate(distinct)}
    codes = np.full(len(entries), len(distinct))
    codes[~missing] = [place[entry] for entry in known]
    return _take_names([*distinct, None], range(len(distinct) + bool(missing.any()))), codes


def _take_names(names: list[Any], used: Any) -> NDArray[Any]:
    """Return the names at the positions `used`: numbers or text if all are, else objects."""
    names = [names[k] for k in used]
    kinds = {type(name) for name in names}
    if kinds == {float} and all(name.is_integer() for name in names):
        return np.array([int(name) for name in names])
    if kinds <= {str} or kinds <= {int} or kinds <= {bool} or kinds <= {float}:
        return np.array(names)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


def compute_design_effect(
    values: NDArray[Any], groups: NDArray[np.intp], weight: NDArray[np.float64] | None = None
) -> float:
    """Return the design effect: the variance of a mean over that of independent samples.

    It is 1 where members of a group are no more alike than other samples, and at most the size of
    a sample's group, on average over samples. A weight of k counts as k samples.
    """
    weight = np.ones(len(values)) if weight is None else weight
    size = np.bincount(groups, weight)
    apart = values - np.average(values, weights=weight)
    of_groups = np.bincount(groups, weight * apart)
    n_groups, total = len(size), float(weight @ apart**2)
    largest = max(float(size @ size / size.sum()), 1.0)
    if n_groups < 2 or total <= 0:
        return largest
    found = n_groups / (n_groups - 1) * float(of_groups @ of_groups) / total
    return float(np.clip(found, 1.0, largest))


class RelatedSamples(NamedTuple):
    """Codes (n,) that related samples share, None if none are; number of duplicates."""

    codes: NDArray[np.intp] | None
    count_duplicates: int


def find_related(X: Any, groups: Any, labels: NDArray | None = None) -> RelatedSamples:
    """Return which samples belong together: by `groups` or, without them, by equal rows of X."""
    if groups is not None:
        return RelatedSamples(encode_groups(groups, _num_samples(X))[1], 0)
    codes = encode_duplicates(X, labels)
    return RelatedSamples(codes, count_duplicates(codes))


def encode_duplicates(X: Any, labels: NDArray | None = None) -> NDArray[np.intp] | None:
    """Return codes (n,) that duplicates share, numbered by first occurrence.

    Duplicates are equal rows of X that have the same label. Equal rows with unlike labels are
    different samples: people who gave the same answers. None if no row is a duplicate, if rows
    cannot be compared, or if a table has so few distinct rows that equal ones are expected.
    """
    codes = _encode_rows(X)
    if codes is None or codes.max(initial=-1) + 1 < _FEWEST_DISTINCT:
        return None
    if labels is not None:
        axis = 0 if labels.ndim == 2 else None
        label = np.unique(labels, axis=axis, return_inverse=True)[1].ravel()
        first = np.unique(codes, return_index=True)[1]
        unlike = np.isin(codes, codes[label != label[first][codes]])
        codes[unlike] = len(codes) + np.arange(unlike.sum())
        codes = _encode_keys(codes.tolist())
    return codes if count_duplicates(codes) else None


def count_duplicates(codes: NDArray[np.intp] | None) -> int:
    """Return how many rows are duplicates of an earlier one."""
    return 0 if codes is None else len(codes) - int(codes.max()) - 1


def warn_of_duplicates(codes: NDArray[np.intp] | None) -> None:
    """Warn where more than a tenth of the rows are duplicates."""
    found = count_duplicates(codes)
    if codes is not None and found > _MANY_DUPLICATES * len(codes):
        warn(
            f"{found} of the {len(codes)} rows of X equal an earlier one, label included. If they "
            "are the same samples again, drop them, or pass groups= to keep them together."
        )


def _encode_rows(X: Any) -> NDArray[np.intp] | None:
    """Return codes (n,) that equal rows share, None if rows cannot be compared."""
    keys = _make_keys(X)
    try:
        return None if keys is None else _encode_keys(keys)
    except TypeError:  # not hashable, such as images
        return None


def _make_keys(X: Any) -> Any:
    """Return a key of every row, equal for equal rows; None if rows cannot be compared."""
    if sp.issparse(X):
        rows = sp.csr_array(X)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        spans = zip(rows.indptr[:-1], rows.indptr[1:])
        # Rows without any entry, such as texts of unknown words, are not taken for copies.
        return [
            (rows.indices[a:b].tobytes(), rows.data[a:b].tobytes()) if b > a else row
            for row, (a, b) in enumerate(spans)
        ]
    if hasattr(X, "iloc") or hasattr(X, "to_numpy"):
        X = X.to_numpy()
    if isinstance(X, list | tuple):
        return X
    if not isinstance(X, np.ndarray) or X.ndim == 0 or not X.size:
        return None
    rows = X.reshape(len(X), -1)
    if rows.dtype.kind not in "biufc":
        return [tuple(row) for row in rows.tolist()]
    if rows.dtype.kind == "f":
        rows = rows + 0.0  # -0.0 is 0.0
    rows = np.ascontiguousarray(rows)
    row = np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))
    return rows.view(row).ravel().tolist()  # as bytes


def _encode_keys(keys: Any) -> NDArray[np.intp]:
    place: dict[Any, int] = {}
    return np.array([place.setdefault(key, len(place)) for key in keys], dtype=np.intp)


def draw_independent_rows(
    n_samples: int,
    groups: NDArray[np.intp] | None = None,
    weight: NDArray[np.float64] | None = None,
) -> slice | NDArray[np.intp]:
    """Return rows that count equally and are independent, drawn at random; without both, all.

    Of every group it is one row at most. Rows are drawn in proportion to their weights, groups to
    the mean weight of their rows: those of weight 0 are left out.
    """
    if groups is None and weight is None:
        return slice(None)
    rng = np.random.default_rng(0)
    weight = np.ones(n_samples) if weight is None else weight
    rows = np.flatnonzero(weight)
    total: NDArray[np.float64] = weight[rows]
    if groups is not None:
        # The first of exponential times whose rates are the weights.
        order = np.lexsort((rng.exponential(size=len(rows)) / total, groups[rows]))
        found, first = np.unique(groups[rows][order], return_index=True)
        total = (np.bincount(groups, weight) / np.maximum(np.bincount(groups), 1))[found]
        rows = rows[order][first]
    kept = rng.random(len(rows)) * total.max(initial=0.0) < total
    return np.sort(rows[kept])


# A sketch of the samples of a fit, by which they are recognized later: the smallest hashes.


def sketch_samples(X: Any, labels: NDArray) -> NDArray[np.uint64]:
    """Return the smallest hashes of the distinct samples; none if rows cannot be compared."""
    return np.unique(_hash_samples(X, labels))[:_SKETCHED]


def count_seen(sketch: NDArray[np.uint64], X: Any, labels: NDArray) -> float:
    """Return the part of the samples that is in the sketch beyond coincidence.

    Rows of tables with few distinct values equal others by coincidence: as often as a row equals
    another one of its own table, by the ratio of their sizes. 0 for fewer than 8 samples.
    """
    hashes = _hash_samples(X, labels)
    whole = len(sketch) < _SKETCHED
    largest = np.iinfo(np.uint64).max if whole or not len(sketch) else sketch[-1]
    # These samples would be in the sketch, had they been in the fit.
    some, count = np.unique(hashes[hashes <= largest], return_counts=True)
    if count.sum() < 8 or not len(sketch):
        return 0.0
    seen = float(np.isin(some, sketch) @ count / count.sum())
    repeated = float(count[count > 1].sum() / count.sum())
    by_chance = 1 - (1 - repeated) ** (len(sketch) / len(some))
    return max(0.0, (seen - by_chance) / max(1 - by_chance, 1e-9))


def _hash_samples(X: Any, labels: NDArray) -> NDArray[np.uint64]:
    """Return a hash of every row with its label, the same in every process."""
    keys, hashes = _make_keys(X), []
    for key, label in zip([] if keys is None else keys, labels.tolist()):
        # Bytes, of arrays, as they are: a row may be an image.
        row = key if isinstance(key, bytes) else repr(key).encode("utf-8", "replace")
        found = blake2b(row, digest_size=8)
        found.update(repr(label).encode("utf-8", "replace"))
        hashes.append(found.digest())
    return np.frombuffer(b"".join(hashes), dtype="<u8").astype(np.uint64)
