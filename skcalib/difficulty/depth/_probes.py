"""Probes: a vote of the nearest training samples in every layer of a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from math import ceil
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._neighbors import NeighborSearch, drop
from ._activations import ActivationReader

# Training samples that `fit` asks whether they have a depth at all.
MAX_CHECKED = 1000


class LayerProbes:
    """Votes of neighbors on the activations of every layer.

    Every layer has its own copy of `search`. Classes are numbered from 0 on.
    """

    def __init__(self, search: NeighborSearch, *, exclude_self: bool, n_samples: int) -> None:
        if (k := search.n_neighbors) + exclude_self > n_samples:
            limit = "n_samples - 1" if exclude_self else "n_samples"
            raise ValueError(
                f"n_neighbors must be at most {limit}, got {k} with n_samples={n_samples}."
            )
        self.search = search
        self.exclude_self = exclude_self

    @property
    def take_tensors(self) -> bool:
        """Whether the probes take tensors on a device; those of scikit-learn need arrays."""
        return self.search.metric in ("euclidean", "cosine")

    def fit(self, reader: ActivationReader, X: Any, y_encoded: NDArray) -> tuple[NDArray, NDArray]:
        """Fit to the activations that `reader` finds for X.

        Return, for up to MAX_CHECKED of the samples, the classes (m,) by the last probe and the
        answers (m,) of the network.
        """
        self.reader = reader
        layers, final = reader.read_all(X)
        # Positions make a copy: a slice would keep the whole layer in memory.
        checked = np.arange(0, len(final), ceil(len(final) / MAX_CHECKED))
        last_layer = layers[-1][checked]
        self.probes: list[NeighborVote] = []
        while layers:  # emptied on the way: large activations are not kept twice
            vote = NeighborVote(copy(self.search))
            self.probes.append(vote.fit(layers.pop(0), y_encoded))
        return self.probes[-1].predict(last_layer), final[checked]

    def predict(self, X: Any, y_encoded: NDArray | None = None) -> tuple[NDArray, NDArray]:
        """Return the classes (n, n_layers) by the probes and the answers (n,) of the network.

        `y_encoded` (n,) are the classes of the labels, where they are known.
        """
        return self._ask(X, y_encoded, NeighborVote.winner)

    def predict_proba(self, X: Any, y_encoded: NDArray | None = None) -> NDArray[np.float64]:
        """Return class probabilities (n, n_layers, n_classes); `y_encoded` as in `predict`."""
        return self._ask(X, y_encoded, NeighborVote.proba)[0]

    def _ask(
        self, X: Any, y_encoded: NDArray | None, of_votes: Callable[..., NDArray]
    ) -> tuple[NDArray, NDArray]:
        """Return the results of the votes, and the answers of the network."""
        found, final = [], []
        for block, (layers, answers) in self.reader.read(X):
            labels = None if y_encoded is None else y_encoded[block]
            of_layers = [of_votes(*voters) for voters in self._voters(layers, labels)]
            found.append(np.stack(of_layers, axis=1))
            final.append(answers)
        return np.concatenate(found), np.concatenate(final)

    def _voters(
        self, layers: list[Any], y_encoded: NDArray | None
    ) -> Iterator[tuple[NeighborVote, NDArray]]:
        """Yield the probe of every layer and the neighbors (n, k) that vote there."""
        itself = None
        for probe, layer in zip(self.probes, layers):
            neighbors = probe.search.kneighbors(layer, one_more=self.exclude_self)
            if self.exclude_self:
                if itself is None:
                    # In the input, the first layer: later ones may map many samples to one point.
                    itself = probe.find_self(layer, neighbors, y_encoded)
                neighbors = drop(neighbors, itself)
            yield probe, neighbors


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
