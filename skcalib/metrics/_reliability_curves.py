"""Reliability curves without bins, with bands for calibrated models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from ..utils._compat import Interval, validate_params
from ..utils._numeric import compute_quantile_sums
from ..utils._proba import check_predictions
from ._calibration_error import compute_top_label
from ._smooth import GridPlaces, compute_smooth_on_grid, smooth_calibration_error
from ._ties import tie_groups

# Outcomes are resampled in at most so many groups of neighboring confidences.
N_BAND_GROUPS = 1000
# The smooth curve: steps of the grid on [0, 1]; every STRIDE-th point is returned.
N_STEPS, STRIDE = 2**12, 8
# The smooth curve is NaN farther than so many bandwidths from all confidences, where the tails of
# the kernel decide.
REACH = 2.0

_BAND_CONSTRAINTS: dict[str, list[Any]] = {
    "confidence_level": [Interval(Real, 0, 1, closed="neither")],
    "n_resamples": [Interval(Integral, 1, None, closed="left")],
    "simultaneous": ["boolean"],
    "random_state": ["random_state"],
}


class IsotonicReliabilityCurve(NamedTuple):
    """Points (n_confidences,) of the curve, in increasing order of the confidence."""

    prob_true: NDArray[np.float64]
    prob_pred: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class SmoothReliabilityCurve(NamedTuple):
    """Points (n_points,) of the curve, in increasing order of the confidence; the bandwidth."""

    prob_true: NDArray[np.float64]
    prob_pred: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    bandwidth: float


@validate_params(_BAND_CONSTRAINTS)
def isotonic_reliability_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    simultaneous: bool = False,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    random_state: Any = None,
) -> IsotonicReliabilityCurve:
    """Accuracy against confidence by isotonic regression, with a band for calibrated models.

    Isotonic regression chooses the bins: the accuracy rises with the confidence, and is constant
    where the data do not distinguish confidences (CORP) [1]_. At every confidence, the band holds
    a fraction `confidence_level` of the curves of a calibrated model: labels are drawn with the
    predicted probabilities, and the band lies between quantiles of their curves. Whole curves
    leave it more often, so this band is no test: of calibrated models with 500 samples, 11 to 39 %
    lie within a band of .95 everywhere, and 57 to 76 % within one of .99. A `simultaneous` band
    holds that fraction of whole curves, and a curve that leaves it anywhere deviates by more than
    chance.

    Parameters
    ----------
    y_true, y_proba, labels, pos_label : of :func:`expected_calibration_error`
    confidence_level : float, default=0.95
        Fraction of the curves of a calibrated model that the band holds at every confidence.
    n_resamples : int, default=999
        Number of sets of labels drawn for the band.
    simultaneous : bool, default=False
        Whether the band holds the fraction `confidence_level` of whole curves (the global
        envelope of extreme rank lengths [2]_) rather than of their values at every confidence.
        The curve of `y_true` counts as one of those drawn. It takes as long as `n_resamples`
        curves of all samples.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; a weight of k counts as k samples. For the band, the weight of
        a group of samples is rounded to a number of samples, so weights that are no counts should
        sum to the effective number of samples.
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
        If `n_resamples` are too few for a simultaneous band of `confidence_level`.

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
    .. [2] M. Myllymäki, T. Mrkvička, P. Grabarnik, H. Seijo, U. Hahn, "Global Envelope Tests for
       Spatial Processes", Journal of the Royal Statistical Society B 2017.

    Examples
    --------
    >>> from skcalib.metrics import isotonic_reliability_curve
    >>> curve = isotonic_reliability_curve([0, 1, 0, 1], [0.1, 0.3, 0.6, 0.8], random_state=0)
    >>> curve.prob_true
    array([0. , 0.5, 0.5, 1. ])
    """
    forecast, weight, positive = _merge_forecasts(
        y_true, y_proba, sample_weight, labels, pos_label
    )
    prob_true = _compute_isotonic_mean(forecast, weight, positive)
    drawing = _Drawing(confidence_level, n_resamples, random_state)
    if simultaneous:
        lower, upper = _compute_isotonic_envelope(forecast, weight, positive, drawing)
    else:
        center, band = _draw_band(_compute_isotonic_mean, forecast, weight, drawing)
        # From the centers of the groups to all confidences; constant beyond the outer centers.
        lower, upper = (np.interp(forecast, center, end) for end in band)
    return IsotonicReliabilityCurve(np.clip(prob_true, 0, 1), forecast, lower, upper)


@validate_params(_BAND_CONSTRAINTS | {"bandwidth": [None, Interval(Real, 0, 1, closed="right")]})
def smooth_reliability_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    bandwidth: float | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    simultaneous: bool = False,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    random_state: Any = None,
) -> SmoothReliabilityCurve:
    """Accuracy against confidence by a Gaussian kernel, with a band for calibrated models.

    The accuracy at a confidence is the mean over the samples, weighted by a Gaussian kernel of the
    difference in confidence that is reflected at 0 and 1 [1]_. The band is that of
    :func:`isotonic_reliability_curve`, for curves under this kernel: near the ends, it bends as
    the kernel bends the diagonal. Here 24 to 62 % of whole curves lie within a band of .95, and 69
    to 89 % within one of .99.

    Parameters
    ----------
    y_true, y_proba, confidence_level, n_resamples : of :func:`isotonic_reliability_curve`
    simultaneous, sample_weight, labels : of :func:`isotonic_reliability_curve`
    pos_label, random_state : of :func:`isotonic_reliability_curve`
    bandwidth : float, default=None
        Standard deviation of the kernel, in (0, 1]. None takes that of
        :func:`smooth_calibration_error`, which equals that error, but at least 1/2048.

    Returns
    -------
    curve : SmoothReliabilityCurve
        Named tuple of arrays of shape (n_points,): ``prob_true``, the accuracy, in [0, 1];
        ``prob_pred``, a grid of 512 steps on [0, 1], increasing; ``lower`` and ``upper``, the
        band; NaN beyond the smallest and the largest confidence, and farther than two bandwidths
        from all. The last entry is the ``bandwidth`` of the kernel.

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
    forecast, weight, positive = _merge_forecasts(
        y_true, y_proba, sample_weight, labels, pos_label
    )
    if bandwidth is None:
        bandwidth = smooth_calibration_error(
            y_true, y_proba, sample_weight=sample_weight, labels=labels, pos_label=pos_label
        )
    # A kernel narrower than two steps would follow the grid.
    bandwidth = max(float(bandwidth), 2 / N_STEPS)
    kernel_mean = partial(_compute_kernel_mean, bandwidth=bandwidth)
    prob_true = kernel_mean(forecast, weight, positive)
    drawing = _Drawing(confidence_level, n_resamples, random_state)
    lower, upper = (
        _compute_envelope_of_drawn(kernel_mean, forecast, weight, positive, drawing)
        if simultaneous
        else _draw_band(kernel_mean, forecast, weight, drawing)[1]
    )
    prob_pred = np.linspace(0, 1, N_STEPS // STRIDE + 1)
    # The point next to a confidence is kept, so that one sample has a curve.
    step = STRIDE / N_STEPS
    far = _compute_distance(prob_pred, forecast) > max(REACH * bandwidth, step)
    far |= (prob_pred < forecast[0] - step) | (prob_pred > forecast[-1] + step)
    for values in (prob_true, lower, upper):
        values[far] = np.nan
    return SmoothReliabilityCurve(prob_true, prob_pred, lower, upper, bandwidth)


def _merge_forecasts(
    y_true: ArrayLike, y_proba: ArrayLike, *given: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the distinct confidences, increasing, their weight, and that of the correct ones."""
    predictions = check_predictions(y_true, y_proba, *given)
    groups = tie_groups(*compute_top_label(predictions), predictions.counts)
    # Groups come in decreasing order of the confidence.
    score, weight, positive = (part[::-1] for part in groups)
    return np.clip(score.astype(np.float64), 0, 1), weight, positive


class _Drawing(NamedTuple):
    """How curves of a calibrated model are drawn, and what fraction of them a band contains."""

    confidence_level: float
    n_resamples: int
    random_state: Any


def _draw_band(
    curve: Callable[[NDArray, NDArray, NDArray], NDArray[np.float64]],
    forecast: NDArray[np.float64],
    weight: NDArray[np.float64],
    drawing: _Drawing,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a band of the curves of a calibrated model, drawn in groups of confidences.

    Returns the mean confidence of every group, (n_groups,), and the ends of the band. `curve`
    takes these confidences, the number of samples of every group, and how many are positive.
    """
    # Outcomes are drawn below; only the sums of weight and confidence are used.
    unused = np.zeros(len(forecast), dtype=bool)
    _, (total, confidence_sum, _) = compute_quantile_sums(forecast, unused, weight, N_BAND_GROUPS)
    total, confidence_sum = total[total > 0], confidence_sum[total > 0]
    center = np.clip(confidence_sum / total, 0, 1)
    n_draws = _round_counts(total)
    # The samples of a group are drawn at its mean confidence: one binomial number for all.
    rng = check_random_state(drawing.random_state)
    drawn = rng.binomial(n_draws, center, (drawing.n_resamples, len(center)))
    curves = np.stack([curve(center, n_draws, positive) for positive in drawn])
    tail = (1 - drawing.confidence_level) / 2
    # The quantiles that the next curve exceeds with probability `tail`, however few were drawn.
    return center, np.quantile(curves, [tail, 1 - tail], axis=0, method="weibull")


def _compute_isotonic_envelope(
    forecast: NDArray[np.float64],
    weight: NDArray[np.float64],
    positive: NDArray[np.float64],
    drawing: _Drawing,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a simultaneous band at all confidences, from the band at up to N_BAND_GROUPS of them.

    The curves do not decrease: between two places, they lie between their values there.
    """
    n = len(forecast)
    places = np.unique(np.linspace(0, n - 1, N_BAND_GROUPS).astype(np.intp))

    def curve(*samples: NDArray) -> NDArray[np.float64]:
        return _compute_isotonic_mean(*samples)[places]

    lower, upper = _compute_envelope_of_drawn(curve, forecast, weight, positive, drawing)
    before = np.searchsorted(places, np.arange(n), side="right") - 1
    return lower[before], upper[np.searchsorted(places, np.arange(n))]


def _compute_envelope_of_drawn(
    curve: Callable[[NDArray, NDArray, NDArray], NDArray[np.float64]],
    forecast: NDArray[np.float64],
    weight: NDArray[np.float64],
    positive: NDArray[np.float64],
    drawing: _Drawing,
) -> NDArray[np.float64]:
    """Return a simultaneous band, (2, n_points).

    Outcomes are drawn at every observed confidence: the ends of curves of groups of confidences
    would be less extreme.
    """
    rng, n_draws = check_random_state(drawing.random_state), _round_counts(weight)
    curves = [
        curve(forecast, n_draws, rng.binomial(n_draws, forecast))
        for _ in range(drawing.n_resamples)
    ]
    curves.append(curve(forecast, weight, positive))
    return _compute_envelope(np.stack(curves), drawing.confidence_level)


def _round_counts(weight: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return weights rounded to numbers of samples, at least 1."""
    # Beyond 2**53, floats do not represent every integer.
    return np.clip(np.rint(weight), 1, 2.0**53).astype(np.int64)


def _compute_envelope(curves: NDArray[np.float64], confidence_level: float) -> NDArray[np.float64]:
    """Return the ends of a band, (2, n_places), around all curves except the most extreme ones.

    The `curves` (n_curves, n_places) are ordered by their ranks at all places, counted from the
    nearer side: by the smallest rank, among ties by the next smallest, and so on. A curve that is
    left out lies outside of the band somewhere. The last curve is the observed one: if the model
    is calibrated, it is as likely as any other to be left out.
    """
    n_out = int((1 - confidence_level) * len(curves) + 1e-9)
    if n_out < 1:
        needed = int(np.ceil(1 / (1 - confidence_level) - 1e-9)) - 1
        raise ValueError(
            f"n_resamples must be at least {needed} for a simultaneous band of "
            f"{confidence_level:g}, got {len(curves) - 1}."
        )
    ranks = np.minimum(
        rankdata(curves, method="max", axis=0), rankdata(-curves, method="max", axis=0)
    )
    ranks.sort(axis=1)
    # The last key of lexsort decides first, and the last curve comes last among equals.
    kept = np.lexsort(ranks.T[::-1])[n_out:]
    return np.stack([curves[kept].min(axis=0), curves[kept].max(axis=0)])


def _compute_isotonic_mean(
    place: NDArray[np.float64], weight: NDArray[Any], positive: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the fraction of the weight that is positive at every place, non-decreasing."""
    return isotonic_regression(positive / weight, weights=weight).x


def _compute_kernel_mean(
    place: NDArray[np.float64], weight: NDArray[Any], positive: NDArray[Any], bandwidth: float
) -> NDArray[np.float64]:
    """Return the fraction of the weight that is positive around every point of the curve."""
    places = GridPlaces.of(place, N_STEPS)
    near, near_positive = (
        compute_smooth_on_grid(places.spread(sums), bandwidth)[::STRIDE]
        for sums in (weight, positive)
    )
    # Far from all samples both are rounding errors.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(np.nan_to_num(near_positive / near), 0, 1)


def _compute_distance(
    points: NDArray[np.float64], ordered: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the distance of every point to the nearest of the ordered values."""
    after = np.searchsorted(ordered, points)
    left = ordered[np.maximum(after - 1, 0)]
    right = ordered[np.minimum(after, len(ordered) - 1)]
    return np.minimum(np.abs(points - left), np.abs(points - right))
