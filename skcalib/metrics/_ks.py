"""Calibration error of Kolmogorov and Smirnov: no bins, no bandwidth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._validation import check_predictions
from ._bins import top_label


def ks_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Kolmogorov-Smirnov calibration error: the largest cumulative gap.

    With the samples in order of confidence, it is the largest distance between the cumulative
    confidence and the cumulative accuracy, as fractions of all samples [1]_. Equal confidences
    enter together, so the order of the samples does not matter.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, integers or strings.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, in the order of `labels`, or of the positive class.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; a weight of k counts as k samples.
    labels, pos_label
        As for :func:`expected_calibration_error`.

    Returns
    -------
    error : float
        In [0, 1], smaller = better. At least half the gap between mean confidence and accuracy
        of any interval of confidences.

    Raises
    ------
    ValueError
        As :func:`expected_calibration_error`.

    See Also
    --------
    expected_calibration_error : With bins.
    smooth_calibration_error : With a kernel.
    calibration_test : Is the error larger than chance makes it?

    References
    ----------
    .. [1] K. Gupta, A. Rahimi, T. Ajanthan, T. Mensink, C. Sminchisescu, R. Hartley, "Calibration
       of Neural Networks Using Splines", ICLR 2021, Eq. 6.

    Examples
    --------
    >>> from skcalib.metrics import ks_calibration_error
    >>> round(ks_calibration_error([0, 1, 1, 1], [0.2, 0.6, 0.6, 0.8]), 3)
    0.2
    """
    predictions = check_predictions(
        y_true, y_proba, sample_weight, labels, pos_label, defer_values=True
    )
    confidence, correct = top_label(predictions)
    confidence, gap = _in_order(confidence, correct, predictions.weight)
    total = len(gap) if predictions.weight is None else predictions.weight.sum()
    # Within a tie the partial sums depend on the order: only the one behind its last counts.
    last_of_ties = np.append(confidence[1:] > confidence[:-1], True)
    return float(np.abs(np.cumsum(gap)[last_of_ties]).max() / total)


def _in_order(
    confidence: NDArray[Any], correct: NDArray[np.bool_], weight: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return confidences in increasing order, and confidence minus correctness, weighted."""
    # Rounding may take a probability below 0.
    confidence = np.maximum(confidence.astype(np.float64), 0)
    if weight is not None:
        order = np.argsort(confidence)
        confidence = confidence[order]
        return confidence, (confidence - correct[order]) * weight[order]
    # Non-negative floats sort like their bits. Shifting out the sign bit makes room for the
    # outcome as the last bit: one sort instead of an argsort, which takes 1.8 times as long.
    key = (confidence.view(np.uint64) << np.uint64(1)) | correct
    key.sort()
    confidence = (key >> np.uint64(1)).view(np.float64)
    return confidence, confidence - (key & np.uint64(1))
