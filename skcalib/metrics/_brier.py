"""The generalized Brier score of every sample."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._blocks import row_max, row_sum
from ..utils._private import Interval, validate_params
from ..utils._proba import iter_proba_blocks
from ..utils._validation import check_predictions


@validate_params(
    {
        "order": [Interval(Real, 1, None, closed="both")],
        "exponent": [Interval(Real, 0, None, closed="neither")],
    },
    prefer_skip_nested_validation=True,
)
def generalized_brier_score(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    order: float = 2,
    exponent: float = 2,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> NDArray:
    """Distance of every predicted distribution from the truth: larger = worse.

    With p the probabilities of a sample and e the one-hot vector of its label, the score is
    ``norm(p - e, ord=order) ** exponent`` [1]_. The defaults give the Brier score of the sample.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, integers or strings.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, in the order of `labels`, or of the positive class.
    order : float, default=2
        Order of the norm, at least 1; ``inf`` is the largest deviation, 1 - p[label].
    exponent : float, default=2
        Power of the norm, positive.
    labels, pos_label
        As for :func:`expected_calibration_error`.

    Returns
    -------
    score : ndarray of shape (n_samples,)
        Scores in [0, 2 ** (exponent / order)]: 0 where the label has probability 1. float64 for
        float64 `y_proba`, float32 for float32 and float16.

    Raises
    ------
    ValueError
        If `y_proba` holds NaN, values outside [0, 1] or rows that do not sum to 1, or if a label
        has no column.

    See Also
    --------
    score_decomposition : What the mean Brier score consists of.
    sklearn.metrics.brier_score_loss : The mean for ``order=exponent=2``.

    References
    ----------
    .. [1] J. Lin, L. Tao, M. Dong, C. Xu, "Uncertainty Weighted Gradients for Model Calibration",
       CVPR 2025.

    Examples
    --------
    >>> from skcalib.metrics import generalized_brier_score
    >>> y_proba = [[0.8, 0.1, 0.1], [0.5, 0.5, 0.0]]
    >>> generalized_brier_score([0, 2], y_proba).round(2)
    array([0.06, 1.5 ])
    >>> generalized_brier_score([0, 2], y_proba, order=1, exponent=1).round(2)
    array([0.4, 2. ])
    """
    predictions = check_predictions(
        y_true, y_proba, labels=labels, pos_label=pos_label, defer_values=True
    )
    codes, proba = predictions.codes, predictions.proba
    out = np.empty(len(proba), np.float64 if proba.dtype == np.float64 else np.float32)
    for rows, block in iter_proba_blocks(proba):
        if block.ndim == 1:
            # The two classes deviate by the same d: (d^order + d^order)^(exponent / order).
            deviation = np.abs(block - codes[rows].astype(block.dtype))
            out[rows] = deviation**exponent * 2.0 ** (exponent / order)
            continue
        label = np.arange(len(block)), codes[rows]
        # |p - e|: p, and 1 - p at the label. abs, since rounding may take p beyond [0, 1].
        deviation = np.abs(block)
        deviation[label] = np.abs(1 - block[label])
        out[rows] = _power_of_norm(deviation, order, exponent)
    return out


def _power_of_norm(deviation: NDArray, order: float, exponent: float) -> NDArray:
    largest = row_max(deviation)
    # norm = m (sum_k (d_k / m)^order)^(1 / order), m the largest d_k. For order -> inf the sum
    # has no effect; where m is 0 the first factor is 0.
    if np.isinf(order):
        return largest**exponent
    # Powers of the ratios to the largest deviation: those of the deviations underflow.
    ratio = deviation / np.where(largest > 0, largest, 1)[:, None]
    return largest**exponent * row_sum(ratio**order) ** (exponent / order)
