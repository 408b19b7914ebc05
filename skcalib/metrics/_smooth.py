"""Smooth calibration error, by a binned cosine series."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import dct
from scipy.optimize import brentq

from ..utils._backends import as_float64, get_back_end, sum_by_index, to_host
from ..utils._compat import Interval, validate_params
from ..utils._proba import Predictions, check_predictions
from ._calibration_error import declares, iter_top_label
from ._registry import register

# Steps of the grid on [0, 1]. The binned series is off by about (step / bandwidth)^2 / 12 of the
# error. Where the bandwidth is the error, that is below 1e-5 from 3e-5 on; a narrow bandwidth
# given by the user needs a finer grid.
_N_STEPS = 2**14
_MAX_STEPS = 2**20
_STEPS_PER_BANDWIDTH = 150
# Steps within a bandwidth where the smooth result is integrated: off by 1e-6 of the error.
_STEPS_OF_INTEGRAL = 64


@register("smooth_ece")
@declares("smooth", "l1")
@validate_params({"bandwidth": [None, Interval(Real, 0, 1, closed="right")]})
def smooth_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    bandwidth: float | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Smooth expected calibration error (smECE): a kernel instead of bins.

    The residuals between confidence and outcome are smoothed along the confidence with a Gaussian
    kernel, reflected at 0 and 1 so that all weight stays on [0, 1]; the error is the integral of
    the absolute value of the result [1]_. Unlike the binned error it is continuous in the
    predictions, and it has no parameter to choose: the bandwidth is the one that equals the
    error it gives.

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels, pos_label : of :func:`expected_calibration_error`
    bandwidth : float, default=None
        Standard deviation of the kernel, in (0, 1]. None solves for the bandwidth that equals
        the error.

    Returns
    -------
    error : float
        In [0, 1], smaller = better.

    See Also
    --------
    expected_calibration_error : With bins.
    smooth_reliability_curve : The curve under the same kernel.
    debiased_calibration_error : With bins, without their bias.

    Notes
    -----
    The residuals are spread linearly over a fine grid. Damping its cosine series by the factors
    ``exp(-(k pi bandwidth)^2 / 2)`` applies the exact reflected kernel. This takes one pass over
    the samples and a few cosine transforms, and is exact to 1e-5 for bandwidths from 2e-4 on.

    References
    ----------
    .. [1] J. Błasiok, P. Nakkiran, "Smooth ECE: Principled Reliability Diagrams via Kernel
       Smoothing", ICLR 2024, Def. 1 and Sec. 3.

    Examples
    --------
    >>> from skcalib.metrics import smooth_calibration_error
    >>> round(smooth_calibration_error([0, 1, 1, 1], [0.2, 0.6, 0.6, 0.8]), 3)
    0.23
    """
    predictions = check_predictions(
        y_true, y_proba, sample_weight, labels, pos_label, defer_values=True
    )
    weight = predictions.weight
    total = len(predictions.proba) if weight is None else weight.sum()
    excess = compute_excess_on_grid(predictions, count_grid_steps(bandwidth))
    return compute_error_of_excess(excess / total, bandwidth)


def compute_excess_on_grid(predictions: Predictions, n_steps: int) -> NDArray[np.float64]:
    """Return confidence minus correctness, weighted and spread over the grid, (n_steps + 1,)."""
    excess = 0.0
    for rows, confidence, correct in iter_top_label(predictions, on_device=True):
        residual = as_float64(confidence) - correct
        if predictions.weight is not None:
            _, place = get_back_end(residual)
            residual *= place(predictions.weight[rows])
        excess += GridPlaces.of(confidence, n_steps).spread(residual)
    return to_host(excess)


def count_grid_steps(bandwidth: float | None) -> int:
    """Return the number of steps of the grid on which residuals are spread."""
    n_steps = _N_STEPS
    while bandwidth is not None and n_steps < min(_STEPS_PER_BANDWIDTH / bandwidth, _MAX_STEPS):
        n_steps *= 2
    return n_steps


class GridPlaces(NamedTuple):
    """Where samples lie on the grid: the point on their left, and how far they are beyond it."""

    left: Any
    beyond: Any
    n_steps: int

    @classmethod
    def of(cls, confidence: Any, n_steps: int) -> GridPlaces:
        """Find the places; a confidence of 1 is the right end of the last step."""
        xp, _ = get_back_end(confidence)
        place = as_float64(confidence).clip(0, 1) * n_steps
        left = xp.asarray(place, dtype=xp.int64).clip(max=n_steps - 1)
        return cls(left, place - left, n_steps)

    def spread(self, values: Any) -> Any:
        """Return the masses of the samples summed over the grid, (n_steps + 1,).

        Each is split between the points beside it, which keeps its sum and its mean place.
        """
        right_part = values * self.beyond
        grid = sum_by_index(self.left, values - right_part, self.n_steps + 1)
        grid[1:] += sum_by_index(self.left, right_part, self.n_steps)
        return grid


def compute_error_of_excess(excess: NDArray[np.float64], bandwidth: float | None) -> float:
    """Return the error of residuals on the grid, (n_steps + 1,), divided by the total weight."""
    coefficients = _compute_cosine_coefficients(excess)
    if bandwidth is not None:
        return _integrate_density(coefficients, bandwidth)
    # All residuals are 0 up to rounding.
    if np.abs(coefficients).max() < np.finfo(np.float64).eps:
        return 0.0

    def above(bandwidth: float) -> float:
        return _integrate_density(coefficients, bandwidth) - bandwidth

    # The error falls as the bandwidth grows, so there is one zero. The search begins at wide
    # kernels, which cost least; up to 2, since rounding may leave an error of 1 above 1.
    low = 1.0
    while above(low) < 0:
        low /= 2
    return min(float(brentq(above, low, 2 * low, xtol=1e-9)), 1.0)


def _compute_cosine_coefficients(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sum_j mass_j cos(k pi j / n) for all k."""
    # The transform counts inner points twice and the two ends once; every weight counts once here.
    doubled = values / 2
    doubled[..., [0, -1]] *= 2
    return dct(doubled, type=1)


def compute_smooth_on_grid(values: NDArray[np.float64], bandwidth: float) -> NDArray[np.float64]:
    """Return the density of the masses (..., n_steps + 1) under the reflected kernel."""
    return _compute_smoothed_density(_compute_cosine_coefficients(values), bandwidth)


def _compute_smoothed_density(
    coefficients: NDArray[np.float64], bandwidth: float
) -> NDArray[np.float64]:
    """Return the density at all points of the grid, from its cosine coefficients."""
    # Cosines are even about 0 and about 1, so the reflections of the kernel need no terms: it
    # multiplies cos(k pi t) by its Fourier transform at the angular frequency k pi.
    k = np.arange(coefficients.shape[-1])
    with np.errstate(under="ignore"):
        damped = coefficients * np.exp(-((k * np.pi * bandwidth) ** 2) / 2)
    # density(t) = damped_0 + 2 sum_k damped_k cos(k pi t), as the transform sums it.
    damped[..., -1] *= 2
    return dct(damped, type=1)


def _integrate_density(coefficients: NDArray[np.float64], bandwidth: float) -> float:
    """Return the integral of the absolute smoothed residual."""
    # A wide kernel keeps only low frequencies, for which a coarser grid is enough.
    n_steps = len(coefficients) - 1
    while n_steps * bandwidth >= 2 * _STEPS_OF_INTEGRAL:
        n_steps //= 2
    density = np.abs(_compute_smoothed_density(coefficients[: n_steps + 1], bandwidth))
    # Trapezoidal rule: the two ends count half.
    return float((density.sum() - (density[0] + density[-1]) / 2) / n_steps)
