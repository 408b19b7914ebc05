"""A skorch classifier that any loss can train and whose probabilities are probabilities."""

import copy
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import skorch
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from torch import Tensor, nn

from ._criterion import check_criterion, criterion_loss
from ._data import (
    FitRows,
    batched,
    check_row_values,
    check_X,
    check_y,
    collate,
    dataset_labels,
    encode_labels,
    is_loader,
    row_sizes,
)
from ._device import AutoDeviceMixin


class CalibratedNetClassifier(AutoDeviceMixin, skorch.NeuralNetClassifier):
    """Neural network classifier with any loss, per-row weights and reproducible training.

    A :class:`skorch.NeuralNetClassifier` whose module returns logits. It takes every parameter of
    skorch (``optimizer``, ``lr``, ``max_epochs``, ``batch_size``, ``callbacks``, ``module__*``,
    ``criterion__*``, ...) and differs from it in this:

    - ``predict_proba`` is the softmax of the logits whatever the criterion;
    - labels may be of any type, and arrays and data frames of any numeric type;
    - ``sample_weight`` and ``difficulty`` follow their rows through splits and batches;
    - ``random_state`` makes a fit repeatable and leaves torch's global generator as it was;
    - a module or criterion given as an instance is copied, never trained in place.

    Parameters
    ----------
    module : torch.nn.Module class or instance
        The network; its forward gives logits of shape (n_samples, n_classes). The arguments
        ``n_features``, ``n_channels`` and ``n_classes`` of a class are taken from the data unless
        they are given as ``module__n_features`` and so on.
    criterion : criterion class or instance on logits, default=torch.nn.CrossEntropyLoss
        A loss of :mod:`skcalib.losses` or of torch. Its parameters are set, and searched, as
        ``criterion__alpha`` and the like. Torch's own criteria take `sample_weight` as a weighted
        mean of their per-row losses.
    random_state : int, RandomState instance or None, default=None
        Seed of initial weights, order of the rows, dropout and whatever else draws from torch's
        generator. With None, torch's global generator is used and advanced.
    device : str, torch.device or None, default="auto"
        Where to compute; "auto" takes the first of cuda, mps and cpu that is available. None
        leaves devices alone, as needed under accelerate.
    verbose : int, default=0
        With 1, a line of losses and scores is printed after every epoch.
    **kwargs : dict
        Further parameters of :class:`skorch.NeuralNetClassifier`, with skorch's defaults. Among
        them: ``train_split`` holds out a fifth of the rows for validation unless set to None.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in the order of the columns of `predict_proba`.
    module_ : torch.nn.Module
        The trained network.
    history_ : skorch.history.History
        Losses, scores and times of every epoch.
    n_features_in_ : int
        Size of the second axis of X; absent for datasets.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, when X has string column names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcalib.nets import MLP, CalibratedNetClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> net = CalibratedNetClassifier(
    ...     MLP, criterion__label_smoothing=0.05, lr=0.05, max_epochs=30, random_state=0
    ... )
    >>> bool(net.fit(X - X.mean(), y).score(X - X.mean(), y) > 0.8)
    True
    """

    _parameter_constraints: dict = {
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    # The trailing underscore keeps skorch from taking these for parameters.
    _rows_: FitRows | None = None
    _data_sizes_: Mapping[str, int] = MappingProxyType({})

    def __init__(
        self,
        module: Any,
        *,
        criterion: Any = nn.CrossEntropyLoss,
        random_state: int | np.random.RandomState | None = None,
        device: Any = "auto",
        verbose: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(module, criterion=criterion, device=device, verbose=verbose, **kwargs)
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        difficulty: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Train the network, from new initial weights unless ``warm_start=True``.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), or what skorch takes
            Features. Arrays, data frames, nested lists and sparse matrices are read as float32;
            integer tensors, dicts and tuples of tensors, and datasets reach the module as they
            are.
        y : array-like of shape (n_samples,), default=None
            Labels. For a torch Dataset they are read from its attribute ``y``, ``targets``,
            ``labels`` or ``tensors`` if not given.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the rows in the loss.
        difficulty : array-like of shape (n_samples,), default=None
            Difficulty of the rows, larger = harder, for criteria that take it.
        **fit_params : dict
            Passed to the forward of the module and to `train_split`, as in skorch.

        Returns
        -------
        self : CalibratedNetClassifier
            The trained classifier.

        Raises
        ------
        ValueError
            If X or y are not finite, y holds a single class, weights or difficulty do not fit the
            rows or the criterion has no use for them, or the module gives another number of
            logits than there are classes.
        """
        fresh = not (self.warm_start and self.initialized_)
        with self._fitting(X, y, sample_weight, difficulty, fresh) as (X, y):
            return super().fit(X, y, **fit_params)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        difficulty: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Train the network further, for `max_epochs` more epochs.

        Parameters
        ----------
        X, y, sample_weight, difficulty
            As in :meth:`fit`.
        classes : array-like of shape (n_classes,), default=None
            All labels that later calls may bring; by default those of the first y.
        **fit_params : dict
            As in :meth:`fit`.

        Returns
        -------
        self : CalibratedNetClassifier
            The trained classifier.
        """
        if self._rows_ is not None:  # the call of skorch's own fit
            return super().partial_fit(X, y, **fit_params)
        fresh = not self.initialized_
        with self._fitting(X, y, sample_weight, difficulty, fresh, classes) as (X, y):
            return super().partial_fit(X, y, **fit_params)

    @contextmanager
    def _fitting(
        self, X: Any, y: Any, sample_weight: Any, difficulty: Any, fresh: bool, classes: Any = None
    ) -> Iterator[tuple[Any, Any]]:
        """Check the data, and keep what the loss must know about its rows for one fit."""
        BaseEstimator._validate_params(self)
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
        X = check_X(self, X, reset=fresh)
        n_rows = skorch.dataset.get_len(X)
        if y is not None:
            y = check_y(self, y, n_rows)
        self._learn_classes(y, fresh, classes)
        self._data_sizes_ = {**row_sizes(X), "n_classes": len(self.classes_)}
        weight = check_row_values("sample_weight", sample_weight, n_rows, non_negative=True)
        hardness = check_row_values("difficulty", difficulty, n_rows, non_negative=False)
        self._rows_ = FitRows(n_rows, weight, hardness)
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
        cuda = self.device is not None and torch.device(self.device).type == "cuda"
        with torch.random.fork_rng(devices=[self.device] if cuda else []):
            torch.manual_seed(self.random_state_.randint(np.iinfo(np.int32).max))
            yield

    def check_data(self, X: Any, y: Any = None) -> None:
        """Do nothing: `fit` and `partial_fit` have checked the data."""

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
            kwargs = {
                k: v for k, v in getattr(self, "_data_sizes_", {}).items() if k in wanted
            } | kwargs
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
            return super().get_dataset(check_X(self, X, reset=False), y)
        dataset = super().get_dataset(X, y)
        if y is not None and self._rows_.dataset is None:
            self._rows_.dataset = dataset
        return dataset

    def get_split_datasets(self, X: Any, y: Any = None, **fit_params: Any) -> tuple[Any, Any]:
        """Split into training and validation rows, as skorch does."""
        train, valid = super().get_split_datasets(X, y, **fit_params)
        if self._rows_ is not None:
            self._rows_.dataset = self._rows_.dataset or X
            self._rows_.train_rows = self._rows_.positions(train)
        return train, valid

    def get_iterator(self, dataset: Any, training: bool = False) -> Any:
        """Return a loader over batches; within a fit these know their rows."""
        prefix = "iterator_train" if training else "iterator_valid"
        if not is_loader(getattr(self, prefix)):
            return super().get_iterator(dataset, training=training)
        own_collate = "collate_fn" in self.get_params_for(prefix)
        rows = None if self._rows_ is None else self._rows_.positions(dataset)
        dataset = batched(dataset, rows, own_collate=own_collate)
        loader = super().get_iterator(dataset, training=training)
        loader.collate_fn = partial(
            collate, collate_fn=loader.collate_fn, with_rows=rows is not None
        )
        return loader

    def run_single_epoch(
        self, iterator: Any, training: bool, prefix: str, step_fn: Any, **fit_params: Any
    ) -> None:
        """Run one epoch over plain batches, with their rows at hand for the loss."""
        if iterator is not None and self._rows_ is not None:
            iterator = self._rows_.unwrap(iterator)
        super().run_single_epoch(iterator, training, prefix, step_fn, **fit_params)

    def get_loss(self, y_pred: Any, y_true: Any, X: Any = None, training: bool = False) -> Tensor:
        """Return the criterion of the logits, with the weights of the rows of the batch."""
        logits = (y_pred[0] if isinstance(y_pred, tuple) else y_pred).float()
        if logits.ndim != 2 or logits.shape[1] != len(self.classes_):
            raise ValueError(
                f"module must give logits of shape (n_samples, n_classes={len(self.classes_)}); "
                f"got shape {tuple(logits.shape)}. Where a fold may lack a class, name all labels "
                "in the parameter classes."
            )
        if not self._labels_are_indices_:
            y_true = encode_labels(y_true, self.classes_)
        target = torch.as_tensor(y_true).to(logits.device, torch.long)
        given = {} if self._rows_ is None else self._rows_.batch_values(logits.device)
        return criterion_loss(self.criterion_, logits, target, given, self._criterion_takes_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class with the largest probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), or what skorch takes
            Features, as in :meth:`fit`.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Labels.
        """
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    def decision_function(self, X: Any) -> NDArray[np.floating]:
        """Return the logits.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), or what skorch takes
            Features, as in :meth:`fit`.

        Returns
        -------
        logits : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            Logits. For two classes their difference, second minus first, is the log-odds of
            ``classes_[1]``, as scikit-learn's binary classifiers give it.
        """
        logits = self.forward(X)
        logits = (logits[0] if isinstance(logits, tuple) else logits).float().numpy()
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def _get_predict_nonlinearity(self) -> Any:
        nonlinearity = super()._get_predict_nonlinearity()
        return _softmax if self.predict_nonlinearity == "auto" else nonlinearity

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        tags.non_deterministic = self.random_state is None
        return tags


def _softmax(logits: Tensor) -> Tensor:
    return torch.softmax(logits.float(), dim=-1)
