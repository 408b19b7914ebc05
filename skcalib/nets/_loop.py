"""skorch's training loop, over batches that hold the positions of their samples.

The steps of `fit`; those with * are of this package::

    fit                  * _fitting: check the data, seed, keep FitState for the time of the fit,
                         raise Ctrl-C, which skorch swallows
      on_train_begin
      fit_loop
        get_split_datasets   * keep which samples are for training
        get_iterator         * batches hold the positions of their samples
        for every epoch:
          run_single_epoch   * choose the samples of the epoch; hand out plain (X, y) batches
            train_step       * mixup; keep which samples were classified correctly
              infer
              get_loss       * the criterion of the logits and of what belongs to the samples
            * check that losses and parameters are finite
          run_single_epoch   the same over the validation samples, if there are any
      on_train_end
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import skorch.dataset
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.data import IterableDataset

from ..losses import CorrectnessHistory
from ..utils._backends import raise_ctrl_c
from ..utils._compat import validate_parameters
from ..utils._output import warn
from ._checks import (
    check_callbacks,
    check_class_names,
    check_difficulty_weight,
    check_finite,
    check_inputs,
    check_logits,
    check_modes_of_torch,
    check_no_sampler,
    check_streamed,
    check_X,
    check_y,
    get_labels,
    get_sizes,
    warn_of_probabilities,
    weigh_classes,
)
from ._components import (
    NetComponents,
    check_takes_proba,
    compute_criterion_loss,
    get_first_output,
    uses,
)
from ._data import DataSplit, FitState, Mixup, collate, makes_batches, split_groups, wrap
from ._prioritizer import EpochPrioritizer

# Samples of a forward pass that ranks; on a CPU, more of them exceed the cache in convolutions.
_RANKING_BATCH = 1024
_RANKING_BATCH_CPU = 256


class TrainingLoop(NetComponents):
    """The hooks of skorch that apply weights, mixup and a choice of samples in a fit."""

    class_weight: Mapping[Any, float] | str | None
    mixup_alpha: float | None
    prioritizer: EpochPrioritizer | None
    # The trailing underscore keeps skorch from taking these for parameters.
    _fit_: FitState | None = None

    @contextmanager
    def _fitting(
        self,
        X: Any,
        y: Any,
        *,
        fresh: bool,
        classes: Any = None,
        target_score: Any = None,
        **of_samples: Any,
    ) -> Iterator[tuple[Any, Any]]:
        """Check the data, and keep the values of the samples that the loss needs, for one fit."""
        self.check_training_readiness()
        validate_parameters(self)
        check_class_names(self.classes)
        if fresh:  # earlier data may have had other columns
            self._forget_features()
        if y is None and isinstance(X, torch.utils.data.Dataset):
            y = get_labels(X)
        if y is None and self.classes is None and classes is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None and "
                "X shows no labels in an attribute y, targets, labels or tensors."
            )
        given_X, X = X, check_X(self, X, reset=fresh)
        check_streamed(self, X, {"y": y, "target_score": target_score, **of_samples})
        n_samples = 0 if isinstance(X, IterableDataset) else skorch.dataset.get_len(X)
        if y is not None:
            y = check_y(y, n_samples)
        self._learn_classes(y, fresh, classes)
        self._data_sizes_ = {**get_sizes(X), "n_classes": len(self.classes_)}
        if self.class_weight is not None:
            of_samples["sample_weight"] = weigh_classes(
                self.class_weight, y, of_samples["sample_weight"]
            )
        inputs = check_inputs(n_samples, self.classes_, **of_samples)
        n_earlier = 0 if fresh else len(self.history)
        # A target with a row for every epoch needs one for those of earlier fits as well.
        self._start_prioritizer(given_X, n_samples, self.max_epochs + n_earlier, target_score)
        # While `_fit_` is set, the methods that skorch calls are within a fit.
        self._fit_ = FitState(inputs)
        try:
            # skorch swallows Ctrl-C, and a grid search would go on with half-trained nets. The net
            # is usable afterwards, because the callbacks have been notified of the end.
            with self._seeded(fresh), raise_ctrl_c() as self._fit_.raise_if_interrupted:
                yield X, y
        except KeyboardInterrupt:
            history = getattr(self, "history_", None)
            if history and "train_loss" not in history[-1]:
                del history[-1]  # an unfinished epoch
                if self.prioritizer is not None:
                    self.prioritizer_.keep(len(history) - n_earlier)
            raise
        finally:
            self._fit_ = None

    def _start_prioritizer(self, X: Any, n_samples: int, n_epochs: int, target_score: Any) -> None:
        """Set `prioritizer_`, ready for the first epoch of a fit."""
        if self.prioritizer is not None:
            check_no_sampler(self)
            prioritizer = copy.copy(self.prioritizer)
            self.prioritizer_ = prioritizer.start(X, n_samples, n_epochs, target_score)
        elif target_score is not None:
            raise ValueError(
                "prioritizer must be an EpochPrioritizer where fit is given target_score, got "
                "None."
            )

    def _is_fresh(self, *, restart: bool) -> bool:
        """Return whether a fit starts anew, as it does after `initialize` alone, too."""
        return restart or not (self.initialized_ and hasattr(self, "classes_inferred_"))

    def check_data(self, X: Any, y: Any = None) -> None:
        """Do nothing: `fit` and `partial_fit` have checked the data.

        Parameters
        ----------
        X : array-like or Dataset
            Samples.
        y : array-like of shape (n_samples,), default=None
            Labels.
        """

    def get_dataset(self, X: Any, y: Any = None) -> Any:
        """Return X and y as a dataset, X checked against the data of the fit.

        Parameters
        ----------
        X : array-like or Dataset
            Samples.
        y : array-like of shape (n_samples,), default=None
            Labels.

        Returns
        -------
        dataset : Dataset
            The samples and labels; X itself if it is a Dataset.
        """
        if self._fit_ is None:
            X = check_X(self, X, reset=False)
        if getattr(y, "dtype", None) == np.bool_:
            y = y.view(np.uint8)  # older numpy warns where torch collates single bools
        return super().get_dataset(X, y)

    def get_split_datasets(self, X: Any, y: Any = None, **fit_params: Any) -> tuple[Any, Any]:
        """Split into training and validation samples, as skorch does.

        Parameters
        ----------
        X : array-like or Dataset
            Samples.
        y : array-like of shape (n_samples,), default=None
            Labels.
        **fit_params : dict
            Passed to `train_split`.

        Returns
        -------
        dataset_train, dataset_valid : Dataset
            The second is None without validation samples.
        """
        # Made here, so that positions() recognizes the Subsets that train_split makes of it.
        dataset = self.get_dataset(X, y)
        groups = None if self._fit_ is None else self._fit_.inputs.groups
        if groups is None or not self.train_split:
            train, valid = super().get_split_datasets(dataset, y, **fit_params)
        else:
            train, valid = split_groups(self.train_split, dataset, y, groups, **fit_params)
        if self._fit_ is not None:
            check_modes_of_torch(self)
            n_samples = self._fit_.inputs.n_samples
            positions = DataSplit(dataset, n_samples).positions(train)
            self._fit_.split = DataSplit(dataset, n_samples, positions)
            # The split shows whether there are validation samples, the criterion what it needs.
            if valid is None:
                check_callbacks(self)
            # A subclass with a get_loss of its own may name its criterion otherwise.
            criterion = getattr(self, "criterion_", None)
            if self._fit_.inputs.target_proba is not None:
                check_takes_proba(criterion, "target_proba")
            if self.mixup_alpha:
                check_takes_proba(criterion, "mixup_alpha")
            if uses(criterion, "difficulty_weight"):
                check_difficulty_weight(self._fit_.inputs.difficulty_weight)
            if uses(criterion, "history"):
                check_streamed(self, dataset, {type(criterion).__name__: criterion})
                if self.mixup_alpha:
                    raise ValueError(
                        f"mixup_alpha must be None with {type(criterion).__name__}, which "
                        f"follows every sample by itself, got {self.mixup_alpha!r}."
                    )
                # On the device of the logits, so that no step waits for a transfer to the host.
                weight = next(self.module_.parameters(), None)
                device = None if weight is None else weight.device
                self._fit_.history = CorrectnessHistory(n_samples, device=device)
        return train, valid

    def get_iterator(self, dataset: Any, training: bool = False, *, ranking: bool = False) -> Any:
        """Return an iterator over batches; within a fit they hold the positions of their samples.

        Parameters
        ----------
        dataset : Dataset
            Samples.
        training : bool, default=False
            Whether the batches are for training.
        ranking : bool, default=False
            Whether samples are scored, to choose those of an epoch: batches are larger then.

        Returns
        -------
        iterator : iterable
            Batches.
        """
        prefix = "iterator_train" if training else "iterator_valid"
        build, params = getattr(self, prefix), self.get_params_for(prefix)
        if isinstance(dataset, IterableDataset):  # whose order no loader may shuffle
            params.pop("shuffle", None)
            return build(dataset, **({"batch_size": self.batch_size} | params))
        # Anything but a DataLoader over items is left as it is: its batches hold no positions.
        wraps, samples, fit = makes_batches(build, params), None, self._fit_
        if wraps:
            if fit is not None and fit.split is not None:
                samples = fit.split.positions(dataset)
            dataset = wrap(dataset, samples, own_collate="collate_fn" in params)
        if training and samples is None and fit is not None and fit.needs_samples:
            raise ValueError(
                "iterator_train must be a DataLoader, and train_split must return torch Subsets "
                "of the dataset that it is given, where the loss takes sample_weight, "
                "difficulty_weight, target_proba or history, got "
                f"{type(dataset).__name__}."
            )
        if ranking and "batch_size" not in params:
            on_cpu = next(self.module_.parameters()).device.type == "cpu"
            size = max(self.batch_size, _RANKING_BATCH_CPU if on_cpu else _RANKING_BATCH)
            iterator = build(dataset, batch_size=size, **params)
        else:
            iterator = super().get_iterator(dataset, training=training)
        if wraps:
            # Wraps the function that collates here: torch's default, or one that the user gives.
            iterator.collate_fn = partial(collate, collate_fn=iterator.collate_fn)
            # A loader draws a seed even without workers: a prediction would draw from torch's
            # generator, with which another thread may be training.
            if fit is None and not iterator.num_workers and iterator.generator is None:
                iterator.generator = torch.Generator()
        return iterator

    def run_single_epoch(
        self, iterator: Any, training: bool, prefix: str, step_fn: Any, **fit_params: Any
    ) -> None:
        """Run one epoch over plain batches; before a training epoch, choose its samples.

        Parameters
        ----------
        iterator : iterable
            Batches.
        training : bool
            Whether the epoch is for training.
        prefix : str
            "train" or "valid", the names in `history`.
        step_fn : callable
            Makes one step with a batch.
        **fit_params : dict
            Passed to `step_fn`.
        """
        if iterator is None or self._fit_ is None:
            super().run_single_epoch(iterator, training, prefix, step_fn, **fit_params)
            return
        start = time.perf_counter()
        choosing = training and self.prioritizer is not None
        if choosing:  # skorch has made its iterator before the first epoch, over all samples
            iterator, n_chosen = self._choose_samples(self._fit_, iterator)
        chosen = time.perf_counter()
        batches = self._fit_.unwrap(iterator)
        super().run_single_epoch(batches, training, prefix, step_fn, **fit_params)
        if training:
            check_finite(self)
        if choosing:
            self.history.record("samples_seen", n_chosen)
            self.history.record("selection_dur", chosen - start)
            self.history.record("training_dur", time.perf_counter() - chosen)

    def _choose_samples(self, fit: FitState, iterator: Any) -> tuple[Any, int]:
        """Return an iterator over the chosen samples of the epoch, and their number."""
        split = fit.split
        if split is None or split.train_samples is None:
            raise ValueError(
                "train_split must return torch Subsets of the dataset that it is given, for "
                "prioritizer to choose from, got other data."
            )
        train = split.train_samples
        score_samples = partial(self._score_samples, split.subset(train))
        # skorch has opened the record of this epoch already: the length is its number plus 1.
        chosen = self.prioritizer_.choose(train, len(self.history) - 1, score_samples)
        if chosen is not train:
            iterator = self.get_iterator(split.subset(chosen), training=True)
        return iterator, len(chosen)

    def _score_samples(self, dataset: Any, score_proba: Callable[[NDArray], NDArray]) -> NDArray:
        """Return the scores of the samples of a dataset, (n,), by their probabilities."""
        # In the order of the samples: validation iterators do not shuffle by default. One score
        # per sample is kept, not a row of probabilities, which may be larger than X.
        batches = self.get_iterator(dataset, ranking=True)
        logits = (get_first_output(self.evaluation_step(batch)).float() for batch in batches)
        return np.concatenate([score_proba(z.softmax(dim=1).cpu().numpy()) for z in logits])

    def forward_iter(self, X: Any, training: bool = False, device: Any = "cpu") -> Iterator[Any]:
        """Yield the output of the module for every batch.

        Parameters
        ----------
        X : array-like or Dataset
            Samples.
        training : bool, default=False
            Whether the module is in training mode.
        device : str or torch.device, default="cpu"
            Where to put the outputs.

        Yields
        ------
        output : Tensor or tuple of Tensor
            As the module returns it.

        Raises
        ------
        ValueError
            If logits are NaN or infinite, as of weights that are NaN or of numbers that overflow;
            -inf is the logit of a class that a sample cannot have.
        """
        n_done = 0
        for output in super().forward_iter(X, training=training, device=device):
            if self._fit_ is None:  # a fit has its own guard, once for every epoch
                n_done += check_logits(self, get_first_output(output), n_done)
            yield output

    def train_step(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        """Make one step of the optimizer, on mixed samples with `mixup_alpha`.

        Parameters
        ----------
        batch : tuple
            Samples, labels and what belongs to them.
        **fit_params : dict
            Passed to the forward of the module.

        Returns
        -------
        step : dict
            ``loss`` and ``y_pred``.
        """
        fit = self._fit_
        if fit is not None and self.mixup_alpha:
            X, y = batch
            fit.mixup = Mixup.draw(self.mixup_alpha, skorch.dataset.get_len(X))
            batch = fit.mixup.inputs(X), y
        try:
            step = super().train_step(batch, **fit_params)  # calls get_loss
        except ValueError as error:
            if "more than 1 value per channel" not in str(error):
                raise
            raise ValueError(
                f"batch_size must leave no last batch of one sample, which BatchNorm cannot train "
                f"on, got {self.batch_size}; take another, or iterator_train__drop_last=True."
            ) from error
        finally:
            if fit is not None:
                fit.mixup = None
        if fit is not None and fit.history is not None:
            # After the loss, which uses the history without this step.
            logits = get_first_output(step["y_pred"]).detach()
            samples = fit.batch_samples.to(logits.device)  # type: ignore[union-attr]
            fit.history.record(samples, logits, self._targets(batch[1], logits))
        return step

    def get_loss(self, y_pred: Any, y_true: Any, X: Any = None, training: bool = False) -> Tensor:
        """Return the loss of a batch, with the weights that belong to its samples.

        Parameters
        ----------
        y_pred : Tensor of shape (n_batch, n_classes)
            Logits.
        y_true : Tensor of shape (n_batch,)
            Positions of the labels in `classes_`.
        X : Tensor, default=None
            Samples of the batch.
        training : bool, default=False
            Whether the batch is for training.

        Returns
        -------
        loss : Tensor of one number
            Smaller = better.
        """
        logits = get_first_output(y_pred).float()  # the module may compute in half precision
        n_classes = len(self.classes_)
        if logits.ndim != 2 or logits.shape[1] != n_classes:
            raise ValueError(
                f"module must give logits of shape (n_samples, n_classes={n_classes}), got shape "
                f"{tuple(logits.shape)}. Where a fold may lack a class, name all labels in the "
                "parameter classes."
            )
        target, fit = self._targets(y_true, logits), self._fit_
        if fit is not None and fit.once("look at the output"):
            warn_of_probabilities(logits)
        unknown = fit is None or fit.batch_samples is None
        criterion = getattr(self, "criterion_", None)
        if unknown and not training and uses(criterion, "difficulty_weight", "history"):
            # Validation data from elsewhere has neither difficulty weights nor a history.
            if fit is not None and fit.once("warn of the cross-entropy"):
                warn(
                    "The validation samples are not part of the data given to fit. They have "
                    "neither difficulty weights nor a history, which "
                    f"{type(criterion).__name__} needs: valid_loss is their cross-entropy "
                    "instead."
                )
            return cross_entropy(logits, target)
        if fit is not None and training:  # validation is against the labels
            proba = fit.batch_target(logits.device)
            target = target if proba is None else proba
        given = {} if fit is None else fit.batch_values(logits.device)
        if fit is not None and fit.mixup is not None:
            target = fit.mixup.targets(target, n_classes)
            given = fit.mixup.batch_values(given)
        if not hasattr(self, "criterion_"):
            raise AttributeError(
                f"initialize_criterion of {type(self).__name__} must set criterion_, or the class "
                "have a get_loss of its own."
            )
        return compute_criterion_loss(
            self.criterion_, logits, target, given, self._criterion_takes_
        )
