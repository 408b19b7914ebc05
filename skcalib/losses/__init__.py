"""Losses that train calibrated networks."""

from ..utils._optional import import_optional

import_optional("torch", extra="nets")

from ._brier import BrierLoss, brier_loss
from ._bsce import BSCEGRALoss, BSCELoss, bsce_gra_loss, bsce_loss, generalized_brier_weight
from ._cross_entropy import (
    CrossEntropyLoss,
    LabelSmoothingLoss,
    cross_entropy_loss,
    label_smoothing_loss,
)
from ._dual_focal import DualFocalLoss, dual_focal_loss, dual_focal_weight
from ._focal import (
    FocalLoss,
    SampleDependentFocalLoss,
    focal_loss,
    focal_weight,
    sample_dependent_focal_loss,
    sample_dependent_focal_weight,
)
from ._mmce import MMCELoss, mmce_loss
from ._penalties import (
    DifficultyAwareLoss,
    EntropyRegularizedLoss,
    LogitNormLoss,
    difficulty_aware_loss,
    entropy_regularized_loss,
    logit_norm_loss,
)
from ._poly import PolyLoss, poly_loss
from ._ranking import CorrectnessHistory, CorrectnessRankingLoss, correctness_ranking_loss
from ._uncertainty import UncertaintyWeightedLoss, uncertainty_weighted_loss
from ._zero_hinge import ZeroHingeLoss, zero_hinge_loss

__all__ = [
    "BSCEGRALoss",
    "BSCELoss",
    "BrierLoss",
    "CorrectnessHistory",
    "CorrectnessRankingLoss",
    "CrossEntropyLoss",
    "DifficultyAwareLoss",
    "DualFocalLoss",
    "EntropyRegularizedLoss",
    "FocalLoss",
    "LabelSmoothingLoss",
    "LogitNormLoss",
    "MMCELoss",
    "PolyLoss",
    "SampleDependentFocalLoss",
    "UncertaintyWeightedLoss",
    "ZeroHingeLoss",
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
