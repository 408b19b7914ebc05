"""Detection by scores: of positives, of wrong predictions, of out-of-distribution samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._arrays import check_same_length, check_weights, scale_weights
from ..utils._backends import to_host
from ..utils._compat import Interval, validate_params
from ..utils._labels import as_labels, match_binary
from ..utils._output import as_table
from ._selective import CONFIDENCES, check_scores, check_top_labels, get_confidence
from ._ties import TieGroups, tie_groups

if TYPE_CHECKING:
    import pandas as pd

_CONSTRAINTS: dict[str, list[Any]] = {
    "tpr": [Interval(Real, 0, 1, closed="right")],
    "as_frame": ["boolean"],
}

# Slack for rounding: a true-positive rate equal to the limit must reach it.
_RATE_SLACK = 1e-12


@validate_params({"tpr": [Interval(Real, 0, 1, closed="right")]})
def fpr_at_tpr(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    tpr: float = 0.95,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Smallest false-positive rate at a true-positive rate, FPR@95TPR: smaller = better.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of two classes, both present.
    y_score : array-like of shape (n_samples,)
        Scores, larger = more likely positive. Only their order counts.
    tpr : float, default=0.95
        Fraction of the positives that must be found, in (0, 1].
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; a weight of k counts as k samples.
    labels : array-like of shape (2,), default=None
        The negative and the positive label.
    pos_label : int, bool or str, default=None
        The positive label. None: the second of `labels`, or 1 where the labels are in {0, 1} or
        {-1, 1}.

    Returns
    -------
    fpr : float
        Smallest fraction of the negatives, in [0, 1], that score at or above a threshold which at
        least the fraction `tpr` of the positives reaches. Samples of equal score are on the same
        side of every threshold.

    Raises
    ------
    ValueError
        If `y_true` lacks one of the two classes, or if `y_score` holds NaN.

    See Also
    --------
    ood_report : This and other measures of detection for several scores.
    sklearn.metrics.roc_curve : The whole curve.
    energy_score : A score for it, from logits.

    Examples
    --------
    >>> from skcalib.metrics import fpr_at_tpr
    >>> fpr_at_tpr([0, 0, 0, 1, 1], [0.1, 0.4, 0.8, 0.6, 0.9])
    0.3333333333333333
    >>> fpr_at_tpr([0, 0, 0, 1, 1], [0.1, 0.4, 0.8, 0.6, 0.9], tpr=0.5)
    0.0
    """
    positive, weight = _read_detection(y_true, sample_weight, labels, pos_label)
    scores = check_scores(y_score, name="y_score")
    check_same_length(y_true=positive, y_score=scores)
    groups = tie_groups(scores, positive, weight)
    found, false = np.cumsum(groups.positive), np.cumsum(groups.weight - groups.positive)
    return _compute_fpr_at_tpr(found, false, tpr)


@validate_params(_CONSTRAINTS)
def misclassification_report(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    confidence: Sequence[str] | Mapping[str, ArrayLike] = CONFIDENCES,
    tpr: float = 0.95,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    as_frame: bool = False,
) -> NDArray[Any] | pd.DataFrame:
    """How well confidence separates correct predictions from wrong ones [1]_, [2]_.

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels, pos_label : of :func:`expected_calibration_error`
    confidence : sequence of str, dict or DataFrame, default=("msp", "entropy", "margin")
        The scores to report on: names of those that `y_proba` gives (see
        :func:`area_under_risk_coverage`), or scores of your own as a dict of arrays of shape
        (n_samples,) or the columns of a DataFrame; larger = more confident.
    tpr : float, default=0.95
        True-positive rate at which the false-positive rate is taken, in (0, 1].
    as_frame : bool, default=False
        Whether to return a DataFrame instead of a structured array.

    Returns
    -------
    table : structured array or DataFrame, one line per score
        The name of the ``score``, and measures in [0, 1]: ``fpr_at_tpr``, the fraction of the
        wrong predictions at or above the threshold that the fraction `tpr` of the correct ones
        reaches (smaller = better);
        ``auroc``; ``aupr_success`` and ``aupr_error``, the average precision of finding correct
        predictions by high and wrong ones by low confidence (larger = better).

    Raises
    ------
    ValueError
        If all predictions are correct or all are wrong, or if a score holds NaN or is unknown.

    See Also
    --------
    area_under_risk_coverage : The cost of the errors that are not found.
    ood_report : The same measures for out-of-distribution samples.
    risk_coverage_curve : Error rate of the most confident samples.

    References
    ----------
    .. [1] D. Hendrycks, K. Gimpel, "A Baseline for Detecting Misclassified and Out-of-Distribution
       Examples in Neural Networks", ICLR 2017.
    .. [2] C. Corbière, N. Thome, A. Bar-Hen, M. Cord, P. Pérez, "Addressing Failure Prediction by
       Learning Model Confidence", NeurIPS 2019.

    Examples
    --------
    >>> from skcalib.metrics import misclassification_report
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> table = misclassification_report([0, 1, 1, 0], y_proba, confidence=["msp", "entropy"])
    >>> table["score"].tolist(), table["auroc"].tolist()
    (['msp', 'entropy'], [0.75, 0.75])
    """
    predicted = check_top_labels(y_true, y_proba, sample_weight, labels, pos_label)
    correct, weight = to_host(predicted.correct), predicted.given.weight
    what = "y_true and y_proba must give correct and wrong predictions"
    _check_both_kinds(correct, weight, what, kinds=("correct", "wrong"))
    named = _name_scores(confidence)
    scores = {name: to_host(get_confidence(value, predicted)) for name, value in named.items()}
    return _report(scores, correct, weight, tpr, ("aupr_success", "aupr_error"), as_frame)


@validate_params(_CONSTRAINTS)
def ood_report(
    y_true: ArrayLike,
    scores: ArrayLike | Mapping[str, ArrayLike],
    *,
    tpr: float = 0.95,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    as_frame: bool = False,
) -> NDArray[Any] | pd.DataFrame:
    """How well scores separate in-distribution from out-of-distribution samples [1]_, [2]_.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        1 for in-distribution samples, which are the positive ones, 0 or -1 for out-of-distribution
        ones, or two other labels.
    scores : dict of str -> array-like, DataFrame or array-like of shape (n_samples,)
        Scores of shape (n_samples,), larger = more like in-distribution data, as `score_samples`
        of scikit-learn's outlier detectors, :func:`max_logit_score` and :func:`energy_score`. A
        single array is reported under the name "score".
    tpr, sample_weight, as_frame : of :func:`misclassification_report`
    labels, pos_label : of :func:`fpr_at_tpr`

    Returns
    -------
    table : structured array or DataFrame, one line per score
        The name of the ``score``, and measures in [0, 1]: ``fpr_at_tpr``, the fraction of the
        out-of-distribution samples at or above the threshold that the fraction `tpr` of the
        in-distribution ones reaches (smaller = better); ``auroc``; ``aupr_in`` and ``aupr_out``,
        the average precision of finding in-distribution samples by high and out-of-distribution
        ones by low scores (larger = better).

    Raises
    ------
    ValueError
        If `y_true` lacks one of the two kinds, or if a score holds NaN.

    See Also
    --------
    fpr_at_tpr : The first measure alone.
    misclassification_report : The same measures for errors.
    skcalib.difficulty.NoveltyDetector : Decides sample by sample.

    References
    ----------
    .. [1] D. Hendrycks, K. Gimpel, "A Baseline for Detecting Misclassified and Out-of-Distribution
       Examples in Neural Networks", ICLR 2017.
    .. [2] S. Liang, Y. Li, R. Srikant, "Enhancing the Reliability of Out-of-Distribution Image
       Detection in Neural Networks", ICLR 2018.

    Examples
    --------
    >>> from skcalib.metrics import ood_report
    >>> table = ood_report([1, 1, 0, 0], {"energy": [9.0, 4.0, 5.0, 1.0]})
    >>> table["auroc"].tolist(), table["fpr_at_tpr"].tolist()
    ([0.75], [0.5])
    """
    inside, weight = _read_detection(y_true, sample_weight, labels, pos_label)
    named = _get_columns(scores)
    if named is None:
        named = {"score": scores}
    checked = {}
    for name, values in named.items():
        checked[name] = check_scores(values, name=f"scores[{name!r}]")
        check_same_length(y_true=inside, **{f"scores[{name!r}]": checked[name]})
    return _report(checked, inside, weight, tpr, ("aupr_in", "aupr_out"), as_frame)


def _get_columns(scores: Any) -> Mapping[str, Any] | None:
    """Return the scores of a dict or of the columns of a DataFrame by name, else None."""
    if isinstance(scores, Mapping):
        return scores
    if hasattr(scores, "columns"):
        return {str(name): scores[name] for name in scores.columns}
    return None


def _name_scores(confidence: Sequence[str] | Mapping[str, ArrayLike]) -> Mapping[str, Any]:
    columns = _get_columns(confidence)
    if columns is not None:
        return columns
    # A str is a sequence of str, too: of its letters.
    if isinstance(confidence, str):
        return {confidence: confidence}
    if not isinstance(confidence, Sequence) or not all(isinstance(c, str) for c in confidence):
        raise TypeError(
            "confidence must be a sequence of names, a dict of arrays or a DataFrame, such as "
            f"{{'name': array}} for a single array, got {type(confidence).__name__}."
        )
    return {name: name for name in confidence}


def _report(
    scores: Mapping[str, NDArray[Any]],
    positive: NDArray[Any],
    weight: NDArray[np.float64] | None,
    tpr: float,
    aupr_names: tuple[str, str],
    as_frame: bool,
) -> NDArray[Any] | pd.DataFrame:
    if not scores:
        raise ValueError("scores must hold at least one score to report on, got none.")
    rows = [
        _compute_measures(tie_groups(values, positive, weight), tpr) for values in scores.values()
    ]
    measures = np.transpose(rows)
    names = ("fpr_at_tpr", "auroc", *aupr_names)
    columns = {"score": np.array(list(scores), dtype=object), **dict(zip(names, measures))}
    return as_table(columns, as_frame=as_frame)


def _read_detection(
    y_true: ArrayLike, sample_weight: ArrayLike | None, labels: ArrayLike | None, pos_label: Any
) -> tuple[NDArray[np.bool_], NDArray[np.float64] | None]:
    """Return which samples are positive, and the weights; both classes must have weight."""
    y = as_labels(y_true, name="y_true")
    known = None if labels is None else as_labels(labels, name="labels")
    codes, _ = match_binary(y, labels=known, pos_label=pos_label)
    weight, _ = scale_weights(check_weights(sample_weight, len(y)))
    positive = codes == 1
    _check_both_kinds(positive, weight, "y_true must hold both classes")
    return positive, weight


def _check_both_kinds(
    first: NDArray[Any],
    weight: NDArray[np.float64] | None,
    what: str,
    *,
    kinds: tuple[str, str] = ("positive", "negative"),
) -> None:
    """Raise unless there are samples of both kinds, counting those of positive weight.

    `first` is 1 for a sample of the first kind, else 0, or a fraction.
    """
    used = first if weight is None else first[weight > 0]
    if used.min() == 1 or used.max() == 0:
        raise ValueError(f"{what}, got only {kinds[0] if used.max() else kinds[1]} ones.")


def _compute_measures(groups: TieGroups, tpr: float) -> tuple[float, float, float, float]:
    """Return FPR at `tpr`, AUROC, and the average precision of positives and of negatives.

    The same as scikit-learn's functions, with one sort for all four.
    """
    positive, negative = groups.positive, groups.weight - groups.positive
    # Scores decrease: a threshold at the score of a group accepts the sums up to that group.
    found, false = np.cumsum(positive), np.cumsum(negative)
    # Pairs in which the positive sample scores higher, ties counted as half.
    auroc = negative @ (found - positive / 2) / (found[-1] * false[-1])
    # Reversed: the negatives are found by low scores.
    from_below = negative[::-1], np.cumsum(negative[::-1]), np.cumsum(positive[::-1])
    return (
        _compute_fpr_at_tpr(found, false, tpr),
        float(auroc),
        _average_precision(positive, found, false),
        _average_precision(*from_below),
    )


def _compute_fpr_at_tpr(
    found: NDArray[np.float64], false: NDArray[np.float64], tpr: float
) -> float:
    """Return the false-positive rate at the first threshold that reaches `tpr`."""
    # Both sums only grow, so the first threshold that reaches it has the fewest false positives.
    reached = int(np.argmax(found >= (tpr - _RATE_SLACK) * found[-1]))
    return float(false[reached] / false[-1])


def _average_precision(
    gain: NDArray[np.float64], found: NDArray[np.float64], false: NDArray[np.float64]
) -> float:
    # sum over thresholds of (gain in recall) * precision, the first being gain / found[-1].
    return float(gain @ (found / (found + false)) / found[-1])
