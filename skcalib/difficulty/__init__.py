"""How hard is each sample?"""

from ..utils._output import fill_docstrings
from . import training_dynamics as training_dynamics
from ._aware import DifficultyAwareClassifier, difficulty_weights
from ._base import DifficultyMixin
from ._evaluation import cross_val_difficulty, error_rate_by_difficulty, score_difficulty
from ._mahalanobis import RelativeMahalanobisScorer, RMDScorer
from ._novelty import NoveltyDetector
from ._prediction_depth import PredictionDepthScorer
from ._profiler import DifficultyProfiler
from ._scorers import KMeansPrototypeScorer, KNNScorer, LossScorer

__all__ = [
    "DifficultyAwareClassifier",
    "DifficultyMixin",
    "DifficultyProfiler",
    "KMeansPrototypeScorer",
    "KNNScorer",
    "LossScorer",
    "NoveltyDetector",
    "PredictionDepthScorer",
    "RMDScorer",
    "RelativeMahalanobisScorer",
    "cross_val_difficulty",
    "difficulty_weights",
    "error_rate_by_difficulty",
    "score_difficulty",
]

fill_docstrings(globals())
fill_docstrings(globals() | vars(training_dynamics))
