"""Neural networks as scikit-learn classifiers."""

__all__: list[str] = []
