"""The package's category of warnings, and helpers that all packages share."""

from ._warnings import SkcalibWarning

__all__ = ["SkcalibWarning"]
