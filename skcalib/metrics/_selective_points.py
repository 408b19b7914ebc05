"""Single points of the risk-coverage curve."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..utils._private import Interval, validate_params
from ._confidence import rank_predictions
from ._selective_curves import risk_coverage_curve

# A risk of exactly the limit must not fail it by rounding.
_RISK_SLACK = 1e-12


@validate_params(
    {"coverage": [Interval(Real, 0, 1, closed="right")]}, prefer_skip_nested_validation=True
)
def accuracy_at_coverage(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    coverage: float = 0.8,
    confidence: str | ArrayLike = "msp",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Accuracy of the most confident fraction of the samples: larger = better.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, integers or strings.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, in the order of `labels` or as columns of a DataFrame named
        by them, or of the positive class. The class of the largest probability is the prediction.
    coverage : float, default=0.8
        Fraction of the samples (of their weight) that is accepted, in (0, 1].
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
    accuracy : float
        In [0, 1]. Where the fraction ends among samples of equal confidence, or within a sample,
        that group counts by the part of it that is accepted: the expectation over the orders of
        its samples.

    Raises
    ------
    ValueError
        If `y_proba` holds NaN, values outside [0, 1] or rows that do not sum to 1, if a label has
        no column, or if `confidence` is unknown.

    See Also
    --------
    coverage_at_risk : The fraction that can be accepted at a given error rate.
    accuracy_rejection_curve : The accuracy at every coverage.

    Examples
    --------
    >>> from skcalib.metrics import accuracy_at_coverage
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> accuracy_at_coverage([0, 0, 1, 0], y_proba, coverage=0.75)
    1.0
    >>> accuracy_at_coverage([0, 0, 1, 0], y_proba, coverage=1)
    0.75
    """
    groups = rank_predictions(
        y_true,
        y_proba,
        confidence=confidence,
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
    )
    before = np.cumsum(groups.weight) - groups.weight
    accepted = coverage * groups.weight.sum()
    # 1 for groups above the cut, 0 below it, in between for the one that the cut splits.
    part = np.clip((accepted - before) / groups.weight, 0, 1)
    return float(part @ groups.positive / accepted)


@validate_params(
    {"risk": [Interval(Real, 0, 1, closed="both")], "return_threshold": ["boolean"]},
    prefer_skip_nested_validation=True,
)
def coverage_at_risk(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    risk: float = 0.05,
    confidence: str | ArrayLike = "msp",
    return_threshold: bool = False,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float | tuple[float, float]:
    """Largest fraction of the samples accepted within a given error rate: larger = better.

    This compares models; it does not choose a threshold to go by. The threshold that just keeps
    to the risk on these samples profits from their chance: on new samples the error rate
    exceeded the target in about half of the trials (52 % at a risk of .05 and 500 samples).
    :class:`skcalib.selection.SelectiveClassifier` chooses one with a guarantee.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, integers or strings.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, in the order of `labels` or as columns of a DataFrame named
        by them, or of the positive class. The class of the largest probability is the prediction.
    risk : float, default=0.05
        Largest error rate of the accepted samples, in [0, 1].
    confidence : {"msp", "entropy", "margin"} or array-like of shape (n_samples,), default="msp"
        What orders the samples: the largest probability (maximum softmax probability), the
        negative entropy, the difference of the two largest probabilities, or any score of which
        larger = more confident.
    return_threshold : bool, default=False
        Whether to return the smallest confidence accepted as well.
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
    coverage : float
        In [0, 1]: the largest coverage of :func:`risk_coverage_curve` of a risk of at most `risk`,
        and 0 where there is none. Samples of equal confidence are accepted together.
    threshold : float
        Only with `return_threshold`: the smallest confidence accepted, and inf where none is.

    Raises
    ------
    ValueError
        If `y_proba` holds NaN, values outside [0, 1] or rows that do not sum to 1, if a label has
        no column, or if `confidence` is unknown.

    See Also
    --------
    accuracy_at_coverage : The accuracy at a given coverage.
    skcalib.selection.SelectiveClassifier : A threshold that keeps to a risk on new samples.

    Examples
    --------
    >>> from skcalib.metrics import coverage_at_risk
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> coverage_at_risk([0, 0, 1, 0], y_proba)
    0.75
    >>> coverage_at_risk([0, 0, 1, 0], y_proba, risk=0.25)
    1.0
    >>> coverage_at_risk([0, 0, 1, 0], y_proba, return_threshold=True)
    (0.75, 0.7)
    """
    curve = risk_coverage_curve(
        y_true,
        y_proba,
        confidence=confidence,
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
    )
    # Risk rises and falls along the curve: the last point within the limit is the answer, not
    # the one before the first beyond it.
    within = np.flatnonzero(curve.risk <= risk + _RISK_SLACK)
    coverage, threshold = 0.0, np.inf
    if len(within):
        coverage, threshold = curve.coverage[within[-1]], curve.threshold[within[-1]]
    return (float(coverage), float(threshold)) if return_threshold else float(coverage)
