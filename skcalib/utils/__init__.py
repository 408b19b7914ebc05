"""The package's category of warnings, what stored models are made of, and shared helpers."""

from .meta._trusted import trusted_types
from .meta._warnings import SkcalibWarning

__all__ = ["SkcalibWarning", "trusted_types"]
