"""What recalibration cannot repair: the log-loss after the best temperature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from ..utils._blocks import two_columns
from ..utils._proba import SMALLEST_PROBABILITY
from ..utils._temperature import DEFAULT_BOUNDS, minimize_log_loss
from ..utils._validation import check_predictions


def refined_log_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Log-loss after the best temperature, found on the same samples: smaller = better.

    A proper score is calibration error plus refinement error, and recalibration removes the first.
    A network is often best refined at another time of its training than it is best calibrated:
    stop where this loss is smallest, then calibrate [1]_. The difference between the log-loss and
    this one is due to miscalibration.

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels, pos_label
        As for :func:`expected_calibration_error`.

    Returns
    -------
    loss : float
        Mean log-loss in nats, not negative, at the best temperature between 1e-3 and 1e3. The
        two forms of `y_proba` for two classes give the same.

    See Also
    --------
    score_decomposition : Discrimination by isotonic regression, class by class.
    sklearn.metrics.log_loss : The loss before.
    skcalib.posthoc.TemperatureScaling : Finds that temperature.

    Notes
    -----
    Logits are logarithms of the probabilities, of 1e-12 where they are smaller.

    References
    ----------
    .. [1] E. Berta, D. Holzmüller, M. I. Jordan, F. Bach, "Rethinking Early Stopping: Refine,
       Then Calibrate", 2025, arXiv:2501.19195.

    Examples
    --------
    >>> from sklearn.metrics import log_loss
    >>> from skcalib.metrics import refined_log_loss
    >>> y_true, y_proba = [0, 1, 1, 0], [0.01, 0.99, 0.99, 0.97]
    >>> round(log_loss(y_true, y_proba), 3), round(refined_log_loss(y_true, y_proba), 3)
    (0.884, 0.504)
    """
    predictions = check_predictions(y_true, y_proba, sample_weight, labels, pos_label)
    codes, proba, weight = predictions.codes, predictions.proba, predictions.weight
    if proba.dtype == np.float16:  # in which 1e-12 is 0
        proba = proba.astype(np.float32)
    logits = np.log(np.maximum(two_columns(proba), proba.dtype.type(SMALLEST_PROBABILITY)))
    scaled = logits / minimize_log_loss(logits, codes, weight, DEFAULT_BOUNDS)
    loss = logsumexp(scaled, axis=1) - scaled[np.arange(len(codes)), codes]
    return float(np.average(np.maximum(loss, 0), weights=weight))
