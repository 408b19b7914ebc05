"""Repair the probabilities of a trained model."""

from ._temperature import TemperatureScaling

__all__ = ["TemperatureScaling"]
