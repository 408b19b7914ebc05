"""Detect columns and rows in another order, from labels and probabilities together.

A column of probabilities that belongs to another class, or rows that belong to other samples,
raise no error: every metric has a value, and every calibrator fits something. The functions here
compare labels with probabilities, warn once, and say what to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, softmax

from ..computing._tensors import TensorRows
from ..meta._warnings import warn
from ._arrays import to_host
from ._names import label_of

# Probability of a false warning about the columns of a model that is independent of the labels;
# for models with any skill it is smaller.
FALSE_ALARM = 1e-3
# Least gain per class, of at most 2, that brings a warning: weak models in order may show less.
_LEAST_GAIN = 0.05
# Rows bring a warning where labels surely show less than this fraction of the gain that the
# probabilities imply, and none beyond two standard errors; see `doubt_of_rows`. Of 600 samples in
# another order than their labels, of models that know more than half of what they imply, .2 finds
# 23 % and .5 90 % (benchmarks/moved_rows). In order, .5 warns of up to 6 % of the draws of models
# that know .2 to .3 of it, of .4 % at .3 to .5, and of none above; .2 of none above .2.
_LEAST_SHOWN = 0.5
# A metric checks many columns where labels show less than this fraction of the implied gain; see
# `knows_labels`. It only costs time: of 10 models with 30 % of 100 columns moved, .5 checks none,
# and .75 finds 9.
_MOST_OF_CLAIM = 0.75
# How many numbers are checked, of rows drawn at random: by a metric, which has to be fast, and by
# a fit.
IN_PASSING = 2**14
AT_THE_DOOR = 2**21
# Rounding error of 0.5, the least probability of the predicted one of two classes.
RANGE_OF_HALF = 1e-6
REMEDY = "If so, pass labels= in the order of the columns."
_told: ContextVar[bool] = ContextVar("told", default=False)


class Misplaced(NamedTuple):
    """Columns that would fit better: class j fits column ``column[j]``.

    ``now`` and ``then`` are the mean probability of the label in the given order and in this one.
    """

    column: NDArray[np.intp]
    now: float
    then: float


def surely_positive(gain: float, variance: float, largest: float, n_ways: float = 1.0) -> bool:
    """Tell whether a sum with mean 0 reaches `gain` with a probability below `FALSE_ALARM`.

    By Bernstein's inequality: `variance` is that of the sum, `largest` the largest term, and
    `n_ways` the number of sums of which this one is the largest.
    """
    if gain <= 0:
        return False
    exponent = gain**2 / (2 * (variance + largest * gain / 3))
    return bool(exponent > math.log(n_ways / FALSE_ALARM))


def drawn_rows(
    n_rows: int, n_columns: int, most: int, weight: NDArray[np.float64] | None = None
) -> slice | NDArray[np.intp]:
    """Return all rows or, where they hold more than `most` numbers, fewer rows drawn at random.

    With weights, a row is kept with a probability proportional to its weight. The rows kept then
    count equally: of a label with the weight .3, three in ten.
    """
    n_drawn = max(most // max(n_columns, 1), 1)
    rng = np.random.default_rng(0)
    if weight is not None:
        # Four times as many to begin with, since rows of little weight are mostly left out.
        rows = np.flatnonzero(weight)
        rows = rows[drawn_rows(len(rows), n_columns, 4 * most)]
        of_rows = weight[rows]
        rows = rows[rng.random(len(rows)) * of_rows.max(initial=0.0) < of_rows]
        return rows if len(rows) <= n_drawn else np.sort(rng.choice(rows, n_drawn, replace=False))
    if n_rows <= n_drawn:
        return slice(None)
    return np.unique(rng.integers(0, n_rows, n_drawn))


@contextmanager
def told() -> Iterator[None]:
    """Warn of no columns or rows within this context: the caller has checked them."""
    token = _told.set(True)
    try:
        yield
    finally:
        _told.reset(token)


def fits_better(proba: Any, codes: NDArray[np.intp], others: NDArray[np.intp]) -> bool:
    """Tell whether the columns `codes` of the samples surely fit better than `others`."""
    rows = np.flatnonzero(codes != others)
    rows = rows[drawn_rows(len(rows), proba.shape[1], IN_PASSING)]
    drawn = to_host(proba[rows])
    place = np.arange(len(rows))
    return _surely_above_0(drawn[place, codes[rows]] - drawn[place, others[rows]])


def _surely_above_0(gains: NDArray[Any]) -> bool:
    """Tell whether the mean of independent gains is surely positive."""
    n = len(gains)
    if n == 0 or not np.isfinite(gains).all():
        return False
    gains = gains.astype(np.float64)
    return surely_positive(gains.mean(), gains.var() / n, np.abs(gains).max() / n)


def refuse_other_rows(
    proba: NDArray[Any] | None = None, codes: NDArray[np.intp] | None = None, **arguments: Any
) -> None:
    """Raise if two arguments have indexes with the same entries in another order.

    An index 0, ..., n - 1 may be a default. It counts only where the first two arguments are
    labels and probabilities, here as `codes` and `proba`, that surely fit better by the index.
    """
    indexes = {name: _index_of(value) for name, value in arguments.items()}
    indexes = {name: index for name, index in indexes.items() if index is not None}
    for name, index in list(indexes.items())[1:]:
        first, of_first = next(iter(indexes.items()))
        if len(index) != len(of_first) or index.equals(of_first) or not _same(index, of_first):
            continue
        if _is_count(index) or _is_count(of_first):
            if proba is None or codes is None or [first, name] != list(arguments)[:2]:
                continue
            rows = index.get_indexer(of_first)
            here, proba = np.arange(len(rows)), to_host(proba[:])
            by_index = proba[rows, codes] if proba.ndim == 2 else _of_label(proba[rows], codes)
            by_place = proba[here, codes] if proba.ndim == 2 else _of_label(proba, codes)
            if not _surely_above_0(by_index - by_place):
                continue
        raise ValueError(
            f"{first} and {name} must have their rows in the same order, got indexes with the "
            f"same entries in another order: {name}.loc[{first}.index] is in that of {first}."
        )


def refuse_other_positions(positions: NDArray[np.intp], **arguments: Any) -> None:
    """Raise if the index of an argument has these positions in another order."""
    for name, value in arguments.items():
        index = _index_of(value)
        if index is None or index.dtype.kind not in "iu" or _is_count(index):
            continue
        given = index.to_numpy()
        if not np.array_equal(given, positions) and np.array_equal(
            np.sort(given), np.sort(positions)
        ):
            raise ValueError(
                f"{name} must be in the order of positions, got an index with the same positions "
                f"in another order: {name}.loc[positions] puts them in order."
            )


def _of_label(proba: NDArray[Any], codes: NDArray[np.intp]) -> NDArray[Any]:
    """Return the probability of the label, (n,), from that of class 1."""
    return np.where(codes == 1, proba, 1 - proba)


def _index_of(value: Any) -> Any:
    """Return the index of a frame or series of pandas, None for anything else."""
    index = getattr(value, "index", None)
    return index if hasattr(index, "get_indexer") else None


def _is_count(index: Any) -> bool:
    """Tell whether an index is 0, ..., n - 1."""
    return bool(index.dtype.kind in "iu" and np.array_equal(index, np.arange(len(index))))


def _same(index: Any, other: Any) -> bool:
    """Tell whether two indexes have the same entries, in any order."""
    try:
        return bool(index.sort_values().equals(other.sort_values()))
    except TypeError:  # entries that do not compare
        return False


def _inverse_root(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 / sqrt(values), 0 for 0."""
    return np.divide(1, np.sqrt(values), out=np.zeros_like(values), where=values > 0)


class _Associations:
    """Associations N[j, k] of label j with column k, (K, K); see :func:`misplaced_columns`."""

    def __init__(
        self, proba: NDArray[Any], codes: NDArray[np.intp], groups: NDArray[np.intp] | None
    ) -> None:
        n, n_columns = proba.shape
        self.proba, self.codes, self.groups = proba, codes, groups
        self.mean = proba.mean(axis=0, dtype=np.float64)
        self.frequency = np.bincount(codes, minlength=n_columns) / n
        labelled = sp.csr_array((np.ones(n, proba.dtype), (codes, np.arange(n))), (n_columns, n))
        self.matrix = np.asarray(labelled @ proba, dtype=np.float64)
        self.matrix /= n
        self.matrix -= np.outer(self.frequency, self.mean)
        # A class without samples, or a column of zeros, has associations of 0.
        self.matrix *= _inverse_root(self.frequency)[:, None]
        self.matrix *= _inverse_root(self.mean)

    def order(self) -> NDArray[np.intp]:
        """Return the column of each class, (K,), that maximizes the sum of N; ties stay."""
        own = 1e-9 * np.eye(len(self.matrix))
        return linear_sum_assignment(self.matrix + own, maximize=True)[1]

    def halves(self) -> list[tuple[_Associations, _Associations]]:
        """Return pairs of parts: one to choose an order on, and one to test it on."""
        if len(self.mean) == 2:  # there is one other order
            return [(self, self)]
        first = _half(self.codes, self.groups)
        if min(np.count_nonzero(first), np.count_nonzero(~first)) < 2:  # one group
            return []
        one, other = (
            _Associations(
                self.proba[rows],
                self.codes[rows],
                None if self.groups is None else self.groups[rows],
            )
            for rows in (first, ~first)
        )
        return [(one, other), (other, one)]

    def scaled(self, columns: NDArray[np.intp]) -> NDArray[Any]:
        """Return Z of these columns, (n, n_columns); see :func:`misplaced_columns`."""
        spread = np.sqrt(np.maximum(self.mean[columns], np.finfo(np.float64).tiny))
        return (self.proba[:, columns] - self.mean[columns]) / spread

    def surely_gain(
        self, classes: NDArray[np.intp], columns: NDArray[np.intp] | None, n_ways: float
    ) -> bool:
        """Tell whether the classes surely fit these columns better than their own.

        With None for the columns, whether their associations with their own sum to less than 0.
        """
        gain = -float(self.matrix[classes, classes].sum())
        if columns is not None:
            gain += float(self.matrix[classes, columns].sum())
        n = len(self.codes)
        # Out-of-fold class frequencies are always associated with the labels negatively, by 1 / n.
        if gain < max(_LEAST_GAIN, 3 / n) * len(classes):
            return False
        terms = -self.scaled(classes)
        if columns is not None:
            terms += self.scaled(columns)
        # The variance if labels are shuffled; the terms sum to about 0 over the samples.
        variance = float(np.square(terms).sum(axis=1).mean()) / (n - 1)
        terms /= n * np.sqrt(np.maximum(self.frequency[classes], 1 / n))
        largest = float(np.abs(terms).max())
        if self.groups is not None:
            terms = self._of_groups(terms, classes, self.groups)
            variance = max(variance, float(np.square(terms).sum()))
            largest = max(largest, float(np.abs(terms).max()))
        return surely_positive(gain, variance, largest, n_ways)

    def _of_groups(
        self, terms: NDArray[Any], classes: NDArray[np.intp], groups: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Return sums of centered terms over each of G groups, times sqrt(G / (G - 1))."""
        place = np.full(len(self.mean), -1)
        place[classes] = np.arange(len(classes))
        own = place[self.codes]
        term = np.where(own >= 0, terms[np.arange(len(own)), own], 0.0)
        n_groups = int(np.count_nonzero(np.bincount(groups)))
        return np.bincount(groups, term - term.mean()) * np.sqrt(n_groups / max(n_groups - 1, 1))


def misplaced_columns(
    proba: NDArray[Any], codes: NDArray[np.intp], groups: NDArray[np.intp] | None = None
) -> Misplaced | None:
    """Return the order of the columns that surely fits better, None if there is none.

    With Z_k = (p_k - mean p_k) / sqrt(mean p_k) and f_j the frequency of label j, N[j, k] is the
    sum over the samples labelled j of Z_k / (n sqrt(f_j)). If labels are independent of the
    probabilities, every entry has the mean 0. If the probabilities are right, it has the mean
    Cov(p_j, p_k) / sqrt(f_j f_k), and the trace of such a matrix is no smaller than any other sum
    of one entry for each row and column: a larger one shows another order. With several classes,
    the order is chosen on one half of the samples and tested on the other, cycle by cycle.
    """
    return _misplaced(_Associations(proba, codes, groups))


def _misplaced(whole: _Associations) -> Misplaced | None:
    """Return :func:`misplaced_columns` from the associations in all samples."""
    if not np.isfinite(whole.mean).all() or len(whole.codes) < 2:
        return None
    order = whole.order()
    cycles = _cycles(order)
    if not cycles:  # whatever the halves show, no column would move
        return None
    n_ways = max(1, len(order) - 2)
    sure: set[int] = set()
    for choosing, judging in whole.halves():
        chosen = choosing.order()
        for cycle in _cycles(chosen):
            if judging.surely_gain(cycle, chosen[cycle], n_ways):
                sure.update(cycle.tolist())
    column = np.arange(len(order))
    for cycle in cycles:
        if sure.intersection(cycle.tolist()):
            column[cycle] = order[cycle]
    rows = np.arange(len(whole.codes))
    now, then = (whole.proba[rows, j].mean() for j in (whole.codes, column[whole.codes]))
    # A model may be wrong about some samples and yet have its columns in order.
    return Misplaced(column, float(now), float(then)) if then > now else None


def _half(codes: NDArray[np.intp], groups: NDArray[np.intp] | None) -> NDArray[np.bool_]:
    """Return a mask (n,) of a random half of every class or, where given, of the groups."""
    rng = np.random.default_rng(0)
    if groups is not None:
        return (rng.permutation(int(groups.max()) + 1) % 2 == 0)[groups]
    order = np.lexsort((rng.random(len(codes)), codes))
    half = np.empty(len(codes), dtype=bool)
    half[order] = np.arange(len(codes)) % 2 == 0
    return half


def _cycles(order: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the cycles of a permutation, without its fixed points."""
    seen = order == np.arange(len(order))
    cycles = []
    for start in range(len(order)):
        cycle = []
        while not seen[start]:
            seen[start] = True
            cycle.append(start)
            start = order[start]
        if cycle:
            cycles.append(np.array(cycle))
    return cycles


def _far_below_chance(whole: _Associations) -> bool:
    """Tell whether labels surely have smaller probabilities than by chance.

    In the terms of :func:`misplaced_columns`, whether the trace of N is surely negative.
    """
    return whole.surely_gain(np.arange(len(whole.mean)), None, 1)


def tell_of_order(
    proba: Any,
    codes: NDArray[np.intp],
    classes: NDArray[Any],
    *,
    name: str = "y_proba",
    remedy: str = REMEDY,
    groups: NDArray[np.intp] | None = None,
    weight: NDArray[np.float64] | None = None,
    most: int = AT_THE_DOOR,
) -> None:
    """Warn of columns or rows in another order, unless the caller has checked them."""
    # What is on an accelerator stays there, unchecked.
    if isinstance(proba, TensorRows) or _told.get():
        return
    given: dict[str, Any] = {"name": name, "groups": groups, "weight": weight}
    doubt = doubt_of_columns(proba, codes, classes, remedy=remedy, most=most, **given)
    if doubt is None:
        doubt = doubt_of_rows(proba, codes, **given)
    if doubt is not None:
        warn(doubt)


def doubt_of_columns(
    proba: Any,
    codes: NDArray[np.intp],
    classes: NDArray[Any],
    *,
    name: str = "y_proba",
    remedy: str = REMEDY,
    groups: NDArray[np.intp] | None = None,
    weight: NDArray[np.float64] | None = None,
    most: int = AT_THE_DOOR,
) -> str | None:
    """Return a warning about the order of the columns (n, K), or the class of (n,), or None."""
    n_columns = 1 if proba.ndim == 1 else proba.shape[1]
    if 2 * n_columns**2 > most:
        # To check all columns takes time: only where the labels have low probabilities.
        if len(codes) < 2 * n_columns or knows_labels(proba, codes, weight):
            return None
        most = min(16 * n_columns**2, AT_THE_DOOR)
    rows = drawn_rows(len(codes), max(n_columns, 2), most, weight)
    proba, codes = to_host(proba[rows]), codes[rows]
    if len(codes) < 2 * n_columns or not 0 <= proba.min() <= proba.max() <= 2:
        return None  # too few samples, or values that other checks refuse
    with np.errstate(under="ignore"):
        proba = proba.astype(np.float32, copy=False)
    if proba.ndim == 1:
        proba = np.column_stack([1 - proba, proba])
    groups = None if groups is None else np.unique(groups[rows], return_inverse=True)[1]
    names = classes.tolist()
    if n_columns == 1 and classes.dtype != bool and seems_confidence(proba[:, 1], codes):
        return (
            f"{name} is never below 0.5, though the label is {names[1]!r} in "
            f"{codes.mean():.0%} of the samples, and does not rise with it: it seems to be the "
            f"probability of the predicted class. If so, pass that of {names[1]!r}, or whether "
            "the predictions are right in place of the labels."
        )
    whole = _Associations(proba, codes, groups)
    found = _misplaced(whole)
    if found is None and (n_columns == 1 or not _far_below_chance(whole)):
        return None
    if found is None or (len(names) > 2 and _seems_negated(proba, codes, found)):
        return (
            f"{name} is far below chance: labels have smaller probabilities than without any "
            "knowledge. These may be scores of the opposite sign, such as distances, rows in "
            "another order than the labels, or columns of other classes."
        )
    if len(names) == 2:
        of, rest = (float(proba[codes == k, 1].mean()) for k in (1, 0))
        if n_columns == 1:
            return (
                f"{name} seems to be the probability of {names[0]!r}, not of {names[1]!r}: where "
                f"the label is {names[1]!r} it is {of:.2f} on average, elsewhere {rest:.2f}. If "
                f"so, pass 1 - {name}."
            )
    order = [names[j] for j in np.argsort(found.column)]
    return (
        f"The columns of {name} seem to be in another order: the label has a mean probability "
        f"of {found.now:.2f}, and would have {found.then:.2f} if they were those of "
        f"{_listed(order, names)}. {remedy}"
    )


def doubt_of_rows(
    proba: Any,
    codes: NDArray[np.intp],
    *,
    name: str = "y_proba",
    groups: NDArray[np.intp] | None = None,
    weight: NDArray[np.float64] | None = None,
) -> str | None:
    """Return a warning where probabilities (n, K) or (n,) seem to belong to other rows, or None.

    With d_ik = p_ik - mean p_k, a label y_i drawn from p_i has an expected d_iy of
    sum_k p_ik d_ik, the implied gain. Labels of other rows have an expected d of 0. The warning
    needs an implied gain that is large, and a mean of d_iy that is surely below half of it.
    First, p is adapted to the frequencies of the labels, which may differ from those in training.
    """
    rows = drawn_rows(len(codes), 2 if proba.ndim == 1 else proba.shape[1], IN_PASSING, weight)
    proba, codes = to_host(proba[rows]), codes[rows]
    if len(codes) < 2 or not 0 <= proba.min() <= proba.max() <= 1:
        return None
    proba = proba.astype(np.float64, copy=False)
    if proba.ndim == 1:
        proba = np.column_stack([1 - proba, proba])
    mean = proba.mean(axis=0)
    frequency = np.bincount(codes, minlength=len(mean)) / len(codes)
    # The smallest probabilities may underflow to 0.
    with np.errstate(under="ignore"):
        adapted = proba * np.divide(frequency, mean, out=np.zeros_like(mean), where=mean > 0)
        total = adapted.sum(axis=1, keepdims=True)
        adapted = np.divide(adapted, total, out=proba.copy(), where=total > 0)
        apart = adapted - adapted.mean(axis=0)
        known = apart[np.arange(len(codes)), codes]
        stated = np.einsum("ij,ij->i", adapted, apart)
    missing = _LEAST_SHOWN * stated - known
    if groups is not None:
        own = np.unique(groups[rows], return_inverse=True)[1]
        missing, known = (np.bincount(own, terms) for terms in (missing, known))
    # No warning where the labels show a gain of more than two standard errors.
    error = known.std() / np.sqrt(len(known))
    if known.mean() > 2 * error or stated.mean() < _LEAST_GAIN or not _surely_above_0(missing):
        return None
    label, others = proba[np.arange(len(codes)), codes].mean(), frequency @ mean
    order = "rows" if known.mean() > -2 * error else "rows or columns"
    return (
        f"{name} seems to belong to other rows than the labels: the label has a mean probability "
        f"of {label:.2f}, those of other samples have {others:.2f}. Look for {order} in another "
        "order, such as from a loader that shuffles. If they are in order, the model has learned "
        "little or nothing of these labels."
    )


def refuse_negative_name(
    y_proba: Any, proba: NDArray[Any], codes: NDArray[np.intp], classes: NDArray[Any]
) -> None:
    """Raise for a Series (n,) that is called after the negative class, such as "prob_0".

    Unless the values surely fit the positive class: the 0 may be the number of a model.
    """
    name = getattr(y_proba, "name", None)
    negative, positive = classes.tolist()
    if not isinstance(name, str) or label_of(name, [str(negative), str(positive)]) != (
        str(negative),
        True,
    ):
        return
    if misplaced_columns(np.column_stack([proba, 1 - proba]), codes) is None:
        raise ValueError(
            f"y_proba must be the probability of the positive class, {positive!r}, got a Series "
            f"called {name!r}: pass 1 - y_proba, or pos_label={negative!r} if that is the "
            "positive one."
        )


def knows_labels(
    proba: NDArray[Any], codes: NDArray[np.intp], weight: NDArray[np.float64] | None = None
) -> bool:
    """Tell whether labels surely show most of the gain that the probabilities imply.

    The gain is by how much the label is more probable than those of other samples, on average: the
    mean of sum_k p_k^2 - sum_k p_k f_k, if the probabilities are right and label k has the
    frequency f_k. The gain that labels show needs two numbers per sample, so it is the mean of
    many samples. Models that imply a third too much only cost the time to check all columns.
    """
    rows = np.arange(len(codes))[drawn_rows(len(codes), 2, IN_PASSING, weight)]
    if len(rows) < 2:
        return True
    own = codes[rows]
    others = np.random.default_rng(0).permutation(own)
    shown = proba[rows, own] - proba[rows, others]
    whole = proba[rows[drawn_rows(len(rows), proba.shape[1], IN_PASSING)]].astype(np.float64)
    frequency = np.bincount(own, minlength=proba.shape[1]) / len(own)
    claimed = float(np.mean(np.square(whole).sum(axis=1) - whole @ frequency))
    return _surely_above_0(shown) and float(shown.mean()) >= _MOST_OF_CLAIM * claimed


def seems_confidence(proba: NDArray[Any], codes: NDArray[np.intp]) -> bool:
    """Tell whether (n,) is the probability of the predicted class, not of the positive one.

    It is never below a half, surely above the frequency of the positive class, which is no more
    than a half, and no larger where the label is positive.
    """
    # Both comparisons allow for two standard errors. Of 300 models, with 300 samples and with
    # 2 000, .96 and .99 are found; of 300 weak overconfident ones that are never below a half, .22
    # and .03 are taken for it. With one standard error: .91 and .86; .09 and .00.
    n, positive = len(codes), codes == 1
    lowest, highest = proba.min(), proba.max()
    if lowest < 0.5 - RANGE_OF_HALF or highest - lowest < RANGE_OF_HALF:  # the same for all
        return False
    if not 0 < positive.sum() < n:
        return False
    if positive.mean() > 0.5 + 2 * np.sqrt(0.25 / n) or not _surely_above_0(proba - codes):
        return False
    apart = proba[positive].mean() - proba[~positive].mean()
    spread = proba[positive].var() / positive.sum() + proba[~positive].var() / (~positive).sum()
    return bool(apart < 2 * np.sqrt(spread))


def _seems_negated(proba: NDArray[Any], codes: NDArray[np.intp], found: Misplaced) -> bool:
    """Tell whether the least probable class is right more often than the top one as reordered."""
    least = np.mean(proba.argmin(axis=1) == codes)
    return bool(least > np.mean(proba[:, found.column].argmax(axis=1) == codes))


def _listed(order: list[Any], names: list[Any]) -> str:
    """Return the order as text; of more than 12 classes only the columns that move."""
    if len(order) <= 12:
        return str(order)
    moved = [f"column {k} that of {x!r}" for k, x in enumerate(order) if x != names[k]]
    return ", ".join(moved[:8]) + (", ..." if len(moved) > 8 else "")


def as_proba_of(scores: NDArray[Any], *, logits: bool) -> NDArray[Any]:
    """Return the scores of a calibrator as probabilities, (n, K) or (n,)."""
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if not logits:
        return scores
    return expit(scores) if scores.ndim == 1 else softmax(scores, axis=1)
