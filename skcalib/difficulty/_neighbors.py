"""Exact nearest neighbors, searched in float32 where its digits suffice, and their votes."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches

from ..utils._backends import compute_row_squares, exact_products, get_back_end, to_host
from ..utils._output import import_optional

# Up to this number of features, scikit-learn is as fast as faiss.
SMALL_DIM = 32
# Below this fraction of the squared norm of x, rounding in |x|^2 - 2xy + |y|^2 moves a squared
# distance in float32 by more than about 0.1 %. (So close to x, y has about the norm of x.)
CANCELLATION = 2e-4
# Elements prepared at a time, so that intermediate results in float64 take little memory.
BLOCK_SIZE = 2**22
# On an accelerator: distances computed at a time, and training samples among them.
TILE_SIZE, TILE_TRAIN = 2**26, 2**16


def _resolve(algorithm: str, metric: object) -> str:
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
    """Return neighbors (n, k) out of (n, k + 1): without the excluded sample, else the last.

    `excluded` (n,) is -1 where no sample is excluded.
    """
    kept = neighbors != excluded[:, np.newaxis]
    # Exactly one False in every row keeps the result rectangular.
    kept[kept.all(axis=1), -1] = False
    return neighbors[kept].reshape(len(neighbors), -1)


class NeighborSearch:
    """Exact search of the nearest training samples.

    `algorithm` is "brute" (scikit-learn), "faiss", or "auto": faiss if it is installed and has the
    metric. On an accelerator, torch searches. faiss and torch have the metrics "euclidean" and
    "cosine", scikit-learn has others; only scikit-learn uses `n_jobs`. Errors call the samples
    `name`.
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
        self.algorithm = _resolve(algorithm, metric)
        self.n_jobs = n_jobs
        self.name = name

    def fit(self, X: Any) -> Self:
        """Keep the training samples (n, d), as float32; those of a tensor on its device."""
        self.center_, self.scale_ = np.zeros(X.shape[1]), np.float32(1)
        if self.metric not in ("euclidean", "cosine"):
            self.train_ = self._prepare(to_host(X[:]))
        else:
            xp, _ = get_back_end(X)
            # Centering changes no neighbor; far from the origin, float32 would lose digits.
            sums = (xp.sum(self._direction(X[b]), 0, dtype=xp.float64) for b in _iter_blocks(X))
            self.center_ = to_host(sum(sums)) / len(X)
            centered = self._prepare(X)
            largest = float(xp.stack([abs(centered[b]).max() for b in _iter_blocks(X)]).max())
            smallest = np.finfo(np.float32).tiny
            if largest < smallest and bool((X[:] != X[:1]).any()):
                raise ValueError(
                    f"{self.name} must have differences of {smallest:.1g} or more, which float32 "
                    f"can hold, got at most {largest:.1g}."
                )
            # Squares of values up to 1 do not overflow. The scale stays 1 if all values are 0.
            self.scale_ = np.float32(largest) or self.scale_
            centered /= self.scale_
            self.train_ = centered
        self.in_float64_ = False
        if get_back_end(self.train_)[0] is np:
            self.search_ = self._search_of(self.train_)
            self.in_float64_ = self.algorithm == "brute" or X.shape[1] <= SMALL_DIM
            if not self.in_float64_:
                import_optional("faiss", extra="faiss")
        return self

    def _search_of(self, train: NDArray) -> NearestNeighbors:
        """Return scikit-learn's search among prepared training samples."""
        # For unit vectors, |x - y|^2 = 2 (1 - cosine): the same order as the cosine distance.
        metric = "euclidean" if self.metric == "cosine" else self.metric
        search = NearestNeighbors(algorithm="brute", metric=metric, n_jobs=self.n_jobs)
        return search.fit(train)

    def _direction(self, rows: Any) -> Any:
        """Return the rows, scaled to unit length for the cosine metric."""
        if self.metric != "cosine":
            return rows
        # In float64, so that the number type of X makes no difference.
        if get_back_end(rows)[0] is np:
            return normalize(rows.astype(np.float64))
        wide = rows.double()
        return wide / compute_row_squares(wide).sqrt().clip(min=np.finfo(np.float64).tiny)[:, None]

    def _prepare(self, X: Any) -> Any:
        """Return samples as float32, minus the center and divided by the scale."""
        xp, place = get_back_end(X)
        center = place(self.center_)
        where = {} if xp is np else {"device": X.device}
        prepared = xp.empty(X.shape, dtype=xp.float32, **where)
        finite = True
        for block in _iter_blocks(X):
            part = prepared[block]
            # The difference is taken in the precision of X and rounded when it is stored.
            with np.errstate(over="ignore", invalid="ignore"):
                part[:] = self._direction(X[block]) - center
            finite = xp.isfinite(part).all() & finite
            part /= self.scale_
        # Asked once: an accelerator would wait for every block.
        if not finite:
            raise ValueError(f"{self.name} must be finite in float32, got NaN or infinity.")
        return prepared

    def _beside_train(self, X: Any) -> Any:
        """Return prepared samples on the device of the training samples."""
        xp, place = get_back_end(self.train_)
        if xp is np:
            return self._prepare(to_host(X[:]))
        return self._prepare(place(X) if get_back_end(X)[0] is np else X).to(self.train_.device)

    def kneighbors(self, X: Any, *, one_more: bool = False) -> NDArray:
        """Return the indices (n, n_neighbors) of the nearest training samples, nearest first."""
        n_fetched = self.n_neighbors + one_more
        queries = self._beside_train(X)
        if self.in_float64_:
            return self._search_float64(queries, n_fetched)
        if get_back_end(queries)[0] is np:
            faiss = import_optional("faiss", extra="faiss")
            squared, indices = faiss.knn(queries, self.train_, n_fetched)
        else:
            squared, indices = find_nearest_in_tiles(queries, self.train_, n_fetched)
        # Where neighbors are close to each other but far from the origin, cancellation leaves no
        # digits of the distance in float32. Those queries are searched again in float64.
        again = squared[:, -1] < CANCELLATION * compute_row_squares(queries)
        if again.any():
            indices[again] = self._search_float64(queries[again], n_fetched)
        return to_host(indices)

    def _search_float64(self, queries: Any, n_fetched: int) -> Any:
        """Return the indices (n, n_fetched) of the nearest training samples, found in float64."""
        if get_back_end(queries)[0] is np:
            return self.search_.kneighbors(queries, n_fetched, return_distance=False)
        return find_nearest_in_tiles(queries.double(), self.train_, n_fetched)[1]

    def is_equal(self, X: Any, neighbors: NDArray) -> NDArray[np.bool_]:
        """Return which of its neighbors (n, k) every sample of X equals, (n, k)."""
        xp, place = get_back_end(self.train_)
        queries = self._beside_train(X)
        equal = [(self.train_[place(column)] == queries).all(1) for column in neighbors.T]
        return to_host(xp.stack(equal, 1))

    def distance(self, X: Any, neighbor: NDArray) -> NDArray[np.float64]:
        """Return the Euclidean distance (n,) of every sample to one training sample (n,).

        For the cosine metric it is the distance of unit vectors.
        """
        _, place = get_back_end(self.train_)
        # From the differences: |x|^2 - 2xy + |y|^2 would lose digits.
        difference = self._beside_train(X) - self.train_[place(neighbor)]
        return float(self.scale_) * np.sqrt(to_host(compute_row_squares(difference)))

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self).copy()
        if "train_" in state and "search_" not in state:
            # On the host: the device may not exist where the state is loaded.
            state["train_"] = to_host(self.train_)
            # scikit-learn searches after loading, so that faiss need not be installed.
            state["search_"], state["in_float64_"] = self._search_of(state["train_"]), True
        return state


def _iter_blocks(X: Any) -> Iterator[slice]:
    """Yield slices of rows that hold at most `BLOCK_SIZE` elements."""
    return gen_batches(len(X), max(1, BLOCK_SIZE // X.shape[1]))


def find_nearest_in_tiles(queries: Any, train: Any, k: int) -> tuple[Any, Any]:
    """Return squared distances and indices (n, k) of the nearest training samples, as tensors.

    Exact, by ``|x|^2 - 2 x y + |y|^2`` in the dtype of the queries.
    """
    xp, _ = get_back_end(train)
    n_train = max(k, TILE_TRAIN)
    squared = xp.full((len(queries), k), xp.inf, dtype=queries.dtype, device=train.device)
    indices = xp.zeros((len(queries), k), dtype=xp.int64, device=train.device)
    with exact_products(train):
        for part in gen_batches(len(train), n_train):
            y = train[part].to(queries.dtype)
            y_squares = y.square().sum(1)
            for rows in gen_batches(len(queries), max(1, TILE_SIZE // n_train)):
                x = queries[rows]
                products = xp.addmm(y_squares, x, y.T, alpha=-2)
                distance = products + x.square().sum(1)[:, None]
                near, where = distance.topk(min(k, len(y)), largest=False)
                # Merged with the nearest of earlier parts.
                near = xp.cat([squared[rows], near], 1)
                where = xp.cat([indices[rows], where + part.start], 1)
                squared[rows], best = near.topk(k, largest=False)
                indices[rows] = where.gather(1, best)
    return squared, indices


class NeighborVote:
    """Fractions of the classes among the nearest training samples."""

    def __init__(self, search: NeighborSearch) -> None:
        self.search = search

    def fit(self, X: Any, y_encoded: NDArray) -> Self:
        """Keep the training samples (n, d), and their classes (n,), 0 to K - 1."""
        self.search.fit(X)
        self.y_encoded_, self.n_classes_ = y_encoded, y_encoded.max() + 1
        return self

    def find_self(
        self, X: Any, neighbors: NDArray, y_encoded: NDArray | None = None
    ) -> NDArray[np.int64]:
        """Return the training sample (n,) that equals every sample of X, -1 for a new sample.

        It is the first neighbor at distance 0 with the class of the sample; without classes, or
        without such a neighbor, the first at distance 0. Duplicates of one class cast equal
        votes, so it does not matter which of them is left out.
        """
        is_equal = self.search.is_equal(X, neighbors)
        if y_encoded is not None:
            same_class = is_equal & (self.y_encoded_[neighbors] == y_encoded[:, np.newaxis])
            is_equal = np.where(same_class.any(axis=1, keepdims=True), same_class, is_equal)
        first = neighbors[np.arange(len(X)), is_equal.argmax(axis=1)]
        return np.where(is_equal.any(axis=1), first, -1)

    def proba(self, neighbors: NDArray) -> NDArray[np.float64]:
        """Return the fraction of every class (n, n_classes) among the neighbors (n, k)."""
        n_samples, n_votes = neighbors.shape
        keys = self.y_encoded_[neighbors] + np.arange(n_samples)[:, None] * self.n_classes_
        counts = np.bincount(keys.ravel(), minlength=n_samples * self.n_classes_)
        return counts.reshape(n_samples, self.n_classes_) / n_votes

    def winner(self, neighbors: NDArray) -> NDArray[np.intp]:
        """Return the class (n,) with most votes, the smallest one of a tie.

        Without a table of all classes, which would be almost empty with few votes.
        """
        votes = np.sort(self.y_encoded_[neighbors], axis=1)
        position = np.broadcast_to(np.arange(votes.shape[1]), votes.shape)
        is_new = np.ones(votes.shape, dtype=bool)
        is_new[:, 1:] = votes[:, 1:] != votes[:, :-1]
        first_of_class = np.maximum.accumulate(np.where(is_new, position, 0), axis=1)
        # Votes of the class so far: argmax finds the first place where the most are reached.
        place = (position - first_of_class).argmax(axis=1)
        return votes[np.arange(len(votes)), place]

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return the class (n,) with most votes."""
        return self.winner(self.search.kneighbors(X))
