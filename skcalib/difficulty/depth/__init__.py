"""Difficulty by prediction depth: the layer from which the prediction no longer changes."""

from ._prediction_depth import PredictionDepthScorer
from ._profiler import DifficultyProfiler

__all__ = ["DifficultyProfiler", "PredictionDepthScorer"]
