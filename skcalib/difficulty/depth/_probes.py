"""Probes: a vote of the nearest training samples in every layer of a network."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._neighbors import NeighborSearch


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
        cells = self.y_encoded_[neighbors] + np.arange(n_samples)[:, None] * self.n_classes_
        counts = np.bincount(cells.ravel(), minlength=n_samples * self.n_classes_)
        return counts.reshape(n_samples, self.n_classes_) / n_votes

    def winner(self, neighbors: NDArray) -> NDArray[np.intp]:
        """Return the class (n,) with most votes, the smallest one of a tie.

        It needs no table of all classes, which few votes would leave almost empty.
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
