"""Train a classifier on selected rows, where a Pipeline expects a classifier."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import Tags, assert_all_finite, column_or_1d, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..utils import SkcalibWarning
from ..utils._estimators import show_inner
from ..utils._labels import check_several_classes
from ..utils._private import (
    HasMethods,
    _check_method_params,
    _estimator_has,
    _fit_context,
    _safe_indexing,
)


class SubsetClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Fit a classifier on the rows that a selector chooses.

    A step of a Pipeline cannot drop rows; this classifier at its end can.

    Parameters
    ----------
    estimator : classifier
        Fitted, as a clone, on the chosen rows.
    selector : object with fit(X, y) and get_support()
        For instance :class:`~skcalib.selection.MaxEntropySelector`. Fitted, as a clone, on all
        training rows.

    Attributes
    ----------
    selector_ : object
        The fitted selector.
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        The classes of all training rows, chosen or not.
    n_features_in_ : int
        Number of features, where `estimator_` tells it.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Feature names, where `estimator_` tells them.

    See Also
    --------
    MaxEntropySelector : Choose the rows a model is least sure about.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skcalib.selection import MaxEntropySelector, SubsetClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500)
    >>> clf = SubsetClassifier(model, MaxEntropySelector(model, fraction=0.6)).fit(X, y)
    >>> int(clf.selector_.get_support().sum())
    90
    >>> round(clf.score(X, y), 2)
    0.98
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict"])],
        "selector": [HasMethods(["fit", "get_support"])],
    }

    def __init__(self, estimator: Any, selector: Any) -> None:
        self.estimator = estimator
        self.selector = selector

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: ArrayLike, y: ArrayLike, **fit_params: Any) -> Self:
        """Choose rows, then fit the classifier on them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Class labels.
        **fit_params : dict
            Passed to the fit of `estimator`; values with one entry a row are cut to the chosen
            rows. They do not reach the selector, which counts rows.

        Returns
        -------
        self : SubsetClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If `y` has one class only, or is no array of class labels.

        Warns
        -----
        SkcalibWarning
            If a class has no chosen row; its probability will be 0.
        """
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        X, labels = indexable(X, labels)
        self.classes_ = np.unique(labels)
        check_several_classes(self.classes_)
        self.selector_ = clone(self.selector).fit(X, labels)
        rows = self.selector_.get_support(indices=True)
        lost = np.setdiff1d(self.classes_, labels[rows])
        if lost.size:
            warnings.warn(
                f"No row of class {', '.join(map(repr, lost.tolist()))} was selected; "
                "its probability will be 0. Select a larger share.",
                SkcalibWarning,
                stacklevel=2,
            )
        chosen_params = _check_method_params(X, fit_params, indices=rows)
        self.estimator_ = clone(self.estimator).fit(
            _safe_indexing(X, rows), labels[rows], **chosen_params
        )
        show_inner(self, self.estimator_)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Class labels.
        """
        check_is_fitted(self)
        return self.estimator_.predict(X)

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: ArrayLike) -> NDArray[np.floating]:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        y_proba : ndarray of shape (n_samples, n_classes)
            One column for every entry of `classes_`; 0 for a class with no chosen row.
        """
        check_is_fitted(self)
        proba = self.estimator_.predict_proba(X)
        if len(self.estimator_.classes_) == len(self.classes_):
            return proba
        full = np.zeros((len(proba), len(self.classes_)), dtype=proba.dtype)
        full[:, np.searchsorted(self.classes_, self.estimator_.classes_)] = proba
        return full

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = self.estimator.__sklearn_tags__().input_tags
        if hasattr(self.selector, "__sklearn_tags__"):
            selector = self.selector.__sklearn_tags__().input_tags
            tags.input_tags.sparse &= selector.sparse
            tags.input_tags.allow_nan &= selector.allow_nan
        return tags
