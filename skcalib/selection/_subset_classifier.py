"""Train a classifier on selected samples, where a Pipeline expects a classifier."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..utils import SkcalibWarning
from ..utils._arrays import as_features, refuse_unreadable
from ..utils._estimators import (
    common_input_tags,
    fit_router,
    fit_takes,
    inner_fit_params,
    show_inner,
)
from ..utils._features import samples_and_labels
from ..utils._labels import check_several_classes, class_positions
from ..utils._private import (
    HasMethods,
    _check_method_params,
    _estimator_has,
    _fit_context,
    _routing_enabled,
    _safe_indexing,
)
from ..utils._validation import check_weights


class SubsetClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Fit a classifier on the samples that a selector chooses.

    A step of a Pipeline cannot drop samples; this classifier at its end can.

    Parameters
    ----------
    estimator : classifier
        Fitted, as a clone, on the chosen samples.
    selector : object with fit(X, y) and get_support()
        For instance :class:`~skcalib.selection.MaxEntropySelector` or
        :class:`~skcalib.selection.DifficultySelector`. Fitted, as a clone, on all training
        samples.

    Attributes
    ----------
    selector_ : object
        The fitted selector.
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        The classes of all training samples, chosen or not.
    n_features_in_ : int
        Number of features, where `estimator_` tells it.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Feature names, where `estimator_` tells them.

    See Also
    --------
    MaxEntropySelector : Choose the samples a model is least confident about.
    DifficultySelector : Choose the easiest samples, or the hardest.
    skcalib.nets.EpochPrioritizer : A choice anew in every epoch.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "selector": [HasMethods(["fit", "get_support"])],
    }

    def __init__(self, estimator: Any, selector: Any) -> None:
        self.estimator = estimator
        self.selector = selector

    # The parameters of the estimator and of the selector are theirs to validate.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **fit_params: Any
    ) -> Self:
        """Choose samples, then fit the classifier on them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, for the fit of `estimator`, cut to those chosen, and for the
            fit of `selector` where it takes weights. With metadata routing, for whoever requests
            them.
        **fit_params : dict
            Further parameters of ``estimator.fit``; those with one entry a sample are cut to the
            chosen ones. With metadata routing they go to whoever requests them.

        Returns
        -------
        self : SubsetClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If `y` has one class only or is no array of class labels, or if the weights are
            negative or the classifier does not take them.

        Warns
        -----
        SkcalibWarning
            If no sample of a class is chosen; its probability will be 0.
        """
        refuse_unreadable(X, name="X")
        X, labels = samples_and_labels(X, y)
        weight = check_weights(sample_weight, len(labels))
        check_several_classes(np.unique(labels if weight is None else labels[weight > 0]))
        # A class whose samples all have weight 0 has its column as well.
        self.classes_ = np.unique(labels)
        params = inner_fit_params(self, "estimator", weight, fit_params)
        selector_params = self._selector_params(weight, fit_params)
        self.selector_ = clone(self.selector).fit(X, labels, **selector_params)
        rows = self.selector_.get_support(indices=True)
        lost = np.setdiff1d(self.classes_, labels[rows])
        if lost.size:
            warnings.warn(
                f"No sample of class {', '.join(map(repr, lost.tolist()))} was selected; "
                "its probability will be 0. Select a larger fraction.",
                SkcalibWarning,
                # This function, scikit-learn's wrapper of fit, the caller.
                stacklevel=4,
            )
        chosen_params = _check_method_params(X, params, indices=rows)
        self.estimator_ = clone(self.estimator).fit(
            _safe_indexing(X, rows), labels[rows], **chosen_params
        )
        show_inner(self, self.estimator_)
        return self

    def _selector_params(
        self, weight: NDArray | None, fit_params: dict[str, Any]
    ) -> dict[str, Any]:
        # Without routing `fit_params` are meant for the estimator alone.
        if _routing_enabled():
            return inner_fit_params(self, "selector", weight, fit_params)
        if weight is None or not fit_takes(self.selector, "sample_weight"):
            return {}
        return {"sample_weight": weight}

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of every sample.

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
        return self.estimator_.predict(as_features(X))

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
            One column for every entry of `classes_`; 0 for a class with no chosen sample.
        """
        check_is_fitted(self)
        return self._with_all_classes(self.estimator_.predict_proba(as_features(X)), absent=0)

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X: ArrayLike) -> NDArray[np.floating]:
        """Decision function of the fitted classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            As the classifier defines them; the least number there is for a class with no chosen
            sample.
        """
        check_is_fitted(self)
        scores = self.estimator_.decision_function(as_features(X))
        # Two of several classes were chosen, and the one score is for the second of them.
        if scores.ndim == 1 and len(self.classes_) > 2:
            scores = np.column_stack([-scores, scores])
        # Finite, because scikit-learn's checks refuse infinity.
        return self._with_all_classes(scores, absent=np.finfo(scores.dtype).min)

    def _with_all_classes(self, scores: NDArray, *, absent: float) -> NDArray:
        """Return the columns of the fitted classes among those of all classes."""
        if len(self.estimator_.classes_) == len(self.classes_):
            return scores
        full = np.full((len(scores), len(self.classes_)), absent, dtype=scores.dtype)
        full[:, class_positions(self.estimator_.classes_, self.classes_)] = scores
        return full

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            `sample_weight` and further metadata of `fit` go to the selector and the estimator, as
            these request.
        """
        return fit_router(self, selector=self.selector, estimator=self.estimator)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = common_input_tags(self.estimator, self.selector)
        return tags
