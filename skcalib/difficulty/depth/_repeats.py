"""One repeat of the example-difficulty study: a split, a network, and its answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from ...utils._labels import as_labels
from ...utils._private import _safe_indexing
from ..records import iteration_learned
from ._training import default_network, seeded, train_recorded


class Plan(NamedTuple):
    """What one repeat does: the samples it holds out (n,), and its seed."""

    held_out: NDArray
    seed: int


class Repeat(NamedTuple):
    """The answers of a network for every sample, (n,), and the classes by its probes, (n, L)."""

    predictions: NDArray
    depth: NDArray
    iteration_learned: NDArray
    probe_votes: NDArray
    layer_names: list[str]


def plan_repeats(
    n_samples: int, n_test: int, random_state: np.random.RandomState
) -> Iterator[Plan]:
    """Yield plans without end; every sample is held out equally often, give or take one.

    Each single split is uniformly random.
    """
    waiting = random_state.permutation(n_samples)  # not held out in this round so far
    while True:
        chosen, waiting = waiting[:n_test], waiting[n_test:]
        if len(chosen) < n_test:
            # The next round starts with samples that are not already in this split.
            others = random_state.permutation(np.setdiff1d(np.arange(n_samples), chosen))
            n_missing = n_test - len(chosen)
            # `chosen` belongs to the old round: the new one has to hold it out again.
            waiting = random_state.permutation(np.concatenate([others[n_missing:], chosen]))
            chosen = np.concatenate([chosen, others[:n_missing]])
        held_out = np.zeros(n_samples, dtype=bool)
        held_out[chosen] = True
        yield Plan(held_out, int(random_state.randint(np.iinfo(np.int32).max)))


def run_repeat(
    plan: Plan, scorer: Any, n_probe_samples: int | None, X: Any, y: NDArray, sample_weight: Any
) -> Repeat:
    """Train a network on the samples that are not held out, and let it judge all."""
    train = np.flatnonzero(~plan.held_out)
    X_train, y_train = _safe_indexing(X, train), y[train]
    weight = None if sample_weight is None else sample_weight[train]
    estimator = scorer.estimator
    model = default_network(plan.seed) if estimator is None else seeded(estimator, plan.seed)
    history = train_recorded(model, X_train, y_train, X, sample_weight=weight, seed=plan.seed)
    predictions = as_labels(model.predict(X), name="predictions")
    # The probes are fitted to training samples only, and then asked about all.
    fitted = clone(scorer).set_params(estimator=FrozenEstimator(model), random_state=plan.seed)
    if n_probe_samples is not None:
        drawn = np.sort(np.random.RandomState(plan.seed).permutation(len(train))[:n_probe_samples])
        X_train, y_train = _safe_indexing(X_train, drawn), y_train[drawn]
    fitted._fit_probes(X_train, y_train, None)
    by_probe, final = fitted._answers(X, y)
    depth = fitted._depth(by_probe, final, y)
    classes = np.unique(y)
    # One byte for each vote, up to 256 classes.
    votes = np.searchsorted(classes, by_probe).astype(np.min_scalar_type(len(classes) - 1))
    # Without a record of epochs the iteration is NaN.
    unknown = np.full(len(y), np.nan)
    learned = iteration_learned(history, final=predictions) if history else unknown
    return Repeat(predictions, depth, learned, votes, fitted.layer_names_)
