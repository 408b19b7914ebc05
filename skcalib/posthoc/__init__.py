"""Repair the probabilities of a trained model."""

from ..utils.meta._docs import fill_docstrings
from ._base import PostHocCalibrator
from ._beta import BetaCalibration
from ._calibrated_classifier import PostHocCalibratedClassifier
from ._ensemble_temperature import EnsembleTemperatureScaling
from ._groupwise import GroupwiseCalibration
from ._histogram import HistogramBinning
from ._isotonic import IsotonicCalibration
from ._matrix import (
    DirichletCalibration,
    MatrixScaling,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    VectorScaling,
)
from ._prior_shift import PriorShift
from ._stacked import StackedCalibration
from ._temperature import TemperatureScaling

__all__ = [
    "BetaCalibration",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "GroupwiseCalibration",
    "HistogramBinning",
    "IsotonicCalibration",
    "MatrixScaling",
    "PostHocCalibratedClassifier",
    "PostHocCalibrator",
    "PriorShift",
    "StackedCalibration",
    "StructuredMatrixScaling",
    "StructuredVectorScaling",
    "TemperatureScaling",
    "VectorScaling",
]

fill_docstrings(globals())
