"""Repair the probabilities of a trained model."""

from ..utils._output import fill_docstrings
from ._base import PostHocCalibrator
from ._classifier import PostHocCalibratedClassifier
from ._groupwise import GroupwiseCalibration
from ._linear import (
    DirichletCalibration,
    MatrixScaling,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    VectorScaling,
)
from ._one_vs_rest import BetaCalibration, HistogramBinning, IsotonicCalibration
from ._prior_shift import PriorShift
from ._sigmoid import SigmoidCalibration
from ._stacking import StackedCalibration
from ._temperature import EnsembleTemperatureScaling, TemperatureScaling

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
    "SigmoidCalibration",
    "StackedCalibration",
    "StructuredMatrixScaling",
    "StructuredVectorScaling",
    "TemperatureScaling",
    "VectorScaling",
]

fill_docstrings(globals())
