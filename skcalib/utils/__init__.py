"""The package's category of warnings, the types of stored models, and shared helpers."""

from ._compat import trusted_types
from ._output import SkcalibWarning

__all__ = ["SkcalibWarning", "trusted_types"]
