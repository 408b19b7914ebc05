"""Features of pre-trained models as scikit-learn transformers."""

from ..utils.meta._docs import fill_docstrings
from ..utils.meta._optional import import_optional

import_optional("torch", extra="embeddings")

from ._layers import LayerEmbedder
from ._open_clip import OpenClipEmbedder
from ._timm import TimmEmbedder

__all__ = ["LayerEmbedder", "OpenClipEmbedder", "TimmEmbedder"]

fill_docstrings(globals())
