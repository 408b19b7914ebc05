"""Progress of what takes long: its steps, printed with their seconds."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ._private import _print_elapsed_time


def print_elapsed(source: str, verbose: int, step: str) -> AbstractContextManager[None]:
    """Return a context that prints the seconds of a step, if `verbose`; none if it fails."""
    return _print_elapsed_time(source, step if verbose else None)
