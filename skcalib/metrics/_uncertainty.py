"""Per-sample scores of how sure a prediction is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._blocks import row_entropy, row_margin, row_max, two_columns
from ..utils._proba import as_proba, iter_proba_blocks


def predictive_entropy(y_proba: ArrayLike) -> NDArray:
    """Entropy of every predicted distribution: larger = less sure.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; of shape (n_samples,), those of the positive class.

    Returns
    -------
    entropy : ndarray of shape (n_samples,)
        ``-sum_k p_k log(p_k)`` in nats, in [0, log(n_classes)]; a probability of 0 contributes 0.
        float64 for float64 input, float32 for float32 and float16.

    Raises
    ------
    ValueError
        If `y_proba` holds NaN, values outside [0, 1] or rows that do not sum to 1.

    See Also
    --------
    confidence_score : The largest probability; larger = surer.
    probability_margin : The largest probability less the second-largest; larger = surer.

    Examples
    --------
    >>> from skcalib.metrics import predictive_entropy
    >>> predictive_entropy([[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]]).round(4)
    array([0.6931, 0.3251, 0.    ])
    """
    return _score_rows(y_proba, row_entropy)


def confidence_score(y_proba: ArrayLike) -> NDArray:
    """Largest probability of every row (maximum softmax probability): larger = surer.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; of shape (n_samples,), those of the positive class.

    Returns
    -------
    confidence : ndarray of shape (n_samples,)
        Probability of the predicted class, in [1 / n_classes, 1].
        float64 for float64 input, float32 for float32 and float16.

    Raises
    ------
    ValueError
        If `y_proba` holds NaN, values outside [0, 1] or rows that do not sum to 1.

    References
    ----------
    .. [1] Hendrycks and Gimpel, A Baseline for Detecting Misclassified and Out-of-Distribution
       Examples in Neural Networks, ICLR 2017.

    Examples
    --------
    >>> from skcalib.metrics import confidence_score
    >>> confidence_score([[0.2, 0.8], [0.9, 0.1]])
    array([0.8, 0.9])
    """
    return _score_rows(y_proba, row_max)


def probability_margin(y_proba: ArrayLike) -> NDArray:
    """Largest probability of every row less its second-largest: larger = surer.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; of shape (n_samples,), those of the positive class.

    Returns
    -------
    margin : ndarray of shape (n_samples,)
        Difference of the two largest probabilities, in [0, 1]; 0 where they are tied.
        float64 for float64 input, float32 for float32 and float16.

    Raises
    ------
    ValueError
        If `y_proba` holds NaN, values outside [0, 1] or rows that do not sum to 1.

    References
    ----------
    .. [1] Scheffer, Decomain and Wrobel, Active Hidden Markov Models for Information Extraction,
       IDA 2001.

    Examples
    --------
    >>> from skcalib.metrics import probability_margin
    >>> probability_margin([[0.5, 0.25, 0.25], [0.4, 0.4, 0.2]])
    array([0.25, 0.  ])
    """
    return _score_rows(y_proba, row_margin)


def _score_rows(y_proba: ArrayLike, score: Callable[[NDArray], NDArray]) -> NDArray:
    proba = as_proba(y_proba)
    out = np.empty(len(proba), np.float64 if proba.dtype == np.float64 else np.float32)
    for rows, block in iter_proba_blocks(proba):
        out[rows] = score(two_columns(block))
    return out
