"""Exact nearest neighbors, in float32 that does not lose them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from ..utils import import_optional

# Up to this number of features, scikit-learn is as fast as faiss.
SMALL_DIM = 32
# Below this fraction of the squared norm of x, rounding in |x|^2 - 2xy + |y|^2 moves a squared
# distance in float32 by more than about 0.1 %. (So close to x, y has about the norm of x.)
CANCELLATION = 2e-4


def resolve_algorithm(algorithm: str, metric: object) -> str:
    """Return "faiss" or "brute" for `algorithm`, which may be "auto"."""
    by_product = metric in ("euclidean", "cosine")
    if algorithm == "faiss" and not by_product:
        raise ValueError(
            "algorithm must be 'brute' where metric is neither 'euclidean' nor 'cosine', got "
            f"'faiss' with metric={metric!r}."
        )
    if algorithm != "auto":
        return algorithm
    return "faiss" if by_product and find_spec("faiss") is not None else "brute"


def drop(neighbors: NDArray, excluded: NDArray) -> NDArray:
    """Return (n, k) of the neighbors (n, k + 1): without one given sample, else without the last.

    `excluded` (n,) is -1 where none is given.
    """
    kept = neighbors != excluded[:, np.newaxis]
    # Exactly one False a row, or the result would not have a shape.
    kept[kept.all(axis=1), -1] = False
    return neighbors[kept].reshape(len(neighbors), -1)


class NeighborSearch:
    """Exact search of the nearest training samples.

    Parameters
    ----------
    n_neighbors : int
        Samples to find.
    metric : str or callable
        "euclidean", "cosine", or, for the algorithm "brute", any of scikit-learn.
    algorithm : {"faiss", "brute"}
        Who searches; "brute" is scikit-learn.
    n_jobs : int or None
        For "brute"; faiss uses the threads that OpenMP gives it.
    name : str
        What errors call the samples.
    """

    def __init__(
        self,
        n_neighbors: int,
        *,
        metric: object,
        algorithm: str,
        n_jobs: int | None = None,
        name: str = "X",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.algorithm = algorithm
        self.n_jobs = n_jobs
        self.name = name

    def fit(self, X: NDArray) -> Self:
        """Keep the training samples (n, d), as float32."""
        self.center_, self.scale_ = np.zeros(X.shape[1]), np.float32(1)
        metric = self.metric
        if metric in ("euclidean", "cosine"):
            # Neighbors do not change; far from the origin, float32 would lose their digits.
            # Of unit vectors, |x - y|^2 = 2 (1 - cosine) has the order of the cosine distance.
            metric = "euclidean"
            self.center_ = self._direction(X).mean(axis=0, dtype=np.float64)
            centered = self._prepare(X)
            # Values up to 1 have squares that do not overflow. The scale stays 1 if all are 0.
            self.scale_ = np.abs(centered).max() or self.scale_
            self.train_ = np.divide(centered, self.scale_, out=centered)
        else:
            self.train_ = self._prepare(X)
        self.search_ = NearestNeighbors(algorithm="brute", metric=metric, n_jobs=self.n_jobs)
        self.search_.fit(self.train_)
        return self

    def _direction(self, X: NDArray) -> NDArray:
        # In float64, so that the number type of X makes no difference.
        return normalize(X.astype(np.float64)) if self.metric == "cosine" else X

    def _prepare(self, X: NDArray) -> NDArray:
        prepared = np.empty(X.shape, dtype=np.float32)
        # The difference is taken in the precision of X and rounded on its way out.
        with np.errstate(over="ignore", invalid="ignore"):
            np.subtract(self._direction(X), self.center_, out=prepared, casting="same_kind")
        if not np.isfinite(prepared).all():
            raise ValueError(f"{self.name} must be finite in float32, got NaN or infinity.")
        prepared /= self.scale_
        return prepared

    def kneighbors(self, X: NDArray, *, one_more: bool = False) -> NDArray:
        """Return the indices (n, n_neighbors) of the nearest training samples, nearest first."""
        n_fetched = self.n_neighbors + one_more
        queries = self._prepare(X)
        if self.algorithm == "brute" or X.shape[1] <= SMALL_DIM:
            return self._search_float64(queries, n_fetched)
        faiss = import_optional("faiss", extra="faiss")
        squared, indices = faiss.knn(queries, self.train_, n_fetched)
        # Where neighbors are close and their norms are not, the expansion of the distance has
        # lost its digits in float32. scikit-learn expands it in float64.
        again = squared[:, -1] < CANCELLATION * np.einsum("ij,ij->i", queries, queries)
        if again.any():
            indices[again] = self._search_float64(queries[again], n_fetched)
        return indices

    def _search_float64(self, queries: NDArray, n_fetched: int) -> NDArray:
        return self.search_.kneighbors(queries, n_fetched, return_distance=False)

    def is_equal(self, X: NDArray, neighbors: NDArray) -> NDArray[np.bool_]:
        """Tell which of its neighbors (n, k) a sample of X equals."""
        queries = self._prepare(X)
        return np.stack(
            [(self.train_[column] == queries).all(axis=1) for column in neighbors.T], axis=1
        )

    def distance(self, X: NDArray, neighbor: NDArray) -> NDArray[np.float64]:
        """Return the Euclidean distance (n,) of every sample to one training sample (n,).

        Of directions, for the cosine metric.
        """
        # From the differences: the expansion |x|^2 - 2xy + |y|^2 loses digits.
        apart = self._prepare(X) - self.train_[neighbor]
        squared = np.einsum("ij,ij->i", apart, apart, dtype=np.float64)
        return float(self.scale_) * np.sqrt(squared)
