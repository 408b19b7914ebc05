"""The maximum of a likelihood of a few parameters, within bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Steps end where the next one would add less to the mean log-likelihood.
_TOLERANCE = 1e-6
_MAX_STEPS = 100
# Of a parameter in one step. All are logarithms, whose slopes tell little from farther away.
_LONGEST = 4.0
# Added to the information in the direction of each parameter: relative to it, and a number that
# keeps a parameter without effect (the logarithm of a rate of nearly nothing) where it is.
_DAMPING, _RIDGE = 0.1, 1e-6


class Derivatives(NamedTuple):
    """The mean log-likelihood of the samples at some parameters."""

    value: float
    gradient: NDArray[np.float64]
    # Mean of the outer products of the gradients of the samples.
    information: NDArray[np.float64]

    def along(self, directions: NDArray) -> Derivatives:
        """Return those by other parameters, of which a unit moves the old ones by a row each."""
        information = directions @ self.information @ directions.T
        return Derivatives(self.value, directions @ self.gradient, information)


def maximum(
    derivatives: Callable[[NDArray[np.float64]], Derivatives],
    start: NDArray[np.float64],
    bounds: NDArray[np.float64],
) -> tuple[NDArray[np.float64], float]:
    """Return the parameters of the largest mean log-likelihood, and its value.

    Newton steps whose Hessian is minus the information, as it is on average if the model holds
    [1]_, and damped where a step would not be one upward (Levenberg and Marquardt). Half as many
    evaluations as L-BFGS, which stops up to .5 short of the maximum of the sum over the samples.

    Parameters
    ----------
    derivatives : callable
        Of parameters (n,); the result has n of them.
    start : ndarray of shape (n,)
        Where the search begins.
    bounds : ndarray of shape (n, 2)
        Smallest and largest values.

    References
    ----------
    .. [1] E. K. Berndt, B. H. Hall, R. E. Hall, J. A. Hausman, "Estimation and Inference in
       Nonlinear Structural Models", Annals of Economic and Social Measurement 1974.
    """
    low, high = bounds.T
    x, damping = np.clip(start, low, high), _DAMPING
    here = derivatives(x)
    for _ in range(_MAX_STEPS):
        # A parameter that is at a bound, and drawn to what is beyond, stays.
        free = np.where(here.gradient < 0, x > low, x < high)
        information = here.information[np.ix_(free, free)]
        damped = information + np.diag(damping * np.diag(information) + _RIDGE)
        step = np.zeros_like(x)
        step[free] = np.linalg.solve(damped, here.gradient[free])
        moved = np.clip(x + np.clip(step, -_LONGEST, _LONGEST), low, high)
        slope = here.gradient @ (moved - x)
        if 0.0 <= slope < _TOLERANCE:
            break
        # A step that the limits have turned downward is not worth an evaluation.
        there = derivatives(moved) if slope > 0 else here
        if there.value <= here.value:
            damping *= 4.0
            continue
        # At the top of a parabola, half of what the slope promises is gained.
        if there.value - here.value > 0.25 * slope:
            damping *= 0.1
        x, here = moved, there
    return x, here.value
