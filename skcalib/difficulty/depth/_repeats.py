"""One repeat of the example-difficulty study, and the folder that remembers it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from ...utils._private import _safe_indexing
from ..records import iteration_learned
from ._training import default_network, seeded, train_recorded


class Plan(NamedTuple):
    """What one repeat does: the rows it holds out (n,), and its seed."""

    held_out: NDArray
    seed: int


class Repeat(NamedTuple):
    """What one network says about every row, all of shape (n,)."""

    predictions: NDArray
    depth: NDArray
    iteration_learned: NDArray


def plan_repeats(n_rows: int, n_test: int, random_state: np.random.RandomState) -> Iterator[Plan]:
    """Yield plans without end; any row is held out as often as any other, give or take one.

    Every split by itself is a uniformly random one.
    """
    waiting = random_state.permutation(n_rows)
    while True:
        chosen, waiting = waiting[:n_test], waiting[n_test:]
        if len(chosen) < n_test:
            # The next round starts with rows that are not already in this split.
            others = random_state.permutation(np.setdiff1d(np.arange(n_rows), chosen))
            missing = n_test - len(chosen)
            rest = np.concatenate([others[missing:], chosen])
            chosen = np.concatenate([chosen, others[:missing]])
            waiting = random_state.permutation(rest)
        held_out = np.zeros(n_rows, dtype=bool)
        held_out[chosen] = True
        yield Plan(held_out, int(random_state.randint(np.iinfo(np.int32).max)))


def run_repeat(scorer: Any, X: Any, y: NDArray, plan: Plan, sample_weight: Any) -> Repeat:
    """Train a network on the rows that are not held out, and let it judge all rows."""
    train = np.flatnonzero(~plan.held_out)
    X_train, y_train = _safe_indexing(X, train), y[train]
    weight = None if sample_weight is None else sample_weight[train]
    estimator = scorer.estimator
    model = default_network(plan.seed) if estimator is None else seeded(estimator, plan.seed)
    history = train_recorded(model, X_train, y_train, X, sample_weight=weight, seed=plan.seed)
    predictions = model.predict(X)
    fitted = clone(scorer).set_params(estimator=FrozenEstimator(model), random_state=plan.seed)
    depth = fitted.fit(X_train, y_train).difficulty(X, y)
    learned = np.full(len(y), np.nan)
    if history:
        learned = iteration_learned(history, final=predictions)
    return Repeat(predictions, depth, learned)


def recall_or_run(folder: Path | None, number: int, key: str, *task: Any) -> Repeat:
    """Return the repeat from the folder, or run it and leave it there."""
    if folder is None:
        return run_repeat(*task)
    path = folder / f"repeat-{number:04d}.npz"
    if path.exists():
        with np.load(path) as stored:
            if str(stored["key"]) != key:
                raise ValueError(
                    f"folder must hold this study alone: {path} is of other data, of another "
                    "estimator or of another random_state."
                )
            return Repeat(*(stored[name] for name in Repeat._fields))
    repeat = run_repeat(*task)
    # An interrupted write leaves no file under the name that is read.
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    with unfinished.open("wb") as file:
        np.savez_compressed(file, key=key, **repeat._asdict())
    unfinished.replace(path)
    return repeat
