"""skorch's training loop, over batches that know which rows they hold."""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import skorch
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..losses import CorrectnessHistory
from ..utils._private import validate_parameters
from ._criterion import check_criterion, criterion_loss, needs_row_values
from ._data import (
    FitRows,
    batched,
    batches_items,
    check_row_values,
    check_X,
    check_y,
    collate,
    dataset_labels,
    encode_labels,
    row_sizes,
    takes,
)
from ._device import AutoDeviceMixin
from ._mixup import Mixup
from ._prioritization import make_prioritizer

# Rows of a forward pass that ranks: more of them fall out of a CPU's cache in convolutions.
_RANKING_BATCH = 1024
_RANKING_BATCH_CPU = 256


class RowNet(AutoDeviceMixin, skorch.NeuralNetClassifier):
    """Data side of :class:`CalibratedNetClassifier`: checks, seeds, rows and their choice.

    Batches reach callbacks and steps as plain ``(X, y)``, as skorch has them; `_rows_` tells which
    rows of the data given to `fit` they hold.
    """

    # The trailing underscore keeps skorch from taking these for parameters.
    _rows_: FitRows | None = None
    _data_sizes_: Mapping[str, int] = MappingProxyType({})

    @contextmanager
    def _fitting(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        difficulty_weight: Any,
        fresh: bool,
        classes: Any = None,
    ) -> Iterator[tuple[Any, Any]]:
        """Check the data, and keep what the loss must know about its rows for one fit."""
        validate_parameters(self)
        if fresh:
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
        if y is None and isinstance(X, torch.utils.data.Dataset):
            y = dataset_labels(X)
        if y is None and self.classes is None and classes is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None and "
                "X shows no labels in an attribute y, targets, labels or tensors."
            )
        given_X, X = X, check_X(self, X, reset=fresh)
        n_rows = skorch.dataset.get_len(X)
        if y is not None:
            y = check_y(self, y, n_rows)
        self._learn_classes(y, fresh, classes)
        self._data_sizes_ = {**row_sizes(X), "n_classes": len(self.classes_)}
        weight = check_row_values("sample_weight", sample_weight, n_rows, non_negative=True)
        hard_weight = check_row_values(
            "difficulty_weight", difficulty_weight, n_rows, non_negative=False
        )
        n_epochs = self.max_epochs + (0 if fresh else len(self.history))
        prioritizer = make_prioritizer(self, given_X, n_rows, n_epochs)
        self._rows_ = FitRows(n_rows, weight, hard_weight, prioritizer)
        try:
            with self._seeded(fresh):
                yield X, y
        finally:
            self._rows_ = None

    def _learn_classes(self, y: Any, fresh: bool, classes: ArrayLike | None) -> None:
        if fresh:
            self.classes_inferred_ = np.unique(y if classes is None else np.asarray(classes))
        known = self.classes_
        if len(known) < 2:
            raise ValueError(
                f"y must hold at least two classes; got one class, {known.tolist()}. Name all "
                "labels in the parameter classes if others may follow."
            )
        if y is not None:
            encode_labels(np.unique(y), known)
        self._labels_are_indices_ = known.dtype.kind in "biuf" and np.array_equal(
            known, np.arange(len(known))
        )

    @contextmanager
    def _seeded(self, fresh: bool) -> Iterator[None]:
        if self.random_state is None:
            yield
            return
        if fresh:
            self.random_state_ = check_random_state(self.random_state)
        device = torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(self.random_state_.randint(np.iinfo(np.int32).max))
            yield

    def check_data(self, X: Any, y: Any = None) -> None:
        """Do nothing: `fit` and `partial_fit` have checked the data."""

    def get_params_for(self, prefix: str) -> dict[str, Any]:
        """Collect arguments, without ``shuffle`` for an iterator that cannot take it."""
        params = super().get_params_for(prefix)
        sampled = "sampler" in params or "batch_sampler" in params
        if prefix == "iterator_train" and (sampled or not takes(self.iterator_train, "shuffle")):
            params.pop("shuffle", None)
        return params

    def initialized_instance(self, instance_or_cls: Any, kwargs: dict[str, Any]) -> Any:
        """Build a module or criterion, or copy the given instance."""
        if isinstance(instance_or_cls, nn.Module) and not kwargs:
            return copy.deepcopy(instance_or_cls)
        return super().initialized_instance(instance_or_cls, kwargs)

    def initialize_module(self) -> Self:
        """Build the module with sizes that come from the data, or copy the given instance."""
        kwargs = self.get_params_for("module")
        if not isinstance(self.module, nn.Module):
            wanted = inspect.signature(self.module).parameters
            kwargs = {k: v for k, v in self._data_sizes_.items() if k in wanted} | kwargs
        self.module_ = self.initialized_instance(self.module, kwargs)
        return self

    def initialize_criterion(self) -> Self:
        """Build the criterion, or copy the given instance."""
        criterion = self.initialized_instance(self.criterion, self.get_params_for("criterion"))
        self._criterion_takes_ = check_criterion(criterion)
        self.criterion_ = criterion
        return self

    def get_dataset(self, X: Any, y: Any = None) -> Any:
        """Return X and y as a dataset, X checked against the data of the fit."""
        if self._rows_ is None:
            X = check_X(self, X, reset=False)
        return super().get_dataset(X, y)

    def get_split_datasets(self, X: Any, y: Any = None, **fit_params: Any) -> tuple[Any, Any]:
        """Split into training and validation rows, as skorch does."""
        dataset = self.get_dataset(X, y)
        train, valid = super().get_split_datasets(dataset, y, **fit_params)
        if self._rows_ is not None:
            self._rows_.dataset = dataset
            self._rows_.train_rows = self._rows_.positions(train)
            if getattr(self.criterion_, "uses_history", False):
                self._rows_.history = self._new_history()
        return train, valid

    def _is_fresh(self, *, restart: bool) -> bool:
        """Tell whether a fit starts from nothing, as after a mere `initialize` as well."""
        return restart or not (self.initialized_ and hasattr(self, "classes_inferred_"))

    def _new_history(self) -> CorrectnessHistory:
        if self.mixup_alpha:
            raise ValueError(
                f"mixup_alpha does not go with {type(self.criterion_).__name__}, which follows "
                "every row by itself."
            )
        return CorrectnessHistory(self._rows_.n_rows)  # type: ignore[union-attr]

    def get_iterator(self, dataset: Any, training: bool = False, *, ranking: bool = False) -> Any:
        """Return an iterator over batches; within a fit these know their rows."""
        prefix = "iterator_train" if training else "iterator_valid"
        build, params = getattr(self, prefix), self.get_params_for(prefix)
        wraps, rows = batches_items(build, params), None
        if wraps:
            rows = None if self._rows_ is None else self._rows_.positions(dataset)
            dataset = batched(dataset, rows, own_collate="collate_fn" in params)
        if training and rows is None and self._rows_ is not None and self._rows_.needed:
            raise ValueError(
                "sample_weight, difficulty_weight and the history of a loss need batches that "
                "know their rows: iterator_train must be a DataLoader, and train_split must "
                "return torch Subsets of the dataset that it is given."
            )
        if ranking and "batch_size" not in params:
            on_cpu = next(self.module_.parameters()).device.type == "cpu"
            size = max(self.batch_size, _RANKING_BATCH_CPU if on_cpu else _RANKING_BATCH)
            iterator = build(dataset, batch_size=size, **params)
        else:
            iterator = super().get_iterator(dataset, training=training)
        if wraps:
            iterator.collate_fn = partial(collate, collate_fn=iterator.collate_fn)
        return iterator

    def run_single_epoch(
        self, iterator: Any, training: bool, prefix: str, step_fn: Any, **fit_params: Any
    ) -> None:
        """Run one epoch over plain batches; before a training epoch, choose its rows."""
        if iterator is None or self._rows_ is None:
            super().run_single_epoch(iterator, training, prefix, step_fn, **fit_params)
            return
        start = time.perf_counter()
        choosing = training and self._rows_.prioritizer is not None
        if choosing:
            iterator, n_chosen = self._choose_rows(self._rows_, iterator)
        chosen = time.perf_counter()
        batches = self._rows_.unwrap(iterator)
        super().run_single_epoch(batches, training, prefix, step_fn, **fit_params)
        if choosing:
            self.history.record("rows_seen", n_chosen)
            self.history.record("selection_dur", chosen - start)
            self.history.record("training_dur", time.perf_counter() - chosen)

    def _choose_rows(self, rows: FitRows, iterator: Any) -> tuple[Any, int]:
        if rows.train_rows is None:
            raise ValueError(
                "selector needs a train_split that returns torch Subsets of the dataset that it "
                "is given."
            )
        predict = lambda: self._predict_rows(rows.subset(rows.train_rows))
        chosen = rows.prioritizer.choose(rows.train_rows, len(self.history) - 1, predict)
        if chosen is not rows.train_rows:
            iterator = self.get_iterator(rows.subset(chosen), training=True)
        return iterator, len(chosen)

    def _predict_rows(self, dataset: Any) -> NDArray[np.floating]:
        """Predict probabilities in large batches, for rows that are to be ranked."""
        batches = self.get_iterator(dataset, ranking=True)
        logits = [first_output(self.evaluation_step(batch)) for batch in batches]
        return torch.softmax(torch.cat(logits).float(), dim=1).cpu().numpy()

    def train_step(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        """Make one step of the optimizer, on mixed rows with `mixup_alpha`."""
        rows = self._rows_
        if rows is not None and self.mixup_alpha:
            X, y = batch
            rows.mixup = Mixup.draw(self.mixup_alpha, skorch.dataset.get_len(X))
            batch = rows.mixup.inputs(X), y
        try:
            step = super().train_step(batch, **fit_params)
        finally:
            if rows is not None:
                rows.mixup = None
        if rows is not None and rows.history is not None:
            logits = first_output(step["y_pred"]).detach().cpu()
            target = self._targets(batch[1], logits)
            rows.history.record(rows.batch_rows.cpu(), logits, target)  # type: ignore[union-attr]
        return step

    def get_loss(self, y_pred: Any, y_true: Any, X: Any = None, training: bool = False) -> Tensor:
        """Return the criterion of the logits, with what belongs to the rows of the batch."""
        logits = first_output(y_pred).float()
        n_classes = len(self.classes_)
        if logits.ndim != 2 or logits.shape[1] != n_classes:
            raise ValueError(
                f"module must give logits of shape (n_samples, n_classes={n_classes}); got shape "
                f"{tuple(logits.shape)}. Where a fold may lack a class, name all labels in the "
                "parameter classes."
            )
        target, rows = self._targets(y_true, logits), self._rows_
        foreign = not training and (rows is None or rows.batch_rows is None)
        if foreign and needs_row_values(self.criterion_):
            # Rows that are no part of the fit have no difficulty weight and no history.
            return cross_entropy(logits, target)
        given = {} if rows is None else rows.batch_values(logits.device)
        if rows is not None and rows.mixup is not None:
            target = rows.mixup.targets(target, n_classes)
            given = rows.mixup.row_values(given)
        return criterion_loss(self.criterion_, logits, target, given, self._criterion_takes_)

    def _targets(self, y_true: Any, logits: Tensor) -> Tensor:
        if not self._labels_are_indices_:
            y_true = encode_labels(y_true, self.classes_)
        return torch.as_tensor(y_true).to(logits.device, torch.long)

    def infer(self, x: Any, **fit_params: Any) -> Any:
        """Compute the outputs of the module, in mixed precision if asked for."""
        if self.mixed_precision is None:
            return super().infer(x, **fit_params)
        device = next(self.module_.parameters()).device.type
        with torch.autocast(device, dtype=torch.bfloat16):
            return super().infer(x, **fit_params)


def first_output(output: Any) -> Tensor:
    """Return the logits of a module that may give more than them."""
    return output[0] if isinstance(output, tuple) else output
