"""The reliability curve by kernel smoothing, and where it lies if the model is calibrated."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from ..utils._private import Interval, validate_params
from ..utils._validation import check_predictions
from ._bins import top_label
from ._isotonic import draw_calibrated
from ._smooth import GridPlaces, smooth_calibration_error, smooth_on_grid
from ._ties import tie_groups

# Steps of the grid on [0, 1], and of every how many a point is returned.
N_STEPS, STRIDE = 2**12, 8
# Between confidences, a gap begins as many bandwidths from them: there, the tails of the kernel
# decide.
REACH = 2.0


class SmoothReliabilityCurve(NamedTuple):
    """Points (n_points,) of the curve, in increasing order of the confidence; the bandwidth."""

    prob_true: NDArray[np.float64]
    prob_pred: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    bandwidth: float


@validate_params(
    {
        "bandwidth": [None, Interval(Real, 0, 1, closed="right")],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def smooth_reliability_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    bandwidth: float | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 200,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    random_state: Any = None,
) -> SmoothReliabilityCurve:
    """Accuracy against confidence by a Gaussian kernel, with a band for calibrated models.

    The accuracy at a confidence is the mean over the samples, weighted by a Gaussian kernel of
    the difference in confidence that is reflected at 0 and 1 [1]_. The band holds, at every
    confidence, that part of the curves of a calibrated model with the same confidences: their
    labels are drawn at random with the predicted probabilities, and the quantiles of their
    curves are taken. It bends as a kernel bends the diagonal near the ends. With weights, groups
    of samples are rounded to whole numbers for it.

    Parameters
    ----------
    y_true, y_proba, confidence_level, n_resamples, sample_weight, labels, pos_label, random_state
        As for :func:`isotonic_reliability_curve`.
    bandwidth : float, default=None
        Standard deviation of the kernel, in (0, 1]. None takes that of
        :func:`smooth_calibration_error`, which is the error itself; below 1/2048 it is that.

    Returns
    -------
    curve : SmoothReliabilityCurve
        Named tuple of arrays of shape (n_points,): ``prob_true``, the accuracy, in [0, 1];
        ``prob_pred``, a grid of 512 steps on [0, 1], increasing; ``lower`` and ``upper``, the
        band; NaN beyond the smallest and the largest confidence, and farther than two bandwidths
        from all. Besides, the ``bandwidth``.

    Raises
    ------
    ValueError
        As :func:`expected_calibration_error`.

    See Also
    --------
    smooth_calibration_error : How far the curve is from the diagonal.
    isotonic_reliability_curve : The curve of isotonic regression.
    skcalib.plots.ReliabilityDisplay : Draws it with ``kind="smooth"``.

    References
    ----------
    .. [1] J. Błasiok, P. Nakkiran, "Smooth ECE: Principled Reliability Diagrams via Kernel
       Smoothing", ICLR 2024, Sec. 3 and 4.

    Examples
    --------
    >>> from skcalib.metrics import smooth_reliability_curve
    >>> curve = smooth_reliability_curve([0, 1, 1, 1], [0.2, 0.6, 0.6, 0.8], random_state=0)
    >>> round(curve.bandwidth, 2), float(curve.prob_true[256].round(2))
    (0.23, 0.84)
    """
    predictions = check_predictions(y_true, y_proba, sample_weight, labels, pos_label)
    confidence, correct = top_label(predictions)
    groups = tie_groups(confidence, correct, predictions.counts)
    # Groups come in decreasing order of the confidence.
    forecast = np.clip(groups.score[::-1].astype(np.float64), 0, 1)
    weight, positive = groups.weight[::-1], groups.positive[::-1]
    if bandwidth is None:
        bandwidth = smooth_calibration_error(
            y_true, y_proba, sample_weight=sample_weight, labels=labels, pos_label=pos_label
        )
    # A kernel narrower than two steps would follow the grid.
    bandwidth = max(float(bandwidth), 2 / N_STEPS)
    prob_pred = np.linspace(0, 1, N_STEPS // STRIDE + 1)
    prob_true = _kernel_mean(forecast, weight, positive, bandwidth)
    rng = check_random_state(random_state)
    center, n_draws, drawn = draw_calibrated(forecast, weight, n_resamples, rng)
    curves = [_kernel_mean(center, n_draws, draw, bandwidth) for draw in drawn]
    tail = (1 - confidence_level) / 2
    lower, upper = np.quantile(curves, [tail, 1 - tail], axis=0)
    # The point next to a confidence is kept, so that one sample has a curve.
    far = _distance(prob_pred, forecast) > max(REACH * bandwidth, STRIDE / N_STEPS)
    far |= (prob_pred < forecast[0] - STRIDE / N_STEPS) | (
        prob_pred > forecast[-1] + STRIDE / N_STEPS
    )
    for values in (prob_true, lower, upper):
        values[far] = np.nan
    return SmoothReliabilityCurve(prob_true, prob_pred, lower, upper, bandwidth)


def _kernel_mean(
    place: NDArray[np.float64], weight: NDArray[Any], positive: NDArray[Any], bandwidth: float
) -> NDArray[np.float64]:
    """Return the fraction of the weight that is positive around every point of the curve."""
    places = GridPlaces.of(place, N_STEPS)
    near, near_positive = (
        smooth_on_grid(places.spread(mass), bandwidth)[::STRIDE] for mass in (weight, positive)
    )
    # Far from all samples both are rounding errors.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(np.nan_to_num(near_positive / near), 0, 1)


def _distance(points: NDArray[np.float64], ordered: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distance of every point to the nearest of the ordered values."""
    after = np.searchsorted(ordered, points)
    left = ordered[np.maximum(after - 1, 0)]
    right = ordered[np.minimum(after, len(ordered) - 1)]
    return np.minimum(np.abs(points - left), np.abs(points - right))
