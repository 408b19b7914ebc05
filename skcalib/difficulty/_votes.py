"""Votes of many models; a mask keeps models from judging what they trained on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from ..utils._labels import as_label_matrix, check_labels_like, class_positions
from ..utils._validation import check_mask


def is_correct(predictions: ArrayLike, y: ArrayLike) -> NDArray[np.bool_]:
    """Return where the predictions (n_records, n_samples) are the labels (n_samples,)."""
    records = as_label_matrix(predictions, name="predictions")
    return records == check_labels_like(y, name="y", n_samples=records.shape[1], like=records)


def _check_mask(mask: ArrayLike | None, votes: NDArray) -> NDArray[np.bool_]:
    """Return the mask as booleans of the shape of the votes; None lets every model vote."""
    return np.ones(votes.shape, bool) if mask is None else check_mask(mask, votes.shape, "mask")


def _count_votes(predictions: ArrayLike, mask: ArrayLike | None) -> tuple[NDArray, NDArray]:
    """Return the sorted classes voted for (K,) and the number of votes (n_samples, K)."""
    votes = as_label_matrix(predictions, name="predictions")
    counted = _check_mask(mask, votes)
    classes, encoded = np.unique(votes, return_inverse=True)
    n_samples, n_classes = votes.shape[1], len(classes)
    # One number for each pair of sample and class: one pass counts all. (The shape of the inverse
    # depends on the version of numpy.)
    cells = (np.arange(n_samples) * n_classes + encoded.reshape(votes.shape))[counted]
    counts = np.bincount(cells, minlength=n_samples * n_classes)
    return classes, counts.reshape(n_samples, n_classes)


def _fraction(part: NDArray, whole: NDArray) -> NDArray:
    """Return part / whole, NaN where the whole is 0."""
    return np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)


def consensus_class(
    predictions: ArrayLike, y: ArrayLike | None = None, *, mask: ArrayLike | None = None
) -> NDArray:
    """Class that most models vote for [1]_.

    Parameters
    ----------
    predictions : array-like of shape (n_models, n_samples)
        Labels predicted by every model.
    y : array-like of shape (n_samples,), default=None
        True labels. A tie that contains the true label goes to it; without `y`, and in every
        other tie, the smallest label wins.
    mask : array-like of bool of shape (n_models, n_samples), default=None
        True where the model did not train on the sample: only those vote. None: all vote.

    Returns
    -------
    consensus : ndarray of shape (n_samples,)
        Labels.

    Raises
    ------
    ValueError
        If a sample has no vote.

    See Also
    --------
    consensus_consistency : How many models vote for it.
    consistency_score : How many models are correct.
    DifficultyProfiler : Trains the models.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, Sec. 2.2.

    Examples
    --------
    >>> from skcalib.difficulty import consensus_class
    >>> consensus_class([[0, 2, 1], [0, 1, 2], [1, 2, 0]])
    array([0, 2, 0])
    >>> consensus_class([[0, 2, 1], [0, 1, 2], [1, 2, 0]], [1, 1, 2])
    array([0, 2, 2])
    """
    classes, counts = _count_votes(predictions, mask)
    if (counts.sum(axis=1) == 0).any():
        raise ValueError(
            "mask must leave every sample at least one model that did not train on it, got "
            f"{(counts.sum(axis=1) == 0).sum()} samples without a vote."
        )
    # The first maximum: with sorted classes, the smallest label wins a tie.
    winner = counts.argmax(axis=1)
    if y is None:
        return classes[winner]
    truth = check_labels_like(y, name="y", n_samples=len(counts), like=classes)
    # -1 stands for a label without votes, which cannot win a tie.
    column, samples = class_positions(truth, classes), np.arange(len(truth))
    is_tied = (column >= 0) & (counts[samples, column] == counts[samples, winner])
    return classes[np.where(is_tied, column, winner)]


def consistency_score(
    predictions: ArrayLike, y: ArrayLike, *, mask: ArrayLike | None = None
) -> NDArray:
    """Fraction of the models that are correct about a sample; larger = easier [1]_.

    Parameters
    ----------
    predictions, mask
        As for :func:`consensus_class`.
    y : array-like of shape (n_samples,)
        True labels.

    Returns
    -------
    score : ndarray of shape (n_samples,)
        In [0, 1]; NaN where no model counts.

    See Also
    --------
    consensus_consistency : The same for the consensus class.
    DifficultyProfiler : Trains the models.

    References
    ----------
    .. [1] Z. Jiang, C. Zhang, K. Talwar, M. Mozer, "Characterizing Structural Regularities of
       Labeled Data in Overparameterized Models", ICML 2021, Eq. 1.

    Examples
    --------
    >>> from skcalib.difficulty import consistency_score
    >>> consistency_score([[0, 1], [0, 0]], [0, 1])
    array([1. , 0.5])
    """
    correct = is_correct(predictions, y)
    counted = _check_mask(mask, correct)
    return _fraction((counted & correct).sum(axis=0), counted.sum(axis=0))


def consensus_consistency(predictions: ArrayLike, *, mask: ArrayLike | None = None) -> NDArray:
    """Fraction of the models that vote for the consensus class of a sample; larger = easier.

    Parameters
    ----------
    predictions, mask
        As for :func:`consensus_class`.

    Returns
    -------
    score : ndarray of shape (n_samples,)
        In [1 / n_classes, 1]; NaN where no model votes.

    See Also
    --------
    consensus_class : The class itself, and the source of both.
    prediction_entropy : How far the votes are spread.
    DifficultyProfiler : Trains the models.

    Examples
    --------
    >>> from skcalib.difficulty import consensus_consistency
    >>> consensus_consistency([[0, 2, 1], [0, 1, 2], [1, 2, 0]]).round(2)
    array([0.67, 0.67, 0.33])
    """
    _, counts = _count_votes(predictions, mask)
    return _fraction(counts.max(axis=1), counts.sum(axis=1))


def prediction_entropy(predictions: ArrayLike, *, mask: ArrayLike | None = None) -> NDArray:
    """Entropy of the votes for a sample; larger = harder.

    Parameters
    ----------
    predictions, mask
        As for :func:`consensus_class`.

    Returns
    -------
    entropy : ndarray of shape (n_samples,)
        In nats, from 0 (unanimous) to log(n_classes); NaN where no model votes.

    See Also
    --------
    consensus_consistency : The fraction of the largest vote.
    skcalib.metrics.predictive_entropy : Entropy of predicted probabilities.
    DifficultyProfiler : Trains the models.

    Examples
    --------
    >>> from skcalib.difficulty import prediction_entropy
    >>> prediction_entropy([[0, 2, 1], [0, 1, 2], [1, 2, 0]]).round(3)
    array([0.637, 0.637, 1.099])
    """
    _, counts = _count_votes(predictions, mask)
    total = counts.sum(axis=1)
    # 0 / 1 where nobody votes; NaN at the end.
    fraction = counts / np.maximum(total, 1)[:, np.newaxis]
    entropy = entr(fraction).sum(axis=1) + 0.0  # 0 where all agree, not -0.
    return np.where(total > 0, entropy, np.nan)
