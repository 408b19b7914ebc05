"""Labels to positions among fitted classes."""

import numpy as np
from numpy.typing import NDArray


def label_codes(y: NDArray, classes: NDArray) -> NDArray[np.intp]:
    """Return the position of every label among the sorted classes of a fit."""
    try:
        codes = np.searchsorted(classes, y)
    except TypeError:
        raise ValueError(
            f"y must hold labels of the type of the classes of the fit, {classes[:5].tolist()}, "
            f"got {y[:5].tolist()}."
        ) from None
    known = classes[np.minimum(codes, len(classes) - 1)] == y
    if not np.all(known):
        raise ValueError(
            f"y must hold labels among the {len(classes)} classes of the fit, "
            f"got {np.unique(y[~known])[:5].tolist()}."
        )
    return codes
