"""Areas under curves of risk against coverage, in expectation over the orderings of ties."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma

from ._confidence import rank_predictions
from ._ties import TieGroups


def area_under_risk_coverage(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    confidence: str | ArrayLike = "msp",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Area under the risk-coverage curve (AURC): smaller = better.

    The rows are accepted in the order of decreasing confidence. The area is the mean, over the
    coverages 1/n, 2/n, ..., 1, of the error rate among the accepted rows. Rows of equal confidence
    have no order of their own, so the value is the expectation over all their orders.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels, integers or strings.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; of shape (n_samples,), those of the positive class. The class of
        the largest probability is the prediction, which is right or wrong.
    confidence : {"msp", "entropy", "margin"} or array-like of shape (n_samples,), default="msp"
        What orders the rows: the largest probability, the entropy, the difference of the two
        largest probabilities, or any score of which larger = surer.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows; they count rows (see Notes).
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns, in their order. None means 0, ..., n_classes - 1 or, for other
        labels, the sorted values of `y_true`.
    pos_label : int or str, default=None
        The positive class, where `y_proba` has shape (n_samples,).

    Returns
    -------
    area : float
        In [0, 1]; the error rate, where the confidence is constant.

    Raises
    ------
    ValueError
        If `y_proba` holds NaN, values outside [0, 1] or rows that do not sum to 1, if a label has
        no column, or if `confidence` is unknown.

    See Also
    --------
    excess_area_under_risk_coverage : The part that a perfect ranking would avoid.
    area_under_generalized_risk_coverage : The area in which every error weighs the same.
    risk_coverage_curve : The curve.

    Notes
    -----
    m tied rows of error rate r, after N rows of which E are wrong, add the expected sum of the
    risks at their m coverages, ``m r + (E - r N) (digamma(N + m + 1) - digamma(N + 1))``; this
    extends to weights that are not whole. Weights count rows, so their scale matters, in the
    order of 1/n: doubled, they mean twice as many rows and coverages.

    References
    ----------
    .. [1] Geifman, Uziel and El-Yaniv, Bias-Reduced Uncertainty Estimation for Deep Neural
       Classifiers, ICLR 2019.

    Examples
    --------
    >>> from skcalib.metrics import area_under_risk_coverage
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> area_under_risk_coverage([0, 0, 1, 0], y_proba)
    0.0625
    >>> area_under_risk_coverage([0, 0, 1, 0], y_proba, confidence=[1, 1, 1, 1])
    0.25
    """
    groups = rank_predictions(
        y_true,
        y_proba,
        confidence=confidence,
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
    )
    return _mean_risk(groups)


def excess_area_under_risk_coverage(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    confidence: str | ArrayLike = "msp",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Excess area under the risk-coverage curve (E-AURC): smaller = better.

    :func:`area_under_risk_coverage` less the area of a perfect ranking of the same predictions,
    which accepts every right row before the first wrong one: the part that better confidence
    would avoid.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels, integers or strings.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; of shape (n_samples,), those of the positive class. The class of
        the largest probability is the prediction, which is right or wrong.
    confidence : {"msp", "entropy", "margin"} or array-like of shape (n_samples,), default="msp"
        What orders the rows: the largest probability, the entropy, the difference of the two
        largest probabilities, or any score of which larger = surer.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows; they count rows as in
        :func:`area_under_risk_coverage`.
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns, in their order. None means 0, ..., n_classes - 1 or, for other
        labels, the sorted values of `y_true`.
    pos_label : int or str, default=None
        The positive class, where `y_proba` has shape (n_samples,).

    Returns
    -------
    area : float
        In [0, 1]; 0 for a perfect ranking, and where all rows are right or all are wrong.

    Raises
    ------
    ValueError
        If `y_proba` holds NaN, values outside [0, 1] or rows that do not sum to 1, if a label has
        no column, or if `confidence` is unknown.

    See Also
    --------
    area_under_risk_coverage : The whole area.

    References
    ----------
    .. [1] Geifman, Uziel and El-Yaniv, Bias-Reduced Uncertainty Estimation for Deep Neural
       Classifiers, ICLR 2019.

    Examples
    --------
    >>> from skcalib.metrics import excess_area_under_risk_coverage
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> excess_area_under_risk_coverage([0, 0, 1, 0], y_proba)
    0.0
    >>> round(excess_area_under_risk_coverage([1, 0, 1, 1], y_proba), 3)
    0.458
    """
    groups = rank_predictions(
        y_true,
        y_proba,
        confidence=confidence,
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
    )
    right = groups.hit.sum()
    wrong = groups.weight.sum() - right
    perfect = TieGroups(np.array([1, 0]), np.array([right, wrong]), np.array([right, 0.0]))
    return max(_mean_risk(groups) - _mean_risk(perfect), 0.0)


def area_under_generalized_risk_coverage(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    confidence: str | ArrayLike = "msp",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Area under the generalized risk-coverage curve (AUGRC): smaller = better.

    The generalized risk at a coverage is the share of all rows that are both accepted and wrong.
    Its area is the probability that a random row is wrong and accepted by a random threshold:
    every error counts by its rank alone, whereas :func:`area_under_risk_coverage` is governed by
    the few errors of the highest confidence.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels, integers or strings.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; of shape (n_samples,), those of the positive class. The class of
        the largest probability is the prediction, which is right or wrong.
    confidence : {"msp", "entropy", "margin"} or array-like of shape (n_samples,), default="msp"
        What orders the rows: the largest probability, the entropy, the difference of the two
        largest probabilities, or any score of which larger = surer.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns, in their order. None means 0, ..., n_classes - 1 or, for other
        labels, the sorted values of `y_true`.
    pos_label : int or str, default=None
        The positive class, where `y_proba` has shape (n_samples,).

    Returns
    -------
    area : float
        In [0, 1/2]; half the error rate, where the confidence is constant.

    Raises
    ------
    ValueError
        If `y_proba` holds NaN, values outside [0, 1] or rows that do not sum to 1, if a label has
        no column, or if `confidence` is unknown.

    See Also
    --------
    area_under_risk_coverage : The mean error rate of the accepted rows.

    Notes
    -----
    With accuracy a and AUROC of the confidence as a detector of right rows (ties count 1/2), the
    area is ``a (1 - a) (1 - AUROC) + (1 - a)**2 / 2``: the continuous curve, under which ties are
    straight lines. Neither repeating all rows nor scaling the weights changes it.

    References
    ----------
    .. [1] Traub et al., Overcoming Common Flaws in the Evaluation of Selective Classification
       Systems, NeurIPS 2024, Eq. 7.

    Examples
    --------
    >>> from skcalib.metrics import area_under_generalized_risk_coverage
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> area_under_generalized_risk_coverage([0, 0, 1, 0], y_proba)
    0.03125
    """
    groups = rank_predictions(
        y_true,
        y_proba,
        confidence=confidence,
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
    )
    wrong = groups.weight - groups.hit
    wrong_before = np.cumsum(wrong) - wrong
    total = groups.weight.sum()
    return float(groups.weight @ (wrong_before + wrong / 2) / total**2)


def _mean_risk(groups: TieGroups) -> float:
    """Return the mean selective risk over the coverages 1/n, ..., 1, expected over ties."""
    # A perfect ranking may have no right rows, or no wrong ones: an empty group adds nothing.
    _, weight, hit = (part[groups.weight > 0] for part in groups)
    wrong = weight - hit
    before = np.cumsum(weight) - weight
    wrong_before = np.cumsum(wrong) - wrong
    # The sum of 1 / (N + j) over the m coverages of a group; exact where it is one row.
    harmonic = 1 / (before + 1)
    tied = weight != 1
    harmonic[tied] = digamma(before[tied] + weight[tied] + 1) - digamma(before[tied] + 1)
    risk = wrong / weight
    return float(np.sum(wrong + (wrong_before - risk * before) * harmonic) / weight.sum())
