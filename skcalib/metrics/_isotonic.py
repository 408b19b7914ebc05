"""The reliability curve of isotonic regression, and where it lies if the model is calibrated."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression
from sklearn.utils import check_random_state

from ..utils._binning import quantile_sums
from ..utils._private import Interval, validate_params
from ..utils._validation import check_predictions
from ._bins import top_label
from ._ties import tie_groups

# Groups of confidences whose outcomes are resampled; with fewer distinct ones, each is a group.
N_BAND_GROUPS = 1000


class IsotonicReliabilityCurve(NamedTuple):
    """Points (n_confidences,) of the curve, in increasing order of the confidence."""

    prob_true: NDArray[np.float64]
    prob_pred: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


@validate_params(
    {
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def isotonic_reliability_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 200,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    random_state: Any = None,
) -> IsotonicReliabilityCurve:
    """Accuracy against confidence by isotonic regression, with a band for calibrated models.

    Isotonic regression chooses the bins: the accuracy rises with the confidence, and is constant
    where the data do not tell confidences apart (CORP) [1]_. The band holds, at every confidence,
    that part of the curves of a calibrated model with the same confidences: their labels are drawn
    at random with the predicted probabilities, and the quantiles of their curves are taken.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, integers or strings.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, in the order of `labels` (the curve of the top label), or of
        the positive class.
    confidence_level : float, default=0.95
        Fraction of the curves of a calibrated model that the band holds at every confidence.
    n_resamples : int, default=200
        Number of sets of labels drawn for the band.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; a weight of k counts as k samples. For the band, the weight of
        a group of samples is rounded to a number of samples.
    labels, pos_label
        As for :func:`expected_calibration_error`.
    random_state : int, RandomState instance or None, default=None
        Draws the labels of the band.

    Returns
    -------
    curve : IsotonicReliabilityCurve
        Named tuple of arrays of shape (n_confidences,): ``prob_true``, the accuracy at every
        distinct confidence, non-decreasing; ``prob_pred``, these confidences, increasing;
        ``lower`` and ``upper``, the band.

    Raises
    ------
    ValueError
        As :func:`expected_calibration_error`.

    See Also
    --------
    reliability_curve : The curve of bins.
    score_decomposition : How far the curve is from the diagonal, and from the base rate.
    smooth_reliability_curve : The curve of a kernel.
    skcalib.plots.ReliabilityDisplay : Draws it with ``kind="isotonic"``.

    References
    ----------
    .. [1] T. Dimitriadis, T. Gneiting, A. I. Jordan, "Stable Reliability Diagrams for
       Probabilistic Classifiers", PNAS 2021, Sec. 2 and, for the band, Sec. S2.

    Examples
    --------
    >>> from skcalib.metrics import isotonic_reliability_curve
    >>> curve = isotonic_reliability_curve([0, 1, 0, 1], [0.1, 0.3, 0.6, 0.8], random_state=0)
    >>> curve.prob_true
    array([0. , 0.5, 0.5, 1. ])
    """
    predictions = check_predictions(y_true, y_proba, sample_weight, labels, pos_label)
    confidence, correct = top_label(predictions)
    groups = tie_groups(confidence, correct, predictions.counts)
    # Groups come in decreasing order of the confidence.
    prob_pred = np.clip(groups.score[::-1].astype(np.float64), 0, 1)
    weight, positive = groups.weight[::-1], groups.positive[::-1]
    prob_true = isotonic_regression(positive / weight, weights=weight).x
    rng = check_random_state(random_state)
    lower, upper = _band(prob_pred, weight, confidence_level, n_resamples, rng)
    return IsotonicReliabilityCurve(np.clip(prob_true, 0, 1), prob_pred, lower, upper)


def _band(
    prob_pred: NDArray[np.float64],
    weight: NDArray[np.float64],
    confidence_level: float,
    n_resamples: int,
    rng: np.random.RandomState,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return quantiles of the curves of a calibrated model, drawn in groups of confidences."""
    center, n_draws, positives = draw_calibrated(prob_pred, weight, n_resamples, rng)
    curves = np.stack([isotonic_regression(p / n_draws, weights=n_draws).x for p in positives])
    tail = (1 - confidence_level) / 2
    ends = np.quantile(curves, [tail, 1 - tail], axis=0)
    # From the centers of the groups to all confidences; constant beyond the outer centers.
    lower, upper = (np.interp(prob_pred, center, end) for end in ends)
    return lower, upper


def draw_calibrated(
    prob_pred: NDArray[np.float64],
    weight: NDArray[np.float64],
    n_resamples: int,
    rng: np.random.RandomState,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Draw the labels of a calibrated model in groups of increasing confidences.

    Returns the mean confidence (n_groups,) and the number of samples (n_groups,) of every group,
    and how many of them are positive (n_resamples, n_groups).
    """
    # Outcomes are drawn below; only the sums of weight and confidence are used.
    unused = np.zeros(len(prob_pred), dtype=bool)
    _, (total, confidence_sum, _) = quantile_sums(prob_pred, unused, weight, N_BAND_GROUPS)
    total, confidence_sum = total[total > 0], confidence_sum[total > 0]
    center = np.clip(confidence_sum / total, 0, 1)
    # Beyond 2**53 a float is no longer told apart from the next integer.
    n_draws = np.clip(np.rint(total), 1, 2.0**53).astype(np.int64)
    # The samples of a group are drawn at its mean confidence: one binomial number for all.
    return center, n_draws, rng.binomial(n_draws, center, (n_resamples, len(center)))
