"""Warnings of the package, which point at the line of the user's code."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Frames of these stand between a warning and the line that has to change.
_LIBRARIES = {"skcalib", "sklearn", "joblib", "skorch", "contextlib"}


class SkcalibWarning(UserWarning):
    """Base of every warning of skcalib itself.

    Examples
    --------
    >>> import warnings
    >>> from skcalib.utils import SkcalibWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", SkcalibWarning)
    """


# Where warnings of the package go within `collecting`.
_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def warn(message: str, category: type[Warning] = SkcalibWarning) -> None:
    """Warn at the first line outside of skcalib and of the libraries that call it."""
    notes = _collected.get()
    if notes is not None:
        notes.append(message)
        return
    level, frame = 1, sys._getframe()
    while frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES and frame.f_back:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def collecting() -> Iterator[list[str]]:
    """Collect the messages of the package's warnings in a list, instead of warning.

    Only those of this thread: ``warnings.catch_warnings`` changes the state of the process, and
    two threads that use it at once may leave the filters wrong for good.
    """
    notes: list[str] = []
    token = _collected.set(notes)
    try:
        yield notes
    finally:
        _collected.reset(token)


@contextmanager
def ignoring(category: type[Warning], pattern: str = "") -> Iterator[None]:
    """Ignore warnings of other packages that begin with a pattern."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", pattern, category)
        yield
