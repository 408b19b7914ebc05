"""Difficulty from the votes of many models; a mask keeps models from judging their own rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...utils._labels import check_labels_like, class_positions
from ._checks import check_predictions


def _check_mask(mask: ArrayLike | None, votes: NDArray) -> NDArray:
    """Return the mask as booleans of the shape of the votes; None lets every model vote."""
    if mask is None:
        return np.ones(votes.shape, dtype=bool)
    array = np.asarray(mask)
    if array.dtype != bool or array.shape != votes.shape:
        raise ValueError(
            f"mask must be boolean and of the shape of predictions, {votes.shape}, got dtype "
            f"{array.dtype} and shape {array.shape}."
        )
    return array


def _count_votes(predictions: ArrayLike, mask: ArrayLike | None) -> tuple[NDArray, NDArray]:
    """Return the sorted classes voted for (K,) and the number of votes (n_samples, K)."""
    votes = check_predictions(predictions, "predictions")
    held_out = _check_mask(mask, votes)
    classes, codes = np.unique(votes, return_inverse=True)
    n_rows, n_classes = votes.shape[1], len(classes)
    cells = (np.arange(n_rows) * n_classes + codes.reshape(votes.shape))[held_out]
    counts = np.bincount(cells, minlength=n_rows * n_classes)
    return classes, counts.reshape(n_rows, n_classes)


def _share(part: NDArray, whole: NDArray) -> NDArray:
    """Return part / whole, NaN where the whole is 0."""
    return np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)


def consensus_class(
    predictions: ArrayLike, y: ArrayLike | None = None, *, mask: ArrayLike | None = None
) -> NDArray:
    """Class that most models vote for.

    Parameters
    ----------
    predictions : array-like of shape (n_models, n_samples)
        Labels predicted by every model.
    y : array-like of shape (n_samples,), default=None
        True labels. A tie that contains the true label goes to it; without `y`, and in every
        other tie, the smallest label wins.
    mask : array-like of bool of shape (n_models, n_samples), default=None
        True where the model did not train on the row: only those vote. None: all vote.

    Returns
    -------
    consensus : ndarray of shape (n_samples,)
        Labels.

    Raises
    ------
    ValueError
        If the shapes do not match, or a row has no vote.

    References
    ----------
    Baldock, Maennel, Neyshabur, Deep Learning Through the Lens of Example Difficulty, NeurIPS
    2021, Sec. 2.2.

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
            f"mask leaves {(counts.sum(axis=1) == 0).sum()} row(s) without a vote: every row "
            "must have been left out of the training of at least one model."
        )
    winner = counts.argmax(axis=1)
    if y is None:
        return classes[winner]
    truth = check_labels_like(y, name="y", n_samples=len(counts), like=classes)
    column, rows = class_positions(truth, classes), np.arange(len(truth))
    tied = (column >= 0) & (counts[rows, column] == counts[rows, winner])
    return classes[np.where(tied, column, winner)]


def consistency_score(
    predictions: ArrayLike, y: ArrayLike, *, mask: ArrayLike | None = None
) -> NDArray:
    """Share of the models that are right about a row.

    **Larger = easier.**

    Parameters
    ----------
    predictions : array-like of shape (n_models, n_samples)
        Labels predicted by every model.
    y : array-like of shape (n_samples,)
        True labels.
    mask : array-like of bool of shape (n_models, n_samples), default=None
        True where the model did not train on the row: only those count. None: all count.

    Returns
    -------
    score : ndarray of shape (n_samples,)
        In [0, 1]; NaN where no model counts.

    Raises
    ------
    ValueError
        If the shapes do not match.

    References
    ----------
    Jiang et al., Characterizing Structural Regularities of Labeled Data in Overparameterized
    Models, ICML 2021, Eq. 1.

    Examples
    --------
    >>> from skcalib.difficulty import consistency_score
    >>> consistency_score([[0, 1], [0, 0]], [0, 1])
    array([1. , 0.5])
    """
    votes = check_predictions(predictions, "predictions")
    truth = check_labels_like(y, name="y", n_samples=votes.shape[1], like=votes)
    held_out = _check_mask(mask, votes)
    return _share((held_out & (votes == truth)).sum(axis=0), held_out.sum(axis=0))


def consensus_consistency(
    predictions: ArrayLike, y: ArrayLike | None = None, *, mask: ArrayLike | None = None
) -> NDArray:
    """Share of the models that vote for the consensus class of a row.

    **Larger = easier.**

    Parameters
    ----------
    predictions : array-like of shape (n_models, n_samples)
        Labels predicted by every model.
    y : array-like of shape (n_samples,), default=None
        True labels. They decide ties of :func:`consensus_class`, where every tied class has the
        same share: the value does not depend on them.
    mask : array-like of bool of shape (n_models, n_samples), default=None
        True where the model did not train on the row: only those vote. None: all vote.

    Returns
    -------
    score : ndarray of shape (n_samples,)
        In [1 / n_classes, 1]; NaN where no model votes.

    Raises
    ------
    ValueError
        If the shapes do not match.

    References
    ----------
    Baldock, Maennel, Neyshabur, Deep Learning Through the Lens of Example Difficulty, NeurIPS
    2021, Sec. 2.2.

    Examples
    --------
    >>> from skcalib.difficulty import consensus_consistency
    >>> consensus_consistency([[0, 2, 1], [0, 1, 2], [1, 2, 0]]).round(2)
    array([0.67, 0.67, 0.33])
    """
    classes, counts = _count_votes(predictions, mask)
    if y is not None:
        check_labels_like(y, name="y", n_samples=len(counts), like=classes)
    return _share(counts.max(axis=1), counts.sum(axis=1))


def prediction_entropy(predictions: ArrayLike, *, mask: ArrayLike | None = None) -> NDArray:
    """Entropy of the votes for a row.

    **Larger = harder.**

    Parameters
    ----------
    predictions : array-like of shape (n_models, n_samples)
        Labels predicted by every model.
    mask : array-like of bool of shape (n_models, n_samples), default=None
        True where the model did not train on the row: only those vote. None: all vote.

    Returns
    -------
    entropy : ndarray of shape (n_samples,)
        In nats, from 0 (unanimous) to log(n_classes); NaN where no model votes.

    Raises
    ------
    ValueError
        If the shapes do not match.

    Examples
    --------
    >>> from skcalib.difficulty import prediction_entropy
    >>> prediction_entropy([[0, 2, 1], [0, 1, 2], [1, 2, 0]]).round(3)
    array([0.637, 0.637, 1.099])
    """
    _, counts = _count_votes(predictions, mask)
    total = counts.sum(axis=1)
    share = counts / np.maximum(total, 1)[:, None]
    entropy = -np.sum(share * np.log(share, out=np.zeros_like(share), where=share > 0), axis=1)
    return np.where(total > 0, np.abs(entropy), np.nan)
