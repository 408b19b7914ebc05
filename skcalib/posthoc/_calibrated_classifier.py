"""A classifier and its post-hoc calibrator as one estimator."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import Tags, assert_all_finite, column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..utils._estimators import show_inner
from ..utils._labels import check_several_classes
from ..utils._private import HasMethods, StrOptions, _fit_context, _routing_enabled
from ..utils._validation import check_weights
from ._base import PostHocCalibrator
from ._temperature import TemperatureScaling


class PostHocCalibratedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Calibrate a classifier on out-of-fold scores of its own training rows.

    The classifier is fitted on the folds of `cv`, its scores of the rows left out are collected,
    and the calibrator is fitted on these. The classifier that predicts is fitted on all rows. For
    a classifier that is already trained, wrap it in ``sklearn.frozen.FrozenEstimator`` and give
    `fit` the rows to calibrate on: it is not fitted again.

    Parameters
    ----------
    estimator : classifier with `predict_proba` or `decision_function`
        The classifier; a clone is fitted.
    calibrator : PostHocCalibrator, default=None
        A calibrator of this package; a clone is fitted, with `input` and `classes` set to what
        the scores of the classifier are. None means :class:`TemperatureScaling`.
    cv : int, cross-validation generator or iterable, default=5
        The folds, as in scikit-learn: an int is a number of stratified folds.
    method : {"auto", "decision_function", "predict_proba"}, default="auto"
        Where the scores come from. `decision_function` is taken for logits, `predict_proba` for
        probabilities; "auto" prefers the first where the classifier has it.
    n_jobs : int, default=None
        Number of folds fitted at once; None means 1, -1 all processors.

    Attributes
    ----------
    estimator_ : classifier
        The classifier, fitted on all rows.
    calibrator_ : PostHocCalibrator
        The fitted calibrator.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_features_in_ : int
        Number of features, where `estimator_` tells it.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Feature names, where `estimator_` tells them.

    See Also
    --------
    sklearn.calibration.CalibratedClassifierCV : Sigmoid, isotonic or temperature calibration.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalib.metrics import expected_calibration_error
    >>> from skcalib.posthoc import PostHocCalibratedClassifier
    >>> X, y = make_classification(2000, n_informative=8, n_redundant=10, random_state=0)
    >>> plain = GaussianNB().fit(X[:1000], y[:1000])
    >>> calibrated = PostHocCalibratedClassifier(GaussianNB()).fit(X[:1000], y[:1000])
    >>> for model in (plain, calibrated):
    ...     error = expected_calibration_error(y[1000:], model.predict_proba(X[1000:]))
    ...     print(round(error, 2))
    0.08
    0.03
    """

    _parameter_constraints: dict = {
        "estimator": [
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
        ],
        "calibrator": [PostHocCalibrator, None],
        "cv": ["cv_object"],
        "method": [StrOptions({"auto", "decision_function", "predict_proba"})],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: Any,
        calibrator: PostHocCalibrator | None = None,
        *,
        cv: Any = 5,
        method: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.method = method
        self.n_jobs = n_jobs

    # The parameters of the classifier and of the calibrator are theirs to validate.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **fit_params: Any
    ) -> Self:
        """Fit the calibrator on out-of-fold scores, and the classifier on all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of n_samples objects
            Whatever the classifier takes.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, for the classifier and the calibrator.
        **fit_params : dict
            Further parameters of ``estimator.fit``; those with one entry a row are cut to the
            rows of a fold.

        Returns
        -------
        self : PostHocCalibratedClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If a class has fewer rows than there are folds, or if the classifier does not take the
            weights that are given.
        """
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        X, labels = indexable(X, column_or_1d(y, warn=True))
        weight = check_weights(sample_weight, len(labels))
        check_several_classes(np.unique(labels if weight is None else labels[weight > 0]))
        self.classes_, count = np.unique(labels, return_counts=True)
        params = self._estimator_params(weight, fit_params)
        method = self._method()
        cv = check_cv(self.cv, labels, classifier=True)
        _check_folds(cv, count, self.classes_)
        scores = cross_val_predict(
            self.estimator, X, labels, cv=cv, method=method, n_jobs=self.n_jobs, params=params
        )
        calibrator = TemperatureScaling() if self.calibrator is None else clone(self.calibrator)
        calibrator.set_params(
            input="proba" if method == "predict_proba" else "logits", classes=self.classes_
        )
        self.calibrator_ = calibrator.fit(scores, labels, sample_weight=weight)
        self.estimator_ = clone(self.estimator).fit(X, labels, **params)
        show_inner(self, self.estimator_)
        return self

    def predict_proba(self, X: Any) -> NDArray:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`.
        """
        check_is_fitted(self)
        scores = getattr(self.estimator_, self._method())(X)
        return self.calibrator_.predict_proba(scores)

    def predict(self, X: Any) -> NDArray:
        """Return the class of the largest calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predicted labels.
        """
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    def _method(self) -> str:
        if self.method != "auto":
            return self.method
        has_logits = hasattr(self.estimator, "decision_function")
        return "decision_function" if has_logits else "predict_proba"

    def _estimator_params(
        self, weight: NDArray | None, fit_params: dict[str, Any]
    ) -> dict[str, Any]:
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=weight, **fit_params)
            return dict(routed["estimator"]["fit"])
        if weight is None:
            return fit_params
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"sample_weight cannot be used: the fit of {type(self.estimator).__name__} has no "
                "such parameter."
            )
        return {**fit_params, "sample_weight": weight}

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            `sample_weight` goes to the calibrator where this object requests it; it and further
            metadata of `fit` go to the classifier as that requests.
        """
        fit_to_fit = MethodMapping().add(caller="fit", callee="fit")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=fit_to_fit)
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.classifier_tags = inner.classifier_tags
        return tags


def _check_folds(cv: Any, count: NDArray[np.intp], classes: NDArray) -> None:
    """Raise where a class is too rare to be in every fold: its scores could not be trusted."""
    n_splits = getattr(cv, "n_splits", None)
    if n_splits is not None and count.min() < n_splits:
        rarest = int(np.argmin(count))
        raise ValueError(
            f"Every class must have at least as many rows as cv has folds ({n_splits}): class "
            f"{classes.tolist()[rarest]!r} has {count[rarest]}."
        )
