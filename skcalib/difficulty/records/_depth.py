"""Prediction depth from the answers of the probes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...utils._labels import check_labels_like
from ._checks import check_records
from ._dynamics import steps_to_agreement


def prediction_depth(probe_predictions: ArrayLike, final_predictions: ArrayLike) -> NDArray:
    """Layer from which on every probe agrees with the network; larger = harder.

    The smallest l such that the probes of layer l and of every later layer predict the final
    class; 0 if all probes do [1]_.

    Parameters
    ----------
    probe_predictions : array-like of shape (n_samples, n_layers)
        Labels predicted by the probes, in the order of the layers.
    final_predictions : array-like of shape (n_samples,)
        Labels predicted by the network; true labels give the depth of the ground truth.

    Returns
    -------
    depth : ndarray of shape (n_samples,)
        From 0 to n_layers - 1; NaN where the last probe disagrees.

    Raises
    ------
    ValueError
        If the shapes do not match or the arrays do not hold labels.
    TypeError
        If the arrays hold labels of several types.

    See Also
    --------
    PredictionDepthScorer : Fits the probes to a network.
    iteration_learned : The same over steps of a training.
    difficulty_quadrant : The forms of difficulty that two depths tell.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, Sec. 2.1.

    Examples
    --------
    >>> from skcalib.difficulty import prediction_depth
    >>> prediction_depth([[1, 1, 1], [1, 0, 1], [1, 1, 0]], [1, 1, 1])
    array([ 0.,  2., nan])
    """
    by_sample = check_records(probe_predictions, "probe_predictions")
    final = check_labels_like(
        final_predictions, name="final_predictions", n_samples=len(by_sample), like=by_sample
    )
    # Layers take the place of steps, and the first axis.
    return steps_to_agreement((by_sample == final[:, np.newaxis]).T)
