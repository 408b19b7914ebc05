"""Features of the image models of timm."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ..utils.computing._process import seeded
from ..utils.meta._optional import import_optional
from ._base import BaseImageEmbedder
from ._pretrained import check_name, check_no_pretrained, check_pretrained, loading


class TimmEmbedder(BaseImageEmbedder):
    """Image features of a model of timm: the pooled output in front of its classifier.

    A transformer of the same images as :class:`OpenClipEmbedder`. It learns nothing, and loads the
    model at first use.

    Parameters
    ----------
    model_name : str
        One of ``timm.list_models()``, with or without a tag ("vit_base_patch16_224.mae"); or
        "hf-hub:<repository>" or (recent releases of timm) "local-dir:<folder>", which bring
        their own weights. A tag also decides the pre-processing.
    pretrained : str, path or None, default=None
        A tag of the model, downloaded by timm and kept in its cache; or a local file of weights,
        with or without a classifier; or None for the tag in `model_name` and, where there is
        none, for random weights, drawn with `random_state`.
    image_size, n_views, batch_size, num_workers : of :class:`OpenClipEmbedder`
    device, precision, random_state, progress : of :class:`OpenClipEmbedder`

    See Also
    --------
    OpenClipEmbedder : Models of open_clip, which embed texts as well.
    LayerEmbedder : Layers of a torch module.
    skcalib.difficulty.RelativeMahalanobisScorer : Scores difficulty from such features.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.embeddings import TimmEmbedder
    >>> embedder = TimmEmbedder("resnet18", image_size=32, random_state=1)
    >>> images = np.zeros((2, 32, 32, 3), dtype=np.uint8)
    >>> embedder.transform(images).shape
    (2, 512)
    """

    def _encode(self, model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        return model(batch)

    def _load(self) -> tuple[nn.Module, Callable[[Any], torch.Tensor]]:
        timm = import_optional("timm", extra="embeddings")
        model = self._create(timm)
        args = {}
        if self.image_size is not None:
            args["input_size"] = (3, self.image_size, self.image_size)
            # Such as a ViT, whose position embeddings are made for one size.
            if model.pretrained_cfg.get("fixed_input_size", False):
                model.set_input_size(img_size=self.image_size)
        config = timm.data.resolve_data_config(args, model=model)
        return model, timm.data.create_transform(**config, is_training=False)

    def _create(self, timm: Any) -> Any:
        """Return the model without its classifier, with the weights that are given."""
        name, given = self.model_name, self.pretrained
        arch, _, tag = name.partition(".")
        if ":" in name:
            check_no_pretrained(name, given)
            with loading(name, None):
                return timm.create_model(name, pretrained=True, num_classes=0)
        check_name(arch, timm.list_models(), "timm")
        if given is None and not tag:
            with seeded(self.random_state):
                # With num_classes=0, here and below, timm returns the input of the classifier.
                return timm.create_model(arch, num_classes=0)
        # timm's names of weights are <architecture>.<tag>.
        tags = [known.partition(".")[2] for known in timm.list_pretrained(f"{arch}.*")]
        pretrained = tag if given is None else os.fspath(given)
        check_pretrained(pretrained, tags, arch)
        if tag and tag != pretrained and not os.path.isfile(pretrained):
            raise ValueError(
                f"model_name has the tag {tag!r}, so pretrained must be None or a local file, "
                f"got {given!r}."
            )
        with loading(arch, pretrained):
            if os.path.isfile(pretrained):
                return _from_file(timm, name, pretrained)
            return timm.create_model(f"{arch}.{pretrained}", pretrained=True, num_classes=0)


def _from_file(timm: Any, name: str, path: str) -> Any:
    """Return the model with the weights of a file, all of them, except those of a classifier."""
    weights = timm.models.load_state_dict(path)
    classifier = getattr(timm.models.get_pretrained_cfg(name), "classifier", None) or ()
    for layer in (classifier,) if isinstance(classifier, str) else classifier:
        weights.pop(f"{layer}.weight", None)
        weights.pop(f"{layer}.bias", None)
    # With the name of a classifier, timm would skip weights that do not fit, without an error.
    overlay = {"state_dict": weights, "classifier": None, "custom_load": False}
    model = timm.create_model(name, pretrained=True, pretrained_cfg_overlay=overlay, num_classes=0)
    # The model's configuration would keep the tensors of the file in memory a second time.
    model.pretrained_cfg["state_dict"] = None
    return model
