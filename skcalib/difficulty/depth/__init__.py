"""Difficulty by prediction depth: the layer from which on a network's answer stands."""

from ._prediction_depth import PredictionDepthScorer
from ._profiler import DifficultyProfiler

__all__ = ["DifficultyProfiler", "PredictionDepthScorer"]
