"""Replace a fraction of labels, and remember which."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from ..utils.checking._labels import check_class_labels, check_several_classes, encode
from ..utils.meta._private import Interval, validate_params

# Key of the random stream that belongs to a seed here. train_test_split, KFold and others permute
# samples by the seed itself: from that stream, an equal seed would put all flips on one side.
_STREAM = 0x666C6970


@validate_params(
    {
        "y": ["array-like"],
        "fraction": [Interval(Real, 0, 1, closed="both")],
        "random_state": ["random_state"],
    }
)
def flip_labels(
    y: Any, *, fraction: float, random_state: int | np.random.RandomState | None = None
) -> tuple[Any, NDArray[np.bool_]]:
    """Replace the labels of random samples by another class, drawn uniformly.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class labels of any one kind, at least two classes.
    fraction : float in [0, 1]
        Fraction of the samples to flip, rounded to the nearest count. Every one of them gets a
        label different from its own.
    random_state : int, RandomState instance or None, default=None
        Seed; pass an int for repeatable noise. It is independent of how
        :func:`~sklearn.model_selection.train_test_split` and the like split with the same int.

    Returns
    -------
    y_flipped : ndarray or Series of shape (n_samples,)
        The labels after flipping; `y` is left as it is. A Series if `y` is one, with its index,
        name and dtype.
    flipped : ndarray of shape (n_samples,), dtype bool
        The samples whose label was replaced.

    Raises
    ------
    ValueError
        If `y` has a single class, or holds NaN, infinity, fractions or labels of several types.

    See Also
    --------
    skcalib.labels.LabelIssueFinder : Finds wrong labels.
    make_predictions : Predictions whose calibration is known.

    Examples
    --------
    >>> from skcalib.datasets import flip_labels
    >>> y, flipped = flip_labels(["a", "b", "c", "a"], fraction=0.5, random_state=0)
    >>> y.tolist(), flipped.tolist()
    (['a', 'a', 'b', 'a'], [False, True, True, False])
    """
    labels = check_class_labels(y)
    classes = np.unique(labels)
    check_several_classes(classes)
    rng = _generator(random_state)
    n_flipped = int(fraction * len(labels) + 0.5)
    rows = rng.choice(len(labels), size=n_flipped, replace=False)
    other = encode(labels[rows], classes) + rng.randint(1, len(classes), size=n_flipped)
    flipped = np.zeros(len(labels), dtype=bool)
    flipped[rows] = True
    new_labels = classes[other % len(classes)]
    if hasattr(y, "iloc") and y.ndim == 1:
        series = y.copy()
        series.iloc[rows] = new_labels
        return series, flipped
    noisy = labels.copy()
    noisy[rows] = new_labels
    return noisy, flipped


def _generator(random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    """Return the given generator, or that of a stream of the seed that only this file uses."""
    if not isinstance(random_state, Integral):
        return check_random_state(random_state)
    seeds = np.random.SeedSequence(int(random_state), spawn_key=(_STREAM,))
    return np.random.RandomState(np.random.MT19937(seeds))
