"""Losses that train calibrated networks."""

__all__: list[str] = []
