"""Displays of calibration, risk and difficulty."""

__all__: list[str] = []
