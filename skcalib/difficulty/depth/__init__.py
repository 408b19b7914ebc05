"""Difficulty by prediction depth: the layer from which a network's answer no longer changes."""

from ._prediction_depth import PredictionDepthScorer
from ._profiler import DifficultyProfiler

__all__ = ["DifficultyProfiler", "PredictionDepthScorer"]
