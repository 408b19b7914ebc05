"""The losses and weights as functions of logits and targets, one for every module that has one."""

from ._cross_entropy import (
    brier_loss,
    cross_entropy_loss,
    label_smoothing_loss,
    poly_loss,
    zero_hinge_loss,
)
from ._focal import (
    dual_focal_loss,
    dual_focal_weight,
    focal_loss,
    focal_weight,
    sample_dependent_focal_loss,
    sample_dependent_focal_weight,
)
from ._penalties import difficulty_aware_loss, entropy_regularized_loss, logit_norm_loss, mmce_loss
from ._ranking import correctness_ranking_loss
from ._weighted import (
    bsce_gra_loss,
    bsce_loss,
    generalized_brier_weight,
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
    "dual_focal_weight",
    "entropy_regularized_loss",
    "focal_loss",
    "focal_weight",
    "generalized_brier_weight",
    "label_smoothing_loss",
    "logit_norm_loss",
    "mmce_loss",
    "poly_loss",
    "sample_dependent_focal_loss",
    "sample_dependent_focal_weight",
    "uncertainty_weighted_loss",
    "zero_hinge_loss",
]
