"""Smooth calibration error, through a binned cosine series."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import dct
from scipy.optimize import brentq

from ..utils._private import Interval, validate_params
from ..utils._validation import Predictions, check_predictions
from ._top_label import iter_top_label

# Steps of the grid on [0, 1]. The binned series is off by about (step / bandwidth)^2 / 12 of the
# error. Where the bandwidth is the error, that is below 1e-5 from 3e-5 on; a narrow bandwidth
# given by the user needs a finer grid.
_N_STEPS = 2**14
_MAX_STEPS = 2**20
_STEPS_PER_BANDWIDTH = 150


@validate_params(
    {"bandwidth": [None, Interval(Real, 0, 1, closed="right")]},
    prefer_skip_nested_validation=True,
)
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

    The gaps between confidence and outcome are smoothed along the confidence with a Gaussian
    kernel, reflected at 0 and 1 so that all mass stays on [0, 1]; the error is the integral of
    the absolute value of the result [1]_. Unlike the binned error it is continuous in the
    predictions, and it has no parameter to choose: the bandwidth is the one that equals the
    error it gives.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, integers or strings.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, in the order of `labels` or as columns of a DataFrame named
        by them, or of the positive class.
    bandwidth : float, default=None
        Standard deviation of the kernel, in (0, 1]. None solves for the bandwidth that equals
        the error.
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
        As :func:`expected_calibration_error`.

    See Also
    --------
    expected_calibration_error : With bins.

    Notes
    -----
    The gaps are spread linearly over a fine grid, whose cosine series is damped by the factors
    exp(-(k pi bandwidth)^2 / 2): the exact reflected kernel. One pass over the samples and a few
    cosine transforms, exact to 1e-5 for bandwidths from 2e-4 on.

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
        y_true,
        y_proba,
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
        defer_values=True,
    )
    n_steps = _N_STEPS
    while bandwidth is not None and n_steps < min(_STEPS_PER_BANDWIDTH / bandwidth, _MAX_STEPS):
        n_steps *= 2
    coefficients = _cosine_coefficients(_grid_excess(predictions, n_steps))
    if bandwidth is not None:
        return _smoothed_mass(coefficients, bandwidth)
    # All gaps are 0 up to rounding.
    if np.abs(coefficients).max() < np.finfo(np.float64).eps:
        return 0.0
    # The error falls as the bandwidth grows, so error - bandwidth has one zero. The bracket ends
    # beyond 1, where rounding leaves an error of 1.
    root = brentq(lambda s: _smoothed_mass(coefficients, s) - s, 0.0, 2.0, xtol=1e-9)
    return min(float(root), 1.0)


def _grid_excess(predictions: Predictions, n_steps: int) -> NDArray[np.float64]:
    """Return confidence minus correctness, spread linearly over the grid, per unit of weight."""
    excess = np.zeros(n_steps + 1)
    total = 0.0
    for rows, confidence, correct in iter_top_label(predictions):
        value = confidence.astype(np.float64)
        gap = value - correct
        if predictions.weight is None:
            total += len(gap)
        else:
            weight = predictions.weight[rows]
            gap *= weight
            total += weight.sum()
        excess += spread_on_grid(value, gap, n_steps)
    return excess / total


def spread_on_grid(
    place: NDArray[np.float64], mass: NDArray[np.float64], n_steps: int
) -> NDArray[np.float64]:
    """Return masses (n_steps + 1,) on the grid, each split between the points beside its place."""
    # The split keeps the sum of a mass and its mean place. A place of 1 is the right end of the
    # last step.
    scaled = np.clip(place, 0, 1) * n_steps
    left = np.minimum(scaled.astype(np.intp), n_steps - 1)
    right_part = mass * (scaled - left)
    grid = np.zeros(n_steps + 1)
    grid[:-1] += np.bincount(left, mass - right_part, n_steps)
    grid[1:] += np.bincount(left, right_part, n_steps)
    return grid


def _cosine_coefficients(mass: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sum_j mass_j cos(k pi j / n) for all k."""
    # The transform gives inner points twice the weight of the two ends; mass counts in full.
    doubled = mass / 2
    doubled[[0, -1]] *= 2
    return dct(doubled, type=1)


def smooth_on_grid(mass: NDArray[np.float64], bandwidth: float) -> NDArray[np.float64]:
    """Return the density of the masses (n_steps + 1,) under the reflected kernel."""
    return _smoothed_density(_cosine_coefficients(mass), bandwidth)


def _smoothed_density(coefficients: NDArray[np.float64], bandwidth: float) -> NDArray[np.float64]:
    # Cosines are even about 0 and about 1, so the reflections of the kernel need no terms: it
    # multiplies cos(k pi t) by its Fourier transform at the angular frequency k pi.
    k = np.arange(len(coefficients))
    damped = coefficients * np.exp(-((k * np.pi * bandwidth) ** 2) / 2)
    # density(t) = damped_0 + 2 sum_k damped_k cos(k pi t), as the transform sums it.
    damped[-1] *= 2
    return dct(damped, type=1)


def _smoothed_mass(coefficients: NDArray[np.float64], bandwidth: float) -> float:
    """Return the integral of the absolute smoothed gap."""
    density = np.abs(_smoothed_density(coefficients, bandwidth))
    # Trapezoidal rule: the two ends count half.
    return float((density.sum() - (density[0] + density[-1]) / 2) / (len(density) - 1))
