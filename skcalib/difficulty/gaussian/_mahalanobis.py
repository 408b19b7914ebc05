"""Relative Mahalanobis distance to class Gaussians that share one covariance."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ...utils._arrays import is_chunked
from ...utils._chunked import aligned, map_chunks
from ...utils._labels import check_class_labels, encode
from ...utils._private import Interval, StrOptions, _fit_context
from ._class_distances import ClassDistances, class_distances, warn_of_limits
from ._leave_one_out import LeftOutMixin
from ._statistics import shrunk, working_dtype


class RelativeMahalanobisScorer(LeftOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):
    """Difficulty as the relative Mahalanobis distance of a sample to its class.

    Every class is a Gaussian with its own mean and a covariance shared by all, the background
    is one Gaussian over all samples. The difficulty of (x, y) is the squared Mahalanobis distance
    of x to class y, minus that to the background:

    .. math::

        (x - \\mu_y)^T \\Sigma^{-1} (x - \\mu_y)
        - (x - \\mu_{agn})^T \\Sigma_{agn}^{-1} (x - \\mu_{agn})

    **Larger means harder.** A sample deep in its own class, in directions that separate the
    classes, is easy. The features should come from a pre-trained model [1]_.

    Equations 5 to 7 of [1]_ carry a minus sign that contradicts the text and the figures of
    the paper, where small values are the easy samples. The text is right, and followed here.

    Parameters
    ----------
    relative : bool, default=True
        Subtract the background distance. False gives the plain squared Mahalanobis distance.
    shrinkage : float in [0, 1] or "auto", default=None
        Shrinkage of both covariances toward the identity times their mean variance. "auto"
        takes the oracle approximating coefficient of each (see
        :func:`sklearn.covariance.oas`). None does not shrink.
    tol : float, default=None
        Directions with no more variance than this, in units in which every feature has
        variance one, count as unsupported. None derives it from the precision of the input and of
        the sums over it.
    normalize : bool, default=False
        Scale every sample to unit length first, in the fit and in queries [2]_: the length of a
        network's features differs between classes, which Gaussians fit badly. A sample of zeros
        has no direction, and is an error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_count_ : ndarray of shape (n_classes,)
        Number of samples of each class, or the sum of their weights.
    means_ : ndarray of shape (n_classes, n_features)
        Class means. NaN for a class announced to `partial_fit` but not seen so far.
    mean_ : ndarray of shape (n_features,)
        Mean of all samples.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance about the class means, normalized by the number of samples, after shrinkage.
    background_covariance_ : ndarray of shape (n_features, n_features)
        Covariance about `mean_`, normalized by the number of samples, after shrinkage.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number of features and, where the input has them, their names.

    See Also
    --------
    KMeansPrototypeScorer : Difficulty without labels, from prototypes.
    LossScorer : Difficulty as the loss of a classifier.
    KNNScorer : Distance to the nearest training samples.
    difficulty_weights : From difficulty to weights.
    score_difficulty : Difficulty by a Pipeline that ends in a scorer.

    Notes
    -----
    A singular covariance (more features than samples, constant or duplicate columns) is replaced
    by its pseudo-inverse: each distance looks at the directions in which its own Gaussian has
    variance, and the part of a sample outside of them is ignored. On the fitted samples the mean
    difficulty is the rank of `covariance_` minus that of `background_covariance_`: zero where
    the supports agree.

    Sums of squares in float32 cannot distinguish a direction of very little variance from
    rounding. `fit` then computes them again in float64; `partial_fit` cannot, and the first use
    warns. An update that raises, in `partial_fit` or `merge`, leaves the scorer as it was.

    A torch tensor on a GPU stays there, see :ref:`tensors`: products run on the device, in the
    precision of the tensor and never in TensorFloat-32.

    `predict` is linear discriminant analysis with equal priors.

    References
    ----------
    .. [1] P. Cui, D. Zhang, Z. Deng, Y. Dong, J. Zhu, "Learning Sample Difficulty from
       Pre-trained Models for Reliable Prediction", NeurIPS 2023.
    .. [2] M. Mueller, M. Hein, "Mahalanobis++: Improving OOD Detection via Feature
       Normalization", ICML 2025.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcalib.difficulty import RelativeMahalanobisScorer
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = RelativeMahalanobisScorer().fit(X, y)
    >>> difficulty = scorer.difficulty(X, y)
    >>> int(difficulty.argmax()), bool(abs(difficulty.mean()) < 1e-9)
    (118, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "relative": ["boolean"],
        "shrinkage": [None, Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "tol": [None, Interval(Real, 0, None, closed="left")],
        "normalize": ["boolean"],
    }

    _distances: ClassDistances | None

    def __init__(
        self,
        *,
        relative: bool = True,
        shrinkage: float | str | None = None,
        tol: float | None = None,
        normalize: bool = False,
    ) -> None:
        self.relative = relative
        self.shrinkage = shrinkage
        self.tol = tol
        self.normalize = normalize

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the class Gaussians and the background.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Features. float16 and float32 are processed in float32, chunk by chunk, unless that
            loses directions: see Notes. A memory map stays on disk, and the chunks of a dask
            array stay where they are.
        y : array-like or dask array of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight k stands for k copies of a sample, weight 0 removes it.

        Returns
        -------
        self : RelativeMahalanobisScorer
            The fitted scorer.

        Raises
        ------
        ValueError
            If there is only one class and `relative` is True, or if no class varies, for instance
            because every class has a single sample.

        Warns
        -----
        SkcalibWarning
            If a class has a single sample.
        """
        self._update(X, y, None, sample_weight, reset=True)
        distances = self._new_distances()
        if distances.n_unresolved:  # by sums in float32
            self._update(X, y, None, sample_weight, reset=True, work=np.float64)
            distances = self._new_distances()
        self._use(distances)
        return self

    def finalize(self) -> Self:
        """Compute now what scoring needs, before the scorer is sent to many processes.

        Otherwise the first call does so, and again in every copy that was pickled before it. The
        result is pickled with the scorer, and dropped when samples are added.

        Returns
        -------
        self : RelativeMahalanobisScorer
            The scorer itself. Its scores are the same before and after.
        """
        check_is_fitted(self)
        single = self._statistics.input_eps > np.finfo(np.float64).eps
        self._fitted_distances().prepare(np.float32 if single else np.float64)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Relative squared distance to every class.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Features.

        Returns
        -------
        distances : ndarray or dask array of shape (n_samples, n_classes)
            float32 for float16 and float32 input, float64 otherwise. Plain squared distances
            with ``relative=False``. Lazy where X is a dask array.
        """
        check_is_fitted(self)
        if is_chunked(X):
            shape = {"dtype": working_dtype(X.dtype), "n_columns": len(self.classes_)}
            return self._in_chunks(RelativeMahalanobisScorer.transform, X, **shape)
        data, distances = self._query(X)
        return distances.to_all_classes(data)

    def difficulty(self, X: ArrayLike, y: ArrayLike | None = None) -> NDArray[np.float64]:
        """Distance to the class of `y`, or to the nearest class; larger means harder.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Features.
        y : array-like or dask array of shape (n_samples,), default=None
            Labels, each among `classes_`. None takes the minimum over the classes.

        Returns
        -------
        difficulty : ndarray or dask array of shape (n_samples,)
            Larger means harder. Lazy where X is a dask array.
        """
        check_is_fitted(self)
        if is_chunked(X):
            return self._in_chunks(RelativeMahalanobisScorer.difficulty, X, y, dtype=np.float64)
        if y is None:
            data, distances = self._query(X)
            return distances.to_nearest_class(data).astype(np.float64)
        labels = check_class_labels(y)
        data, labels = self._read(X, labels, reset=False)
        return self._fitted_distances().to_own_class(data, encode(labels, self.classes_))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Nearest class in relative distance.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_features)
            Features.

        Returns
        -------
        labels : ndarray or dask array of shape (n_samples,)
            Class labels. Lazy where X is a dask array.
        """
        check_is_fitted(self)
        if is_chunked(X):
            return self._in_chunks(RelativeMahalanobisScorer.predict, X, dtype=self.classes_.dtype)
        data, distances = self._query(X)
        return self.classes_[distances.nearest_class(data)]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Names of the columns of `transform`, whatever the `input_features`.

        They are ``rmd_<class>``, or ``mahalanobis_<class>`` with ``relative=False``.
        """
        check_is_fitted(self)
        prefix = "rmd" if self.relative else "mahalanobis"
        return np.asarray([f"{prefix}_{label}" for label in self.classes_], dtype=object)

    @property
    def class_count_(self) -> NDArray[np.float64]:
        """Sum of the weights of each class."""
        return self._statistics.weight.copy()

    @property
    def means_(self) -> NDArray[np.float64]:
        """Class means."""
        return self._statistics.means()

    @property
    def mean_(self) -> NDArray[np.float64]:
        """Mean of all samples."""
        return self._statistics.mean()

    @property
    def covariance_(self) -> NDArray[np.float64]:
        """Covariance about the class means."""
        statistics = self._statistics
        return shrunk(statistics.within_covariance(), self.shrinkage, statistics.total_weight)

    @property
    def background_covariance_(self) -> NDArray[np.float64]:
        """Covariance about the mean of all samples."""
        statistics = self._statistics
        return shrunk(statistics.background_covariance(), self.shrinkage, statistics.total_weight)

    def _in_chunks(self, method: Callable[..., Any], X: Any, y: Any = None, **shape: Any) -> Any:
        """Return the results of a method for every chunk, lazily, with the samples seen so far."""
        X, *labels = aligned(X=X, **({} if y is None else {"y": y}))
        self._read(np.zeros((1, *X.shape[1:]), dtype=X.dtype), reset=False)
        return map_chunks(method, copy(self.finalize()), X, *labels, **shape)

    def _query(self, X: ArrayLike) -> tuple[NDArray, ClassDistances]:
        return self._read(X, reset=False), self._fitted_distances()

    def _fitted_distances(self) -> ClassDistances:
        return self._use(self._new_distances()) if self._distances is None else self._distances

    def _new_distances(self) -> ClassDistances:
        return class_distances(
            self._statistics, relative=self.relative, shrinkage=self.shrinkage, tol=self.tol
        )

    def _use(self, distances: ClassDistances) -> ClassDistances:
        self._distances = distances
        # A weight of 2 or more stands for copies: the label does not occur only once.
        alone = (self._statistics.count == 1) & (self._statistics.weight < 2)
        warn_of_limits(distances, self.classes_[alone])
        return distances


RMDScorer = RelativeMahalanobisScorer
