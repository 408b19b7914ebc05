"""Whether the rows and columns of probabilities belong to the labels.

A column of probabilities that belongs to another class, or rows that belong to other samples,
raise no error: every metric has a value, and every calibrator fits something. Only labels and
probabilities together show it, and only where there are enough of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.utils import gen_batches

from ..utils._arrays import as_array, is_soft
from ..utils._backends import is_chunked, is_on_accelerator
from ..utils._labels import as_labels
from ..utils._numeric import BLOCK_SIZE, compute_row_sum, iter_blocks
from ..utils._proba import check_predictions

# Probability that columns in order are reported, of a model that is independent of the labels; for
# models with any skill it is smaller.
FALSE_ALARM = 1e-3
# Least gain per class, of at most 2, that is reported: weak models in order may show less.
_LEAST_GAIN = 0.05
# Rows are reported where labels surely show less than this fraction of the gain that the
# probabilities imply, and none beyond two standard errors; see `diagnose_rows`. How often it finds
# another order of rows: benchmarks/moved_rows. What other numbers would do: order_ablations.
_LEAST_SHOWN = 0.5
# How many probabilities are read, of rows drawn at random.
_MOST_NUMBERS = 2**21
# Rounding error of 0.5, the least probability of the predicted one of two classes.
_RANGE_OF_HALF = 1e-6
# Of more classes, only the columns that move are listed, and at most so many.
_MOST_IN_ORDER, _MOST_MOVED = 12, 8

_MESSAGES = {
    "index": (
        "y_true and y_proba have indexes with the same entries in another order: "
        "y_proba.loc[y_true.index] is in the order of y_true."
    ),
    "predicted class": (
        "y_proba is never below 0.5, though the label is {positive!r} in {frequency:.0%} of the "
        "samples, and does not rise with it: it seems to be the probability of the predicted "
        "class. If so, pass that of {positive!r}, or whether the predictions are right in place "
        "of the labels."
    ),
    "below chance": (
        "y_proba is far below chance: labels have smaller probabilities than without any "
        "knowledge. These may be scores of the opposite sign, such as distances, rows in another "
        "order than the labels, or columns of other classes."
    ),
    "other class": (
        "y_proba seems to be the probability of {negative!r}, not of {positive!r}: where the "
        "label is {positive!r} it is {of_positive:.2f} on average, elsewhere {of_negative:.2f}. "
        "If so, pass 1 - y_proba."
    ),
    "columns": (
        "The columns of y_proba seem to be in another order: the label has a mean probability of "
        "{now:.2f}, and would have {then:.2f} if they were those of {order}. If so, pass labels= "
        "in the order of the columns."
    ),
    "rows": (
        "y_proba seems to belong to {lines} in another order, or to a model without skill: the "
        "label has a mean probability of {label:.2f}, those of other samples have {others:.2f}. "
        "Look for a loader that shuffles or a table that was sorted. If the order is right, the "
        "model has learned little or nothing of these labels."
    ),
    "swapped": (
        "y_true and y_proba seem swapped: y_proba holds 0 and 1 alone, and y_true soft "
        "labels of several classes."
    ),
}


class Diagnosis(NamedTuple):
    """What the data show to be wrong: a key of ``_MESSAGES``, and the values of its fields."""

    kind: str
    values: dict[str, Any]

    def __str__(self) -> str:
        return _MESSAGES[self.kind].format(**self.values)


@np.errstate(under="ignore")
def check_alignment(
    y_true: ArrayLike, y_proba: ArrayLike, labels: ArrayLike | None = None
) -> list[str]:
    """Say what labels and probabilities show to be in another order.

    A metric computes a number from whatever rows and columns it is given. This function looks, in
    this order, for indexes of pandas that have the same entries in another order, for columns that
    fit the labels far better in another order (or the other one of two classes, the predicted
    class, scores of the opposite sign), for rows that fit the labels no better than those of other
    samples, and for swapped arguments. It compares what the labels show with chance: it finds
    little in a few dozen samples, and says "rows in another order" also of a model that is sure
    and knows nothing. At most 2**21 probabilities are read, of rows drawn at random.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
        Labels, or the fraction of people who gave each label. A dask array is not looked at.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; with shape (n_samples,) of the positive class: 1 among the labels 0, 1 or
        -1, 1, else the second of the sorted labels. The columns of a DataFrame that are named by
        the labels are matched by name. A dask array, or a tensor on an accelerator, is not looked
        at.
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns, in order; with `y_proba` of shape (n_samples,) the negative and the
        positive label. The order of the columns is then not looked at. None means that integers in
        0, ..., n_classes - 1 are positions of columns, and other labels are sorted.

    Returns
    -------
    findings : list of str
        One sentence for everything that was found, in the order above; empty if nothing was.

    Raises
    ------
    ValueError
        If the arguments are not labels and probabilities of the same samples, as a metric says.
    TypeError
        If `y_true` holds no labels or `y_proba` no numbers.

    See Also
    --------
    skcalib.report.CalibrationReport : A page that lists these sentences.

    Notes
    -----
    With Z_k = (p_k - mean p_k) / sqrt(mean p_k) and f_j the frequency of label j, another order of
    the columns has to increase the sum over the samples of Z / (n sqrt(f)) at their labels beyond
    what Bernstein's inequality allows once in a thousand times for labels that do not depend on
    the probabilities. With several classes, the order is chosen on one half of the samples and
    tested on the other. Rows: a label drawn from p has an expected p_y - mean p_y of
    sum_k p_k (p_k - mean p_k), a label of another row of 0. Rows are reported where the observed
    mean is surely below half of the expected one, and within two standard errors of 0.

    Examples
    --------
    >>> from skcalib.datasets import make_predictions
    >>> from skcalib.metrics import check_alignment
    >>> y_true, y_proba, _ = make_predictions(1000, n_classes=3, random_state=0)
    >>> check_alignment(y_true, y_proba)
    []
    >>> for sentence in check_alignment(y_true, y_proba[:, [1, 0, 2]]):
    ...     print(sentence)
    The columns of y_proba seem to be in another order: the label has a mean probability of 0.32,
    and would have 0.65 if they were those of [1, 0, 2]. If so, pass labels= in the order of the
    columns.
    >>> for sentence in check_alignment(y_true, y_proba[::-1]):
    ...     print(sentence)
    y_proba seems to belong to rows in another order, or to a model without skill: the label has a
    mean probability of 0.35, those of other samples have 0.33. Look for a loader that shuffles or
    a table that was sorted. If the order is right, the model has learned little or nothing of
    these labels.
    """
    if is_chunked(y_true) or is_chunked(y_proba) or is_on_accelerator(y_proba):
        return []
    known = _sort_pair(y_true, y_proba) if labels is None else labels
    given = check_predictions(y_true, y_proba, labels=known)
    codes = given.truth.argmax(axis=1) if given.is_soft else given.truth
    found: list[Diagnosis | None] = [diagnose_index(y_true, y_proba, given.proba, codes)]
    if labels is None:
        is_true = not given.is_soft and as_array(y_true, name="y_true").dtype == bool
        found.append(diagnose_columns(given.proba, codes, given.classes, is_true=is_true))
    if not any(found):  # columns or rows in another order fit other rows no worse
        found.append(diagnose_rows(given.proba, codes))
    if given.is_soft:
        found.append(diagnose_swapped(given.truth, given.proba))
    return [str(diagnosis) for diagnosis in found if diagnosis is not None]


def _sort_pair(y_true: ArrayLike, y_proba: ArrayLike) -> NDArray[Any] | None:
    """Return two sorted labels for probabilities (n,), None where 1 is the positive one."""
    if np.ndim(y_proba) != 1 or is_soft(y_true):
        return None
    classes = np.unique(as_labels(y_true, name="y_true"))
    if classes.dtype.kind in "iu" and (np.isin(classes, (0, 1)).all() or set(classes) <= {-1, 1}):
        return None
    if len(classes) == 1:
        raise ValueError(
            "labels must name both classes where y_true holds one of them and y_proba has shape "
            f"(n_samples,), got None and the label {classes.tolist()[0]!r}."
        )
    return classes if len(classes) == 2 else None


def diagnose_index(
    y_true: Any, y_proba: Any, proba: NDArray[Any], codes: NDArray[np.intp]
) -> Diagnosis | None:
    """Return whether two indexes have the same entries in another order.

    An index 0, ..., n - 1 may be a default: it counts only where the probabilities surely fit the
    labels better by the index.
    """
    first, other = _index_of(y_true), _index_of(y_proba)
    if first is None or other is None or len(first) != len(other):
        return None
    if first.equals(other) or not _are_same(first, other):
        return None
    if _is_count(first) or _is_count(other):
        of_label = proba if proba.ndim == 2 else np.column_stack([1 - proba, proba])
        by_index = of_label[other.get_indexer(first), codes]
        if not _is_surely_above_0(by_index - of_label[np.arange(len(codes)), codes]):
            return None
    return Diagnosis("index", {})


class Misplaced(NamedTuple):
    """Columns that would fit better: class j fits column ``column[j]``.

    ``now`` and ``then`` are the mean probability of the label in the given order and in this one.
    """

    column: NDArray[np.intp]
    now: float
    then: float


def is_surely_positive(gain: float, variance: float, largest: float, n_ways: float = 1.0) -> bool:
    """Return whether a sum with mean 0 reaches `gain` with a probability below `FALSE_ALARM`.

    By Bernstein's inequality: `variance` is that of the sum, `largest` the largest term, and
    `n_ways` the number of sums of which this one is the largest.
    """
    if gain <= 0:
        return False
    exponent = gain**2 / (2 * (variance + largest * gain / 3))
    return bool(exponent > math.log(n_ways / FALSE_ALARM))


def draw_rows(n_rows: int, n_columns: int) -> slice | NDArray[np.intp]:
    """Return all rows, or rows drawn at random where all hold more than `_MOST_NUMBERS`."""
    n_drawn = max(_MOST_NUMBERS // n_columns, 1)
    if n_rows <= n_drawn:
        return slice(None)
    return np.unique(np.random.default_rng(0).integers(0, n_rows, n_drawn))


def _is_surely_above_0(gains: NDArray[Any]) -> bool:
    """Return whether the mean of independent gains is surely positive."""
    n = len(gains)
    if n == 0 or not np.isfinite(gains).all():
        return False
    gains = gains.astype(np.float64)
    return is_surely_positive(gains.mean(), gains.var() / n, np.abs(gains).max() / n)


def _index_of(value: Any) -> Any:
    """Return the index of a frame or series of pandas, None for anything else."""
    index = getattr(value, "index", None)
    return index if hasattr(index, "get_indexer") else None


def _is_count(index: Any) -> bool:
    """Return whether an index is 0, ..., n - 1."""
    return bool(index.dtype.kind in "iu" and np.array_equal(index, np.arange(len(index))))


def _are_same(index: Any, other: Any) -> bool:
    """Return whether two indexes have the same entries, in any order."""
    try:
        return bool(index.sort_values().equals(other.sort_values()))
    except TypeError:  # entries that do not compare
        return False


def _compute_inverse_root(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 / sqrt(values), 0 for 0."""
    return np.divide(1, np.sqrt(values), out=np.zeros_like(values), where=values > 0)


class _Associations:
    """Associations N[j, k] of label j with column k, (K, K); see :func:`find_misplaced_columns`.

    Of all samples, or of the samples `rows`, which are read block by block.
    """

    def __init__(
        self, proba: NDArray[Any], codes: NDArray[np.intp], rows: NDArray[np.intp] | None = None
    ) -> None:
        self.proba, self.codes = proba, codes
        self.rows = np.arange(len(codes)) if rows is None else rows
        of_rows, n, n_columns = codes[self.rows], len(self.rows), proba.shape[1]
        if rows is None:
            self.mean = proba.mean(axis=0, dtype=np.float64)
        else:
            sums = (block.sum(axis=0, dtype=np.float64) for _, block in self._iter_blocks())
            self.mean = sum(sums, np.zeros(n_columns)) / max(n, 1)
        self.frequency = np.bincount(of_rows, minlength=n_columns) / max(n, 1)
        # A column for every sample, empty unless it is among the rows.
        starts = np.arange(n + 1)
        if rows is not None:
            starts = np.searchsorted(rows, np.arange(len(codes) + 1))
        ones = np.ones(n, proba.dtype)
        labelled = sp.csc_array((ones, of_rows, starts), (n_columns, len(codes)))
        self.matrix = np.asarray(labelled @ proba, dtype=np.float64)
        self.matrix /= max(n, 1)
        self.matrix -= np.outer(self.frequency, self.mean)
        # A class without samples, or a column of zeros, has associations of 0.
        self.matrix *= _compute_inverse_root(self.frequency)[:, None]
        self.matrix *= _compute_inverse_root(self.mean)

    def order(self) -> NDArray[np.intp]:
        """Return the column of each class, (K,), that maximizes the sum of N; ties stay."""
        cost = -self.matrix
        np.fill_diagonal(cost, cost.diagonal() - 1e-9)
        return linear_sum_assignment(cost)[1]

    def halves(self) -> list[tuple[_Associations, _Associations]]:
        """Return pairs of parts: one to choose an order on, and one to test it on."""
        if len(self.mean) == 2:  # there is one other order
            return [(self, self)]
        first = _draw_half(self.codes)
        one, other = (
            _Associations(self.proba, self.codes, np.flatnonzero(half)) for half in (first, ~first)
        )
        return [(one, other), (other, one)]

    def _iter_blocks(self) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
        for part in gen_batches(len(self.rows), max(1, BLOCK_SIZE // self.proba.shape[1])):
            yield self.rows[part], self.proba[self.rows[part]]

    def _scale(self, block: NDArray[Any], columns: NDArray[np.intp]) -> NDArray[Any]:
        """Return Z of these columns, (n, n_columns); see :func:`find_misplaced_columns`."""
        spread = np.sqrt(np.maximum(self.mean[columns], np.finfo(np.float64).tiny))
        return (block[:, columns] - self.mean[columns]) / spread

    def surely_gain(
        self, classes: NDArray[np.intp], columns: NDArray[np.intp] | None, n_ways: float
    ) -> bool:
        """Return whether the classes surely fit these columns better than their own.

        With None for the columns, whether their associations with their own sum to less than 0.
        """
        gain = -float(self.matrix[classes, classes].sum())
        if columns is not None:
            gain += float(self.matrix[classes, columns].sum())
        n = len(self.rows)
        # Out-of-fold class frequencies are always associated with the labels negatively, by 1 / n.
        if gain < max(_LEAST_GAIN, 3 / n) * len(classes):
            return False
        of_label = n * np.sqrt(np.maximum(self.frequency[classes], 1 / n))
        squares = largest = 0.0
        for _, block in self._iter_blocks():
            terms = -self._scale(block, classes)
            if columns is not None:
                terms += self._scale(block, columns)
            squares += float(np.vdot(terms, terms))
            largest = max(largest, float(np.abs(terms / of_label).max()))
        # The variance if labels are shuffled; the terms sum to about 0 over the samples.
        variance = squares / n / (n - 1)
        return is_surely_positive(gain, variance, largest, n_ways)


def find_misplaced_columns(proba: NDArray[Any], codes: NDArray[np.intp]) -> Misplaced | None:
    """Return the order of the columns that surely fits better, None if there is none.

    With Z_k = (p_k - mean p_k) / sqrt(mean p_k) and f_j the frequency of label j, N[j, k] is the
    sum over the samples labelled j of Z_k / (n sqrt(f_j)). If labels are independent of the
    probabilities, every entry has the mean 0. If the probabilities are right, it has the mean
    Cov(p_j, p_k) / sqrt(f_j f_k), and the trace of such a matrix is no smaller than any other sum
    of one entry for each row and column: a larger one shows another order. With several classes,
    the order is chosen on one half of the samples and tested on the other, cycle by cycle.
    """
    return _find_misplaced(_Associations(proba, codes))


def _find_misplaced(whole: _Associations) -> Misplaced | None:
    """Return :func:`find_misplaced_columns` from the associations in all samples."""
    if not np.isfinite(whole.mean).all() or len(whole.codes) < 2:
        return None
    order = whole.order()
    cycles = _find_cycles(order)
    if not cycles:  # whatever the halves show, no column would move
        return None
    n_ways = max(1, len(order) - 2)
    sure: set[int] = set()
    for choosing, testing in whole.halves():
        chosen = choosing.order()
        for cycle in _find_cycles(chosen):
            if testing.surely_gain(cycle, chosen[cycle], n_ways):
                sure.update(cycle.tolist())
    column = np.arange(len(order))
    for cycle in cycles:
        if sure.intersection(cycle.tolist()):
            column[cycle] = order[cycle]
    now, then = (whole.proba[whole.rows, j].mean() for j in (whole.codes, column[whole.codes]))
    # A model may be wrong about some samples and yet have its columns in order.
    return Misplaced(column, float(now), float(then)) if then > now else None


def _draw_half(codes: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return a mask (n,) of a random half of every class."""
    order = np.lexsort((np.random.default_rng(0).random(len(codes)), codes))
    half = np.empty(len(codes), dtype=bool)
    half[order] = np.arange(len(codes)) % 2 == 0
    return half


def _find_cycles(order: NDArray[np.intp]) -> list[NDArray[np.intp]]:
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


def _is_far_below_chance(whole: _Associations) -> bool:
    """Return whether labels surely have smaller probabilities than by chance.

    In the terms of :func:`find_misplaced_columns`, whether the trace of N is surely negative.
    """
    return whole.surely_gain(np.arange(len(whole.mean)), None, 1)


def diagnose_columns(
    proba: NDArray[Any],
    codes: NDArray[np.intp],
    classes: NDArray[Any],
    *,
    is_true: bool = False,
) -> Diagnosis | None:
    """Return what is wrong with the columns (n, K), or the class of (n,), or None.

    With `is_true`, the labels say whether predictions are right: then (n,) may be a confidence.
    """
    is_single = proba.ndim == 1
    n_columns = 2 if is_single else proba.shape[1]
    rows = draw_rows(len(codes), n_columns)
    proba, codes = proba[rows], codes[rows]
    if len(codes) < (2 if is_single else 2 * n_columns):
        return None
    with np.errstate(under="ignore"):
        proba = proba.astype(np.float32, copy=False)
    if is_single:
        proba = np.column_stack([1 - proba, proba])
    names = classes.tolist()
    if is_single and not is_true and is_confidence(proba[:, 1], codes):
        return Diagnosis("predicted class", {"positive": names[1], "frequency": codes.mean()})
    whole = _Associations(proba, codes)
    found = _find_misplaced(whole)
    if found is None and (is_single or not _is_far_below_chance(whole)):
        return None
    if found is None or (len(names) > 2 and _seems_negated(proba, codes, found)):
        return Diagnosis("below chance", {})
    if is_single:
        of_class = {
            name: float(proba[codes == k, 1].mean())
            for k, name in enumerate(("of_negative", "of_positive"))
        }
        return Diagnosis("other class", {"negative": names[0], "positive": names[1], **of_class})
    order = [names[j] for j in np.argsort(found.column)]
    values = {"now": found.now, "then": found.then, "order": _list_order(order, names)}
    return Diagnosis("columns", values)


def diagnose_rows(proba: NDArray[Any], codes: NDArray[np.intp]) -> Diagnosis | None:
    """Return whether probabilities (n, K) or (n,) seem to belong to other rows.

    With d_ik = p_ik - mean p_k, a label y_i drawn from p_i has an expected d_iy of
    sum_k p_ik d_ik, the implied gain. Labels of other rows have an expected d of 0. They are found
    where the implied gain is large, and the mean of d_iy surely below half of it.
    First, p is adapted to the frequencies of the labels, which may differ from those in training.
    """
    rows = draw_rows(len(codes), 2 if proba.ndim == 1 else proba.shape[1])
    proba, codes = proba[rows], codes[rows]
    if len(codes) < 2:
        return None
    if proba.ndim == 1:
        proba = proba.astype(np.float64, copy=False)
        proba = np.column_stack([1 - proba, proba])
    mean = proba.mean(axis=0, dtype=np.float64)
    frequency = np.bincount(codes, minlength=len(mean)) / len(codes)
    # The smallest probabilities may underflow to 0, and a quotient by one of them may overflow.
    common = mean > np.finfo(mean.dtype).tiny
    with np.errstate(under="ignore"):
        factor = np.divide(frequency, mean, out=np.zeros_like(mean), where=common)

    def iter_adapted() -> Iterator[tuple[slice, NDArray[np.float64]]]:
        for rows, block in iter_blocks(proba):
            with np.errstate(under="ignore"):
                adapted = block * factor
                total = compute_row_sum(adapted)[:, None]
                np.divide(adapted, total, out=adapted, where=total > 0)
            yield rows, np.where(total > 0, adapted, block)

    of_label, adapted_sum = np.empty(len(codes)), np.zeros_like(mean)
    for rows, adapted in iter_adapted():
        of_label[rows] = adapted[np.arange(len(adapted)), codes[rows]]
        adapted_sum += adapted.sum(axis=0)
    adapted_mean = adapted_sum / len(codes)
    observed = of_label - adapted_mean[codes]
    # Nothing is found where the labels show a gain of more than two standard errors.
    error = observed.std() / np.sqrt(len(observed))
    if observed.mean() > 2 * error:
        return None
    implied = np.empty(len(codes))
    with np.errstate(under="ignore"):
        for rows, adapted in iter_adapted():
            implied[rows] = np.einsum("ij,ij->i", adapted, adapted - adapted_mean)
    if implied.mean() < _LEAST_GAIN:
        return None
    if not _is_surely_above_0(_LEAST_SHOWN * implied - observed):
        return None
    label, others = proba[np.arange(len(codes)), codes].mean(), frequency @ mean
    lines = "rows" if observed.mean() > -2 * error else "rows or columns"
    return Diagnosis("rows", {"lines": lines, "label": label, "others": others})


def diagnose_swapped(soft_labels: NDArray[np.float64], proba: NDArray[Any]) -> Diagnosis | None:
    """Return whether all probabilities are 0 or 1 although people disagree about labels."""
    if _are_all_0_or_1(proba) and not _are_all_0_or_1(soft_labels):
        return Diagnosis("swapped", {})
    return None


def _are_all_0_or_1(values: NDArray[Any]) -> bool:
    """Return whether all values are 0 or 1, of many rows those of some drawn at random."""
    some = values[draw_rows(len(values), values.shape[-1])]
    return bool(((some == 0) | (some == 1)).all())


def is_confidence(proba: NDArray[Any], codes: NDArray[np.intp]) -> bool:
    """Return whether (n,) is the probability of the predicted class, not of the positive one.

    It is never below a half, surely above the frequency of the positive class, which is no more
    than a half, and no larger where the label is positive.
    """
    # Both comparisons allow for two standard errors. Of 300 models, with 300 samples and with
    # 2 000, .96 and .99 are found; of 300 weak overconfident ones that are never below a half, .22
    # and .03 are taken for it. With one standard error: .91 and .86; .09 and .00.
    n, positive = len(codes), codes == 1
    lowest, highest = proba.min(), proba.max()
    if lowest < 0.5 - _RANGE_OF_HALF or highest - lowest < _RANGE_OF_HALF:  # the same for all
        return False
    if not 0 < positive.sum() < n:
        return False
    if positive.mean() > 0.5 + 2 * np.sqrt(0.25 / n) or not _is_surely_above_0(proba - codes):
        return False
    apart = proba[positive].mean() - proba[~positive].mean()
    spread = proba[positive].var() / positive.sum() + proba[~positive].var() / (~positive).sum()
    return bool(apart < 2 * np.sqrt(spread))


def _seems_negated(proba: NDArray[Any], codes: NDArray[np.intp], found: Misplaced) -> bool:
    """Return whether the least probable class is right more often than the reordered top one."""
    least = np.mean(proba.argmin(axis=1) == codes)
    return bool(least > np.mean(proba[:, found.column].argmax(axis=1) == codes))


def _list_order(order: list[Any], names: list[Any]) -> str:
    """Return the order as text; of more than 12 classes only the columns that move."""
    if len(order) <= _MOST_IN_ORDER:
        return str(order)
    moved = [f"column {k} that of {x!r}" for k, x in enumerate(order) if x != names[k]]
    return ", ".join(moved[:_MOST_MOVED]) + (", ..." if len(moved) > _MOST_MOVED else "")
