"""Parts of the Brier score and of the log-loss that recalibration can and cannot repair."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression
from scipy.special import xlog1py, xlogy

from ..utils._compat import StrOptions, validate_params
from ..utils._proba import SMALLEST_PROBABILITY, check_predictions
from ._per_sample import two_columns
from ._registry import register
from ._temperature_fit import DEFAULT_BOUNDS, fit_temperature, label_terms
from ._ties import tie_groups


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
    of_classes = np.stack(
        [
            _decompose(np.ascontiguousarray(column), predictions.of_class(k), weight, scoring_rule)
            for k, column in enumerate(proba.T)
        ],
        axis=1,
    )
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
    predictions = check_predictions(y_true, y_proba, sample_weight, labels, pos_label)
    if predictions.is_soft:
        predictions, _ = predictions.as_rows()
    codes, proba, weight = predictions.codes, predictions.proba, predictions.weight
    if proba.dtype == np.float16:  # in which 1e-12 is 0
        proba = proba.astype(np.float32)
    logits = np.maximum(two_columns(proba), proba.dtype.type(SMALLEST_PROBABILITY))
    np.log(logits, out=logits)
    beta = 1 / fit_temperature(logits, codes, weight, DEFAULT_BOUNDS).temperature
    loss = np.concatenate([of_label for _, of_label, *_ in label_terms(logits, codes, beta)])
    return float(np.average(np.maximum(loss, 0), weights=weight))


def _decompose(
    proba: NDArray, positive: NDArray[Any], weight: NDArray[np.float64] | None, rule: str
) -> NDArray[np.float64]:
    """Return miscalibration, discrimination, uncertainty and score of one class, shape (4,)."""
    # Equal predictions get equal recalibrated values: they count as one sample of their weight.
    value, total, positive_weight = tie_groups(proba, positive, weight)
    # Groups come in decreasing order of the probability.
    fit = isotonic_regression(positive_weight / total, weights=total, increasing=False)
    # So do the samples of a block of the regression, and all samples at the base rate.
    positive_in_block, in_block = np.add.reduceat(
        [positive_weight, total], fit.blocks[:-1], axis=1
    )
    n_positive, n_samples = np.sum(positive_weight), np.sum(total)
    total_score = _brier if rule == "brier" else _log_loss

    def mean_score(p: Any, of_positive: Any, of_all: Any) -> float:
        # Clipped: rounding may take a probability beyond [0, 1], where it has no logarithm.
        return total_score(np.clip(p, 0, 1), of_positive, of_all - of_positive) / n_samples

    score = mean_score(value.astype(np.float64), positive_weight, total)
    best = mean_score(positive_in_block / in_block, positive_in_block, in_block)
    constant = mean_score(n_positive / n_samples, n_positive, n_samples)
    # Isotonic regression is the best non-decreasing map under either score. The identity and the
    # constants are such maps: differences below 0 are rounding.
    return np.array([max(score - best, 0), max(constant - best, 0), constant, score])


def _brier(p: Any, positive: Any, negative: Any) -> float:
    with np.errstate(under="ignore"):
        return float(np.dot(positive, (1 - p) ** 2) + np.dot(negative, p**2))


def _log_loss(p: Any, positive: Any, negative: Any) -> float:
    # 0 log(0) = 0: a probability of 0 costs nothing where the outcome never occurs.
    return float(-np.sum(xlogy(positive, p) + xlog1py(negative, -p)))
