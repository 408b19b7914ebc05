"""Calibration errors of the top label, or of the positive class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..utils.checking._arrays import count_unit
from ..utils.checking._validation import check_predictions
from ..utils.meta._private import validate_params
from ._bins import (
    BINNING_CONSTRAINTS,
    NORM_CONSTRAINTS,
    Bins,
    ReliabilityCurve,
    binned,
    curve_of,
    debiased_norm,
    declares,
    gap_norm,
    top_label,
)
from ._ties import tie_groups


@declares("bins", "l1")
@validate_params(BINNING_CONSTRAINTS | NORM_CONSTRAINTS)
def expected_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    norm: str = "l1",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Expected calibration error (ECE): the mean gap between confidence and accuracy.

    The samples are put into bins by confidence. With `y_proba` of shape (n_samples, n_classes),
    confidence is the largest probability of a sample, and accuracy the fraction of samples where
    its class is the true one (top label); with shape (n_samples,), they are the probability and
    the fraction of the positive class. With n_b samples of n in bin b, the error is the sum of
    ``n_b / n |acc_b - conf_b|`` [1]_, [2]_. For two classes these are two different errors: a
    probability of .3 for the positive class is a top-label confidence of .7 in the other class.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
        True labels, integers or strings. Where people differ: the share of people who gave each
        label, one column for every class, in the order of `labels` or as columns of a DataFrame
        named by them; rows sum to 1. A sample then counts once with every label, weighted by its
        share.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, in the order of `labels` or as columns of a DataFrame named
        by them, or of the positive class. Dask arrays: the expected, the maximum and the debiased
        error and :func:`~skcalib.metrics.reliability_curve` add up their chunks where they are,
        scores of single samples are lazy, other metrics raise an error.
    n_bins : int, default=15
        Number of bins, at least 1.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal weight. Bins are ``(a, b]``, with 0 in the first.
        The edges of bins of equal weight are observed confidences; equal edges are merged, so
        that equal confidences share a bin and the order of the samples never matters. Arrays in
        chunks have no bins of equal weight.
    norm : {"l1", "l2", "max"}, default="l1"
        The mean of the absolute gaps, the root of the mean squared gap, or the largest gap.
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
        In [0, 1], smaller = better.

    Raises
    ------
    ValueError
        If probabilities are NaN, outside [0, 1] by more than 1e-5 or sum to something other
        than 1 by more than 1e-3, if labels are unknown, or if lengths differ.

    See Also
    --------
    debiased_calibration_error : Without the bias of finite bins.
    smooth_calibration_error : Without bins.
    CalibrationAccumulator : For data that arrives in pieces.
    calibration_error_interval : Its confidence interval.
    skcalib.plots.ReliabilityDisplay : The gaps as a picture.
    skcalib.posthoc.PostHocCalibratedClassifier : Makes it smaller.

    References
    ----------
    .. [1] M. P. Naeini, G. F. Cooper, M. Hauskrecht, "Obtaining Well Calibrated Probabilities
       Using Bayesian Binning", AAAI 2015.
    .. [2] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On Calibration of Modern Neural Networks",
       ICML 2017, Eq. 3.

    Examples
    --------
    >>> from skcalib.metrics import expected_calibration_error
    >>> y_proba = [[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.4, 0.6]]
    >>> round(expected_calibration_error([0, 0, 1, 0], y_proba), 3)
    0.1
    """
    bins, _ = _bins_of(y_true, y_proba, n_bins, strategy, sample_weight, labels, pos_label)
    return float(gap_norm(bins.sums, norm))


@declares("bins", "max")
@validate_params(BINNING_CONSTRAINTS)
def maximum_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Maximum calibration error (MCE): the largest gap between confidence and accuracy of a bin.

    It is :func:`expected_calibration_error` with ``norm="max"`` [1]_. The bin with the largest
    gap is often one with few samples: read it beside :func:`reliability_curve`.

    Parameters
    ----------
    y_true, y_proba, n_bins, strategy : of :func:`expected_calibration_error`
    sample_weight, labels, pos_label : of :func:`expected_calibration_error`

    Returns
    -------
    error : float
        In [0, 1], smaller = better.

    See Also
    --------
    expected_calibration_error : The mean gap, which depends less on small bins.
    ks_calibration_error : A largest gap without bins.
    reliability_curve : The bins themselves.

    References
    ----------
    .. [1] M. P. Naeini, G. F. Cooper, M. Hauskrecht, "Obtaining Well Calibrated Probabilities
       Using Bayesian Binning", AAAI 2015.

    Examples
    --------
    >>> from skcalib.metrics import maximum_calibration_error
    >>> y_proba = [[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.2, 0.8]]
    >>> round(maximum_calibration_error([0, 0, 1, 0], y_proba), 3)
    0.3
    """
    bins, _ = _bins_of(y_true, y_proba, n_bins, strategy, sample_weight, labels, pos_label)
    return float(gap_norm(bins.sums, "max"))


@declares("debiased", "l2")
@validate_params(BINNING_CONSTRAINTS | {"squared": ["boolean"]})
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
    y_true, y_proba, n_bins, strategy, labels, pos_label : of :func:`expected_calibration_error`
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

    See Also
    --------
    expected_calibration_error : With ``norm="l2"``, the same without the correction.
    smooth_calibration_error : Without bins.

    Notes
    -----
    A bin with one sample, or less in weight, has no unbiased estimate and counts 0. Shares in
    `y_true` count as one label drawn from them: if they are known exactly, too much variance is
    subtracted, and the estimate is too small.

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
    bins, unit = _bins_of(y_true, y_proba, n_bins, strategy, sample_weight, labels, pos_label)
    return debiased_norm(bins.sums * count_unit(unit), squared=squared)


@declares("ks", "max")
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
    y_true, y_proba, sample_weight, labels, pos_label : of :func:`expected_calibration_error`

    Returns
    -------
    error : float
        In [0, 1], smaller = better. At least half the gap between mean confidence and accuracy in
        any interval of confidences, times the fraction of samples in it.

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
    # Rounding may take a probability below 0. Groups of ties come in decreasing order.
    score, weight, positive = tie_groups(np.maximum(confidence, 0), correct, predictions.weight)
    gap = score.astype(np.float64) * weight - positive
    return float(np.abs(np.cumsum(gap[::-1])).max() / weight.sum())


@validate_params(BINNING_CONSTRAINTS)
def reliability_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> ReliabilityCurve:
    """Accuracy against confidence, bin by bin.

    Parameters
    ----------
    y_true, y_proba, n_bins, strategy : of :func:`expected_calibration_error`
    sample_weight, labels, pos_label : of :func:`expected_calibration_error`

    Returns
    -------
    curve : ReliabilityCurve
        Named tuple of arrays. ``prob_true`` is the accuracy (or the fraction of the
        positive class) and ``prob_pred`` the mean confidence of every bin, both in [0, 1] and
        NaN where a bin is empty; ``bin_weight`` is the sum of the weights of its samples;
        ``edges`` has one entry more. Equal-mass bins may be fewer than `n_bins`.

    See Also
    --------
    skcalib.plots.ReliabilityDisplay : The plot of the curve.
    sklearn.calibration.calibration_curve : Two classes, without weights.
    isotonic_reliability_curve : Without bins, by isotonic regression.
    smooth_reliability_curve : Without bins, by a kernel.
    expected_calibration_error : The mean gap over the bins.

    Examples
    --------
    >>> from skcalib.metrics import reliability_curve
    >>> curve = reliability_curve([0, 1, 1, 1], [0.1, 0.7, 0.7, 0.9], n_bins=2)
    >>> curve.prob_true, curve.bin_weight
    (array([0., 1.]), array([1., 3.]))
    """
    bins, unit = _bins_of(y_true, y_proba, n_bins, strategy, sample_weight, labels, pos_label)
    curve = curve_of(bins)
    with np.errstate(over="ignore"):  # a sum of weights may be infinite, the rest is not
        return curve._replace(bin_weight=curve.bin_weight * unit)


def _bins_of(
    y_true: Any, y_proba: Any, n_bins: int, strategy: str, *given: Any
) -> tuple[Bins, float]:
    """Return the bins of predictions, and the unit of their weights.

    `given` are `sample_weight`, `labels` and `pos_label`. The values of `y_proba` are checked
    while they are summed.
    """
    predictions = check_predictions(y_true, y_proba, *given, defer_values=True)
    return binned(predictions, n_bins=n_bins, strategy=strategy), predictions.unit
