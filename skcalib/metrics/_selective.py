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

    The samples are accepted in the order of decreasing confidence. The area is the mean, over the
    coverages 1/n, 2/n, ..., 1, of the error rate among the accepted samples [1]_. Samples of equal
    confidence have no order of their own, so the value is the expectation over all their orders.

    Parameters
    ----------
    y_true, y_proba, confidence, labels, pos_label
        As for :func:`risk_coverage_curve`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; a weight of k counts as k samples (see Notes).

    Returns
    -------
    area : float
        In [0, 1]; the error rate, where the confidence is constant.

    See Also
    --------
    excess_area_under_risk_coverage : The part that a perfect ranking would avoid.
    area_under_generalized_risk_coverage : The area in which every error weighs the same.
    risk_coverage_curve : The curve.

    Notes
    -----
    After N samples with E errors, m tied samples of error rate r add the expected sum of
    the risks at their m coverages, ``m r + (E - r N) (digamma(N + m + 1) - digamma(N + 1))``;
    this extends to weights that are not whole. Weights count samples, so their scale matters, in
    the order of 1/n: doubled, they mean twice as many samples and coverages.

    References
    ----------
    .. [1] Y. Geifman, G. Uziel, R. El-Yaniv, "Bias-Reduced Uncertainty Estimation for Deep Neural
       Classifiers", ICLR 2019.

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
        y_true, y_proba, confidence, sample_weight, labels, pos_label, counted=True
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

    :func:`area_under_risk_coverage` minus the area of a perfect ranking of the same predictions,
    which accepts every correct prediction before the first wrong one [1]_: the part that better
    confidence would avoid.

    Parameters
    ----------
    y_true, y_proba, confidence, sample_weight, labels, pos_label
        As for :func:`area_under_risk_coverage`.

    Returns
    -------
    area : float
        In [0, 1]; 0 for a perfect ranking, and where all predictions are correct or all are wrong.

    See Also
    --------
    area_under_risk_coverage : The whole area.

    References
    ----------
    .. [1] Y. Geifman, G. Uziel, R. El-Yaniv, "Bias-Reduced Uncertainty Estimation for Deep Neural
       Classifiers", ICLR 2019.

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
        y_true, y_proba, confidence, sample_weight, labels, pos_label, counted=True
    )
    correct = groups.positive.sum()
    wrong = groups.weight.sum() - correct
    # All correct predictions tied above all wrong ones.
    perfect = TieGroups(np.array([1, 0]), np.array([correct, wrong]), np.array([correct, 0.0]))
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

    The generalized risk at a coverage is the fraction of all samples that are both accepted and
    wrong. Its area is the probability that a random sample is wrong and accepted by a random
    threshold [1]_: every error counts by its rank alone, whereas :func:`area_under_risk_coverage`
    is governed by the few errors of the highest confidence.

    Parameters
    ----------
    y_true, y_proba, confidence, sample_weight, labels, pos_label
        As for :func:`risk_coverage_curve`.

    Returns
    -------
    area : float
        In [0, 1/2]; half the error rate, where the confidence is constant.

    See Also
    --------
    area_under_risk_coverage : The mean error rate of the accepted samples.

    Notes
    -----
    With accuracy a and AUROC of the confidence as a detector of correct predictions (ties count
    1/2), the area is ``a (1 - a) (1 - AUROC) + (1 - a)**2 / 2``: the continuous curve, under which
    ties are straight lines. Neither repeating all samples nor scaling the weights changes it.

    References
    ----------
    .. [1] J. Traub, T. J. Bungert, C. T. Lüth, M. Baumgartner, K. H. Maier-Hein, L. Maier-Hein,
       P. F. Jäger, "Overcoming Common Flaws in the Evaluation of Selective Classification
       Systems", NeurIPS 2024, Eq. 7.

    Examples
    --------
    >>> from skcalib.metrics import area_under_generalized_risk_coverage
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> area_under_generalized_risk_coverage([0, 0, 1, 0], y_proba)
    0.03125
    """
    groups = rank_predictions(y_true, y_proba, confidence, sample_weight, labels, pos_label)
    # Trapezoids: over the width of a group, its weight, the accepted errors rise on a straight
    # line from wrong_before to wrong_before + wrong.
    wrong = groups.weight - groups.positive
    wrong_before = np.cumsum(wrong) - wrong
    total = groups.weight.sum()
    return float(groups.weight @ (wrong_before + wrong / 2) / total**2)


def _mean_risk(groups: TieGroups) -> float:
    """Return the mean selective risk over the coverages 1/n, ..., 1, expected over ties."""
    # A perfect ranking may lack correct predictions, or wrong ones: an empty group adds nothing.
    _, weight, correct = (part[groups.weight > 0] for part in groups)
    wrong = weight - correct
    before = np.cumsum(weight) - weight
    wrong_before = np.cumsum(wrong) - wrong
    # After N samples with E wrong, the expected risk at the j-th coverage of a group of error
    # rate r is (E + r j) / (N + j) = r + (E - r N) / (N + j); over the group r sums to `wrong`.
    # The sum of 1 / (N + j) over the m coverages of a group; exact where it is one sample.
    harmonic = 1 / (before + 1)
    tied = weight != 1
    harmonic[tied] = digamma(before[tied] + weight[tied] + 1) - digamma(before[tied] + 1)
    risk = wrong / weight
    return float(np.sum(wrong + (wrong_before - risk * before) * harmonic) / weight.sum())
