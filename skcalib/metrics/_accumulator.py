"""Calibration of data that arrives in pieces: sums over bins that add up."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._arrays import as_floats
from ..utils._binning import uniform_edges
from ..utils._private import Interval, validate_params
from ..utils._proba import as_proba
from ..utils._validation import check_predictions
from ._bins import NORM_CONSTRAINTS, Bins, ReliabilityCurve, curve_of, gap_norm, sums_between


class CalibrationAccumulator:
    """Calibration error of data that does not fit in memory, or that lies on several machines.

    The state is three sums for every bin, whatever the number of samples. Accumulators of parts
    of the data add up to the accumulator of the whole, whose result is
    :func:`expected_calibration_error` with ``strategy="uniform"``.

    Bins of equal weight depend on all samples at once, so no stream can build them exactly. Give
    `edges` instead, for instance those of a :func:`reliability_curve` of a first part.

    Parameters
    ----------
    n_bins : int, default=15
        Number of bins of equal width, at least 1. Not used where `edges` is given.
    norm : {"l1", "l2", "max"}, default="l1"
        How the gaps of the bins are combined, see :func:`expected_calibration_error`.
    edges : array-like of shape (n_edges,), default=None
        Edges of the bins, increasing from 0 to 1.
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns of `y_proba`, in order. None: integers 0, ..., n_classes - 1 or, if
        `y_true` holds other labels, its sorted distinct values.
    pos_label : int, bool or str, default=None
        Label of the positive class where `y_proba` has shape (n_samples,). None: the second of
        `labels`, or 1 where the labels are in {0, 1} or {-1, 1}.

    Attributes
    ----------
    edges_ : ndarray of shape (n_edges,)
        Edges of the bins in use.
    sums_ : ndarray of shape (3, n_edges - 1)
        Weight, weighted confidence and weighted correctness of every bin.
    classes_ : ndarray of shape (n_classes,) or None
        Labels of the columns, from the first update on.

    See Also
    --------
    expected_calibration_error : The same for arrays in memory.

    Examples
    --------
    >>> from skcalib.metrics import CalibrationAccumulator
    >>> first = CalibrationAccumulator(n_bins=5).update([0, 1], [0.1, 0.7])
    >>> second = CalibrationAccumulator(n_bins=5).update([1, 1], [0.7, 0.9])
    >>> round((first + second).result(), 3)
    0.2
    """

    @validate_params(
        {
            "n_bins": [Interval(Integral, 1, None, closed="left")],
            **NORM_CONSTRAINTS,
        },
        prefer_skip_nested_validation=True,
    )
    def __init__(
        self,
        n_bins: int = 15,
        *,
        norm: str = "l1",
        edges: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
    ) -> None:
        self.norm = norm
        self.labels = labels
        self.pos_label = pos_label
        self.edges_ = uniform_edges(n_bins) if edges is None else _check_edges(edges)
        self.sums_ = np.zeros((3, len(self.edges_) - 1))
        self.classes_: NDArray[Any] | None = None
        self._columns: tuple[int, ...] | None = None

    def update(
        self, y_true: ArrayLike, y_proba: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Add samples.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        True labels, integers or strings.

        Returns
        -------
        self : CalibrationAccumulator
            The accumulator itself.
        """
        # () for the positive class alone, (n_classes,) for a column a class.
        columns = as_proba(y_proba).shape[1:]
        if self._columns not in (None, columns):
            raise ValueError(
                f"y_proba must have the columns of the updates before, {self._columns}, "
                f"got {columns}."
            )
        # `classes_` has the positive class last, so `pos_label` has nothing left to say.
        known = self.classes_ is not None
        predictions = check_predictions(
            y_true,
            y_proba,
            sample_weight=sample_weight,
            labels=self.classes_ if known else self.labels,
            pos_label=None if known else self.pos_label,
            defer_values=True,
        )
        # The sums come first: a fault in a late block must not leave half an update behind.
        with np.errstate(over="ignore"):
            sums = self.sums_ + sums_between(predictions, self.edges_) * predictions.unit
        if not np.isfinite(sums).all():
            raise ValueError("sample_weight must have a finite sum over all updates, got inf.")
        self.sums_ = sums
        self._columns = columns
        # (label, label): all labels so far are positive, and the other class is not known yet.
        if len(np.unique(predictions.classes)) == len(predictions.classes):
            # Later updates may lack a class: what the columns are is settled here.
            self.classes_ = predictions.classes
        return self

    def result(self) -> float:
        """Return the calibration error of all samples so far.

        Returns
        -------
        error : float
            In [0, 1], smaller = better.
        """
        self._check_not_empty()
        return gap_norm(self.sums_, self.norm)

    def curve(self) -> ReliabilityCurve:
        """Return the reliability curve of all samples so far, see :func:`reliability_curve`.

        Returns
        -------
        curve : ReliabilityCurve
            Named tuple of ``prob_true``, ``prob_pred``, ``bin_weight`` and ``edges``.
        """
        self._check_not_empty()
        return curve_of(Bins(self.edges_, self.sums_))

    def _check_not_empty(self) -> None:
        if not self.sums_[0].any():
            raise ValueError("CalibrationAccumulator has no samples yet: call update first.")

    def __add__(self, other: CalibrationAccumulator) -> CalibrationAccumulator:
        if not isinstance(other, CalibrationAccumulator):
            return NotImplemented
        if self.norm != other.norm or not np.array_equal(self.edges_, other.edges_):
            raise ValueError("Only accumulators with the same norm and the same bins add up.")
        # None, where an accumulator has had no update, goes with any columns and classes.
        columns = {self._columns, other._columns} - {None}
        classes = [part.classes_ for part in (self, other) if part.classes_ is not None]
        if len(columns) > 1 or (classes and not np.array_equal(classes[0], classes[-1])):
            raise ValueError("Only accumulators of the same classes add up.")
        total = CalibrationAccumulator(
            norm=self.norm, edges=self.edges_, labels=self.labels, pos_label=self.pos_label
        )
        total.sums_ = self.sums_ + other.sums_
        total.classes_ = classes[0] if classes else None
        total._columns = columns.pop() if columns else None
        return total


def _check_edges(edges: ArrayLike) -> NDArray[np.float64]:
    # Equal edges pass: where many confidences are 0, quantiles give the edges 0, 0, ..., 1, and
    # the first bin holds the zeros.
    array = as_floats(edges, name="edges").astype(np.float64)
    if not (
        array.ndim == 1
        and len(array) >= 2
        and array[0] == 0
        and array[-1] == 1
        and np.all(np.diff(array) >= 0)
    ):
        raise ValueError(f"edges must increase from 0 to 1, got {edges!r}.")
    return array
