"""A classifier that declines to answer if it is not confident enough to keep an error rate."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, indexable
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from ..metrics import (
    check_alignment,
    confidence_score,
    energy_score,
    max_logit_score,
    predictive_entropy,
    probability_margin,
)
from ..utils._arrays import as_features, is_soft, keep_index, reword
from ..utils._backends import (
    LogBins,
    align_chunks,
    by_chunks,
    compute_log_bins,
    find_distinct_labels,
    reduce_chunks,
    send_chunks_to,
)
from ..utils._compat import (
    HasMethods,
    Interval,
    StrOptions,
    _fit_context,
    _safe_indexing,
    print_elapsed,
)
from ..utils._estimators import (
    DelegatingClassifier,
    fit_clone,
    get_inner_fit_params,
    make_folds,
    predict_columns,
    predict_labels,
    read_samples,
    run_folds,
    warn_if_fitted,
)
from ..utils._labels import (
    as_labels,
    check_several_classes,
    count_seen,
    encode,
    find_related,
    format_labels,
    get_column_names,
    shorten,
    warn_of_duplicates,
)
from ..utils._output import rename_argument, warn
from ..utils._proba import as_soft_labels, match_soft_labels
from ._risk_control import RiskControl, control_risk, control_risk_of_counts

_FROM_PROBA = {
    "msp": confidence_score,
    "entropy": lambda proba: -predictive_entropy(proba),
    "margin": probability_margin,
}
_FROM_LOGITS = {"max_logit": max_logit_score, "energy": energy_score}
_NAMES = {*_FROM_PROBA, *_FROM_LOGITS}
# Part of the samples that a calibrator has seen, beyond coincidence, from which on it is said.
_MANY_SEEN = 0.5
# Fewer samples of a class say little of it.
_FEW_ANSWERED = 5


class SelectiveClassifier(DelegatingClassifier):
    """Answer only if confident, so that the error rate of the answers stays below a limit.

    `fit` finds a confidence threshold on calibration samples; below it, the classifier declines to
    answer. On new samples from the same distribution, at most a fraction `risk` of the answers is
    wrong. This holds with probability `confidence_level` over the draw of the calibration samples.
    (A threshold read off the empirical risk-coverage curve, as by
    :func:`~skcalib.metrics.coverage_at_risk`, exceeds its limit about half of the time.)

    Parameters
    ----------
    estimator : classifier with `predict_proba`, or with `decision_function`
        The classifier. Pass a trained one as ``sklearn.frozen.FrozenEstimator(model)``, and pass
        `fit` samples that it was not trained on. Otherwise a clone is fitted on all samples, and
        the threshold comes from out-of-fold confidences.
    risk : float or dict of class to float, default=0.05
        Largest error rate of the answers, in (0, 1). A dict sets one for single classes: the
        largest fraction of wrong answers among the answers of that class. Every class then has its
        own threshold, and all limits hold together with probability `confidence_level`. A class
        that the dict leaves out is never answered: ``{True: 0.05}`` answers where the prediction
        is True, such as that an answer of a language model is right, and never False.
    confidence_level : float, default=0.9
        Probability, in (0, 1), with which the limit holds over the draw of the samples of `fit`.
    confidence : {"msp", "entropy", "margin", "max_logit", "energy"} or estimator, default="msp"
        The confidence that the threshold is for. From `predict_proba`: "msp" is the largest
        probability, "entropy" minus the entropy, "margin" the difference of the two largest
        probabilities. From `decision_function`: "max_logit" is the largest logit, "energy" the
        log-sum-exp of the logits. An estimator with `score_samples`, such as a difficulty scorer
        or a Pipeline that ends in one, is cloned and fitted too, and scores how normal a sample
        is; the threshold comes from samples that it was not fitted on. Pass a trained one as
        ``FrozenEstimator(scorer)``.
    cv : int, cross-validation generator or iterable, default=5
        Folds for out-of-fold confidences; an int is a number of stratified folds. They keep
        `groups` together if `fit` gets them. Not used with a frozen estimator, unless `confidence`
        is an estimator that is not frozen.
    reject_label : int or str, default=None
        What `predict` returns for declined samples. None means "reject" if labels are strings;
        otherwise -1 or, with negative classes, the smallest class minus one. Predictions have a
        dtype that holds it: integers for boolean labels.
    n_jobs : int, default=None
        Number of folds fitted at once; None means 1, -1 all processors.
    verbose : int, default=0
        Whether to print the seconds of the classifier's fit, and the progress of the folds, as in
        :class:`joblib.Parallel`; 0 prints nothing.

    Attributes
    ----------
    threshold_ : float or ndarray of shape (n_classes,)
        Samples with a larger confidence are answered; inf if no threshold keeps the limit. If
        `risk` is a dict, one for every predicted class, in the order of `classes_`; inf for a
        class that it leaves out.
    coverage_ : float
        Fraction of the calibration samples that are answered.
    error_rate_ : float
        Error rate of these answers; NaN without answers. If `y` holds soft labels, the average
        fraction of people who disagree.
    risk_bound_ : float or ndarray of shape (n_classes,)
        Upper confidence bound of the error rate at `threshold_`, at most `risk`; 1 if nothing is
        answered. If `risk` is a dict, one for every predicted class.
    n_duplicates_ : int
        Number of rows of X that equal an earlier row and have the same label; such rows count as
        a group. 0 with `groups`, which say what belongs together, and for a dask array, where
        they are not searched for.
    reject_label_ : int or str
        What `predict` returns for declined samples.
    estimator_ : classifier
        The fitted classifier.
    confidence_ : estimator or str
        The fitted estimator of the confidence, or its name.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted: those of `y`, and others that the classifier knows.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number and names of features, if `estimator_` has them.

    See Also
    --------
    skcalib.metrics.risk_coverage_curve : Error rate against the fraction that is answered.
    skcalib.metrics.coverage_at_risk : The empirical coverage, without a guarantee.
    skcalib.plots.RiskCoverageDisplay : Plots the curve and the threshold.

    Notes
    -----
    The guarantee is exact for a frozen estimator and independent calibration samples: the number
    of errors among the samples above a given threshold is binomial. Thresholds are tested from
    strict to lax until one fails, from several starting points that share the error probability
    ``1 - confidence_level`` [1]_. This loses nothing if lower thresholds have higher error rates,
    as with a useful confidence. Without a frozen estimator, out-of-fold confidences come from
    classifiers that were fitted on fewer samples than the final one: the limit holds as far as
    they resemble it.

    With `groups`, and for equal rows of X with equal labels, the binomial test uses the effective
    number of samples, by the variance between groups [2]_, and the number of groups as long as
    fewer than three groups hold an error. This bound is not exact. In simulations with 60 groups
    of 10 samples or more, the limit was kept in at least `confidence_level` of the draws (see the
    guide to guarantees).

    If `y` holds soft labels (fractions of people), on average at most a fraction `risk` of people
    disagree with an answer. The test is by betting [3]_ and is exact for independent samples. If
    opinions vary less than 0 and 1 do, it answers more samples than the binomial test of a label
    drawn from the fractions. The samples of a group make one bet by their sum. Soft labels of
    0 and 1 alone are labels. With more than 200 distinct confidences, 200 of them are tried as
    thresholds.

    At least ``log(1 - confidence_level) / log(1 - risk)`` calibration samples are needed, 45 with
    the defaults and 230 with ``risk=0.01``; that is enough if no answer is wrong.

    References
    ----------
    .. [1] A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan, L. Lei, "Learn then Test:
       Calibrating Predictive Algorithms to Achieve Risk Control", 2021.
    .. [2] E. L. Korn, B. I. Graubard, "Confidence Intervals for Proportions with Small Expected
       Number of Positive Counts Estimated from Survey Data", Survey Methodology 1998.
    .. [3] I. Waudby-Smith, A. Ramdas, "Estimating Means of Bounded Random Variables by Betting",
       Journal of the Royal Statistical Society B, 2024.

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

    threshold_: float | NDArray[np.floating]
    risk_bound_: float | NDArray[np.floating]

    # With metadata routing, `groups` go to the folds, and to an estimator that requests them.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"groups": UNUSED}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [
            HasMethods(["fit", "predict", "predict_proba"]),
            HasMethods(["fit", "predict", "decision_function"]),
        ],
        "risk": [Interval(Real, 0, 1, closed="neither"), dict],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "confidence": [StrOptions(_NAMES), HasMethods(["fit", "score_samples"])],
        "cv": ["cv_object"],
        "reject_label": [Integral, str, None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        risk: float | dict[Any, float] = 0.05,
        confidence_level: float = 0.9,
        confidence: Any = "msp",
        cv: Any = 5,
        reject_label: int | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.risk = risk
        self.confidence_level = confidence_level
        self.confidence = confidence
        self.cv = cv
        self.reject_label = reject_label
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    @send_chunks_to("_fit_chunks")
    def fit(
        self, X: Any, y: ArrayLike, groups: ArrayLike | None = None, **fit_params: Any
    ) -> Self:
        """Fit the classifier, unless it is frozen, and find the threshold.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Samples; with a frozen estimator, samples that it was not trained on, also as a dask
            array. In chunks, confidences are counted in bins, and the threshold is the largest
            confidence of a declined bin.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Class labels. With a frozen estimator, in memory, also the fraction of people who chose
            each class: rows that sum to 1, with columns in the order of the estimator's classes or
            named after them. An answer then counts as wrong by the fraction who disagree.
        groups : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns), \
                default=None
            Which samples belong together, such as those of a patient: names or numbers. Folds keep
            groups together, and the bound of the error rate accounts for errors that cluster in
            groups. Without them, equal rows of X with equal labels are a group.
            `groups` is also passed to an estimator
            whose `fit` takes it.
        **fit_params : dict
            Passed to ``estimator.fit``; values with one entry per sample are sliced with the
            folds.

        Returns
        -------
        self : SelectiveClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If `risk` is a dict with other keys than classes; if `y` holds soft labels and
            the estimator, or the confidence, is to be fitted; if `sample_weight` is given, which
            the exact binomial test cannot use; if `reject_label` is a class, or of another type
            than the classes.
        TypeError
            If X is a dask array and the estimator is not frozen.

        Warns
        -----
        SkcalibWarning
            If no threshold keeps the limit, or that of a class, so every sample, or every answer
            of the class, is declined; if the frozen estimator is a
            :class:`~skcalib.posthoc.PostHocCalibratedClassifier` that was fitted on more than half
            of these samples; if most samples of a class are answered, and all as another
            class, as those of a rare class may be.
        """
        if fit_params.get("sample_weight") is not None:
            raise ValueError(
                "sample_weight must be None, got weights: the test behind the guarantee counts "
                "samples, and weighted counts have no exact binomial distribution."
            )
        if is_soft(y):
            return self._fit_to_soft_labels(X, y, groups)
        X, labels = read_samples(X, y)
        check_several_classes(np.unique(labels))
        confidence = None if isinstance(self.confidence, str) else self.confidence
        warn_if_fitted(estimator=self.estimator, confidence=confidence)
        params = get_inner_fit_params(self, "estimator", None, fit_params, groups)
        frozen = isinstance(self.estimator, FrozenEstimator)
        ready = isinstance(self.confidence, str | FrozenEstimator)
        codes, self.n_duplicates_ = find_related(X, groups, labels)
        duplicates = codes if groups is None else None
        warn_of_duplicates(duplicates)
        folds = None
        if not (frozen and ready):
            folds = make_folds(self.cv, X, labels, groups, duplicates=duplicates)
        with print_elapsed(type(self).__name__, self.verbose, "classifier"):
            fitted, self.confidence_ = self._fit_pair(X, labels, None, params)
        self._keep(fitted, labels)
        self.reject_label_ = _choose_reject_label(self.reject_label, self.classes_)
        if frozen:
            self._warn_of_seen(X, labels)
            self._warn_of_order(X, keep_index(y, labels))
        if folds is None:
            evaluated = _evaluate(self.estimator_, self.confidence_, X, labels, self.classes_)
        else:
            evaluate = partial(self._evaluate_fold, X, labels, params)
            evaluated = run_folds(evaluate, folds, self.n_jobs, self.verbose)
            if not folds.is_partition:
                # A sample that is left out twice is one sample.
                codes = (np.arange(len(labels)) if codes is None else codes)[folds.rows]
                labels = labels[folds.rows]
        self._find_threshold(evaluated, codes)
        self._warn_of_silence(evaluated, labels)
        return self

    def _fit_to_soft_labels(self, X: Any, y: Any, groups: Any) -> Self:
        """Find the threshold of a frozen classifier if y holds soft labels."""
        ready = isinstance(self.confidence, str | FrozenEstimator)
        if not (isinstance(self.estimator, FrozenEstimator) and ready):
            as_soft_labels(y, name="y")  # its error names labels of several classes
            raise ValueError(
                "y must hold one label for every sample to fit a classifier or confidence, got "
                "soft labels; pass trained ones as sklearn.frozen.FrozenEstimator(classifier)."
            )
        X, _ = indexable(as_features(X), y)
        classes = np.asarray(self.estimator.classes_)
        names = "y", "the classifier", "classes"
        soft_labels, _ = match_soft_labels(
            as_soft_labels(y, name="y"), get_column_names(y), classes, len(classes), names=names
        )
        self._keep(self.estimator, classes)
        self.confidence_ = self.confidence
        self.reject_label_ = _choose_reject_label(self.reject_label, self.classes_)
        self._warn_of_order(X, keep_index(y, soft_labels))
        evaluated = _evaluate(self.estimator_, self.confidence_, X, soft_labels, self.classes_)
        codes, self.n_duplicates_ = find_related(X, groups, soft_labels)
        warn_of_duplicates(codes if groups is None else None)
        return self._find_threshold(evaluated, codes)

    def _warn_of_seen(self, X: Any, labels: NDArray) -> None:
        """Warn if a frozen calibrated classifier was calibrated on these samples."""
        inside = self.estimator_
        while isinstance(inside, FrozenEstimator):
            inside = inside.estimator
        sketch = getattr(inside, "_sketch", None)
        seen = 0.0 if sketch is None else count_seen(sketch, X, labels)
        if seen > _MANY_SEEN:
            warn(
                f"{seen:.0%} of the samples of fit are those that the frozen "
                f"{type(inside).__name__} was fitted on: its probabilities have seen their "
                "labels, and more answers than `risk` may be wrong. Pass other samples, or the "
                "classifier without FrozenEstimator, which leaves out every sample in turn."
            )

    def _warn_of_silence(self, evaluated: NDArray[np.floating], labels: NDArray) -> None:
        """Warn of a class that is never an answer although most of its samples are answered.

        A limit for all answers is kept by answering the other classes alone if it is rare.
        """
        score, _, column = evaluated.T
        if isinstance(self.risk, dict) or self.threshold_ == np.inf:
            return
        accepted = score > self.threshold_
        answers = np.bincount(column[accepted].astype(np.intp), minlength=len(self.classes_))
        for k in np.flatnonzero(answers == 0):
            answered = accepted[labels == self.classes_[k]]
            if answered.sum() < _FEW_ANSWERED or 2 * answered.sum() < len(answered):
                continue
            name = shorten(self.classes_[k].item())
            warn(
                f"{name} is never the answer: {answered.sum()} of its {len(answered)} samples are "
                f"answered as another class, and risk={self.risk} of all answers allows for that. "
                f"risk={{{name}: ...}} sets a limit for a class; MinimumCostClassifier weighs the "
                "costs of errors."
            )

    def _warn_of_order(self, X: Any, y: Any) -> None:
        """Warn if probabilities of a frozen classifier seem to be in another order than labels."""
        if not hasattr(self.estimator_, "predict_proba"):
            return
        proba = keep_index(X, predict_columns(self.estimator_, X, self.classes_))
        has_all = is_soft(y) or np.isin(self.classes_, y).all()
        words = {
            "y_proba": f"predict_proba of {type(self.estimator.estimator).__name__}",
            "y_true": "y",
            "pass labels= in the order of the columns": "y has other labels than those that it "
            "was fitted on",
        }
        # Without labels, the columns are those of the sorted classes, and looked at as well.
        for finding in check_alignment(y, proba, labels=None if has_all else self.classes_):
            warn(reword(finding, words))

    def _delta(self) -> float:
        """Return the probability that a limit is exceeded, without rounding errors: .1 for .9."""
        return round(1 - self.confidence_level, 15) or 1 - self.confidence_level

    def _find_threshold(
        self, evaluated: NDArray[np.floating], groups: NDArray[np.intp] | None
    ) -> Self:
        """Set the threshold, or one for every class, from what `_evaluate` returns."""
        score, correct, column = evaluated.T
        if isinstance(self.risk, dict):
            return self._keep_thresholds(score, correct, column.astype(np.intp), groups)
        found = control_risk(score, correct, risk=self.risk, delta=self._delta(), groups=groups)
        return self._keep_threshold(found, len(evaluated))

    def _keep_thresholds(
        self,
        score: NDArray[np.floating],
        correct: NDArray[np.floating],
        column: NDArray[np.intp],
        groups: NDArray[np.intp] | None,
    ) -> Self:
        """Set a threshold for every predicted class; `column` is that of each prediction."""
        limits = _check_risks(self.risk, self.classes_)
        # Bonferroni: the probabilities of exceeding a limit add up to that of exceeding any.
        delta = self._delta() / sum(limit is not None for limit in limits)
        found = [
            RiskControl(np.inf, 0, 0, 1.0)
            if limit is None
            else _control_risk(score, correct, groups, column == k, limit, delta)
            for k, limit in enumerate(limits)
        ]
        n_accepted = sum(part.n_accepted for part in found)
        n_errors = sum(part.n_errors for part in found)
        self._keep_threshold(RiskControl(np.inf, n_accepted, n_errors, 1.0), len(score))
        self.threshold_ = np.array([part.threshold for part in found])
        self.risk_bound_ = np.array([part.bound for part in found])
        declined = (self.threshold_ == np.inf) & [limit is not None for limit in limits]
        if n_accepted and declined.any():
            names = format_labels(self.classes_[declined].tolist())
            warn(
                f"No threshold keeps risk={shorten(self.risk)} for the answers {names} with the "
                f"{len(score)} samples of fit: all of these are declined; use more samples, a "
                "larger limit, or another confidence."
            )
        return self

    def _keep_threshold(self, found: RiskControl, n_samples: int) -> Self:
        """Set the attributes of a threshold; warn if it declines every sample."""
        self.threshold_ = found.threshold
        self.coverage_ = found.n_accepted / n_samples
        self.error_rate_ = found.n_errors / found.n_accepted if found.n_accepted else np.nan
        self.risk_bound_ = found.bound
        if not found.n_accepted:
            advice = "use more samples, a larger risk, or another confidence"
            if not isinstance(self.risk, dict):
                least = int(np.ceil(np.log(self._delta()) / np.log1p(-self.risk)))
                if n_samples < least:
                    advice = f"use at least {least} samples, or a larger risk"
            warn(
                f"No threshold keeps the error rate below risk={shorten(self.risk)} with the "
                f"{n_samples} samples of fit: every sample is declined; {advice}."
            )
        return self

    def _fit_chunks(self, X: Any, y: Any, groups: Any = None, **fit_params: Any) -> Self:
        """Find the threshold of a frozen classifier on a dask array."""
        ready = isinstance(self.confidence, str | FrozenEstimator)
        if not (isinstance(self.estimator, FrozenEstimator) and ready):
            raise TypeError(
                "X must be in memory here, got a collection of dask: that takes a trained "
                "classifier, SelectiveClassifier(FrozenEstimator(model))."
            )
        if groups is not None:
            raise ValueError("groups must be None if X is a dask array, got groups.")
        if is_soft(y):
            raise ValueError(
                "y must hold one label for every sample if X is a dask array, got soft "
                "labels: use a part of the samples, in memory."
            )
        if isinstance(self.risk, dict):
            raise ValueError(f"risk must be a number if X is a dask array, got {self.risk}.")
        X, y = align_chunks(True, X=X, y=y)
        labels = as_labels(find_distinct_labels(y), name="y")
        check_several_classes(labels)
        self.confidence_ = self.confidence
        self._keep(self.estimator, labels)
        self.reject_label_ = _choose_reject_label(self.reject_label, self.classes_)
        of_chunk = partial(_count_chunk, self.estimator_, self.confidence_)
        bins = reduce_chunks(of_chunk, add, X, y)
        n_samples, n_errors = bins.sums.astype(np.intp)
        self.n_duplicates_ = 0  # not searched for
        found = control_risk_of_counts(
            bins.largest, n_samples, n_errors, risk=self.risk, delta=self._delta()
        )
        return self._keep_threshold(found, int(n_samples.sum()))

    def _fit_pair(
        self, X: Any, labels: NDArray, rows: NDArray[np.intp] | None, params: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Fit a clone of the classifier, and one of the confidence if it is an estimator."""
        estimator = fit_clone(self.estimator, X, labels, rows, params)
        if isinstance(self.confidence, str):
            return estimator, self.confidence
        return estimator, fit_clone(self.confidence, X, labels, rows)

    def _evaluate_fold(
        self,
        X: Any,
        labels: NDArray,
        params: dict[str, Any],
        train: NDArray[np.intp],
        test: NDArray[np.intp],
    ) -> NDArray[np.floating]:
        """Return what `_evaluate` does for the test samples of a fold, fitted to the others."""
        estimator, confidence = self._fit_pair(X, labels, train, params)
        part, known = _safe_indexing(X, test), np.unique(labels)
        return _evaluate(estimator, confidence, part, labels[test], known)

    @by_chunks
    def confidence_samples(self, X: Any) -> NDArray[np.floating]:
        """Return the confidence that is compared with `threshold_`: larger = more confident.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        confidence : ndarray or dask array of shape (n_samples,)
            In the units of `confidence`. Lazy if X is a dask array.
        """
        check_is_fitted(self)
        return _score_answers(self.estimator_, self.confidence_, as_features(X))

    @by_chunks
    def accept(self, X: Any) -> NDArray[np.bool_]:
        """Return which samples are answered.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        accepted : ndarray or dask array of shape (n_samples,)
            True if the confidence is above `threshold_`. Lazy if X is a dask array.
        """
        confidence = self.confidence_samples(X)
        if not isinstance(self.threshold_, np.ndarray):
            return confidence > self.threshold_
        predicted = predict_labels(self.estimator_, as_features(X))
        return confidence > self.threshold_[encode(predicted, self.classes_)]

    @by_chunks
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class, or `reject_label_` for declined samples.

        In `score`, a declined sample counts as an error: of classifiers that keep the same limit,
        the one that answers more samples scores higher.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Class labels, and `reject_label_` for declined samples.
        """
        check_is_fitted(self)
        predicted = predict_labels(self.estimator_, as_features(X))
        return np.where(self.accept(X), predicted, np.asarray(self.reject_label_))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # Declined samples count as errors.
        tags.classifier_tags.poor_score = True
        return tags


def _choose_reject_label(reject_label: int | str | None, classes: NDArray) -> int | str:
    """Return the label of declined samples: of the type of the classes, and not a class."""
    text = isinstance(classes.tolist()[0], str)
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


def _score_answers(estimator: Any, confidence: Any, X: Any) -> NDArray[np.floating]:
    """Return the confidence of every sample: larger = more confident."""
    if not isinstance(confidence, str):
        return confidence.score_samples(X)
    if confidence in _FROM_PROBA:
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(_describe_lack(estimator, confidence, "predict_proba"))
        with rename_argument("y_proba", f"predict_proba of {type(estimator).__name__}"):
            return _FROM_PROBA[confidence](estimator.predict_proba(X))
    # For two classes, scikit-learn's one score is at most a difference of two logits; the largest
    # logit and the energy need both.
    logits = estimator.decision_function(X) if hasattr(estimator, "decision_function") else None
    if logits is None or logits.ndim != 2:
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(_describe_lack(estimator, confidence, "a logit for every class"))
        raise ValueError(
            "confidence must be 'msp', 'entropy', 'margin' or an estimator if the classifier has "
            f"no logit for every class, got {confidence!r} with {type(estimator).__name__}."
        )
    return _FROM_LOGITS[confidence](logits)


def _describe_lack(estimator: Any, confidence: str, what: str) -> str:
    """Return the error about a classifier that lacks what the confidence needs."""
    name = type(getattr(estimator, "estimator", estimator)).__name__
    several = len(estimator.classes_) > 2 and hasattr(estimator, "decision_function")
    return (
        f"estimator must have {what} for confidence={confidence!r}, got {name}, which has "
        f"none; PostHocCalibratedClassifier({name}()) in its place gives calibrated "
        f"probabilities for confidence='msp'{', and max_logit takes its own scores' * several}."
    )


def _count_chunk(estimator: Any, confidence: Any, X: Any, y: Any) -> LogBins:
    """Return the number of samples, and of errors, in every bin of the confidence."""
    score = correct = np.zeros(0)
    if len(X):  # a mask may have left a chunk without samples
        given = as_features(X), as_labels(y, name="y"), estimator.classes_
        score, correct, _ = _evaluate(estimator, confidence, *given).T
    score = score.astype(np.float64)
    # Confidences in [0, 1] get bins in log-odds: many are close to 1.
    are_proba = isinstance(confidence, str) and confidence in ("msp", "margin")
    return compute_log_bins(
        score, np.array([np.ones_like(score), 1 - correct]), are_proba=are_proba
    )


def _evaluate(
    estimator: Any, confidence: Any, X: Any, truth: NDArray, classes: NDArray
) -> NDArray[np.floating]:
    """Return (n, 3): confidence, correctness, and the column of the prediction in `classes`.

    Correctness is 0 or 1; if `truth` holds soft labels, it is the fraction of people who agree.
    """
    predicted = predict_labels(estimator, X)
    score, column = _score_answers(estimator, confidence, X), encode(predicted, classes)
    correct = truth[np.arange(len(truth)), column] if truth.ndim == 2 else predicted == truth
    return np.column_stack([score, correct, column])


def _control_risk(
    score: NDArray[np.floating],
    correct: NDArray[np.floating],
    groups: NDArray[np.intp] | None,
    rows: NDArray[np.bool_],
    risk: float,
    delta: float,
) -> RiskControl:
    """Return the threshold for some of the samples."""
    if not rows.any():
        return RiskControl(np.inf, 0, 0, 1.0)
    some = None if groups is None else np.unique(groups[rows], return_inverse=True)[1]
    return control_risk(score[rows], correct[rows], risk=risk, delta=delta, groups=some)


def _check_risks(risk: Any, classes: NDArray) -> list[float | None]:
    """Return the limit of every class; None for a class that is never answered."""
    names = classes.tolist()
    if not risk or not set(risk) <= set(names):
        raise ValueError(
            f"risk must name one or more of the classes, {format_labels(names)}, got "
            f"{format_labels(risk)}."
        )
    for name, limit in risk.items():
        if not isinstance(limit, Real) or not 0 < float(limit) < 1:
            raise ValueError(f"risk must hold numbers in (0, 1), got {limit!r} for {name!r}.")
    return [float(risk[name]) if name in risk else None for name in names]
