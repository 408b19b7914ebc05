"""Validation of (y_true, y_proba, sample_weight, labels, pos_label), and of X and y.

X and y of an estimator get scikit-learn's checks, and errors that name the argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.utils import assert_all_finite, gen_batches
from sklearn.utils import validation as sklearn_validation

from ..computing._blocks import BLOCK_SIZE
from ..computing._tensors import TensorRows, on_accelerator
from ._arrays import (
    as_array,
    as_features,
    as_floats,
    check_same_length,
    check_weights,
    count_unit,
    holds_shares,
    naming,
    refuse_nested,
    scale_weights,
    to_host,
)
from ._labels import (
    as_labels,
    check_column_labels,
    column_names,
    match_binary,
    match_columns,
    match_names,
)
from ._proba import as_proba, check_values
from ._shares import (
    as_shares,
    classes_of_names,
    match_shares,
    match_two_shares,
    rows_of,
)


class Predictions(NamedTuple):
    """Validated labels, probabilities and weights of one call.

    ``truth`` is the column of the true class, (n,), or the shares of all classes, (n, K); where
    ``proba`` is (n,), 1 means positive, and shares have two columns. ``proba`` is an array or,
    with deferred values, possibly the rows of a tensor. ``weight`` is float64 or None, scaled by
    :func:`scale_weights`: the given weights are ``unit`` times it. ``classes`` are the labels in
    column order, (K,).
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
        """The column of the true class, (n,); shares are an error."""
        if self.has_shares:
            raise ValueError(
                "y_true must hold one label for every sample here, got shares of shape "
                f"{self.truth.shape}."
            )
        return self.truth

    @property
    def has_shares(self) -> bool:
        return self.truth.ndim == 2

    def of_class(self, k: int, rows: slice = slice(None)) -> NDArray[Any]:
        """Return whether samples are of class k, (n,), or their shares of it."""
        truth = self.truth[rows]
        return truth[:, k] if self.has_shares else truth == k

    def of_columns(self, columns: NDArray[np.intp], rows: slice = slice(None)) -> NDArray[Any]:
        """Return whether ``columns[i]`` is the true class of sample i, or its share there."""
        truth = self.truth[rows]
        if self.has_shares:
            return np.take_along_axis(truth, columns[:, np.newaxis], axis=1)[:, 0]
        return truth == columns

    def as_rows(self) -> tuple[Predictions, NDArray[np.intp]]:
        """Return one row for every positive share, weighted by it, and the sample of every row.

        A mean over samples equals the weighted mean over these rows.
        """
        samples, codes, weight = rows_of(self.truth, self.weight)
        proba = to_host(self.proba[:])[samples]
        return self._replace(truth=codes, proba=proba, weight=weight), samples


def check_ndim(array: NDArray, name: str, ndim: tuple[int, ...]) -> None:
    """Raise unless an array has one of the allowed numbers of dimensions, and is not empty."""
    if array.ndim not in ndim or array.size == 0:
        dims = "- or ".join(map(str, ndim))
        raise ValueError(
            f"{name} must be {dims}-dimensional and not empty, got shape {array.shape}."
        )


def check_numbers(values: ArrayLike, name: str, *, ndim: tuple[int, ...]) -> NDArray:
    """Return finite floats with one of the allowed numbers of dimensions."""
    array = as_floats(values, name=name)
    check_ndim(array, name, ndim)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
    return array


def check_mask(mask: ArrayLike, shape: tuple[int, ...], name: str) -> NDArray[np.bool_]:
    """Return a mask of this shape."""
    array = np.asarray(mask)
    if array.dtype != bool or array.shape != shape:
        raise ValueError(
            f"{name} must be boolean and of shape {shape}, got dtype {array.dtype} and shape "
            f"{array.shape}."
        )
    return array


def check_texts(texts: Sequence[str], name: str) -> list[str]:
    """Return the texts as a list, at least one."""
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{name} must be a sequence of str, got {texts!r}.")
    if len(texts) == 0:
        raise ValueError(f"{name} must hold at least one text, got none.")
    return list(texts)


def check_has(value: Any, *attributes: str, name: str, what: str) -> None:
    """Raise unless `value`, which is called `name` and must be `what`, has these attributes."""
    for attribute in attributes:
        if not hasattr(value, attribute):
            raise TypeError(
                f"{name} must be {what}, got {type(value).__name__}, which has no {attribute}."
            )


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

    `y_true` holds labels, or shares of people: a column for every class, rows that sum to 1.
    `labels` names the columns of `y_proba`, in order; columns of a DataFrame that are named by
    labels are matched by name. Without either, integers in 0..K-1 are taken as columns, and other
    labels are sorted. `pos_label` is only for `y_proba` of shape (n,); without it, the positive
    class is the second of `labels`, or 1 among {0, 1} or {-1, 1}. With `defer_values`, the caller
    has to read the probabilities through :func:`iter_proba_blocks`, which checks them then: they
    may be rows of a tensor on an accelerator.
    """
    try:
        proba = as_proba(y_proba, in_blocks=defer_values)
        shares = holds_shares(y_true)
        y = as_shares(y_true, name="y_true") if shares else as_labels(y_true, name="y_true")
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
    names = column_names(y_proba) if proba.ndim == 2 else None
    truth: NDArray[Any]
    if shares:
        if as_array(y_proba, name="y_proba").dtype.kind in "biu":
            raise ValueError(
                "y_proba must hold probabilities where y_true holds shares of people, got "
                "integers; y_true and y_proba seem swapped."
            )
        truth, proba, classes = _match_all(y, column_names(y_true), proba, names, known, pos_label)
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
    shares: NDArray[np.float64],
    names_of_shares: list[Any] | None,
    proba: Any,
    names: list[Any] | None,
    labels: NDArray[Any] | None,
    pos_label: Any,
) -> tuple[NDArray[np.float64], Any, NDArray[Any]]:
    """Return shares and probabilities with their columns in one order, and the classes."""
    if proba.ndim == 1:
        named = match_two_shares(shares, names_of_shares, labels=labels, pos_label=pos_label)
        return named[0], proba, named[1]
    if labels is not None:
        check_column_labels(labels, proba.shape[1], what="one for every column of y_proba")
        if names is not None:
            proba, _ = match_names(proba, names, labels, labels)
    elif names is not None:
        labels = classes_of_names(names)
        if labels is not None:
            check_column_labels(labels, proba.shape[1], what="names of the columns of y_proba")
    shares, classes = match_shares(shares, names_of_shares, labels, proba.shape[1])
    return shares, proba, classes


def _seem_swapped(y_true: ArrayLike, y_proba: ArrayLike) -> bool:
    """Tell whether the two arguments would be valid in the other order."""
    try:
        as_labels(y_proba, name="")
        check_values(as_proba(y_true))
        # Integers 0 and 1 could be labels as well as probabilities.
        return as_array(y_true, name="").dtype.kind == "f"
    except (TypeError, ValueError):
        return False


def validate_data(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    ensure_all_finite: bool = True,
    **options: Any,
) -> Any:
    """Validate by scikit-learn's function of the same name.

    Tensors are read. Masks, dates and durations, which scikit-learn would misread, are errors.
    """
    X = as_features(X)
    refuse_nested(X, name="X")
    is_half = isinstance(X, np.ndarray) and X.dtype == np.float16
    by_sum = ensure_all_finite and not is_half
    with naming("X", "y"):
        validated = sklearn_validation.validate_data(
            estimator, X, y, ensure_all_finite=by_sum, **options
        )
        if ensure_all_finite and is_half and not get_config()["assume_finite"]:
            _check_half_finite(X, type(estimator).__name__)
    return validated


def validate_rows(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    ensure_all_finite: bool = True,
    **options: Any,
) -> Any:
    """Validate as `validate_data` does; on an accelerator a tensor stays, as `TensorRows`."""
    if not on_accelerator(X) or (X.ndim != 2 and not options.get("allow_nd")):
        return validate_data(estimator, X, y, ensure_all_finite=ensure_all_finite, **options)
    # scikit-learn checks everything but the values on a matrix of that shape without memory.
    stand_in = np.broadcast_to(np.zeros((), complex if X.is_complex() else float), X.shape)
    with naming("X", "y"):
        validated = sklearn_validation.validate_data(
            estimator, stand_in, y, ensure_all_finite=False, **options
        )
    rows = TensorRows(X)
    if ensure_all_finite:
        rows.check_finite(estimator_name=type(estimator).__name__, input_name="X")
    return (rows, validated[1]) if isinstance(validated, tuple) else rows


def _check_half_finite(X: NDArray[np.float16], estimator_name: str) -> None:
    """Raise what scikit-learn would raise for NaN and infinity in float16.

    It adds up all values, which overflows, and then makes a mask as large as the data.
    """
    for rows in gen_batches(len(X), max(1, BLOCK_SIZE // X.shape[1])):
        if not np.isfinite(X[rows]).all():
            assert_all_finite(X[rows], estimator_name=estimator_name, input_name="X")
