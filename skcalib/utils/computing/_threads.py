"""Chunks of rows, in as many threads as the BLAS has."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import TypeVar

from sklearn.utils import gen_batches
from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")
_threads_in_use = threading.Lock()


@cache
def _blas() -> ThreadpoolController:
    """Return the BLAS libraries of the process; finding them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


def blas_threads() -> int:
    """Return the number of threads in which the BLAS may compute."""
    return max((library["num_threads"] for library in _blas().info()), default=1)


@contextmanager
def one_blas_thread() -> Iterator[bool]:
    """Limit the BLAS to one thread; yield whether this caller has set that limit.

    The limit belongs to the process. Two callers who set and restore it at the same time could
    leave it wrong, so the second leaves it alone.
    """
    if not _threads_in_use.acquire(blocking=False):
        yield False
        return
    try:
        with _blas().limit(limits=1):
            yield True
    finally:
        _threads_in_use.release()


def for_chunks(
    compute: Callable[[slice], Result],
    n_rows: int,
    chunk_rows: int,
    collect: Callable[[Result], object] = lambda _: None,
) -> None:
    """Call ``collect(compute(rows))`` for every chunk of rows, and collect in their order.

    As many chunks are computed at once as the BLAS has threads, each with a single BLAS thread, so
    that computations other than matrix products use all cores, too.
    """
    chunks = list(gen_batches(n_rows, chunk_rows))
    n_threads = min(blas_threads(), len(chunks))
    with nullcontext(False) if n_threads == 1 else one_blas_thread() as is_limited:
        # A single chunk, or a second caller, computes in its own thread.
        if not is_limited:
            for rows in chunks:
                collect(compute(rows))
            return
        with ThreadPoolExecutor(n_threads) as pool:
            running: deque[Future[Result]] = deque()
            for rows in chunks:
                # Only a few chunks at a time, so that results do not pile up.
                if len(running) == 2 * n_threads:
                    collect(running.popleft().result())
                running.append(pool.submit(compute, rows))
            for future in running:
                collect(future.result())
