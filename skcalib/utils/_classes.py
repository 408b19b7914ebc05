"""Refuse a target that leaves nothing to tell apart."""

from typing import Any

from numpy.typing import NDArray


def check_several_classes(classes: NDArray[Any], *, name: str = "y") -> None:
    """Raise unless there are at least two classes."""
    if len(classes) < 2:
        got = f"one class: {classes.tolist()[0]!r}" if len(classes) else "no rows"
        raise ValueError(f"{name} must hold at least two classes, got {got}.")
