"""Displays of calibration, risk and difficulty."""

from ._hardest_samples import HardestSamplesDisplay
from ._reliability import ReliabilityDisplay
from ._risk_coverage import RiskCoverageDisplay

__all__ = [
    "HardestSamplesDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
]
