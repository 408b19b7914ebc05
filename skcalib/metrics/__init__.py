"""Calibration, selective-prediction and out-of-distribution metrics."""

from ._accumulator import CalibrationAccumulator
from ._calibration_error import (
    expected_calibration_error,
    maximum_calibration_error,
    reliability_curve,
)
from ._classwise import classwise_calibration_error
from ._debiased import debiased_calibration_error
from ._ks import ks_calibration_error
from ._scorer import get_scorer, get_scorer_names
from ._smooth import smooth_calibration_error
from ._uncertainty import confidence_score, predictive_entropy, probability_margin

__all__ = [
    "CalibrationAccumulator",
    "classwise_calibration_error",
    "confidence_score",
    "debiased_calibration_error",
    "expected_calibration_error",
    "get_scorer",
    "get_scorer_names",
    "ks_calibration_error",
    "maximum_calibration_error",
    "predictive_entropy",
    "probability_margin",
    "reliability_curve",
    "smooth_calibration_error",
]
