"""The four forms of difficulty: depth when held out against depth when trained on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._arrays import as_floats, check_same_length
from ..utils._validation import check_ndim

TYPES = ("easy", "looks_like_other_class", "ambiguous_without_label", "ambiguous")
UNDEFINED = "undefined"


def _check_depth(depth: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return depths (n,): not negative, finite, or NaN where a sample has none."""
    array = as_floats(depth, name=name).astype(np.float64)
    check_ndim(array, name, (1,))
    fault = np.isinf(array) | (array < 0)
    if fault.any():
        row = int(np.argmax(fault))
        raise ValueError(
            f"{name} must be non-negative and finite, or NaN, got {array[row]} in row {row}."
        )
    return array


def _checked(depth_held_out: ArrayLike, depth_trained: ArrayLike) -> tuple[NDArray, NDArray]:
    held_out = _check_depth(depth_held_out, "depth_held_out")
    trained = _check_depth(depth_trained, "depth_trained")
    check_same_length(depth_held_out=held_out, depth_trained=trained)
    return held_out, trained


def _range(held_out: NDArray, trained: NDArray) -> tuple[float, float]:
    """Return the smallest and the largest of all depths; NaN if all of them are NaN."""
    depths = np.concatenate([held_out, trained])
    depths = depths[~np.isnan(depths)]
    return (float(depths.min()), float(depths.max())) if depths.size else (np.nan, np.nan)


def corner_distances(depth_held_out: ArrayLike, depth_trained: ArrayLike) -> NDArray[np.float64]:
    """Distance of every sample from the four corners of the plane of depths.

    The samples nearest to a corner are the clearest ones of its form of difficulty; the paper
    behind :func:`difficulty_quadrant` shows them. Corners are at the smallest and at the largest
    depth of the two arrays.

    Parameters
    ----------
    depth_held_out, depth_trained : array-like of shape (n_samples,)
        As in :func:`difficulty_quadrant`.

    Returns
    -------
    distances : ndarray of shape (n_samples, 4)
        Euclidean, in layers, from "easy", "looks_like_other_class", "ambiguous_without_label" and
        "ambiguous"; NaN where a depth is. 0 in the corner.

    See Also
    --------
    difficulty_quadrant : The four forms.

    Examples
    --------
    >>> from skcalib.difficulty import corner_distances
    >>> corner_distances([0, 4, 1], [0, 4, 4])[:, 1].round(2)
    array([4., 4., 1.])
    """
    held_out, trained = _checked(depth_held_out, depth_trained)
    low, high = _range(held_out, trained)
    # In the order of TYPES.
    corners = np.array([(low, low), (low, high), (high, low), (high, high)])
    return np.hypot(*(np.stack([held_out, trained])[:, :, None] - corners.T[:, None]))


def difficulty_quadrant(
    depth_held_out: ArrayLike, depth_trained: ArrayLike, *, threshold: float | None = None
) -> NDArray:
    """Form of difficulty of every sample, from its two prediction depths [1]_.

    ============== ========= ===============================
    depth held out  trained   form
    ============== ========= ===============================
    low             low       ``"easy"``
    low             high      ``"looks_like_other_class"``
    high            low       ``"ambiguous_without_label"``
    high            high      ``"ambiguous"``
    ============== ========= ===============================

    A mislabeled sample, for instance, is quickly taken for one of its look-alikes when held out;
    when trained on, its label is memorized only in the last layers.

    Parameters
    ----------
    depth_held_out : array-like of shape (n_samples,)
        Prediction depth in models that did not train on the sample, or the mean over such models.
    depth_trained : array-like of shape (n_samples,)
        Prediction depth in models that trained on the sample.
    threshold : float, default=None
        Depths above it are high. None means the middle between the smallest and the largest depth
        of the two arrays.

    Returns
    -------
    form : ndarray of str of shape (n_samples,)
        One of the four forms, or ``"undefined"`` where a depth is NaN.

    See Also
    --------
    DifficultyProfiler : Measures both depths.
    corner_distances : How clear a case of its form a sample is.
    skcalib.plots.DifficultyPlaneDisplay : Draws them.
    prediction_depth : A depth from the predictions of probes.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, Sec. 4. The paper reads the four corners of the plane and gives
       no threshold.

    Examples
    --------
    >>> from skcalib.difficulty import difficulty_quadrant
    >>> difficulty_quadrant([0, 1, 9, 8], [0, 9, 1, 8])
    array(['easy', 'looks_like_other_class', 'ambiguous_without_label',
           'ambiguous'], dtype='<U23')
    """
    held_out, trained = _checked(depth_held_out, depth_trained)
    limit = sum(_range(held_out, trained)) / 2 if threshold is None else float(threshold)
    if threshold is not None and not np.isfinite(limit):
        raise ValueError(f"threshold must be a finite number, got {threshold}.")
    # In the order of TYPES: held out is the first of two binary digits, trained the second.
    form = np.array(TYPES)[2 * (held_out > limit) + (trained > limit)]
    form[np.isnan(held_out) | np.isnan(trained)] = UNDEFINED
    return form
