"""Calibration error where a sample may have several labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from ..utils.checking._arrays import as_floats, check_weights
from ..utils.checking._labels import column_names
from ..utils.checking._proba import check_values
from ..utils.meta._private import StrOptions, validate_params
from ._calibration_error import expected_calibration_error
from ._names import AnyMetric, metric_of
from ._resampling import as_number, check_metric


@validate_params(
    {"metric": [callable, str], "average": [StrOptions({"macro", "micro"}), None]},
    prefer_skip_nested_validation=False,  # the options of the metric are the user's
)
def multilabel_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    metric: AnyMetric = expected_calibration_error,
    average: str | None = "macro",
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> NDArray[np.float64] | float:
    """Calibration error where a sample may have several labels, or none: smaller = better.

    Every label is a binary problem of its own: its column of `y_proba` is the probability that the
    sample has it. Unlike the probabilities of classes, those of a row need not sum to 1. (For
    classes, :func:`classwise_calibration_error` covers every column.)

    Parameters
    ----------
    y_true : array-like of shape (n_samples, n_labels)
        Label indicators: 1 where the sample has the label, else 0.
    y_proba : array-like of shape (n_samples, n_labels)
        Probabilities of the labels. Forests predict a list of arrays (n_samples, 2), one per
        label: give ``np.column_stack([p[:, 1] for p in y_proba])``.
    metric : callable or str, default=expected_calibration_error
        A calibration error of this package, its name or its scorer, or a function of the same
        signature.
    average : {"macro", "micro"} or None, default="macro"
        "macro" is the mean over the labels, "micro" the error of all pairs of a sample and a
        label taken together, None the error of every label.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; a weight of k counts as k samples.
    **options : dict
        Options of the metric, such as ``n_bins``.

    Returns
    -------
    error : float or ndarray of shape (n_labels,)
        In the unit of the metric.

    Raises
    ------
    ValueError
        If `y_true` does not hold 0 and 1 alone, if the shapes or the names of the columns of two
        DataFrames differ, or if `y_proba` holds NaN or values outside [0, 1].
    TypeError
        If `metric` does not take weights or returns no number.

    See Also
    --------
    classwise_calibration_error : For one class per sample.
    expected_calibration_error : For one class per sample, of the predicted class.

    Examples
    --------
    >>> from skcalib.metrics import multilabel_calibration_error
    >>> y_true = [[1, 0], [1, 1], [0, 0], [1, 0]]
    >>> y_proba = [[0.9, 0.3], [0.9, 0.3], [0.2, 0.1], [0.9, 0.1]]
    >>> round(multilabel_calibration_error(y_true, y_proba), 3)
    0.138
    >>> multilabel_calibration_error(y_true, y_proba, average=None).round(3)
    array([0.125, 0.15 ])
    """
    for name in ("labels", "pos_label"):
        if name in options:
            raise TypeError(
                f"{name} must not be given: every column is a label of its own, "
                f"got {options[name]!r}."
            )
    error = metric_of(metric)
    check_metric(error, "sample_weight")
    indicator, proba = _check_indicator(y_true), as_floats(y_proba, name="y_proba")
    names, wanted = column_names(y_proba), column_names(y_true)
    if names is not None and wanted is not None and names != wanted:
        raise ValueError(f"y_proba must have the columns of y_true, {wanted}, got {names}.")
    if proba.shape != indicator.shape:
        raise ValueError(
            "y_proba must have the shape of y_true, (n_samples, n_labels), "
            f"got {proba.shape} and {indicator.shape}."
        )
    for column in proba.T:
        check_values(column)
    n_samples, n_labels = indicator.shape
    weight = check_weights(sample_weight, n_samples)
    if average == "micro":
        pair_weight = None if weight is None else np.repeat(weight, n_labels)
        return as_number(
            error(indicator.ravel(), proba.ravel(), sample_weight=pair_weight, **options)
        )
    errors = np.array(
        [
            as_number(error(has_label, column, sample_weight=weight, **options))
            for has_label, column in zip(indicator.T, proba.T)
        ]
    )
    return errors if average is None else float(errors.mean())


def _check_indicator(y_true: ArrayLike) -> NDArray[np.intp]:
    if issparse(y_true):
        raise TypeError("y_true must be dense, got a sparse matrix; y_true.toarray() makes it so.")
    array = as_floats(y_true, name="y_true")
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            "y_true must hold label indicators of shape (n_samples, n_labels), "
            f"got shape {array.shape}."
        )
    fault = ~np.isin(array, [0, 1])
    if fault.any():
        row, label = np.argwhere(fault)[0]
        raise ValueError(
            "y_true must hold label indicators, 0 and 1, "
            f"got {array[row, label]:g} in row {row}, column {label}."
        )
    return array.astype(np.intp)
