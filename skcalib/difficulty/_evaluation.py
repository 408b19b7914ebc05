"""Difficulty on other folds, and whether a classifier errs more often on difficult samples."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._arrays import check_numbers, check_same_length, check_weights
from ..utils._compat import Interval, _safe_indexing, validate_params
from ..utils._estimators import (
    compute_difficulty,
    fit_clone,
    get_group_params,
    get_last_step,
    make_folds,
    read_samples,
    run_folds,
)
from ..utils._labels import (
    as_labels,
    check_labels_like,
    encode_duplicates,
    find_positions,
    warn_of_duplicates,
)

# Difficulty by any scorer or Pipeline that ends in one, fitted already or on other folds.


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
    return compute_difficulty(scorer, X, y)


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
        The folds; an int is a number of stratified folds.
    groups : array-like of shape (n_samples,), default=None
        Which samples belong together, such as those of a patient: no group is in two folds.
    n_jobs : int, default=None
        Number of folds fitted at once; None means 1, -1 all processors.
    verbose : int, default=0
        Progress of the folds, as in :class:`joblib.Parallel`; 0 prints nothing.

    Returns
    -------
    difficulty : ndarray of shape (n_samples,)
        Larger means harder; the mean over repeated folds, and NaN for samples that no fold
        leaves out, about which there is a warning. Infinite for a label that the other folds
        lack, if the scorer has classes.

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
    X, labels = read_samples(X, y)
    params = get_group_params(estimator, groups)
    if groups is None:
        warn_of_duplicates(encode_duplicates(X, labels))
    of_fold = partial(_score_fold, estimator, X, labels, params)
    folds = make_folds(cv, X, labels, groups, least=2)
    return folds.average(run_folds(of_fold, folds, n_jobs, verbose))


def _score_fold(
    estimator: Any,
    X: Any,
    labels: NDArray,
    params: dict[str, Any],
    train: NDArray[np.intp],
    test: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Return the difficulty of the samples `test` by a fit on `train`; inf for unseen labels."""
    fitted = fit_clone(estimator, X, labels, train, params)
    scorer, _ = get_last_step(fitted)
    # A scorer without classes, such as KMeansPrototypeScorer, takes any label.
    known = np.ones(len(test), dtype=bool)
    if hasattr(scorer, "classes_"):
        known = find_positions(labels[test], scorer.classes_) >= 0
    difficulty = np.full(len(test), np.inf)
    # Scorers may refuse an empty X.
    if known.any():
        seen = test[known]
        difficulty[known] = compute_difficulty(fitted, _safe_indexing(X, seen), labels[seen])
    return difficulty


# Does a classifier err more often on difficult samples?


@validate_params(
    {
        "y_true": ["array-like"],
        "y_pred": ["array-like"],
        "difficulty": ["array-like"],
        "n_groups": [Interval(Integral, 1, None, closed="left")],
        "sample_weight": ["array-like", None],
    }
)
def error_rate_by_difficulty(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    difficulty: ArrayLike,
    *,
    n_groups: int = 10,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Error rate of a classifier in groups of samples of rising difficulty.

    The samples are sorted by difficulty and cut into groups of equal size. If a cut falls among
    samples of equal difficulty, each counts in part on either side, as on average over all orders:
    the order of the samples does not matter.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, integers or strings.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    difficulty : array-like of shape (n_samples,)
        Difficulty, larger = harder.
    n_groups : int, default=10
        Number of groups, at most the number of samples.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; groups have equal weight.

    Returns
    -------
    error_rate : ndarray of shape (n_groups,)
        Fraction of wrong predictions in each group, in [0, 1], from the easiest group to the
        hardest. It rises if the difficulty is useful.

    See Also
    --------
    skcalib.plots.DifficultyDisplay : The same as a picture.
    RelativeMahalanobisScorer : A difficulty to start from.
    skcalib.metrics.risk_coverage_curve : Error rate by confidence.

    Examples
    --------
    >>> from skcalib.difficulty import error_rate_by_difficulty
    >>> y_true, y_pred = [0, 1, 1, 0, 1, 0], [0, 1, 1, 1, 1, 1]
    >>> error_rate_by_difficulty(y_true, y_pred, [0.1, 0.2, 0.4, 0.5, 0.3, 0.9], n_groups=3)
    array([0., 0., 1.])
    """
    true = as_labels(y_true, name="y_true")
    predicted = check_labels_like(y_pred, name="y_pred", n_samples=len(true), like=true)
    values = check_numbers(difficulty, "difficulty", ndim=(1,))
    check_same_length(y_true=true, difficulty=values)
    if n_groups > len(values):
        raise ValueError(
            f"n_groups must be at most the number of samples, {len(values)}, got {n_groups}."
        )
    weight = check_weights(sample_weight, len(values))
    weight = np.ones(len(values)) if weight is None else weight
    _, level = np.unique(values, return_inverse=True)
    # Cumulative errors against cumulative weight, with a point for every level of difficulty. The
    # line between two points is the mean over the orders of the samples of a level.
    cumulative = np.append(0.0, np.cumsum(np.bincount(level, weights=weight)))
    errors = np.append(0.0, np.cumsum(np.bincount(level, weights=weight * (true != predicted))))
    cuts = np.linspace(0.0, cumulative[-1], n_groups + 1)
    # Rounding may leave [0, 1].
    return np.clip(np.diff(np.interp(cuts, cumulative, errors)) / np.diff(cuts), 0.0, 1.0)
