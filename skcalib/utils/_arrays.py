"""Turn user input into arrays and weights; refuse what numpy would silently misread."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from ._backends import is_chunked, to_host
from ._compat import _num_samples
from ._output import format_count, warn

_NOT_NUMBERS = (str, bytes, np.datetime64, np.timedelta64)


def reword(text: str, words: Mapping[str, str]) -> str:
    """Return a text with words replaced, such as the names of arguments by those of the user."""
    for word, given in words.items():
        text = text.replace(word, given)
    return text


def keep_index(
    given: Any, values: NDArray[Any], rows: slice | NDArray[np.intp] = slice(None)
) -> Any:
    """Return these rows of values, with the index of what was given if that is of pandas."""
    index = getattr(given, "index", None)
    if index is None or not hasattr(index, "get_indexer"):
        return values[rows]
    import pandas as pd

    kind = pd.Series if values.ndim == 1 else pd.DataFrame
    return kind(values[rows], index=index[rows])


def as_array(values: ArrayLike, *, name: str) -> NDArray[Any]:
    """Return `values` as an ndarray, without a copy where numpy can share the memory.

    A torch tensor may require gradients, be on a device or hold bfloat16. Masks are errors.
    """
    if type(values) is np.ndarray:  # not a subclass, which may have a mask
        return values
    check_readable(values, name=name)
    try:
        return np.asarray(to_host(values))
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} cannot be read as a numpy array: {error}") from error


def as_floats(values: ArrayLike, *, name: str) -> NDArray[Any]:
    """Return real numbers as floats: float16, 32 and 64 as they are, others as float64."""
    array = as_array(values, name=name)
    if array.dtype in (np.float16, np.float32, np.float64):
        return array
    # Of objects, float() would make numbers of text and of durations.
    kinds = set(map(type, array.flat)) if array.dtype.kind == "O" else ()
    if array.dtype.kind in "biufO" and not any(issubclass(kind, _NOT_NUMBERS) for kind in kinds):
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError):  # objects that are not numbers
            pass
    check_not_nested(array, name=name)
    got = f"dtype {array.dtype}" if array.ndim else type(values).__name__
    raise TypeError(f"{name} must hold real numbers, got {got}.")


def as_features(X: Any, *, name: str = "X") -> Any:
    """Return the `X` of an estimator in memory: tensors become arrays, all else stays as it is.

    What an estimator inside would misread is an error: masks, chunks, mappings. Columns of any
    kind, such as dates and texts, are its affair.
    """
    check_readable(X, name=name)
    # A sparse array by keys (dok) is a mapping, for which scikit-learn has its own message.
    if isinstance(X, Mapping | Set | Generator) and not issparse(X):
        raise TypeError(f"{name} must be array-like, got {type(X).__name__}.")
    try:
        X = to_host(X)
    except (TypeError, RuntimeError) as error:
        raise TypeError(f"{name} cannot be read as a numpy array: {error}") from error
    return X


def as_numeric_features(X: Any, *, name: str = "X") -> Any:
    """Return :func:`as_features`; an error for dates and durations, which numpy makes numbers."""
    X = as_features(X, name=name)
    for dtype in _list_dtypes(X):
        if getattr(dtype, "kind", None) in ("m", "M", "V"):
            raise TypeError(f"{name} must hold numbers, got dtype {dtype}.")
    return X


def check_readable(values: Any, *, name: str) -> None:
    """Raise for masks and for chunks, which numpy and scikit-learn misread without a warning.

    They would read the entries that a mask hides, and fetch chunks from a disk or other machines.
    """
    if is_chunked(values):
        by_sums = (
            "Sums over all chunks give most errors: CalibrationAccumulator().update(y_true, "
            "y_proba).result()."
        )
        listed = "The user guide lists what works on all chunks: see Dask, Spark and ray."
        raise TypeError(
            f"{name} must be in memory here, got a collection of dask: take a sample "
            f"of all that is passed, such as {name}[::100].compute(). "
            + (by_sums if name == "y_proba" else listed)
        )
    if type(values).__name__ == "LazyFrame":
        raise TypeError(f"{name} must be in memory, got a LazyFrame: pass {name}.collect().")
    parts = values if isinstance(values, list | tuple) else [values]
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
        raise ValueError(
            f"{name} must not be masked, got a masked array; drop or fill the masked entries."
        )


def is_soft(y: Any) -> bool:
    """Return whether `y` has the shape of soft labels: two axes, and several columns."""
    if isinstance(y, list | tuple):
        first = y[0] if len(y) else None
        return isinstance(first, list | tuple | np.ndarray) and len(first) > 1
    shape = getattr(y, "shape", ())
    return isinstance(shape, tuple) and len(shape) == 2 and shape[1] > 1


def describe_form(array: NDArray[Any], values: Any) -> str:
    """Return the shape of an array or, where numpy has found no axis, the type of the values."""
    return f"shape {array.shape}" if array.ndim else type(values).__name__


def check_not_nested(values: Any, *, name: str) -> None:
    """Raise for a 1-D array of arrays, such as a column of a table that holds features."""
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    if kind == "O" and getattr(values, "ndim", None) == 1:
        first = next(iter(values), None)
        if isinstance(first, list | tuple | np.ndarray):
            raise ValueError(
                f"{name} must be an array of two dimensions, got an array of arrays: "
                f"np.stack({name}) joins them."
            )


def is_missing(entries: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries are None, NaN, NaT or NA."""
    # NaN and NaT are not equal to themselves; comparing pd.NA gives no bool.
    return np.array(
        [x is None or type(x).__name__ == "NAType" or bool(x != x) for x in entries], dtype=bool
    )


def _list_dtypes(X: Any) -> list[Any]:
    """Return the dtypes of a frame, one for every column, or that of an array; [] without any."""
    if isinstance(X, list | tuple):
        return [np.asarray(X[0]).dtype] if len(X) else []
    # `dtypes` of a DataFrame has one entry for every column; that of a Series is its dtype.
    if hasattr(X, "dtypes"):
        return list(X.dtypes) if hasattr(X, "columns") else [X.dtypes]
    return [X.dtype] if hasattr(X, "dtype") else []


def check_same_length(**arrays: NDArray[Any] | None) -> None:
    """Raise unless all arrays, passed by the names of the arguments, have equally many rows."""
    lengths = {name: _num_samples(array) for name, array in arrays.items() if array is not None}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"{' and '.join(lengths)} must have the same number of rows, "
            f"got {' and '.join(map(str, lengths.values()))}."
        )


def check_weights(
    sample_weight: ArrayLike | None, n_samples: int, *, name: str = "sample_weight"
) -> NDArray[np.float64] | None:
    """Return weights as float64 of shape (n,), or None: non-negative, finite, not all zero."""
    if sample_weight is None:
        return None
    weight = as_floats(sample_weight, name=name).astype(np.float64, copy=False)
    if weight.ndim != 1 or weight.shape[0] != n_samples:
        raise ValueError(f"{name} must have shape ({n_samples},), got shape {weight.shape}.")
    fault = ~(np.isfinite(weight) & (weight >= 0))
    if fault.any():
        row = int(np.argmax(fault))
        raise ValueError(
            f"{name} must be finite and not negative, got {float(weight[row])} in row {row}."
        )
    if not weight.any():
        raise ValueError(f"{name} must not be zero everywhere.")
    return weight


def scale_weights(weight: NDArray[np.float64] | None) -> tuple[NDArray[np.float64] | None, float]:
    """Return weights with a maximum in [1, 2), and the power of two that they were divided by.

    Sums of squares and products of such weights neither overflow nor underflow. Division by a
    power of two changes no digit.
    """
    if weight is None:
        return None, 1.0
    # maximum = m 2**e with m in [1/2, 1): divided by 2**(e - 1), it is in [1, 2).
    exponent = int(np.frexp(weight.max())[1]) - 1
    return np.ldexp(weight, -exponent), float(np.ldexp(1.0, exponent))


def average_to_one(weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """Return weights of which those above 0 have the mean 1, so that their scale is lost."""
    weight, _ = scale_weights(weight)
    return None if weight is None else weight / weight[weight > 0].mean()


def count_unit(unit: float) -> float:
    """Return the unit of weights that count samples, clipped to [2**-100, 2**100].

    Beyond these limits, the number of samples no longer changes a metric.
    """
    return float(np.clip(unit, 2.0**-100, 2.0**100))


def is_normalized(weight: NDArray[np.float64]) -> bool:
    """Return whether weights sum to less than half of the samples they weigh."""
    return bool(weight.sum() < 0.5 * np.count_nonzero(weight))


def warn_if_normalized(weight: NDArray[np.float64]) -> None:
    """Warn where weights that count samples sum to less than half of the samples they weigh."""
    warn_of_total(float(weight.sum()), int(np.count_nonzero(weight)))


def warn_of_total(total: float, n_samples: int) -> None:
    """Warn where `total`, the sum of weights, is less than half of the samples they weigh."""
    if total < 0.5 * n_samples:
        warn(
            f"sample_weight sums to {format_count(total)} for {n_samples} samples. A weight of k "
            "counts as k samples, so that weights which were normalized leave hardly any: "
            "multiply them by len(y) / sample_weight.sum()."
        )


def check_ndim(array: NDArray, name: str, ndim: tuple[int, ...]) -> None:
    """Raise unless an array has one of the allowed numbers of dimensions, and is not empty."""
    if array.ndim not in ndim or array.size == 0:
        dims = "- or ".join(map(str, ndim))
        raise ValueError(
            f"{name} must be {dims}-dimensional and not empty, got shape {array.shape}."
        )


def check_numbers(values: ArrayLike, name: str, *, ndim: tuple[int, ...]) -> NDArray:
    """Return finite floats with one of the allowed numbers of dimensions."""
    array = as_floats(values, name=name)
    check_ndim(array, name, ndim)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
    return array


def check_mask(mask: ArrayLike, shape: tuple[int, ...], name: str) -> NDArray[np.bool_]:
    """Return a mask of this shape."""
    array = np.asarray(mask)
    if array.dtype != bool or array.shape != shape:
        raise ValueError(
            f"{name} must be boolean and of shape {shape}, got dtype {array.dtype} and shape "
            f"{array.shape}."
        )
    return array


def check_has(value: Any, *attributes: str, name: str, what: str) -> None:
    """Raise unless `value`, which is called `name` and must be `what`, has these attributes."""
    for attribute in attributes:
        if not hasattr(value, attribute):
            raise TypeError(
                f"{name} must be {what}, got {type(value).__name__}, which has no {attribute}."
            )
