"""Images made worse by degrees, as in the usual benchmark of corruptions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from sklearn.utils import check_random_state

# Of CIFAR-10-C, for pixels in [0, 1]: five severities each. A blur is in pixels of 32 x 32 images.
_LEVELS = {
    "gaussian_noise": (0.04, 0.06, 0.08, 0.09, 0.10),  # standard deviation
    "shot_noise": (500, 250, 100, 75, 50),  # photons per pixel of full brightness
    "impulse_noise": (0.01, 0.02, 0.03, 0.05, 0.07),  # fraction of the values
    "gaussian_blur": (0.4, 0.6, 0.7, 0.8, 1.0),  # standard deviation
    "brightness": (0.05, 0.1, 0.15, 0.2, 0.3),  # added to the brightest channel of a pixel
    "contrast": (0.75, 0.5, 0.4, 0.3, 0.15),  # factor of the distance from the mean
}
_SIZE = 32


def _brighter(images: NDArray, level: float) -> NDArray:
    # Value in the sense of HSV: hue and saturation stay, so all channels grow in proportion.
    if images.ndim == 3:
        return images + level
    value = images.max(axis=3, keepdims=True)
    factor = np.minimum(value + level, 1.0) / np.where(value > 0, value, 1.0)
    return np.where(value > 0, images * factor, level)


def _corrupt(images: NDArray, kind: str, level: float, rng: np.random.RandomState) -> NDArray:
    if kind == "gaussian_noise":
        return images + rng.normal(scale=level, size=images.shape)
    if kind == "shot_noise":
        return rng.poisson(images * level) / level
    if kind == "impulse_noise":
        # Salt and pepper in equal parts.
        hit, salt = rng.random_sample((2, *images.shape))
        return np.where(hit < level, salt < 0.5, images)
    if kind == "gaussian_blur":
        sigma = level * min(images.shape[1:3]) / _SIZE
        return gaussian_filter(images, (0, sigma, sigma, 0)[: images.ndim])
    if kind == "brightness":
        return _brighter(images, level)
    mean = images.mean(axis=(1, 2), keepdims=True)
    return (images - mean) * level + mean


def _check_images(images: Any) -> NDArray:
    found = np.asarray(images)
    if found.ndim not in (3, 4) or found.size == 0:
        raise ValueError(
            "images must be of shape (n_images, height, width) or (n_images, height, width, "
            f"n_channels), got {found.shape}."
        )
    if found.dtype == np.uint8:
        return found
    if not np.issubdtype(found.dtype, np.floating):
        raise ValueError(f"images must be uint8 or floats in [0, 1], got {found.dtype}.")
    if not (np.isfinite(found).all() and found.min() >= 0 and found.max() <= 1):
        raise ValueError("images must be uint8 or floats in [0, 1], got other values.")
    return found


def corrupt_images(
    images: Any,
    kind: str = "gaussian_noise",
    *,
    severity: int = 3,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray:
    """Corrupt images by noise, blur, brightness or contrast of a severity.

    Kinds and severities are those of CIFAR-10-C [1]_: the usual way to ask how calibration,
    difficulty or a detector of novelty behave under shift.

    Parameters
    ----------
    images : array-like of shape (n_images, height, width) or (n_images, height, width, n_channels)
        Gray or color images: uint8, or floats in [0, 1].
    kind : {"gaussian_noise", "shot_noise", "impulse_noise", "gaussian_blur", "brightness", \
"contrast"}, default="gaussian_noise"
        What is done to the images. The blur grows with the smaller side of the images.
    severity : int in [0, 5], default=3
        How much of it; 0 leaves the images as they are, larger = worse.
    random_state : int, RandomState instance or None, default=None
        Seed of the noise; pass an int for repeatable images.

    Returns
    -------
    corrupted : ndarray of the shape and dtype of `images`
        Corrupted copies, cut off at black and white.

    Raises
    ------
    ValueError
        If `images` has another shape, dtype or range.

    References
    ----------
    .. [1] Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions
       and Perturbations", ICLR 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.papers.corruptions import corrupt_images
    >>> images = np.full((2, 32, 32, 3), 128, dtype=np.uint8)
    >>> noisy = corrupt_images(images, "gaussian_noise", severity=5, random_state=0)
    >>> noisy.shape, noisy.dtype, noisy.std().round()
    ((2, 32, 32, 3), dtype('uint8'), np.float64(25.0))
    """
    found = _check_images(images)
    if severity == 0:
        return found.copy()
    rng = check_random_state(random_state)
    in_bytes = found.dtype == np.uint8
    values = found / 255.0 if in_bytes else found.astype(np.float64)
    corrupted = np.clip(_corrupt(values, kind, _LEVELS[kind][severity - 1], rng), 0.0, 1.0)
    if in_bytes:
        return np.rint(255 * corrupted).astype(np.uint8)
    return corrupted.astype(found.dtype)
