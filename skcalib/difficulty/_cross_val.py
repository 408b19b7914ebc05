"""Difficulty by any scorer or Pipeline that ends in one, fitted already or on other folds."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils.checking._groups import duplicate_codes, warn_of_duplicates
from ..utils.checking._labels import class_positions
from ..utils.meta._estimators import (
    fit_clone,
    folds_of,
    group_params,
    last_step,
    left_out,
    samples_and_labels,
)
from ..utils.meta._private import _safe_indexing
from ..utils.meta._scorers import score


def score_difficulty(scorer: Any, X: Any, y: ArrayLike | None = None) -> NDArray[np.floating]:
    """Difficulty by a fitted scorer, or by a fitted Pipeline that ends in one.

    A Pipeline has no method ``difficulty``: only ``transform`` and the label-free
    ``score_samples`` of its last step. Steps that resample are skipped, as in prediction.

    Parameters
    ----------
    scorer : difficulty scorer or Pipeline that ends in one
        Fitted.
    X : array-like of shape (n_samples, n_features), or whatever the first step takes
        Samples.
    y : array-like of shape (n_samples,), default=None
        Labels. None gives the label-free difficulty.

    Returns
    -------
    difficulty : ndarray of shape (n_samples,)
        Larger means harder.

    See Also
    --------
    cross_val_difficulty : Out-of-fold difficulty.
    difficulty_weights : From difficulty to weights.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from skcalib.difficulty import RMDScorer, score_difficulty
    >>> X, y = load_digits(return_X_y=True)
    >>> pipe = make_pipeline(PCA(20, random_state=0), RMDScorer()).fit(X, y)
    >>> score_difficulty(pipe, X, y).shape
    (1797,)
    """
    return score(scorer, X, y)


def cross_val_difficulty(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    cv: Any = 5,
    groups: ArrayLike | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> NDArray[np.float64]:
    """Out-of-fold difficulty: every sample is scored by a fit on the other folds.

    As :func:`sklearn.model_selection.cross_val_predict`, for the `difficulty` of a scorer or of a
    Pipeline that ends in one. A :class:`RelativeMahalanobisScorer` can also leave out single
    samples, exactly and with one fit: `leave_one_out_difficulty`.

    Parameters
    ----------
    estimator : difficulty scorer or Pipeline that ends in one
        Cloned for every fold.
    X : array-like of shape (n_samples, n_features), or whatever the first step takes
        Samples.
    y : array-like of shape (n_samples,)
        Labels.
    cv : int, cross-validation generator or iterable, default=5
        The folds, which leave out every sample once; an int is a number of stratified folds.
    groups : array-like of shape (n_samples,), default=None
        Which samples belong together, such as those of a patient: no group is in two folds.
    n_jobs : int, default=None
        Number of folds fitted at once; None means 1, -1 all processors.
    verbose : int, default=0
        Progress of the folds, as in :class:`joblib.Parallel`; 0 prints nothing.

    Returns
    -------
    difficulty : ndarray of shape (n_samples,)
        Larger means harder. Infinite for a label that the other folds lack, if the scorer has
        classes.

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
    params = group_params(estimator, groups)
    if groups is None:
        warn_of_duplicates(duplicate_codes(X, labels))
    judge = partial(_fold_difficulty, estimator, X, labels, params)
    return left_out(judge, folds_of(cv, X, labels, groups), n_jobs, verbose)


def _fold_difficulty(
    estimator: Any,
    X: Any,
    labels: NDArray,
    params: dict[str, Any],
    train: NDArray[np.intp],
    test: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Return the difficulty of the samples `test` by a fit on `train`; inf for unseen labels."""
    fitted = fit_clone(estimator, X, labels, train, params)
    scorer, _ = last_step(fitted)
    # A scorer without classes, such as KMeansPrototypeScorer, takes any label.
    known = np.ones(len(test), dtype=bool)
    if hasattr(scorer, "classes_"):
        known = class_positions(labels[test], scorer.classes_) >= 0
    difficulty = np.full(len(test), np.inf)
    # Scorers may refuse an empty X.
    if known.any():
        seen = test[known]
        difficulty[known] = score(fitted, _safe_indexing(X, seen), labels[seen])
    return difficulty
