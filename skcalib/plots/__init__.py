"""Displays of calibration, risk and difficulty."""

from ._class_reliability import ClassReliabilityDisplay
from ._difficulty import DifficultyDisplay
from ._difficulty_plane import DifficultyPlaneDisplay
from ._hardest_samples import HardestSamplesDisplay
from ._probe_accuracy import ProbeAccuracyDisplay
from ._reliability import ReliabilityDisplay
from ._risk_coverage import RiskCoverageDisplay

__all__ = [
    "ClassReliabilityDisplay",
    "DifficultyDisplay",
    "DifficultyPlaneDisplay",
    "HardestSamplesDisplay",
    "ProbeAccuracyDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
]
