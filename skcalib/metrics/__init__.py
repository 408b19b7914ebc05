"""Calibration, selective-prediction and out-of-distribution metrics."""

from ._accumulator import CalibrationAccumulator
from ._calibration_error import expected_calibration_error, reliability_curve
from ._scorer import get_scorer, get_scorer_names
from ._uncertainty import confidence_score, predictive_entropy, probability_margin

__all__ = [
    "CalibrationAccumulator",
    "confidence_score",
    "expected_calibration_error",
    "get_scorer",
    "get_scorer_names",
    "predictive_entropy",
    "probability_margin",
    "reliability_curve",
]
