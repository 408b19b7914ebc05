"""Fitted calibrators as plain values of JSON, and back; nothing that a text holds is run."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..metrics._registry import find_metric
from ..metrics._states import get_field, read_text
from ..utils._compat import validate_parameters
from ..utils._labels import shorten

_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "str", "object"),
)
_OF_OBJECTS: set[type] = {str, int, float, bool}
_NO_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
# What scikit-learn stores for itself: which metadata is requested, and the kind of output.
_OF_SKLEARN = ("_metadata", "_sklearn")


class PlainMixin:
    """A calibrator as an object of JSON: its class, its parameters and what it has learned."""

    # Parameters that are data of `fit`.
    _data_params: ClassVar[tuple[str, ...]] = ()

    def _get_fitted(self) -> dict[str, Any]:
        """Return the attributes that `fit` has set, as plain values, arrays and calibrators."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        return {
            name: value
            for name, value in vars(self).items()
            if name not in params and not name.startswith(_OF_SKLEARN)
        }

    def _set_fitted(self, fitted: dict[str, Any]) -> None:
        """Set what `_get_fitted` returned."""
        for name, value in fitted.items():
            known = hasattr(type(self), name) and callable(getattr(type(self), name))
            if known or name in self.get_params(deep=False) or not name.isidentifier():  # type: ignore[attr-defined]
                raise ValueError(f"{name!r} is no attribute")
            setattr(self, name, value)

    def _to_plain(self) -> dict[str, Any]:
        params = {}
        for name, value in self.get_params(deep=False).items():  # type: ignore[attr-defined]
            metric = find_metric(value) if callable(value) else None
            try:
                params[name] = to_plain(value if metric is None else metric.name)
            except TypeError:
                continue
        for name in self._data_params:
            del params[name]
        fitted = {name: to_plain(value) for name, value in self._get_fitted().items()}
        return {"class": type(self).__name__, "params": params, "fitted": fitted}

    @classmethod
    def _from_plain(cls, state: dict[str, Any]) -> Self:
        """Return the calibrator of a state: of this class, or of one of skcalib below it."""
        name = read_text(get_field(state, "class"), "class")
        for kind in _iter_classes(cls):
            if kind.__name__ == name:
                break
        else:
            raise ValueError(f"there is no class {shorten(name)} below {cls.__name__} in skcalib")

        params, fitted = get_field(state, "params"), get_field(state, "fitted")
        if not isinstance(params, dict) or not isinstance(fitted, dict):
            raise ValueError("'params' and 'fitted' must be objects")
        found = kind(**{name: from_plain(value) for name, value in params.items()})
        validate_parameters(found)
        found._set_fitted({name: from_plain(value) for name, value in fitted.items()})
        return found


def _iter_classes(cls: type[PlainMixin]) -> Iterator[Any]:
    if not inspect.isabstract(cls) and cls is not PlainMixin:
        yield cls
    for kind in cls.__subclasses__():
        if kind.__module__.startswith("skcalib."):
            yield from _iter_classes(kind)


def to_plain(value: Any) -> Any:
    """Return a value in the types of JSON, without NaN and infinities, which it lacks."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"number": repr(value)}
    if isinstance(value, np.ndarray | np.generic):
        return _write_array(np.asarray(value))
    if isinstance(value, PlainMixin):
        return value._to_plain()
    if type(value) is list:
        return [to_plain(part) for part in value]
    if type(value) is tuple:
        return {"tuple": [to_plain(part) for part in value]}
    if type(value) is dict:
        return {"pairs": [[to_plain(key), to_plain(part)] for key, part in value.items()]}
    raise TypeError(f"JSON has no type for {type(value).__name__}")


def from_plain(value: Any) -> Any:
    """Return the value that `to_plain` has written."""
    if isinstance(value, list):
        return [from_plain(part) for part in value]
    if not isinstance(value, dict):
        return value
    if "class" in value:
        return PlainMixin._from_plain(value)
    if "dtype" in value:
        return _read_array(value)
    if "tuple" in value:
        return tuple(from_plain(value["tuple"]))
    if "pairs" in value:
        return dict(from_plain(pair) for pair in value["pairs"])
    return _NO_NUMBERS[get_field(value, "number")]


def _write_array(array: NDArray[Any]) -> dict[str, Any]:
    dtype = "str" if array.dtype.kind == "U" else str(array.dtype)
    if dtype not in _DTYPES:
        raise TypeError(f"JSON has no type for arrays of {dtype}")
    by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
    order: Literal["C", "F"] = "F" if by_columns else "C"
    values = array.ravel(order).tolist()
    if dtype == "object" and not {type(value) for value in values} <= _OF_OBJECTS:
        raise TypeError("JSON has no type for arrays of objects")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        values = [value if math.isfinite(value) else repr(value) for value in values]
    return {"dtype": dtype, "shape": list(array.shape), "order": order, "values": values}


def _read_array(state: dict[str, Any]) -> Any:
    dtype, order = get_field(state, "dtype"), get_field(state, "order")
    values, shape = get_field(state, "values"), get_field(state, "shape")
    if dtype not in _DTYPES or order not in ("C", "F"):
        raise ValueError("arrays must have a dtype of NumPy and an order")
    if dtype.startswith("float"):
        values = [_NO_NUMBERS[v] if isinstance(v, str) else v for v in values]
    kinds: dict[str, set[type]] = {"str": {str}, "object": _OF_OBJECTS, "bool": {bool}}
    if not {type(value) for value in values} <= kinds.get(dtype, {int, float}):
        raise ValueError(f"arrays of {dtype} must hold nothing else")
    array = np.array(values, dtype=dtype).reshape(shape, order=order)
    return array if shape else array[()]
