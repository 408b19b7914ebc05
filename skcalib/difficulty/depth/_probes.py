"""Probes: one classifier for every layer of a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone

from ._neighbors import NeighborVote, drop, resolve_algorithm


class LayerProbes:
    """Nearest-neighbor votes, or clones of a classifier, on the activations of every layer.

    The parameters are those of PredictionDepthScorer. Classes are numbered from 0 on.
    """

    def __init__(
        self,
        probe: Any,
        *,
        n_neighbors: int,
        metric: str | Callable,
        algorithm: str,
        exclude_self: bool,
        n_jobs: int | None,
    ) -> None:
        self.probe = probe
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.algorithm = resolve_algorithm(algorithm, metric)
        self.exclude_self = exclude_self
        self.n_jobs = n_jobs

    def check(self, n_samples: int) -> Self:
        """Raise unless the probes can be fitted to so many samples: before the training."""
        if self.probe is not None:
            if self.exclude_self:
                raise ValueError(
                    "exclude_self must be False where a probe is given: only nearest-neighbor "
                    "votes can leave a sample out, got True."
                )
        elif self.n_neighbors + self.exclude_self > n_samples:
            limit = "n_samples - 1" if self.exclude_self else "n_samples"
            raise ValueError(
                f"n_neighbors must be at most {limit}, got {self.n_neighbors} with "
                f"n_samples={n_samples}."
            )
        return self

    def fit(self, layers: list[NDArray], y_encoded: NDArray) -> Self:
        """Fit to activations (n, d), one array a layer, the input first; the list is used up."""
        if self.probe is None:
            self.probes = []
            while layers:  # Emptied on the way: large activations are not held twice.
                vote = NeighborVote(
                    self.n_neighbors,
                    metric=self.metric,
                    algorithm=self.algorithm,
                    n_jobs=self.n_jobs,
                )
                self.probes.append(vote.fit(layers.pop(0), y_encoded))
        else:
            self.probes = Parallel(n_jobs=self.n_jobs)(
                delayed(clone(self.probe).fit)(layer, y_encoded) for layer in layers
            )
        return self

    def predict(self, layers: list[NDArray], y_encoded: NDArray | None = None) -> NDArray:
        """Return classes (n, n_layers); `y_encoded` (n,) are those of the labels, where known."""
        if self.probe is None:
            return self._vote(layers, y_encoded).argmax(axis=2)
        return np.stack([p.predict(layer) for p, layer in zip(self.probes, layers)], axis=1)

    def predict_proba(self, layers: list[NDArray], y_encoded: NDArray | None = None) -> NDArray:
        """Return class probabilities (n, n_layers, n_classes)."""
        if self.probe is None:
            return self._vote(layers, y_encoded)
        return np.stack([p.predict_proba(layer) for p, layer in zip(self.probes, layers)], axis=1)

    def _vote(self, layers: list[NDArray], y_encoded: NDArray | None) -> NDArray[np.float64]:
        votes, itself = [], None
        for probe, layer in zip(self.probes, layers):
            neighbors = probe.kneighbors(layer, one_more=self.exclude_self)
            if self.exclude_self:
                if itself is None:
                    # By the input, which comes first: later layers may map many samples to one.
                    itself = probe.find_self(layer, neighbors, y_encoded)
                neighbors = drop(neighbors, itself)
            votes.append(probe.vote(neighbors))
        return np.stack(votes, axis=1)
