"""How hard is each sample?"""

from ._aware import DifficultyAwareClassifier
from ._base import DifficultyMixin
from ._cross_val import cross_val_difficulty, score_difficulty
from ._error_rate import error_rate_by_difficulty
from ._explain import explain_difficulty
from ._knn import KNNScorer
from ._loss import LossScorer
from ._novelty import NoveltyDetector
from ._prototypes import KMeansPrototypeScorer
from ._records import (
    area_under_margin,
    confidence_variability,
    consensus_class,
    consensus_consistency,
    consistency_score,
    corner_distances,
    difficulty_quadrant,
    el2n,
    forgetting_events,
    iteration_learned,
    output_margin,
    prediction_depth,
    prediction_entropy,
)
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
    "area_under_margin",
    "confidence_variability",
    "consensus_class",
    "consensus_consistency",
    "consistency_score",
    "corner_distances",
    "cross_val_difficulty",
    "difficulty_quadrant",
    "difficulty_weights",
    "el2n",
    "error_rate_by_difficulty",
    "explain_difficulty",
    "forgetting_events",
    "iteration_learned",
    "output_margin",
    "prediction_depth",
    "prediction_entropy",
    "score_difficulty",
]
