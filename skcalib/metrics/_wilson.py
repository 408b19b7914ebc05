"""Wilson's score interval of the accuracy of a bin."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri


def wilson_interval(
    share: NDArray[np.float64], count: NDArray[np.float64], confidence_level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of Wilson's score interval of a share of `count` trials; NaN without any."""
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1), got {confidence_level!r}.")
    z = ndtri((1 + confidence_level) / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = 1 / (1 + z**2 / count)
        centre = scale * (share + z**2 / (2 * count))
        half = scale * z * np.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
