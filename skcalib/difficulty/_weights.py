"""From difficulty to a weight per sample."""

from __future__ import annotations

import warnings
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils import SkcalibWarning
from ..utils._private import Interval, StrOptions, validate_params
from ..utils._validation import check_numbers, check_weights

_NEGLIGIBLE = 1e-6


@validate_params(
    {
        "difficulty": ["array-like"],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "c": [Interval(Real, 0, None, closed="neither")],
        "scale": [StrOptions({"minmax", "std"}), None],
        "sample_weight": ["array-like", None],
    },
    prefer_skip_nested_validation=True,
)
def difficulty_weights(
    difficulty: ArrayLike,
    *,
    temperature: float = 0.7,
    c: float = 1e-3,
    scale: str | None = "minmax",
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Turn difficulty into weights between 0 and 1, larger for harder samples.

    Equation 10 of [1]_, computed in logarithms so that it does not overflow:

    .. math::

        s_i = \\frac{\\exp(d_i / T)}{\\max_j \\exp(d_j / T) + c}

    Parameters
    ----------
    difficulty : array-like of shape (n_samples,)
        Difficulty, larger = harder.
    temperature : float, default=0.7
        T > 0. A small one concentrates the weight on the hardest samples.
    c : float, default=1e-3
        Positive constant that keeps the largest weight below 1.
    scale : {'minmax', 'std'} or None, default='minmax'
        What happens to `difficulty` first. 'minmax' maps it to [0, 1] and 'std' subtracts the
        mean and divides by the standard deviation, both of which make `temperature`
        independent of the unit of the difficulty; constant difficulty becomes 0, so that all
        weights are equal. None is the equation to the letter: since raw relative Mahalanobis
        distances grow with the number of features, it often leaves a single weight above 0.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights in the mean and standard deviation of 'std'. Rows of weight 0 count neither
        there nor in a maximum or minimum, and get weight 0.

    Returns
    -------
    weights : ndarray of shape (n_samples,)
        In (0, 1), up to the range of float64: below 1e-308 they underflow to 0, and the
        largest rounds to 1 where `c` is negligible beside its numerator.

    Warns
    -----
    SkcalibWarning
        If at least half of the weights are below 1e-6.

    References
    ----------
    .. [1] P. Cui, D. Zhang, Z. Deng, Y. Dong, J. Zhu, "Learning Sample Difficulty from
       Pre-trained Models for Reliable Prediction", NeurIPS 2023.

    Examples
    --------
    >>> from skcalib.difficulty import difficulty_weights
    >>> difficulty_weights([-120.0, 0.0, 60.0]).round(3)
    array([0.24 , 0.621, 1.   ])
    """
    values = check_numbers(difficulty, "difficulty", ndim=(1,)).astype(np.float64, copy=False)
    weight = check_weights(sample_weight, len(values))
    weights = np.zeros(len(values))
    kept = slice(None) if weight is None else weight > 0
    scaled = _scaled(values[kept], scale, None if weight is None else weight[kept])
    largest = scaled.max() / temperature
    # exp(d/T) / (exp(max/T) + c), with exp(max/T) divided out of both.
    log_weights = (scaled - scaled.max()) / temperature
    log_weights -= np.logaddexp(0.0, np.log(c) - largest)
    weights[kept] = np.exp(log_weights)
    _warn_on_collapse(weights[kept])
    return weights


def _scaled(
    values: NDArray[np.float64], scale: str | None, weight: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    if scale is None:
        return values
    if values.min() == values.max():
        return np.zeros_like(values)
    if scale == "minmax":
        return (values - values.min()) / (values.max() - values.min())
    centered = values - np.average(values, weights=weight)
    return centered / np.sqrt(np.average(centered**2, weights=weight))


def _warn_on_collapse(weights: NDArray[np.float64]) -> None:
    negligible = int((weights < _NEGLIGIBLE).sum())
    if 2 * negligible >= len(weights):
        warnings.warn(
            f"{negligible} of {len(weights)} difficulty weights are below {_NEGLIGIBLE:g}: "
            "most samples will have no effect. Use scale='minmax' or a larger temperature.",
            SkcalibWarning,
            stacklevel=4,
        )
