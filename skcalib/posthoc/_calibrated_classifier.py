"""A classifier and its post-hoc calibrator as one estimator."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.validation import check_is_fitted

from ..utils._arrays import as_features, refuse_unreadable
from ..utils._estimators import fit_router, inner_fit_params, show_inner
from ..utils._features import samples_and_labels
from ..utils._labels import check_several_classes, encode
from ..utils._private import HasMethods, Hidden, StrOptions, _fit_context
from ..utils._validation import check_weights
from ._base import PostHocCalibrator
from ._choice import choose_calibrator
from ._temperature import TemperatureScaling


class PostHocCalibratedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Calibrate a classifier on out-of-fold scores of its own training samples.

    The classifier is fitted on the folds of `cv`, its scores of the samples left out are
    collected, and the calibrator is fitted on these. The classifier that predicts is fitted on all
    samples. A classifier that is already trained goes in as
    :class:`sklearn.frozen.FrozenEstimator`, with the samples to calibrate on given to `fit`: it is
    not fitted again.

    Parameters
    ----------
    estimator : classifier with `predict_proba` or `decision_function`
        The classifier; a clone is fitted.
    calibrator : PostHocCalibrator or "auto", default=None
        The calibrator; a clone is fitted, with `input` set to what the scores of the classifier
        are, and `classes` to those of a frozen classifier where `y` lacks one of them. "auto"
        means what :func:`choose_calibrator` returns for the samples of positive weight and the
        classes, None :class:`TemperatureScaling`.
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
        The classifier, fitted on all samples.
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
    choose_calibrator : The calibrator for a number of samples and classes.
    TemperatureScaling : The calibrator of fewest parameters.
    skcalib.plots.ReliabilityDisplay : Before and after.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
        ],
        "calibrator": [PostHocCalibrator, StrOptions({"auto"}), None],
        # "prefit" of older releases of scikit-learn: `fit` says what to do instead.
        "cv": ["cv_object", Hidden(StrOptions({"prefit"}))],
        "method": [StrOptions({"auto", "decision_function", "predict_proba"})],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: Any,
        calibrator: PostHocCalibrator | str | None = None,
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
        """Fit the calibrator on out-of-fold scores, and the classifier on all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of n_samples objects
            Whatever the classifier takes.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, for the classifier and the calibrator.
        **fit_params : dict
            Further parameters of ``estimator.fit``; those with one entry a sample are cut to
            the samples of a fold.

        Returns
        -------
        self : PostHocCalibratedClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If a class has fewer samples than there are folds, or if the classifier does not take
            the weights that are given.
        """
        if isinstance(self.cv, str):
            raise ValueError(
                "cv must be an int, a cross-validation generator or an iterable, got 'prefit'; a "
                "classifier that is trained goes in as sklearn.frozen.FrozenEstimator(classifier)."
            )
        refuse_unreadable(X, name="X")
        X, labels = samples_and_labels(X, y)
        weight = check_weights(sample_weight, len(labels))
        # Samples of weight 0 cannot be the only ones of a second class.
        check_several_classes(np.unique(labels if weight is None else labels[weight > 0]))
        present, count = np.unique(labels, return_counts=True)
        params = inner_fit_params(self, "estimator", weight, fit_params)
        method = self._method()
        if isinstance(self.estimator, FrozenEstimator):
            # No fold would fit it; it may know classes that are not in y.
            self.classes_ = self.estimator.classes_
            # For its errors: labels that the frozen classifier does not know.
            encode(labels, self.classes_)
            scores = getattr(self.estimator, method)(X)
        else:
            self.classes_ = present
            cv = check_cv(self.cv, labels, classifier=True)
            _check_folds(cv, count, self.classes_)
            scores = cross_val_predict(
                self.estimator, X, labels, cv=cv, method=method, n_jobs=self.n_jobs, params=params
            )
        n_used = len(labels) if weight is None else int(np.count_nonzero(weight))
        calibrator = self._new_calibrator(n_used / len(self.classes_), len(self.classes_))
        # Where all classes are in y, the calibrator finds the labels of the columns by itself.
        calibrator.set_params(
            input="proba" if method == "predict_proba" else "logits",
            classes=None if len(present) == len(self.classes_) else self.classes_.tolist(),
        )
        self.calibrator_ = calibrator.fit(scores, labels, sample_weight=weight)
        # A frozen classifier is its own clone, and its fit does nothing.
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
        scores = getattr(self.estimator_, self._method())(as_features(X))
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

    def _new_calibrator(self, samples_per_class: float, n_classes: int) -> PostHocCalibrator:
        if self.calibrator is None:
            return TemperatureScaling()
        if isinstance(self.calibrator, str):
            return choose_calibrator(samples_per_class, n_classes)
        return clone(self.calibrator)

    def _method(self) -> str:
        if self.method != "auto":
            return self.method
        has_logits = hasattr(self.estimator, "decision_function")
        return "decision_function" if has_logits else "predict_proba"

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            `sample_weight` goes to the calibrator where this object requests it; it and further
            metadata of `fit` go to the classifier as that requests.
        """
        return fit_router(self, estimator=self.estimator)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.classifier_tags = inner.classifier_tags
        return tags


def _check_folds(cv: Any, count: NDArray[np.intp], classes: NDArray) -> None:
    """Raise where a class is too rare to be in every fold: its scores could not be trusted."""
    # Not known for an iterable of splits, where what is in a fold is the user's choice.
    n_splits = getattr(cv, "n_splits", None)
    if n_splits is not None and count.min() < n_splits:
        rarest = int(np.argmin(count))
        raise ValueError(
            f"y must hold at least as many samples of a class as cv has folds, {n_splits}, "
            f"got {count[rarest]} of class {classes.tolist()[rarest]!r}."
        )
