"""Read the stored states of accumulators and monitors: whatever is broken is refused at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils._labels import as_labels, shorten


def read_state(text: Any, formats: Sequence[str]) -> dict[str, Any]:
    """Return the object that a text in one of the formats holds."""
    if not isinstance(text, str):
        raise ValueError(f"it is of type {type(text).__name__}")
    try:
        state = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    found = get_field(state, "format")
    if not isinstance(found, str) or found not in formats:
        raise ValueError(f"the format is {shorten(found)}")
    return dict(state)


def get_field(state: Any, name: str) -> Any:
    """Return an entry of an object."""
    if not isinstance(state, dict):
        raise ValueError(f"there is {shorten(state)} in place of an object with {name!r}")
    if name not in state:
        raise ValueError(f"there is no {name!r}")
    return state[name]


def read_numbers(
    value: Any,
    name: str,
    shape: tuple[int, ...] | None = None,
    low: float = -np.inf,
    high: float = np.inf,
) -> NDArray[np.float64]:
    """Return finite numbers in [low, high] of a shape."""
    if not {type(leaf) for leaf in _iter_leaves(value)} <= {int, float}:
        raise ValueError(f"{name!r} must be of numbers alone")
    try:
        numbers = np.array(value, dtype=np.float64)
    except (OverflowError, ValueError):  # too large an integer; rows of unlike lengths
        raise ValueError(f"{name!r} must be finite numbers of one shape") from None
    if shape is not None and numbers.shape != shape:
        raise ValueError(f"{name!r} must have shape {shape}, got {numbers.shape}")
    if not (np.isfinite(numbers) & (numbers >= low) & (numbers <= high)).all():
        raise ValueError(f"{name!r} must be finite numbers in [{low:g}, {high:g}]")
    return numbers


def read_number(value: Any, name: str, low: float = -np.inf, high: float = np.inf) -> float:
    return float(read_numbers(value, name, (), low, high))


def read_count(value: Any, name: str, low: int = 0, high: float = np.inf) -> int:
    """Return an integer in [low, high]."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name!r} must be an integer in [{low}, {high:g}], got {shorten(value)}")
    return value


def read_text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name!r} must be text, got {shorten(value)}")
    return value


def read_labels(value: Any, name: str) -> list[Any] | None:
    """Return labels that differ, all texts or all numbers; None stays."""
    if value is None:
        return None
    kinds = {type(label) for label in value} if isinstance(value, list) else set()
    if len(kinds) != 1 or not kinds <= {str, int, float, bool} or len(set(value)) < len(value):
        raise ValueError(f"{name!r} must be distinct labels, got {shorten(value)}")
    as_labels(value, name=name)  # raises for fractions and numbers beyond 64 bits
    return list(value)


def _iter_leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for part in value:
            yield from _iter_leaves(part)
    else:
        yield value
