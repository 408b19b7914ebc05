"""Rows on their way to the loss: checked input, and batches that know their rows."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import skorch.dataset
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data
from skorch.helper import SliceDataset
from skorch.utils import to_numpy
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Subset

from ..utils._labels import class_positions


class RowLabels(NamedTuple):
    """Labels of a batch and the positions of its rows in the data given to `fit`."""

    labels: Any
    rows: Tensor


class RowBatch(NamedTuple):
    """A batch that was taken from arrays at once and needs no collation."""

    X: Any
    y: Any


class RowItems(NamedTuple):
    """The items of a batch before collation, and their rows."""

    items: list[Any]
    rows: Tensor


@dataclass
class FitRows:
    """What a running fit knows about every row, and which rows are in the current batch."""

    n_rows: int
    sample_weight: Tensor | None = None
    difficulty_weight: Tensor | None = None
    prioritizer: Any = None
    dataset: Any = None
    train_rows: NDArray[np.intp] | None = None
    history: Any = None
    batch_rows: Tensor | None = None
    mixup: Any = None

    @property
    def needed(self) -> bool:
        """Whether the loss must know the rows of a batch."""
        given = self.sample_weight is not None or self.difficulty_weight is not None
        return given or self.history is not None

    def batch_values(self, device: torch.device) -> dict[str, Tensor]:
        """Return what was given for the rows of the current batch."""
        if self.batch_rows is None or not self.needed:
            return {}
        rows = self.batch_rows.to("cpu")
        given = {"sample_weight": self.sample_weight, "difficulty_weight": self.difficulty_weight}
        values = {name: v[rows] for name, v in given.items() if v is not None}
        if self.history is not None:
            values["history"] = self.history.share(rows)
        return {name: value.to(device) for name, value in values.items()}

    def positions(self, dataset: Any) -> NDArray[np.intp] | None:
        """Return the rows of the fit that `dataset` holds, None if it holds other data."""
        chain = []
        while dataset is not self.dataset:
            if not isinstance(dataset, Subset):
                return None
            chain.append(np.asarray(dataset.indices, dtype=np.intp))
            dataset = dataset.dataset
        rows = np.arange(self.n_rows)
        for indices in reversed(chain):
            rows = rows[indices]
        return rows

    def subset(self, rows: NDArray[np.intp]) -> Subset:
        """Return the given rows of the fit as a dataset."""
        return Subset(self.dataset, rows)  # type: ignore[arg-type]

    def unwrap(self, iterator: Any) -> Iterator[tuple[Any, Any]]:
        """Yield plain (X, y) batches, and remember meanwhile which rows they hold."""
        try:
            for X, y in map(skorch.dataset.unpack_data, iterator):
                if isinstance(y, RowLabels):
                    self.batch_rows, y = y.rows, y.labels
                if isinstance(y, list | tuple):  # the collation of strings
                    y = np.asarray(y)
                yield X, y
        finally:
            self.batch_rows = None


class RowDataset(Dataset):
    """Items of a dataset together with their row numbers, a batch at a time."""

    def __init__(self, dataset: Any, rows: NDArray[np.intp]) -> None:
        self.dataset = dataset
        self.rows = rows

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitems__(self, positions: list[int]) -> RowItems:
        if hasattr(self.dataset, "__getitems__"):
            items = self.dataset.__getitems__(positions)
        else:
            items = [self.dataset[i] for i in positions]
        return RowItems(items, torch.as_tensor(self.rows[positions]))


class ArrayDataset(Dataset):
    """Batches of a :class:`skorch.dataset.Dataset` over arrays, one indexing operation each.

    Collation row by row costs more than the training step of a small network.
    """

    def __init__(self, dataset: skorch.dataset.Dataset, indices: Any, rows: Any) -> None:
        self.X, self.y = dataset.X, dataset.y
        self.indices = indices
        self.rows = rows

    def __len__(self) -> int:
        return len(self.indices)

    def __getitems__(self, positions: list[int]) -> RowBatch:
        at = self.indices[positions]
        X = self.X[at]
        X = torch.as_tensor(X.toarray() if sparse.issparse(X) else X)
        if self.y is None:
            y: Any = torch.zeros(len(at))
        else:
            y = self.y[at]
            if isinstance(y, Tensor) or y.dtype.kind in "biuf":
                y = torch.as_tensor(y)
        if self.rows is None:
            return RowBatch(X, y)
        return RowBatch(X, RowLabels(y, torch.as_tensor(self.rows[positions])))


def collate(items: Any, *, collate_fn: Any) -> Any:
    """Collate items, unless they come as a batch already; keep the row numbers aside."""
    if isinstance(items, RowBatch):
        return tuple(items)
    if not isinstance(items, RowItems):
        return collate_fn(items)
    X, y = skorch.dataset.unpack_data(collate_fn(items.items))
    return X, RowLabels(y, items.rows)


def is_fast(dataset: Any) -> bool:
    """Tell whether `dataset` is skorch's own over plain arrays, read without transformation."""
    if type(dataset) is not skorch.dataset.Dataset:
        return False
    plain = np.ndarray | Tensor
    return isinstance(dataset.X, plain | sparse.csr_matrix) and isinstance(dataset.y, plain | None)


def batched(dataset: Any, rows: NDArray[np.intp] | None, *, own_collate: bool) -> Any:
    """Wrap `dataset` so that batches are quick to build and, with `rows`, know their rows."""
    base, indices = dataset, None
    while isinstance(base, Subset):
        below = np.asarray(base.indices, dtype=np.intp)
        indices = below if indices is None else below[indices]
        base = base.dataset
    if is_fast(base) and not own_collate:
        return ArrayDataset(base, np.arange(len(base)) if indices is None else indices, rows)
    return dataset if rows is None else RowDataset(dataset, rows)


def takes(function: Any, name: str) -> bool:
    """Tell whether a function or class takes an argument of that name."""
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def batches_items(iterator: Any, params: Mapping[str, Any]) -> bool:
    """Tell whether `iterator` constructs a DataLoader that makes batches out of items."""
    while isinstance(iterator, partial):
        iterator = iterator.func
    loader = isinstance(iterator, type) and issubclass(iterator, DataLoader)
    return loader and params.get("batch_size", 1) is not None


def check_X(net: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """Return arrays and data frames as finite float32; leave what only skorch knows as it is."""
    if isinstance(X, Tensor) and X.is_floating_point() and X.device.type == "cpu":
        X = X.detach().numpy()
    if isinstance(X, Dataset | SliceDataset | Mapping | tuple | Tensor) and not sparse.issparse(X):
        return X
    X = validate_data(net, X, reset=reset, dtype=np.float32, accept_sparse="csr", allow_nd=True)
    # A row of a sparse array has one dimension, which skorch's Dataset does not expect.
    return sparse.csr_matrix(X) if sparse.issparse(X) else X


def row_sizes(X: Any) -> dict[str, int]:
    """Return the sizes of a row that a module may ask for, none where X shows no shape."""
    if isinstance(X, Dataset | SliceDataset):
        row = X[0][0] if isinstance(X, Dataset) else X[0]
        shape = tuple(getattr(row, "shape", ()))
    else:
        shape = tuple(X.shape[1:]) if hasattr(X, "shape") else ()
    return {"n_features": math.prod(shape), "n_channels": shape[0]} if shape else {}


def check_y(net: BaseEstimator, y: Any, n_rows: int) -> NDArray[Any]:
    """Return `y` as an array of `n_rows` class labels."""
    y = column_or_1d(to_numpy(y) if isinstance(y, Tensor | SliceDataset) else y, warn=True)
    assert_all_finite(y, input_name="y", estimator_name=type(net).__name__)
    try:
        np.unique(y)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y})
        raise ValueError(f"y must hold labels of one type; got {', '.join(kinds)}.") from None
    check_classification_targets(y)
    if len(y) != n_rows:
        raise ValueError(
            f"X and y must have the same number of rows; got inconsistent numbers of samples: "
            f"{n_rows} and {len(y)}."
        )
    return y


def dataset_labels(dataset: Any) -> Any:
    """Return the labels that a dataset shows in an attribute, None if it shows none."""
    if isinstance(dataset, Subset):
        labels = dataset_labels(dataset.dataset)
        return None if labels is None else np.asarray(labels)[np.asarray(dataset.indices)]
    if isinstance(dataset, torch.utils.data.TensorDataset):
        return dataset.tensors[-1]
    for name in ("y", "targets", "labels"):
        if getattr(dataset, name, None) is not None:
            return getattr(dataset, name)
    return None


def check_row_values(
    name: str, values: ArrayLike | None, n_rows: int, *, non_negative: bool
) -> Tensor | None:
    """Return one finite float32 number a row as a tensor, None where none are given."""
    if values is None:
        return None
    array = check_array(values, ensure_2d=False, dtype=np.float32, input_name=name)
    if array.shape != (n_rows,):
        raise ValueError(
            f"{name} must hold one number for every row of X, shape ({n_rows},); "
            f"got shape {array.shape}."
        )
    if non_negative and (array < 0).any():
        raise ValueError(f"{name} must not be negative; got {array.min():g}.")
    if non_negative and not array.any():
        raise ValueError(f"{name} must be positive for at least one row; got zeros only.")
    return torch.from_numpy(array.copy())


def encode_labels(labels: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the positions of `labels` in `classes`, which need not be sorted."""
    labels = to_numpy(labels) if isinstance(labels, Tensor) else np.asarray(labels)
    positions = class_positions(labels, classes)
    unknown = positions < 0
    if unknown.any():
        raise ValueError(
            f"y must hold labels from classes {classes.tolist()} only; "
            f"got {np.unique(labels[unknown]).tolist()[:5]}."
        )
    return positions
