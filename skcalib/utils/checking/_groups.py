"""Groups of samples as users have them: texts, numbers, intervals, categories, columns.

And p-values of many of them, corrected.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import as_array, form_of, is_missing
from ._labels import column_names


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
    together = np.zeros(n_samples, dtype=np.intp)
    for names, codes in parts:
        together = together * len(names) + codes
    _, first, codes = np.unique(together, return_index=True, return_inverse=True)
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
    """Return how many times as large the variance of a mean is as of independent samples.

    1 where the members of a group are as unlike as others, and at most the mean size of the groups
    of a sample, where all are alike. A weight of k counts as k samples.
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
    """Return p-values after Holm's correction; by default all have equal shares.

    The smallest quotient of p-value and share competes with all others, the next with those that
    are left; none falls below one before it.
    """
    share = np.ones(len(pvalues)) if share is None else share
    order = np.argsort(pvalues / share, kind="stable")
    left = np.cumsum(share[order][::-1])[::-1]
    corrected = np.empty(len(pvalues))
    corrected[order] = np.maximum.accumulate(pvalues[order] / share[order] * left)
    return np.minimum(corrected, 1)
