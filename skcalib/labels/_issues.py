"""Find wrong labels, and say how sure that is."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags

from ..difficulty import RelativeMahalanobisScorer
from ..utils._estimators import common_input_tags, joint_classes, show_inner, warn_if_fitted
from ..utils._features import samples_and_labels
from ..utils._labels import check_several_classes, encode
from ..utils._private import HasMethods, Interval, StrOptions, _fit_context
from ..utils._tables import as_table, row_index
from ..utils._validation import check_weights
from ._distances import LeaveOneOut, OutOfFold, scores_left_out
from ._likelihood import label_posterior
from ._noise_model import NoiseFit, fit_noise_model, rate_interval
from ._systematic import SystematicFlips

if TYPE_CHECKING:
    import pandas as pd

_FEWEST_OF_A_CLASS = 10
_DEFAULT_FOLDS = 5
# Samples a class at which the probabilities before all refits count as much as those after.
# CLINC150, 5 samples a class, calibration error after, and of the mean: 40 % random flips .101,
# .051; 20 % nearest-class flips .075, .048. With 20 samples, 40 % random: .006, .010.
_WEIGHT_OF_FIRST = 5.0


class LabelIssueFinder(MetaEstimatorMixin, BaseEstimator):
    """Find wrong labels by a model of how labels go wrong.

    The scorer says how far every training sample is from every class, each sample left out of
    its own judgement. Four numbers are then fitted to the labels by maximum likelihood: how far
    the scorer can be trusted (a temperature), the rate of random flips, the rate of flips to a
    class that is near the sample, and what "near" means (a spread). Where many samples of one
    class bear the label of one other, this pair of classes gets a rate of its own. With them, the
    probability that a label is right follows from Bayes' rule, and the noise rate is one minus its
    mean. There is no threshold to choose on the distances and no network to train.

    Parameters
    ----------
    estimator : scorer, Pipeline or classifier, default=None
        A :class:`~skcalib.difficulty.RelativeMahalanobisScorer`, or a Pipeline that ends in one:
        leave-one-out distances in closed form. Or any classifier with `predict_proba`: its
        out-of-fold probabilities over `cv`. None is
        ``RelativeMahalanobisScorer(shrinkage="auto")``, whose shrinkage matters where classes
        have few samples.
    noise : {"mixed", "random"}, default="mixed"
        "random" leaves out flips to a near class, and systematic ones. These look like doubt of
        the scorer, so that "mixed" takes some hard samples for wrong, and "random" nearly all
        flips to a near class for hard samples.
    threshold : float in (0, 1), default=0.5
        A sample is an issue where its label is right with less probability than this.
    n_refits : int, default=1
        Number of times that the scorer is fitted again, to the suggested labels. Without it,
        wrong labels blur the classes that judge them. The probabilities are a weighted mean of
        those before and after: with 5 samples a class both count alike, with more the latter
        counts more, in proportion to the samples.
    cv : int, cross-validation generator or iterable, default=None
        Folds of a classifier; None means 5 stratified ones. A scorer, which leaves out one sample
        at a time, has no use for them.

    Attributes
    ----------
    issues_ : structured array of shape (n_samples,)
        ``label``; ``suggested_label``, the most probable one; ``p_label_correct``; ``margin``,
        by how much farther the class of the label is than the nearest class; ``difficulty`` of
        the sample with its label, left out (for a classifier the out-of-fold log-loss);
        ``is_issue``.
    label_proba_ : ndarray of shape (n_samples, n_classes)
        Probability of every class to be the true one.
    noise_rate_ : float
        Estimated fraction of wrong labels.
    noise_rate_interval_ : tuple of two floats
        95 % interval of `noise_rate_` by profile likelihood. It holds for samples that follow
        the model: it does not cover what few samples a class leave unknown of the classes.
    random_rate_, near_rate_, systematic_rate_ : float
        The parts of the noise rate that are random flips, flips to a near class and systematic
        flips.
    systematic_flips_ : structured array of shape (n_pairs,)
        The pairs of classes with systematic flips, the highest rate first: ``true_label``,
        ``label``, and ``rate``, the fraction of the samples of the one class that bear the label
        of the other. Empty where there are none.
    class_noise_rate_ : ndarray of shape (n_classes,)
        Estimated fraction of wrong ones among the labels of each class; NaN for a class with less
        than ten.
    temperature_, spread_ : float
        The other two numbers: distances are divided by twice the temperature, and by the spread
        besides to say which classes are near.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    estimator_ : estimator
        Fitted on all samples, to the labels of the last refit.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Of `estimator_`, where it has them.

    See Also
    --------
    find_label_issues : The table in one call, most suspicious label first.
    LabelCleaningClassifier : Train a classifier on cleaned labels.
    skcalib.difficulty.RelativeMahalanobisScorer : A difficulty of every class.
    skcalib.plots.HardestSamplesDisplay : Shows given and suggested labels.

    Notes
    -----
    A wrong label that names a class near the sample cannot be told from a right label of a hard
    sample by distances alone. What settles it are labels that are known to be right:
    ``fit(X, y, verified=...)``.

    Systematic flips need ten samples with the label of either class, and a rate of at least a
    fifth: the scorer's own confusion of two classes looks like a smaller one. They have to
    explain the labels better than chance does by the Bayesian information criterion, and better
    than class sizes do.

    Of more than 2 million distances (and 5000 samples), a random part enters the likelihood, the
    same at every call; all samples are judged.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcalib.datasets import flip_labels
    >>> from skcalib.labels import LabelIssueFinder
    >>> X, y = load_iris(return_X_y=True)
    >>> given, flipped = flip_labels(y, fraction=0.1, random_state=0)
    >>> finder = LabelIssueFinder().fit(X, given)
    >>> found = finder.issues_["is_issue"]
    >>> int(flipped.sum()), int(found.sum()), int((found & flipped).sum())
    (15, 17, 15)
    >>> round(finder.noise_rate_, 2)
    0.11
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [
            HasMethods(["fit", "predict_proba"]),
            RelativeMahalanobisScorer,
            Pipeline,
            None,
        ],
        "noise": [StrOptions({"mixed", "random"})],
        "threshold": [Interval(Real, 0, 1, closed="neither")],
        "n_refits": [Interval(Integral, 0, None, closed="left")],
        "cv": ["cv_object"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        noise: str = "mixed",
        threshold: float = 0.5,
        n_refits: int = 1,
        cv: Any = None,
    ) -> None:
        self.estimator = estimator
        self.noise = noise
        self.threshold = threshold
        self.n_refits = n_refits
        self.cv = cv

    # The parameters of the estimator are its own to validate.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        verified: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Judge the labels of the samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or whatever the estimator takes
            Samples.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight k stands for k copies of a sample; one of weight 0 is judged and counts
            nowhere.
        verified : array-like of shape (n_samples,), dtype bool, default=None
            Samples whose label is known to be right. They are no issues, and tell the model how
            hard samples with right labels are.
        groups : array-like of shape (n_samples,), default=None
            What samples belong together, such as patients: no group is in two folds of a
            classifier.

        Returns
        -------
        self : LabelIssueFinder
            The fitted finder.

        Raises
        ------
        ValueError
            If there is one class alone, or if `verified` holds other values than True and False.
        """
        X, labels = samples_and_labels(X, y)
        given_weight = check_weights(sample_weight, len(labels))
        weight = np.ones(len(labels)) if given_weight is None else given_weight
        known = _check_verified(verified, len(labels))
        check_several_classes(np.unique(labels[weight > 0]))
        warn_if_fitted(estimator=self.estimator)
        frozen = isinstance(self.estimator, FrozenEstimator)
        self.classes_ = joint_classes(self.estimator, labels) if frozen else np.unique(labels)
        codes = encode(labels, self.classes_)
        source = self._source(X, labels, given_weight, groups)
        mixed, believed, first = self.noise == "mixed", labels, None
        for _ in range(self.n_refits + 1):
            # The scorer is fitted to the labels believed; those given are judged.
            distances = source.distances(believed, self.classes_)
            if believed is labels:  # before any refit
                difficulty = source.difficulty()
            margin = distances[np.arange(len(codes)), codes] - distances.min(axis=1)
            noise = fit_noise_model(distances, codes, weight, known, mixed=mixed)
            proba = label_posterior(
                distances, codes, known, noise.parameters, noise.flips, out=distances
            )
            first = proba if first is None else first
            believed = self.classes_[proba.argmax(axis=1)]
        # A refit believes its own mistakes, the more the fewer samples a class has.
        n_each = weight.sum() / len(np.unique(codes[weight > 0]))
        part = float(_WEIGHT_OF_FIRST / (_WEIGHT_OF_FIRST + n_each))
        if first is not proba:
            first -= proba
            first *= part
            proba += first
        believed = self.classes_[proba.argmax(axis=1)]
        self.label_proba_ = proba
        self._summarize(labels, codes, weight, noise, known)
        p_correct = proba[np.arange(len(codes)), codes]
        columns = {
            "label": labels,
            "suggested_label": believed,
            "p_label_correct": p_correct,
            "margin": margin,
            "difficulty": difficulty,
            "is_issue": p_correct < self.threshold,
        }
        self.issues_ = as_table(columns, as_frame=False)
        self.estimator_ = source.fitted
        show_inner(self, self.estimator_)
        return self

    def _source(
        self, X: Any, labels: NDArray, weight: NDArray | None, groups: ArrayLike | None
    ) -> LeaveOneOut | OutOfFold:
        estimator = self.estimator
        if estimator is None:
            estimator = RelativeMahalanobisScorer(shrinkage="auto")
        if not scores_left_out(estimator):
            cv = _DEFAULT_FOLDS if self.cv is None else self.cv
            return OutOfFold(estimator, X, labels, weight, cv, groups)
        if groups is not None:
            raise ValueError("groups must be None for a scorer, which has no folds, got groups.")
        return LeaveOneOut(estimator, X, labels, weight)

    def _summarize(
        self,
        labels: NDArray,
        codes: NDArray[np.intp],
        weight: NDArray[np.float64],
        noise: NoiseFit,
        known: NDArray[np.bool_],
    ) -> None:
        """Set the rates: the means of the probabilities that labels are wrong."""
        wrong = 1.0 - self.label_proba_[np.arange(len(codes)), codes].astype(np.float64)
        self.noise_rate_ = float(np.average(wrong, weights=weight))
        p, flips = noise.parameters, noise.flips
        unverified = float(weight[~known].sum())
        n_systematic = 0.0 if flips is None else float(flips.n_flipped.sum())
        systematic = n_systematic / unverified if n_systematic else 0.0
        # Divided as the model divides its own rate.
        per_rate = self.noise_rate_ / (p.rate + systematic)
        self.random_rate_ = p.random_rate * per_rate
        self.systematic_rate_ = systematic * per_rate
        self.near_rate_ = self.noise_rate_ - self.random_rate_ - self.systematic_rate_
        ends = np.array(rate_interval(noise)) - p.rate
        # What is counted has the square root of its number as its standard error.
        if n_systematic:
            ends = np.sign(ends) * np.hypot(ends, 1.96 * systematic / np.sqrt(n_systematic))
        # The rate of the model is that among labels nobody has verified.
        ends *= unverified / weight.sum()
        low, high = np.clip(self.noise_rate_ + ends, 0.0, 1.0)
        self.noise_rate_interval_ = (float(low), float(high))
        self.systematic_flips_ = self._table_of(flips)
        count = np.bincount(codes, weight, len(self.classes_))
        total = np.bincount(codes, weight * wrong, len(self.classes_))
        enough = count >= _FEWEST_OF_A_CLASS
        self.class_noise_rate_ = np.full(len(count), np.nan)
        self.class_noise_rate_[enough] = total[enough] / count[enough]
        self.temperature_, self.spread_ = p.temperature, p.spread

    def _table_of(self, flips: SystematicFlips | None) -> NDArray[Any]:
        none = np.empty(0, dtype=np.intp)
        true, given = (none, none) if flips is None else (flips.true, flips.given)
        rate = np.empty(0) if flips is None else flips.rate
        order = np.argsort(-rate, kind="stable")
        columns = {
            "true_label": self.classes_[true[order]],
            "label": self.classes_[given[order]],
            "rate": rate[order],
        }
        return np.asarray(as_table(columns, as_frame=False))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        estimator = self.estimator
        tags.input_tags = common_input_tags(
            RelativeMahalanobisScorer() if estimator is None else estimator
        )
        tags.target_tags.required = True
        return tags


def _check_verified(verified: ArrayLike | None, n_samples: int) -> NDArray[np.bool_]:
    if verified is None:
        return np.zeros(n_samples, dtype=bool)
    array = np.asarray(verified)
    if array.dtype != bool or array.shape != (n_samples,):
        raise ValueError(
            f"verified must be a boolean mask of shape ({n_samples},), got dtype {array.dtype} "
            f"and shape {array.shape}."
        )
    return array


def find_label_issues(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    noise: str = "mixed",
    threshold: float = 0.5,
    n_refits: int = 1,
    cv: Any = None,
    sample_weight: ArrayLike | None = None,
    verified: ArrayLike | None = None,
    as_frame: bool = False,
) -> pd.DataFrame | NDArray[Any]:
    """Return all samples, the one with the most suspicious label first.

    Parameters
    ----------
    estimator : scorer, Pipeline, classifier or None
        As for :class:`LabelIssueFinder`.
    X : array-like of shape (n_samples, n_features), or whatever the estimator takes
        Samples.
    y : array-like of shape (n_samples,)
        Their labels.
    noise : {"mixed", "random"}, default="mixed"
        As for :class:`LabelIssueFinder`.
    threshold : float in (0, 1), default=0.5
        As for :class:`LabelIssueFinder`.
    n_refits : int, default=1
        As for :class:`LabelIssueFinder`.
    cv : int, cross-validation generator or iterable, default=None
        As for :class:`LabelIssueFinder`.
    sample_weight, verified : array-like of shape (n_samples,), default=None
        As for :meth:`LabelIssueFinder.fit`.
    as_frame : bool, default=False
        Whether to return a DataFrame (needs pandas), with the index of X or y.

    Returns
    -------
    issues : structured array of shape (n_samples,), or DataFrame
        The columns of ``issues_`` in rising order of ``p_label_correct``,
        ties in falling order of ``margin``. The first column, ``sample``, is the position in X.

    Raises
    ------
    ValueError
        As :meth:`LabelIssueFinder.fit`.

    See Also
    --------
    LabelIssueFinder : The same, with the noise rate and the probabilities of all classes.
    LabelCleaningClassifier : Train a classifier on cleaned labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcalib.labels import find_label_issues
    >>> X, y = load_iris(return_X_y=True)
    >>> y[7] = 2
    >>> issues = find_label_issues(None, X, y)
    >>> int(issues["sample"][0]), int(issues["suggested_label"][0])
    (7, 0)
    """
    finder = LabelIssueFinder(
        estimator, noise=noise, threshold=threshold, n_refits=n_refits, cv=cv
    ).fit(X, y, sample_weight=sample_weight, verified=verified)
    issues = finder.issues_
    # lexsort sorts by its last key first.
    order = np.lexsort([-issues["margin"], issues["p_label_correct"]])
    columns = {"sample": order, **{name: issues[name][order] for name in issues.dtype.names or ()}}
    index = row_index(X, y)
    return as_table(columns, as_frame=as_frame, index=None if index is None else index[order])
