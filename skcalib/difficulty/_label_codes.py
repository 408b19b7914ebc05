"""Labels to positions among fitted classes."""

import numpy as np
from numpy.typing import NDArray

from ..utils._labels import class_positions


def label_codes(y: NDArray, classes: NDArray) -> NDArray[np.intp]:
    """Return the position of every label among the classes of a fit."""
    codes = class_positions(y, classes)
    unknown = codes < 0
    if unknown.any():
        raise ValueError(
            f"y must hold labels among the {len(classes)} classes of the fit, such as "
            f"{classes[:5].tolist()}, got {np.unique(y[unknown])[:5].tolist()}."
        )
    return codes
