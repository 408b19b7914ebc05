"""The package's category of warnings, the types of stored models, and shared helpers."""

from .meta._trusted import trusted_types
from .meta._warnings import SkcalibWarning

__all__ = ["SkcalibWarning", "trusted_types"]
