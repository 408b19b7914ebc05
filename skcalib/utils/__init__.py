"""Validation, optional imports and shared private helpers."""

from ._optional import import_optional
from ._warnings import SkcalibWarning

__all__ = ["SkcalibWarning", "import_optional"]
