"""Displays of calibration, risk and difficulty."""

from ._hardest_samples import HardestSamplesDisplay
from ._reliability import ReliabilityDisplay

__all__ = [
    "HardestSamplesDisplay",
    "ReliabilityDisplay",
]
