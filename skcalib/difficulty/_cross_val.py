"""Difficulty of every sample by a scorer that has not seen it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._estimators import fit_clone, folds_of, last_step, left_out, samples_and_labels
from ..utils._labels import class_positions
from ..utils._private import _safe_indexing
from ._pipeline import score_difficulty


def cross_val_difficulty(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    cv: Any = 5,
    groups: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Out-of-fold difficulty: every sample is scored by a fit on the other folds.

    What :func:`sklearn.model_selection.cross_val_predict` would do for the method `difficulty`,
    for any scorer and for a Pipeline that ends in one. A :class:`RelativeMahalanobisScorer` alone
    leaves single samples out, exactly and with one fit, by `leave_one_out_difficulty`.

    Parameters
    ----------
    estimator : difficulty scorer or Pipeline that ends in one
        Cloned for every fold.
    X : array-like of shape (n_samples, n_features), or whatever the first step takes
        Samples.
    y : array-like of shape (n_samples,)
        Labels.
    cv : int, cross-validation generator or iterable, default=5
        The folds; an int is a number of stratified folds. Every sample has to be left out once.
    groups : array-like of shape (n_samples,), default=None
        What samples belong together, such as patients: no group is in two folds.
    n_jobs : int, default=None
        Number of folds fitted at once; None means 1, -1 all processors.

    Returns
    -------
    difficulty : ndarray of shape (n_samples,)
        Larger means harder. Infinite for a label that the other folds lack, where the scorer has
        classes.

    Raises
    ------
    TypeError
        If `estimator` is neither a difficulty scorer nor ends in one.
    ValueError
        If the folds do not leave out every sample once.

    See Also
    --------
    score_difficulty : Difficulty by a scorer that is fitted.
    RelativeMahalanobisScorer : Has an exact leave-one-out difficulty.
    sklearn.model_selection.cross_val_predict : The same for predictions.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from skcalib.difficulty import RMDScorer, cross_val_difficulty
    >>> X, y = load_digits(return_X_y=True)
    >>> pipe = make_pipeline(PCA(20, random_state=0), RMDScorer())
    >>> cross_val_difficulty(pipe, X, y, cv=3).shape
    (1797,)
    """
    X, labels = samples_and_labels(X, y)
    judge = partial(_fold_difficulty, estimator, X, labels)
    return left_out(judge, folds_of(cv, X, labels, groups), n_jobs)


def _fold_difficulty(
    estimator: Any, X: Any, labels: NDArray, train: NDArray[np.intp], test: NDArray[np.intp]
) -> NDArray[np.float64]:
    fitted = fit_clone(estimator, X, labels, train)
    scorer, _ = last_step(fitted)
    # A scorer without classes, such as one of prototypes, takes any label.
    known = np.ones(len(test), dtype=bool)
    if hasattr(scorer, "classes_"):
        known = class_positions(labels[test], scorer.classes_) >= 0
    difficulty = np.full(len(test), np.inf)
    # Scorers may refuse an empty X.
    if known.any():
        seen = test[known]
        difficulty[known] = score_difficulty(fitted, _safe_indexing(X, seen), labels[seen])
    return difficulty
