"""Features of pre-trained models of timm and open_clip."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import gen_batches
from torch import nn

from ..utils._backends import seed_torch
from ..utils._output import import_optional
from ._images import BaseImageEmbedder

# Errors that say what to do when a model or its weights are not available.


def list_near_names(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """Return the end of an error about `name`: similar names, if any."""
    near = get_close_matches(name, list(known), cutoff=cutoff)
    return f" (near names: {', '.join(near)})" if near else ""


def check_name(name: str, known: Iterable[str], library: str) -> None:
    """Raise if the library has no such model."""
    if name not in (names := list(known)):
        near = list_near_names(name, names)
        raise ValueError(f"model_name must be in {library}.list_models(), got {name!r}{near}.")


def check_no_pretrained(model_name: str, pretrained: str | os.PathLike | None) -> None:
    """Raise if weights are given for a model that brings its own."""
    if pretrained is not None:
        raise ValueError(
            f"pretrained must be None for {model_name!r}, which brings its own weights, "
            f"got {pretrained!r}."
        )


def read_pretrained(pretrained: str | os.PathLike | bool, tags: list[str], model_name: str) -> str:
    """Return `pretrained` as text; raise if it is neither a file nor a tag of the model."""
    text = str(pretrained) if isinstance(pretrained, bool) else os.fspath(pretrained)
    if isinstance(pretrained, bool) or (not os.path.isfile(text) and text not in tags):
        raise ValueError(
            f"pretrained must be a local file, None or one of the tags of {model_name} "
            f"({', '.join(tags) or 'it has none'}), got {pretrained!r}."
        )
    return text


@contextmanager
def loading(model_name: str, pretrained: str | None) -> Iterator[None]:
    """Raise errors that say what to do if weights do not fit or cannot be downloaded."""
    try:
        yield
    except ImportError:  # it names the missing package; the weights are not the cause
        raise
    except Exception as error:
        # On one line, and cut below: torch lists every parameter that does not fit.
        reason = " ".join(str(error).split())
        if pretrained is not None and os.path.isfile(pretrained):
            raise ValueError(
                f"pretrained must hold weights that fit {model_name}, got {pretrained!r}: "
                f"{reason[:400]}."
            ) from error
        local = (
            "'local-dir:<folder>' as model_name" if ":" in model_name else "its path as pretrained"
        )
        raise OSError(
            f"The pretrained weights {pretrained or model_name!r} could not be loaded "
            f"({reason[:400]}); without a network, fetch them on another machine and pass {local}."
        ) from error


# Features of the image models of timm.


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
            with seed_torch(self.random_state):
                # With num_classes=0, here and below, timm returns the input of the classifier.
                return timm.create_model(arch, num_classes=0)
        # timm's names of weights are <architecture>.<tag>.
        tags = [known.partition(".")[2] for known in timm.list_pretrained(f"{arch}.*")]
        pretrained = read_pretrained(tag if given is None else given, tags, arch)
        if tag and tag != pretrained and not os.path.isfile(pretrained):
            raise ValueError(
                f"model_name has the tag {tag!r}, so pretrained must be None or a local file, "
                f"got {given!r}."
            )
        with loading(arch, pretrained):
            if os.path.isfile(pretrained):
                return _load_file(timm, name, pretrained)
            return timm.create_model(f"{arch}.{pretrained}", pretrained=True, num_classes=0)


def _load_file(timm: Any, name: str, path: str) -> Any:
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


# Features of the image and text towers of open_clip.


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
       Pre-trained Models for Reliable Prediction", NeurIPS 2023. Calls: :ref:`paper-rmd`.

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
            with seed_torch(self.random_state):
                model, _, preprocess = open_clip.create_model_and_transforms(
                    name, pretrained_hf=False, **options
                )
            return model, preprocess
        tags = open_clip.list_pretrained_tags_by_model(name)
        pretrained = read_pretrained(self.pretrained, tags, name)
        # Weights trained with QuickGELU give other features, without an error, with plain GELU.
        options["force_quick_gelu"] = open_clip.get_pretrained_cfg(name, pretrained).get(
            "quick_gelu", False
        )
        with loading(name, pretrained):
            return open_clip.create_model_from_pretrained(name, pretrained, **options)


def check_texts(texts: Sequence[str], name: str) -> list[str]:
    """Return the texts as a list, at least one."""
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{name} must be a sequence of str, got {texts!r}.")
    if len(texts) == 0:
        raise ValueError(f"{name} must hold at least one text, got none.")
    return list(texts)
