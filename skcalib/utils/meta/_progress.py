"""What a fit that takes long tells meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter

Telling = Callable[[str], AbstractContextManager[None]]


def telling(source: str, verbose: int) -> Telling:
    """Return a context for every step of a fit: it prints the step and its seconds at the end.

    Nothing is printed if `verbose` is 0, or of a step that fails.
    """

    @contextmanager
    def step(name: str) -> Iterator[None]:
        start = perf_counter()
        yield
        if verbose:
            sys.stdout.write(f"[{source}] {name}, {perf_counter() - start:.1f} s\n")
            sys.stdout.flush()

    return step


silent = telling("", 0)
