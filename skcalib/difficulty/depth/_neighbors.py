"""Exact k-nearest-neighbor vote, in float32 that does not lose the neighbors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from ...utils import import_optional

# Up to this dimension the direct distances of faiss cost no more than its matrix product.
DIRECT_DIM = 32
# Below this share of the squared norms, rounding in the matrix product moves a squared distance
# by more than about 0.1 %: such queries are searched again with direct distances.
CANCELLATION = 1e-4


def resolve_algorithm(algorithm: str, metric: object) -> str:
    """Return "faiss", "torch" or "brute" for `algorithm`, which may be "auto"."""
    by_product = metric in ("euclidean", "cosine")
    if algorithm in ("faiss", "torch") and not by_product:
        raise ValueError(
            f"algorithm={algorithm!r} needs metric 'euclidean' or 'cosine', got {metric!r}: "
            "use algorithm='brute'."
        )
    if algorithm != "auto":
        return algorithm
    if not by_product:
        return "brute"
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return "torch"
    return "brute" if find_spec("faiss") is None else "faiss"


def _is_cancelled(distances: NDArray, train: NDArray, queries: NDArray) -> NDArray:
    """Whether squared distances are so small that the matrix product has lost their digits."""
    norms = np.einsum("ij,ij->i", queries, queries)
    return distances < CANCELLATION * (norms + np.einsum("ij,ij->i", train, train).max())


@contextmanager
def _faiss_by_difference(faiss: ModuleType) -> Iterator[None]:
    """Have faiss take differences of coordinates instead of |x|^2 - 2xy + |y|^2."""
    former = faiss.cvar.distance_compute_blas_threshold
    faiss.cvar.distance_compute_blas_threshold = 2**31 - 1
    try:
        yield
    finally:
        faiss.cvar.distance_compute_blas_threshold = former


def _faiss_neighbors(train: NDArray, queries: NDArray, n_neighbors: int) -> NDArray:
    faiss = import_optional("faiss", extra="faiss")
    if train.shape[1] <= DIRECT_DIM:
        with _faiss_by_difference(faiss):
            return faiss.knn(queries, train, n_neighbors)[1]
    distances, indices = faiss.knn(queries, train, n_neighbors)
    again = _is_cancelled(distances[:, -1], train, queries)
    if again.any():
        with _faiss_by_difference(faiss):
            indices[again] = faiss.knn(queries[again], train, n_neighbors)[1]
    return indices


def _torch_neighbors(train: NDArray, queries: NDArray, n_neighbors: int) -> NDArray:
    torch = import_optional("torch", extra="nets")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = torch.from_numpy(train).to(device)

    def search(part: NDArray, mode: str) -> tuple[NDArray, NDArray]:
        blocks = torch.from_numpy(part).split(max(1, 2**27 // len(train)))
        found = [
            torch.cdist(block.to(device), rows, compute_mode=mode).topk(n_neighbors, largest=False)
            for block in blocks
        ]
        indices = torch.cat([block.indices for block in found]).numpy(force=True)
        furthest = torch.cat([block.values[:, -1] for block in found]).numpy(force=True)
        return indices, furthest**2

    indices, distances = search(queries, "use_mm_for_euclid_dist")
    again = _is_cancelled(distances, train, queries)
    if again.any():
        indices[again] = search(queries[again], "donot_use_mm_for_euclid_dist")[0]
    return indices


class NeighborVote:
    """Share of the labels among the nearest training rows.

    Parameters
    ----------
    n_neighbors : int
        Rows that vote.
    metric : str or callable
        "euclidean", "cosine", or, for the algorithm "brute", any of scikit-learn.
    algorithm : {"faiss", "torch", "brute"}
        Who searches; "brute" is scikit-learn.
    n_jobs : int or None
        For "brute"; the others use the threads that OpenMP or the device give them.
    """

    def __init__(
        self, n_neighbors: int, *, metric: object, algorithm: str, n_jobs: int | None = None
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.algorithm = algorithm
        self.n_jobs = n_jobs

    def fit(self, X: NDArray, codes: NDArray) -> NeighborVote:
        """Keep the training rows (n, d), as float32, and their class codes (n,)."""
        self.codes_, self.n_classes_ = codes, codes.max() + 1
        self.centre_, self.scale_ = np.zeros(X.shape[1]), np.float32(1)
        if self.metric in ("euclidean", "cosine"):
            # Neighbors do not change; far from the origin, float32 would lose their digits.
            self.centre_ = self._direction(X).mean(axis=0, dtype=np.float64)
            self.train_ = self._prepare(X)
            self.scale_ = np.abs(self.train_).max() or self.scale_
            self.train_ /= self.scale_
        else:
            self.train_ = self._prepare(X)
        return self

    def _direction(self, X: NDArray) -> NDArray:
        return normalize(X) if self.metric == "cosine" else X

    def _prepare(self, X: NDArray) -> NDArray:
        moved = np.empty(X.shape, dtype=np.float32)
        # The difference is taken in the precision of X and rounded on its way out.
        with np.errstate(over="ignore", invalid="ignore"):
            np.subtract(self._direction(X), self.centre_, out=moved, casting="same_kind")
        if not np.isfinite(moved).all():
            raise ValueError("Activations must be finite in float32, got NaN or infinity.")
        moved /= self.scale_
        return moved

    def kneighbors(self, X: NDArray, exclude: NDArray | None = None) -> NDArray:
        """Return the indices (n, n_neighbors) of the nearest training rows, in no given order.

        `exclude` (n,) names for every query a training row that must not count; -1 for none.
        """
        queries = self._prepare(X)
        n_fetched = self.n_neighbors + (exclude is not None)
        if self.algorithm == "faiss":
            found = _faiss_neighbors(self.train_, queries, n_fetched)
        elif self.algorithm == "torch":
            found = _torch_neighbors(self.train_, queries, n_fetched)
        else:
            metric = "euclidean" if self.metric == "cosine" else self.metric
            search = NearestNeighbors(
                n_neighbors=n_fetched, algorithm="brute", metric=metric, n_jobs=self.n_jobs
            )
            found = search.fit(self.train_).kneighbors(queries, return_distance=False)
        if exclude is None:
            return found
        keep = found != exclude[:, None]
        keep[keep.all(axis=1), -1] = False
        return found[keep].reshape(len(X), self.n_neighbors)

    def predict_proba(self, X: NDArray, exclude: NDArray | None = None) -> NDArray:
        """Return the share of the votes (n, n_classes)."""
        votes = self.codes_[self.kneighbors(X, exclude)]
        cells = votes + np.arange(len(X))[:, None] * self.n_classes_
        counts = np.bincount(cells.ravel(), minlength=len(X) * self.n_classes_)
        return counts.reshape(len(X), self.n_classes_) / self.n_neighbors

    def predict(self, X: NDArray, exclude: NDArray | None = None) -> NDArray:
        """Return the code (n,) with most votes; the smallest of those that tie."""
        return self.predict_proba(X, exclude).argmax(axis=1)
