"""Difficulty from the history of a training: functions of arrays whose first axis is time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...utils._labels import check_labels_like
from ...utils._validation import check_numbers
from ._checks import (
    check_predictions,
    check_probabilities,
    label_columns,
)


def steps_to_agreement(agree: NDArray) -> NDArray:
    """Return (n,) the first step of the unbroken run of True that ends `agree` (T, n), else T."""
    broken = ~agree[::-1]
    return np.where(broken.any(axis=0), len(agree) - broken.argmax(axis=0), 0)


def iteration_learned(predictions: ArrayLike, *, final: ArrayLike | None = None) -> NDArray:
    """Step from which on the prediction of a row is the final one.

    The smallest t such that the prediction at every step >= t equals the final prediction.
    **Larger = harder** (learned later).

    Parameters
    ----------
    predictions : array-like of shape (n_steps, n_samples)
        Predicted labels through the training; row 0 is the untrained network.
    final : array-like of shape (n_samples,), default=None
        Labels predicted by the network that is kept; None means the last row of `predictions`.

    Returns
    -------
    step : ndarray of shape (n_samples,)
        From 0 (the untrained network already said so, and it never changed) to n_steps - 1; NaN
        where the last row differs from `final`. Divide by the 95th percentile to compare
        trainings of different length, as the paper does.

    Raises
    ------
    ValueError
        If the shapes do not match or the arrays do not hold labels.

    References
    ----------
    Baldock, Maennel, Neyshabur, Deep Learning Through the Lens of Example Difficulty, NeurIPS
    2021, Sec. 3.2.

    Examples
    --------
    >>> from skcalib.difficulty import iteration_learned
    >>> iteration_learned([[0, 1, 1], [0, 0, 1], [0, 1, 0]])
    array([0., 2., 2.])
    """
    history = check_predictions(predictions, "predictions")
    last = history[-1]
    if final is not None:
        last = check_labels_like(final, name="final", n_samples=len(last), like=history)
    step = steps_to_agreement(history == last).astype(np.float64)
    step[step == len(history)] = np.nan
    return step


def _correct(predictions: ArrayLike, y: ArrayLike) -> NDArray:
    history = check_predictions(predictions, "predictions")
    return history == check_labels_like(y, name="y", n_samples=history.shape[1], like=history)


def forgetting_events(predictions: ArrayLike, y: ArrayLike) -> NDArray:
    """Number of times a row turns from right to wrong while the network trains.

    **Larger = harder.**

    Parameters
    ----------
    predictions : array-like of shape (n_steps, n_samples)
        Predicted labels through the training.
    y : array-like of shape (n_samples,)
        True labels.

    Returns
    -------
    events : ndarray of shape (n_samples,)
        From 0 (never forgotten) upwards; infinity where the row was never right.

    Raises
    ------
    ValueError
        If the shapes do not match or the arrays do not hold labels.

    References
    ----------
    Toneva et al., An Empirical Study of Example Forgetting during Deep Neural Network Learning,
    ICLR 2019, Definition 2.1; rows never learned count as forgotten infinitely often (Sec. 3).

    Examples
    --------
    >>> from skcalib.difficulty import forgetting_events
    >>> forgetting_events([[1, 0, 0], [0, 0, 1], [1, 0, 0]], [1, 0, 2])
    array([ 1.,  0., inf])
    """
    correct = _correct(predictions, y)
    events = (correct[:-1] & ~correct[1:]).sum(axis=0, dtype=np.float64)
    events[~correct.any(axis=0)] = np.inf
    return events


def correctness(predictions: ArrayLike, y: ArrayLike) -> NDArray:
    """Share of the steps of a training at which a row is right.

    **Larger = easier.**

    Parameters
    ----------
    predictions : array-like of shape (n_steps, n_samples)
        Predicted labels through the training.
    y : array-like of shape (n_samples,)
        True labels.

    Returns
    -------
    share : ndarray of shape (n_samples,)
        In [0, 1].

    Raises
    ------
    ValueError
        If the shapes do not match or the arrays do not hold labels.

    References
    ----------
    Swayamdipta et al., Dataset Cartography, EMNLP 2020, Sec. 2.

    Examples
    --------
    >>> from skcalib.difficulty import correctness
    >>> correctness([[1, 0], [1, 1]], [1, 0])
    array([1. , 0.5])
    """
    return _correct(predictions, y).mean(axis=0)


def _take_label(scores: NDArray, columns: NDArray) -> NDArray:
    index = np.broadcast_to(columns, scores.shape[:-1])[..., None]
    return np.take_along_axis(scores, index, axis=-1)[..., 0]


def confidence_variability(
    y_proba: ArrayLike, y: ArrayLike | None = None, *, labels: ArrayLike | None = None
) -> NDArray:
    """Spread, through the training, of the probability given to the label.

    **Larger = more ambiguous.** With its companion, the mean of the same probability, it spans
    the data map of a training set.

    Parameters
    ----------
    y_proba : array-like of shape (n_steps, n_samples) or (n_steps, n_samples, n_classes)
        Probability of the label at every step; or of every class, and then `y` picks the label.
    y : array-like of shape (n_samples,), default=None
        True labels; needed for, and only for, probabilities of every class.
    labels : array-like of shape (n_classes,), default=None
        Label of every column. None: integers in 0..n_classes-1 are taken as columns, and other
        labels are sorted.

    Returns
    -------
    spread : ndarray of shape (n_samples,)
        Standard deviation over the steps, in [0, 0.5].

    Raises
    ------
    ValueError
        If shapes do not match, a probability leaves [0, 1], or `y` is missing or superfluous.

    References
    ----------
    Swayamdipta et al., Dataset Cartography, EMNLP 2020, Sec. 2, variability.

    Examples
    --------
    >>> from skcalib.difficulty import confidence_variability
    >>> confidence_variability([[0.2, 0.9], [0.8, 0.9]])
    array([0.3, 0. ])
    """
    proba = check_probabilities(y_proba, "y_proba", ndim=(2, 3))
    _check_label_given(proba, y, "y_proba")
    if y is not None:
        proba = _take_label(proba, label_columns(y, proba, "y_proba", labels))
    return proba.std(axis=0, dtype=np.float64)


def _check_label_given(scores: NDArray, y: ArrayLike | None, name: str) -> None:
    if (scores.ndim == 3) != (y is not None):
        raise ValueError(
            f"y must be given if, and only if, {name} has 3 dimensions, got {name} of shape "
            f"{scores.shape} {'without' if y is None else 'with'} y."
        )


def area_under_margin(
    logits: ArrayLike, y: ArrayLike | None = None, *, labels: ArrayLike | None = None
) -> NDArray:
    """Mean over the training of the label's logit minus the largest other logit.

    **Larger = easier**; negative values point at wrong labels.

    Parameters
    ----------
    logits : array-like of shape (n_steps, n_samples) or (n_steps, n_samples, n_classes)
        Margins at every step; or the logits of every class, and then `y` picks the label.
    y : array-like of shape (n_samples,), default=None
        True labels; needed for, and only for, logits of every class.
    labels : array-like of shape (n_classes,), default=None
        Label of every column. None: integers in 0..n_classes-1 are taken as columns, and other
        labels are sorted.

    Returns
    -------
    area : ndarray of shape (n_samples,)
        In units of logits.

    Raises
    ------
    ValueError
        If shapes do not match, a number is not finite, or `y` is missing or superfluous.

    References
    ----------
    Pleiss et al., Identifying Mislabeled Data using the Area Under the Margin Ranking, NeurIPS
    2020, Eq. 1.

    Examples
    --------
    >>> from skcalib.difficulty import area_under_margin
    >>> area_under_margin([[[2.0, 1.0], [0.0, 4.0]], [[3.0, 0.0], [0.0, 2.0]]], [0, 0])
    array([ 2., -3.])
    """
    margins = check_numbers(logits, "logits", ndim=(2, 3))
    _check_label_given(margins, y, "logits")
    if y is not None:
        columns = label_columns(y, margins, "logits", labels)
        if margins.shape[-1] < 2:
            raise ValueError("logits must have at least 2 columns, got 1.")
        others = margins.copy()
        others[:, np.arange(len(columns)), columns] = -np.inf
        margins = _take_label(margins, columns) - others.max(axis=-1)
    return margins.mean(axis=0, dtype=np.float64)


def el2n(y_proba: ArrayLike, y: ArrayLike, *, labels: ArrayLike | None = None) -> NDArray:
    """Length of the error vector, probabilities minus one-hot label.

    **Larger = harder.** Meant for the first epochs of a training.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples, n_classes) or (n_models, n_samples, n_classes)
        Class probabilities; those of several models are scored each, and the scores averaged.
    y : array-like of shape (n_samples,)
        True labels.
    labels : array-like of shape (n_classes,), default=None
        Label of every column. None: integers in 0..n_classes-1 are taken as columns, and other
        labels are sorted.

    Returns
    -------
    score : ndarray of shape (n_samples,)
        In [0, sqrt(2)].

    Raises
    ------
    ValueError
        If shapes do not match or a probability leaves [0, 1].

    References
    ----------
    Paul, Ganguli, Dziugaite, Deep Learning on a Data Diet, NeurIPS 2021, Definition 2.2.

    Examples
    --------
    >>> from skcalib.difficulty import el2n
    >>> el2n([[1.0, 0.0], [0.4, 0.6]], [0, 1]).round(3)
    array([0.   , 0.566])
    """
    proba = check_probabilities(y_proba, "y_proba", ndim=(2, 3))
    error = proba.astype(np.float64)
    columns = label_columns(y, proba, "y_proba", labels)
    error[..., np.arange(len(columns)), columns] -= 1.0
    score = np.sqrt(np.einsum("...k,...k->...", error, error))
    return score if score.ndim == 1 else score.mean(axis=0)
