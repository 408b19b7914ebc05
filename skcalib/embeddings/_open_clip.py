"""Features of the image and text towers of open_clip."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import gen_batches
from torch import nn

from ..utils.checking._validation import check_texts
from ..utils.computing._process import seeded
from ..utils.meta._optional import import_optional
from ._base import BaseImageEmbedder
from ._pretrained import check_name, check_no_pretrained, check_pretrained, loading


class OpenClipEmbedder(BaseImageEmbedder):
    """Features of images, and of texts to compare them with, by a model of open_clip.

    A transformer of images: file paths, PIL images, uint8 arrays or a DataFrame column of them.
    It learns nothing: `transform` needs no `fit`. The model is loaded at first use; until then,
    and in clones and pickles, the object holds only its name.

    Parameters
    ----------
    model_name : str
        One of ``open_clip.list_models()``; or "hf-hub:<repository>" or (open_clip 3)
        "local-dir:<folder>", which bring their own weights.
    pretrained : str, path or None, default=None
        One of ``open_clip.list_pretrained_tags_by_model(model_name)``, downloaded by open_clip and
        kept in its cache; or a local file of weights; or None for random weights, drawn with
        `random_state`. A tag that was trained with QuickGELU ("openai") gets a model with it; for
        a local file of such weights take the model called "...-quickgelu".
    image_size : int, default=None
        Side in pixels to which images are brought. None is the size of the model.
    n_views : int, default=None
        None embeds the image as it is. A number embeds that many random crops of 60 to 100 % of
        the area, half of them mirrored: `transform` returns their mean, `transform_views` all of
        them. They depend on the image and `random_state`, not on the other samples.
    batch_size : int, default=64
        Images per pass (views count as images).
    num_workers : int, default=0
        Processes that read and pre-process images; 0 uses this one.
    device : str, default="auto"
        "cpu", "cuda", "cuda:1", "mps"; "auto" takes the first of cuda, mps and cpu.
    precision : {"float32", "float16", "bfloat16"}, default="float32"
        Type in which the model computes (by :class:`torch.autocast`). Features are float32.
    random_state : int, default=0
        Seed of the views and of random weights. A number: all copies must embed alike.
    progress : bool, default=False
        Whether to show a progress bar (tqdm).

    See Also
    --------
    TimmEmbedder : Models of timm.
    LayerEmbedder : Layers of a torch module.

    Notes
    -----
    Averaging the views in feature space keeps one row per sample, as a Pipeline needs. The authors
    of [1]_ instead fit the scorer on several runs and average its scores; with the views of
    `transform_views` that is ``scorer.partial_fit(view, y)`` for every view, then the mean of
    ``scorer.difficulty(view, y)``.

    A cache, ``Pipeline(memory=)``, recognizes a file by its path, not by its content.

    References
    ----------
    .. [1] P. Cui, D. Zhang, Z. Deng, Y. Dong, J. Zhu, "Learning Sample Difficulty from
       Pre-trained Models for Reliable Prediction", NeurIPS 2023.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skcalib.difficulty import RMDScorer
    >>> from skcalib.embeddings import OpenClipEmbedder
    >>> embedder = OpenClipEmbedder("ViT-B-32", pretrained="openai", num_workers=4)
    >>> hardness = make_pipeline(embedder, RMDScorer())  # nothing is loaded yet
    >>> hardness.fit(["cats/1.jpg", ...], ["cat", ...])  # doctest: +SKIP
    """

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the features of texts, in the space of the images' features.

        Parameters
        ----------
        texts : sequence of str
            For instance "a blurry photo".

        Returns
        -------
        features : ndarray of shape (n_texts, n_features), float32
            As the model gives them: not normalized.
        """
        texts = check_texts(texts, "texts")
        loaded = self._ready()
        open_clip = import_optional("open_clip", extra="embeddings")
        with loading(self.model_name, None):
            tokenizer = open_clip.get_tokenizer(self._library_name())
        features = []
        for rows in gen_batches(len(texts), self.batch_size):
            tokens = tokenizer(texts[rows])
            encoded = self._forward(loaded, lambda model, batch: model.encode_text(batch), tokens)
            features.append(encoded.numpy(force=True))
        return np.concatenate(features)

    def _library_name(self) -> str:
        """Return the name in the spelling of open_clip, ViT-B-32 for OpenAI's ViT-B/32."""
        return self.model_name if ":" in self.model_name else self.model_name.replace("/", "-")

    def _encode(self, model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        return model.encode_image(batch)  # type: ignore[operator]

    def _load(self) -> tuple[nn.Module, Callable[[Any], torch.Tensor]]:
        open_clip = import_optional("open_clip", extra="embeddings")
        name = self._library_name()
        options: dict[str, Any] = {"force_image_size": self.image_size}
        if ":" in name:
            check_no_pretrained(name, self.pretrained)
            with loading(name, None):
                return open_clip.create_model_from_pretrained(name, **options)
        check_name(name, open_clip.list_models(), "open_clip")
        if self.pretrained is None:
            # By default a text tower of Hugging Face comes with its weights (pretrained_hf).
            with seeded(self.random_state):
                model, _, preprocess = open_clip.create_model_and_transforms(
                    name, pretrained_hf=False, **options
                )
            return model, preprocess
        pretrained = os.fspath(self.pretrained)
        check_pretrained(pretrained, open_clip.list_pretrained_tags_by_model(name), name)
        # Weights trained with QuickGELU give other features, without an error, with plain GELU.
        options["force_quick_gelu"] = open_clip.get_pretrained_cfg(name, pretrained).get(
            "quick_gelu", False
        )
        with loading(name, pretrained):
            return open_clip.create_model_from_pretrained(name, pretrained, **options)
