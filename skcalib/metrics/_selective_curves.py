"""Curves of risk against coverage."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._confidence import rank_predictions


class RiskCoverageCurve(NamedTuple):
    """Points (n_thresholds,) of a risk-coverage curve, in increasing order of the coverage."""

    coverage: NDArray[np.float64]
    risk: NDArray[np.float64]
    threshold: NDArray[Any]


class AccuracyRejectionCurve(NamedTuple):
    """Points (n_thresholds,) of an accuracy-rejection curve, in increasing order of rejection."""

    rejection: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    threshold: NDArray[Any]


def risk_coverage_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    confidence: str | ArrayLike = "msp",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> RiskCoverageCurve:
    """Error rate of the accepted samples (risk) against their fraction (coverage).

    Every distinct confidence is a threshold, at which all samples of at least that confidence are
    accepted [1]_. Samples of equal confidence are accepted together.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, integers or strings.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, in the order of `labels` or as columns of a DataFrame named
        by them, or of the positive class. The class of the largest probability is the prediction.
    confidence : {"msp", "entropy", "margin"} or array-like of shape (n_samples,), default="msp"
        What orders the samples: the largest probability (maximum softmax probability), the
        negative entropy, the difference of the two largest probabilities, or any score of which
        larger = more confident.
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
    curve : RiskCoverageCurve
        Named tuple of arrays of shape (n_thresholds,): ``coverage``, the accepted fraction, in
        (0, 1] and increasing to 1; ``risk``, the error rate of the accepted samples, in [0, 1];
        ``threshold``, the smallest confidence accepted, decreasing.

    Raises
    ------
    ValueError
        If `y_proba` holds NaN, values outside [0, 1] or rows that do not sum to 1, if a label has
        no column, or if `confidence` is unknown.

    See Also
    --------
    area_under_risk_coverage : The area under the curve.
    accuracy_rejection_curve : The same curve, read from the other end.
    skcalib.plots.RiskCoverageDisplay : The plot of the curve.

    References
    ----------
    .. [1] R. El-Yaniv, Y. Wiener, "On the Foundations of Noise-free Selective Classification",
       JMLR 2010.

    Examples
    --------
    >>> from skcalib.metrics import risk_coverage_curve
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> curve = risk_coverage_curve([0, 0, 1, 0], y_proba)
    >>> curve.coverage
    array([0.25, 0.5 , 0.75, 1.  ])
    >>> curve.risk
    array([0.  , 0.  , 0.  , 0.25])
    >>> curve.threshold
    array([0.9, 0.8, 0.7, 0.6])
    """
    groups = rank_predictions(
        y_true,
        y_proba,
        confidence=confidence,
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
    )
    accepted = np.cumsum(groups.weight)
    wrong = np.cumsum(groups.weight - groups.positive)
    return RiskCoverageCurve(accepted / accepted[-1], wrong / accepted, groups.score)


def accuracy_rejection_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    confidence: str | ArrayLike = "msp",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> AccuracyRejectionCurve:
    """Accuracy of the accepted samples against the fraction that is rejected.

    Every distinct confidence is a threshold, below which samples are rejected [1]_. Samples of
    equal confidence are rejected together.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, integers or strings.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, in the order of `labels` or as columns of a DataFrame named
        by them, or of the positive class. The class of the largest probability is the prediction.
    confidence : {"msp", "entropy", "margin"} or array-like of shape (n_samples,), default="msp"
        What orders the samples: the largest probability (maximum softmax probability), the
        negative entropy, the difference of the two largest probabilities, or any score of which
        larger = more confident.
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
    curve : AccuracyRejectionCurve
        Named tuple of arrays of shape (n_thresholds,): ``rejection``, the rejected fraction, in
        [0, 1) and increasing from 0; ``accuracy`` of the accepted samples, in [0, 1];
        ``threshold``, the smallest confidence accepted, increasing.

    Raises
    ------
    ValueError
        If `y_proba` holds NaN, values outside [0, 1] or rows that do not sum to 1, if a label has
        no column, or if `confidence` is unknown.

    See Also
    --------
    risk_coverage_curve : The same curve, read from the other end.
    accuracy_at_coverage : One point of the curve.

    References
    ----------
    .. [1] M. S. A. Nadeem, J.-D. Zucker, B. Hanczar, "Accuracy-Rejection Curves (ARCs) for
       Comparing Classification Methods with a Reject Option", MLSB 2009.

    Examples
    --------
    >>> from skcalib.metrics import accuracy_rejection_curve
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> curve = accuracy_rejection_curve([0, 0, 1, 0], y_proba)
    >>> curve.rejection
    array([0.  , 0.25, 0.5 , 0.75])
    >>> curve.accuracy
    array([0.75, 1.  , 1.  , 1.  ])
    """
    curve = risk_coverage_curve(
        y_true,
        y_proba,
        confidence=confidence,
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
    )
    return AccuracyRejectionCurve(
        1 - curve.coverage[::-1], 1 - curve.risk[::-1], curve.threshold[::-1]
    )
