"""Difficulty by neighbors, by the loss of a classifier, and by prototypes."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from ..utils._arrays import as_features, check_same_length, check_weights
from ..utils._backends import UnitRows
from ..utils._compat import HasMethods, Interval, StrOptions, _fit_context
from ..utils._estimators import (
    MetaMixin,
    VersionMixin,
    fit_clone,
    get_inner_fit_params,
    make_folds,
    predict_columns,
    predict_out_of_fold,
    read_samples,
    validate_data,
    validate_rows,
    warn_if_fitted,
)
from ..utils._labels import check_class_labels, encode, encode_duplicates, warn_of_duplicates
from ..utils._proba import label_log_loss
from ._base import DifficultyMixin, RequiresLabels
from ._neighbors import NeighborSearch, drop

# Difficulty as distance to the nearest training samples, without labels.

_DTYPES = [np.float64, np.float32]


class KNNScorer(DifficultyMixin, VersionMixin, BaseEstimator):
    """Difficulty as the distance to the k-th nearest training sample.

    A sample far from all others is unlike them [1]_. **Larger means harder.** Labels are not used:
    wrong ones are not noticed, and nothing is assumed about the classes. The search is exact:
    every query is compared with all training samples. If these are many,
    :class:`RelativeMahalanobisScorer` costs a fraction of that.

    A training sample is its own nearest neighbor. `fit_difficulty` leaves it out; `difficulty`
    treats every sample as new.

    Parameters
    ----------
    n_neighbors : int, default=5
        The neighbor whose distance counts, k. Small values are better for few samples per class.
    normalize : bool, default=False
        Scale every sample to unit length first, as [1]_ does: the distance then compares angles.
        A sample of zeros has no direction, and is an error.
    algorithm : {"auto", "brute", "faiss"}, default="auto"
        The library that searches: scikit-learn ("brute"), or faiss, which is faster beyond 32
        features. "auto" takes faiss where it is installed.
    n_jobs : int, default=None
        Processes of "brute"; faiss uses the threads that OpenMP gives it.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number of features and, where the input has them, their names.

    See Also
    --------
    NoveltyDetector : An outlier detector over any scorer.
    KMeansPrototypeScorer : Distance to the nearest of few prototypes.
    RelativeMahalanobisScorer : Difficulty from class Gaussians.

    Notes
    -----
    Samples are centered, scaled and kept in float32: distances are right to about six digits of
    the largest distance from the mean.

    A torch tensor on a GPU is kept and searched there, whatever `algorithm` says: see
    :ref:`tensors`.

    References
    ----------
    .. [1] Y. Sun, Y. Ming, X. Zhu, Y. Li, "Out-of-Distribution Detection with Deep Nearest
       Neighbors", ICML 2022.

    Examples
    --------
    >>> from skcalib.difficulty import KNNScorer
    >>> scorer = KNNScorer(n_neighbors=2)
    >>> scorer.fit([[0.0], [1.0], [2.0], [9.0]]).difficulty([[1.5], [6.0]]).round(3)
    array([0.5, 4. ])
    >>> scorer.fit_difficulty([[0.0], [1.0], [2.0], [9.0]]).round(3)
    array([2., 1., 2., 8.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "normalize": ["boolean"],
        "algorithm": [StrOptions({"auto", "brute", "faiss"})],
        "n_jobs": [None, Integral],
    }

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        normalize: bool = False,
        algorithm: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.normalize = normalize
        self.algorithm = algorithm
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Keep the training samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : None, default=None
            Ignored: neighbors need no labels.

        Returns
        -------
        self : KNNScorer
            The fitted scorer.
        """
        self._fit(X, self.n_neighbors)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_difficulty(  # type: ignore[override]  # neighbors take no weights
        self, X: ArrayLike, y: Any = None
    ) -> NDArray[np.float64]:
        """Fit, and score the training samples: each by the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : None, default=None
            Ignored; for the interface of other scorers.

        Returns
        -------
        difficulty : ndarray of shape (n_samples,)
            Distance of every sample to its k-th nearest other sample; larger means harder.
        """
        data = self._fit(X, self.n_neighbors + 1)
        neighbors = self._search.kneighbors(data, one_more=True)
        others = drop(neighbors, np.arange(len(data)))
        return self._search.distance(data, others[:, -1])

    def difficulty(self, X: ArrayLike, y: Any = None) -> NDArray[np.float64]:
        """Euclidean distance to the k-th nearest training sample; larger means harder.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : None, default=None
            Ignored; for the interface of other scorers.

        Returns
        -------
        difficulty : ndarray of shape (n_samples,)
            Distances, 0 or more; larger means harder.
        """
        check_is_fitted(self)
        data = self._scaled(validate_rows(self, X, reset=False, dtype=_DTYPES))
        return self._search.distance(data, self._search.kneighbors(data)[:, -1])

    def _fit(self, X: ArrayLike, n_needed: int) -> Any:
        """Keep the samples, at least `n_needed`, and return them scaled."""
        data = self._scaled(validate_rows(self, X, dtype=_DTYPES))
        if len(data) < n_needed:
            others = "other samples" if n_needed > self.n_neighbors else "samples"
            raise ValueError(
                f"n_neighbors must be at most the number of {others} in X, got {self.n_neighbors} "
                f"with n_samples={len(data)}."
            )
        self._search = NeighborSearch(
            self.n_neighbors, metric="euclidean", algorithm=self.algorithm, n_jobs=self.n_jobs
        ).fit(data)
        return data

    def _scaled(self, data: Any) -> Any:
        return UnitRows(data)[:] if self.normalize else data


# Difficulty as the loss of a classifier.


class LossScorer(RequiresLabels, DifficultyMixin, MetaMixin, VersionMixin, BaseEstimator):
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
        X, labels = read_samples(X, y)
        weight = check_weights(sample_weight, len(labels))
        warn_if_fitted(estimator=self.estimator)
        params = get_inner_fit_params(self, "estimator", weight, {}, groups)
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
            Out-of-fold log-loss, or in-sample with ``cv=None``; larger means harder. The mean
            over repeated folds, and NaN for samples that no fold leaves out.
        """
        X, labels = read_samples(X, y)
        # With `cv` as well: `difficulty` of new samples needs a classifier.
        self.fit(X, labels, sample_weight, groups)
        if self.cv is None or isinstance(self.estimator, FrozenEstimator):
            return self.difficulty(X, labels)
        weight = check_weights(sample_weight, len(labels))
        params = get_inner_fit_params(self, "estimator", weight, {}, groups)
        if groups is None:
            warn_of_duplicates(encode_duplicates(X, labels))
        folds = make_folds(self.cv, X, labels, groups, least=2)
        proba = predict_out_of_fold(
            self.estimator, X, labels, folds, classes=self.classes_, params=params
        )
        codes = encode(labels, self.classes_)[folds.rows]
        return folds.average(label_log_loss(proba, codes))

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
        proba = predict_columns(self.estimator_, as_features(X), self.classes_)
        if y is None:
            return label_log_loss(proba, proba.argmax(axis=1))
        labels = np.asarray(y)
        if labels.shape != (len(proba),):
            raise ValueError(f"y must have shape ({len(proba)},), got {labels.shape}.")
        return label_log_loss(proba, encode(labels, self.classes_))


# Difficulty as distance to the nearest prototype, without labels.


class KMeansPrototypeScorer(DifficultyMixin, VersionMixin, BaseEstimator):
    """Difficulty as the distance to the nearest of k-means prototypes.

    Self-supervised prototypicality [1]_: a sample close to a centroid of its features is typical,
    and easy. **Larger means harder.** Labels are not used, so wrong ones are not noticed. For
    cosine distance, first scale the samples to unit length with
    :class:`sklearn.preprocessing.Normalizer`.

    Parameters
    ----------
    n_clusters : int, default=None
        Number of prototypes. None takes the number of classes in `y`.
    n_init : "auto" or int, default="auto"
        Number of starts, as in :class:`sklearn.cluster.KMeans`.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. An int makes the fit repeatable.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The prototypes.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number of features and, where the input has them, their names.

    See Also
    --------
    RelativeMahalanobisScorer : Difficulty from class Gaussians.
    KNNScorer : Distance to the nearest training samples.

    References
    ----------
    .. [1] B. Sorscher, R. Geirhos, S. Shekhar, S. Ganguli, A. Morcos, "Beyond neural scaling
       laws: beating power law scaling via data pruning", NeurIPS 2022.

    Examples
    --------
    >>> from skcalib.difficulty import KMeansPrototypeScorer
    >>> X = [[0.0], [0.0], [1.0], [9.0], [9.0]]
    >>> KMeansPrototypeScorer(2, random_state=0).fit(X).difficulty([[9.0], [12.0]])
    array([0., 3.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        n_init: int | str = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Find the prototypes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,), default=None
            Labels. Ignored, unless `n_clusters` is None: then the number of classes counts.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        self : KMeansPrototypeScorer
            The fitted scorer.
        """
        data = validate_data(self, X, dtype=[np.float64, np.float32])
        # The inertia of k-means is a sum over all samples and features.
        _check_squares(data, n_terms=data.size)
        weight = check_weights(sample_weight, len(data))
        n_clusters = self._n_prototypes(data, y)
        kmeans = KMeans(n_clusters, n_init=self.n_init, random_state=self.random_state)
        self._kmeans = kmeans.fit(data, sample_weight=weight)
        self.cluster_centers_ = self._kmeans.cluster_centers_
        return self

    def _n_prototypes(self, data: NDArray[np.floating], y: ArrayLike | None) -> int:
        """Return `n_clusters` or, without it, the number of classes in y."""
        if self.n_clusters is not None:
            return self.n_clusters
        if y is None:
            raise ValueError("n_clusters must be given where y is None, got None for both.")
        labels = check_class_labels(y)
        check_same_length(X=data, y=labels)
        return len(np.unique(labels))

    def difficulty(self, X: ArrayLike, y: Any = None) -> NDArray[np.floating]:
        """Euclidean distance to the nearest prototype; larger means harder.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : None, default=None
            Ignored; for the interface of other scorers.

        Returns
        -------
        difficulty : ndarray of shape (n_samples,)
            Distances, 0 or more; larger means harder.
        """
        check_is_fitted(self)
        data = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        _check_squares(data, n_terms=data.shape[1])
        # KMeans may be configured to return frames.
        return np.asarray(self._kmeans.transform(data)).min(axis=1)


def _check_squares(data: NDArray[np.floating], *, n_terms: int) -> None:
    """Raise if a sum of `n_terms` squared differences between values of `data` could overflow."""
    largest = float(np.abs(data).max())
    # |a - b| <= 2 largest: the sum is n_terms (2 largest)^2 at most.
    limit = float(np.sqrt(np.finfo(data.dtype).max / n_terms)) / 2
    if largest > limit:
        raise ValueError(
            f"X must hold values up to {limit:.2g}, whose squared distances do not overflow in "
            f"{data.dtype}, got {largest:.2g}."
        )
