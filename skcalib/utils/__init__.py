"""The package's category of warnings, and helpers that all packages share."""

from .meta._warnings import SkcalibWarning

__all__ = ["SkcalibWarning"]
