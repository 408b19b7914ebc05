"""Detection of positives by a score: the false-positive rate at a true-positive rate."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._arrays import check_same_length, check_weights, scale_weights
from ..utils._labels import as_labels, match_binary
from ..utils._private import Interval, validate_params
from ._confidence import check_scores
from ._ties import TieGroups, tie_groups

# A true-positive rate of exactly the limit must not miss it by rounding.
_RATE_SLACK = 1e-12


@validate_params(
    {"tpr": [Interval(Real, 0, 1, closed="right")]}, prefer_skip_nested_validation=True
)
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
    positive, weight = read_detection(y_true, sample_weight, labels, pos_label)
    scores = check_scores(y_score, name="y_score")
    check_same_length(y_true=positive, y_score=scores)
    groups = tie_groups(scores, positive, weight)
    found, false = np.cumsum(groups.positive), np.cumsum(groups.weight - groups.positive)
    return _fpr_at_tpr(found, false, tpr)


def read_detection(
    y_true: ArrayLike,
    sample_weight: ArrayLike | None,
    labels: ArrayLike | None,
    pos_label: Any,
) -> tuple[NDArray[np.bool_], NDArray[np.float64] | None]:
    """Return which samples are positive, and the weights; both classes must have weight."""
    y = as_labels(y_true, name="y_true")
    known = None if labels is None else as_labels(labels, name="labels")
    codes, _ = match_binary(y, labels=known, pos_label=pos_label)
    weight, _ = scale_weights(check_weights(sample_weight, len(y)))
    positive = codes == 1
    check_both_kinds(positive, weight, "y_true must hold both classes")
    return positive, weight


def check_both_kinds(
    first: NDArray[np.bool_],
    weight: NDArray[np.float64] | None,
    what: str,
    *,
    kinds: tuple[str, str] = ("positive", "negative"),
) -> None:
    """Raise unless there are samples of both kinds, counting those of positive weight."""
    used = first if weight is None else first[weight > 0]
    if used.all() or not used.any():
        raise ValueError(f"{what}, got only {kinds[0] if used.all() else kinds[1]} ones.")


def detection_measures(groups: TieGroups, tpr: float) -> tuple[float, float, float, float]:
    """Return FPR at `tpr`, AUROC, and the average precision of positives and of negatives.

    What functions of scikit-learn give one by one, from one sort for all four.
    """
    positive, negative = groups.positive, groups.weight - groups.positive
    # Scores decrease: sums up to a group are what a threshold at its score accepts.
    found, false = np.cumsum(positive), np.cumsum(negative)
    # Pairs in which the positive sample scores higher, ties counted as half.
    auroc = negative @ (found - positive / 2) / (found[-1] * false[-1])
    # Reversed, for the negatives are found by low scores.
    from_below = negative[::-1], np.cumsum(negative[::-1]), np.cumsum(positive[::-1])
    return (
        _fpr_at_tpr(found, false, tpr),
        float(auroc),
        _average_precision(positive, found, false),
        _average_precision(*from_below),
    )


def _fpr_at_tpr(found: NDArray[np.float64], false: NDArray[np.float64], tpr: float) -> float:
    """Return the false-positive rate at the first threshold that reaches `tpr`."""
    # Both sums only grow, so the first threshold that reaches it has the fewest false positives.
    reached = int(np.argmax(found >= (tpr - _RATE_SLACK) * found[-1]))
    return float(false[reached] / false[-1])


def _average_precision(
    gain: NDArray[np.float64], found: NDArray[np.float64], false: NDArray[np.float64]
) -> float:
    # sum over thresholds of (gain in recall) * precision, the first being gain / found[-1].
    return float(gain @ (found / (found + false)) / found[-1])
