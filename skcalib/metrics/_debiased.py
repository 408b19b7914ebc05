"""The squared calibration error without the bias of finite bins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._arrays import count_unit
from ..utils._private import validate_params
from ..utils._validation import check_predictions
from ._bins import BINNING_CONSTRAINTS, binned


@validate_params(
    BINNING_CONSTRAINTS | {"squared": ["boolean"]}, prefer_skip_nested_validation=True
)
def debiased_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    squared: bool = False,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Debiased L2 calibration error.

    In a bin of n_b samples, the squared gap (conf_b - acc_b)^2 exceeds that of an infinite sample
    by the variance of acc_b: a perfectly calibrated model gets an error that is not 0. Here the
    unbiased estimate acc_b (1 - acc_b) / (n_b - 1) of that variance is subtracted [1]_.

    Parameters
    ----------
    y_true, y_proba, n_bins, strategy, labels, pos_label
        As for :func:`expected_calibration_error`.
    squared : bool, default=False
        Whether to return the squared error, which is unbiased and may be negative, instead of
        its root, for which negative values are taken as 0.
    sample_weight : array-like of shape (n_samples,), default=None
        Numbers of samples: the estimate depends on how many there are, so here, unlike in the
        other calibration errors, the scale of the weights matters.

    Returns
    -------
    error : float
        In [0, 1], smaller = better; with `squared`, in [-0.5, 1].

    Raises
    ------
    ValueError
        As :func:`expected_calibration_error`.

    See Also
    --------
    expected_calibration_error : With ``norm="l2"``, the same without the correction.
    smooth_calibration_error : Without bins.

    Notes
    -----
    A bin with one sample, or less in weight, has no unbiased estimate and counts 0.

    References
    ----------
    .. [1] A. Kumar, P. Liang, T. Ma, "Verified Uncertainty Calibration", NeurIPS 2019,
       Def. 5.1.

    Examples
    --------
    >>> from skcalib.metrics import debiased_calibration_error
    >>> y_proba = [0.1, 0.1, 0.1, 0.1, 0.6, 0.6, 0.6, 0.6]
    >>> round(debiased_calibration_error([0, 0, 0, 0, 1, 1, 1, 0], y_proba, n_bins=5), 4)
    0.0
    >>> round(
    ...     debiased_calibration_error(
    ...         [0, 0, 0, 0, 1, 1, 1, 0], y_proba, n_bins=5, squared=True
    ...     ),
    ...     4,
    ... )
    -0.015
    """
    predictions = check_predictions(
        y_true, y_proba, sample_weight, labels, pos_label, defer_values=True
    )
    sums = binned(predictions, n_bins=n_bins, strategy=strategy).sums
    # Weights come scaled to a maximum in [1, 2): here their own scale matters.
    sums *= count_unit(predictions.unit)
    return debiased_norm(sums, squared=squared)


def debiased_norm(sums: NDArray[np.float64], *, squared: bool = False) -> float:
    """Return the debiased error of sums over bins, (3, n_bins), of weights that count samples."""
    count, confidence, correct = sums[:, sums[0] > 1]
    accuracy = correct / count
    # For the accuracy a of n samples, E[a (1 - a)] = (n - 1) Var[a].
    unbiased = (confidence / count - accuracy) ** 2 - accuracy * (1 - accuracy) / (count - 1)
    # Bins left out count 0, so the mean is over the weight of all.
    error = float(count @ unbiased / sums[0].sum())
    return error if squared else float(np.sqrt(max(error, 0.0)))
