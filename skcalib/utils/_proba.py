"""Probabilities, soft labels, and one call of a metric: (y_true, y_proba, weights, labels)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import (
    as_array,
    as_floats,
    check_same_length,
    check_weights,
    count_unit,
    is_soft,
    scale_weights,
)
from ._backends import TensorRows, find_accelerated, get_back_end, to_host
from ._labels import (
    as_labels,
    check_column_labels,
    find_positions,
    find_positive,
    format_labels,
    get_column_names,
    match_binary,
    match_columns,
    match_names,
)
from ._numeric import iter_blocks

# Probabilities and logits: type, shape and values.
#
# Probabilities are read in blocks of rows that stay in cache: each block is checked, and the
# caller of :func:`iter_proba_blocks` works on it while it is still there. Nothing is copied.

# Tolerance for the rounding of values beyond 0 and 1 and of row sums, in low precision: where a
# sum may be off, so may the only large entry of its row.
TOLERANCE = 1e-3
# The same for a sum, whose own rounding does not decide: .333 + .333 + .333 is .999.
_MOST_OFF = TOLERANCE + 1e-6
# Sums as near to 1 as this are more likely rounded than of another kind.
_ALMOST_1 = 0.01
# Least probability that a logarithm or a ratio is taken of. A 0 from counted votes or rounding has
# an unknown logit; an infinite one would let a single sample decide the whole fit.
SMALLEST_PROBABILITY = 1e-12
# Probabilities that differ by less may differ only by the rounding of float32.
FLOAT32_ROUNDING = 1e-6
# Least probability that a log-loss is taken of, as in `sklearn.metrics.log_loss`.
LOSS_FLOOR = float(np.finfo(np.float64).eps)


def as_proba(y_proba: Any, *, name: str = "y_proba", in_blocks: bool = False) -> Any:
    """Return floats (n, K) or (n,), with only type and shape checked.

    :func:`iter_proba_blocks` checks the values. With `in_blocks` the caller reads them through
    that function alone: a matrix on an accelerator stays there and comes as `TensorRows`.
    """
    may_be_there = in_blocks and not isinstance(y_proba, np.ndarray)
    there = find_accelerated(y_proba) if may_be_there else None
    proba: Any = as_floats(y_proba, name=name) if there is None else there
    if proba.ndim not in (1, 2):
        raise ValueError(
            f"{name} must have shape (n_samples, n_classes) or (n_samples,), "
            f"got shape {proba.shape}."
        )
    if len(proba) == 0:
        raise ValueError(f"{name} must have at least one row, got shape {proba.shape}.")
    if proba.ndim == 2 and proba.shape[1] < 2:
        raise ValueError(
            f"{name} must have a column for every class, at least two, got shape {proba.shape}; "
            "pass the probability of the positive class alone with shape (n_samples,)."
        )
    return proba


def iter_proba_blocks(
    proba: NDArray[Any] | TensorRows, *, name: str = "y_proba", on_device: bool = False
) -> Iterator[tuple[slice, Any]]:
    """Yield (rows, block) as :func:`iter_blocks` does, every block checked.

    Rows on an accelerator are checked once: it takes as long to wait for it as to compute.
    """
    there = proba if isinstance(proba, TensorRows) else None
    for rows, block in iter_blocks(proba, on_device=True):
        if not (there is not None and there.are_proba) and not _is_block_valid(block):
            _explain_block(to_host(block), rows.start, name)
        yield rows, block if on_device else to_host(block)
    if there is not None:
        there.are_proba = True


def _is_block_valid(block: Any) -> bool:
    """Return whether all values are in [0, 1] and all rows sum to 1, within the tolerances."""
    if not isinstance(block, np.ndarray):
        return _is_tensor_valid(block)
    # In the dtype of the block, so that 1.001 rounded to float32 is within the tolerance.
    kind = np.float64 if block.dtype == np.float64 else np.float32
    lowest, highest = kind(-TOLERANCE), kind(1 + TOLERANCE)
    minimum = block.min()
    # Not `minimum < lowest`, which would let NaN pass.
    if not minimum >= lowest:
        return False
    if block.ndim == 1:
        return bool(block.max() <= highest)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = block @ np.ones(block.shape[1], dtype=kind)
    largest = sums.max()
    off = max(float(largest) - 1, 1 - float(sums.min()))
    # Not `off > ...`, which would let NaN pass.
    if not (off <= _MOST_OFF or off <= _compute_rounding_of_half(block)):
        return False
    # Non-negative rows that sum to at most 1 hold nothing above 1: no pass for the maximum.
    return bool((minimum >= 0 and largest <= highest) or block.max() <= highest)


def _is_tensor_valid(block: Any) -> bool:
    """Return what `_is_block_valid` does for a matrix on an accelerator, in one transfer."""
    torch, _ = get_back_end(block)
    # No product, which a caller's autocast would round.
    sums = block.sum(1)
    minimum, maximum, smallest, largest = to_host(torch.stack([*block.aminmax(), *sums.aminmax()]))
    kind = minimum.dtype.type
    # Not `<`, which would let NaN pass.
    if not (minimum >= kind(-TOLERANCE) and maximum <= kind(1 + TOLERANCE)):
        return False
    off = max(float(largest) - 1, 1 - float(smallest))
    return off <= _MOST_OFF or off <= _compute_rounding_of_half(block)


def _compute_rounding_of_half(block: Any) -> float:
    """Return the rounding error of a row sum if all values fit into 16 bits, else 0.

    As float32, a bfloat16 has 16 trailing zero bits and a float16 has 13.
    """
    xp, _ = get_back_end(block)
    if block.dtype != xp.float32:
        return 0.0
    bits = block.view(xp.int32)
    # Twice the spacing above 1.
    if not (bits & (2**16 - 1)).any():
        return 2.0**-6
    return 0.0 if (bits & (2**13 - 1)).any() else 2.0**-9


def _explain_block(block: NDArray[Any], start: int, name: str) -> None:
    """Raise for the first fault of an invalid block."""
    matrix = block if block.ndim == 2 else block[:, np.newaxis]
    lowest, highest = block.dtype.type(-TOLERANCE), block.dtype.type(1 + TOLERANCE)
    for fault, rule in (
        (np.isnan(matrix), "must not contain NaN"),
        (matrix < lowest, "must hold probabilities in [0, 1]"),
        (matrix > highest, "must hold probabilities in [0, 1]"),
    ):
        if fault.any():
            row, column = np.argwhere(fault)[0]
            value = "NaN" if np.isnan(matrix[row, column]) else float(matrix[row, column])
            place = f"row {start + row}" + (f", column {column}" if block.ndim == 2 else "")
            hint = " If these are percentages, divide them by 100." if _are_percent(block) else ""
            raise ValueError(f"{name} {rule}, got {value} in {place}.{hint}")
    sums = matrix.sum(axis=1, dtype=np.float64)
    row = int(np.argmax(np.abs(sums - 1)))
    raise ValueError(
        f"The rows of {name} must sum to 1, got a sum of {sums[row]:.6g} in row {start + row}."
        f"{_name_kind(matrix, sums)}"
    )


def _are_percent(block: NDArray[Any]) -> bool:
    """Return whether values may be percentages: from 0 to 100, and rows that sum to 100."""
    if not (block.min() >= 0 and 2 < block.max() <= 100):
        return False
    return block.ndim == 1 or bool(np.abs(block.sum(axis=1, dtype=np.float64) - 100).max() <= 1)


def sum_to_1(sums: NDArray[np.float64]) -> bool:
    """Return whether the sums of rows are 1, within the tolerance."""
    return bool(np.abs(sums - 1).max() <= _MOST_OFF)


def are_rounded(proba: NDArray[Any], sums: NDArray[np.float64]) -> bool:
    """Return whether values have two to five decimals, and rounding explains the sums of rows."""
    exact = proba.astype(np.float64)
    for unit in (100, 1000, 10_000, 100_000):
        if (
            np.abs(unit * exact - np.rint(unit * exact)).max()
            <= 4 * unit * np.finfo(proba.dtype).eps
        ):
            # Every one of the values is off by half a unit at most.
            return bool(np.abs(sums - 1).max() <= proba.shape[1] / (2 * unit) + _MOST_OFF)
    return False


def _name_kind(matrix: NDArray[Any], sums: NDArray[np.float64]) -> str:
    """Return what probabilities may be whose rows miss a sum of 1, and what to do with them."""
    if are_rounded(matrix, sums) or np.abs(sums - 1).max() <= _ALMOST_1:
        return " If rounding did that, divide every row by its sum."
    if len(sums) < 2 or (np.abs(sums - 1) <= TOLERANCE).mean() > 0.1:  # a few wrong rows
        return ""
    steps = np.diff(matrix, axis=1)
    if matrix.shape[1] > 2 and ((steps >= 0).all() or (steps <= 0).all()):
        return (
            " All rows are in order, as cumulative probabilities of ordered classes (ordinal): "
            "take the differences of neighboring columns."
        )
    return (
        " If every column is a probability of its own (multilabel), take "
        "multilabel_calibration_error, and fit one calibrator per label."
    )


def check_values(proba: NDArray[Any], *, name: str = "y_proba") -> None:
    """Raise unless every probability and every row is valid."""
    for _ in iter_proba_blocks(proba, name=name, on_device=True):
        pass


def holds_proba(scores: NDArray[Any]) -> bool:
    """Return whether every row of (n, K) could be class probabilities."""
    return all(_is_block_valid(block) for _, block in iter_blocks(scores))


def check_proba_matrix(y_proba: ArrayLike, *, name: str = "y_proba") -> NDArray[Any]:
    """Return class probabilities as an (n, K) array, dtype kept (float16, 32 or 64), no copy."""
    proba: NDArray[Any] = as_floats(y_proba, name=name)
    if proba.ndim == 1 or proba.shape[1:] == (1,):
        raise ValueError(
            f"{name} must have a column for every class, at least two, got shape {proba.shape}; "
            "np.column_stack([1 - p, p]) makes two of the probability p of the positive class."
        )
    proba = as_proba(proba, name=name)
    check_values(proba, name=name)
    return proba


def label_log_loss(proba: NDArray[Any], codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return -log of the probability of every label, (n,): at most 36.04, at `LOSS_FLOOR`."""
    of_label = np.take_along_axis(proba, codes[:, np.newaxis], axis=1)[:, 0]
    # From 0, so that a probability of 1 has the loss 0.0 and not -0.0.
    return 0.0 - np.log(np.maximum(of_label.astype(np.float64), LOSS_FLOOR))


def add_unseen(proba: NDArray[Any], count: float) -> NDArray[np.float64]:
    """Return (count p + 4 / K) / (count + 4): with four samples spread evenly over K classes."""
    n_classes = 2 if proba.ndim == 1 else proba.shape[1]
    return (count * proba + 4 / n_classes) / (count + 4)


# Soft labels: fractions of people, (n_samples, n_classes), with rows that sum to 1.
#
# Such a sample counts as one row for every class with a positive fraction, weighted by it.


class ExpandedRows(NamedTuple):
    """One row for every positive fraction, sample after sample; the arrays are (n_rows,)."""

    samples: NDArray[np.intp]
    codes: NDArray[np.intp]
    weight: NDArray[np.float64]


def as_soft_labels(y: ArrayLike, *, name: str) -> NDArray[np.float64]:
    """Return soft labels as float64, (n_samples, n_classes); rounding below 0 counts as 0."""
    try:
        soft_labels = as_proba(y, name=name)
        check_values(soft_labels, name=name)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        several = "take multilabel_calibration_error, and fit one calibrator per label: " + (
            "fit(X[:, j], y[:, j])"
        )
        if kind is ValueError and np.isin(np.asarray(y), (0, 1)).all():
            n_labels = np.asarray(y).sum(axis=1)
            row = int(np.argmax(n_labels != 1))
            raise ValueError(
                f"{name} must hold one label for every sample, got {n_labels[row]:g} in row {row} "
                f"(multilabel): {several}."
            ) from error
        raise kind(
            f"{str(error)[:-1]}. Labels have shape (n,); with a column for every class {name} "
            f"holds soft labels, whose rows sum to 1. Where a sample may have several labels, "
            f"{several}."
        ) from error
    return np.maximum(soft_labels.astype(np.float64, copy=False), 0.0)


def expand_soft_labels(
    soft_labels: NDArray[np.float64], weight: NDArray[np.float64] | None = None
) -> ExpandedRows:
    """Return one row for every positive fraction, of weight fraction times sample weight."""
    samples, codes = np.nonzero(soft_labels)
    fraction = soft_labels[samples, codes]
    return ExpandedRows(samples, codes, fraction if weight is None else fraction * weight[samples])


def as_two_columns(part: NDArray[Any]) -> NDArray[Any]:
    """Return binary labels as 0 or 1, (n,); fractions of yes become (no, yes), (n, 2)."""
    if part.dtype.kind == "f":
        return np.column_stack([1 - part, part])
    return part.astype(np.intp)


def match_soft_labels(
    soft_labels: NDArray[np.float64],
    columns: list[Any] | None,
    classes: NDArray[Any] | None,
    n_classes: int,
    *,
    names: tuple[str, str, str] = ("y_true", "y_proba", "labels"),
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return soft labels with their columns in the order of the classes, and the classes.

    `columns` names the columns of `soft_labels`, `classes` those of the probabilities. Where
    `classes` is None, the classes are these names, which must be sorted, or 0, ..., n_classes - 1.
    """
    name, of_proba, of_classes = names
    if soft_labels.shape[1] != n_classes:
        raise ValueError(
            f"{name} must hold a fraction for every class of {of_proba}, {n_classes}, "
            f"got {soft_labels.shape[1]} columns."
        )
    named = None if columns is None else find_classes(columns)
    if classes is None:
        if named is None:
            return soft_labels, np.arange(n_classes)
        if not np.array_equal(named, np.unique(named)):
            raise ValueError(
                f"{of_classes} must be given where the columns of {name} have names that are not "
                f"sorted and those of {of_proba} have none, got {format_labels(named)}."
            )
        return soft_labels, named
    if named is None:
        return soft_labels, classes
    positions = find_positions(classes, named)
    if positions.min() < 0 or len(set(positions.tolist())) < n_classes:
        raise ValueError(
            f"{name} must have columns that are named by the classes, {format_labels(classes)}, "
            "or no "
            f"names, got {format_labels(named)}."
        )
    return soft_labels[:, positions], classes


def match_two_soft_labels(
    soft_labels: NDArray[np.float64],
    names: list[Any] | None,
    *,
    labels: NDArray[Any] | None,
    pos_label: Any,
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return soft labels of (negative, positive), (n, 2), and these two classes."""
    if labels is not None:
        check_column_labels(labels, 2, what="for y_proba of shape (n_samples,)")
    soft_labels, classes = match_soft_labels(soft_labels, names, labels, 2)
    if pos_label is None:
        return soft_labels, classes
    if labels is None and names is None:
        raise ValueError(
            "labels must name the columns of y_true where pos_label is given, got None."
        )
    if find_positive(pos_label, classes):
        return soft_labels, classes
    return soft_labels[:, ::-1], classes[::-1]


def find_classes(names: list[Any]) -> NDArray[Any] | None:
    """Return the labels that columns are named by, None where they are numbered."""
    prefix = str(names[0]).removesuffix("0")
    if names == [f"{prefix}{k}" for k in range(len(names))]:
        return None
    return as_labels(names, name="names of columns")


# Validation of (y_true, y_proba, sample_weight, labels, pos_label), and of X and y.
#
# X and y of an estimator get scikit-learn's checks, and errors that name the argument.


class Predictions(NamedTuple):
    """Validated labels, probabilities and weights of one call.

    ``truth`` is the column of the true class, (n,), or the fractions of all classes, (n, K); where
    ``proba`` is (n,), 1 means positive, and soft labels have two columns. ``proba`` is an array
    or, with deferred values, possibly the rows of a tensor. ``weight`` is float64 or None, scaled
    by :func:`scale_weights`: the given weights are ``unit`` times it. ``classes`` are the labels
    in column order, (K,).
    """

    truth: NDArray[Any]
    proba: Any
    weight: NDArray[np.float64] | None
    classes: NDArray[Any]
    unit: float

    @property
    def counts(self) -> NDArray[np.float64] | None:
        """Weights as numbers of samples, for the metrics in which their scale matters."""
        return None if self.weight is None else self.weight * count_unit(self.unit)

    @property
    def codes(self) -> NDArray[np.intp]:
        """The column of the true class, (n,); soft labels are an error."""
        if self.is_soft:
            raise ValueError(
                "y_true must hold one label for every sample here, got soft labels of shape "
                f"{self.truth.shape}."
            )
        return self.truth

    @property
    def is_soft(self) -> bool:
        return self.truth.ndim == 2

    def of_class(self, k: int, rows: slice = slice(None)) -> NDArray[Any]:
        """Return whether samples are of class k, (n,), or their fractions of it."""
        truth = self.truth[rows]
        return truth[:, k] if self.is_soft else truth == k

    def of_columns(self, columns: NDArray[Any], rows: slice = slice(None)) -> NDArray[Any]:
        """Return whether ``columns[i]`` is the true class of sample i, or its fraction there."""
        truth = self.truth[rows]
        if self.is_soft:
            columns = columns.astype(np.intp, copy=False)
            return np.take_along_axis(truth, columns[:, np.newaxis], axis=1)[:, 0]
        return truth == columns

    def as_rows(self) -> tuple[Predictions, NDArray[np.intp]]:
        """Return one row for every positive fraction, weighted by it, and the sample of every row.

        A mean over samples equals the weighted mean over these rows.
        """
        samples, codes, weight = expand_soft_labels(self.truth, self.weight)
        proba = to_host(self.proba[:])[samples]
        return self._replace(truth=codes, proba=proba, weight=weight), samples


def check_predictions(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    *,
    defer_values: bool = False,
) -> Predictions:
    """Validate one call of a metric.

    `y_true` holds labels, or soft labels: a column for every class, rows that sum to 1.
    `labels` names the columns of `y_proba`, in order; columns of a DataFrame that are named by
    labels are matched by name. Without either, integers in 0..K-1 are taken as columns, and other
    labels are sorted. `pos_label` is only for `y_proba` of shape (n,); without it, the positive
    class is the second of `labels`, or 1 among {0, 1} or {-1, 1}. With `defer_values`, the caller
    has to read the probabilities through :func:`iter_proba_blocks`, which checks them then: they
    may be rows of a tensor on an accelerator.
    """
    try:
        proba = as_proba(y_proba, in_blocks=defer_values)
        soft = is_soft(y_true)
        y = as_soft_labels(y_true, name="y_true") if soft else as_labels(y_true, name="y_true")
    except (TypeError, ValueError) as error:
        if _seem_swapped(y_true, y_proba):
            raise type(error)(f"{str(error)[:-1]}; y_true and y_proba seem swapped.") from error
        raise
    check_same_length(y_true=y, y_proba=proba)
    weight, unit = scale_weights(check_weights(sample_weight, len(y)))
    known = None if labels is None else as_labels(labels, name="labels")
    if proba.ndim == 2 and pos_label is not None:
        raise ValueError(
            "pos_label is for y_proba of shape (n_samples,), the probability of the positive "
            f"class, got pos_label={pos_label!r} with y_proba of shape {proba.shape}."
        )
    names = get_column_names(y_proba) if proba.ndim == 2 else None
    truth: NDArray[Any]
    if soft:
        if as_array(y_proba, name="y_proba").dtype.kind in "biu":
            raise ValueError(
                "y_proba must hold probabilities where y_true holds soft labels, got "
                "integers; y_true and y_proba seem swapped."
            )
        truth, proba, classes = _match_all(
            y, get_column_names(y_true), proba, names, known, pos_label
        )
    elif proba.ndim == 1:
        truth, classes = match_binary(y, labels=known, pos_label=pos_label)
    else:
        if names is not None:
            proba, known = match_names(proba, names, y, known)
        truth, classes = match_columns(y, labels=known, n_columns=proba.shape[1])
    if not defer_values:
        check_values(proba)
    return Predictions(truth, proba, weight, classes, unit)


def _match_all(
    soft_labels: NDArray[np.float64],
    names_of_soft: list[Any] | None,
    proba: Any,
    names: list[Any] | None,
    labels: NDArray[Any] | None,
    pos_label: Any,
) -> tuple[NDArray[np.float64], Any, NDArray[Any]]:
    """Return soft labels and probabilities with their columns in one order, and the classes."""
    if proba.ndim == 1:
        named = match_two_soft_labels(
            soft_labels, names_of_soft, labels=labels, pos_label=pos_label
        )
        return named[0], proba, named[1]
    if labels is not None:
        check_column_labels(labels, proba.shape[1], what="one for every column of y_proba")
        if names is not None:
            proba, _ = match_names(proba, names, labels, labels)
    elif names is not None:
        labels = find_classes(names)
        if labels is not None:
            check_column_labels(labels, proba.shape[1], what="names of the columns of y_proba")
    soft_labels, classes = match_soft_labels(soft_labels, names_of_soft, labels, proba.shape[1])
    return soft_labels, proba, classes


def _seem_swapped(y_true: ArrayLike, y_proba: ArrayLike) -> bool:
    """Return whether the two arguments would be valid in the other order."""
    try:
        as_labels(y_proba, name="")
        check_values(as_proba(y_true))
        # Integers 0 and 1 could be labels as well as probabilities.
        return as_array(y_true, name="").dtype.kind == "f"
    except (TypeError, ValueError):
        return False
