"""Displays of calibration, risk and difficulty."""

from ._reliability import ReliabilityDisplay

__all__ = ["ReliabilityDisplay"]
