"""Displays of calibration, risk and difficulty."""

from ..utils._output import fill_docstrings
from ._decision_curve import DecisionCurveDisplay
from ._difficulty import DifficultyDisplay, EmbeddingMapDisplay
from ._hardest_samples import HardestSamplesDisplay
from ._monitor import MonitorDisplay
from ._reliability import ClassReliabilityDisplay, ReliabilityDisplay
from ._scores import DecompositionDisplay, LossComparisonDisplay, RiskCoverageDisplay
from ._training import DifficultyPlaneDisplay, ProbeAccuracyDisplay, TrainingMapDisplay

__all__ = [
    "ClassReliabilityDisplay",
    "DecisionCurveDisplay",
    "DecompositionDisplay",
    "DifficultyDisplay",
    "DifficultyPlaneDisplay",
    "EmbeddingMapDisplay",
    "HardestSamplesDisplay",
    "LossComparisonDisplay",
    "MonitorDisplay",
    "ProbeAccuracyDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "TrainingMapDisplay",
]

fill_docstrings(globals())
