"""Probes: one classifier for every layer of a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone

from ._neighbors import NeighborVote, resolve_algorithm
from ._own_rows import OwnRows


class LayerProbes:
    """Nearest-neighbor votes, or clones of a classifier, on the activations of every layer.

    The parameters are those of PredictionDepthScorer. Classes are codes from 0 on.
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

    def check(self, n_rows: int) -> LayerProbes:
        """Raise unless the probes can be fitted to this number of rows: before the training."""
        if self.probe is not None:
            if self.exclude_self:
                raise ValueError("exclude_self=True needs nearest-neighbor probes: probe=None.")
        elif self.n_neighbors + self.exclude_self > n_rows:
            others = "other " if self.exclude_self else ""
            raise ValueError(
                f"n_neighbors={self.n_neighbors} must not exceed the number of {others}training "
                f"rows, got n_samples={n_rows}."
            )
        return self

    def fit(self, layers: list[NDArray], codes: NDArray) -> LayerProbes:
        """Fit to activations (n, d), one array a layer, the input first; the list is used up."""
        self.own_rows = OwnRows().fit(layers[0], codes) if self.exclude_self else None
        if self.probe is None:
            self.probes = []
            while layers:  # Emptied on the way: large activations are not held twice.
                vote = NeighborVote(
                    self.n_neighbors,
                    metric=self.metric,
                    algorithm=self.algorithm,
                    n_jobs=self.n_jobs,
                )
                self.probes.append(vote.fit(layers.pop(0), codes))
        else:
            self.probes = Parallel(n_jobs=self.n_jobs)(
                delayed(clone(self.probe).fit)(layer, codes) for layer in layers
            )
        return self

    def _exclude(self, layers: list[NDArray], codes: NDArray | None) -> tuple:
        return () if self.own_rows is None else (self.own_rows.find(layers[0], codes),)

    def predict(self, layers: list[NDArray], codes: NDArray | None = None) -> NDArray:
        """Return class codes (n, n_layers); `codes` (n,) are the labels, where they are known."""
        exclude = self._exclude(layers, codes)
        return np.stack([p.predict(layer, *exclude) for p, layer in zip(self.probes, layers)], 1)

    def predict_proba(self, layers: list[NDArray], codes: NDArray | None = None) -> NDArray:
        """Return class probabilities (n, n_layers, n_classes)."""
        exclude = self._exclude(layers, codes)
        return np.stack(
            [p.predict_proba(layer, *exclude) for p, layer in zip(self.probes, layers)], 1
        )
