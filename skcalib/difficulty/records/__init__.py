"""Functions of records: predictions over training time, over an ensemble or over depth."""

from ._dynamics import (
    area_under_margin,
    confidence_variability,
    el2n,
    forgetting_events,
    iteration_learned,
    output_margin,
    prediction_depth,
)
from ._quadrant import corner_distances, difficulty_quadrant
from ._votes import (
    consensus_class,
    consensus_consistency,
    consistency_score,
    prediction_entropy,
)

__all__ = [
    "area_under_margin",
    "confidence_variability",
    "consensus_class",
    "consensus_consistency",
    "consistency_score",
    "corner_distances",
    "difficulty_quadrant",
    "el2n",
    "forgetting_events",
    "iteration_learned",
    "output_margin",
    "prediction_depth",
    "prediction_entropy",
]
