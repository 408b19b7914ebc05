"""Tables: results of several columns as a DataFrame or an array, and the index of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._optional import import_optional

if TYPE_CHECKING:
    import pandas as pd


def row_index(*containers: Any) -> pd.Index | None:
    """Return the index of the first DataFrame or Series among the arguments, None without one."""
    for container in containers:
        # A list has a *method* of that name.
        index = getattr(container, "index", None)
        if index is not None and not callable(index):
            return index
    return None


def as_table(
    columns: Mapping[str, NDArray[Any]], *, as_frame: bool, index: Any = None
) -> pd.DataFrame | NDArray[Any]:
    """Return columns of equal length as a structured array or, with `as_frame`, a DataFrame.

    In the structured array, text has a fixed width, so that it can be stored without pickle;
    columns of mixed types stay objects. `index` is that of the DataFrame.
    """
    if as_frame:
        pd = import_optional("pandas", extra="report")
        return pd.DataFrame(dict(columns), index=index)
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    for name, array in arrays.items():
        if array.dtype == object and all(isinstance(value, str) for value in array):
            arrays[name] = array.astype(str)
    dtypes = [(name, array.dtype) for name, array in arrays.items()]
    table = np.empty(len(next(iter(arrays.values()))), dtype=dtypes)
    for name, array in arrays.items():
        table[name] = array
    return table
