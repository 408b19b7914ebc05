"""Calibration error or refinement error after every epoch."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from skorch.callbacks import EpochScoring
from skorch.utils import to_numpy

from ..metrics import expected_calibration_error, refined_log_loss


class CalibrationMonitor(EpochScoring):
    """Record calibration error or refinement error after every epoch, smaller = better.

    Like every :class:`skorch.callbacks.EpochScoring`, it writes into the history its value and
    whether it is the best so far, for early stopping and checkpoints. It uses the predictions that
    validation has made already.

    Parameters
    ----------
    metric : {"ece", "refinement"}, default="ece"
        "ece" is the expected calibration error. "refinement" is the log-loss after the best
        temperature, found on the same samples: what a calibrator can repair does not count. Stop
        where it is least, then calibrate [1]_.
    n_bins, strategy, norm : of :func:`~skcalib.metrics.expected_calibration_error`
    on_train : bool, default=False
        Whether to score the training samples instead of the validation samples.
    name : str, default=None
        Name in the history; None means "valid_ece" or "valid_refinement", with `on_train`
        "train_ece" or "train_refinement".
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
    >>> from skcalib.nets import MLP, CalibratedNetClassifier, CalibrationMonitor
    >>> X, y = load_iris(return_X_y=True)
    >>> callbacks = [
    ...     CalibrationMonitor(metric="refinement"),
    ...     EarlyStopping(monitor="valid_refinement", patience=3, load_best=True),
    ... ]
    >>> net = CalibratedNetClassifier(
    ...     MLP, callbacks=callbacks, train_split=ValidSplit(5, stratified=True), random_state=0
    ... )
    >>> net = net.fit(X, y)
    >>> len(net.history_[:, "valid_refinement"]) == len(net.history_)
    True
    """

    # Parameters of EpochScoring that are fixed here.
    lower_is_better: ClassVar[bool] = True
    target_extractor = staticmethod(to_numpy)

    def __init__(
        self,
        *,
        metric: str = "ece",
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
        if self.metric not in ("ece", "refinement"):
            raise ValueError(f"metric must be 'ece' or 'refinement', got {self.metric!r}.")
        if not isinstance(self.name, str | None):
            raise TypeError(f"name must be a str or None, got {self.name!r}.")
        super().initialize()
        self.name_ = self.name or f"{'train' if self.on_train else 'valid'}_{self.metric}"
        return self

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
                "train_split must hold out samples for CalibrationMonitor, unless on_train=True, "
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
            The metric, smaller = better.
        """
        label, proba = net._encoded(y), net.predict_proba(X)
        columns = np.arange(len(net.classes_))  # a class may be missing among these samples
        if self.metric == "refinement":
            return refined_log_loss(label, proba, labels=columns)
        return expected_calibration_error(
            label,
            proba,
            n_bins=self.n_bins,
            strategy=self.strategy,
            norm=self.norm,
            labels=columns,
        )
