"""Record the predictions of a network for every sample while it trains."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import skorch.dataset
import torch
from numpy.typing import NDArray
from skorch.callbacks import Callback
from torch import Tensor

from ._components import first_output
from ._loop import TrainingLoop

_FIELDS = ("prediction", "confidence", "margin", "entropy")


class TrainingDynamics(Callback):
    """Record prediction, confidence, margin and entropy of every sample after every epoch.

    Functions of :mod:`skcalib.difficulty.records` turn the record into difficulties
    (:func:`~skcalib.difficulty.records.iteration_learned`,
    :func:`~skcalib.difficulty.records.forgetting_events`, ...). Another training can rank its
    samples by ``entropy_``, the ``target`` of its prioritizer. Column i is sample i of `fit`, held
    out for validation or not. One forward pass in evaluation mode makes a row, before the first
    epoch and after every epoch. A row takes 7 bytes per sample for up to 127 classes.

    Attributes
    ----------
    prediction_ : ndarray of shape (n_steps, n_samples), int8, int16 or int32
        Predicted classes, as positions in the net's ``classes_``. Row 0 is the untrained network:
        n_steps = n_epochs + 1.
    confidence_ : ndarray of shape (n_steps, n_samples), float16
        Probability of the label, in [0, 1].
    margin_ : ndarray of shape (n_steps, n_samples), float16
        Logit of the label minus the largest other logit; positive = correct. Its mean over the
        steps is the area under the margin. Clipped to +-65504.
    entropy_ : ndarray of shape (n_steps, n_samples), float16
        Predictive entropy in nats, larger = less certain.
    label_ : ndarray of shape (n_samples,)
        Labels, as positions in the net's ``classes_``.

    Raises
    ------
    ValueError
        In `fit`, if the labels of the samples are not known.

    See Also
    --------
    CalibratedNetClassifier : The net that calls it.
    skcalib.difficulty.records.area_under_margin : One of the functions that take its arrays.
    skcalib.plots.TrainingMapDisplay : Draws what it records.

    Notes
    -----
    A second `fit` with ``warm_start=True``, or another `partial_fit`, on the same samples
    continues the record; another number of samples starts a new one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcalib.difficulty.records import iteration_learned
    >>> from skcalib.nets import MLP, CalibratedNetClassifier, TrainingDynamics
    >>> X, y = load_iris(return_X_y=True)
    >>> dynamics = TrainingDynamics()
    >>> net = CalibratedNetClassifier(MLP, max_epochs=4, callbacks=[dynamics], random_state=0)
    >>> dynamics.prediction_.shape if net.fit(X, y) else None
    (5, 150)
    >>> iteration_learned(dynamics.prediction_).shape
    (150,)
    """

    def initialize(self) -> Self:
        """Delete the record, as the net resets its weights."""
        self._steps_: list[dict[str, NDArray[Any]]] = []
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
            If `y` is None.
        """
        if not isinstance(net, TrainingLoop):
            raise TypeError(
                "net must be a CalibratedNetClassifier for TrainingDynamics, got "
                f"{type(net).__name__}."
            )
        if y is None:
            raise ValueError(
                "y must be given to fit for TrainingDynamics, which needs the labels of all "
                "samples, got None."
            )
        if self._steps_ and len(self._steps_[0]["margin"]) != skorch.dataset.get_len(X):
            self.initialize()  # other data
        self.label_ = net._encoded(y)
        if not self._steps_:
            self._record(net, net.get_dataset(X, y))

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Record all samples.

        Parameters
        ----------
        net : CalibratedNetClassifier
            The net that trains.
        **kwargs : dict
            Further arguments of skorch.
        """
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

    def _recorded(self, field: str) -> NDArray[Any]:
        """Return a field of all steps, (n_steps, n_samples)."""
        if not getattr(self, "_steps_", None):
            raise AttributeError(f"TrainingDynamics has no {field}_ before the net is fitted.")
        return np.stack([step[field] for step in self._steps_])

    def _record(self, net: Any, dataset: Any) -> None:
        """Append a step: all fields of the samples of `dataset`, by a pass in evaluation mode."""
        measured, n_done = [], 0  # batches of the whole dataset come in the order of its samples
        for batch in net.get_iterator(dataset, ranking=True):
            logits = first_output(net.evaluation_step(batch)).detach().float()
            label = torch.from_numpy(self.label_[n_done : n_done + len(logits)])
            measured.append(_measures(logits, label.to(logits.device)))
            n_done += len(logits)
        # Half precision is enough to rank and to average; 1 + 3 * 2 bytes per sample and epoch.
        integers = (np.int8, np.int16, np.int32)
        whole = next(t for t in integers if len(net.classes_) <= np.iinfo(t).max)
        dtypes = whole, *[np.float16] * 3
        values = zip(_FIELDS, np.concatenate(measured, axis=1), dtypes)
        self._steps_.append({name: value.astype(dtype) for name, value, dtype in values})


def _measures(logits: Tensor, label: Tensor) -> NDArray[np.float32]:
    """Return the fields of a batch, (4, n_batch), in one transfer from its device."""
    label = label[:, None]
    proba = torch.softmax(logits, dim=1)
    others = logits.scatter(1, label, -torch.inf)
    limit = float(np.finfo(np.float16).max)  # beyond it float16 is infinite
    values = [
        logits.argmax(1).float(),
        proba.gather(1, label)[:, 0],
        (logits.gather(1, label)[:, 0] - others.amax(1)).clamp(-limit, limit),
        # xlogy is 0 where the probability is 0; 0 * log 0 would be NaN.
        -torch.special.xlogy(proba, proba).sum(1),
    ]
    return torch.stack(values).cpu().numpy()
