"""Functions of records: predictions over a training, over an ensemble or over the layers.

A mask leaves out the predictions of models for the samples that they trained on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from ..utils._arrays import as_floats, check_mask, check_ndim, check_numbers, check_same_length
from ..utils._labels import (
    as_label_matrix,
    as_labels,
    check_labels_like,
    find_positions,
    match_columns,
    shorten,
)
from ..utils._proba import check_proba_matrix, check_values

__all__ = [
    "area_under_margin",
    "confidence_variability",
    "consensus_class",
    "consensus_consistency",
    "consistency_score",
    "corner_distances",
    "difficulty_quadrant",
    "el2n",
    "forgetting_events",
    "iteration_learned",
    "prediction_depth",
    "prediction_entropy",
]
# Forms of difficulty, in the order of the corners of the plane of two depths.
TYPES = ("easy", "looks_like_other_class", "ambiguous_without_label", "ambiguous")
UNDEFINED = "undefined"


def is_correct(predictions: ArrayLike, y: ArrayLike) -> NDArray[np.bool_]:
    """Return where the predictions (n_records, n_samples) are the labels (n_samples,)."""
    records = as_label_matrix(predictions, name="predictions")
    return records == check_labels_like(y, name="y", n_samples=records.shape[1], like=records)


def _check_mask(mask: ArrayLike | None, votes: NDArray) -> NDArray[np.bool_]:
    """Return the mask as booleans of the shape of the votes; with None, all votes count."""
    return np.ones(votes.shape, bool) if mask is None else check_mask(mask, votes.shape, "mask")


def _count_votes(predictions: ArrayLike, mask: ArrayLike | None) -> tuple[NDArray, NDArray]:
    """Return the sorted classes voted for (K,) and the number of votes (n_samples, K)."""
    votes = as_label_matrix(predictions, name="predictions")
    counted = _check_mask(mask, votes)
    classes, encoded = np.unique(votes, return_inverse=True)
    n_samples, n_classes = votes.shape[1], len(classes)
    # One number for each pair of sample and class: one pass counts all. (The shape of the inverse
    # depends on the version of numpy.)
    keys = (np.arange(n_samples) * n_classes + encoded.reshape(votes.shape))[counted]
    counts = np.bincount(keys, minlength=n_samples * n_classes)
    return classes, counts.reshape(n_samples, n_classes)


def quotient(part: NDArray, whole: NDArray) -> NDArray:
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
    skcalib.difficulty.DifficultyProfiler : Trains the models.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, Sec. 2.2. Calls: :ref:`paper-depth`.

    Examples
    --------
    >>> from skcalib.difficulty.training_dynamics import consensus_class
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
    column, samples = find_positions(truth, classes), np.arange(len(truth))
    is_tied = (column >= 0) & (counts[samples, column] == counts[samples, winner])
    return classes[np.where(is_tied, column, winner)]


def consistency_score(
    predictions: ArrayLike, y: ArrayLike, *, mask: ArrayLike | None = None
) -> NDArray:
    """Fraction of the models that are correct about a sample; larger = easier [1]_.

    Parameters
    ----------
    predictions, mask : of :func:`consensus_class`
    y : array-like of shape (n_samples,)
        True labels.

    Returns
    -------
    score : ndarray of shape (n_samples,)
        In [0, 1]; NaN where no model counts.

    See Also
    --------
    consensus_consistency : The same for the consensus class.
    skcalib.difficulty.DifficultyProfiler : Trains the models.

    References
    ----------
    .. [1] Z. Jiang, C. Zhang, K. Talwar, M. Mozer, "Characterizing Structural Regularities of
       Labeled Data in Overparameterized Models", ICML 2021, Eq. 1.

    Examples
    --------
    >>> from skcalib.difficulty.training_dynamics import consistency_score
    >>> consistency_score([[0, 1], [0, 0]], [0, 1])
    array([1. , 0.5])
    """
    correct = is_correct(predictions, y)
    counted = _check_mask(mask, correct)
    return quotient((counted & correct).sum(axis=0), counted.sum(axis=0))


def consensus_consistency(predictions: ArrayLike, *, mask: ArrayLike | None = None) -> NDArray:
    """Fraction of the models that vote for the consensus class of a sample; larger = easier.

    Parameters
    ----------
    predictions, mask : of :func:`consensus_class`

    Returns
    -------
    score : ndarray of shape (n_samples,)
        In [1 / n_classes, 1]; NaN where no model votes.

    See Also
    --------
    consensus_class : The class itself, and the source of both.
    prediction_entropy : How far the votes are spread.
    skcalib.difficulty.DifficultyProfiler : Trains the models.

    Examples
    --------
    >>> from skcalib.difficulty.training_dynamics import consensus_consistency
    >>> consensus_consistency([[0, 2, 1], [0, 1, 2], [1, 2, 0]]).round(2)
    array([0.67, 0.67, 0.33])
    """
    _, counts = _count_votes(predictions, mask)
    return quotient(counts.max(axis=1), counts.sum(axis=1))


def prediction_entropy(predictions: ArrayLike, *, mask: ArrayLike | None = None) -> NDArray:
    """Entropy of the votes for a sample; larger = harder.

    Parameters
    ----------
    predictions, mask : of :func:`consensus_class`

    Returns
    -------
    entropy : ndarray of shape (n_samples,)
        In nats, from 0 (unanimous) to log(n_classes); NaN where no model votes.

    See Also
    --------
    consensus_consistency : The fraction of the largest vote.
    skcalib.metrics.predictive_entropy : Entropy of predicted probabilities.
    skcalib.difficulty.DifficultyProfiler : Trains the models.

    Examples
    --------
    >>> from skcalib.difficulty.training_dynamics import prediction_entropy
    >>> prediction_entropy([[0, 2, 1], [0, 1, 2], [1, 2, 0]]).round(3)
    array([0.637, 0.637, 1.099])
    """
    _, counts = _count_votes(predictions, mask)
    total = counts.sum(axis=1)
    # 0 / 1 without votes, and NaN in the result.
    fraction = counts / np.maximum(total, 1)[:, np.newaxis]
    entropy = entr(fraction).sum(axis=1) + 0.0  # 0 where all agree, not -0.
    return np.where(total > 0, entropy, np.nan)


def steps_to_agreement(agrees: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the step (n,) from which `agrees` (T, n) is True to the end; NaN if it ends False.

    It is the step after the last False, the first one in reversed order.
    """
    backward = ~agrees[::-1]
    # argmax is the number of steps after the last False, and 0 as well where there is none.
    steps = np.where(backward.any(axis=0), len(agrees) - backward.argmax(axis=0), 0)
    return np.where(agrees[-1], steps, np.nan)


def iteration_learned(
    predictions: ArrayLike, *, final: ArrayLike | None = None, steps: ArrayLike | None = None
) -> NDArray:
    """Step from which the prediction of a sample stays the final one; larger = harder.

    The smallest t such that the prediction at every step >= t equals the final prediction
    (Baldock et al., source of :func:`prediction_depth`, Sec. 3.2).

    Parameters
    ----------
    predictions : array-like of shape (n_steps, n_samples)
        Predicted labels through the training; the first step is the untrained network.
    final : array-like of shape (n_samples,), default=None
        Labels predicted by the network that is kept; None means those of the last step.
    steps : array-like of shape (n_steps,), default=None
        The number that the result has for each row of `predictions`, in increasing order, such as
        ``TrainingDynamics.step_``, batches; None: 0, 1, ..., n_steps - 1.

    Returns
    -------
    step : ndarray of shape (n_samples,)
        From 0 (predicted by the untrained network and ever since) to the last of `steps`; NaN
        where the last step differs from `final`. To compare trainings of different length, divide
        by the 95th percentile, as the paper does.

    See Also
    --------
    skcalib.nets.TrainingDynamics : Records a training.
    prediction_depth : The same over layers instead of steps.
    forgetting_events : How often a sample is forgotten.

    Examples
    --------
    >>> from skcalib.difficulty.training_dynamics import iteration_learned
    >>> iteration_learned([[0, 1, 1], [0, 0, 1], [0, 1, 0]])
    array([0., 2., 2.])
    >>> iteration_learned([[0, 1, 1], [0, 0, 1], [0, 1, 0]], steps=[0, 5, 10])
    array([ 0., 10., 10.])
    """
    history = as_label_matrix(predictions, name="predictions")
    last = history[-1]
    if final is not None:
        last = check_labels_like(final, name="final", n_samples=len(last), like=history)
    learned = steps_to_agreement(history == last)
    if steps is None:
        return learned
    numbers = as_floats(steps, name="steps")
    if numbers.shape != (len(history),) or not (np.diff(numbers) > 0).all():
        raise ValueError(
            f"steps must hold {len(history)} increasing numbers, one for every row of "
            f"predictions, got {shorten(steps)}."
        )
    return np.interp(learned, np.arange(len(history)), numbers)


def prediction_depth(probe_predictions: ArrayLike, final_predictions: ArrayLike) -> NDArray:
    """Layer from which every probe agrees with the network; larger = harder.

    The smallest l such that the probes of layer l and of every later layer predict the final
    class; 0 if all probes do [1]_.

    Parameters
    ----------
    probe_predictions : array-like of shape (n_samples, n_layers)
        Labels predicted by the probes, in the order of the layers.
    final_predictions : array-like of shape (n_samples,)
        Labels predicted by the network; true labels give the depth of the ground truth.

    Returns
    -------
    depth : ndarray of shape (n_samples,)
        From 0 to n_layers - 1; NaN where the last probe disagrees.

    See Also
    --------
    skcalib.difficulty.PredictionDepthScorer : Fits the probes to a network.
    iteration_learned : The same over steps of a training.
    difficulty_quadrant : The form of difficulty, from two depths.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, Sec. 2.1. Calls: :ref:`paper-depth`.

    Examples
    --------
    >>> from skcalib.difficulty.training_dynamics import prediction_depth
    >>> prediction_depth([[1, 1, 1], [1, 0, 1], [1, 1, 0]], [1, 1, 1])
    array([ 0.,  2., nan])
    """
    by_sample = as_label_matrix(probe_predictions, name="probe_predictions")
    final = check_labels_like(
        final_predictions, name="final_predictions", n_samples=len(by_sample), like=by_sample
    )
    # Layers take the place of steps, and the first axis.
    return steps_to_agreement((by_sample == final[:, np.newaxis]).T)


def forgetting_events(predictions: ArrayLike, y: ArrayLike) -> NDArray:
    """Number of times a sample turns from correct to wrong in a training; larger = harder [1]_.

    Parameters
    ----------
    predictions : array-like of shape (n_steps, n_samples)
        Predicted labels through the training.
    y : array-like of shape (n_samples,)
        True labels.

    Returns
    -------
    events : ndarray of shape (n_samples,)
        From 0 (never forgotten) upward; infinity where the sample was never correct.

    See Also
    --------
    skcalib.nets.TrainingDynamics : Records a training.
    iteration_learned : When a sample is learned for good.
    consistency_score : How often a sample is correct.

    References
    ----------
    .. [1] M. Toneva, A. Sordoni, R. Tachet des Combes, A. Trischler, Y. Bengio, G. Gordon, "An
       Empirical Study of Example Forgetting during Deep Neural Network Learning", ICLR 2019,
       Definition 2.1; samples never learned count as forgotten infinitely often (Sec. 3).

    Examples
    --------
    >>> from skcalib.difficulty.training_dynamics import forgetting_events
    >>> forgetting_events([[1, 0, 0], [0, 0, 1], [1, 0, 0]], [1, 0, 2])
    array([ 1.,  0., inf])
    """
    correct = is_correct(predictions, y)
    # Floats, since integers have no infinity.
    events = (correct[:-1] & ~correct[1:]).sum(axis=0, dtype=np.float64)
    events[~correct.any(axis=0)] = np.inf
    return events


def _as_scores(values: ArrayLike, name: str) -> NDArray[np.floating]:
    """Return floats (n_records, n_samples), or of two classes or more along a third axis."""
    scores = as_floats(values, name=name)
    check_ndim(scores, name, (2, 3))
    if scores.ndim == 3 and scores.shape[-1] < 2:
        raise ValueError(f"{name} must have at least 2 columns, got shape {scores.shape}.")
    return scores


def _check_proba(proba: NDArray[np.floating]) -> None:
    """Raise unless (n_records, n_samples) lie in [0, 1], and (..., n_classes) sum to 1 too."""
    for i, record in enumerate(proba):
        check_values(record, name=f"y_proba[{i}]")


def _check_label_given(
    scores: NDArray, y: ArrayLike | None, labels: ArrayLike | None, *, name: str
) -> None:
    """Raise unless `y` is given for 3-D scores, whose columns it picks, and only for these."""
    if (scores.ndim == 3) != (y is not None):
        raise ValueError(
            f"y must be given if, and only if, {name} has 3 dimensions, got {name} of shape "
            f"{scores.shape} {'without' if y is None else 'with'} y."
        )
    if y is None and labels is not None:
        raise ValueError(f"labels must be None where {name} has no classes, got {labels!r}.")


def _label_columns(
    y: ArrayLike, scores: NDArray, labels: ArrayLike | None, *, name: str
) -> NDArray[np.intp]:
    """Return for every sample the column of `scores` (..., n, K) that belongs to its label."""
    array = as_labels(y, name="y")
    n_samples, n_classes = scores.shape[-2:]
    if len(array) != n_samples:
        raise ValueError(f"y must have shape ({n_samples},), got length {len(array)}.")
    known = None if labels is None else as_labels(labels, name="labels")
    columns, _ = match_columns(
        array,
        labels=known,
        n_columns=n_classes,
        y_name="y",
        columns_name=name,
    )
    return columns


def _take_label(scores: NDArray, columns: NDArray) -> NDArray:
    """Return the scores (..., n) in the columns (n,) of the labels."""
    # The label of a sample is the same at every step.
    index = np.broadcast_to(columns, scores.shape[:-1])[..., None]
    return np.take_along_axis(scores, index, axis=-1)[..., 0]


def confidence_variability(
    y_proba: ArrayLike, y: ArrayLike | None = None, *, labels: ArrayLike | None = None
) -> NDArray:
    """Spread of the probability of the label through a training; larger = more ambiguous.

    Together with the mean of the same probability, it spans the data map of a training set [1]_.

    Parameters
    ----------
    y_proba : array-like of shape (n_steps, n_samples) or (n_steps, n_samples, n_classes)
        Probability of the label at every step; or of every class, and then `y` picks the label.
    y : array-like of shape (n_samples,), default=None
        True labels; needed for, and only for, probabilities of every class.
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns of `y_proba`, in order. None: integers 0, ..., n_classes - 1 or, if
        `y` holds other labels, its sorted distinct values.

    Returns
    -------
    spread : ndarray of shape (n_samples,)
        Standard deviation over the steps, in [0, 0.5].

    See Also
    --------
    skcalib.nets.TrainingDynamics : Records a training.
    consistency_score : How often a sample is correct.
    skcalib.plots.TrainingMapDisplay : Draws it against the mean probability.

    References
    ----------
    .. [1] S. Swayamdipta, R. Schwartz, N. Lourie, Y. Wang, H. Hajishirzi, N. Smith, Y. Choi,
       "Dataset Cartography: Mapping and Diagnosing Datasets with Training Dynamics", EMNLP 2020,
       Sec. 2, variability.

    Examples
    --------
    >>> from skcalib.difficulty.training_dynamics import confidence_variability
    >>> confidence_variability([[0.2, 0.9], [0.8, 0.9]])
    array([0.3, 0. ])
    """
    proba = _as_scores(y_proba, "y_proba")
    _check_label_given(proba, y, labels, name="y_proba")
    _check_proba(proba)
    if y is not None:
        proba = _take_label(proba, _label_columns(y, proba, labels, name="y_proba"))
    return proba.std(axis=0, dtype=np.float64)


def area_under_margin(
    logits: ArrayLike, y: ArrayLike | None = None, *, labels: ArrayLike | None = None
) -> NDArray:
    """Mean over a training of the label's logit minus the largest other; larger = easier [1]_.

    Negative values point at wrong labels.

    Parameters
    ----------
    logits : array-like of shape (n_steps, n_samples) or (n_steps, n_samples, n_classes)
        Margins at every step; or the logits of every class, and then `y` picks the label.
    y, labels : array-like of shape (n_samples,) and (n_classes,), default=None
        True labels, and labels of the columns: see :func:`confidence_variability`.

    Returns
    -------
    area : ndarray of shape (n_samples,)
        In units of logits.

    See Also
    --------
    skcalib.nets.TrainingDynamics : Records a training.
    consistency_score : How often a sample is correct.

    References
    ----------
    .. [1] G. Pleiss, T. Zhang, E. Elenberg, K. Weinberger, "Identifying Mislabeled Data using the
       Area Under the Margin Ranking", NeurIPS 2020, Eq. 1.

    Examples
    --------
    >>> from skcalib.difficulty.training_dynamics import area_under_margin
    >>> area_under_margin([[[2.0, 1.0], [0.0, 4.0]], [[3.0, 0.0], [0.0, 2.0]]], [0, 0])
    array([ 2., -3.])
    """
    margins = _as_scores(check_numbers(logits, "logits", ndim=(2, 3)), "logits")
    _check_label_given(margins, y, labels, name="logits")
    if y is not None:
        columns = _label_columns(y, margins, labels, name="logits")
        others = margins.copy()
        others[:, np.arange(len(columns)), columns] = -np.inf
        margins = _take_label(margins, columns) - others.max(axis=-1)
    return margins.mean(axis=0, dtype=np.float64)


def el2n(y_proba: ArrayLike, y: ArrayLike, *, labels: ArrayLike | None = None) -> NDArray:
    """Length of the error vector, probabilities minus one-hot label; larger = harder [1]_.

    Meant for the first epochs of a training.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples, n_classes) or (n_models, n_samples, n_classes)
        Class probabilities; those of several models are scored each, and the scores averaged.
    y : array-like of shape (n_samples,)
        True labels.
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns: see :func:`confidence_variability`.

    Returns
    -------
    score : ndarray of shape (n_samples,)
        In [0, sqrt(2)].

    See Also
    --------
    skcalib.nets.TrainingDynamics : Records a training.
    skcalib.metrics.generalized_brier_score : The same length for other norms.
    forgetting_events : Difficulty from a whole training.

    References
    ----------
    .. [1] M. Paul, S. Ganguli, G. Dziugaite, "Deep Learning on a Data Diet: Finding Important
       Examples Early in Training", NeurIPS 2021, Definition 2.2.

    Examples
    --------
    >>> from skcalib.difficulty.training_dynamics import el2n
    >>> el2n([[1.0, 0.0], [0.4, 0.6]], [0, 1]).round(3)
    array([0.   , 0.566])
    """
    proba = _as_scores(y_proba, "y_proba")
    # A matrix holds all classes of one model; `_check_proba` would take its rows for records with
    # one probability for each sample.
    if proba.ndim == 2:
        check_proba_matrix(proba)
    else:
        _check_proba(proba)
    columns = _label_columns(y, proba, labels, name="y_proba")
    one_hot = np.zeros(proba.shape[-2:])
    one_hot[np.arange(len(columns)), columns] = 1.0
    score = np.linalg.norm(proba - one_hot, axis=-1)
    return score if score.ndim == 1 else score.mean(axis=0)


def _check_depth(depth: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return depths (n,): not negative, finite, or NaN where a sample has none."""
    array = as_floats(depth, name=name).astype(np.float64)
    check_ndim(array, name, (1,))
    fault = np.isinf(array) | (array < 0)
    if fault.any():
        row = int(np.argmax(fault))
        raise ValueError(
            f"{name} must be non-negative and finite, or NaN, got {array[row]} in row {row}."
        )
    return array


def _check_plane(
    depth_held_out: ArrayLike, depth_trained: ArrayLike
) -> tuple[NDArray, NDArray, float, float]:
    """Return both depths, and the smallest and the largest of all; NaN if all of them are NaN."""
    held_out = _check_depth(depth_held_out, "depth_held_out")
    trained = _check_depth(depth_trained, "depth_trained")
    check_same_length(depth_held_out=held_out, depth_trained=trained)
    both = np.concatenate([held_out, trained])
    # fmin and fmax pass over NaN.
    return held_out, trained, float(np.fmin.reduce(both)), float(np.fmax.reduce(both))


def corner_distances(depth_held_out: ArrayLike, depth_trained: ArrayLike) -> NDArray[np.float64]:
    """Distance of every sample from the four corners of the plane of depths.

    The samples nearest to a corner are the clearest ones of its form of difficulty; the paper
    behind :func:`difficulty_quadrant` shows them. Corners are at the smallest and at the largest
    depth of the two arrays.

    Parameters
    ----------
    depth_held_out, depth_trained : array-like of shape (n_samples,)
        As in :func:`difficulty_quadrant`.

    Returns
    -------
    distances : ndarray of shape (n_samples, 4)
        Euclidean, in layers, from "easy", "looks_like_other_class", "ambiguous_without_label" and
        "ambiguous"; NaN where a depth is. 0 in the corner.

    See Also
    --------
    difficulty_quadrant : The four forms.

    Examples
    --------
    >>> from skcalib.difficulty.training_dynamics import corner_distances
    >>> corner_distances([0, 4, 1], [0, 4, 4])[:, 1].round(2)
    array([4., 4., 1.])
    """
    held_out, trained, low, high = _check_plane(depth_held_out, depth_trained)
    # In the order of TYPES.
    corners = np.array([(low, low), (low, high), (high, low), (high, high)])
    across, along = held_out[:, None] - corners[:, 0], trained[:, None] - corners[:, 1]
    return np.hypot(across, along)


def difficulty_quadrant(
    depth_held_out: ArrayLike, depth_trained: ArrayLike, *, threshold: float | None = None
) -> NDArray:
    """Form of difficulty of every sample, from its two prediction depths [1]_.

    ============== ========= ===============================
    depth held out  trained   form
    ============== ========= ===============================
    low             low       ``"easy"``
    low             high      ``"looks_like_other_class"``
    high            low       ``"ambiguous_without_label"``
    high            high      ``"ambiguous"``
    ============== ========= ===============================

    Take a mislabeled sample. Held out, it is quickly taken for its look-alikes; trained on, its
    label is memorized only in the last layers.

    Parameters
    ----------
    depth_held_out : array-like of shape (n_samples,)
        Prediction depth in models that did not train on the sample, or the mean over such models.
    depth_trained : array-like of shape (n_samples,)
        Prediction depth in models that trained on the sample.
    threshold : float, default=None
        Depths above it are high. None means the middle between the smallest and the largest depth
        of the two arrays.

    Returns
    -------
    form : ndarray of str of shape (n_samples,)
        One of the four forms, or ``"undefined"`` where a depth is NaN.

    See Also
    --------
    skcalib.difficulty.DifficultyProfiler : Measures both depths.
    corner_distances : How clear a case of its form a sample is.
    skcalib.plots.DifficultyPlaneDisplay : Draws them.
    prediction_depth : A depth from the predictions of probes.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, Sec. 4. The paper reads the four corners of the plane and gives
       no threshold. Calls: :ref:`paper-depth`.

    Examples
    --------
    >>> from skcalib.difficulty.training_dynamics import difficulty_quadrant
    >>> difficulty_quadrant([0, 1, 9, 8], [0, 9, 1, 8])
    array(['easy', 'looks_like_other_class', 'ambiguous_without_label',
           'ambiguous'], dtype='<U23')
    """
    held_out, trained, low, high = _check_plane(depth_held_out, depth_trained)
    limit = (low + high) / 2 if threshold is None else float(threshold)
    if threshold is not None and not np.isfinite(limit):
        raise ValueError(f"threshold must be a finite number, got {threshold}.")
    # In the order of TYPES: held out is the first of two binary digits, trained the second.
    form = np.array(TYPES)[2 * (held_out > limit) + (trained > limit)]
    form[np.isnan(held_out) | np.isnan(trained)] = UNDEFINED
    return form
