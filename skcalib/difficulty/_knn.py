"""Difficulty as distance to the nearest training samples, without labels."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..utils.checking._validation import validate_rows
from ..utils.computing._tensors import UnitRows
from ..utils.meta._private import Interval, StrOptions, _fit_context
from ._base import DifficultyMixin
from ._neighbors import NeighborSearch, drop

_DTYPES = [np.float64, np.float32]


class KNNScorer(DifficultyMixin, BaseEstimator):
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
