"""How confident is every prediction? One score for every sample, of probabilities or of logits."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._arrays import to_host
from ..utils._blocks import iter_blocks, row_entropy, row_margin, row_max, row_sum, two_columns
from ..utils._private import Interval, validate_params
from ..utils._proba import as_proba, check_logits, iter_proba_blocks


def predictive_entropy(y_proba: ArrayLike) -> NDArray:
    """Entropy of every predicted distribution: larger = less confident.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, or of the positive class.

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
    confidence_score : The largest probability; larger = more confident.
    probability_margin : The largest minus the second-largest; larger = more confident.

    Examples
    --------
    >>> from skcalib.metrics import predictive_entropy
    >>> predictive_entropy([[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]]).round(4)
    array([0.6931, 0.3251, 0.    ])
    """
    return _score_rows(y_proba, row_entropy)


def confidence_score(y_proba: ArrayLike) -> NDArray:
    """Largest probability of every sample (maximum softmax probability): larger = more confident.

    The baseline of selective prediction and of out-of-distribution detection [1]_.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, or of the positive class.

    Returns
    -------
    confidence : ndarray of shape (n_samples,)
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
    return _score_rows(y_proba, row_max)


def probability_margin(y_proba: ArrayLike) -> NDArray:
    """Largest minus second-largest probability of every sample: larger = more confident [1]_.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, or of the positive class.

    Returns
    -------
    margin : ndarray of shape (n_samples,)
        Difference of the two largest probabilities, in [0, 1]; 0 where they are tied.
        float64 for float64 input, float32 for float32 and float16.

    Raises
    ------
    ValueError
        If `y_proba` holds NaN, values outside [0, 1] or rows that do not sum to 1.

    See Also
    --------
    confidence_score : The largest probability alone.
    predictive_entropy : Uses all probabilities; larger = less confident.
    skcalib.difficulty.output_margin : The margin of logits.

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
    return _score_rows(y_proba, row_margin)


def max_logit_score(logits: ArrayLike) -> NDArray:
    """Largest logit of every sample: larger = more confident [1]_.

    Parameters
    ----------
    logits : array-like of shape (n_samples, n_classes)
        Logits. Unlike probabilities, they distinguish a sample with several likely classes from
        one with no likely class.

    Returns
    -------
    score : ndarray of shape (n_samples,)
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
    matrix = _check_matrix(logits)
    return np.concatenate([row_max(block) for _, block in iter_blocks(matrix)])


@validate_params(
    {"temperature": [Interval(Real, 0, None, closed="neither")]},
    prefer_skip_nested_validation=True,
)
def energy_score(logits: ArrayLike, *, temperature: float = 1.0) -> NDArray:
    """Negative free energy of every sample: larger = more like the training data.

    The score is ``T log(sum_k exp(z_k / T))``, the energy of [1]_ with its sign turned, so
    that it orders as :func:`max_logit_score`, its limit for T -> 0, and as :func:`ood_report`
    wants it.

    Parameters
    ----------
    logits : array-like of shape (n_samples, n_classes)
        Logits.
    temperature : float, default=1.0
        The temperature T, positive.

    Returns
    -------
    score : ndarray of shape (n_samples,)
        Scores between the largest logit and the largest logit plus ``T log(n_classes)``; float64
        for float64 input, float32 for float32 and float16.

    Raises
    ------
    ValueError
        If `logits` is not of two dimensions and at least two columns, or is not finite.

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
    matrix = _check_matrix(logits)
    return np.concatenate([_row_energy(block, temperature) for _, block in iter_blocks(matrix)])


def _score_rows(y_proba: ArrayLike, score: Callable[[NDArray], NDArray]) -> NDArray:
    proba = as_proba(y_proba, in_blocks=True)
    out = np.empty(len(proba), np.float64 if proba.dtype == np.float64 else np.float32)
    for rows, block in iter_proba_blocks(proba, on_device=True):
        out[rows] = to_host(score(two_columns(block)))
    return out


def _row_energy(block: NDArray, temperature: float) -> NDArray:
    # T log sum_k exp(z_k / T) = m + T log sum_k exp((z_k - m) / T), m the largest z_k: no term
    # of the second sum exceeds 1.
    top = row_max(block)
    # In the dtype of the block a tiny temperature is 0; from here down the maximum is all.
    scale = block.dtype.type(max(temperature, np.finfo(block.dtype).tiny))
    with np.errstate(over="ignore"):  # gaps beyond the largest number weigh nothing
        return top + scale * np.log(row_sum(np.exp((block - top[:, None]) / scale)))


def _check_matrix(logits: ArrayLike) -> NDArray:
    matrix = check_logits(logits)
    if matrix.ndim != 2:
        raise ValueError(
            f"logits must have shape (n_samples, n_classes), got shape {matrix.shape}."
        )
    return matrix
