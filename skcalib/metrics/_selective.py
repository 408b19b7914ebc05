"""Selective prediction: confidence, risk-coverage curves, points on them and areas."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ..utils._arrays import as_floats, check_same_length, warn_if_normalized
from ..utils._backends import as_float64, get_back_end, to_host
from ..utils._compat import Interval, validate_params
from ..utils._numeric import compute_row_entropy, compute_row_margin, iter_blocks
from ..utils._output import sort_by_similarity
from ..utils._proba import Predictions, check_predictions, check_values
from ._calibration_error import compute_top_label
from ._per_sample import make_two_columns
from ._registry import register
from ._ties import TieGroups, tie_groups

# Predictions ranked by confidence, for selective prediction and error detection.

CONFIDENCES = ("msp", "entropy", "margin")


class TopLabels(NamedTuple):
    """Checked predictions (n, K), their largest probability, and whether its class is correct.

    Where people differ, ``correct`` is the fraction of those who agree with the prediction. The
    last two are tensors where the probabilities are.
    """

    given: Predictions
    top: Any
    correct: Any


def check_top_labels(y_true: ArrayLike, y_proba: ArrayLike, *given: Any) -> TopLabels:
    """Validate predictions, and compare the class of the largest probability with the true one.

    `given` are `sample_weight`, `labels` and `pos_label`.
    """
    predictions = check_predictions(y_true, y_proba, *given, defer_values=True)
    if predictions.proba.ndim == 1:
        # Checked before (1 - p, p) is built: an error should name a column that the user gave.
        check_values(predictions.proba)
        predictions = predictions._replace(proba=make_two_columns(predictions.proba))
    return TopLabels(predictions, *compute_top_label(predictions, on_device=True))


def get_confidence(confidence: str | ArrayLike, predicted: TopLabels) -> Any:
    """Return a confidence by its name, or the array given; larger = more confident.

    It is where the probabilities are.
    """
    xp, place = get_back_end(predicted.correct)
    if not isinstance(confidence, str):
        values = check_scores(confidence, name="confidence")
        check_same_length(y_true=predicted.correct, confidence=values)
        return place(values)
    if confidence == "msp":
        return predicted.top
    if confidence not in CONFIDENCES:
        names = sort_by_similarity(CONFIDENCES, confidence)
        raise ValueError(
            f"confidence must be one of {', '.join(map(repr, names))} or an array of shape "
            f"(n_samples,), got {confidence!r}."
        )
    # Samples whose probabilities are equal up to their order must tie, whatever the rounding.
    score = (
        compute_row_margin if confidence == "margin" else lambda block: -compute_row_entropy(block)
    )
    scores = []
    for _, block in iter_blocks(predicted.given.proba, on_device=True):
        scores.append(score(as_float64(block)).round(decimals=12))
    return xp.concatenate(scores)


def rank_predictions(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    confidence: str | ArrayLike,
    *given: Any,
    counted: bool = False,
) -> TieGroups:
    """Return the samples grouped by confidence, most confident first; positive means correct.

    `given` are as for :func:`check_top_labels`. Weights are proportions or, with `counted`,
    numbers of samples.
    """
    predicted = check_top_labels(y_true, y_proba, *given)
    weight = predicted.given.counts if counted else predicted.given.weight
    if counted and weight is not None:
        warn_if_normalized(weight)
    return tie_groups(get_confidence(confidence, predicted), predicted.correct, weight)


def check_scores(values: ArrayLike, *, name: str) -> NDArray[Any]:
    """Return real scores of shape (n,) without NaN; infinite scores have a rank like any other."""
    scores = as_floats(values, name=name)
    if scores.ndim != 1 or len(scores) == 0:
        raise ValueError(f"{name} must have shape (n,) with n >= 1, got shape {scores.shape}.")
    missing = np.isnan(scores)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"{name} must not contain NaN, got NaN in row {row}.")
    return scores


# Risk-coverage curves, points on them, and areas, in expectation over the orders of ties.

# Slack for rounding: a risk equal to the limit must not exceed it.
_RISK_SLACK = 1e-12


class RiskCoverageCurve(NamedTuple):
    """Points (n_thresholds,) of a risk-coverage curve, in increasing order of the coverage."""

    coverage: NDArray[np.float64]
    risk: NDArray[np.float64]
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

    The class of the largest probability is the prediction. Every distinct confidence is a
    threshold, at which all samples of at least that confidence are accepted [1]_. Samples of equal
    confidence are accepted together.

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels, pos_label : of :func:`expected_calibration_error`
    confidence : {"msp", "entropy", "margin"} or array-like of shape (n_samples,), default="msp"
        What orders the samples: the largest probability (maximum softmax probability), the
        negative entropy, the difference of the two largest probabilities, or any score where
        larger = more confident.

    Returns
    -------
    curve : RiskCoverageCurve
        Named tuple of arrays of shape (n_thresholds,): ``coverage``, the accepted fraction, in
        (0, 1] and increasing to 1; ``risk``, the error rate of the accepted samples, in [0, 1];
        ``threshold``, the smallest confidence accepted, decreasing.

    See Also
    --------
    area_under_risk_coverage : The area under the curve.
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

    The accuracy-rejection curve is the same, read from the other end:

    >>> 1 - curve.coverage[::-1], 1 - curve.risk[::-1]
    (array([0.  , 0.25, 0.5 , 0.75]), array([0.75, 1.  , 1.  , 1.  ]))
    """
    return _compute_curve(y_true, y_proba, confidence, sample_weight, labels, pos_label)


@register("accuracy_at_coverage", greater_is_better=True)
@validate_params({"coverage": [Interval(Real, 0, 1, closed="right")]})
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
    y_true, y_proba, confidence, sample_weight, labels, pos_label : of :func:`risk_coverage_curve`
    coverage : float, default=0.8
        Fraction of the samples (of their weight) that is accepted, in (0, 1].

    Returns
    -------
    accuracy : float
        In [0, 1]. If the fraction splits a group of samples of equal confidence, or a sample, that
        group counts by its accepted part: the expectation over the orders of its samples.

    See Also
    --------
    coverage_at_risk : The fraction that can be accepted at a given error rate.
    risk_coverage_curve : The error rate at every coverage.

    Examples
    --------
    >>> from skcalib.metrics import accuracy_at_coverage
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> accuracy_at_coverage([0, 0, 1, 0], y_proba, coverage=0.75)
    1.0
    >>> accuracy_at_coverage([0, 0, 1, 0], y_proba, coverage=1)
    0.75
    """
    groups = rank_predictions(y_true, y_proba, confidence, sample_weight, labels, pos_label)
    before = groups.weight.cumsum(0) - groups.weight
    accepted = coverage * groups.weight.sum()
    # 1 for groups above the cut, 0 below it, in between for the one that the cut splits.
    part = ((accepted - before) / groups.weight).clip(0, 1)
    return float(part @ groups.positive / accepted)


@register("coverage_at_risk", greater_is_better=True)
@validate_params({"risk": [Interval(Real, 0, 1, closed="both")], "return_threshold": ["boolean"]})
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

    Use it to compare models, not to choose a threshold. The threshold that just meets the risk on
    these samples is optimistic: on new samples the error rate exceeded the target in about half of
    the trials (54 % at a risk of .05 and 500 samples).
    :class:`skcalib.selection.SelectiveClassifier` chooses one with a guarantee.

    Parameters
    ----------
    y_true, y_proba, confidence, sample_weight, labels, pos_label : of :func:`risk_coverage_curve`
    risk : float, default=0.05
        Largest error rate of the accepted samples, in [0, 1].
    return_threshold : bool, default=False
        Whether to return the smallest confidence accepted as well.

    Returns
    -------
    coverage : float
        In [0, 1]: the largest coverage of :func:`risk_coverage_curve` of a risk of at most `risk`,
        and 0 where there is none. Samples of equal confidence are accepted together.
    threshold : float
        Only with `return_threshold`: the smallest confidence accepted, and inf where none is.

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
    curve = _compute_curve(y_true, y_proba, confidence, sample_weight, labels, pos_label)
    # Risk rises and falls along the curve: the last point within the limit is the answer, not
    # the one before the first beyond it.
    within = np.flatnonzero(curve.risk <= risk + _RISK_SLACK)
    coverage, threshold = 0.0, np.inf
    if len(within):
        coverage, threshold = curve.coverage[within[-1]], curve.threshold[within[-1]]
    return (float(coverage), float(threshold)) if return_threshold else float(coverage)


@register("aurc")
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
    y_true, y_proba, confidence, labels, pos_label : of :func:`risk_coverage_curve`
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
    After N samples with E errors, m tied samples of error rate r add the expected sum of the risks
    at their m coverages, ``m r + (E - r N) (digamma(N + m + 1) - digamma(N + 1))``; this extends
    to weights that are not integers. Weights count samples, so their scale matters, in the order
    of 1/n: doubled, they mean twice as many samples and coverages.

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
    return _compute_mean_risk(groups.weight, groups.positive)


@register("eaurc")
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
    y_true, y_proba, confidence : of :func:`area_under_risk_coverage`
    sample_weight, labels, pos_label : of :func:`area_under_risk_coverage`

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
    correct = float(groups.positive.sum())
    wrong = float(groups.weight.sum()) - correct
    # All correct predictions tied above all wrong ones.
    perfect = _compute_mean_risk(np.array([correct, wrong]), np.array([correct, 0.0]))
    return max(_compute_mean_risk(groups.weight, groups.positive) - perfect, 0.0)


@register("augrc")
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
    is dominated by the few errors of the highest confidence.

    Parameters
    ----------
    y_true, y_proba, confidence, sample_weight, labels, pos_label : of :func:`risk_coverage_curve`

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
    wrong_before = wrong.cumsum(0) - wrong
    total = groups.weight.sum()
    return float(groups.weight @ (wrong_before + wrong / 2) / total**2)


def _compute_curve(*call: Any) -> RiskCoverageCurve:
    """Return the risk-coverage curve; `call` has the arguments of :func:`rank_predictions`."""
    groups = TieGroups(*map(to_host, rank_predictions(*call)))
    accepted = np.cumsum(groups.weight)
    wrong = np.cumsum(groups.weight - groups.positive)
    return RiskCoverageCurve(accepted / accepted[-1], wrong / accepted, groups.score)


def _compute_mean_risk(weight: Any, correct: Any) -> float:
    """Return the mean selective risk over the coverages 1/n, ..., 1, expected over ties."""
    xp, _ = get_back_end(weight)
    digamma = special.digamma if xp is np else xp.special.digamma
    wrong = weight - correct
    before = weight.cumsum(0) - weight
    wrong_before = wrong.cumsum(0) - wrong
    # After N samples with E wrong, the expected risk at the j-th coverage of a group of error
    # rate r is (E + r j) / (N + j) = r + (E - r N) / (N + j); over the group r sums to `wrong`.
    # The sum of 1 / (N + j) over the m coverages of a group; exact where it is one sample.
    harmonic = 1 / (before + 1)
    tied = weight != 1
    harmonic[tied] = digamma(before[tied] + weight[tied] + 1) - digamma(before[tied] + 1)
    # A perfect ranking may lack correct predictions, or wrong ones: an empty group adds nothing.
    risk = wrong / xp.where(weight > 0, weight, 1.0)
    return float((wrong + (wrong_before - risk * before) * harmonic).sum() / weight.sum())
