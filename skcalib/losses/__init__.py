"""Losses that train calibrated networks: modules here, functions in ``losses.functional``."""

from ..utils._output import fill_docstrings, import_optional

import_optional("torch", extra="nets")

from . import functional as functional
from ._cross_entropy import (
    BrierLoss,
    CrossEntropyLoss,
    LabelSmoothingLoss,
    PolyLoss,
    ZeroHingeLoss,
)
from ._focal import DualFocalLoss, FocalLoss, SampleDependentFocalLoss
from ._penalties import DifficultyAwareLoss, EntropyRegularizedLoss, LogitNormLoss, MMCELoss
from ._ranking import CorrectnessHistory, CorrectnessRankingLoss
from ._weighted import BSCEGRALoss, BSCELoss, UncertaintyWeightedLoss

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
]

fill_docstrings(globals() | vars(functional))
