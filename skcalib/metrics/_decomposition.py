"""Parts of the Brier score and of the log-loss that recalibration can and cannot repair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression
from scipy.special import xlog1py, xlogy
from sklearn.utils import gen_batches

from ..utils._backends import as_float64, get_back_end
from ..utils._compat import StrOptions, validate_params
from ..utils._numeric import compute_row_max
from ..utils._proba import (
    SMALLEST_PROBABILITY,
    Predictions,
    check_predictions,
    iter_proba_blocks,
)
from ._per_sample import make_two_columns
from ._registry import register
from ._temperature_fit import DEFAULT_BOUNDS, compute_least_log_loss
from ._ties import tie_groups

# A block of the columns that are copied at once, half a megabyte of float32: with 50 000 rows of
# 1000 columns a third of the time of a copy without blocks.
_COLUMNS_AT_ONCE, _ROWS_AT_ONCE = 64, 2048


class ScoreDecomposition(NamedTuple):
    """Components of a mean score, in its unit; each a float, or an array over the classes.

    ``score`` is ``miscalibration - discrimination + uncertainty``.
    """

    miscalibration: Any
    discrimination: Any
    uncertainty: Any
    score: Any


@validate_params(
    {"scoring_rule": [StrOptions({"brier", "log_loss"})], "average": [StrOptions({"sum"}), None]}
)
def score_decomposition(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    scoring_rule: str = "brier",
    average: str | None = "sum",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> ScoreDecomposition:
    """Decompose a mean score into miscalibration, discrimination and uncertainty.

    The isotonic (CORP) decomposition [1]_: with S(p) the mean score of the predictions, S(c) that
    of the predictions recalibrated by isotonic regression on the same samples and S(r) that of
    the base rate, ``miscalibration = S(p) - S(c)``, ``discrimination = S(r) - S(c)`` and
    ``uncertainty = S(r)``. No bins are chosen, and all three are >= 0.

    With several classes, each is decomposed against the rest. For the Brier score the sums over
    the classes are the decomposition of the multi-class Brier score. The log-loss has no such
    identity: its ``score`` is the sum of the one-against-rest log-losses, which is larger than the
    multi-class log-loss.

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels, pos_label : of :func:`expected_calibration_error`
    scoring_rule : {"brier", "log_loss"}, default="brier"
        The score: squared error of the probability, or its negative logarithm in nats.
    average : {"sum"} or None, default="sum"
        For `y_proba` of shape (n_samples, n_classes): "sum" adds the classes up, None returns
        arrays of shape (n_classes,).

    Returns
    -------
    decomposition : ScoreDecomposition
        Named tuple of ``miscalibration`` (larger = worse), ``discrimination`` (larger = better),
        ``uncertainty`` (of the data, whatever the model) and ``score`` (larger = worse). The
        log-loss, and with it the miscalibration, is infinite where a probability of exactly 0 or
        1 is wrong.

    See Also
    --------
    expected_calibration_error : Miscalibration in bins of the confidence.
    refined_log_loss : The log-loss that one temperature leaves.
    skcalib.plots.DecompositionDisplay : The parts of several models as a picture.

    References
    ----------
    .. [1] T. Dimitriadis, T. Gneiting, A. I. Jordan, "Stable Reliability Diagrams for
       Probabilistic Classifiers", PNAS 2021, Eq. 2.

    Examples
    --------
    >>> from skcalib.metrics import score_decomposition
    >>> parts = score_decomposition([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> [round(part, 3) for part in parts]
    [0.085, 0.25, 0.25, 0.085]
    >>> parts = score_decomposition([0, 1, 0, 1], [0.3, 0.3, 0.8, 0.8])
    >>> [round(part, 3) for part in parts]
    [0.065, 0.0, 0.25, 0.315]
    """
    predictions = check_predictions(y_true, y_proba, sample_weight, labels, pos_label)
    proba, weight = predictions.proba, predictions.weight
    if proba.ndim == 1:
        parts = _decompose(proba, predictions.of_class(1), weight, scoring_rule)
        return ScoreDecomposition(*map(float, parts))
    of_classes = np.empty((4, proba.shape[1]))
    for k, column in enumerate(_iter_columns(proba)):
        of_classes[:, k] = _decompose(column, predictions.of_class(k), weight, scoring_rule)
    if average is None:
        return ScoreDecomposition(*of_classes)
    return ScoreDecomposition(*map(float, of_classes.sum(axis=1)))


@register("discrimination", greater_is_better=True)
def discrimination(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    scoring_rule: str = "brier",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Return the discrimination of :func:`score_decomposition`."""
    parts = score_decomposition(
        y_true,
        y_proba,
        scoring_rule=scoring_rule,
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
    )
    return parts.discrimination


@register("miscalibration")
def miscalibration(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    scoring_rule: str = "brier",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Return the miscalibration of :func:`score_decomposition`."""
    parts = score_decomposition(
        y_true,
        y_proba,
        scoring_rule=scoring_rule,
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
    )
    return parts.miscalibration


@register("refined_log_loss")
@np.errstate(under="ignore")
def refined_log_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Log-loss after the best temperature, found on the same samples: smaller = better.

    A proper score is calibration error plus refinement error, and recalibration removes the first.
    During a training, refinement and calibration are often best at different epochs: stop where
    this loss is smallest, then calibrate [1]_. The difference between the log-loss and this one is
    due to miscalibration.

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels, pos_label : of :func:`expected_calibration_error`

    Returns
    -------
    loss : float
        Mean log-loss in nats, not negative, at the best temperature between 1e-3 and 1e3. The
        two forms of `y_proba` for two classes give the same.

    See Also
    --------
    score_decomposition : Discrimination by isotonic regression, class by class.
    sklearn.metrics.log_loss : The loss before.
    skcalib.posthoc.TemperatureScaling : Finds that temperature.

    Notes
    -----
    Logits are logarithms of the probabilities, and probabilities below 1e-12 count as 1e-12.

    References
    ----------
    .. [1] E. Berta, D. Holzmüller, M. I. Jordan, F. Bach, "Rethinking Early Stopping: Refine,
       Then Calibrate", 2025, arXiv:2501.19195.

    Examples
    --------
    >>> from sklearn.metrics import log_loss
    >>> from skcalib.metrics import refined_log_loss
    >>> y_true, y_proba = [0, 1, 1, 0], [0.01, 0.99, 0.99, 0.97]
    >>> round(log_loss(y_true, y_proba), 3), round(refined_log_loss(y_true, y_proba), 3)
    (0.884, 0.504)
    """
    predictions = check_predictions(
        y_true, y_proba, sample_weight, labels, pos_label, defer_values=True
    )
    below, of_label = _subtract_top(predictions)
    _, move = get_back_end(below)
    weight = predictions.weight
    if predictions.is_soft:
        total = predictions.truth.sum(axis=1)
        of_label /= move(total)
        weight = total if weight is None else weight * total
    weight = None if weight is None else move(weight)
    return compute_least_log_loss(below, of_label, weight, DEFAULT_BOUNDS)


def _subtract_top(predictions: Predictions) -> tuple[Any, Any]:
    """Return log-probabilities minus the largest of their row, (n, K), and those of labels, (n,).

    The values are checked in the same pass. Those of soft labels are sums, weighted by the
    fractions. Those of tensors on an accelerator stay there, as tensors.
    """
    proba, truth = predictions.proba, predictions.truth
    dtype = np.float64 if proba.dtype == np.float64 else np.float32  # in float16, 1e-12 is 0
    shape = len(proba), 2 if proba.ndim == 1 else proba.shape[1]
    xp, move = get_back_end(proba)
    place = {} if xp is np else {"device": proba.device}
    below = xp.empty(shape, dtype=getattr(xp, np.dtype(dtype).name), **place)
    of_label = xp.empty(len(proba), dtype=xp.float64, **place)
    for rows, block in iter_proba_blocks(proba, on_device=True):
        part = below[rows]
        xp.clip(make_two_columns(block), SMALLEST_PROBABILITY, None, out=part)
        xp.log(part, out=part)
        part -= compute_row_max(part)[:, None]
        if predictions.is_soft:
            of_label[rows] = (as_float64(part) * move(truth[rows])).sum(1)
        else:
            of_label[rows] = as_float64(part[xp.arange(len(part), **place), move(truth[rows])])
    return below, of_label


def _iter_columns(matrix: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield the columns, contiguous, of which several are copied at once in blocks of rows.

    A row in memory holds the values of all: one by one, most of the time were spent on waiting.
    """
    n, n_columns = matrix.shape
    for start in range(0, n_columns, _COLUMNS_AT_ONCE):
        some = matrix[:, start : start + _COLUMNS_AT_ONCE]
        columns = np.empty(some.shape[::-1], matrix.dtype)
        for rows in gen_batches(n, _ROWS_AT_ONCE):
            columns[:, rows] = some[rows].T
        yield from columns


def _decompose(
    proba: NDArray, positive: NDArray[Any], weight: NDArray[np.float64] | None, rule: str
) -> NDArray[np.float64]:
    """Return miscalibration, discrimination, uncertainty and score of one class, shape (4,)."""
    if weight is not None:  # an infinite loss of weight 0 counts nothing
        used = weight > 0
        proba, positive, weight = proba[used], positive[used], weight[used]
    total, of_positive = _make_groups_to_pool(proba, positive, weight)
    fit = isotonic_regression(of_positive / total, weights=total)
    # The blocks of the regression, and all samples at the base rate.
    positive_in_block, in_block = np.add.reduceat([of_positive, total], fit.blocks[:-1], axis=1)
    n_positive, n_samples = np.sum(of_positive), np.sum(total)
    mean_score = _compute_brier if rule == "brier" else _log_loss
    # Clipped: rounding may take a probability beyond [0, 1], where it has no logarithm.
    score = mean_score(np.clip(proba, 0, 1, dtype=np.float64), positive, weight)
    rate, rates = n_positive / n_samples, positive_in_block / in_block
    best = mean_score(rates, rates, in_block)
    constant = mean_score(np.array([rate]), np.array([rate]), np.array([n_samples]))
    # Isotonic regression is the best non-decreasing map under either score. The identity and the
    # constants are such maps: differences below 0 are rounding.
    return np.array([max(score - best, 0), max(constant - best, 0), constant, score])


def _make_groups_to_pool(
    proba: NDArray, positive: NDArray[Any], weight: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weight and the positive weight of groups, in increasing order of `proba`.

    Equal predictions get equal recalibrated values: they count as one sample of their weight. So
    do, where that needs only sorted values, all samples between two positive ones: neighbors of
    equal means have equal values in every isotonic regression.
    """
    if weight is not None or positive.dtype != bool:
        groups = tie_groups(proba, positive, weight)
        return groups.weight[::-1], groups.positive[::-1]
    ordered = np.sort(proba)
    values, count = np.unique(proba[positive], return_counts=True)
    edges = np.empty(2 * len(values) + 2, np.intp)
    edges[0], edges[-1] = 0, len(proba)
    edges[1:-1:2] = np.searchsorted(ordered, values)
    edges[2:-1:2] = np.searchsorted(ordered, values, side="right")
    total = np.diff(edges).astype(np.float64)
    of_positive = np.zeros(len(total))
    of_positive[1::2] = count
    return total[total > 0], of_positive[total > 0]


def _compute_brier(p: NDArray, positive: NDArray, weight: NDArray[np.float64] | None) -> float:
    """Return the mean score of predictions `p`, true where or to the fraction `positive`."""
    with np.errstate(under="ignore"):
        losses = p - positive
        np.square(losses, out=losses)
        if positive.dtype != bool:
            losses += positive * (1 - positive)
    return float(np.average(losses, weights=weight))


def _log_loss(p: NDArray, positive: NDArray, weight: NDArray[np.float64] | None) -> float:
    """Return the mean score as :func:`_compute_brier` does."""
    if positive.dtype != bool:
        # 0 log(0) = 0: a probability of 0 costs nothing where the outcome never occurs.
        losses = -xlogy(positive, p) - xlog1py(1 - positive, -p)
    else:
        with np.errstate(divide="ignore"):
            losses = -np.log1p(-p)
            losses[positive] = -np.log(p[positive])
    return float(np.average(losses, weights=weight))
