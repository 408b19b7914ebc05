"""A classifier that declines to answer where its error rate could exceed a limit."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ..utils import SkcalibWarning
from ..utils._arrays import as_features
from ..utils._estimators import show_inner, split_folds
from ..utils._features import samples_and_labels
from ..utils._labels import check_several_classes
from ..utils._private import (
    HasMethods,
    Interval,
    StrOptions,
    _check_method_params,
    _estimator_has,
    _fit_context,
    _safe_indexing,
)
from ._confidence import CONFIDENCE_NAMES, confidence_of, judge
from ._risk_control import risk_control


class SelectiveClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Answer only where the error rate of the answers stays below a limit.

    On calibration samples the classifier finds the lowest confidence from which on its answers
    are wrong in at most a fraction `risk` of the cases, and declines below it. The limit is kept
    on new samples of the same distribution, except with probability `delta`: a draw of unlucky
    calibration samples. A threshold read off the empirical risk-coverage curve, as by
    :func:`~skcalib.metrics.coverage_at_risk`, is exceeded about every second time.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, or with `decision_function`
        The classifier. One that is trained already goes in as
        ``sklearn.frozen.FrozenEstimator(model)``; `fit` is given samples it has not seen then.
        Any other is cloned: its confidence is calibrated out-of-fold, and the classifier that
        predicts is fitted on all samples.
    risk : float, default=0.05
        Largest error rate of the answers, in (0, 1).
    delta : float, default=0.1
        Probability with which the limit may be exceeded, in (0, 1).
    confidence : {"msp", "entropy", "margin", "max_logit", "energy"} or estimator, default="msp"
        What ranks the samples. The first three are read off `predict_proba`: largest probability,
        minus the entropy, difference of the two largest probabilities. The next two are read off
        `decision_function`. An estimator with `score_samples`, such as a difficulty scorer or a
        Pipeline that ends in one, is cloned, fitted on the same samples as the classifier, and
        asked how normal a sample is.
    method : {"fixed_sequence", "sgr"}, default="fixed_sequence"
        "fixed_sequence" tests thresholds from strict to lax by exact binomial tests until one
        fails, from several starting points that share `delta` [1]_. "sgr" bisects, and divides
        `delta` by the number of its steps [2]_; it accepts fewer samples.
    cv : int, cross-validation generator or iterable, default=None
        Folds for the out-of-fold confidence; None means 5 stratified folds. Not used with a
        frozen estimator.
    reject_label : int or str, default=None
        What `predict` returns where the classifier declines. None means "reject" if labels are
        strings; else -1 or, with negative classes, one less than the smallest.
    n_jobs : int, default=None
        Number of folds fitted at once; None means 1, -1 all processors.

    Attributes
    ----------
    threshold_ : float
        Samples of larger confidence are answered; inf where no threshold keeps the limit.
    coverage_ : float
        Fraction of the calibration samples that are answered.
    error_rate_ : float
        Error rate of these answers; NaN without any.
    risk_bound_ : float
        Exact upper confidence bound of the error rate at `threshold_`, at most `risk`; 1 where
        nothing is answered.
    reject_label_ : int or str
        What `predict` returns where the classifier declines.
    estimator_ : classifier
        The fitted classifier.
    confidence_ : estimator or str
        The fitted estimator of the confidence, or its name.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_features_in_ : int
        Number of features, where `estimator_` tells it.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Feature names, where `estimator_` tells them.

    See Also
    --------
    skcalib.metrics.risk_coverage_curve : Error rate against the fraction that is answered.
    skcalib.metrics.coverage_at_risk : The empirical coverage, without a guarantee.
    skcalib.plots.RiskCoverageDisplay : Draws the curve and its threshold.

    Notes
    -----
    The guarantee is exact for a frozen estimator and independent calibration samples. Given the
    value of a threshold, the calibration samples above it are independent draws from all samples
    above it, so the number of errors among them is binomial. That the tests form one fixed
    sequence costs nothing if the error rate does not fall as the threshold is lowered, that is,
    if the confidence is worth its name. Out-of-fold, the classifiers of the folds stand for the
    final one, which has seen more samples: the limit is kept to the extent that this is true.

    Fewer than ``log(delta / 2) / log(1 - risk)`` calibration samples, 59 for the defaults and 299
    for ``risk=0.01``, cannot promise anything.

    References
    ----------
    .. [1] A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan, L. Lei, "Learn then Test:
       Calibrating Predictive Algorithms to Achieve Risk Control", 2021.
    .. [2] Y. Geifman, R. El-Yaniv, "Selective Classification for Deep Neural Networks",
       NeurIPS 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skcalib.selection import SelectiveClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = SelectiveClassifier(LogisticRegression(max_iter=500), risk=0.02)
    >>> clf = clf.fit(X[:1000] / 16, y[:1000])
    >>> X_test, y_test = X[1000:] / 16, y[1000:]
    >>> wrong = clf.estimator_.predict(X_test) != y_test
    >>> answered = clf.accept(X_test)
    >>> print(f"{wrong.mean():.1%} wrong; {answered.mean():.0%} answered, "
    ...       f"{wrong[answered].mean():.1%} of them wrong")
    6.8% wrong; 85% answered, 1.6% of them wrong
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [
            HasMethods(["fit", "predict", "predict_proba"]),
            HasMethods(["fit", "predict", "decision_function"]),
        ],
        "risk": [Interval(Real, 0, 1, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "confidence": [
            StrOptions(CONFIDENCE_NAMES),
            HasMethods(["fit", "score_samples"]),
        ],
        "method": [StrOptions({"fixed_sequence", "sgr"})],
        "cv": ["cv_object"],
        "reject_label": [Integral, str, None],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        risk: float = 0.05,
        delta: float = 0.1,
        confidence: Any = "msp",
        method: str = "fixed_sequence",
        cv: Any = None,
        reject_label: int | str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.risk = risk
        self.delta = delta
        self.confidence = confidence
        self.method = method
        self.cv = cv
        self.reject_label = reject_label
        self.n_jobs = n_jobs

    # The parameters of the classifier are its own to validate.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: ArrayLike, **fit_params: Any) -> Self:
        """Fit the classifier, unless it is frozen, and find the threshold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples; for a frozen estimator, samples that it was not trained on.
        y : array-like of shape (n_samples,)
            Class labels.
        **fit_params : dict
            Passed to ``estimator.fit``; values with one entry a sample are cut to the folds.

        Returns
        -------
        self : SelectiveClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If `fit_params` hold `sample_weight`: the binomial test counts samples, and there is
            no exact one for weighted counts. If `reject_label` is a class, or of another type.

        Warns
        -----
        SkcalibWarning
            If no threshold keeps the limit, so that every sample is declined.
        """
        if fit_params.get("sample_weight") is not None:
            raise ValueError(
                "sample_weight must be None, got weights: the test behind the guarantee counts "
                "samples, and weighted counts have no exact binomial distribution."
            )
        X, labels = samples_and_labels(X, y)
        self.classes_ = np.unique(labels)
        check_several_classes(self.classes_)
        self.reject_label_ = _reject_label(self.reject_label, self.classes_)
        score, correct = self._calibration_scores(X, labels, fit_params)
        found = risk_control(score, correct, risk=self.risk, delta=self.delta, method=self.method)
        self.threshold_ = found.threshold
        self.coverage_ = found.n_accepted / len(labels)
        self.error_rate_ = found.n_errors / found.n_accepted if found.n_accepted else np.nan
        self.risk_bound_ = found.bound
        if not found.n_accepted:
            warnings.warn(
                f"No threshold keeps the error rate below risk={self.risk} with the "
                f"{len(labels)} samples of fit: every sample is declined.",
                SkcalibWarning,
                stacklevel=2,
            )
        show_inner(self, self.estimator_)
        return self

    def _calibration_scores(
        self, X: Any, labels: NDArray, fit_params: dict[str, Any]
    ) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
        """Fit what predicts, and return confidence and correctness of the calibration samples."""
        everything = np.arange(len(labels))
        self.estimator_, self.confidence_ = self._fit_pair(X, labels, everything, fit_params)
        if isinstance(self.estimator, FrozenEstimator):
            return judge(self.estimator_, self.confidence_, X, labels)
        folds = split_folds(self.cv, X, labels)
        held_out = np.concatenate([test for _, test in folds])
        if not np.array_equal(np.sort(held_out), everything):
            raise ValueError(
                "cv must hold every sample out exactly once, got folds of "
                f"{len(held_out)} samples in all for {len(labels)} samples."
            )
        judged = Parallel(n_jobs=self.n_jobs)(
            delayed(self._judge_fold)(X, labels, train, test, fit_params) for train, test in folds
        )
        score, correct = map(np.concatenate, zip(*judged))
        return score, correct

    def _fit_pair(
        self, X: Any, labels: NDArray, rows: NDArray[np.intp], fit_params: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Fit a clone of the classifier, and of the confidence if it is an estimator."""
        X_rows, y_rows = _safe_indexing(X, rows), labels[rows]
        params = _check_method_params(X, fit_params, indices=rows)
        estimator = clone(self.estimator).fit(X_rows, y_rows, **params)
        if isinstance(self.confidence, str):
            return estimator, self.confidence
        return estimator, clone(self.confidence).fit(X_rows, y_rows)

    def _judge_fold(
        self, X: Any, labels: NDArray, train: NDArray, test: NDArray, fit_params: dict[str, Any]
    ) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
        estimator, confidence = self._fit_pair(X, labels, train, fit_params)
        return judge(estimator, confidence, _safe_indexing(X, test), labels[test])

    def confidence_samples(self, X: Any) -> NDArray[np.floating]:
        """Return the confidence that is compared with `threshold_`: larger = more confident.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        confidence : ndarray of shape (n_samples,)
            In the units of `confidence`.
        """
        check_is_fitted(self)
        return confidence_of(self.estimator_, self.confidence_, as_features(X))

    def accept(self, X: Any) -> NDArray[np.bool_]:
        """Tell which samples are answered.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        accepted : ndarray of shape (n_samples,)
            True where the confidence is above `threshold_`.
        """
        return self.confidence_samples(X) > self.threshold_

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of the samples that are answered.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Class labels, and `reject_label_` where the classifier declines.
        """
        accepted = self.accept(X)
        predicted = self.estimator_.predict(as_features(X))
        rejected = np.asarray(self.reject_label_)
        if predicted.dtype.kind == "U":  # room for the longer of the two texts
            predicted = predicted.astype(np.result_type(predicted, rejected))
        return np.where(accepted, predicted, rejected.astype(predicted.dtype))

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Return the class probabilities of the classifier, of declined samples as well.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        y_proba : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`.
        """
        check_is_fitted(self)
        return self.estimator_.predict_proba(as_features(X))

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X: Any) -> NDArray[np.floating]:
        """Return the decision values of the classifier, of declined samples as well.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes) or (n_samples,)
            Decision values in the order of `classes_`.
        """
        check_is_fitted(self)
        return self.estimator_.decision_function(as_features(X))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the fraction of samples that are answered, and answered correctly.

        Of classifiers that keep the same limit, the one that answers more scores higher.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        score : float
            In [0, 1]; larger = better.
        """
        return super().score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.classifier_tags = inner.classifier_tags
        # Declined samples carry no class.
        tags.classifier_tags.poor_score = True
        return tags


def _reject_label(reject_label: int | str | None, classes: NDArray) -> int | str:
    """Return what stands for "no answer": of the type of the classes, and none of them."""
    text = classes.dtype.kind not in "biuf"
    if reject_label is None:
        reject_label = "reject" if text else int(min(0, classes.min())) - 1
    if isinstance(reject_label, str) != text:
        raise ValueError(
            f"reject_label must be of the type of the labels, {classes.dtype}, "
            f"got {reject_label!r}."
        )
    if reject_label in classes.tolist():
        raise ValueError(f"reject_label must not be one of the classes, got {reject_label!r}.")
    return reject_label
