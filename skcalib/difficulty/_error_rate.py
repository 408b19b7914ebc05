"""Does a classifier err more often on difficult samples?"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils.checking._arrays import check_same_length, check_weights
from ..utils.checking._labels import as_labels, check_labels_like
from ..utils.checking._validation import check_numbers
from ..utils.meta._private import Interval, validate_params


@validate_params(
    {
        "y_true": ["array-like"],
        "y_pred": ["array-like"],
        "difficulty": ["array-like"],
        "n_groups": [Interval(Integral, 1, None, closed="left")],
        "sample_weight": ["array-like", None],
    }
)
def error_rate_by_difficulty(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    difficulty: ArrayLike,
    *,
    n_groups: int = 10,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Error rate of a classifier in groups of samples of rising difficulty.

    The samples are sorted by difficulty and cut into groups of equal size. If a cut falls among
    samples of equal difficulty, each counts in part on either side, as on average over all orders:
    the order of the samples does not matter.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, integers or strings.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    difficulty : array-like of shape (n_samples,)
        Difficulty, larger = harder.
    n_groups : int, default=10
        Number of groups, at most the number of samples.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; groups have equal weight.

    Returns
    -------
    error_rate : ndarray of shape (n_groups,)
        Fraction of wrong predictions in each group, in [0, 1], from the easiest group to the
        hardest. It rises if the difficulty is useful.

    See Also
    --------
    skcalib.plots.DifficultyDisplay : The same as a picture.
    RelativeMahalanobisScorer : A difficulty to start from.
    skcalib.metrics.risk_coverage_curve : Error rate by confidence.

    Examples
    --------
    >>> from skcalib.difficulty import error_rate_by_difficulty
    >>> y_true, y_pred = [0, 1, 1, 0, 1, 0], [0, 1, 1, 1, 1, 1]
    >>> error_rate_by_difficulty(y_true, y_pred, [0.1, 0.2, 0.4, 0.5, 0.3, 0.9], n_groups=3)
    array([0., 0., 1.])
    """
    true = as_labels(y_true, name="y_true")
    predicted = check_labels_like(y_pred, name="y_pred", n_samples=len(true), like=true)
    values = check_numbers(difficulty, "difficulty", ndim=(1,))
    check_same_length(y_true=true, difficulty=values)
    if n_groups > len(values):
        raise ValueError(
            f"n_groups must be at most the number of samples, {len(values)}, got {n_groups}."
        )
    weight = check_weights(sample_weight, len(values))
    weight = np.ones(len(values)) if weight is None else weight
    _, level = np.unique(values, return_inverse=True)
    # Cumulative errors against cumulative weight, with a point for every level of difficulty. The
    # line between two points is the mean over the orders of the samples of a level.
    mass = np.append(0.0, np.cumsum(np.bincount(level, weights=weight)))
    errors = np.append(0.0, np.cumsum(np.bincount(level, weights=weight * (true != predicted))))
    cuts = np.linspace(0.0, mass[-1], n_groups + 1)
    # Rounding may leave [0, 1].
    return np.clip(np.diff(np.interp(cuts, mass, errors)) / np.diff(cuts), 0.0, 1.0)
