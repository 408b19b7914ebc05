"""A skorch classifier for any loss of logits, and trained nets in a file without code."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from torch import Tensor, nn

from ..utils._backends import unwrap_module
from ..utils._compat import Interval, StrOptions, restore_on_failure
from ..utils._estimators import PredictByProba
from ..utils._labels import format_labels
from ..utils._output import ignoring, shorten_error, write_atomically
from ._checks import check_names
from ._components import get_first_output
from ._loop import TrainingLoop
from ._prioritizer import EpochPrioritizer

# A trained net in a file that holds numbers and labels, and no code.

_FORMAT = 1


def save_net(net: Any, path: Any) -> None:
    """Write parameters, sizes and labels of a fitted net."""
    net.check_is_fitted()
    classes = net.classes_
    labels = classes.tolist()
    # Plain values only: what torch.load reads with weights_only=True.
    if not all(isinstance(label, bool | int | float | str) for label in labels):
        kinds = sorted({type(label).__name__ for label in labels})
        raise TypeError(
            f"classes_ must be numbers or strings to be saved, got {', '.join(kinds)}; pickle the "
            "net instead."
        )
    names = getattr(net, "feature_names_in_", None)
    record = {
        "format": _FORMAT,
        "module": unwrap_module(net.module_).state_dict(),
        "classes": labels,
        "classes_dtype": classes.dtype.str,
        "sizes": dict(net._data_sizes_),
        "n_features_in": getattr(net, "n_features_in_", None),
        "feature_names_in": None if names is None else names.tolist(),
    }
    with write_atomically(path) as file:
        torch.save(record, file)


def load_net(net: Any, path: Any) -> None:
    """Build the parts of an unfitted net for the saved sizes, and read its parameters."""
    record = _read(path, net.device or "cpu")
    classes = np.array(record["classes"], dtype=np.dtype(record["classes_dtype"]))
    if net.classes is not None and not np.array_equal(net.classes, classes):
        raise ValueError(
            f"classes must be None or the saved labels {format_labels(classes)}, got "
            f"{format_labels(net.classes)}."
        )
    with restore_on_failure(net):
        net._forget_features()
        net.classes_inferred_ = classes
        net._data_sizes_ = record["sizes"]
        _load_without_memory(net, record["module"], path)
        try:
            net.initialize()
        except (MemoryError, RuntimeError, TypeError) as error:
            raise ValueError(
                f"module must be one for the sizes saved in {path!r}, got: {shorten_error(error)}"
            ) from error
        _load_state(unwrap_module(net.module_), record["module"], path)
        net._note_encoding()
        if record["n_features_in"] is not None:
            net.n_features_in_ = record["n_features_in"]
        if record["feature_names_in"] is not None:
            net.feature_names_in_ = np.array(record["feature_names_in"], dtype=object)


def _load_without_memory(net: Any, state: dict[str, Any], path: Any) -> None:
    """Raise if the state does not fit, before sizes from a file take memory."""
    if isinstance(net.module, nn.Module):
        return  # its sizes are its own
    try:
        with torch.device("meta"):
            module = net._build_module()
    except Exception:  # a module that needs its numbers, or that cannot be built at all
        return
    with ignoring(UserWarning):  # torch warns that nothing is copied
        _load_state(module, state, path)


def _load_state(module: nn.Module, state: dict[str, Any], path: Any) -> None:
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        reason = shorten_error(error)
        raise ValueError(
            f"module must have the parameters saved in {path!r}, got others: {reason}"
        ) from None


def _read(path: Any, device: Any) -> dict[str, Any]:
    """Return what `save_net` has written."""
    fault = f"path must be a file that save has written, got {path!r}"
    try:
        # weights_only: a file from elsewhere cannot run code.
        record = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # torch has no error of its own for what it cannot read
        if isinstance(error, OSError) and error.filename is not None:
            raise  # no such file, or no right to read it
        raise ValueError(f"{fault}, which torch cannot read ({shorten_error(error)}).") from error
    if not isinstance(record, dict) or not _equals(record.get("format"), _FORMAT):
        raise ValueError(f"{fault}, with other contents.")
    wrong = [
        name
        for name, is_valid in _PARTS_OF_RECORD.items()
        if name not in record or not is_valid(record)
    ]
    if wrong:
        raise ValueError(f"{fault}, with other contents at {', '.join(wrong)}.")
    return record


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _equals(value: Any, expected: int) -> bool:
    return type(value) is int and value == expected


def _has_module(record: Mapping[str, Any]) -> bool:
    """Return whether a record has parameters: names with real numbers that are in the file."""
    module = record.get("module")
    return isinstance(module, dict) and all(
        isinstance(name, str)
        and (not isinstance(value, Tensor) or not (value.is_complex() or value.is_meta))
        for name, value in module.items()
    )


def _has_classes(record: Mapping[str, Any]) -> bool:
    """Return whether a record has two or more labels of the type that it names."""
    labels, kind = record.get("classes"), record.get("classes_dtype")
    if not isinstance(labels, list) or not isinstance(kind, str):
        return False
    if not all(isinstance(label, bool | int | float | str) for label in labels):
        return False
    try:
        classes = np.array(labels, dtype=np.dtype(kind))
        distinct = len(np.unique(classes))
    except (TypeError, ValueError, OverflowError, MemoryError):
        return False
    return classes.dtype.kind in "biufOUT" and distinct == len(labels) >= 2


def _has_sizes(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the sizes of the data, as many classes as labels."""
    sizes, labels = record.get("sizes"), record.get("classes")
    return (
        isinstance(sizes, dict)
        and sizes.keys() <= {"n_features", "n_channels", "n_classes"}
        and all(_is_count(n) for n in sizes.values())
        and isinstance(labels, list)
        and _equals(sizes.get("n_classes"), len(labels))
    )


def _has_width(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a number of features, or none."""
    width = record.get("n_features_in")
    return width is None or _is_count(width)


def _has_names(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a name for every feature, or none."""
    names = record.get("feature_names_in")
    return names is None or (
        isinstance(names, list)
        and all(isinstance(name, str) for name in names)
        and len(names) == record.get("n_features_in")
    )


_PARTS_OF_RECORD = {
    "module": _has_module,
    "classes": _has_classes,
    "sizes": _has_sizes,
    "n_features_in": _has_width,
    "feature_names_in": _has_names,
}


# A skorch classifier for any loss of logits, whose probabilities are always their softmax.


def softmax(logits: Tensor) -> Tensor:
    """Return the probabilities of logits, in float32."""
    return torch.softmax(logits.float(), dim=-1)


class CalibratedNetClassifier(PredictByProba, TrainingLoop):
    """Neural network as a scikit-learn classifier, trained with any loss.

    Give it a network that returns logits and, if you like, a loss; the other defaults work. It
    takes the data and labels that any scikit-learn classifier takes. Arguments of its parts are
    written with two underscores, ``module__hidden_layer_sizes=(64, 64)`` or
    ``criterion__alpha=0.1``, and can be searched.

    Most users need the first six parameters. All others, with those of the base class
    :class:`skorch.NeuralNetClassifier` (``callbacks``, ``warm_start``, ...), can wait.

    Parameters
    ----------
    module : torch.nn.Module class or instance
        The network; its forward gives logits of shape (n_samples, n_classes), or a mapping or
        object with ``logits``, as those of transformers do. The arguments
        ``n_features``, ``n_channels`` and ``n_classes`` of a class are taken from the data unless
        they are given as ``module__n_features`` and so on. An instance is trained from its own
        weights; ``module__`` parameters beside it are an error.
    criterion : criterion class, instance or name, default=torch.nn.CrossEntropyLoss
        A loss of logits of :mod:`skcalib.losses` or of torch, or the name of one of
        :mod:`skcalib.losses`: "FocalLoss" or "focal". An instance keeps its parameters, except for
        those that ``criterion__gamma`` and the like replace. For torch's own criteria,
        `sample_weight` weighs the mean of the losses.
    optimizer : torch.optim.Optimizer class or its name, default=torch.optim.Adam
        Its arguments are set as ``optimizer__weight_decay`` and the like.
    lr : float, default=1e-3
        Learning rate, >= 0.
    max_epochs : int, default=50
        Number of epochs. Fewer with :class:`skorch.callbacks.EarlyStopping`, which needs a
        `train_split`.
    batch_size : int, default=32
        Number of samples of a step; -1 takes all.
    train_split : callable, default=None
        Holds out samples for validation, a fifth with ``skorch.dataset.ValidSplit(5,
        stratified=True)``. None trains on all samples. Where `fit` is given groups, a function
        must take them as ``groups=``; a number or fraction of a ValidSplit holds out groups.
    class_weight : dict or "balanced", default=None
        Weights of the classes by label, 1 for labels that are missing; they multiply those of the
        samples. "balanced" gives all classes of y the same total weight.
    mixup_alpha : float, default=None
        Train on mixtures of two samples and of their labels (mixup [1]_), in fractions drawn from
        Beta(mixup_alpha, mixup_alpha) once per batch. The criterion must take class probabilities
        as target. Sample weights and difficulty weights are mixed in the same fractions. None or
        0: off.
    prioritizer : EpochPrioritizer, default=None
        Chooses the samples of every epoch; None trains on all of them. ``history_`` then records
        ``samples_seen``, ``selection_dur`` and ``training_dur`` of every epoch, durations in
        seconds. Its parameters are searched as ``prioritizer__selector__fraction`` and the like.
    mixed_precision : {"bf16"}, default=None
        Compute the module in bfloat16 where torch considers it safe; the loss stays in float32.
        For float16 use skorch's ``AccelerateMixin``.
    random_state : int, RandomState instance or None, default=None
        Seed of initial weights, order of the samples, dropout and whatever else draws from torch's
        generator. Threads that fit with a seed take turns. With None, torch's global generator is
        used and advanced.
    device : str, torch.device or None, default="auto"
        Where to compute; "auto" takes the first of cuda, mps and cpu that is available. None
        leaves devices alone, as needed under accelerate.
    verbose : int, default=0
        With 1, a line of losses and scores is printed after every epoch.
    predict_nonlinearity : callable, default=softmax
        Turns a tensor of logits into probabilities; None returns the logits.
    iterator_train__shuffle : bool, default=True
        Whether every epoch takes the samples in a new order, where no sampler is given.
    **kwargs : dict
        Further parameters of :class:`skorch.NeuralNetClassifier`, with skorch's defaults.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in the order of the columns of `predict_proba`.
    module_ : torch.nn.Module
        The trained network.
    prioritizer_ : EpochPrioritizer
        With a `prioritizer`: its copy, which holds the samples of every epoch.
    history_ : skorch.history.History
        Losses, scores and times of every epoch.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Size of the second axis of X, and its column names where they are strings.

    Raises
    ------
    TypeError
        If a keyword is not a parameter of the net.

    See Also
    --------
    MLP : A module for tabular data.
    EpochPrioritizer : Chooses the samples of every epoch.
    TrainingDynamics, CalibrationScoring : Callbacks.
    skcalib.losses.BSCEGRALoss : A criterion that calibrates.

    Notes
    -----
    Unlike in skorch, `predict_proba` is the softmax of the logits for every criterion. Weights and
    soft targets follow their samples through splits and batches. A module or criterion given as an
    instance is copied, never trained in place. `random_state` leaves torch's generator as it was.
    Ctrl-C ends a fit with KeyboardInterrupt, a loss that is not finite with an error.

    References
    ----------
    .. [1] H. Zhang, M. Cisse, Y. N. Dauphin, D. Lopez-Paz, "mixup: Beyond Empirical Risk
       Minimization", ICLR 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcalib.nets import MLP, CalibratedNetClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> net = CalibratedNetClassifier(
    ...     MLP, criterion__label_smoothing=0.05, max_epochs=100, random_state=0
    ... )
    >>> bool(net.fit(X, y).score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "optimizer": [callable, str, torch.optim.Optimizer],
        "callbacks": [list, StrOptions({"disable"}), None],
        "lr": [Interval(Real, 0, None, closed="left")],
        "max_epochs": [Interval(Integral, 0, None, closed="left")],
        "batch_size": [Interval(Integral, -1, None, closed="left")],
        "warm_start": ["boolean"],
        "iterator_train__shuffle": ["boolean"],
        "predict_nonlinearity": [callable, None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "mixup_alpha": [Interval(Real, 0, None, closed="left"), None],
        "prioritizer": [EpochPrioritizer, None],
        "mixed_precision": [StrOptions({"bf16"}), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        module: Any,
        *,
        criterion: Any = nn.CrossEntropyLoss,
        optimizer: Any = torch.optim.Adam,
        lr: float = 1e-3,
        max_epochs: int = 50,
        batch_size: int = 32,
        train_split: Any = None,
        class_weight: Mapping[Any, float] | str | None = None,
        mixup_alpha: float | None = None,
        prioritizer: EpochPrioritizer | None = None,
        mixed_precision: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: Any = "auto",
        verbose: int = 0,
        predict_nonlinearity: Any = softmax,
        iterator_train__shuffle: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            module,
            criterion=criterion,
            optimizer=optimizer,
            lr=lr,
            max_epochs=max_epochs,
            batch_size=batch_size,
            train_split=train_split,
            device=device,
            verbose=verbose,
            # skorch's own "auto" applies a softmax for torch's CrossEntropyLoss alone.
            predict_nonlinearity=predict_nonlinearity,
            iterator_train__shuffle=iterator_train__shuffle,
            **kwargs,
        )
        check_names(self, kwargs)
        self.class_weight = class_weight
        self.mixup_alpha = mixup_alpha
        self.prioritizer = prioritizer
        self.mixed_precision = mixed_precision
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        difficulty_weight: ArrayLike | None = None,
        target_proba: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        target_score: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Train the network, from new initial weights unless ``warm_start=True``.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), or what skorch takes
            Arrays, data frames, nested lists and sparse matrices are read as float32; integer
            tensors, dicts and tuples of tensors, and datasets reach the module as they are.
        y : array-like of shape (n_samples,), default=None
            Labels. For a torch Dataset they are read from its attribute ``y``, ``targets``,
            ``labels`` or ``tensors`` if not given.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the samples in the loss.
        difficulty_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, larger = harder, for criteria that take them, in [0, 1] such as
            :func:`~skcalib.difficulty.difficulty_weights` makes of a difficulty.
        target_proba : array-like of shape (n_samples, n_classes), default=None
            Class probabilities to train on in place of the labels, with columns in the order of
            `classes_`; a DataFrame's columns that are named by labels are matched by name. The
            labels y still define `classes_`, the strata of splits, and the truth in validation.
        groups : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
            Which samples belong together, such as the patients of images: `train_split` keeps
            each group in training or in validation.
        target_score : array-like of shape (n_samples,) or (n_samples, n_epochs), default=None
            What the `prioritizer` ranks the samples by in place of the net, larger = trained on
            first: one score, or one for every epoch, such as ``dynamics.entropy_.T`` of
            :class:`TrainingDynamics`. Cross-validation splits it with the samples.
        **fit_params : dict
            Passed to the forward of the module and to `train_split`, as in skorch.

        Returns
        -------
        self : CalibratedNetClassifier
            The trained classifier.

        Raises
        ------
        ValueError
            If X or y are not finite, y holds a single class, weights or target_proba do not fit
            the samples, rows of target_proba do not sum to 1, the criterion cannot use what is
            given, the number of logits is not that of classes, or the loss or a parameter of the
            module becomes infinite or NaN.
        KeyboardInterrupt
            At Ctrl-C, after the callbacks have been notified; the net is usable as it is.
        """
        # skorch's fit calls initialize and then partial_fit, which is overridden below.
        with self._fitting(
            X,
            y,
            fresh=self._is_fresh(restart=not self.warm_start),
            sample_weight=sample_weight,
            difficulty_weight=difficulty_weight,
            target_proba=target_proba,
            groups=groups,
            target_score=target_score,
        ) as (X, y):
            return super().fit(X, y, **fit_params)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        difficulty_weight: ArrayLike | None = None,
        target_proba: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        target_score: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Train the network further, for `max_epochs` more epochs.

        Parameters
        ----------
        X : array-like or Dataset
            Samples, as in :meth:`fit`.
        y : array-like of shape (n_samples,), default=None
            Labels; None where X is a Dataset that holds them.
        classes : array-like of shape (n_classes,), default=None
            All labels that later calls may bring; by default those of the first y.
        sample_weight, difficulty_weight, target_proba, groups : array-like, default=None
            One weight, difficulty, row of class probabilities or group per sample, as in
            :meth:`fit`.
        target_score : array-like of shape (n_samples,) or (n_samples, n_epochs), default=None
            What the `prioritizer` ranks the samples by, as in :meth:`fit`; columns count the
            epochs of earlier fits, too.
        **fit_params : dict
            Passed to the forward of the module and to `train_split`.

        Returns
        -------
        self : CalibratedNetClassifier
            The trained classifier.
        """
        if self._fit_ is not None:  # called by skorch's own fit, with data that is checked
            return super().partial_fit(X, y, **fit_params)
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight must be a dict or None in partial_fit, which sees a part of the "
                "samples, got 'balanced'."
            )
        with self._fitting(
            X,
            y,
            fresh=self._is_fresh(restart=False),
            classes=classes,
            sample_weight=sample_weight,
            difficulty_weight=difficulty_weight,
            target_proba=target_proba,
            groups=groups,
            target_score=target_score,
        ) as (X, y):
            return super().partial_fit(X, y, **fit_params)

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
            ``classes_[1]``, as scikit-learn's binary classifiers return it.
        """
        self.check_is_fitted()
        # forward has gathered the batches on the CPU. numpy has no bfloat16.
        logits = get_first_output(self.forward(X)).float().numpy()
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def save(self, path: Any) -> None:
        """Write the parameters of the module, the labels and the sizes of the data to a file.

        Parameters
        ----------
        path : str or Path
            Where to. The file holds what prediction needs; the history, the optimizer and the
            callbacks are left out (pickle keeps them). A write that fails leaves the old file.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the net is not fitted.
        TypeError
            If the labels are neither numbers nor strings.
        """
        save_net(self, path)

    def load(self, path: Any) -> Self:
        """Read what :meth:`save` has written into a net of the same parameters.

        The file is read with ``weights_only=True``: it cannot run code.

        Parameters
        ----------
        path : str or Path
            A file that :meth:`save` has written.

        Returns
        -------
        self : CalibratedNetClassifier
            The net, as if fitted; `partial_fit` trains it further with a new optimizer.

        Raises
        ------
        OSError
            If there is no file, or no right to read it.
        ValueError
            If the file is another one or damaged, or if the module has other parameters. Then the
            net is unchanged.
        """
        load_net(self, path)
        return self

    def set_params(self, **kwargs: Any) -> Self:
        """Set parameters, those of the prioritizer by ``prioritizer__<name>``.

        Parameters
        ----------
        **kwargs : dict
            Names and values.

        Returns
        -------
        self : CalibratedNetClassifier
            The net.
        """
        # skorch takes every name with "__" for an argument of one of its own components.
        nested = [name for name in kwargs if name.startswith("prioritizer__")]
        of_prioritizer = {name.partition("__")[2]: kwargs.pop(name) for name in nested}
        super().set_params(**kwargs)
        if nested and self.prioritizer is None:
            raise ValueError(
                f"prioritizer must be an EpochPrioritizer to set {', '.join(nested)}, got None."
            )
        if nested:
            self.prioritizer.set_params(**of_prioritizer)  # type: ignore[union-attr]
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        tags.non_deterministic = self.random_state is None
        return tags
