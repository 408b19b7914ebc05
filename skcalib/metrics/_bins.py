"""Confidence and correctness of predictions, and their sums over bins of confidence.

Every calibration error compares the two; binned errors are functions of the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..utils.checking._arrays import to_host
from ..utils.checking._proba import iter_proba_blocks
from ..utils.checking._validation import Predictions
from ..utils.computing._binning import bin_sums, quantile_sums, uniform_edges
from ..utils.computing._blocks import FEW_COLUMNS
from ..utils.meta._private import Interval, StrOptions

Metric = TypeVar("Metric", bound=Callable[..., Any])

BINNING_CONSTRAINTS: dict[str, list[Any]] = {
    "n_bins": [Interval(Integral, 1, None, closed="left")],
    "strategy": [StrOptions({"uniform", "quantile"})],
}
NORM_CONSTRAINTS: dict[str, list[Any]] = {"norm": [StrOptions({"l1", "l2", "max"})]}


class Kind(NamedTuple):
    """How a calibration error is computed: `rule` and `norm` of :class:`._gaps.GapError`.

    With `top_label`, the error depends only on the confidence and correctness of every sample.
    """

    rule: str
    norm: str
    top_label: bool
    metric: Callable[..., Any]


def declares(rule: str, norm: str, *, top_label: bool = True) -> Callable[[Metric], Metric]:
    """Mark a metric with its :class:`Kind`, which its intervals and tests use."""

    def declare(metric: Metric) -> Metric:
        metric._kind = Kind(rule, norm, top_label, metric)  # type: ignore[attr-defined]
        return metric

    return declare


def kind_of(metric: Callable[..., Any]) -> Kind | None:
    """Return the :class:`Kind` of a metric of this package, None for any other."""
    kind = getattr(metric, "_kind", None)
    # functools.wraps copies the attribute to a wrapper, which may compute something else.
    return kind if kind is not None and kind.metric is metric else None


class Bins(NamedTuple):
    """Edges, (n_bins + 1,), and the sums of weight, confidence and correctness in every bin.

    ``sums`` is (3, n_bins); confidence and correctness are weighted.
    """

    edges: NDArray[np.float64]
    sums: NDArray[np.float64]


class ReliabilityCurve(NamedTuple):
    """Accuracy against confidence in every bin; NaN where a bin is empty."""

    prob_true: NDArray[np.float64]
    prob_pred: NDArray[np.float64]
    bin_weight: NDArray[np.float64]
    edges: NDArray[np.float64]


def iter_top_label(
    predictions: Predictions,
) -> Iterator[tuple[slice, NDArray[Any], NDArray[Any]]]:
    """Yield (rows, confidence, correct) for blocks of rows, and check their probabilities.

    Probabilities of shape (n, K) are evaluated on the top label: confidence is the largest
    probability, and correct means that its class (the first of ties, as in `predict`) is the true
    one. Probabilities of shape (n,) are evaluated on the positive class: confidence is the
    probability, and correct means positive. Where people differ, correct is the share of those who
    agree with the prediction.
    """
    for rows, block in iter_proba_blocks(predictions.proba, on_device=True):
        if block.ndim == 1:
            confidence, correct = block, predictions.of_class(1, rows)
        else:
            confidence, correct = _top_label(predictions, rows, block)
        yield rows, confidence, correct


def _top_label(
    predictions: Predictions, rows: slice, block: Any
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return confidence and correctness of a block (n, K) of probabilities, each (n,)."""
    if not isinstance(block, np.ndarray):
        # Only two numbers per sample leave the device. torch takes the first of ties, too.
        values, labels = block.max(dim=1)
        return to_host(values), predictions.of_columns(to_host(labels), rows)
    index = np.arange(len(block))
    if block.shape[1] <= FEW_COLUMNS and not predictions.has_shares:
        # If no row has two equal largest values, the maximum is enough: no argmax is needed.
        columns = np.ascontiguousarray(block.T)
        confidence = columns.max(axis=0)
        if np.count_nonzero(columns == confidence) == len(block):
            return confidence, columns[predictions.codes[rows], index] == confidence
    # With ties, the first of the largest is the prediction.
    top = block.argmax(axis=1)
    return block[index, top], predictions.of_columns(top, rows)


def top_label(predictions: Predictions) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return confidence and correctness (a boolean or a share) of all samples, each (n,)."""
    blocks = [(confidence, correct) for _, confidence, correct in iter_top_label(predictions)]
    confidence, correct = zip(*blocks)
    return np.concatenate(confidence), np.concatenate(correct)


def binned(predictions: Predictions, *, n_bins: int, strategy: str) -> Bins:
    """Return the bins of predictions, and check their probabilities."""
    if strategy == "uniform":
        edges = uniform_edges(n_bins)
        return Bins(edges, sums_between(predictions, edges))
    confidence, correct = top_label(predictions)
    return Bins(*quantile_sums(confidence, correct, predictions.weight, n_bins))


def sums_between(predictions: Predictions, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of weight, confidence and correctness between the edges, (3, n_bins)."""
    sums = np.zeros((3, len(edges) - 1))
    for rows, confidence, correct in iter_top_label(predictions):
        weight = None if predictions.weight is None else predictions.weight[rows]
        sums += bin_sums(confidence, correct, weight, edges)
    return sums


def gap_norm(sums: NDArray[np.float64], norm: str) -> Any:
    """Return the "l1", "l2" or "max" norm of the gaps between confidence and accuracy.

    Bins are weighted by their fraction of the weight; empty bins count 0. `sums` of shape
    (3, n_bins) give a number, those of shape (n_classes, 3, n_bins) an array (n_classes,).
    """
    # Divide by the largest weight, which cancels: huge sums would overflow below.
    scaled = sums / sums[..., :1, :].max(axis=-1, keepdims=True)
    weight, difference = scaled[..., 0, :], np.abs(scaled[..., 1, :] - scaled[..., 2, :])
    if norm == "l1":
        return difference.sum(axis=-1) / weight.sum(axis=-1)
    gap = difference / np.where(weight > 0, weight, 1)
    if norm == "max":
        return gap.max(axis=-1)
    return np.sqrt((weight * gap**2).sum(axis=-1) / weight.sum(axis=-1))


def debiased_norm(sums: NDArray[np.float64], *, squared: bool = False) -> float:
    """Return the debiased error of sums over bins, (3, n_bins); weights are numbers of samples."""
    count, confidence, correct = sums[:, sums[0] > 1]
    accuracy = correct / count
    # For the accuracy a of n samples, E[a (1 - a)] = (n - 1) Var[a].
    unbiased = (confidence / count - accuracy) ** 2 - accuracy * (1 - accuracy) / (count - 1)
    # Bins left out count 0: the mean is over the weight of all bins.
    error = float(count @ unbiased / sums[0].sum())
    return error if squared else float(np.sqrt(max(error, 0.0)))


def curve_of(bins: Bins) -> ReliabilityCurve:
    """Return accuracy, mean confidence and weight of every bin."""
    weight, confidence, correct = bins.sums
    with np.errstate(invalid="ignore"):  # 0 / 0 in an empty bin
        return ReliabilityCurve(correct / weight, confidence / weight, weight.copy(), bins.edges)
