"""Images as users have them, and the base of their embedders."""

from __future__ import annotations

import math
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from torch import nn
from torch.utils.data import DataLoader, Dataset

from ..utils._arrays import check_readable
from ..utils._backends import choose_device
from ..utils._compat import Interval, StrOptions, _fit_context, validate_parameters
from ..utils._estimators import VersionMixin
from ..utils._output import import_optional
from ..utils._output import open_image as open_upright

if TYPE_CHECKING:
    from PIL.Image import Image


# Images as users have them: file paths, PIL images, uint8 arrays, a DataFrame column.


def as_items(X: Any) -> Sequence:
    """Return X as a sequence of paths, PIL images or uint8 arrays (height, width, channels)."""
    check_readable(X, name="X")
    if hasattr(X, "columns"):
        if len(X.columns) != 1:
            raise ValueError(
                f"X must have one column, of images or paths, got {len(X.columns)} columns."
            )
        # pyarrow's columns are arrays, those of pandas and polars are names.
        X = X.columns[0] if hasattr(X, "column_names") else X[X.columns[0]]
    if isinstance(X, np.ndarray):
        X = _check_array(X)
    elif hasattr(X, "to_list"):
        X = X.to_list()
    elif hasattr(X, "to_pylist"):  # a column of pyarrow
        X = X.to_pylist()
    elif not isinstance(X, list | tuple):
        raise TypeError(
            "X must be a list of image files, of PIL images or of uint8 arrays, a uint8 array of "
            "shape (n_samples, height, width, channels) or a DataFrame column, "
            f"got {type(X).__name__}."
        )
    if len(X) == 0:
        raise ValueError("X must hold at least one image, got none.")
    return X


def _check_array(X: np.ndarray) -> Any:
    """Return uint8 images as they are, and objects or paths as a list; raise for other arrays."""
    # Objects and strings (U, S; T is numpy's type of variable width), one an image; also as a
    # column (n, 1), which scikit-learn's ColumnTransformer selects from an array.
    if X.dtype.kind in "OUST" and (X.ndim == 1 or (X.ndim == 2 and X.shape[1] == 1)):
        return X.ravel().tolist()
    if X.dtype != np.uint8:
        raise TypeError(f"X must hold images of dtype uint8 (0 to 255), got dtype {X.dtype}.")
    # (height, width, 3) is a single photograph.
    if (X.ndim == 3 and X.shape[2] != 3) or (X.ndim == 4 and X.shape[3] in (1, 3, 4)):
        return X
    raise ValueError(
        "X must be of shape (n_samples, height, width, channels) with 1, 3 or 4 channels, or "
        f"(n_samples, height, width), got shape {X.shape}."
    )


def open_image(item: Any) -> Image:
    """Return an item as an RGB image; a photo is turned upright as its EXIF data say."""
    pil = import_optional("PIL.Image", extra="embeddings")
    if isinstance(item, np.ndarray):
        # Checked as an array of one image. PIL reads gray images without an axis of channels.
        pixels = _check_array(item[None])[0]
        if 0 in pixels.shape:  # Pillow 10.0 refuses it in other words
            raise ValueError(
                f"an image must have at least one pixel, got size {pixels.shape[:2]}."
            )
        item = pil.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels)
    if not isinstance(item, pil.Image | str | os.PathLike):
        raise TypeError(
            "an image must be a path, a PIL image or a uint8 array (height, width, channels), "
            f"got {type(item).__name__}."
        )
    image = open_upright(item, extra="embeddings")
    if 0 in image.size:
        raise ValueError(f"an image must have at least one pixel, got size {image.size}.")
    return image.convert("RGB")


def draw_view(image: Image, seed: int, view: int) -> Image:
    """Return a random crop of 60 to 100 % of the area, mirrored in half of the cases.

    The draw depends on the pixels, the seed and the number of the view, not on the other samples.
    """
    pil = import_optional("PIL.Image", extra="embeddings")
    rng = np.random.default_rng([seed, view, zlib.crc32(image.tobytes())])
    # Both sides shrink by the root of the fraction of the area: the crop keeps the shape.
    side = math.sqrt(rng.uniform(0.6, 1.0))
    width, height = (max(1, round(side * length)) for length in image.size)
    # integers leaves out its upper end; a crop may touch the right and the lower edge.
    left = int(rng.integers(image.width - width + 1))
    top = int(rng.integers(image.height - height + 1))
    crop = image.crop((left, top, left + width, top + height))
    return crop.transpose(pil.Transpose.FLIP_LEFT_RIGHT) if rng.random() < 0.5 else crop


class ImageDataset(Dataset):
    """The views of every item, pre-processed: (n_views, channels, height, width) each.

    An image that cannot be read is returned as its error, to be raised in the main process
    without the traceback of a worker.
    """

    def __init__(
        self,
        items: Sequence,
        preprocess: Callable[[Image], torch.Tensor],
        n_views: int | None,
        seed: int,
    ) -> None:
        self.items = items
        self.preprocess = preprocess
        self.n_views = n_views
        self.seed = seed

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> torch.Tensor | Exception:
        try:
            image = open_image(self.items[index])
        except (OSError, TypeError, ValueError) as error:
            return type(error)(f"X[{index}]: {error}")
        views = (
            [image]
            if self.n_views is None
            else [draw_view(image, self.seed, view) for view in range(self.n_views)]
        )
        return torch.stack([self.preprocess(view) for view in views])


def collate(samples: list[torch.Tensor | Exception]) -> torch.Tensor | Exception:
    """Return the samples as one batch, or the first error among them."""
    errors = [sample for sample in samples if isinstance(sample, Exception)]
    if errors:
        return errors[0]
    return torch.stack([sample for sample in samples if isinstance(sample, torch.Tensor)])


# Base of the embedders of images: batches, workers, device, precision and views.


class Loaded(NamedTuple):
    """A model in memory, and the parameters from which it was made."""

    key: tuple
    model: nn.Module
    preprocess: Callable[[Any], torch.Tensor]
    device: torch.device


class BaseImageEmbedder(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, VersionMixin, BaseEstimator, ABC
):
    """Base of the transformers that turn images into the features of a pre-trained model.

    The model is loaded at first use and lives in this object only: it is neither cloned nor
    pickled. A subclass defines how to load it and how it encodes a batch.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model_name": [str],
        "pretrained": [None, str, os.PathLike, bool],  # bool: an error that names the tags
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
            list, in an object array, or in a column or a table of one column of pandas, polars or
            pyarrow; images of 16 bits or of floats are scaled to 8 bits. Or one uint8
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
            device = torch.device(choose_device() if self.device == "auto" else self.device)
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
