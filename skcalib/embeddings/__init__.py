"""Features of pre-trained models as scikit-learn transformers."""

from ._layers import LayerEmbedder

__all__ = ["LayerEmbedder"]
