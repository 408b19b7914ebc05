"""Repair the probabilities of a trained model."""

from ._base import PostHocCalibrator
from ._beta import BetaCalibration
from ._calibrated_classifier import PostHocCalibratedClassifier
from ._choice import choose_calibrator
from ._dirichlet import DirichletCalibration
from ._ensemble_temperature import EnsembleTemperatureScaling
from ._histogram import HistogramBinning
from ._isotonic import IsotonicCalibration
from ._matrix import MatrixScaling
from ._prior_shift import PriorShift
from ._structured_matrix import StructuredMatrixScaling
from ._temperature import TemperatureScaling
from ._vector import VectorScaling

__all__ = [
    "BetaCalibration",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "HistogramBinning",
    "IsotonicCalibration",
    "MatrixScaling",
    "PostHocCalibratedClassifier",
    "PostHocCalibrator",
    "PriorShift",
    "StructuredMatrixScaling",
    "TemperatureScaling",
    "VectorScaling",
    "choose_calibrator",
]
