"""Binned calibration errors: of the top label, of the positive class, and class by class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import gen_batches

from ..utils._arrays import count_unit, warn_if_normalized
from ..utils._backends import BLOCKS_AT_ONCE, as_float64, get_back_end, to_host
from ..utils._compat import Interval, StrOptions, validate_params
from ..utils._numeric import (
    BLOCK_SIZE,
    FEW_COLUMNS,
    bin_index,
    bin_sums,
    compute_quantile_sums,
    compute_quantiles_of_rows,
    compute_uniform_edges,
    find_limits,
    merge_edges,
)
from ..utils._proba import (
    Predictions,
    check_predictions,
    check_values,
    expand_soft_labels,
    iter_proba_blocks,
)
from ._registry import register
from ._ties import tie_groups

# Confidence and correctness of predictions, and their sums over bins of confidence.
#
# Every calibration error compares the two; binned errors are functions of the sums.

Metric = TypeVar("Metric", bound=Callable[..., Any])
BINNING_CONSTRAINTS: dict[str, list[Any]] = {
    "n_bins": [Interval(Integral, 1, None, closed="left")],
    "strategy": [StrOptions({"uniform", "quantile"})],
}
NORM_CONSTRAINTS: dict[str, list[Any]] = {"norm": [StrOptions({"l1", "l2", "max"})]}


class Kind(NamedTuple):
    """How a calibration error is computed: `rule` and `norm` of its ``ResidualError``.

    With `compute_top_label`, the error depends only on the confidence and correctness of every
    sample.
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


def get_kind(metric: Callable[..., Any]) -> Kind | None:
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
    predictions: Predictions, *, on_device: bool = False
) -> Iterator[tuple[slice, Any, Any]]:
    """Yield (rows, confidence, correct) for blocks of rows, and check their probabilities.

    Probabilities of shape (n, K) are evaluated on the top label: confidence is the largest
    probability, and correct means that its class (the first of ties, as in `predict`) is the true
    one. Probabilities of shape (n,) are evaluated on the positive class: confidence is the
    probability, and correct means positive. Where people differ, correct is the fraction that
    agrees with the prediction. Those of a tensor come as arrays or, with `on_device`, as tensors.
    """
    for rows, block in iter_proba_blocks(predictions.proba, on_device=True):
        if block.ndim == 1:
            confidence, correct = block, predictions.of_class(1, rows)
        else:
            confidence, correct = _compute_top_label(predictions, rows, block, on_device)
        yield rows, confidence, correct


def _compute_top_label(
    predictions: Predictions, rows: slice, block: Any, on_device: bool
) -> tuple[Any, Any]:
    """Return confidence and correctness of a block (n, K) of probabilities, each (n,)."""
    if not isinstance(block, np.ndarray):
        if on_device:
            return _compute_top_label_there(predictions, rows, block)
        # Only two numbers per sample leave the device, in one transfer: the bits of the largest
        # probability beside its class. torch takes the first of ties, too.
        torch, _ = get_back_end(block)
        values, labels = block.max(dim=1)
        width = torch.int32 if values.dtype == torch.float32 else torch.int64
        bits, top = to_host(torch.stack([values.view(width), labels.to(width)]))
        confidence = bits.view(np.float32 if width == torch.int32 else np.float64)
        return confidence, predictions.of_columns(top, rows)
    if block.shape[1] == 2:
        first, second = block.T
        return np.maximum(first, second), predictions.of_columns(second > first, rows)
    index = np.arange(len(block))
    if block.shape[1] <= FEW_COLUMNS and not predictions.is_soft:
        # If no row has two equal largest values, the maximum is enough: no argmax is needed.
        columns = np.ascontiguousarray(block.T)
        confidence = columns.max(axis=0)
        if np.count_nonzero(columns == confidence) == len(block):
            return confidence, columns[predictions.codes[rows], index] == confidence
    # With ties, the first of the largest is the prediction.
    top = block.argmax(axis=1)
    return block[index, top], predictions.of_columns(top, rows)


def _compute_top_label_there(predictions: Predictions, rows: slice, block: Any) -> tuple[Any, Any]:
    """Return what `_compute_top_label` does, as tensors."""
    _, place = get_back_end(block)
    confidence, top = block.max(dim=1)  # the first of ties, as of an array
    truth = place(predictions.truth[rows])
    correct = truth.gather(1, top[:, None])[:, 0] if truth.ndim == 2 else truth == top
    return confidence, correct.double()  # torch subtracts no booleans


def compute_top_label(predictions: Predictions, *, on_device: bool = False) -> tuple[Any, Any]:
    """Return confidence and correctness (a boolean or a fraction) of all samples, each (n,)."""
    blocks = iter_top_label(predictions, on_device=on_device)
    confidence, correct = zip(*(found for _, *found in blocks))
    xp, _ = get_back_end(confidence[0])
    return xp.concatenate(confidence), xp.concatenate(correct)


def compute_bins(predictions: Predictions, *, n_bins: int, strategy: str) -> Bins:
    """Return the bins of predictions, and check their probabilities."""
    if strategy == "uniform":
        edges = compute_uniform_edges(n_bins)
        return Bins(edges, sum_bins(predictions, edges))
    confidence, correct = compute_top_label(predictions, on_device=True)
    if isinstance(confidence, np.ndarray):
        return Bins(*compute_quantile_sums(confidence, correct, predictions.weight, n_bins))
    levels, weight = np.arange(1, n_bins) / n_bins, predictions.weight
    edges = merge_edges(to_host(compute_quantiles_of_rows(confidence[None], levels, weight)[0]))
    return Bins(edges, sum_bins(predictions, edges))


def sum_bins(predictions: Predictions, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of weight, confidence and correctness between the edges, (3, n_bins)."""
    if not isinstance(predictions.proba, np.ndarray):
        return _sum_top_label_on_device(predictions, edges)
    sums = np.zeros((3, len(edges) - 1))
    for rows, confidence, correct in iter_top_label(predictions):
        weight = None if predictions.weight is None else predictions.weight[rows]
        sums += bin_sums(confidence, correct, weight, edges)
    return sums


def _sum_top_label_on_device(
    predictions: Predictions, edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what `sum_bins` does; only the sums leave the device."""
    proba = predictions.proba
    torch, move = get_back_end(proba)
    limits = move(find_limits(edges, _find_dtype_there(proba)))
    sums = torch.zeros((3, len(edges) - 1), dtype=torch.float64, device=proba.device)
    for rows, confidence, correct in iter_top_label(predictions, on_device=True):
        n = len(confidence)
        weight = move(np.ones(n) if predictions.weight is None else predictions.weight[rows])
        parts = torch.stack([weight, weight * confidence, weight * correct])
        sums.index_add_(1, torch.bucketize(confidence, limits), parts)
    return to_host(sums)


def compute_residual_norm(sums: NDArray[np.float64], norm: str) -> Any:
    """Return the "l1", "l2" or "max" norm of the differences between confidence and accuracy.

    Bins are weighted by their fraction of the weight; empty bins count 0. `sums` of shape
    (3, n_bins) give a number, those of shape (n_classes, 3, n_bins) an array (n_classes,).
    """
    # Divide by the largest weight, which cancels: huge sums would overflow below.
    scaled = sums / sums[..., :1, :].max(axis=-1, keepdims=True)
    weight, difference = scaled[..., 0, :], np.abs(scaled[..., 1, :] - scaled[..., 2, :])
    if norm == "l1":
        return difference.sum(axis=-1) / weight.sum(axis=-1)
    residual = difference / np.where(weight > 0, weight, 1)
    if norm == "max":
        return residual.max(axis=-1)
    return np.sqrt((weight * residual**2).sum(axis=-1) / weight.sum(axis=-1))


def compute_debiased_norm(sums: NDArray[np.float64], *, squared: bool = False) -> float:
    """Return the debiased error of sums over bins, (3, n_bins); weights are numbers of samples."""
    count, confidence, correct = sums[:, sums[0] > 1]
    accuracy = correct / count
    # For the accuracy a of n samples, E[a (1 - a)] = (n - 1) Var[a].
    unbiased = (confidence / count - accuracy) ** 2 - accuracy * (1 - accuracy) / (count - 1)
    # Bins left out count 0: the mean is over the weight of all bins.
    error = float(count @ unbiased / sums[0].sum())
    return error if squared else float(np.sqrt(max(error, 0.0)))


def compute_curve(bins: Bins) -> ReliabilityCurve:
    """Return accuracy, mean confidence and weight of every bin."""
    weight, confidence, correct = bins.sums
    with np.errstate(invalid="ignore"):  # 0 / 0 in an empty bin
        return ReliabilityCurve(correct / weight, confidence / weight, weight.copy(), bins.edges)


# Calibration errors of the top label, or of the positive class.


@register("ece")
@declares("bins", "l1")
@validate_params(BINNING_CONSTRAINTS | NORM_CONSTRAINTS)
def expected_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    norm: str = "l1",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Expected calibration error (ECE): the mean difference between confidence and accuracy.

    The samples are put into bins by confidence. With `y_proba` of shape (n_samples, n_classes),
    confidence is the largest probability of a sample, and accuracy the fraction of samples where
    its class is the true one (top label); with shape (n_samples,), they are the probability and
    the fraction of the positive class. With n_b samples of n in bin b, the error is the sum of
    ``n_b / n |acc_b - conf_b|`` [1]_, [2]_. For two classes these are two different errors: a
    probability of .3 for the positive class is a top-label confidence of .7 in the other class.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
        True labels, integers or strings. Where people differ: the fraction of people who gave each
        label, one column for every class, in the order of `labels` or as columns of a DataFrame
        named by them; rows sum to 1. A sample then counts once with every label, weighted by its
        fraction.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, in the order of `labels` or as columns of a DataFrame named
        by them, or of the positive class. Of dask arrays, scores of single samples are lazy;
        errors add up in a :class:`~skcalib.metrics.CalibrationAccumulator`.
    n_bins : int, default=15
        Number of bins, at least 1.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal weight. Bins are ``(a, b]``, with 0 in the first.
        The edges of bins of equal weight are observed confidences; equal edges are merged, so
        that equal confidences share a bin and the order of the samples never matters. Arrays in
        chunks have no bins of equal weight.
    norm : {"l1", "l2", "max"}, default="l1"
        The mean of the absolute differences, the root of the mean squared difference, or the
        largest.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; a weight of k counts as k samples.
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns of `y_proba`, in order. None: integers 0, ..., n_classes - 1 or, if
        `y_true` holds other labels, its sorted distinct values.
    pos_label : int, bool or str, default=None
        Label of the positive class where `y_proba` has shape (n_samples,). None: the second of
        `labels`, or 1 where the labels are in {0, 1} or {-1, 1}.

    Returns
    -------
    error : float
        In [0, 1], smaller = better.

    Raises
    ------
    ValueError
        If probabilities are NaN, if they are outside [0, 1] or their rows off a sum of 1 by more
        than 1e-3, if labels are unknown, or if lengths differ.

    See Also
    --------
    debiased_calibration_error : Without the bias of finite bins.
    smooth_calibration_error : Without bins.
    CalibrationAccumulator : For data that arrives in pieces.
    calibration_error_interval : Its confidence interval.
    skcalib.plots.ReliabilityDisplay : The differences as a picture.
    skcalib.posthoc.PostHocCalibratedClassifier : Makes it smaller.

    References
    ----------
    .. [1] M. P. Naeini, G. F. Cooper, M. Hauskrecht, "Obtaining Well Calibrated Probabilities
       Using Bayesian Binning", AAAI 2015.
    .. [2] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On Calibration of Modern Neural Networks",
       ICML 2017, Eq. 3.

    Examples
    --------
    >>> from skcalib.metrics import expected_calibration_error
    >>> y_proba = [[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.4, 0.6]]
    >>> round(expected_calibration_error([0, 0, 1, 0], y_proba), 3)
    0.1
    """
    bins, _ = _compute_bins(y_true, y_proba, n_bins, strategy, sample_weight, labels, pos_label)
    return float(compute_residual_norm(bins.sums, norm))


@register("mce")
@declares("bins", "max")
@validate_params(BINNING_CONSTRAINTS)
def maximum_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Maximum calibration error (MCE): the largest error of a bin.

    It is :func:`expected_calibration_error` with ``norm="max"`` [1]_. The bin with the largest
    difference is often one with few samples: read it beside :func:`reliability_curve`.

    Parameters
    ----------
    y_true, y_proba, n_bins, strategy : of :func:`expected_calibration_error`
    sample_weight, labels, pos_label : of :func:`expected_calibration_error`

    Returns
    -------
    error : float
        In [0, 1], smaller = better.

    See Also
    --------
    expected_calibration_error : The mean difference, which depends less on small bins.
    ks_calibration_error : A largest difference without bins.
    reliability_curve : The bins themselves.

    References
    ----------
    .. [1] M. P. Naeini, G. F. Cooper, M. Hauskrecht, "Obtaining Well Calibrated Probabilities
       Using Bayesian Binning", AAAI 2015.

    Examples
    --------
    >>> from skcalib.metrics import maximum_calibration_error
    >>> y_proba = [[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.2, 0.8]]
    >>> round(maximum_calibration_error([0, 0, 1, 0], y_proba), 3)
    0.3
    """
    bins, _ = _compute_bins(y_true, y_proba, n_bins, strategy, sample_weight, labels, pos_label)
    return float(compute_residual_norm(bins.sums, "max"))


@register("debiased_ece")
@declares("debiased", "l2")
@validate_params(BINNING_CONSTRAINTS | {"squared": ["boolean"]})
def debiased_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    squared: bool = False,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Debiased L2 calibration error.

    In a bin of n_b samples, the squared difference (conf_b - acc_b)^2 exceeds that of an infinite
    sample by the variance of acc_b: a perfectly calibrated model gets an error that is not 0. Here
    the unbiased estimate acc_b (1 - acc_b) / (n_b - 1) of that variance is subtracted [1]_.

    Parameters
    ----------
    y_true, y_proba, n_bins, strategy, labels, pos_label : of :func:`expected_calibration_error`
    squared : bool, default=False
        Whether to return the squared error, which is unbiased and may be negative, instead of
        its root, for which negative values are taken as 0.
    sample_weight : array-like of shape (n_samples,), default=None
        Numbers of samples: the estimate depends on how many there are, so here, unlike in the
        other calibration errors, the scale of the weights matters.

    Returns
    -------
    error : float
        In [0, 1], smaller = better; with `squared`, in [-0.5, 1].

    See Also
    --------
    expected_calibration_error : With ``norm="l2"``, the same without the correction.
    smooth_calibration_error : Without bins.

    Notes
    -----
    A bin with one sample, or less in weight, has no unbiased estimate and counts 0. Shares in
    `y_true` count as one label drawn from them: if they are known exactly, too much variance is
    subtracted, and the estimate is too small.

    References
    ----------
    .. [1] A. Kumar, P. Liang, T. Ma, "Verified Uncertainty Calibration", NeurIPS 2019,
       Def. 5.1.

    Examples
    --------
    >>> from skcalib.metrics import debiased_calibration_error
    >>> y_proba = [0.1, 0.1, 0.1, 0.1, 0.6, 0.6, 0.6, 0.6]
    >>> round(debiased_calibration_error([0, 0, 0, 0, 1, 1, 1, 0], y_proba, n_bins=5), 4)
    0.0
    >>> round(
    ...     debiased_calibration_error(
    ...         [0, 0, 0, 0, 1, 1, 1, 0], y_proba, n_bins=5, squared=True
    ...     ),
    ...     4,
    ... )
    -0.015
    """
    predictions = check_predictions(
        y_true, y_proba, sample_weight, labels, pos_label, defer_values=True
    )
    bins = compute_bins(predictions, n_bins=n_bins, strategy=strategy)
    if predictions.counts is not None:
        warn_if_normalized(predictions.counts)
    return compute_debiased_norm(bins.sums * count_unit(predictions.unit), squared=squared)


@register("ks")
@declares("ks", "max")
def ks_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Kolmogorov-Smirnov calibration error: the largest cumulative difference.

    With the samples in order of confidence, it is the largest distance between the cumulative
    confidence and the cumulative accuracy, as fractions of all samples [1]_. Equal confidences
    enter together, so the order of the samples does not matter.

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels, pos_label : of :func:`expected_calibration_error`

    Returns
    -------
    error : float
        In [0, 1], smaller = better. At least half the difference between mean confidence and
        accuracy in any interval of confidences, times the fraction of samples in it.

    See Also
    --------
    expected_calibration_error : With bins.
    smooth_calibration_error : With a kernel.
    calibration_test : Whether the error is larger than chance makes it.

    References
    ----------
    .. [1] K. Gupta, A. Rahimi, T. Ajanthan, T. Mensink, C. Sminchisescu, R. Hartley, "Calibration
       of Neural Networks Using Splines", ICLR 2021, Eq. 6.

    Examples
    --------
    >>> from skcalib.metrics import ks_calibration_error
    >>> round(ks_calibration_error([0, 1, 1, 1], [0.2, 0.6, 0.6, 0.8]), 3)
    0.2
    """
    predictions = check_predictions(
        y_true, y_proba, sample_weight, labels, pos_label, defer_values=True
    )
    confidence, correct = compute_top_label(predictions, on_device=True)
    # Rounding may take a probability below 0. Groups of ties come in decreasing order.
    score, weight, positive = tie_groups(confidence.clip(min=0), correct, predictions.weight)
    difference = as_float64(score) * weight - positive
    xp, _ = get_back_end(difference)
    return float(abs(xp.flip(difference, (0,)).cumsum(0)).max() / weight.sum())


@validate_params(BINNING_CONSTRAINTS)
def reliability_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> ReliabilityCurve:
    """Accuracy against confidence, bin by bin.

    Parameters
    ----------
    y_true, y_proba, n_bins, strategy : of :func:`expected_calibration_error`
    sample_weight, labels, pos_label : of :func:`expected_calibration_error`

    Returns
    -------
    curve : ReliabilityCurve
        Named tuple of arrays. ``prob_true`` is the accuracy (or the fraction of the
        positive class) and ``prob_pred`` the mean confidence of every bin, both in [0, 1] and
        NaN where a bin is empty; ``bin_weight`` is the sum of the weights of its samples;
        ``edges`` has one entry more. Equal-mass bins may be fewer than `n_bins`.

    See Also
    --------
    skcalib.plots.ReliabilityDisplay : The plot of the curve.
    sklearn.calibration.calibration_curve : Two classes, without weights.
    isotonic_reliability_curve : Without bins, by isotonic regression.
    smooth_reliability_curve : Without bins, by a kernel.
    expected_calibration_error : The mean difference over the bins.

    Examples
    --------
    >>> from skcalib.metrics import reliability_curve
    >>> curve = reliability_curve([0, 1, 1, 1], [0.1, 0.7, 0.7, 0.9], n_bins=2)
    >>> curve.prob_true, curve.bin_weight
    (array([0., 1.]), array([1., 3.]))
    """
    bins, unit = _compute_bins(y_true, y_proba, n_bins, strategy, sample_weight, labels, pos_label)
    curve = compute_curve(bins)
    with np.errstate(over="ignore"):  # a sum of weights may be infinite, the rest is not
        return curve._replace(bin_weight=curve.bin_weight * unit)


def _compute_bins(
    y_true: Any, y_proba: Any, n_bins: int, strategy: str, *given: Any
) -> tuple[Bins, float]:
    """Return the bins of predictions, and the unit of their weights.

    `given` are `sample_weight`, `labels` and `pos_label`. The values of `y_proba` are checked
    while they are summed.
    """
    predictions = check_predictions(y_true, y_proba, *given, defer_values=True)
    return compute_bins(predictions, n_bins=n_bins, strategy=strategy), predictions.unit


# Calibration error class by class, over all columns at once.


@register("classwise_ece")
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
        How the differences of the bins of one class are combined.
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
        sums = compute_class_sums_between(predictions, compute_uniform_edges(n_bins))
    elif predictions.proba.ndim == 1:
        sums = compute_bins(predictions, n_bins=n_bins, strategy=strategy).sums[np.newaxis]
    else:
        sums = _compute_quantile_sums(predictions, n_bins)
    errors = compute_residual_norm(sums, norm)
    return errors if average is None else float(errors.mean())


def compute_class_sums_between(
    predictions: Predictions, edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the sums of all classes over bins with given edges, (n_classes, 3, n_bins).

    The shape is (1, 3, n_bins) for one-dimensional probabilities.
    """
    if predictions.proba.ndim == 1:
        return sum_bins(predictions, edges)[np.newaxis]
    if not isinstance(predictions.proba, np.ndarray):
        limits = find_limits(edges, _find_dtype_there(predictions.proba))
        return _sum_classes_on_device(predictions, limits)
    n_classes, n_bins = predictions.proba.shape[1], len(edges) - 1
    # Views of one array: adding to the three changes `sums`.
    weights, values, correct = sums = np.zeros((3, n_classes, n_bins))
    totals = np.zeros(n_classes)
    for rows, block in iter_proba_blocks(predictions.proba):
        limits = np.append(find_limits(edges, block.dtype), np.inf)[:1]  # inf: a single bin
        weight = None if predictions.weight is None else predictions.weight[rows]
        # A sample is correct for class k if k is its label: one entry per row, or one for every
        # class with a positive fraction.
        truth = predictions.truth[rows]
        sample, label, label_weight = (
            expand_soft_labels(truth, weight)
            if predictions.is_soft
            else (np.arange(len(block)), truth, weight)
        )
        _add_to_bins(correct, label, bin_index(block[sample, label], edges), label_weight)
        # Rows sum to 1, so few values of a row lie above the first bin: only these are looked up.
        above = block > limits
        entry = np.flatnonzero(above)
        row, column = np.divmod(entry, n_classes)
        value = block.ravel()[entry]
        index = bin_index(value, edges)
        if weight is None:
            _add_to_bins(weights, column, index, None)
            _add_to_bins(values, column, index, value)
            totals += np.ones(len(block)) @ block
        else:
            _add_to_bins(weights, column, index, weight[row])
            _add_to_bins(values, column, index, value * weight[row])
            # Not by a difference as below: rounding would give an empty bin a weight.
            weights[:, 0] += weight @ ~above
            values[:, 0] += weight @ (block * ~above)
    if predictions.weight is None:
        # Differences of counts are exact, and the rounding of the values is far below them.
        weights[:, 0] = len(predictions.proba) - weights[:, 1:].sum(axis=1)
        values[:, 0] = totals - values[:, 1:].sum(axis=1)
    return sums.transpose(1, 0, 2)


def _find_dtype_there(proba: Any) -> np.dtype[Any]:
    """Return the dtype in which rows on an accelerator are read."""
    return np.dtype(np.float64 if proba.dtype == np.float64 else np.float32)


def _sum_classes_on_device(predictions: Predictions, limits: NDArray[Any]) -> NDArray[np.float64]:
    """Return the sums of `compute_class_sums_between`; only they leave the device.

    The `limits` are those of all classes, (n_bins - 1,), or of each, (n_classes, n_bins - 1).
    """
    proba, n_bins = predictions.proba, limits.shape[-1] + 1
    torch, move = get_back_end(proba)
    n_classes = proba.shape[1]
    first_bin = n_bins * torch.arange(n_classes, device=proba.device)
    sums = torch.zeros((3, n_classes * n_bins), dtype=torch.float64, device=proba.device)
    of_all, there = limits.ndim == 1, move(limits)
    for rows, block in iter_proba_blocks(proba, on_device=True):
        of_row = np.ones(len(block)) if predictions.weight is None else predictions.weight[rows]
        weight = move(of_row)[:, None]
        if of_all:
            key = torch.bucketize(block, there)
        else:
            key = torch.searchsorted(there, block.T.contiguous()).T.contiguous()
        key += first_bin
        sums[0].index_add_(0, key.ravel(), weight.expand(block.shape).ravel())
        sums[1].index_add_(0, key.ravel(), (weight * block).ravel())
        truth = move(predictions.truth[rows])
        if predictions.is_soft:
            sums[2].index_add_(0, key.ravel(), (weight * truth).ravel())
        else:
            sums[2].index_add_(0, key.gather(1, truth[:, None])[:, 0], weight[:, 0])
    return to_host(sums).reshape(3, n_classes, n_bins).transpose(1, 0, 2)


def _add_to_bins(
    sums: NDArray[np.float64],
    column: NDArray[np.intp],
    index: NDArray[np.intp],
    weight: NDArray[Any] | None,
) -> None:
    """Add the weight of every entry (None: 1) to its bin (column, index) of `sums`."""
    # Number the bins: both ways below are fast along a single axis only.
    key = column * sums.shape[1] + index
    if len(key) >= sums.size:
        sums += np.bincount(key, weight, sums.size).reshape(sums.shape)
    else:
        # With many classes, a block has fewer entries than bins: `bincount` would be slower.
        np.add.at(sums.reshape(-1), key, 1.0 if weight is None else weight.astype(np.float64))


def _compute_quantile_sums(predictions: Predictions, n_bins: int) -> NDArray[np.float64]:
    """Return the sums of every class over its own bins of equal weight, (n_classes, 3, n_bins)."""
    # Quantiles need whole columns: the values are checked in a pass of their own.
    proba = predictions.proba
    check_values(proba)
    if not isinstance(proba, np.ndarray):
        return _sum_classes_on_device(predictions, _find_quantile_limits(predictions, n_bins))
    # Where edges are merged, the last bins stay empty.
    sums = np.zeros((proba.shape[1], 3, n_bins))
    for k, column in enumerate(proba.T):
        values, is_label = np.ascontiguousarray(column), predictions.of_class(k)
        _, of_class = compute_quantile_sums(values, is_label, predictions.weight, n_bins)
        sums[k, :, : of_class.shape[1]] = of_class
    return sums


def _find_quantile_limits(predictions: Predictions, n_bins: int) -> NDArray[Any]:
    """Return the limits of the bins of every class on an accelerator, (n_classes, n_bins - 1).

    Where edges are merged, the last limits are infinite. Only the quantiles leave the device.
    """
    proba, levels = predictions.proba, np.arange(1, n_bins) / n_bins
    torch, _ = get_back_end(proba)
    n_samples, n_classes = proba.shape
    n_columns = max(1, BLOCKS_AT_ONCE * BLOCK_SIZE // n_samples)
    observed = [
        compute_quantiles_of_rows(proba[:, columns].T.contiguous(), levels, predictions.weight)
        for columns in gen_batches(n_classes, n_columns)
    ]
    dtype = _find_dtype_there(proba)
    limits = np.full((n_classes, n_bins - 1), np.inf, dtype=dtype)
    for of_class, quantiles in zip(limits, to_host(torch.cat(observed))):
        edges = merge_edges(quantiles)
        of_class[: len(edges) - 2] = find_limits(edges, dtype)
    return limits
