"""Base of the embedders of images: batches, workers, device, precision and views."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from torch import nn
from torch.utils.data import DataLoader

from ..utils.computing._process import auto_device
from ..utils.meta._optional import import_optional
from ..utils.meta._private import Interval, StrOptions, _fit_context, validate_parameters
from ._images import ImageDataset, as_items, collate


class Loaded(NamedTuple):
    """A model in memory, and the parameters from which it was made."""

    key: tuple
    model: nn.Module
    preprocess: Callable[[Any], torch.Tensor]
    device: torch.device


class BaseImageEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Base of the transformers that turn images into the features of a pre-trained model.

    The model is loaded at first use and lives in this object only: it is neither cloned nor
    pickled. A subclass defines how to load it and how it encodes a batch.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model_name": [str],
        "pretrained": [None, str, os.PathLike],
        "image_size": [None, Interval(Integral, 1, None, closed="left")],
        "n_views": [None, Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "num_workers": [Interval(Integral, 0, None, closed="left")],
        "device": [str],
        "precision": [StrOptions({"float32", "float16", "bfloat16"})],
        "random_state": [Interval(Integral, 0, None, closed="left")],
        "progress": ["boolean"],
    }

    def __init__(
        self,
        model_name: str,
        pretrained: str | os.PathLike | None = None,
        *,
        image_size: int | None = None,
        n_views: int | None = None,
        batch_size: int = 64,
        num_workers: int = 0,
        device: str = "auto",
        precision: str = "float32",
        random_state: int = 0,
        progress: bool = False,
    ) -> None:
        self.model_name = model_name
        self.pretrained = pretrained
        self.image_size = image_size
        self.n_views = n_views
        self.batch_size = batch_size
        self.num_workers = num_workers
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.progress = progress

    @abstractmethod
    def _load(self) -> tuple[nn.Module, Callable[[Any], torch.Tensor]]:
        """Return the model, on the CPU, and its own pre-processing of a PIL image."""

    @abstractmethod
    def _encode(self, model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        """Return the features (n, d) of a batch of pre-processed images."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: object = None) -> Self:
        """Check the parameters and the form of X; nothing is learned and nothing is loaded.

        Parameters
        ----------
        X : list, ndarray or DataFrame of n_samples images
            See `transform`.
        y : None, default=None
            Ignored; for the interface of scikit-learn.

        Returns
        -------
        self : object
            The embedder.
        """
        as_items(X)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the features of the images; the mean over the views if there are several.

        Parameters
        ----------
        X : list, ndarray or DataFrame of n_samples images
            Image files (str or path), PIL images or uint8 arrays (height, width, channels) in a
            list, in an object array, in a Series or in a DataFrame of one column; or one uint8
            array (n_samples, height, width, channels), with 1, 3 or 4 channels, or
            (n_samples, height, width).

        Returns
        -------
        features : ndarray of shape (n_samples, n_features), float32
            As the model gives them: not normalized.

        Raises
        ------
        OSError
            If an image cannot be read (with its path) or has more pixels than
            ``PIL.Image.MAX_IMAGE_PIXELS``, or if weights cannot be downloaded.
        ValueError
            If the model is unknown, or the weights do not fit it.
        """
        return np.concatenate([views.mean(axis=1) for views in self._batches(X)])

    def transform_views(self, X: Any) -> NDArray[np.float32]:
        """Return the features of every view.

        Parameters
        ----------
        X : list, ndarray or DataFrame of n_samples images
            See `transform`.

        Returns
        -------
        features : ndarray of shape (n_views, n_samples, n_features), float32
            One view, of the images as they are, where `n_views` is None.
        """
        return np.concatenate([views.swapaxes(0, 1) for views in self._batches(X)], axis=1)

    def _batches(self, X: Any) -> Iterator[NDArray[np.float32]]:
        """Yield the features of the images of X, batch by batch: (samples, views, features)."""
        items = as_items(X)
        loaded = self._ready()
        n_views = self.n_views or 1
        batches: Any = DataLoader(
            ImageDataset(items, loaded.preprocess, self.n_views, self.random_state),
            # Views count as images, and all views of a sample belong to one batch.
            batch_size=max(1, self.batch_size // n_views),
            num_workers=self.num_workers,
            collate_fn=collate,
            # Without one of its own, the loader would draw from the generator of the user.
            generator=torch.Generator(),
            pin_memory=loaded.device.type == "cuda",
        )
        if self.progress:
            tqdm = import_optional("tqdm.auto", extra="embeddings").tqdm
            batches = tqdm(batches, desc=type(self).__name__, unit="batch")
        features = None
        for batch in batches:
            if isinstance(batch, Exception):
                raise batch
            # Of the last batch: an accelerator computed them while the CPU prepared this one.
            if features is not None:
                yield features.numpy(force=True)
            # (samples, views, ...) as one long batch for the model, and back.
            rows = self._forward(loaded, self._encode, batch.flatten(0, 1))
            # For the names of the features, as long as the parameters select the same model.
            self._size = (loaded.key, rows.shape[1])
            features = rows.reshape(len(batch), n_views, -1)
        yield features.numpy(force=True)  # type: ignore[union-attr]

    def _forward(self, loaded: Loaded, encode: Callable, batch: torch.Tensor) -> torch.Tensor:
        """Encode a batch without gradients, in the precision asked for; return float32."""
        half = self.precision != "float32"
        dtype = getattr(torch, self.precision) if half else None
        # inference_mode, because this model is never trained: only this object holds it.
        with torch.inference_mode(), torch.autocast(loaded.device.type, dtype, enabled=half):
            return encode(loaded.model, batch.to(loaded.device, non_blocking=True)).float()

    def _key(self) -> tuple:
        """Return the parameters that decide which model is in memory."""
        pretrained = self.pretrained if self.pretrained is None else str(self.pretrained)
        # Not the precision, the views or the size of the batches: the same model serves them all.
        return self.model_name, pretrained, self.image_size, self.random_state, self.device

    def _ready(self) -> Loaded:
        """Return the model, loaded if it is not in memory or if a parameter has changed."""
        validate_parameters(self)
        loaded = getattr(self, "_loaded", None)
        if loaded is None or loaded.key != self._key():
            model, preprocess = self._load()
            device = torch.device(auto_device() if self.device == "auto" else self.device)
            model.eval().to(device)
            loaded = self._loaded = Loaded(self._key(), model, preprocess, device)
        return loaded

    @property
    def _n_features_out(self) -> int:
        key, size = getattr(self, "_size", (None, 0))
        # Where this model has not embedded anything, one black image gives the size.
        if key != self._key():
            loaded = self._ready()
            pil = import_optional("PIL.Image", extra="embeddings")
            batch = loaded.preprocess(pil.new("RGB", (32, 32)))[None]
            size = self._forward(loaded, self._encode, batch).shape[1]
            self._size = (loaded.key, size)
        return size

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_loaded"}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags
