"""From difficulty to a weight per sample."""

from __future__ import annotations

import sys
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils.checking._arrays import as_array, check_weights
from ..utils.checking._validation import check_numbers
from ..utils.meta._private import Interval, StrOptions, validate_params
from ..utils.meta._warnings import warn

# Smaller weights have no effect.
_NEGLIGIBLE = 1e-6
# Largest gap between equal difficulties, relative to their range.
_ROUNDING = 1e-10
_POSITIVE = Interval(Real, 0, sys.float_info.max, closed="right")


@validate_params(
    {
        "difficulty": ["array-like"],
        "temperature": [_POSITIVE],
        "c": [_POSITIVE],
        "scale": [StrOptions({"rank", "minmax", "std"}), None],
        "sample_weight": ["array-like", None],
        "reference": ["array-like", None],
    }
)
def difficulty_weights(
    difficulty: ArrayLike,
    *,
    temperature: float = 0.3,
    c: float = 1e-3,
    scale: str | None = "rank",
    sample_weight: ArrayLike | None = None,
    reference: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Turn difficulty into weights between 0 and 1, larger for harder samples.

    Equation 10 of [1]_, computed in logarithms so that it does not overflow:

    .. math::

        s_i = \\frac{\\exp(d_i / T)}{\\max_j \\exp(d_j / T) + c}

    Parameters
    ----------
    difficulty : array-like of shape (n_samples,)
        Difficulty, larger = harder. Infinity, as for a sample that is left out and was the only
        one of its class, has the last rank. The other scales replace it by the largest finite
        difficulty.
    temperature : float, default=0.3
        T > 0. A small one concentrates the weight on the hardest samples.
    c : float, default=1e-3
        Positive constant that keeps the largest weight below 1.
    scale : {"rank", "minmax", "std"} or None, default="rank"
        How `difficulty` is scaled first. "rank" replaces it by its rank, "minmax" maps it
        linearly, both to [0, 1]; "std" subtracts the mean and divides by the standard deviation.
        All make `temperature` independent of the unit of the difficulty. Ranks give the same
        weights on every data set; with "minmax", they depend on the hardest and the easiest
        sample. Equal difficulties share their mean rank; constant difficulty becomes 0, so that
        all weights are equal. None is the equation as it stands: raw relative Mahalanobis
        distances grow with the number of features, which often leaves a single weight above 0.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights in the ranks and in the mean and standard deviation of "std". Samples of weight 0
        do not count, not even in a maximum or minimum, and get weight 0.
    reference : array-like of shape (n_reference,), default=None
        Difficulties from which ranks, ranges and the maximum come, in place of `difficulty`. Pass
        those of the training samples if `difficulty` is that of augmented views of them, as in
        [1]_. Values outside of their range are moved to its nearest end. Not with `sample_weight`.

    Returns
    -------
    weights : ndarray of shape (n_samples,)
        In (0, 1), up to the range of float64: below 1e-308 they underflow to 0, and the
        largest rounds to 1 where `c` is negligible beside its numerator.

    Warns
    -----
    SkcalibWarning
        If at least half of the weights are below 1e-6.

    See Also
    --------
    DifficultyAwareClassifier : Trains any classifier with such weights.
    RelativeMahalanobisScorer : A difficulty to start from.
    skcalib.losses.DifficultyAwareLoss : A loss that takes such weights.

    References
    ----------
    .. [1] P. Cui, D. Zhang, Z. Deng, Y. Dong, J. Zhu, "Learning Sample Difficulty from
       Pre-trained Models for Reliable Prediction", NeurIPS 2023.

    Examples
    --------
    >>> from skcalib.difficulty import difficulty_weights
    >>> difficulty_weights([-120.0, 0.0, 60.0]).round(3)
    array([0.036, 0.189, 1.   ])
    >>> difficulty_weights([30.0, 99.0], reference=[-120.0, 0.0, 60.0]).round(3)
    array([0.435, 1.   ])
    """
    values = _checked(difficulty)
    if reference is not None:
        if sample_weight is not None:
            raise ValueError("sample_weight must be None where reference is given, got both.")
        return _on_scale_of(values, _checked(reference), scale, temperature, c)
    weight = check_weights(sample_weight, len(values))
    weights = np.zeros(len(values))
    used = slice(None) if weight is None else weight > 0
    scaled = _scaled(values[used], scale, None if weight is None else weight[used])
    weights[used] = _weights(scaled, scaled.max(), temperature, c)
    negligible = int((weights[used] < _NEGLIGIBLE).sum())
    if 2 * negligible >= len(scaled):
        warn(
            f"{negligible} of {len(scaled)} difficulty weights are below {_NEGLIGIBLE:g}: "
            "most samples will have no effect. Use scale='rank' or a larger temperature."
        )
    return weights


def _weights(
    scaled: NDArray[np.float64], largest: float, temperature: float, c: float
) -> NDArray[np.float64]:
    """Return exp(d / T) / (exp(largest / T) + c) of scaled difficulties d."""
    # The logarithm of exp(d/T) / (exp(max/T) + c), with exp(max/T) divided out of both. Overflows
    # become infinities of the right sign, and weights of 0 or 1.
    with np.errstate(over="ignore"):
        below_largest = (scaled - largest) / float(temperature)
        log_c_over_largest = np.log(float(c)) - largest / float(temperature)
    return np.exp(below_largest - np.logaddexp(0.0, log_c_over_largest))


def _on_scale_of(
    values: NDArray[np.float64],
    reference: NDArray[np.float64],
    scale: str | None,
    temperature: float,
    c: float,
) -> NDArray[np.float64]:
    """Return the weights of difficulties whose scale and maximum come from a reference."""
    scaled = _scaled(reference, scale, None)
    order = np.argsort(reference)
    # Every scale is increasing, and all except ranks are linear: between two difficulties of the
    # reference, the scaled ones are interpolated. Infinity gets the largest scaled value.
    n_finite = max(int((reference < np.inf).sum()), 1)
    finite = order[:n_finite]
    within = np.interp(values, reference[finite], scaled[finite])
    own = np.where(values < np.inf, within, scaled.max())
    return _weights(own, scaled.max(), temperature, c)


def _checked(difficulty: ArrayLike) -> NDArray[np.float64]:
    """Return finite difficulties and positive infinities."""
    values = as_array(difficulty, name="difficulty")
    infinite = values == np.inf if values.dtype.kind == "f" else np.False_
    if not infinite.any():
        return check_numbers(values, "difficulty", ndim=(1,)).astype(np.float64, copy=False)
    numbers = check_numbers(np.where(infinite, 0.0, values), "difficulty", ndim=(1,))
    return np.where(infinite, np.inf, numbers)


def _scaled(
    values: NDArray[np.float64], scale: str | None, weight: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return finite scaled difficulties, (n,)."""
    finite = values < np.inf
    if not finite.any():
        return np.zeros_like(values)
    if scale == "rank" and values.min() < values.max():
        return _ranks(values, weight)
    bounded = np.minimum(values, values[finite].max())
    if scale is None:
        return bounded
    if bounded.min() == bounded.max():
        return np.zeros_like(bounded)
    # Neither scale depends on a factor. A power of two changes no digit and avoids overflows.
    exponent = np.frexp(np.abs(bounded).max())[1]
    moderate = np.ldexp(bounded, -exponent)
    if scale == "minmax":
        return (moderate - moderate.min()) / (moderate.max() - moderate.min())
    relative = None if weight is None else weight / weight.max()
    centered = moderate - np.average(moderate, weights=relative)
    return centered / np.sqrt(np.average(centered**2, weights=relative))


def _ranks(values: NDArray[np.float64], weight: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return the ranks, mapped to [0, 1]: 0 for the smallest value and 1 for the largest.

    Equal samples share their mean rank, at the middle of their weight: weight k is k copies.
    Copies may differ by rounding: products over samples depend on the order of the samples.
    """
    order = np.argsort(values, kind="stable")
    finite = values[order][: np.count_nonzero(values < np.inf)]
    exponent = np.frexp(np.abs(finite).max())[1]
    gaps = np.diff(np.ldexp(finite, -exponent))
    # A gap starts a new rank. All gaps add up to the range; gaps by rounding are far smaller.
    begins = np.zeros(len(values), dtype=bool)
    begins[1 : len(finite)] = gaps > _ROUNDING * gaps.sum()
    # Behind the finite values, all infinite ones share the last place.
    begins[len(finite) : len(finite) + 1] = True
    place = np.empty(len(values), dtype=np.intp)
    place[order] = np.cumsum(begins)
    # Relative, so that the sum of very large weights is finite.
    mass = np.bincount(place, None if weight is None else weight / weight.max())
    middle = np.cumsum(mass) - 0.5 * mass
    return ((middle - middle[0]) / (middle[-1] - middle[0]))[place]
