"""A classifier and its post-hoc calibrator as one estimator."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ..utils._arrays import as_features, check_weights, is_soft
from ..utils._backends import by_chunks, map_rows, read_first_chunk, send_chunks_to
from ..utils._compat import (
    HasMethods,
    Hidden,
    StrOptions,
    _fit_context,
    _safe_indexing,
    print_elapsed,
)
from ..utils._estimators import (
    Folds,
    MetaClassifier,
    PredictByProba,
    check_class_scores,
    draw_rows,
    fit_clone,
    get_inner_fit_params,
    has_argument,
    make_folds,
    predict_columns,
    predict_out_of_fold,
    read_samples,
    returns_logits,
    warn_if_fitted,
)
from ..utils._labels import (
    check_several_classes,
    encode_duplicates,
    encode_groups,
    format_labels,
    sketch_samples,
    warn_of_duplicates,
)
from ..utils._proba import as_soft_labels
from ._base import PostHocCalibrator
from ._groupwise import GroupwiseCalibration
from ._registry import CALIBRATORS, get_calibrator


class PostHocCalibratedClassifier(PredictByProba, MetaClassifier):
    """Calibrate a classifier on out-of-fold scores of its own training samples.

    Clones of the classifier are fitted on the folds of `cv`, and the calibrator is fitted on their
    scores of the samples left out. For prediction, the classifier is fitted once more on all
    samples, or the clones of the folds predict together (`ensemble`). To calibrate a classifier
    that is already trained, wrap it in :class:`sklearn.frozen.FrozenEstimator` and pass `fit` the
    samples to calibrate on: it is not fitted again.

    Parameters
    ----------
    estimator : classifier with `predict_proba` or `decision_function`
        The classifier; a clone is fitted.
    calibrator : PostHocCalibrator, str or None, default="auto"
        The calibrator; a clone is fitted, with `input` set to the kind of scores that the
        classifier gives, and `classes` to those of a frozen classifier if `y` lacks one of them.
        "auto" mixes several, weighted by their out-of-fold likelihood
        (:class:`StackedCalibration`). Other names are "beta", "dirichlet",
        "ensemble_temperature", "histogram", "isotonic", "matrix", "sigmoid" (or "platt"),
        "structured_matrix", "structured_vector", "temperature" and "vector". "none" and None leave
        the probabilities unchanged.
    cv : int, cross-validation generator or iterable, default=5
        The folds, as in scikit-learn: an int is a number of stratified folds. They keep `groups`
        together if `fit` gets them. Folds that never leave out some samples, such as those of
        :class:`sklearn.model_selection.TimeSeriesSplit`, calibrate on the others, and a warning
        says how many; of repeated folds, every repetition counts.
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        Where the scores come from. "auto" prefers `decision_function`, and takes `predict_proba`
        if the classifier has none. Decision values are logits where their softmax is the
        `predict_proba` of the classifier, as of logistic regression or boosting. Others, such as
        the distances of a support vector machine, have no unit: probabilities do not depend on it
        (``input="scores"`` of the calibrator). With more than two classes, the largest must belong
        to the class that `predict` returns.
    ensemble : bool, default=False
        Which classifiers predict. False: one classifier, fitted on all samples. True: those of the
        folds, each calibrated by the same map; the result is the geometric mean of their
        probabilities. That saves one fit, and multiplies memory and prediction time by the number
        of folds. Measured on 63 tasks, it lowers the log-loss of forests by .011 ± .002, of
        boosting by .015 ± .006, of neighbors by .006 ± .004 and of a single tree by .095 ± .034;
        regressions and nets gain nothing. If the classifiers of the folds differ much, as unpruned
        trees do, their mean is underconfident and the calibration error may be far higher. That,
        and the cost of prediction, is why the default is False. A frozen classifier always
        predicts alone.
    n_jobs : int, default=None
        Number of folds fitted at once; None means 1, -1 all processors.
    by_columns : str, int or list of these, default=None
        Columns of X, by name or position, that hold groups to calibrate separately. The calibrator
        is then the common map of a :class:`GroupwiseCalibration`. The classifier sees these
        columns too.
    verbose : int, default=0
        Whether to print the steps of `fit` and their seconds, and the progress of the folds, as
        in :class:`joblib.Parallel`; 0 prints nothing.

    Attributes
    ----------
    estimators_ : list of classifiers
        The classifiers that predict: one, or those of the folds.
    estimator_ : classifier
        The classifier, fitted on all samples; only with ``ensemble=False`` or a frozen classifier.
    calibrator_ : PostHocCalibrator
        The fitted calibrator; a :class:`GroupwiseCalibration` with `by_columns`.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted: those of `y`, and others that the classifier knows.
    n_features_in_ : int
        Number of features, if the classifier has it.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Feature names, if the classifier has them.

    See Also
    --------
    sklearn.calibration.CalibratedClassifierCV : Sigmoid, isotonic or temperature calibration.
    StackedCalibration : The calibrator of "auto".
    GroupwiseCalibration : The calibrator with `by_columns`.
    TemperatureScaling : The calibrator with the fewest parameters.
    skcalib.plots.ReliabilityDisplay : Plots calibration before and after.

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
    0.04
    """

    # With metadata routing, `groups` go to the folds, and to a classifier that requests them.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"groups": UNUSED}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
        ],
        "calibrator": [PostHocCalibrator, StrOptions(set(CALIBRATORS)), None],
        # "prefit", from older releases of scikit-learn: the error of `fit` names what replaces it.
        "cv": ["cv_object", Hidden(StrOptions({"prefit"}))],
        "response_method": [StrOptions({"auto", "decision_function", "predict_proba"})],
        "ensemble": ["boolean"],
        "n_jobs": [Integral, None],
        "by_columns": [str, Integral, list, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any,
        calibrator: PostHocCalibrator | str | None = "auto",
        *,
        cv: Any = 5,
        response_method: str = "auto",
        ensemble: bool = False,
        n_jobs: int | None = None,
        by_columns: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.response_method = response_method
        self.ensemble = ensemble
        self.n_jobs = n_jobs
        self.by_columns = by_columns
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    @send_chunks_to("_fit_chunks")
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the calibrator on out-of-fold scores, and the classifier on all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of n_samples objects
            Samples, in the form that the classifier takes. With a frozen classifier also a dask
            array, if the calibrator can be fitted to one (see :meth:`PostHocCalibrator.fit`).
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels. With a frozen classifier also the fraction of people who gave each label (see
            :meth:`PostHocCalibrator.fit`).
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, for both the classifier and the calibrator.
        groups : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns), \
                default=None
            Which samples belong together, such as those of a patient: names or numbers. Folds
            keep groups together, including the calibrator's own folds. Equal rows of X are not
            kept together: where more than a tenth of the rows equal another one, label included,
            a warning asks for `groups`. They are also passed to a classifier whose `fit` takes
            them.
        **fit_params : dict
            Further parameters of ``estimator.fit``; those with one entry per sample are sliced
            with the folds.

        Returns
        -------
        self : PostHocCalibratedClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If a class has fewer samples than there are folds, or a training part of `cv` or
            `groups` lacks it; if `y` has a label that the classifier does not learn; if the
            largest decision value often belongs to another class than `predict` returns, as of
            pairs of classes (``SVC(decision_function_shape="ovo")``); or if weights are given and
            the classifier does not take them.
        TypeError
            If X is a dask array and the classifier is not frozen.
        """
        if isinstance(self.cv, str):
            raise ValueError(
                "cv must be an int, a cross-validation generator or an iterable, got 'prefit'; "
                "pass a trained classifier as sklearn.frozen.FrozenEstimator(classifier)."
            )
        if is_soft(y):
            return self._fit_to_soft_labels(X, y, sample_weight, groups)
        X, labels = read_samples(X, y)
        weight = check_weights(sample_weight, len(labels))
        # Samples of weight 0 cannot be the only ones of a second class.
        check_several_classes(np.unique(labels if weight is None else labels[weight > 0]))
        warn_if_fitted(estimator=self.estimator)
        # To warn of a threshold that is set on them.
        self._sketch: NDArray[np.uint64] | None = sketch_samples(X, labels)
        if groups is None:
            warn_of_duplicates(encode_duplicates(X, labels))
        params = get_inner_fit_params(self, "estimator", weight, fit_params, groups)
        frozen = isinstance(self.estimator, FrozenEstimator)
        folds = None if frozen else self._folds(X, labels, groups)
        scores = self._fit_classifiers(X, labels, folds, params)
        form = self._find_form(draw_rows(X))
        learned = getattr(self.estimators_[0], "classes_", labels)
        unknown = np.setdiff1d(labels, learned)
        if len(unknown):
            raise ValueError(
                "y must hold labels that the classifier learns, got "
                f"{format_labels(unknown)}, which is not in classes_ of "
                f"{type(self.estimators_[0]).__name__}; leave these samples out, or calibrate "
                "FrozenEstimator(classifier) on others."
            )
        # The calibrator's own folds keep the same groups together.
        codes = None if groups is None else encode_groups(groups, len(labels))[1]
        if folds is not None and not folds.is_partition:
            rows = folds.rows
            if codes is None and len(np.unique(rows)) < len(rows):
                codes = np.arange(len(labels))  # a sample that is left out twice is one sample
            X, labels = _safe_indexing(X, rows), labels[rows]
            weight = None if weight is None else weight[rows]
            codes = None if codes is None else codes[rows]
        # If y has all classes, the calibrator finds them itself.
        classes = None if np.isin(self.classes_, labels).all() else self.classes_.tolist()
        return self._fit_calibrator(X, scores, form, labels, weight, codes, classes)

    def _find_form(self, X: Any) -> str:
        """Return what the classifiers give for some samples X: the `input` of the calibrator."""
        if self._scoring_method() == "predict_proba":
            return "proba"
        estimator = self.estimators_[0]
        check_class_scores(estimator, X, self.classes_)
        # Without a map, the probabilities are the softmax of whatever there is.
        unchanged = self.calibrator in (None, "none")
        logits = unchanged or returns_logits(estimator, X, self.classes_)
        return "logits" if logits else "scores"

    def _fit_classifiers(
        self, X: Any, labels: NDArray, folds: Folds | None, params: dict[str, Any]
    ) -> NDArray:
        """Fit the classifiers; return the scores to fit the calibrator to."""
        columns = partial(predict_columns, method=self._scoring_method())
        if folds is not None and self.ensemble:
            fits = [
                delayed(fit_clone)(self.estimator, X, labels, train, params) for train, _ in folds
            ]
            self.estimators_ = Parallel(n_jobs=self.n_jobs, verbose=self.verbose)(fits)
            self._keep(self.estimators_[0], labels)
            del self.estimator_  # no single classifier predicts
            parts = [
                columns(estimator, _safe_indexing(X, test), self.classes_)
                for estimator, (_, test) in zip(self.estimators_, folds)
            ]
            return folds.join(parts)
        with self._step("classifier"):
            self._keep(fit_clone(self.estimator, X, labels, params=params), labels)
        self.estimators_ = [self.estimator_]
        if folds is None:
            return columns(self.estimator_, X, self.classes_)
        return predict_out_of_fold(
            self.estimator,
            X,
            labels,
            folds,
            classes=self.classes_,
            method=self._scoring_method(),
            params=params,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )

    def _fit_to_soft_labels(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, groups: Any
    ) -> Self:
        """Fit the calibrator of a frozen classifier to soft labels."""
        if not isinstance(self.estimator, FrozenEstimator):
            as_soft_labels(y, name="y")  # its error names labels of several classes
            raise ValueError(
                "y must hold one label for every sample to fit the classifier, got soft labels; "
                "for a trained classifier, pass sklearn.frozen.FrozenEstimator(classifier)."
            )
        X = as_features(X)
        self._sketch = None
        self._keep(self.estimator, self.estimator.classes_)
        self.estimators_ = [self.estimator_]
        scores = predict_columns(self.estimator_, X, self.classes_, self._scoring_method())
        codes = None if groups is None else encode_groups(groups, len(scores))[1]
        classes, form = self.classes_.tolist(), self._find_form(draw_rows(X))
        return self._fit_calibrator(X, scores, form, y, sample_weight, codes, classes)

    def _fit_chunks(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **fit_params: Any
    ) -> Self:
        """Fit the calibrator of a frozen classifier to a dask array."""
        if not isinstance(self.estimator, FrozenEstimator) or self.by_columns is not None:
            raise TypeError(
                "X must be in memory here, got a collection of dask: that takes a trained "
                "classifier, PostHocCalibratedClassifier(FrozenEstimator(model)), and no "
                "by_columns."
            )
        self._sketch = None
        self._keep(self.estimator, self.estimator.classes_)
        self.estimators_ = [self.estimator_]
        read = partial(predict_columns, classes=self.classes_, method=self._scoring_method())
        scores = map_rows(read, self.estimator_, "X", X)
        form = self._find_form(draw_rows(read_first_chunk(X)))
        classes = self.classes_.tolist()
        return self._fit_calibrator(X, scores, form, y, sample_weight, groups, classes)

    def _fit_calibrator(
        self,
        X: Any,
        scores: NDArray,
        form: str,
        y: Any,
        weight: ArrayLike | None,
        codes: NDArray[np.intp] | None,
        classes: list[Any] | None,
    ) -> Self:
        """Fit the calibrator to scores of this form; samples of equal `codes` belong together."""
        calibrator, by = get_calibrator(self.calibrator), self._breakdown(X)
        if by:
            calibrator = GroupwiseCalibration(calibrator)
        if not calibrator._takes_scores and form == "scores":
            form = "logits"
        calibrator.set_params(input=form, classes=classes)
        if codes is not None and has_argument(calibrator.fit, "groups"):
            by["groups"] = codes
        # No warning about out-of-fold scores, which are in order: those of a useless classifier go
        # against the labels.
        frozen = isinstance(self.estimator, FrozenEstimator)
        fit = calibrator.fit if frozen else calibrator._fit_aligned
        with self._step("calibrator"):
            self.calibrator_ = fit(scores, y, sample_weight=weight, **by)
        return self

    @by_chunks
    def predict_proba(self, X: Any) -> NDArray:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        proba : ndarray or dask array of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`. Lazy if X is a dask array.
        """
        if "calibrator_" not in vars(self):  # as in a calibrator: a check takes long for one row
            check_is_fitted(self)
        X, by, total = as_features(X), self._breakdown(X), 0.0
        for estimator in self.estimators_:
            scores = predict_columns(estimator, X, self.classes_, self._scoring_method())
            proba = self.calibrator_.predict_proba(scores, **by)
            if len(self.estimators_) == 1:
                return proba
            # The geometric mean; a probability of 0 would make it 0.
            total = total + np.log(np.maximum(proba, np.finfo(proba.dtype).tiny))
        return softmax(total / len(self.estimators_), axis=1)

    def _breakdown(self, X: Any) -> dict[str, Any]:
        """Return ``{"by": groups}`` for the calibrator; empty without `by_columns`."""
        if self.by_columns is None:
            return {}
        columns = self.by_columns
        columns = columns if isinstance(columns, list) else [columns]
        try:
            return {"by": _safe_indexing(X, columns, axis=1)}
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(
                f"by_columns must name columns of X, got {self.by_columns!r}."
            ) from error

    def _step(self, name: str) -> AbstractContextManager[None]:
        return print_elapsed(type(self).__name__, self.verbose, name)

    def _scoring_method(self) -> str:
        if self.response_method != "auto":
            return self.response_method
        has_logits = hasattr(self.estimator, "decision_function")
        return "decision_function" if has_logits else "predict_proba"

    def _folds(self, X: Any, labels: NDArray, groups: ArrayLike | None) -> Folds:
        """Return the folds; an error if a training part lacks a class, or an int is too large."""
        classes, count = np.unique(labels, return_counts=True)
        if isinstance(self.cv, Integral) and count.min() < self.cv:
            raise ValueError(
                f"y must hold at least as many samples of a class as cv has folds, {self.cv}, "
                f"got {count.min()} of class {classes[count.argmin()].tolist()!r}."
            )
        return make_folds(self.cv, X, labels, groups, missing="raise")
