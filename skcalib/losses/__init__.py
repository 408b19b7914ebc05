"""Losses that train calibrated networks."""

from ._bsce import BSCEGRALoss, BSCELoss, bsce_gra_loss, bsce_loss, generalized_brier_weight
from ._cross_entropy import (
    CrossEntropyLoss,
    LabelSmoothingLoss,
    cross_entropy_loss,
    label_smoothing_loss,
)
from ._entropy import (
    DifficultyAwareLoss,
    EntropyRegularizedLoss,
    difficulty_aware_loss,
    entropy_regularized_loss,
)
from ._focal import FocalLoss, focal_loss, focal_weight

__all__ = [
    "BSCEGRALoss",
    "BSCELoss",
    "CrossEntropyLoss",
    "DifficultyAwareLoss",
    "EntropyRegularizedLoss",
    "FocalLoss",
    "LabelSmoothingLoss",
    "bsce_gra_loss",
    "bsce_loss",
    "cross_entropy_loss",
    "difficulty_aware_loss",
    "entropy_regularized_loss",
    "focal_loss",
    "focal_weight",
    "generalized_brier_weight",
    "label_smoothing_loss",
]
