"""Replace a share of labels, and remember which."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state, column_or_1d

from ..utils._labels import check_several_classes
from ..utils._private import Interval, validate_params


@validate_params(
    {
        "y": ["array-like"],
        "fraction": [Interval(Real, 0, 1, closed="both")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def flip_labels(
    y: ArrayLike,
    *,
    fraction: float,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Replace the labels of a random share of the rows by another class, drawn uniformly.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class labels of any kind, at least two classes.
    fraction : float in [0, 1]
        Share of the rows to flip, rounded to the nearest count. Every one of them gets a label
        different from its own.
    random_state : int, RandomState instance or None, default=None
        Seed; pass an int for repeatable noise.

    Returns
    -------
    y_flipped : ndarray of shape (n_samples,)
        The labels after flipping; `y` is left as it is.
    flipped : ndarray of shape (n_samples,), dtype bool
        The rows whose label was replaced.

    Raises
    ------
    ValueError
        If `y` has a single class.

    Examples
    --------
    >>> from skcalib.datasets import flip_labels
    >>> y, flipped = flip_labels(["a", "b", "c", "a"], fraction=0.5, random_state=0)
    >>> y.tolist(), flipped.tolist()
    (['a', 'b', 'b', 'c'], [False, False, True, True])
    """
    classes, codes = np.unique(column_or_1d(y), return_inverse=True)
    check_several_classes(classes)
    rng = check_random_state(random_state)
    rows = rng.choice(len(codes), size=int(fraction * len(codes) + 0.5), replace=False)
    codes[rows] = (codes[rows] + rng.randint(1, len(classes), size=len(rows))) % len(classes)
    flipped = np.zeros(len(codes), dtype=bool)
    flipped[rows] = True
    return classes[codes], flipped
