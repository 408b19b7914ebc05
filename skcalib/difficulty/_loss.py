"""Difficulty as the loss of a classifier."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from ..utils.checking._arrays import as_features, check_weights
from ..utils.checking._groups import duplicate_codes, warn_of_duplicates
from ..utils.checking._labels import encode
from ..utils.checking._proba import label_log_loss
from ..utils.meta._estimators import (
    MetaMixin,
    class_columns,
    fit_clone,
    folds_of,
    inner_fit_params,
    out_of_fold,
    samples_and_labels,
    warn_if_fitted,
)
from ..utils.meta._private import HasMethods, _fit_context
from ._base import DifficultyMixin, RequiresLabels


class LossScorer(RequiresLabels, DifficultyMixin, MetaMixin, BaseEstimator):
    """Difficulty as the log-loss of the label under a classifier.

    ``difficulty(X, y)`` is minus the logarithm of the probability that the classifier gives to
    the label; ``difficulty(X)`` takes the most probable class instead. **Larger means harder.**

    A classifier that has memorized its training samples finds all of them easy. With `cv`,
    :meth:`fit_difficulty` therefore scores each sample by a classifier fitted on other folds. As
    in :class:`sklearn.preprocessing.TargetEncoder`, the result differs from `fit` and
    `difficulty`, which is for new samples and uses the classifier fitted on all.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba`. A clone is fitted; a fitted one goes in as
        :class:`sklearn.frozen.FrozenEstimator`.
    cv : int, cross-validation generator or iterable, default=None
        Folds of `fit_difficulty`, as in :func:`sklearn.model_selection.cross_val_predict`. None,
        since `fit` needs no folds, scores the samples in-sample, where what the classifier has
        memorized looks easy; :func:`cross_val_difficulty` has folds of its own.

    Attributes
    ----------
    estimator_ : classifier
        The classifier, fitted on all samples.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted: those of `y`, and others that the classifier knows.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Of `estimator_`, where it has them.

    See Also
    --------
    RelativeMahalanobisScorer : Difficulty from features, without training a classifier.
    cross_val_difficulty : Out-of-fold difficulty by any scorer.
    skcalib.labels.LabelIssueFinder : From difficulty to wrong labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skcalib.difficulty import LossScorer
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = LossScorer(LogisticRegression(max_iter=500), cv=5)
    >>> difficulty = scorer.fit_difficulty(X, y)
    >>> bool(difficulty.mean() > scorer.difficulty(X, y).mean())
    True
    """

    # Without metadata routing, groups reach a classifier whose `fit` takes them; with it, one that
    # requests them.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"groups": UNUSED}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "cv": ["cv_object"],
    }

    def __init__(self, estimator: Any, cv: Any = None) -> None:
        self.estimator = estimator
        self.cv = cv

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the classifier on all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            What the classifier takes.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Passed to the `fit` of the classifier.
        groups : array-like of shape (n_samples,), default=None
            Which samples belong together, such as those of a patient: passed to the `fit` of a
            classifier that takes them, such as one that is calibrated on folds of its own.

        Returns
        -------
        self : LossScorer
            The fitted scorer.
        """
        X, labels = samples_and_labels(X, y)
        weight = check_weights(sample_weight, len(labels))
        warn_if_fitted(estimator=self.estimator)
        params = inner_fit_params(self, "estimator", weight, {}, groups)
        self._keep(fit_clone(self.estimator, X, labels, params=params), labels)
        return self

    def fit_difficulty(  # type: ignore[override]
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Fit, and score the samples: each by a classifier that has not seen it, given `cv`.

        Parameters
        ----------
        X, y, sample_weight : of :meth:`fit`
        groups : array-like of shape (n_samples,), default=None
            Which samples belong together, such as those of a patient: no group is in two folds.

        Returns
        -------
        difficulty : ndarray of shape (n_samples,)
            Out-of-fold log-loss, or in-sample with ``cv=None``; larger means harder.
        """
        X, labels = samples_and_labels(X, y)
        # With `cv` as well: `difficulty` of new samples needs a classifier.
        self.fit(X, labels, sample_weight, groups)
        if self.cv is None or isinstance(self.estimator, FrozenEstimator):
            return self.difficulty(X, labels)
        weight = check_weights(sample_weight, len(labels))
        params = inner_fit_params(self, "estimator", weight, {}, groups)
        if groups is None:
            warn_of_duplicates(duplicate_codes(X, labels))
        folds = folds_of(self.cv, X, labels, groups)
        proba = out_of_fold(self.estimator, X, labels, folds, classes=self.classes_, params=params)
        return label_log_loss(proba, encode(labels, self.classes_))

    def difficulty(self, X: Any, y: ArrayLike | None = None) -> NDArray[np.float64]:
        """Log-loss of the label, or of the most probable class; larger means harder.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,), default=None
            Labels, each among `classes_`.

        Returns
        -------
        difficulty : ndarray of shape (n_samples,)
            Non-negative; larger means harder.
        """
        check_is_fitted(self)
        proba = class_columns(self.estimator_, as_features(X), self.classes_)
        if y is None:
            return label_log_loss(proba, proba.argmax(axis=1))
        labels = np.asarray(y)
        if labels.shape != (len(proba),):
            raise ValueError(f"y must have shape ({len(proba)},), got {labels.shape}.")
        return label_log_loss(proba, encode(labels, self.classes_))
