"""Batches that hold the positions of their samples, and that are built quickly.

A DataLoader asks a dataset for a list of positions, collates the items that it gets and yields
the batch. Two datasets here take such a list as a whole: `ItemDataset` returns the items and their
samples, `ArrayDataset` the finished batch, indexed from the arrays in one step.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import skorch.dataset
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Subset


class BatchLabels(NamedTuple):
    """Labels of a batch, and the positions of its samples in the data given to `fit`."""

    labels: Any
    samples: Tensor


class ArrayBatch(NamedTuple):
    """A batch from arrays, which needs no collation."""

    X: Any
    y: Any


class ItemBatch(NamedTuple):
    """The items of a batch before collation, and their samples."""

    items: list[Any]
    samples: Tensor


class ItemDataset(Dataset):
    """The items of any dataset, with the positions of their samples."""

    def __init__(self, dataset: Any, samples: NDArray[np.intp]) -> None:
        self.dataset = dataset
        self.samples = samples

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitems__(self, positions: list[int]) -> ItemBatch:
        # torch's own protocol for a whole list, which Subset and many data sets have.
        if hasattr(self.dataset, "__getitems__"):
            items = self.dataset.__getitems__(positions)
        else:
            items = [self.dataset[i] for i in positions]
        return ItemBatch(items, torch.as_tensor(self.samples[positions]))


class ArrayDataset(Dataset):
    """Batches of a :class:`skorch.dataset.Dataset` over arrays, one indexing operation each.

    Collation item by item costs more than the training step of a small network.
    """

    def __init__(
        self, dataset: skorch.dataset.Dataset, indices: Any, samples: NDArray[np.intp] | None
    ) -> None:
        self.X, self.y = dataset.X, dataset.y
        self.indices = indices
        self.samples = samples

    def __len__(self) -> int:
        return len(self.indices)

    def __getitems__(self, positions: list[int]) -> ArrayBatch:
        # positions count the items of this dataset; its item i is at indices[i] of the arrays.
        at = self.indices[positions]
        X = self.X[at]
        X = torch.as_tensor(X.toarray() if sparse.issparse(X) else X)
        if self.y is None:
            y: Any = torch.zeros(len(at))  # as skorch's dataset does
        else:
            y = self.y[at]
            if isinstance(y, Tensor) or y.dtype.kind in "biuf":
                y = torch.as_tensor(y)
        if self.samples is None:
            return ArrayBatch(X, y)
        return ArrayBatch(X, BatchLabels(y, torch.as_tensor(self.samples[positions])))


def wrap(dataset: Any, samples: NDArray[np.intp] | None, *, own_collate: bool) -> Any:
    """Return `dataset`, wrapped: its batches are built quickly and hold `samples`, if given."""
    # Look through all Subsets at the arrays below: indices of indices are one indexing operation.
    base, indices = dataset, None
    while isinstance(base, Subset):
        inner = np.asarray(base.indices, dtype=np.intp)
        indices = inner if indices is None else inner[indices]
        base = base.dataset
    if is_plain(base) and not own_collate:
        return ArrayDataset(base, np.arange(len(base)) if indices is None else indices, samples)
    return dataset if samples is None else ItemDataset(dataset, samples)


def is_plain(dataset: Any) -> bool:
    """Tell whether `dataset` is skorch's own over arrays, read without transformation."""
    if type(dataset) is not skorch.dataset.Dataset:  # a subclass may transform its items
        return False
    plain = np.ndarray | Tensor
    return isinstance(dataset.X, plain | sparse.csr_matrix) and isinstance(dataset.y, plain | None)


def collate(items: Any, *, collate_fn: Any) -> Any:
    """Return what a dataset returned for positions, collated; y may come with its samples."""
    if isinstance(items, ArrayBatch):
        return tuple(items)
    if not isinstance(items, ItemBatch):  # a plain list: the dataset is not wrapped
        return collate_fn(items)
    X, y = skorch.dataset.unpack_data(collate_fn(items.items))
    return X, BatchLabels(y, items.samples)


def batches_items(iterator: Any, params: Mapping[str, Any]) -> bool:
    """Tell whether `iterator` constructs a DataLoader that makes batches out of items."""
    while isinstance(iterator, partial):
        iterator = iterator.func
    loader = isinstance(iterator, type) and issubclass(iterator, DataLoader)
    # batch_size=None switches batching off: the dataset gives whole batches.
    return loader and params.get("batch_size", 1) is not None
