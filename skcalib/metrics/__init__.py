"""Calibration, selective-prediction and out-of-distribution metrics."""

from ._uncertainty import confidence_score, predictive_entropy, probability_margin

__all__ = ["confidence_score", "predictive_entropy", "probability_margin"]
