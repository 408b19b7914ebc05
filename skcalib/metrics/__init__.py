"""Calibration, selective-prediction and out-of-distribution metrics."""

__all__: list[str] = []
