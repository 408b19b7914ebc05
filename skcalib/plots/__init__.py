"""Displays of calibration, risk and difficulty."""

from ..utils.meta._docs import fill_docstrings
from ._class_reliability import ClassReliabilityDisplay
from ._decomposition import DecompositionDisplay
from ._difficulty import DifficultyDisplay
from ._difficulty_plane import DifficultyPlaneDisplay
from ._embedding_map import EmbeddingMapDisplay
from ._hardest_samples import HardestSamplesDisplay
from ._loss_comparison import LossComparisonDisplay
from ._probe_accuracy import ProbeAccuracyDisplay
from ._reliability import ReliabilityDisplay
from ._risk_coverage import RiskCoverageDisplay
from ._training_map import TrainingMapDisplay

__all__ = [
    "ClassReliabilityDisplay",
    "DecompositionDisplay",
    "DifficultyDisplay",
    "DifficultyPlaneDisplay",
    "EmbeddingMapDisplay",
    "HardestSamplesDisplay",
    "LossComparisonDisplay",
    "ProbeAccuracyDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "TrainingMapDisplay",
]

fill_docstrings(globals())
