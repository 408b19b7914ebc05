"""Calibration error of Kolmogorov and Smirnov: no bins, no bandwidth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..utils._validation import check_predictions
from ._top_label import top_label


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
        Probabilities of the classes, in the order of `labels` or as columns of a DataFrame named
        by them, or of the positive class.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; a weight of k counts as k samples.
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns of `y_proba`, in order. None: integers 0, ..., n_classes - 1 or, if
        `y_true` holds other labels, its sorted distinct values.
    pos_label : int, bool or str, default=None
        Label of the positive class where `y_proba` has shape (n_samples,). None: the second of
        `labels`, or 1 where the labels are in {0, 1} or {-1, 1}.

    Returns
    -------
    error : float
        In [0, 1], smaller = better. At least half the gap between mean confidence and accuracy
        of any interval of confidences.

    Raises
    ------
    ValueError
        As :func:`expected_calibration_error`.

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
        y_true,
        y_proba,
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
        defer_values=True,
    )
    confidence, correct = top_label(predictions)
    order = np.argsort(confidence)
    confidence = confidence[order].astype(np.float64)
    excess = confidence - correct[order]
    total = float(len(excess))
    if predictions.weight is not None:
        excess *= predictions.weight[order]
        total = predictions.weight.sum()
    # Within a tie the partial sums depend on the order: only the one behind its last counts.
    last_of_ties = np.append(confidence[1:] > confidence[:-1], True)
    return float(np.abs(np.cumsum(excess)[last_of_ties]).max() / total)
