"""Difficulty as distance to the nearest prototype, without labels."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.utils.validation import check_is_fitted

from ..utils.checking._arrays import check_same_length, check_weights
from ..utils.checking._labels import check_class_labels
from ..utils.checking._validation import validate_data
from ..utils.meta._private import Interval, StrOptions, _fit_context
from ._base import DifficultyMixin


class KMeansPrototypeScorer(DifficultyMixin, BaseEstimator):
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
