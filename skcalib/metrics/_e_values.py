"""Anytime-valid evidence against probabilities: e-values against maps that would repair them.

With p the predicted probabilities of a sample and y its label, the e-value against the map ``q_t``
is ``q_t(y | p) / p(y)``. If the probabilities are right given the past, its mean is 1. So the
product over samples, and any weighted mean of such products over a fixed set of maps, is a
nonnegative martingale with mean 1. It ever exceeds 1 / alpha with probability alpha at most
(Ville's inequality). The logarithms add up over samples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, logsumexp
from scipy.stats import chi2

from ..utils._numeric import compute_row_sum
from ..utils._proba import LOSS_FLOOR, Predictions, iter_proba_blocks

# Logarithms of slopes, and shifts, of the log-odds in the mixture, each half of the next: an error
# of any size in between is found at more than .8 of the rate at which its own map would find it. A
# grid of equal steps finds .45 of the models too sure by 1.1 where this finds all of them
# (benchmarks.daily_looks).
_HALVES = 2.0 ** -np.arange(6)
LOG_SLOPES = 1.2 * np.concatenate([-_HALVES, [0.0], _HALVES[::-1]])
SHIFTS = 1.5 * np.concatenate([-_HALVES, [0.0], _HALVES[::-1]])


class Evidence(NamedTuple):
    """Evidence that probabilities are wrong: larger e-value, smaller p-value = more."""

    e_value: float
    pvalue: float


def sum_log_ratios(predictions: Predictions) -> NDArray[np.float64]:
    """Return the sum over samples of ``log q_t(y | p) / p(y)`` for every map t.

    Two classes: all slopes with all shifts, (n_slopes n_shifts,). Several: slopes in the first
    row, then the shifts of every class, (1 + n_classes, n_shifts).
    """
    if predictions.weight is not None:
        raise ValueError(
            "sample_weight must be None where the e-value is kept, got weights: the e-value of a "
            "weighted sample has no mean of 1."
        )
    if predictions.is_soft:
        raise ValueError(
            "y_true must hold one label for every sample where the e-value is kept, got soft "
            "labels: draw a label for every sample at random."
        )
    sums: NDArray[np.float64] = np.zeros(())
    for rows, block in iter_proba_blocks(predictions.proba):
        codes, proba = predictions.codes[rows], block.astype(np.float64)
        if proba.ndim == 2 and proba.shape[1] > 2:
            sums = sums + _sum_of_classes(codes, proba)
        else:
            positive, negative = (proba, 1 - proba) if proba.ndim == 1 else proba.T[::-1]
            sums = sums + _sum_of_two(codes, _log(positive) - _log(negative))
    return sums


def _log(proba: NDArray[np.float64]) -> NDArray[np.float64]:
    # The floor is conservative: a larger p lowers the ratio q / p.
    return np.log(np.maximum(proba, LOSS_FLOOR))


def _sum_of_two(codes: NDArray[np.intp], log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of log-ratios for all maps ``logit q = a logit p + b``, (n_maps,)."""
    sign = np.where(codes == 1, -1.0, 1.0)
    before = np.logaddexp(0, sign * log_odds).sum()
    after = [
        np.logaddexp(0, sign * (slope * log_odds + shift)).sum()
        for slope in np.exp(LOG_SLOPES)
        for shift in SHIFTS
    ]
    return before - np.array(after)


def _sum_of_classes(codes: NDArray[np.intp], proba: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of log-ratios of several classes, (1 + n_classes, n_shifts)."""
    logs = _log(proba)
    logs -= np.log(compute_row_sum(np.exp(logs)))[:, np.newaxis]
    of_label = logs[np.arange(len(codes)), codes].sum()
    n_samples = np.bincount(codes, minlength=proba.shape[1])
    # q_k = p_k^a / sum_j p_j^a
    slopes = [
        (slope - 1) * of_label - np.log(compute_row_sum(np.exp(slope * logs))).sum()
        for slope in np.exp(LOG_SLOPES)
    ]
    # The odds of class k times e^b: q_k = p_k e^b / s, q_j = p_j / s, s = 1 + p_k (e^b - 1).
    predicted = np.exp(logs)
    shifts = [
        shift * n_samples - np.log1p(predicted * np.expm1(shift)).sum(axis=0) for shift in SHIFTS
    ]
    return np.vstack([slopes, np.transpose(shifts)])


def make_log_weights(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the logarithms of the weights of all maps; the weights sum to 1."""
    if len(shape) == 1:
        return np.full(shape, -np.log(shape[0]))
    # Half of the weight for the slopes, half for the shifts, equal over the classes.
    n_classes, n_maps = shape[0] - 1, shape[1]
    rows = np.array([0.5, *[0.5 / n_classes] * n_classes]) / n_maps
    return np.log(np.broadcast_to(rows[:, np.newaxis], shape))


def compute_e_value(log_e_value: float) -> Evidence:
    """Return the e-value and the anytime-valid p-value ``min(1, 1 / e_value)``."""
    with np.errstate(over="ignore"):  # beyond 1e308 it is infinite
        e_value = float(np.exp(log_e_value))
    return Evidence(e_value, float(np.exp(min(0.0, -log_e_value))))


def combine_e_values(sums: NDArray[np.float64]) -> Evidence:
    """Return the evidence of sums of log-ratios over samples, one for every map."""
    return compute_e_value(float(logsumexp(sums + make_log_weights(sums.shape))))


# Probabilities that were written with a few decimals.
#
# As if exact, a calibrated model with many small probabilities raises an alarm: where "0.00" is
# written, positives are as rare as up to .005, not impossible. So the probability theta of a
# sample may be anywhere in the interval that rounds to what is written. Against the probability q
# of a map, the e-value is q(y) / theta(y) with the theta of the interval that is nearest to q: if
# q is above the interval, its mean theta' q / theta + (1 - theta') (1 - q) / (1 - theta) under any
# theta' of the interval increases to 1 at its upper end, and likewise below. No e-value grows
# faster against this q (the reverse information projection). Its logarithms add up over samples,
# and a q within the interval adds nothing.
#
# Where the interval reaches 0 or 1, it holds probabilities of any order of magnitude, so that a
# map of what is written says little: every map comes twice, once without these samples.

# With fewer decimals, such as a vote of ten neighbors, values are taken as written with two; with
# more, they are exact.
LIMITS_OF_DECIMALS = 2, 5
# Written values in a block of the product with all maps.
_VALUES_AT_ONCE = 4096


class Written(NamedTuple):
    """Probabilities of one step as integers, (n, n_columns), in units of ``10**-decimals``.

    Each true probability is within `half_width` of the one that is written.
    """

    decimals: int
    values: NDArray[np.int64]
    half_width: float


def find_decimals(proba: NDArray[np.floating]) -> Written | None:
    """Return the probabilities, (n, n_columns), as they were written; None if they are exact.

    With three columns or more, rows may have been divided by their sum after rounding. If all of
    them sum to 1, as rounded ones do not, columns were adjusted and may be off by more.
    """
    n_columns, exact = proba.shape[1], proba.astype(np.float64)
    most = n_columns // 2 if n_columns > 2 else 0
    fewest, most_decimals = LIMITS_OF_DECIMALS
    for decimals in range(fewest, most_decimals + 1):
        unit = 10**decimals
        rounding = 4 * unit * float(np.finfo(proba.dtype).eps)
        if rounding > 0.05:
            break
        values = np.full(exact.shape, -1.0)
        for excess in sorted(range(-most, most + 1), key=abs):
            left = np.flatnonzero(values[:, 0] < 0)
            scaled = exact[left] * (unit + excess)
            fits = (np.abs(scaled - np.rint(scaled)) <= rounding).all(axis=1)
            values[left[fits]] = np.rint(scaled[fits])
        if (values >= 0).all():
            adjusted = n_columns > 2 and bool((values.sum(axis=1) == unit).all())
            half_width = ((n_columns - 1) if adjusted else 1) / (2 * unit)
            return Written(decimals, values.astype(np.int64), half_width)
    return None


def sum_log_ratios_of_written(
    written: Written, is_label: NDArray[np.bool_], rows: Any = slice(None)
) -> NDArray[np.float64]:
    """Return the sums of log-ratios over some rows for every column, each against the rest.

    Shape (n_columns, 2, n_maps): with all samples, then without those whose interval of
    probabilities reaches 0 or 1.
    """
    columns = zip(written.values[rows].T, is_label[rows].T)
    return np.array([_sum_of_written(values, positive, written) for values, positive in columns])


def _sum_of_written(
    values: NDArray[np.int64], positive: NDArray[np.bool_], written: Written
) -> NDArray[np.float64]:
    """Return the sums of log-ratios of one column, (2, n_maps)."""
    distinct, place = np.unique(values, return_inverse=True)
    n, n_positive = np.bincount(place), np.bincount(place, positive)
    slopes, shifts = np.repeat(np.exp(LOG_SLOPES), len(SHIFTS)), np.tile(SHIFTS, len(LOG_SLOPES))
    sums = np.zeros((2, len(slopes)))
    for start in range(0, len(distinct), _VALUES_AT_ONCE):
        part = slice(start, start + _VALUES_AT_ONCE)
        proba, least = distinct[part] / 10**written.decimals, 0.25 / 10**written.decimals
        low, high = proba - written.half_width, proba + written.half_width
        log_odds = logit(np.clip(proba, least, 1 - least))[:, np.newaxis]
        mapped = slopes * log_odds + shifts
        proba_of_map = expit(mapped)
        nearest = np.clip(proba_of_map, low[:, np.newaxis], high[:, np.newaxis])
        within = nearest == proba_of_map
        nearest[within] = 0.5  # any value, as nothing is added
        of_positive = np.where(within, 0, -np.logaddexp(0, -mapped) - np.log(nearest))
        of_negative = np.where(within, 0, -np.logaddexp(0, mapped) - np.log1p(-nearest))
        for row, kept in enumerate((np.ones(len(proba), bool), (low > 0) & (high < 1))):
            n_kept, s_kept = n[part] * kept, n_positive[part] * kept
            sums[row] += s_kept @ of_positive + (n_kept - s_kept) @ of_negative
    return sums


# The two classes of an answer with its confidence, as files of answers are read.
OF_ANSWERS = ("wrong", "right")


def are_answers(classes: NDArray | None) -> bool:
    """Return whether the classes say that answers are wrong or right."""
    return classes is not None and tuple(classes.tolist()) == OF_ANSWERS


def describe_change(sums: NDArray[np.float64], classes: NDArray | None) -> str:
    """Return a sentence on the map under which the probabilities fit the labels best."""
    # A slope or shift must raise the log-likelihood by more than it does by chance with
    # probability .01.
    changed = np.arange(len(SHIFTS)) != len(SHIFTS) // 2
    n_changes = np.add.outer(changed, changed).ravel() if sums.ndim == 1 else 1 * changed
    score = sums - chi2.isf(0.01, 1) / 2 * n_changes
    row, column = divmod(int(np.argmax(score)), len(SHIFTS))
    if sums.ndim == 1:
        slope, shift = LOG_SLOPES[row], SHIFTS[column]
        name = "the positive class" if classes is None else f"class {classes[-1]}"
        name = "a right answer" if are_answers(classes) else name
    elif row == 0:
        slope, shift, name = LOG_SLOPES[column], 0.0, ""
    else:
        slope, shift = 0.0, SHIFTS[column]
        name = f"class {row - 1 if classes is None else classes[row - 1]}"
    changes = [f"all log-odds by about {np.exp(slope):.2f}"] * bool(slope)
    changes += [f"the odds of {name} by about {np.exp(shift):.2f}"] * bool(shift)
    if not changes:
        return "No change of the probabilities fits the labels better than they do."
    verdicts = [f"the model is {'too sure' if slope < 0 else 'not sure enough'}"] * bool(slope)
    what = "its confidence is" if are_answers(classes) else f"the probabilities of {name} are"
    verdicts += [f"{what} too {'low' if shift > 0 else 'high'} on the whole"] * bool(shift)
    verdict = " and ".join(verdicts)
    return (
        f"{verdict[0].upper()}{verdict[1:]}. To fit the labels, multiply {' and '.join(changes)}."
    )
