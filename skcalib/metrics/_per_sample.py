"""Scores of single samples: how confident a prediction is, and how far from the truth."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import sklearn.metrics
from numpy.typing import ArrayLike, NDArray

from ..utils._arrays import as_floats
from ..utils._backends import (
    align_chunks,
    as_float64,
    by_chunks,
    find_distinct_labels,
    get_back_end,
    is_chunked,
    map_chunks,
    to_host,
)
from ..utils._compat import Interval, validate_params
from ..utils._labels import as_labels, match_binary, match_columns
from ..utils._numeric import (
    compute_row_entropy,
    compute_row_margin,
    compute_row_max,
    compute_row_sum,
    iter_blocks,
)
from ..utils._proba import (
    LOSS_FLOOR,
    Predictions,
    as_proba,
    check_predictions,
    iter_proba_blocks,
)
from ._registry import LossesOfLabels, register, register_losses


def predictive_entropy(y_proba: ArrayLike) -> NDArray:
    """Entropy of every predicted distribution: larger = less confident.

    Parameters
    ----------
    y_proba : array-like or dask array of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, or of the positive class; see :func:`confidence_score`.

    Returns
    -------
    entropy : ndarray or dask array of shape (n_samples,)
        ``-sum_k p_k log(p_k)`` in nats, in [0, log(n_classes)]; a probability of 0 contributes 0.

    See Also
    --------
    confidence_score : The largest probability; larger = more confident.
    probability_margin : The largest minus the second-largest; larger = more confident.

    Examples
    --------
    >>> from skcalib.metrics import predictive_entropy
    >>> predictive_entropy([[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]]).round(4)
    array([0.6931, 0.3251, 0.    ])
    """
    return _score_rows(compute_row_entropy, y_proba)


def confidence_score(y_proba: ArrayLike) -> NDArray:
    """Largest probability of every sample (maximum softmax probability): larger = more confident.

    The baseline of selective prediction and of out-of-distribution detection [1]_.

    Parameters
    ----------
    y_proba : array-like or dask array of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, or of the positive class.

    Returns
    -------
    confidence : ndarray or dask array of shape (n_samples,)
        Probability of the predicted class, in [1 / n_classes, 1].
        float64 for float64 input, float32 for float32 and float16.

    Raises
    ------
    ValueError
        If `y_proba` holds NaN, values outside [0, 1] or rows that do not sum to 1.

    See Also
    --------
    probability_margin : The lead over the second-largest probability.
    predictive_entropy : Uses all probabilities; larger = less confident.
    max_logit_score : The same of logits.
    misclassification_report : How well it detects errors.

    References
    ----------
    .. [1] D. Hendrycks, K. Gimpel, "A Baseline for Detecting Misclassified and Out-of-Distribution
       Examples in Neural Networks", ICLR 2017.

    Examples
    --------
    >>> from skcalib.metrics import confidence_score
    >>> confidence_score([[0.2, 0.8], [0.9, 0.1]])
    array([0.8, 0.9])
    """
    return _score_rows(compute_row_max, y_proba)


def probability_margin(y_proba: ArrayLike) -> NDArray:
    """Largest minus second-largest probability of every sample: larger = more confident [1]_.

    Parameters
    ----------
    y_proba : array-like or dask array of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, or of the positive class; see :func:`confidence_score`.

    Returns
    -------
    margin : ndarray or dask array of shape (n_samples,)
        Difference of the two largest probabilities, in [0, 1]; 0 where they are tied.

    See Also
    --------
    confidence_score : The largest probability alone.
    predictive_entropy : Uses all probabilities; larger = less confident.

    References
    ----------
    .. [1] T. Scheffer, C. Decomain, S. Wrobel, "Active Hidden Markov Models for Information
       Extraction", IDA 2001.

    Examples
    --------
    >>> from skcalib.metrics import probability_margin
    >>> probability_margin([[0.5, 0.25, 0.25], [0.4, 0.4, 0.2]])
    array([0.25, 0.  ])
    """
    return _score_rows(compute_row_margin, y_proba)


def max_logit_score(logits: ArrayLike) -> NDArray:
    """Largest logit of every sample: larger = more confident [1]_.

    Parameters
    ----------
    logits : array-like or dask array of shape (n_samples, n_classes)
        Logits. Unlike probabilities, they distinguish a sample with several likely classes from
        one with no likely class.

    Returns
    -------
    score : ndarray or dask array of shape (n_samples,)
        Largest logits; float64 for float64 input, float32 for float32 and float16.

    Raises
    ------
    ValueError
        If `logits` is not of two dimensions and at least two columns, or is not finite.

    See Also
    --------
    energy_score : The smooth maximum of the logits.
    confidence_score : The largest probability.

    References
    ----------
    .. [1] D. Hendrycks, S. Basart, M. Mazeika, A. Zou, J. Kwon, M. Mostajabi, J. Steinhardt,
       D. Song, "Scaling Out-of-Distribution Detection for Real-World Settings", ICML 2022.

    Examples
    --------
    >>> from skcalib.metrics import max_logit_score
    >>> max_logit_score([[1.0, 7.0], [2.0, -1.0]])
    array([7., 2.])
    """
    return _score_logits(compute_row_max, logits)


@validate_params({"temperature": [Interval(Real, 0, None, closed="neither")]})
def energy_score(logits: ArrayLike, *, temperature: float = 1.0) -> NDArray:
    """Negative free energy of every sample: larger = more like the training data.

    The score is ``T log(sum_k exp(z_k / T))``, the energy of [1]_ with its sign reversed. It ranks
    samples like :func:`max_logit_score`, its limit for T -> 0, and in the direction that
    :func:`ood_report` expects.

    Parameters
    ----------
    logits : array-like or dask array of shape (n_samples, n_classes)
        Logits; see :func:`max_logit_score`.
    temperature : float, default=1.0
        The temperature T, positive.

    Returns
    -------
    score : ndarray or dask array of shape (n_samples,)
        Scores between the largest logit and the largest logit plus ``T log(n_classes)``.

    See Also
    --------
    ood_report : How well scores detect out-of-distribution data.
    max_logit_score : The largest logit alone.

    References
    ----------
    .. [1] W. Liu, X. Wang, J. D. Owens, Y. Li, "Energy-based Out-of-distribution Detection",
       NeurIPS 2020, Eq. 4.

    Examples
    --------
    >>> from skcalib.metrics import energy_score
    >>> energy_score([[1.0, 7.0], [2.0, 2.0]]).round(3)
    array([7.002, 2.693])
    """
    return _score_logits(partial(_compute_row_energy, temperature=temperature), logits)


@validate_params(
    {
        "order": [Interval(Real, 1, None, closed="both")],
        "exponent": [Interval(Real, 0, None, closed="neither")],
    }
)
def generalized_brier_score(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    order: float = 2,
    exponent: float = 2,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> NDArray:
    """Distance of every predicted distribution from the truth: larger = worse.

    With p the probabilities of a sample and e the one-hot vector of its label, the score is
    ``norm(p - e, ord=order) ** exponent`` [1]_. The defaults give the Brier score of the sample.
    Where people differ, it is the mean of the scores of all labels, weighted by their fractions.

    Parameters
    ----------
    y_true, y_proba, labels, pos_label : of :func:`expected_calibration_error`
    order : float, default=2
        Order of the norm, at least 1; ``inf`` is the largest deviation, 1 - p[label].
    exponent : float, default=2
        Power of the norm, positive.

    Returns
    -------
    score : ndarray or dask array of shape (n_samples,)
        Scores in [0, 2 ** (exponent / order)]: 0 where the label has probability 1. float64 for
        float64 `y_proba`, float32 for float32 and float16.

    See Also
    --------
    score_decomposition : What the mean Brier score consists of.
    sklearn.metrics.brier_score_loss : The mean for ``order=exponent=2``.

    References
    ----------
    .. [1] J. Lin, L. Tao, M. Dong, C. Xu, "Uncertainty Weighted Gradients for Model Calibration",
       CVPR 2025. Calls: :ref:`paper-gra`.

    Examples
    --------
    >>> from skcalib.metrics import generalized_brier_score
    >>> y_proba = [[0.8, 0.1, 0.1], [0.5, 0.5, 0.0]]
    >>> generalized_brier_score([0, 2], y_proba).round(2)
    array([0.06, 1.5 ])
    >>> generalized_brier_score([0, 2], y_proba, order=1, exponent=1).round(2)
    array([0.4, 2. ])
    """
    if is_chunked(y_proba):
        proba, y = align_chunks(y_proba=y_proba, y_true=y_true)
        known = get_classes_of_chunks(y, proba.shape[1:], pos_label) if labels is None else labels
        options = {"order": order, "exponent": exponent, "labels": known, "pos_label": pos_label}
        dtype = np.float64 if proba.dtype == np.float64 else np.float32
        return map_chunks(_compute_brier_of_chunk, options, proba, y, dtype=dtype)
    predictions = check_predictions(
        y_true, y_proba, labels=labels, pos_label=pos_label, defer_values=True
    )
    proba = predictions.proba
    out: NDArray[Any] = np.zeros(
        len(proba), np.float64 if proba.dtype == np.float64 else np.float32
    )
    for rows, block in iter_proba_blocks(proba):
        truth, score = predictions.truth[rows], partial(_compute_brier, block, order, exponent)
        if not predictions.is_soft:
            out[rows] = score(truth)
            continue
        for k in np.flatnonzero(truth.any(axis=0)):
            out[rows] += truth[:, k] * score(np.full(len(block), k))
    return out


def _compute_brier(
    block: NDArray, order: float, exponent: float, codes: NDArray[np.intp]
) -> NDArray:
    """Return the scores of a block of probabilities, (n, K) or (n,), for one label a sample."""
    if block.ndim == 1:
        # The two classes deviate by the same d: (d^order + d^order)^(exponent / order).
        deviation = np.abs(block - codes.astype(block.dtype))
        return deviation**exponent * 2.0 ** (exponent / order)
    label = np.arange(len(block)), codes
    # |p - e|: p, and 1 - p at the label. abs, since rounding may take p beyond [0, 1].
    deviation = np.abs(block)
    deviation[label] = np.abs(1 - block[label])
    return _compute_power_of_norm(deviation, order, exponent)


def _compute_brier_of_chunk(options: dict[str, Any], y_proba: NDArray, y_true: NDArray) -> NDArray:
    return generalized_brier_score(y_true, y_proba, **options)


# Means of losses of single samples. A loss is computed under every possible label, (n, K), of
# tensors where they lie.


def log_losses(proba: NDArray[Any]) -> NDArray[np.float64]:
    """Return the log-losses in nats."""
    xp, _ = get_back_end(proba)
    return -xp.log(xp.clip(as_float64(make_two_columns(proba)), LOSS_FLOOR, None))


def compute_brier_scores(proba: NDArray[Any]) -> NDArray[np.float64]:
    """Return the Brier scores, sums over the classes, in [0, 2]."""
    columns = as_float64(make_two_columns(proba))
    return 1 - 2 * columns + (columns**2).sum(1)[:, None]


def compute_correctness(proba: NDArray[Any]) -> NDArray[np.float64]:
    """Return 1 where the label is the predicted class, else 0."""
    _, place = get_back_end(proba)
    columns = make_two_columns(proba)
    return as_float64(columns.argmax(1)[:, None] == place(np.arange(columns.shape[1])))


def compute_excess_confidence(proba: NDArray[Any]) -> NDArray[np.float64]:
    """Return confidence minus correctness; of the positive class, probability minus outcome."""
    if proba.ndim == 1:
        return proba[:, np.newaxis].astype(np.float64) - np.arange(2)
    xp, _ = get_back_end(proba)
    return as_float64(xp.amax(proba, 1)[:, None]) - compute_correctness(proba)


def _log_losses_of_scikit_learn(proba: NDArray[Any]) -> NDArray[np.float64]:
    """Return the log-losses with the clipping of `sklearn.metrics.log_loss`."""
    eps = np.finfo(proba.dtype).eps
    return -np.log(np.clip(make_two_columns(proba), eps, 1 - eps).astype(np.float64))


def _compute_brier_scores_of_scikit_learn(proba: NDArray[Any]) -> NDArray[np.float64]:
    """Return the Brier scores of `sklearn.metrics.brier_score_loss`, of two classes the half."""
    scores = compute_brier_scores(proba)
    return scores / 2 if scores.shape[1] == 2 else scores


register_losses(sklearn.metrics.log_loss, _log_losses_of_scikit_learn)
register_losses(sklearn.metrics.brier_score_loss, _compute_brier_scores_of_scikit_learn)


def compute_losses_of_truth(of_label: Any, truth: NDArray[Any]) -> Any:
    """Return the losses (n,) under the given labels; of soft labels, their weighted means."""
    _, place = get_back_end(of_label)
    if truth.ndim == 2:
        return (of_label * place(truth)).sum(1)
    return of_label[place(np.arange(len(truth))), place(truth)]


def sum_losses(predictions: Predictions, losses: LossesOfLabels) -> float:
    """Return the weighted sum of the losses of all samples, and check their probabilities."""
    total = 0.0
    for rows, block in iter_proba_blocks(predictions.proba, on_device=True):
        _, place = get_back_end(block)
        found = compute_losses_of_truth(losses(block), predictions.truth[rows])
        weight = None if predictions.weight is None else place(predictions.weight[rows])
        total += found.sum() if weight is None else weight @ found
    return float(total)


def _compute_mean_loss(
    losses: LossesOfLabels,
    y_true: ArrayLike,
    y_proba: ArrayLike,
    sample_weight: ArrayLike | None,
    labels: ArrayLike | None,
    pos_label: Any,
) -> float:
    predictions = check_predictions(
        y_true, y_proba, sample_weight, labels, pos_label, defer_values=True
    )
    weight = predictions.weight
    n = len(predictions.truth) if weight is None else float(weight.sum())
    return sum_losses(predictions, losses) / n


@register("log_loss", losses=log_losses)
def log_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Return the mean log-loss in nats."""
    return _compute_mean_loss(log_losses, y_true, y_proba, sample_weight, labels, pos_label)


@register("brier", losses=compute_brier_scores)
def brier(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Return the mean Brier score, the sum over all classes, in [0, 2]."""
    return _compute_mean_loss(
        compute_brier_scores, y_true, y_proba, sample_weight, labels, pos_label
    )


@register("accuracy", greater_is_better=True, losses=compute_correctness)
def accuracy(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Return the fraction of correct predictions."""
    return _compute_mean_loss(
        compute_correctness, y_true, y_proba, sample_weight, labels, pos_label
    )


@register("overconfidence", greater_is_better=None, losses=compute_excess_confidence)
def overconfidence(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Return the mean confidence minus the accuracy, in [-1, 1]."""
    return _compute_mean_loss(
        compute_excess_confidence, y_true, y_proba, sample_weight, labels, pos_label
    )


@by_chunks
def _score_rows(score: Callable[[NDArray], NDArray], y_proba: ArrayLike) -> NDArray:
    """Return the score of every row of checked probabilities, (n,)."""
    proba = as_proba(y_proba, in_blocks=True)
    out = np.empty(len(proba), np.float64 if proba.dtype == np.float64 else np.float32)
    for rows, block in iter_proba_blocks(proba, on_device=True):
        out[rows] = to_host(score(make_two_columns(block)))
    return out


@by_chunks
def _score_logits(score: Callable[[NDArray], NDArray], logits: ArrayLike) -> NDArray:
    """Return the score of every row of checked logits, (n,)."""
    matrix = _check_matrix(logits)
    return np.concatenate([score(block) for _, block in iter_blocks(matrix)])


def _compute_row_energy(block: NDArray, temperature: float) -> NDArray:
    # T log sum_k exp(z_k / T) = m + T log sum_k exp((z_k - m) / T), m the largest z_k: no term
    # of the second sum exceeds 1.
    top = compute_row_max(block)
    # A smaller temperature could be 0 in this dtype; from `tiny` down, the score is the maximum.
    scale = block.dtype.type(max(temperature, np.finfo(block.dtype).tiny))
    with np.errstate(over="ignore"):  # infinite differences add exp(-inf) = 0
        return top + scale * np.log(compute_row_sum(np.exp((block - top[:, None]) / scale)))


def _check_matrix(logits: ArrayLike) -> NDArray:
    matrix = check_logits(logits)
    if matrix.ndim != 2:
        raise ValueError(
            f"logits must have shape (n_samples, n_classes), got shape {matrix.shape}."
        )
    return matrix


def _compute_power_of_norm(deviation: NDArray, order: float, exponent: float) -> NDArray:
    """Return ``norm ** exponent`` of every row, (n,)."""
    largest = compute_row_max(deviation)
    # norm = m (sum_k (d_k / m)^order)^(1 / order), m the largest d_k. For order -> inf the sum
    # has no effect; where m is 0 the first factor is 0.
    if np.isinf(order):
        return largest**exponent
    # Powers of ratios to the largest deviation: powers of the deviations could underflow.
    ratio = deviation / np.where(largest > 0, largest, 1)[:, None]
    with np.errstate(under="ignore"):
        return largest**exponent * compute_row_sum(ratio**order) ** (exponent / order)


def check_logits(logits: ArrayLike, *, name: str = "logits") -> NDArray[Any]:
    """Return finite scores of shape (n, K) or (n,), dtype kept, no copy."""
    array = as_floats(logits, name=name)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] < 2):
        raise ValueError(
            f"{name} must have shape (n_samples, n_classes) with at least two classes, "
            f"or (n_samples,), got shape {array.shape}."
        )
    if len(array) == 0:
        raise ValueError(f"{name} must have at least one row, got shape {array.shape}.")
    for rows, block in iter_blocks(array):
        finite = np.isfinite(block)
        if not finite.all():
            place = np.argwhere(~finite)[0]
            raise ValueError(
                f"{name} must be finite, got {block[tuple(place)]} in row {rows.start + place[0]}."
            )
    return array


def make_two_columns(block: NDArray) -> NDArray:
    """Return (n, K) as it is, and the probability of the positive class as (1 - p, p)."""
    return block if block.ndim == 2 else np.column_stack([1 - block, block])


def get_classes_of_chunks(
    labels: Any, columns: tuple[int, ...], pos_label: Any
) -> NDArray[Any] | None:
    """Return the classes that the labels of all chunks imply, as for arrays in memory.

    It takes one pass over the labels, a dask array. Soft labels name no classes.
    """
    if getattr(labels, "values", labels).ndim == 2:
        return None
    found = find_distinct_labels(labels)
    if not len(found):
        return None
    found = as_labels(found, name="y_true")
    if columns:
        return match_columns(found, labels=None, n_columns=columns[0])[1]
    classes = match_binary(found, labels=None, pos_label=pos_label)[1]
    # (label, label): all are positive, and the other class is not known.
    return classes if classes[0] != classes[1] else None
