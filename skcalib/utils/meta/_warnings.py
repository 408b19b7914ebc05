"""Warnings of the package, which point at the line of the user's code."""

from __future__ import annotations

import sys
import warnings

# Frames of these stand between a warning and the line that has to change.
_LIBRARIES = {"skcalib", "sklearn", "joblib", "skorch", "contextlib"}


class SkcalibWarning(UserWarning):
    """Base of every warning that skcalib raises on its own account.

    Examples
    --------
    >>> import warnings
    >>> from skcalib.utils import SkcalibWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", SkcalibWarning)
    """


def warn(message: str, category: type[Warning] = SkcalibWarning) -> None:
    """Warn at the first line outside of skcalib and of the libraries that call it."""
    level, frame = 1, sys._getframe()
    while frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES and frame.f_back:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
