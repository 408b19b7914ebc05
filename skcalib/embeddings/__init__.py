"""Features of pre-trained models as scikit-learn transformers."""

__all__: list[str] = []
