"""Probes: one classifier for every layer of a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from math import ceil
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone

from .._neighbors import NeighborSearch, drop
from ._activations import ActivationReader
from ._votes import NeighborVote

# Training samples that `fit` asks whether they have a depth at all.
MAX_CHECKED = 1000


class LayerProbes:
    """Nearest-neighbor votes, or clones of a classifier, on the activations of every layer.

    Classes are numbered from 0 on.

    Parameters
    ----------
    probe : classifier or None
        What is fitted to every layer; None means votes of what `search` finds.
    search : NeighborSearch
        Copied for every layer.
    exclude_self, n_jobs
        As in PredictionDepthScorer.
    """

    def __init__(
        self, probe: Any, search: NeighborSearch, *, exclude_self: bool, n_jobs: int | None
    ) -> None:
        self.probe = probe
        self.search = search
        self.exclude_self = exclude_self
        self.n_jobs = n_jobs

    @property
    def take_tensors(self) -> bool:
        """Whether the probes search where tensors lie; those of scikit-learn need arrays."""
        return self.probe is None and self.search.metric in ("euclidean", "cosine")

    def check(self, n_samples: int) -> Self:
        """Raise unless the probes can be fitted to so many samples: before the training."""
        if self.probe is not None:
            if self.exclude_self:
                raise ValueError(
                    "exclude_self must be False where a probe is given: only nearest-neighbor "
                    "votes can leave a sample out, got True."
                )
        elif (k := self.search.n_neighbors) + self.exclude_self > n_samples:
            limit = "n_samples - 1" if self.exclude_self else "n_samples"
            raise ValueError(
                f"n_neighbors must be at most {limit}, got {k} with n_samples={n_samples}."
            )
        return self

    def fit(self, reader: ActivationReader, X: Any, y_encoded: NDArray) -> tuple[NDArray, NDArray]:
        """Fit to what `reader` makes of X.

        Returns, for up to MAX_CHECKED of the samples, the classes (m,) by the last probe and the
        answers (m,) of the network.
        """
        self.reader = reader
        layers, final = reader.read_all(X)
        # Positions make a copy: the view of a slice would keep the whole layer in memory.
        checked = np.arange(0, len(final), ceil(len(final) / MAX_CHECKED))
        last_layer = layers[-1][checked]
        if self.probe is None:
            self.probes: list[Any] = []
            while layers:  # Emptied on the way: large activations are not held twice.
                vote = NeighborVote(copy(self.search))
                self.probes.append(vote.fit(layers.pop(0), y_encoded))
        else:
            self.probes = Parallel(n_jobs=self.n_jobs)(
                delayed(clone(self.probe).fit)(layer, y_encoded) for layer in layers
            )
        return self.probes[-1].predict(last_layer), final[checked]

    def predict(self, X: Any, y_encoded: NDArray | None = None) -> tuple[NDArray, NDArray]:
        """Return the classes (n, n_layers) by the probes and the answers (n,) of the network.

        `y_encoded` (n,) are the classes of the labels, where they are known.
        """
        return self._ask(X, y_encoded, NeighborVote.winner, "predict")

    def predict_proba(self, X: Any, y_encoded: NDArray | None = None) -> NDArray[np.float64]:
        """Return class probabilities (n, n_layers, n_classes); `y_encoded` as in `predict`."""
        return self._ask(X, y_encoded, NeighborVote.proba, "predict_proba")[0]

    def _ask(
        self, X: Any, y_encoded: NDArray | None, of_votes: Callable[..., NDArray], method: str
    ) -> tuple[NDArray, NDArray]:
        """Return what comes of the votes, or of a method of the classifiers, and the answers."""
        found, final = [], []
        for block, (layers, answers) in self.reader.read(X):
            if self.probe is None:
                labels = None if y_encoded is None else y_encoded[block]
                of_layers = [of_votes(*voters) for voters in self._voters(layers, labels)]
            else:
                pairs = zip(self.probes, layers)
                of_layers = [getattr(probe, method)(layer) for probe, layer in pairs]
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
                    # By the input, which comes first: later layers may map many samples to one.
                    itself = probe.find_self(layer, neighbors, y_encoded)
                neighbors = drop(neighbors, itself)
            yield probe, neighbors
