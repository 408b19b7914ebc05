"""Repair the probabilities of a trained model."""

__all__: list[str] = []
