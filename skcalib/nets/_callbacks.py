"""Callbacks: the record of a training, and calibration after every epoch."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
import skorch.dataset
import torch
from numpy.typing import NDArray
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback, EpochScoring
from skorch.utils import to_numpy
from torch import Tensor
from torch.utils.data import DataLoader

from ..metrics._registry import AnyMetric, find_metric, get_metric
from ..utils._compat import predict_nonlinearity
from ..utils._estimators import has_argument
from ._components import get_first_output
from ._loop import TrainingLoop

# Record the predictions of a network for every sample while it trains.

_FIELDS = ("prediction", "confidence", "margin", "entropy")


class TrainingDynamics(Callback):
    """Record prediction, confidence, margin and entropy of every sample through a training.

    Functions of :mod:`skcalib.difficulty.training_dynamics` turn the record into difficulties
    (:func:`~skcalib.difficulty.training_dynamics.iteration_learned`,
    :func:`~skcalib.difficulty.training_dynamics.forgetting_events`, ...). Another training can
    rank its samples by ``entropy_``, the ``target`` of its prioritizer. Column i is sample i of
    `fit`, held out for validation or not. One forward pass in evaluation mode makes a row, before
    the first epoch and after every epoch or every few steps. A row takes 13 bytes per sample for
    up to 127 classes.

    Parameters
    ----------
    every : "epoch" or int, default="epoch"
        When to record: after every epoch, or after so many steps of the optimizer (batches), 1 or
        more, and at the end of a fit. The iteration learned of [1]_ counts steps. The `target` of
        a prioritizer needs one row for every epoch.

    Attributes
    ----------
    prediction_ : ndarray of shape (n_rows, n_samples), int8, int16 or int32
        Predicted classes, as positions in the net's ``classes_``. Row 0 is the untrained network:
        n_rows = n_epochs + 1 by epochs.
    confidence_ : ndarray of shape (n_rows, n_samples), float32
        Probability of the label, in [0, 1].
    margin_ : ndarray of shape (n_rows, n_samples), float32
        Logit of the label minus the largest other logit; positive = correct. Its mean over the
        rows is the area under the margin.
    entropy_ : ndarray of shape (n_rows, n_samples), float32
        Predictive entropy in nats, larger = less certain.
    step_ : ndarray of shape (n_rows,), int
        Number of steps of the optimizer before each row, for the `steps` of
        :func:`~skcalib.difficulty.training_dynamics.iteration_learned`.
    label_ : ndarray of shape (n_samples,)
        Labels, as positions in the net's ``classes_``.

    Raises
    ------
    ValueError
        In `fit`, if `every` is not as described, or the labels of the samples are not known.

    See Also
    --------
    CalibratedNetClassifier : The net that calls it.
    skcalib.difficulty.training_dynamics.area_under_margin : A function of its arrays.
    skcalib.plots.TrainingMapDisplay : Draws what it records.

    Notes
    -----
    A second `fit` with ``warm_start=True``, or another `partial_fit`, on the same samples
    continues the record; another number of samples starts a new one.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, Sec. 3.2. Calls: :ref:`paper-depth`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcalib.difficulty.training_dynamics import iteration_learned
    >>> from skcalib.nets import MLP, CalibratedNetClassifier, TrainingDynamics
    >>> X, y = load_iris(return_X_y=True)
    >>> dynamics = TrainingDynamics()
    >>> net = CalibratedNetClassifier(MLP, max_epochs=4, callbacks=[dynamics], random_state=0)
    >>> dynamics.prediction_.shape if net.fit(X, y) else None
    (5, 150)
    >>> dynamics.step_
    array([ 0,  5, 10, 15, 20])
    >>> iteration_learned(dynamics.prediction_, steps=dynamics.step_).shape
    (150,)
    """

    def __init__(self, *, every: int | str = "epoch") -> None:
        self.every = every

    def initialize(self) -> Self:
        """Delete the record, as the net resets its weights."""
        self._rows_: list[dict[str, NDArray[Any]]] = []
        self._steps_: list[int] = []
        self._n_steps_ = 0
        return self

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Record the untrained network, unless an earlier call has recorded these samples.

        Parameters
        ----------
        net : CalibratedNetClassifier
            The net that trains.
        X : array-like or Dataset, default=None
            Samples of the fit.
        y : array-like of shape (n_samples,), default=None
            Their labels.
        **kwargs : dict
            Further arguments of skorch.

        Raises
        ------
        TypeError
            If the net is no :class:`CalibratedNetClassifier`.
        ValueError
            If `y` is None, or `every` neither "epoch" nor a number of steps.
        """
        if not isinstance(net, TrainingLoop):
            raise TypeError(
                "net must be a CalibratedNetClassifier for TrainingDynamics, got "
                f"{type(net).__name__}."
            )
        whole = isinstance(self.every, Integral) and not isinstance(self.every, bool)
        if self.every != "epoch" and not (whole and self.every >= 1):  # type: ignore[operator]
            raise ValueError(
                "every must be 'epoch' or a number of steps, an int of 1 or more, got "
                f"{self.every!r}."
            )
        if y is None:
            raise ValueError(
                "y must be given to fit for TrainingDynamics, which needs the labels of all "
                "samples, got None."
            )
        if self._rows_ and len(self._rows_[0]["margin"]) != skorch.dataset.get_len(X):
            self.initialize()  # other data
        self.label_ = net._encoded(y)
        if not self._rows_:
            self._record(net, net.get_dataset(X, y))

    def on_batch_end(self, net: Any, *, training: bool, **kwargs: Any) -> None:
        """Count a step, and record all samples where its turn has come.

        Parameters
        ----------
        net : CalibratedNetClassifier
            The net that trains.
        training : bool
            Whether the batch was one of training.
        **kwargs : dict
            Further arguments of skorch.
        """
        if training:
            self._n_steps_ += 1
            if self.every != "epoch" and self._n_steps_ % self.every == 0:  # type: ignore[operator]
                self._record(net, net._fit_.split.dataset)

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Record the trained network, unless the last row is its own.

        Parameters
        ----------
        net : CalibratedNetClassifier
            The net that trains.
        **kwargs : dict
            Further arguments of skorch.
        """
        if self.every != "epoch" and self._steps_[-1] < self._n_steps_:
            self._record(net, net._fit_.split.dataset)

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Record all samples, with ``every="epoch"``.

        Parameters
        ----------
        net : CalibratedNetClassifier
            The net that trains.
        **kwargs : dict
            Further arguments of skorch.
        """
        if self.every == "epoch":
            self._record(net, net._fit_.split.dataset)

    prediction_ = property(
        lambda self: self._recorded("prediction"),
        doc="Predicted classes, as positions in the net's ``classes_``.",
    )
    confidence_ = property(
        lambda self: self._recorded("confidence"), doc="Probability of the label."
    )
    margin_ = property(
        lambda self: self._recorded("margin"),
        doc="Logit of the label minus the largest other logit.",
    )
    entropy_ = property(lambda self: self._recorded("entropy"), doc="Predictive entropy in nats.")
    step_ = property(
        lambda self: np.array(self._recorded("step")),
        doc="Number of steps of the optimizer before each row.",
    )

    def _recorded(self, field: str) -> Any:
        """Return a field of all rows, (n_rows, n_samples), or their steps."""
        if not getattr(self, "_rows_", None):
            raise AttributeError(f"TrainingDynamics has no {field}_ before the net is fitted.")
        return self._steps_ if field == "step" else np.stack([row[field] for row in self._rows_])

    def _record(self, net: Any, dataset: Any) -> None:
        """Append a row: all fields of the samples of `dataset`, by a pass in evaluation mode."""
        measured, n_done = [], 0  # batches of the whole dataset come in the order of its samples
        iterator = net.get_iterator(dataset, ranking=True)
        if isinstance(iterator, DataLoader) and iterator.generator is None:
            # A loader draws a seed: from torch's own generator, it would change the training.
            iterator.generator = torch.Generator()
        for batch in iterator:
            logits = get_first_output(net.evaluation_step(batch)).detach().float()
            label = torch.from_numpy(self.label_[n_done : n_done + len(logits)])
            measured.append(_measure(logits, label.to(logits.device)))
            n_done += len(logits)
        # Half precision would tie most entropies near log K, and choose them by their order.
        integers = (np.int8, np.int16, np.int32)
        whole = next(t for t in integers if len(net.classes_) <= np.iinfo(t).max)
        dtypes = whole, *[np.float32] * 3
        values = zip(_FIELDS, np.concatenate(measured, axis=1), dtypes)
        self._rows_.append({name: value.astype(dtype) for name, value, dtype in values})
        self._steps_.append(self._n_steps_)


def _measure(logits: Tensor, label: Tensor) -> NDArray[np.float32]:
    """Return the fields of a batch, (4, n_batch), in one transfer from its device."""
    label = label[:, None]
    proba = torch.softmax(logits, dim=1)
    others = logits.scatter(1, label, -torch.inf)
    limit = torch.finfo(logits.dtype).max  # a masked class has a logit of -inf
    values = [
        logits.argmax(1).float(),
        proba.gather(1, label)[:, 0],
        (logits.gather(1, label)[:, 0] - others.amax(1)).clamp(-limit, limit),
        # xlogy is 0 where the probability is 0; 0 * log 0 would be NaN.
        -torch.special.xlogy(proba, proba).sum(1),
    ]
    return torch.stack(values).cpu().numpy()


# Calibration error or refinement error after every epoch.


class CalibrationScoring(EpochScoring):
    """Record a metric of :mod:`skcalib.metrics` after every epoch.

    Like every :class:`skorch.callbacks.EpochScoring`, it writes into the history its value and
    whether it is the best so far, for early stopping and checkpoints. It uses the predictions that
    validation has made already.

    Parameters
    ----------
    metric : str or callable, default="ece"
        Short or full name of a metric, its function or its scorer, or a function of your own of
        (y_true, y_proba), smaller = better. "ece" is the expected calibration error.
        "refined_log_loss" is the log-loss after the best temperature, found on the same samples:
        what a calibrator can repair does not count. Stop where it is least, then calibrate [1]_.
    n_bins, strategy, norm : of :func:`~skcalib.metrics.expected_calibration_error`
        Passed to a metric that takes them; options of a scorer or partial come first.
    on_train : bool, default=False
        Whether to score the training samples instead of the validation samples.
    name : str, default=None
        Name in the history; None means ``valid_`` and the short name of the metric, such as
        "valid_ece", with `on_train` "train_ece".
    use_caching : bool, default=True
        Whether to use the outputs of the epoch's own steps rather than predict anew.

    Raises
    ------
    ValueError
        In `fit`, if the net holds out no samples for validation and `on_train` is False.

    See Also
    --------
    skcalib.metrics.expected_calibration_error, skcalib.metrics.refined_log_loss : The metrics.
    skorch.callbacks.EarlyStopping : Stops at the best epoch it records.

    References
    ----------
    .. [1] E. Berta, D. Holzmüller, M. I. Jordan, F. Bach, "Rethinking Early Stopping: Refine,
       Then Calibrate", 2025, arXiv:2501.19195.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skorch.callbacks import EarlyStopping
    >>> from skorch.dataset import ValidSplit
    >>> from skcalib.nets import MLP, CalibratedNetClassifier, CalibrationScoring
    >>> X, y = load_iris(return_X_y=True)
    >>> callbacks = [
    ...     CalibrationScoring(metric="refined_log_loss"),
    ...     EarlyStopping(monitor="valid_refined_log_loss", patience=3, load_best=True),
    ... ]
    >>> net = CalibratedNetClassifier(
    ...     MLP, callbacks=callbacks, train_split=ValidSplit(5, stratified=True), random_state=0
    ... )
    >>> net = net.fit(X, y)
    >>> len(net.history_[:, "valid_refined_log_loss"]) == len(net.history_)
    True
    """

    # A parameter of EpochScoring that is fixed here.
    target_extractor = staticmethod(to_numpy)

    def __init__(
        self,
        *,
        metric: AnyMetric = "ece",
        n_bins: int = 15,
        strategy: str = "uniform",
        norm: str = "l1",
        on_train: bool = False,
        name: str | None = None,
        use_caching: bool = True,
    ) -> None:
        self.metric = metric
        self.n_bins = n_bins
        self.strategy = strategy
        self.norm = norm
        self.on_train = on_train
        self.name = name
        self.use_caching = use_caching

    def initialize(self) -> Self:
        """Check the parameters, reset the scores and set the name in the history."""
        for name in ("on_train", "use_caching"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}.")
        function, _ = self._unwrapped()
        if not callable(function):
            raise TypeError(
                f"metric must be a function or a name, got {type(self.metric).__name__}."
            )
        if not isinstance(self.name, str | None):
            raise TypeError(f"name must be a str or None, got {self.name!r}.")
        super().initialize()
        known = find_metric(function)
        metric = known.name if known else getattr(function, "__name__", "metric")
        self.name_ = self.name or f"{'train' if self.on_train else 'valid'}_{metric}"
        return self

    @property
    def lower_is_better(self) -> bool:
        """Whether smaller values of the metric are better."""
        known = find_metric(self._unwrapped()[0])
        return known is None or not known.greater_is_better

    def _unwrapped(self) -> tuple[Any, dict[str, Any]]:
        """Return the function of the metric, and the options of a scorer or partial."""
        function: Any = get_metric(self.metric)
        options: dict[str, Any] = {}
        while isinstance(function, partial) and not function.args:
            function, options = function.func, function.keywords | options
        return function, options

    def on_epoch_begin(self, net: Any, dataset_train: Any, dataset_valid: Any, **kw: Any) -> None:
        """Begin a new epoch.

        Parameters
        ----------
        net : CalibratedNetClassifier
            The net that trains.
        dataset_train : Dataset
            Training samples.
        dataset_valid : Dataset or None
            Validation samples.
        **kw : dict
            Further arguments of skorch.

        Raises
        ------
        ValueError
            If there are no validation samples and `on_train` is False.
        """
        if dataset_valid is None and not self.on_train:
            raise ValueError(
                "train_split must hold out samples for CalibrationScoring, unless on_train=True, "
                f"got {net.train_split!r}."
            )
        super().on_epoch_begin(net, dataset_train, dataset_valid, **kw)

    def scoring(self, net: Any, X: Any, y: Any) -> float:
        """Return the metric of the net.

        Parameters
        ----------
        net : CalibratedNetClassifier
            The net that trains.
        X : array-like or Dataset
            Samples.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        value : float
            The metric.
        """
        label, (metric, given) = net._encoded(y), self._unwrapped()
        predict = getattr(net.predict_proba, "__func__", None)
        own = predict is not NeuralNetClassifier.predict_proba
        # Another function may read arrays alone.
        proba = net.predict_proba(X) if own or not find_metric(metric) else _predict(net, X)
        columns = np.arange(len(net.classes_))  # a class may be missing among these samples
        options = {"labels": columns, "n_bins": self.n_bins, "strategy": self.strategy}
        options["norm"] = self.norm
        taken = {key: value for key, value in options.items() if has_argument(metric, key)}
        return float(metric(label, proba, **(taken | given)))


def _predict(net: Any, X: Any) -> Tensor:
    """Return what `predict_proba` does, as a tensor on the device of the net."""
    nonlinearity = predict_nonlinearity(net)
    outputs = net.forward_iter(X, device=net.device)
    return torch.cat([nonlinearity(get_first_output(z)).detach() for z in outputs])
