"""Calibration error after every epoch."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from skorch.callbacks import EpochScoring
from skorch.utils import to_numpy

from ..metrics import expected_calibration_error


class CalibrationMonitor(EpochScoring):
    """Record the expected calibration error after every epoch.

    Like every :class:`skorch.callbacks.EpochScoring` it writes its value and whether it is the
    best so far into the history, so that early stopping and checkpoints can go by it; it uses the
    predictions that validation has made already.

    Parameters
    ----------
    n_bins : int, default=15
        Number of bins of the confidence.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width or of equal mass.
    norm : {"l1", "l2", "max"}, default="l1"
        Norm over the bins.
    on_train : bool, default=False
        Whether to judge the training samples instead of the validation samples.
    name : str, default=None
        Name in the history; None means "valid_ece", or "train_ece" with `on_train`.
    use_caching : bool, default=True
        Whether to use the outputs of the epoch's own steps rather than predict anew.

    Raises
    ------
    ValueError
        In `fit`, if the net holds out no samples for validation and `on_train` is False.

    See Also
    --------
    skcalib.metrics.expected_calibration_error : the metric.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skorch.callbacks import EarlyStopping
    >>> from skorch.dataset import ValidSplit
    >>> from skcalib.nets import MLP, CalibratedNetClassifier, CalibrationMonitor
    >>> X, y = load_iris(return_X_y=True)
    >>> callbacks = [CalibrationMonitor(), EarlyStopping(monitor="valid_ece", patience=3)]
    >>> net = CalibratedNetClassifier(
    ...     MLP, callbacks=callbacks, train_split=ValidSplit(5, stratified=True), random_state=0
    ... )
    >>> net = net.fit(X, y)
    >>> len(net.history_[:, "valid_ece"]) == len(net.history_)
    True
    """

    # Parameters of EpochScoring that are settled here.
    lower_is_better: ClassVar[bool] = True
    target_extractor = staticmethod(to_numpy)

    def __init__(
        self,
        *,
        n_bins: int = 15,
        strategy: str = "uniform",
        norm: str = "l1",
        on_train: bool = False,
        name: str | None = None,
        use_caching: bool = True,
    ) -> None:
        self.n_bins = n_bins
        self.strategy = strategy
        self.norm = norm
        self.on_train = on_train
        self.name = name
        self.use_caching = use_caching

    def initialize(self) -> Self:
        """Check the parameters, forget earlier scores and settle the name in the history."""
        for name in ("on_train", "use_caching"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}.")
        super().initialize()
        self.name_ = self.name or ("train_ece" if self.on_train else "valid_ece")
        return self

    def on_epoch_begin(self, net: Any, dataset_train: Any, dataset_valid: Any, **kw: Any) -> None:
        """Begin a new epoch; without validation samples there is nothing to judge."""
        if dataset_valid is None and not self.on_train:
            raise ValueError(
                "train_split must hold out samples for CalibrationMonitor, unless on_train=True, "
                f"got {net.train_split!r}."
            )
        super().on_epoch_begin(net, dataset_train, dataset_valid, **kw)

    def scoring(self, net: Any, X: Any, y: Any) -> float:
        """Return the calibration error of the net on X and y.

        Parameters
        ----------
        net : CalibratedNetClassifier
            The net.
        X : object
            Samples, as the net takes them.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        error : float
            In [0, 1], smaller = better.
        """
        return expected_calibration_error(
            net._encoded(y),
            net.predict_proba(X),
            n_bins=self.n_bins,
            strategy=self.strategy,
            norm=self.norm,
            labels=np.arange(len(net.classes_)),  # a class may be missing among these samples
        )
