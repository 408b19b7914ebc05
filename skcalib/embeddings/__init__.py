"""Features of pre-trained models as scikit-learn transformers."""

from ..utils._output import fill_docstrings, import_optional

import_optional("torch", extra="embeddings")

from ._layers import LayerEmbedder
from ._pretrained import OpenClipEmbedder, TimmEmbedder

__all__ = ["LayerEmbedder", "OpenClipEmbedder", "TimmEmbedder"]

fill_docstrings(globals())
