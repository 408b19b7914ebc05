"""Labels to positions among fitted classes."""

import numpy as np
from numpy.typing import NDArray

from ..utils._labels import class_positions


def label_codes(y: NDArray, classes: NDArray) -> NDArray[np.intp]:
    """Return the position of every label among the classes of a fit."""
    codes = class_positions(y, classes)
    if (codes < 0).any():
        unknown = list(dict.fromkeys(y[codes < 0].tolist()))  # np.unique fails on mixed types
        raise ValueError(
            f"y must hold labels among the {len(classes)} classes of the fit, such as "
            f"{classes[:5].tolist()}, got {unknown[:5]}."
        )
    return codes
