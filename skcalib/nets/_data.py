"""Batches that know the positions of their samples, and the values that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
import skorch.dataset
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import GroupKFold
from skorch.dataset import ValidSplit
from skorch.utils import to_numpy
from torch import Tensor
from torch.nn.functional import one_hot
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

from ..losses import CorrectnessHistory
from ..utils._compat import StratifiedGroupKFold

# Batches that hold the positions of their samples, and that are built quickly.
#
# A DataLoader asks a dataset for a list of positions, collates the items that it gets and yields
# the batch. Two datasets here take such a list as a whole: `ItemDataset` returns the items and
# their samples, `ArrayDataset` the finished batch, indexed from the arrays in one step.


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
    """Return whether `dataset` is skorch's own over arrays, read without transformation."""
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


def makes_batches(iterator: Any, params: Mapping[str, Any]) -> bool:
    """Return whether `iterator` constructs a DataLoader that makes batches out of items."""
    while isinstance(iterator, partial):
        iterator = iterator.func
    loader = isinstance(iterator, type) and issubclass(iterator, DataLoader)
    # batch_size=None switches batching off: the dataset gives whole batches.
    return loader and params.get("batch_size", 1) is not None


# The positions of the samples of a batch, and the values that belong to them.
#
# Batches reach the module, the steps and the callbacks as plain ``(X, y)``, as skorch has them.
# The values that `fit` was given for every sample are looked up by the position of the sample in
# X::
#
#     fit(X, y, sample_weight=w)   FitInputs          w[i] belongs to sample i of X
#         |
#     train_split                  DataSplit          training items 0, 1, ... are samples 7, 2, ..
#         |
#     DataLoader                   BatchLabels        a batch is (X, (y, [2, 9, ...])), as above
#         |
#     run_single_epoch             FitState.unwrap    keeps [2, 9, ...]; skorch sees (X, y)
#         |
#     get_loss                     batch_values       w[[2, 9, ...]] goes to the criterion,
#                                  batch_target       in training target_proba[[2, 9, ...]] as well
#
# One batch is processed at a time: its positions are set when skorch draws it, and unset after
# the last one. Between epochs, and for data from elsewhere, there are none.


@dataclass(frozen=True)
class FitInputs:
    """The values that `fit` was given for every sample."""

    n_samples: int
    sample_weight: Tensor | None = None
    difficulty_weight: Tensor | None = None
    target_proba: Tensor | None = None
    groups: NDArray[np.intp] | None = None


@dataclass(frozen=True)
class DataSplit:
    """The samples of a fit as one dataset, and which of them are for training.

    `train_samples` is None where `train_split` returned something else than Subsets of `dataset`.
    """

    dataset: Dataset
    n_samples: int
    train_samples: NDArray[np.intp] | None = None

    def positions(self, dataset: Any) -> NDArray[np.intp] | None:
        """Return which samples of the fit `dataset` holds, None if it holds other data."""
        # A Subset of a Subset holds positions in the inner one: resolve from the inside out.
        levels = []
        while dataset is not self.dataset:
            if not isinstance(dataset, Subset):
                return None
            levels.append(np.asarray(dataset.indices, dtype=np.intp))
            dataset = dataset.dataset
        if isinstance(self.dataset, IterableDataset):
            return None
        samples = np.arange(self.n_samples)
        for indices in reversed(levels):
            samples = samples[indices]
        return samples

    def subset(self, samples: NDArray[np.intp]) -> Subset:
        """Return the given samples of the fit as a dataset."""
        return Subset(self.dataset, samples)  # type: ignore[arg-type]


def split_groups(
    train_split: Any, dataset: Dataset, y: Any, groups: NDArray[np.intp], **fit_params: Any
) -> tuple[Any, Any]:
    """Split into training and validation samples that share no group.

    A splitter of scikit-learn in a ValidSplit gets the groups, and so does any other function. A
    number of folds or a fraction stands for folds of groups.
    """
    by_number = isinstance(train_split, ValidSplit) and (
        train_split.cv is None or isinstance(train_split.cv, Number)
    )
    if not by_number:
        parameters = signature(train_split).parameters
        if "groups" not in parameters and all(
            p.kind != p.VAR_KEYWORD for p in parameters.values()
        ):
            raise ValueError(
                "train_split must take groups, as skorch.dataset.ValidSplit does, where fit is "
                f"given groups, got {train_split!r}."
            )
        given = () if y is None else (y,)
        return train_split(dataset, *given, groups=groups, **fit_params)
    cv = 5 if train_split.cv is None else train_split.cv
    n_folds, n_groups = max(round(1 / cv), 2) if cv < 1 else int(cv), len(np.unique(groups))
    if n_groups < n_folds:
        raise ValueError(
            f"groups must have at least {n_folds} values, of which train_split holds out one "
            f"part in {n_folds}, got {n_groups}."
        )
    shuffled = {"shuffle": True, "random_state": train_split.random_state} if cv < 1 else {}
    if y is None:
        folds = GroupKFold(n_folds).split(groups, groups=groups)
    else:
        folds = StratifiedGroupKFold(n_folds, **shuffled).split(groups, to_numpy(y), groups)
    train, valid = next(iter(folds))
    return Subset(dataset, train), Subset(dataset, valid)


@dataclass(frozen=True)
class Mixup:
    """One draw: sample i of a batch becomes ``fraction * i + (1 - fraction) * partner[i]``.

    As in the paper, the fraction is drawn from Beta(alpha, alpha) once per batch.
    """

    fraction: float
    partner: Tensor

    @classmethod
    def draw(cls, alpha: float, n_samples: int) -> Mixup:
        """Draw fraction and partners from torch's generator."""
        fraction = torch.distributions.Beta(alpha, alpha).sample().item()
        # Every sample is some other's partner once; a few may be their own.
        return cls(fraction, torch.randperm(n_samples))

    def inputs(self, X: Any) -> Any:
        """Mix the tensors of a batch, in dicts and sequences as well."""
        if isinstance(X, Mapping):
            return {name: self.inputs(value) for name, value in X.items()}
        if isinstance(X, list | tuple):
            return type(X)(self.inputs(value) for value in X)
        if not X.is_floating_point():
            raise ValueError(f"X must hold floating-point numbers for mixup_alpha, got {X.dtype}.")
        return self._mix(X)

    def targets(self, target: Tensor, n_classes: int) -> Tensor:
        """Mix class indices or probabilities into probabilities, (n_samples, n_classes)."""
        return self._mix(target if target.ndim == 2 else one_hot(target, n_classes).float())

    def batch_values(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """Mix weights and the like in the same fractions."""
        return {name: self._mix(value) for name, value in values.items()}

    def _mix(self, values: Tensor) -> Tensor:
        # lerp(a, b, f) = a + f (b - a) = f b + (1 - f) a.
        return torch.lerp(values[self.partner.to(values.device)], values, self.fraction)


@dataclass
class FitState:
    """The state of a running fit; between fits there is none."""

    inputs: FitInputs
    split: DataSplit | None = None  # from train_split on
    history: CorrectnessHistory | None = None  # the same, for losses that need it
    batch_samples: Tensor | None = None  # while a batch is processed
    mixup: Mixup | None = None  # while a mixed batch is processed
    done: set[str] = field(default_factory=set)  # what `once` has been asked for
    raise_if_interrupted: Callable[[], None] = lambda: None  # of raise_ctrl_c

    def once(self, what: str) -> bool:
        """Return whether this is the first time in the fit that `what` comes up."""
        first = what not in self.done
        self.done.add(what)
        return first

    @property
    def needs_samples(self) -> bool:
        """Whether the loss needs the positions of the samples of a batch."""
        inputs = self.inputs
        given = (inputs.sample_weight, inputs.difficulty_weight, inputs.target_proba, self.history)
        return any(value is not None for value in given)

    def batch_values(self, device: torch.device) -> dict[str, Tensor]:
        """Return the values of the samples of the current batch, by keywords of the criterion."""
        if self.batch_samples is None or not self.needs_samples:
            return {}
        samples = self.batch_samples.to("cpu")
        names = ("sample_weight", "difficulty_weight")
        given = {name: getattr(self.inputs, name) for name in names}
        values = {name: value[samples] for name, value in given.items() if value is not None}
        if self.history is not None:
            values["history"] = self.history.fraction_correct(samples.to(device))
        return {name: value.to(device) for name, value in values.items()}

    def batch_target(self, device: torch.device) -> Tensor | None:
        """Return the class probabilities to train the current batch on, None if none are given."""
        proba = self.inputs.target_proba
        if proba is None or self.batch_samples is None:
            return None
        return proba[self.batch_samples.to("cpu")].to(device)

    def unwrap(self, iterator: Any) -> Iterator[tuple[Any, Any]]:
        """Yield plain (X, y) batches; `batch_samples` holds the positions of the current one."""
        try:
            for X, y in map(skorch.dataset.unpack_data, iterator):
                self.raise_if_interrupted()
                if isinstance(y, BatchLabels):
                    self.batch_samples, y = y.samples, y.labels
                if isinstance(y, list | tuple):  # strings are collated to a tuple
                    y = np.asarray(y)
                yield X, y
        finally:
            self.batch_samples = None
