"""Difficulty of every sample by a scorer that has not seen it."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable

from ..utils._estimators import split_folds
from ..utils._labels import check_class_labels, class_positions
from ..utils._private import _num_samples, _safe_indexing
from ._pipeline import score_difficulty


def cross_val_difficulty(
    estimator: Any, X: Any, y: ArrayLike, *, cv: Any = 5, n_jobs: int | None = None
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
    X, labels = indexable(X, check_class_labels(y))
    folds = folds_of_all(cv, X, labels)
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_fold_difficulty)(clone(estimator), X, labels, *fold) for fold in folds
    )
    difficulty = np.empty(len(labels))
    # joblib returns the parts in the order of the folds.
    difficulty[np.concatenate([test for _, test in folds])] = np.concatenate(parts)
    return difficulty


def folds_of_all(
    cv: Any, X: Any, labels: NDArray | None
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return (train, test) of folds that leave every sample out once."""
    folds = split_folds(cv, X, labels)
    tests = np.concatenate([test for _, test in folds])
    if (np.bincount(tests, minlength=_num_samples(X)) != 1).any():
        raise ValueError("cv must leave out every sample once, got folds that do not.")
    return folds


def _fold_difficulty(
    estimator: Any, X: Any, labels: NDArray, train: NDArray[np.intp], test: NDArray[np.intp]
) -> NDArray[np.float64]:
    estimator.fit(_safe_indexing(X, train), labels[train])
    scorer = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    # A scorer without classes, such as one of prototypes, takes any label.
    known = np.ones(len(test), dtype=bool)
    if hasattr(scorer, "classes_"):
        known = class_positions(labels[test], scorer.classes_) >= 0
    difficulty = np.full(len(test), np.inf)
    # Scorers may refuse an empty X.
    if known.any():
        seen = test[known]
        difficulty[known] = score_difficulty(estimator, _safe_indexing(X, seen), labels[seen])
    return difficulty
