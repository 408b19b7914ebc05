"""Samples that belong together: by the groups that users give, and by equal rows of X.

Groups come as users have them: texts, numbers, intervals, categories, columns. Without them,
samples with equal rows and equal labels may be duplicates: the nearest neighbor of a sample could
be its duplicate, and the training part of a fold could hold duplicates of the part left out. The
module also corrects the p-values of many groups.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..meta._private import _num_samples
from ..meta._warnings import warn
from ._arrays import as_array, form_of, is_missing
from ._labels import column_names

# With fewer distinct rows, ten for each of five folds, equal rows are expected and are no
# duplicates: many people give the same answers to three yes-or-no questions.
_FEWEST_DISTINCT = 50
# So many distinct rows do not all occur equally often by chance: 40 samples that fall at random
# in 20 cells are two in each with a probability of 7e-11.
_DISTINCT_OF_TABLE = 20
# More duplicates than this fraction of the rows bring a warning. Fits do not depend on it.
_MANY_DUPLICATES = 0.1


def group_codes(
    groups: Any, n_samples: int, *, name: str = "groups"
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the groups that occur, sorted, and the position of every sample among them.

    Categories keep their order. Missing values (None, NaN, NaT, NA) form the last group, called
    None. Combinations of several columns are called "name=value, name=value".
    """
    columns = _columns(groups, name)
    if len(columns[0][1]) != n_samples:
        raise ValueError(
            f"{name} must have one entry for every sample, {n_samples}, got {len(columns[0][1])}."
        )
    parts = [_codes_of_column(values, name) for _, values in columns]
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


def _columns(groups: Any, name: str) -> list[tuple[Any, Any]]:
    """Return (name or None, values) of every column."""
    if hasattr(groups, "columns") and hasattr(groups, "iloc"):  # a DataFrame
        if not groups.shape[1]:
            raise ValueError(f"{name} must have at least one column, got none.")
        return [(title, groups.iloc[:, k]) for k, title in enumerate(groups.columns)]
    if isinstance(groups, list | tuple):
        nested = bool(groups) and isinstance(groups[0], list | tuple | np.ndarray)
        # As objects: numpy would turn a missing value beside text into text.
        array = np.array(groups, dtype=object) if nested else np.fromiter(groups, object)
    elif _categories(groups) is not None:
        return [(None, groups)]
    else:
        array = as_array(groups, name=name)
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            f"{name} must have shape (n_samples,) or (n_samples, n_columns), "
            f"got {form_of(array, groups)}."
        )
    if array.ndim == 1:
        return [(None, array)]
    titles = column_names(groups) or [None] * array.shape[1]
    return list(zip(titles, array.T))


def _categories(values: Any) -> Any:
    """Return what has `categories` and `codes`: a Categorical, or that of a Series; else None."""
    values = getattr(values, "cat", values)
    return values if hasattr(values, "categories") and hasattr(values, "codes") else None


def _codes_of_column(values: Any, name: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct values of a column, missing ones last as None, and the codes (n,)."""
    categorical = _categories(values)
    if categorical is not None:
        codes = np.asarray(categorical.codes).astype(np.intp)
        used, codes = np.unique(
            np.where(codes < 0, len(categorical.categories), codes), False, True
        )
        return _named([*categorical.categories, None], used), codes
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
    return _named([*distinct, None], range(len(distinct) + bool(missing.any()))), codes


def _named(names: list[Any], used: Any) -> NDArray[Any]:
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


def design_effect(
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


def holm(
    pvalues: NDArray[np.float64], share: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return p-values after Holm's correction, weighted by `share`; by default all are equal.

    In increasing order, each quotient of p-value and share is multiplied by the sum of the shares
    from its own on, and none falls below one before it.
    """
    share = np.ones(len(pvalues)) if share is None else share
    order = np.argsort(pvalues / share, kind="stable")
    left = np.cumsum(share[order][::-1])[::-1]
    corrected = np.empty(len(pvalues))
    corrected[order] = np.maximum.accumulate(pvalues[order] / share[order] * left)
    return np.minimum(corrected, 1)


class Related(NamedTuple):
    """Codes (n,) that related samples share, None if none are; number of duplicates."""

    codes: NDArray[np.intp] | None
    n_duplicates: int


def related(X: Any, groups: Any, labels: NDArray | None = None) -> Related:
    """Return which samples belong together: by `groups` or, without them, by equal rows of X."""
    if groups is not None:
        return Related(group_codes(groups, _num_samples(X))[1], 0)
    codes = duplicate_codes(X, labels)
    return Related(codes, n_duplicates(codes))


def duplicate_codes(X: Any, labels: NDArray | None = None) -> NDArray[np.intp] | None:
    """Return codes (n,) that duplicates share, numbered by first occurrence.

    Duplicates are equal rows of X that have the same label. Equal rows with unlike labels are
    different samples: people who gave the same answers. None if no row is a duplicate, if rows
    cannot be compared, or if a table has so few distinct rows that equal ones are expected.
    """
    codes = _codes_of_rows(X)
    if codes is None or codes.max(initial=-1) + 1 < _FEWEST_DISTINCT:
        return None
    if labels is not None:
        axis = 0 if labels.ndim == 2 else None
        label = np.unique(labels, axis=axis, return_inverse=True)[1].ravel()
        first = np.unique(codes, return_index=True)[1]
        unlike = np.isin(codes, codes[label != label[first][codes]])
        codes[unlike] = len(codes) + np.arange(unlike.sum())
        codes = _codes_of_keys(codes.tolist())
    return codes if n_duplicates(codes) else None


def n_duplicates(codes: NDArray[np.intp] | None) -> int:
    """Return how many rows are duplicates of an earlier one."""
    return 0 if codes is None else len(codes) - int(codes.max()) - 1


def warn_of_duplicates(codes: NDArray[np.intp] | None) -> None:
    """Warn where more than a tenth of the rows are duplicates."""
    found = n_duplicates(codes)
    if codes is not None and found > _MANY_DUPLICATES * len(codes):
        warn(
            f"{found} of the {len(codes)} rows of X equal an earlier one, label included. If they "
            "are the same samples again, drop them, or pass groups= to keep them together."
        )


def warn_of_table_twice(codes: NDArray[np.intp], proba: NDArray[Any]) -> None:
    """Warn where all rows of labels and probabilities occur equally often, more than once.

    Few distinct probabilities, such as those of a tree, repeat as well, but not all equally often.
    """
    key = proba @ np.random.default_rng(0).random(proba.shape[1]) + 2.0 * codes
    counts = np.unique(key, return_counts=True)[1]
    if len(counts) >= _DISTINCT_OF_TABLE and 1 < counts.min() == counts.max():
        times = "twice" if counts[0] == 2 else f"{counts[0]} times"
        warn(
            f"Every row of labels and probabilities is there {times}: {len(counts)} of the "
            f"{len(codes)} are distinct. If they are copies, keep one of each: with the others, "
            "intervals are too narrow."
        )


def _codes_of_rows(X: Any) -> NDArray[np.intp] | None:
    """Return codes (n,) that equal rows share, None if rows cannot be compared."""
    if sp.issparse(X):
        return _codes_of_sparse(X)
    if hasattr(X, "iloc") or hasattr(X, "to_numpy"):
        X = X.to_numpy()
    if isinstance(X, list | tuple):
        return _codes_of_objects(X)
    if not isinstance(X, np.ndarray) or X.ndim == 0 or not X.size:
        return None
    rows = X.reshape(len(X), -1)
    if rows.dtype.kind not in "biufc":
        return _codes_of_objects([tuple(row) for row in rows.tolist()])
    if rows.dtype.kind == "f":
        rows = rows + 0.0  # -0.0 is 0.0
    rows = np.ascontiguousarray(rows)
    row = np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))
    return _codes_of_keys(rows.view(row).ravel().tolist())  # as bytes


def _codes_of_sparse(X: Any) -> NDArray[np.intp]:
    rows = sp.csr_array(X)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    spans = zip(rows.indptr[:-1], rows.indptr[1:])
    # Rows without any entry, such as texts of unknown words, are not taken for copies.
    return _codes_of_keys(
        [
            (rows.indices[a:b].tobytes(), rows.data[a:b].tobytes()) if b > a else row
            for row, (a, b) in enumerate(spans)
        ]
    )


def _codes_of_objects(values: Any) -> NDArray[np.intp] | None:
    try:
        return _codes_of_keys(values)
    except TypeError:  # not hashable, such as images
        return None


def _codes_of_keys(keys: Any) -> NDArray[np.intp]:
    place: dict[Any, int] = {}
    return np.array([place.setdefault(key, len(place)) for key in keys], dtype=np.intp)


def independent_rows(
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
