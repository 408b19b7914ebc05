"""Progress of a fit that takes long: its steps, printed with their seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter
from typing import Any

from sklearn.utils.parallel import Parallel

Telling = Callable[[str], AbstractContextManager[None]]


def silent(name: str) -> AbstractContextManager[None]:
    """Return a context for a step that prints nothing."""
    return nullcontext()


def telling(source: str, verbose: int) -> Telling:
    """Return a function that makes a context for a step, which prints its name and seconds.

    Nothing is printed if `verbose` is 0, or for a step that fails.
    """
    if not verbose:
        return silent

    @contextmanager
    def step(name: str) -> Iterator[None]:
        start = perf_counter()
        yield
        sys.stdout.write(f"[{source}] {name}, {perf_counter() - start:.1f} s\n")
        sys.stdout.flush()

    return step


def in_turn(calls: Iterable[Any], n_jobs: int | None, step: Telling, name: str) -> list[Any]:
    """Return the results of delayed calls in their order; each call is a step of its own."""
    calls = list(calls)
    if step is silent:
        return Parallel(n_jobs=n_jobs)(calls)
    try:
        coming = Parallel(n_jobs=n_jobs, return_as="generator")(calls)
    except ValueError:  # a backend of joblib that returns all results at once
        with step(f"{name} 1 to {len(calls)}"):
            return Parallel(n_jobs=n_jobs)(calls)
    results = []
    for k in range(1, len(calls) + 1):
        with step(f"{name} {k} of {len(calls)}"):
            results.append(next(coming))
    return results
