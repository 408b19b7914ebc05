"""Data with known truth."""

__all__: list[str] = []
