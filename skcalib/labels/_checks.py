"""What labels that somebody has checked, drawn at random, say about all others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from ..utils.checking._proba import binomial_interval

# Probabilities are known no closer to 0 and 1 than this.
_CLIP = 1e-4
# Weights of the penalties on (slope - 1)^2 and on intercept^2, in checks.
_SLOPE_PENALTY, _INTERCEPT_PENALTY = 0.5, 0.05
# With fewer right or wrong ones among the checks, their mean is not normal.
_FEWEST = 5
# Squared residuals that may be missing among the checks: where the model errs on one sample in
# two hundred, most draws of a hundred show none, and their variance alone would be near 0.
_UNSEEN = 0.5


class Recalibrated(NamedTuple):
    """Probabilities that labels are right, and the rate of wrong ones."""

    p_correct: NDArray[np.float64]
    rate: float
    interval: tuple[float, float]


def inclusion(weight: NDArray[np.float64], n_checks: int) -> NDArray[np.float64]:
    """Return how likely every sample is drawn, in proportion to its weight and at most surely."""
    proba = np.zeros_like(weight)
    sure = np.zeros(len(weight), dtype=bool)
    while True:
        left = n_checks - int(sure.sum())
        proba[~sure] = left * weight[~sure] / max(weight[~sure].sum(), np.finfo(float).tiny)
        beyond = (proba > 1.0) & ~sure
        if not beyond.any():
            return np.where(sure, 1.0, proba)
        sure |= beyond


def drawn(proba: NDArray[np.float64], rng: np.random.RandomState) -> NDArray[np.intp]:
    """Draw samples of these probabilities, which sum to a whole number: systematic sampling.

    The samples stand in random order on a line, each as long as its probability, and every point
    one unit after the other draws the sample it falls on.
    """
    order = rng.permutation(len(proba))
    ends = np.cumsum(proba[order])
    points = rng.uniform() + np.arange(round(float(ends[-1])))
    place = np.minimum(np.searchsorted(ends, points, side="right"), len(order) - 1)
    return np.sort(order[place])


def recalibrated(
    p_correct: NDArray[np.float64],
    weight: NDArray[np.float64],
    checked: NDArray[np.intp],
    is_wrong: NDArray[np.bool_],
) -> Recalibrated:
    """Correct probabilities by checks at random, and the rate by their residuals.

    ``logit p' = a + b logit p`` is fitted to the checks, drawn to a = 0 and b = 1. The rate is
    the mean of 1 - p' over all samples plus the mean of w - (1 - p') over the checks, which takes
    out what the model has wrong [1]_; its standard error is that of the second mean, with half an
    error more than the checks have shown. `p_correct` and `weight` are of all samples; `checked`
    holds positions drawn in proportion to weight (see :func:`inclusion`), and `is_wrong` whether
    the labels there were wrong.

    References
    ----------
    .. [1] A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan, T. Zrnic, "Prediction-powered
       inference", Science 2023.
    """
    score = logit(np.clip(p_correct, _CLIP, 1.0 - _CLIP))
    intercept, slope = _line(score[checked], ~is_wrong)
    # Two crossing extremes would turn the ranking around: at worst, all samples are alike.
    corrected = expit(intercept + max(slope, 0.0) * score)
    n_checks, n_wrong = len(checked), int(is_wrong.sum())
    # What a check stands for: all alike, but for samples so heavy that they are always drawn.
    of_check = weight[checked] / inclusion(weight, n_checks)[checked]
    of_check /= of_check.mean()
    residual = of_check * (is_wrong - (1.0 - corrected[checked]))
    rate = float(np.average(1.0 - corrected, weights=weight) + residual.mean())
    unseen = 1.0 - weight[checked].sum() / weight.sum()
    if min(n_wrong, n_checks - n_wrong) < _FEWEST:
        n_effective = n_checks**2 / np.square(of_check).sum()
        fraction = np.asarray(of_check @ is_wrong / n_checks)
        low, high = map(float, binomial_interval(fraction, np.asarray(n_effective), 0.95))
    else:
        variance = residual.var(ddof=1) + _UNSEEN / n_checks
        error = 1.96 * np.sqrt(variance * unseen / n_checks)
        low, high = rate - error, rate + error
    low, high = max(low, 0.0), min(high, 1.0)
    return Recalibrated(corrected, float(np.clip(rate, low, high)), (float(low), float(high)))


def _line(score: NDArray[np.float64], is_right: NDArray[np.bool_]) -> tuple[float, float]:
    """Return intercept and slope of the penalized logistic regression."""
    sign = np.where(is_right, 1.0, -1.0)

    def of(x: NDArray[np.float64]) -> float:
        loss = np.logaddexp(0.0, -sign * (x[0] + x[1] * score)).sum()
        return float(loss + _SLOPE_PENALTY * (x[1] - 1.0) ** 2 + _INTERCEPT_PENALTY * x[0] ** 2)

    intercept, slope = minimize(of, np.array([0.0, 1.0]), method="BFGS").x
    return float(intercept), float(slope)
