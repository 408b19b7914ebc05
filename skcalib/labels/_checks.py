"""What checked labels say about all others: corrected probabilities, and the noise rate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata, t

from ..utils._arrays import as_array, is_missing
from ..utils._labels import as_labels, encode
from ..utils._numeric import binomial_interval
from ._constants import FEW, INTERCEPT, LOG_SLOPE, N_FOLDS, UNSEEN

# Log-odds are cut here: exp(-80) is about the smallest probability of single precision.
FARTHEST = 80.0


def log_odds_of(proba: NDArray, codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return log-odds of the labels, exact also where the probability rounds to 1."""
    rows = np.arange(len(codes))
    own = proba[rows, codes]
    proba[rows, codes] = 0.0
    others = proba.sum(axis=1, dtype=np.float64)
    proba[rows, codes] = own
    least = np.exp(-FARTHEST)
    odds = np.log(np.maximum(own, least, dtype=np.float64)) - np.log(np.maximum(others, least))
    return np.clip(odds, -FARTHEST, FARTHEST)


class Draw(NamedTuple):
    """Samples that were drawn to be checked, with their inclusion probabilities."""

    positions: NDArray[np.intp]
    inclusion: NDArray[np.float64]
    excluded: NDArray[np.intp]  # samples that could not be drawn


class Line(NamedTuple):
    """``logit p' = intercept + slope logit p`` with slope > 0, which keeps the ranking."""

    intercept: float = 0.0
    slope: float = 1.0

    def __call__(self, log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.intercept + self.slope * log_odds


class Rate(NamedTuple):
    """The rate of wrong labels, estimated from drawn checks."""

    line: Line
    rate: float
    interval: tuple[float, float]
    # For `half_width`: the residuals, or a binomial fraction where few checks are wrong or right.
    residuals: NDArray[np.float64]
    share: NDArray[np.float64]  # weight of each check, 1 on average
    inclusion: NDArray[np.float64]
    fraction: float
    n_effective: float | None  # None: the interval is that of the residuals

    def half_width(self, n_checks: int) -> float:
        """Return half the width of the interval with `n_checks` checks of this kind."""
        times = n_checks / len(self.residuals)
        if self.n_effective is not None:
            return 0.5 * float(np.diff(_binomial(self.fraction, self.n_effective * times))[0])
        return _error_of_mean(self.residuals, self.share, self.inclusion, times)


def _binomial(fraction: float, count: float) -> tuple[float, float]:
    low, high = binomial_interval(np.asarray(fraction), np.asarray(count), 0.95)
    return float(low), float(high)


def _error_of_mean(
    residuals: NDArray[np.float64],
    share: NDArray[np.float64],
    inclusion: NDArray[np.float64],
    times: float = 1.0,
) -> float:
    """Return half the width of a t interval of the mean, with `times` as many residuals."""
    n_now, n_then = len(residuals), len(residuals) * times
    left = 1.0 - np.minimum(inclusion * times, 1.0)  # finite population: 0 if all are checked
    variance = float(left @ (residuals - residuals.mean()) ** 2) / (n_now - 1)
    n_drawn = max(int(np.count_nonzero(inclusion < 1.0)), 1)  # the others are certain
    variance += UNSEEN / n_then * float(left @ share**2) / n_drawn
    return float(t.ppf(0.975, n_now - 1) * np.sqrt(variance / n_then))


def inclusion(size: NDArray[np.float64], n_checks: int) -> NDArray[np.float64]:
    """Return inclusion probabilities in proportion to `size`, at most 1, with sum `n_checks`."""
    proba = np.zeros_like(size)
    sure = np.zeros(len(size), dtype=bool)
    while True:
        left = n_checks - int(sure.sum())
        proba[~sure] = left * size[~sure] / max(size[~sure].sum(), np.finfo(float).tiny)
        beyond = (proba > 1.0) & ~sure
        if not beyond.any():
            return np.where(sure, 1.0, proba)
        sure |= beyond


def drawn(proba: NDArray[np.float64], rng: np.random.RandomState) -> NDArray[np.intp]:
    """Draw samples with these inclusion probabilities, which sum to an integer.

    Systematic sampling: the samples lie in random order on a line, each as long as its
    probability. Points one unit apart, from a random start, draw the samples that they hit.
    """
    order = rng.permutation(len(proba))
    ends = np.cumsum(proba[order])
    points = rng.uniform() + np.arange(round(float(ends[-1])))
    hit = np.minimum(np.searchsorted(ends, points, side="right"), len(order) - 1)
    return np.sort(order[hit])


def informative_size(
    log_odds: NDArray[np.float64], weight: NDArray[np.float64], n_checks: int
) -> NDArray[np.float64]:
    """Return sizes for `inclusion` that make the error of the rate small.

    It is smallest if samples are drawn in proportion to the standard deviation of the residual.
    Its square is p (1 - p), plus UNSEEN / n_checks for mistakes of the model.
    """
    variance = expit(log_odds) * expit(-log_odds) + UNSEEN / n_checks
    return weight * np.sqrt(variance)


def rank_z(
    log_odds: NDArray[np.float64], weight: NDArray[np.float64], checked: NDArray[np.intp]
) -> float:
    """Return by how many standard errors the mean rank of the checks differs from that of all."""
    rank, share = rankdata(log_odds), weight / weight.sum()
    mean = float(share @ rank)
    seen = share[checked].sum()
    error = np.sqrt(share @ (rank - mean) ** 2 * max(1.0 - seen, 0.0) / len(checked))
    # All are checked, or all ranks are equal (and rounding would decide).
    no_choice = len(checked) == np.count_nonzero(weight) or np.ptp(rank) == 0
    return 0.0 if no_choice else float((rank[checked].mean() - mean) / error)


def draws_among(draws: list[Draw], rows: NDArray[np.intp]) -> list[Draw]:
    """Return the draws whose samples are all among `rows`, the latest first.

    A draw without new samples, such as a repeated one, is left out.
    """
    found: list[Draw] = []
    seen = np.array([], dtype=np.intp)
    for draw in reversed(draws):
        if np.isin(draw.positions, rows).all() and not np.isin(draw.positions, seen).all():
            found.append(draw)
            seen = np.union1d(seen, draw.positions)
    return found


def mostly_among(draws: list[Draw], rows: NDArray[np.intp]) -> Draw | None:
    """Return the latest draw that holds all of `rows`, or has most of its samples among them."""
    for draw in reversed(draws):
        if np.isin(rows, draw.positions).all() or np.isin(draw.positions, rows).mean() > 0.5:
            return draw
    return None


def stands_for(draws: list[Draw], rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return how many samples each of `rows` stands for in an unbiased sum over all samples.

    In one draw (Horvitz-Thompson) that is one over the inclusion probability for a drawn sample,
    1 for a sample that could not be drawn. Draws are averaged by their number of samples.
    """
    total, n_all = np.zeros(len(rows)), sum(len(draw.positions) for draw in draws)
    for draw in draws:
        part = np.isin(rows, draw.excluded).astype(float)
        index = np.searchsorted(draw.positions, rows).clip(max=len(draw.positions) - 1)
        drawn = draw.positions[index] == rows
        part[drawn] = 1.0 / draw.inclusion[index[drawn]]
        total += part * len(draw.positions) / n_all
    return total


def rate_of(
    log_odds: NDArray[np.float64],
    weight: NDArray[np.float64],
    checked: NDArray[np.intp],
    is_wrong: NDArray[np.bool_],
    number: NDArray[np.float64],
) -> Rate:
    """Return the line that corrects the probabilities, and the prediction-powered rate.

    The line is fitted to the log-odds of the checks, each weighted by the number of samples that
    it stands for. The rate is the mean of 1 - p' over all samples, plus the weighted mean residual
    w - (1 - p') of the checks, which removes the bias of the model [1]_. The standard error is
    that of the mean residual, with UNSEEN added to the squares. `log_odds` and `weight` are of all
    samples; `checked` are positions, `is_wrong` says whether the labels there are wrong, and
    `number` is how many samples each check stands for.

    References
    ----------
    .. [1] A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan, T. Zrnic, "Prediction-powered
       inference", Science 2023.
    """
    share = number * weight[checked]
    share = share / share.mean()
    line = fitted_line(log_odds[checked], ~is_wrong, share)
    # Cross-fitting: a check is predicted by the line of the other folds, all other samples by the
    # mean of these lines. So the rate is exact once all labels are checked.
    fold, predicted = np.arange(len(checked)) % N_FOLDS, np.zeros(len(log_odds))
    of_checked = np.empty(len(checked))
    for own in (fold == k for k in range(min(N_FOLDS, len(checked)))):
        other = fitted_line(log_odds[checked[~own]], ~is_wrong[~own], share[~own])
        by_other = expit(-other(log_odds))
        predicted += own.mean() * by_other
        of_checked[own] = by_other[checked[own]]
    predicted[checked] = of_checked
    residuals = share * (is_wrong - of_checked)
    rate = float(np.average(predicted, weights=weight) + residuals.mean())
    inclusion = 1.0 / np.maximum(number, 1.0)
    # Checks that stand only for themselves are certain: they are no sample of others.
    drawn, part = number > 1.0, weight[checked] / weight.sum()
    known_wrong, known_right = float(part @ is_wrong), float(part @ ~is_wrong)
    fraction, n_effective = 0.0, None
    if min(np.sum(is_wrong & drawn), np.sum(~is_wrong & drawn)) < FEW and drawn.any():
        fraction = float(np.average(is_wrong[drawn], weights=share[drawn]))
        n_effective = float(share[drawn].sum() ** 2 / np.square(share[drawn]).sum())
        others = 1.0 - part[~drawn].sum()
        alone = float(part[~drawn] @ is_wrong[~drawn])
        low, high = (alone + others * end for end in _binomial(fraction, n_effective))
    else:
        error = _error_of_mean(residuals, share, inclusion)
        low, high = rate - error, rate + error
    low, high = max(low, known_wrong), min(high, 1.0 - known_right)
    high = max(low, high)
    rate = float(np.clip(rate, low, high))
    ends = float(low), float(high)
    return Rate(line, rate, ends, residuals, share, inclusion, fraction, n_effective)


def fitted_line(
    log_odds: NDArray[np.float64], is_right: NDArray[np.bool_], count: NDArray[np.float64]
) -> Line:
    """Return the most probable line: a logistic regression with a normal prior.

    It is fitted to the log of the slope, so the slope is positive and the ranking stays.
    """
    sign = np.where(is_right, 1.0, -1.0)

    def of(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        slope = np.exp(x[1])
        score = -sign * (x[0] + slope * log_odds)
        loss = count @ np.logaddexp(0.0, score)
        change = -count * sign * expit(score)
        prior = x / np.array([INTERCEPT, LOG_SLOPE])
        gradient = np.array([change.sum(), slope * (change @ log_odds)])
        gradient += prior / np.array([INTERCEPT, LOG_SLOPE])
        return float(loss + 0.5 * prior @ prior), gradient

    intercept, log_slope = minimize(of, np.zeros(2), jac=True, method="BFGS").x
    return Line(float(intercept), float(np.exp(log_slope)))


def answers(
    true_labels: Any, classes: NDArray[Any], n_checks: int
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the classes of the answers (-1: none of them), and which answers are missing."""
    if not hasattr(true_labels, "dtype"):  # numpy would turn a NaN among texts into 'nan'
        given = [x.item() if isinstance(x, np.generic) else x for x in true_labels]
        true_labels = np.empty(len(given), dtype=object)
        true_labels[:] = given
    array = as_array(true_labels, name="true_labels")
    if array.shape != (n_checks,):
        raise ValueError(
            f"true_labels must have one label for each of the {n_checks} positions, got shape "
            f"{array.shape}."
        )
    entries: NDArray[Any] = array.astype(object)
    blank = np.array([isinstance(x, str) and not x.strip() for x in entries], dtype=bool)
    if blank.all() and not np.isin("", classes):
        raise ValueError(
            f"true_labels must have an answer for every position, got {n_checks} blanks: nobody "
            "has answered yet."
        )
    if blank.any() and not np.isin("", classes):
        raise ValueError(
            "true_labels must have an answer for every position, got a blank in "
            f"{int(blank.sum())} of {n_checks}; leave these positions out, or answer NaN where "
            "the label is wrong and no class is right."
        )
    none = is_missing(entries)
    if none.all():
        raise ValueError(
            f"true_labels must have an answer, got {n_checks} missing values, each of which says "
            "that the label is wrong and no class is right. If nobody has answered yet, wait with "
            "the update; if no class is right for any of them, check one more sample, of a class."
        )
    entries[none] = entries[np.argmin(none)]  # any class; marked below
    known = as_labels(entries if none.any() else array, name="true_labels")
    codes = encode(known, classes, name="true_labels")
    return np.where(none, -1, codes), none
