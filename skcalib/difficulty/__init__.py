"""How hard is each sample?"""

from ..utils.meta._docs import fill_docstrings
from . import records as records
from ._aware import DifficultyAwareClassifier
from ._base import DifficultyMixin
from ._cross_val import cross_val_difficulty, score_difficulty
from ._error_rate import error_rate_by_difficulty
from ._knn import KNNScorer
from ._loss import LossScorer
from ._novelty import NoveltyDetector
from ._prototypes import KMeansPrototypeScorer
from ._weights import difficulty_weights
from .depth import DifficultyProfiler, PredictionDepthScorer
from .gaussian import RelativeMahalanobisScorer, RMDScorer

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
fill_docstrings(globals() | vars(records))
