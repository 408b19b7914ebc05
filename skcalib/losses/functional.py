"""The losses as functions of logits and targets, one for every module."""

from ._cross_entropy import (
    brier_loss,
    cross_entropy_loss,
    label_smoothing_loss,
    poly_loss,
    zero_hinge_loss,
)
from ._focal import (
    dual_focal_loss,
    focal_loss,
    sample_dependent_focal_loss,
)
from ._penalties import difficulty_aware_loss, entropy_regularized_loss, logit_norm_loss, mmce_loss
from ._ranking import correctness_ranking_loss
from ._weighted import (
    bsce_gra_loss,
    bsce_loss,
    uncertainty_weighted_loss,
)

__all__ = [
    "brier_loss",
    "bsce_gra_loss",
    "bsce_loss",
    "correctness_ranking_loss",
    "cross_entropy_loss",
    "difficulty_aware_loss",
    "dual_focal_loss",
    "entropy_regularized_loss",
    "focal_loss",
    "label_smoothing_loss",
    "logit_norm_loss",
    "mmce_loss",
    "poly_loss",
    "sample_dependent_focal_loss",
    "uncertainty_weighted_loss",
    "zero_hinge_loss",
]
