"""Samples made visible: images as data URIs, texts and rows of a table as text."""

from __future__ import annotations

import io
from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils import import_optional

# Longest edge in pixels; smaller images stay as they are, and the browser enlarges them.
EDGE = 96
# PNG is sharp, and larger than JPEG for photographs: above so many bytes it is JPEG.
MANY_BYTES = 4000
MANY_LETTERS = 160
MANY_COLUMNS = 5


def shown_sample(samples: Any, number: int) -> dict[str, str]:
    """Return {"image": data URI}, {"text": text}, or nothing where there is nothing to show."""
    if samples is None:
        return {}
    # By position: a data frame in brackets looks for a column of that name.
    sample = getattr(samples, "iloc", samples)[number]
    if hasattr(sample, "toarray"):
        sample = sample.toarray()[0]
    if isinstance(sample, str):
        return {"text": _shortened(sample)}
    if np.ndim(sample) >= 2:
        return {"image": image_uri(sample)}
    return {"text": _shortened(_row(sample))} if np.ndim(sample) == 1 else {"text": str(sample)}


def _shortened(text: str) -> str:
    return text if len(text) <= MANY_LETTERS else text[: MANY_LETTERS - 3] + "..."


def _row(sample: Any) -> str:
    """Return the first values of a row of a table, with the names of the columns if it has any."""
    values = [f"{x:.3g}" if isinstance(x, float | np.floating) else str(x) for x in sample]
    index = getattr(sample, "index", None)
    if index is not None and not callable(index):  # a list has a method of this name
        values = [f"{name} = {value}" for name, value in zip(index, values)]
    return ", ".join(values[:MANY_COLUMNS]) + (", ..." if len(values) > MANY_COLUMNS else "")


def image_uri(image: Any) -> str:
    """Return an image, an array of (height, width[, channels]) or a PIL image, as a data URI."""
    pil = import_optional("PIL.Image", extra="report")
    picture = image if hasattr(image, "thumbnail") else pil.fromarray(_pixels(np.asarray(image)))
    picture = picture.convert("L" if picture.mode in ("1", "L") else "RGB")
    picture.thumbnail((EDGE, EDGE))  # never larger than it was
    data, kind = _encoded(picture, "PNG", optimize=True), "png"
    if len(data) > MANY_BYTES:
        data, kind = _encoded(picture, "JPEG", quality=80), "jpeg"
    return f"data:image/{kind};base64,{b64encode(data).decode()}"


def _encoded(picture: Any, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, format=form, **options)
    return buffer.getvalue()


def _pixels(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the array as bytes: bytes stay, other numbers are spread over black to white."""
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (3, 4)):
        raise ValueError(
            "images must hold images of shape (height, width) or (height, width, channels) with "
            f"1, 3 or 4 channels, got one of shape {array.shape}."
        )
    if array.size == 0 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"images must hold images of numbers, got one of {array.dtype} of shape {array.shape}."
        )
    if array.dtype == np.uint8:
        return array
    values = array.astype(np.float64)
    low, high = np.nanmin(values), np.nanmax(values)
    # An image of one value is black.
    spread = (values - low) / (high - low) if high > low else np.zeros_like(values)
    return np.nan_to_num(255 * spread).astype(np.uint8)
