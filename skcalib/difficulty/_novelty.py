"""An outlier detector over any difficulty scorer."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from ..utils._arrays import as_features, check_weights
from ..utils._backends import by_chunks
from ..utils._compat import (
    HasMethods,
    Interval,
    StratifiedGroupKFold,
    StrOptions,
    _fit_context,
    _safe_indexing,
)
from ..utils._estimators import (
    MetaMixin,
    VersionMixin,
    as_indexable,
    fit_clone,
    get_inner_fit_params,
    get_last_step,
    make_folds,
    run_folds,
    show_inner,
    warn_if_fitted,
)
from ..utils._labels import encode_duplicates, encode_groups, warn_of_duplicates
from ..utils._output import warn
from ._mahalanobis import RMDScorer, make_gaussians_without
from ._scorers import KNNScorer


class NoveltyDetector(MetaMixin, OutlierMixin, VersionMixin, BaseEstimator):
    """Detect new samples that are unlike the training samples, by any scorer.

    A sample is an outlier if its score is below a threshold. Training samples have higher scores
    than new ones: a threshold from their scores would call far too many new samples outliers. By
    default, every training sample is therefore scored as a new one, by a fit on the others. New
    samples like the training samples are then called outliers with probability `contamination`, on
    average over training sets. With one set of n samples, the rate has a standard deviation of
    ``sqrt(contamination (1 - contamination) / n)`` or slightly more.

    Parameters
    ----------
    scorer : estimator with score_samples, or Pipeline ending in one
        A difficulty scorer, such as :class:`RelativeMahalanobisScorer` or :class:`KNNScorer`, or a
        density of scikit-learn. Larger scores mean more normal. A clone is fitted. A relative
        distance hardly detects inputs far from all classes.
    contamination : float in (0, 0.5], default=0.05
        Fraction of samples like the training samples that are called outliers.
    cv : "auto", int, cross-validation generator, iterable or None, default="auto"
        Folds for the scores of the training samples. "auto" leaves out one sample at a time if the
        scorer does so in closed form (:class:`RelativeMahalanobisScorer` and :class:`KNNScorer`,
        without `groups`), and else takes 20 shuffled folds of samples or groups. An int is a
        number of shuffled folds, stratified if there are labels; with few samples, few folds put
        the threshold too low, and too high for ``RMDScorer(relative=False)`` on many features.
        None takes the scores of one fit: exactly `contamination` of the training samples are
        outliers, as in :class:`sklearn.ensemble.IsolationForest`.

    Attributes
    ----------
    scorer_ : estimator
        The scorer, fitted on all samples.
    offset_ : float
        The threshold: samples of lower score are outliers.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Of `scorer_`, where it has them.

    See Also
    --------
    skcalib.metrics.ood_report : How well scores separate outliers, over all thresholds.
    KNNScorer : A scorer for it: distance to the nearest training samples.
    sklearn.neighbors.LocalOutlierFactor : Outliers by local density.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcalib.difficulty import NoveltyDetector, RMDScorer
    >>> X, y = load_iris(return_X_y=True)
    >>> detector = NoveltyDetector(RMDScorer(relative=False)).fit(X[::2], y[::2])
    >>> detector.predict([[5.0, 3.4, 1.5, 0.2], [5.0, 3.4, 1.5, 6.0]])
    array([ 1, -1])
    >>> round(float((detector.predict(X[1::2]) == -1).mean()), 2)
    0.04
    """

    # `groups` are only for the folds.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"groups": UNUSED}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scorer": [HasMethods(["fit", "score_samples"])],
        "contamination": [Interval(Real, 0, 0.5, closed="right")],
        "cv": ["cv_object", StrOptions({"auto"})],
    }

    def __init__(self, scorer: Any, *, contamination: float = 0.05, cv: Any = "auto") -> None:
        self.scorer = scorer
        self.contamination = contamination
        self.cv = cv

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the scorer and find the threshold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or whatever the scorer takes
            Samples.
        y : array-like of shape (n_samples,), default=None
            Class labels, for a scorer that needs them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights for the scorer, and for the fraction below the threshold. A row is left out
            with all of its weight.
        groups : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns), \
                default=None
            Which samples belong together, such as those of a patient, by names of any kind: each
            group is in one fold. Without them, equal rows of X bring a warning
            where they are more than a tenth.
        **fit_params : dict
            Further parameters of ``scorer.fit``.

        Returns
        -------
        self : NoveltyDetector
            The fitted detector.

        Raises
        ------
        ValueError
            If the scorer has no score for some sample, or needs labels and `y` is None.

        Warns
        -----
        SkcalibWarning
            If so many scores are -inf that no threshold exists: nothing is called an outlier.
        """
        if y is None and get_tags(self.scorer).target_tags.required:
            raise ValueError(
                f"y must hold labels: {type(get_last_step(self.scorer)[0]).__name__} requires y "
                "to be passed, but the target y is None."
            )
        X, labels, n_samples = as_indexable(X, y)
        weight = check_weights(sample_weight, n_samples)
        warn_if_fitted(scorer=self.scorer)
        params = get_inner_fit_params(self, "scorer", weight, fit_params, groups)
        self.scorer_ = fit_clone(self.scorer, X, labels, params=params)
        in_sample = self.cv is None or isinstance(self.scorer, FrozenEstimator)
        given = not (self.cv is None or self.cv == "auto" or isinstance(self.cv, Integral))
        if groups is None and not in_sample:
            warn_of_duplicates(encode_duplicates(X, labels))
        one_by_one = self.cv == "auto" and groups is None
        if in_sample:
            scores = self.score_samples(X)
        elif one_by_one and isinstance(self.scorer_, KNNScorer):
            scores = _complete(-clone(self.scorer_).fit_difficulty(X))
        elif one_by_one and labels is not None and isinstance(self.scorer_, RMDScorer):
            gaussians, rows, codes, _ = make_gaussians_without(self.scorer_, X, labels, weight)
            # A row is left out with all of its weight: any rest would raise its score.
            lost = np.ones(n_samples) if weight is None else weight
            # The least distance of all classes is the difficulty without a label.
            scores = _complete(-gaussians.to_all(rows, codes, lost).min(axis=1))
        else:
            cv = self.cv if given else self._splitter(n_samples, labels, groups)
            folds = make_folds(cv, X, labels, groups, missing="ignore")
            scores = run_folds(partial(self._score_fold, X, labels, params), folds)
            weight = None if weight is None else weight[folds.rows]
        self.offset_ = _compute_threshold(scores, self.contamination, weight, in_sample=in_sample)
        show_inner(self, self.scorer_)
        return self

    def fit_predict(
        self, X: Any, y: ArrayLike | None = None, **fit_params: Any
    ) -> NDArray[np.intp]:
        """Fit, and return which samples of the fit are outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,), default=None
            Labels, for scorers that need them.
        **fit_params : dict
            Further parameters of :meth:`fit`, such as `sample_weight` and `groups`.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            1 for inliers, -1 for outliers.
        """
        return self.fit(X, y, **fit_params).predict(X)

    def _splitter(self, n_samples: int, labels: NDArray | None, groups: ArrayLike | None) -> Any:
        """Return the splitter of ``cv="auto"`` or of a number of folds."""
        if self.cv == "auto":
            # Not stratified: folds are so small that most of every class remains.
            kind = KFold if groups is None else GroupKFold
            n = n_samples if groups is None else len(encode_groups(groups, n_samples)[0])
            return kind(max(2, min(20, n)), shuffle=True, random_state=0)
        # Shuffled, since samples are often sorted by class. The seed makes fits repeatable.
        splitter = KFold if labels is None else StratifiedKFold
        splitter = splitter if groups is None else StratifiedGroupKFold
        return splitter(int(self.cv), shuffle=True, random_state=0)

    def _score_fold(
        self,
        X: Any,
        labels: NDArray | None,
        params: dict[str, Any],
        train: NDArray[np.intp],
        test: NDArray[np.intp],
    ) -> NDArray[np.float64]:
        """Return the scores of the samples `test` by a clone fitted on `train`."""
        scorer = fit_clone(self.scorer, X, labels, train, params)
        return _complete(scorer.score_samples(_safe_indexing(X, test)))

    @by_chunks
    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Score of every sample, by the scorer.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray or dask array of shape (n_samples,)
            Larger = more normal. Lazy where X is a dask array.
        """
        check_is_fitted(self)
        return _complete(self.scorer_.score_samples(as_features(X)))

    @by_chunks
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score of every sample, less the threshold: negative for outliers.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray or dask array of shape (n_samples,)
            In the unit of the scorer; larger = more normal. Lazy where X is a dask array.
        """
        scores = self.score_samples(X)
        # With scores and threshold of -inf, the difference is 0, not NaN.
        return np.subtract(
            scores, self.offset_, out=np.zeros(len(scores)), where=scores != self.offset_
        )

    @by_chunks
    def predict(self, X: Any) -> NDArray[np.intp]:
        """Find the outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            1 for inliers, -1 for outliers.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def _inside(self) -> dict[str, Any]:
        return {"scorer": self.scorer}


def _complete(scores: ArrayLike) -> NDArray[np.float64]:
    """Return the scores in float64; raise if any is NaN."""
    values = np.asarray(scores, dtype=np.float64)
    n_missing = int(np.isnan(values).sum())
    if n_missing:
        raise ValueError(
            f"scorer must give every sample a score, got NaN for {n_missing} of {len(values)}."
        )
    return values


def _compute_threshold(
    scores: NDArray[np.float64],
    contamination: float,
    weight: NDArray[np.float64] | None,
    *,
    in_sample: bool,
) -> float:
    """Return the score below which a fraction `contamination` lies.

    In-sample, that is a fraction of these samples. Otherwise it is a probability: a new sample is
    among the k smallest of n + 1 scores with probability k / (n + 1), and between two scores the
    probability is interpolated. The new sample counts as one, or less where the weights are below
    one, such as those that sum to one.
    """
    order = np.argsort(scores)
    weight = np.ones(len(scores)) if weight is None else weight
    cumulative = np.cumsum(weight[order])
    new = 0.0 if in_sample else min(1.0, np.average(weight, weights=weight / weight.max()))
    target = contamination * (cumulative[-1] + new)
    # With a factor for rounding: a tenth of ten equal weights is exactly one of them.
    place = int(np.searchsorted(cumulative, target * (1 + 1e-12), side="right"))
    following = float(scores[order[min(place, len(scores) - 1)]])
    if in_sample or place == 0:
        return following
    below = float(scores[order[place - 1]])
    if below == -np.inf:
        warn(
            "scorer must give samples different scores, got the lowest score, -inf, for more than "
            f"contamination={contamination} of them: no sample will be called an outlier."
        )
        return below
    # A weight of k stands for k equal scores: the first is reached after a weight of one.
    one = min(new, float(weight[order[min(place, len(scores) - 1)]]))
    return below + float(np.clip((target - cumulative[place - 1]) / one, 0, 1)) * (
        following - below
    )
