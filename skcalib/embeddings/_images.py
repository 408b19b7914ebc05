"""Images as users have them: file paths, PIL images, uint8 arrays, a DataFrame column."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.data import Dataset

from ..utils.meta._optional import import_optional
from ..utils.meta._warnings import ignoring

if TYPE_CHECKING:
    from PIL.Image import Image


def as_items(X: Any) -> Sequence:
    """Return X as a sequence of paths, PIL images or uint8 arrays (height, width, channels)."""
    if hasattr(X, "columns"):
        if len(X.columns) != 1:
            raise ValueError(
                f"X must have one column, of images or paths, got {len(X.columns)} columns."
            )
        X = X[X.columns[0]]
    if isinstance(X, np.ndarray):
        X = _check_array(X)
    elif hasattr(X, "to_list"):
        X = X.to_list()
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
    if isinstance(item, str | os.PathLike):
        return _open_file(item, pil)
    if isinstance(item, np.ndarray):
        # Checked as an array of one image. PIL reads gray images without an axis of channels.
        pixels = _check_array(item[None])[0]
        if 0 in pixels.shape:  # Pillow 10.0 refuses it in other words
            raise ValueError(
                f"an image must have at least one pixel, got size {pixels.shape[:2]}."
            )
        item = pil.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels)
    if not isinstance(item, pil.Image):
        raise TypeError(
            "an image must be a path, a PIL image or a uint8 array (height, width, channels), "
            f"got {type(item).__name__}."
        )
    if 0 in item.size:
        raise ValueError(f"an image must have at least one pixel, got size {item.size}.")
    return item.convert("RGB")


def _open_file(path: str | os.PathLike, pil: Any) -> Image:
    ops = import_optional("PIL.ImageOps", extra="embeddings")
    try:
        # PIL warns of an image beyond its limit, and refuses one of twice as many pixels.
        with ignoring(pil.DecompressionBombWarning), pil.open(path) as image:
            if math.prod(image.size) > (pil.MAX_IMAGE_PIXELS or math.inf):
                raise pil.DecompressionBombError
            return ops.exif_transpose(image).convert("RGB")
    except pil.DecompressionBombError as error:
        raise OSError(
            f"cannot read the image {os.fspath(path)!r}: it has more than {pil.MAX_IMAGE_PIXELS} "
            "pixels; if it can be trusted, raise that limit, PIL.Image.MAX_IMAGE_PIXELS."
        ) from error
    # PIL's readers of file formats raise ValueError and SyntaxError for broken files as well.
    except (OSError, ValueError, SyntaxError) as error:
        raise OSError(f"cannot read the image {os.fspath(path)!r}: {error}.") from error


def random_view(image: Image, seed: int, view: int) -> Image:
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
            else [random_view(image, self.seed, view) for view in range(self.n_views)]
        )
        return torch.stack([self.preprocess(view) for view in views])


def collate(samples: list[torch.Tensor | Exception]) -> torch.Tensor | Exception:
    """Return the samples as one batch, or the first error among them."""
    errors = [sample for sample in samples if isinstance(sample, Exception)]
    if errors:
        return errors[0]
    return torch.stack([sample for sample in samples if isinstance(sample, torch.Tensor)])
