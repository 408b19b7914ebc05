"""Calibration error class by class, over all columns at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils.checking._arrays import to_host
from ..utils.checking._proba import check_values, iter_proba_blocks
from ..utils.checking._shares import rows_of
from ..utils.checking._validation import Predictions, check_predictions
from ..utils.computing._binning import bin_index, quantile_sums, round_down, uniform_edges
from ..utils.meta._private import StrOptions, validate_params
from ._bins import BINNING_CONSTRAINTS, NORM_CONSTRAINTS, binned, declares, gap_norm, sums_between


@declares("bins", "l1", top_label=False)
@validate_params(
    BINNING_CONSTRAINTS | NORM_CONSTRAINTS | {"average": [StrOptions({"macro"}), None]}
)
def classwise_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    norm: str = "l1",
    average: str | None = "macro",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float | NDArray[np.float64]:
    """Classwise calibration error: the mean over classes of the error of each probability.

    The error of class k is the binary :func:`expected_calibration_error` of column k against "the
    label is k" [1]_. The top label alone may be calibrated while the other probabilities are not;
    this error covers them all.

    Parameters
    ----------
    y_true, y_proba, n_bins, strategy : of :func:`expected_calibration_error`
    sample_weight, labels, pos_label : of :func:`expected_calibration_error`
    norm : {"l1", "l2", "max"}, default="l1"
        How the gaps of the bins of one class are combined.
    average : {"macro"} or None, default="macro"
        Mean over classes, or None for the error of every class.

    Returns
    -------
    error : float or ndarray of shape (n_classes,)
        In [0, 1], smaller = better. With `y_proba` of shape (n_samples,) there is one class,
        the positive one.

    See Also
    --------
    multilabel_calibration_error : For label indicators, label by label.
    expected_calibration_error : Of the predicted class alone.
    skcalib.plots.ClassReliabilityDisplay : A diagram for every class.

    References
    ----------
    .. [1] M. Kull, M. Perello-Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach, "Beyond
       Temperature Scaling: Obtaining Well-Calibrated Multiclass Probabilities with Dirichlet
       Calibration", NeurIPS 2019, Def. 3.

    Examples
    --------
    >>> from skcalib.metrics import classwise_calibration_error
    >>> y_proba = [[0.6, 0.3, 0.1], [0.6, 0.3, 0.1], [0.6, 0.1, 0.3], [0.6, 0.3, 0.1]]
    >>> classwise_calibration_error([0, 0, 1, 2], y_proba, average=None).round(3)
    array([0.1 , 0.45, 0.25])
    """
    predictions = check_predictions(
        y_true, y_proba, sample_weight, labels, pos_label, defer_values=True
    )
    if strategy == "uniform":
        sums = class_sums_between(predictions, uniform_edges(n_bins))
    elif predictions.proba.ndim == 1:
        sums = binned(predictions, n_bins=n_bins, strategy=strategy).sums[np.newaxis]
    else:
        sums = _quantile_sums(predictions, n_bins)
    errors = gap_norm(sums, norm)
    return errors if average is None else float(errors.mean())


def class_sums_between(
    predictions: Predictions, edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the sums of all classes over bins with given edges, (n_classes, 3, n_bins).

    The shape is (1, 3, n_bins) for one-dimensional probabilities.
    """
    if predictions.proba.ndim == 1:
        return sums_between(predictions, edges)[np.newaxis]
    n_classes, n_bins = predictions.proba.shape[1], len(edges) - 1
    # Views of one array: adding to the three changes `sums`.
    weights, values, correct = sums = np.zeros((3, n_classes, n_bins))
    totals = np.zeros(n_classes)
    for rows, block in iter_proba_blocks(predictions.proba):
        weight = None if predictions.weight is None else predictions.weight[rows]
        # A sample is correct for class k if k is its label: one entry per row, or one for every
        # class that has a share.
        truth = predictions.truth[rows]
        sample, label, mass = (
            rows_of(truth, weight)
            if predictions.has_shares
            else (np.arange(len(block)), truth, weight)
        )
        _add_to_cells(correct, label, bin_index(block[sample, label], edges), mass)
        # Rows sum to 1, so few values of a row lie above the first bin: only these are looked up.
        above = block > round_down(edges[1:2], block.dtype)
        entry = np.flatnonzero(above)
        row, column = np.divmod(entry, n_classes)
        value = block.ravel()[entry]
        index = bin_index(value, edges)
        if weight is None:
            _add_to_cells(weights, column, index, None)
            _add_to_cells(values, column, index, value)
            totals += np.ones(len(block)) @ block
        else:
            _add_to_cells(weights, column, index, weight[row])
            _add_to_cells(values, column, index, value * weight[row])
            # Not by a difference as below: rounding would give an empty bin a weight.
            weights[:, 0] += weight @ ~above
            values[:, 0] += weight @ (block * ~above)
    if predictions.weight is None:
        # Differences of counts are exact, and the rounding of the values is far below a gap.
        weights[:, 0] = len(predictions.proba) - weights[:, 1:].sum(axis=1)
        values[:, 0] = totals - values[:, 1:].sum(axis=1)
    return sums.transpose(1, 0, 2)


def _add_to_cells(
    sums: NDArray[np.float64],
    column: NDArray[np.intp],
    index: NDArray[np.intp],
    mass: NDArray[Any] | None,
) -> None:
    """Add the mass of every entry (None: 1) to its cell (column, index) of `sums`."""
    # Number the cells: both ways below are fast along a single axis only.
    cell = column * sums.shape[1] + index
    if len(cell) >= sums.size:
        sums += np.bincount(cell, mass, sums.size).reshape(sums.shape)
    else:
        # With many classes, a block has fewer entries than cells: `bincount` would be slower.
        np.add.at(sums.reshape(-1), cell, 1.0 if mass is None else mass.astype(np.float64))


def _quantile_sums(predictions: Predictions, n_bins: int) -> NDArray[np.float64]:
    """Return the sums of every class over its own bins of equal weight, (n_classes, 3, n_bins)."""
    # Quantiles need whole columns: the values are checked in a pass of their own.
    check_values(predictions.proba)
    proba = to_host(predictions.proba[:])
    # Where edges are merged, the last bins stay empty.
    sums = np.zeros((proba.shape[1], 3, n_bins))
    for k, column in enumerate(proba.T):
        values, is_label = np.ascontiguousarray(column), predictions.of_class(k)
        _, of_class = quantile_sums(values, is_label, predictions.weight, n_bins)
        sums[k, :, : of_class.shape[1]] = of_class
    return sums
