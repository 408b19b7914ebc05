"""Losses that train calibrated networks: modules here, functions in ``losses.functional``."""

from ..utils.meta._docs import fill_docstrings
from ..utils.meta._optional import import_optional

import_optional("torch", extra="nets")

from . import functional as functional
from ._brier import BrierLoss
from ._bsce import BSCEGRALoss, BSCELoss
from ._cross_entropy import CrossEntropyLoss, LabelSmoothingLoss
from ._dual_focal import DualFocalLoss
from ._focal import FocalLoss, SampleDependentFocalLoss
from ._mmce import MMCELoss
from ._penalties import DifficultyAwareLoss, EntropyRegularizedLoss, LogitNormLoss
from ._poly import PolyLoss
from ._ranking import CorrectnessHistory, CorrectnessRankingLoss
from ._uncertainty import UncertaintyWeightedLoss
from ._zero_hinge import ZeroHingeLoss

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
