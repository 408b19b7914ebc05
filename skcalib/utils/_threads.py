"""Chunks of rows, each in a thread of its own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, TypeVar

from sklearn.utils import gen_batches
from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")


@cache
def _controller() -> ThreadpoolController:
    """Return the thread pools of the process; to look for them takes milliseconds."""
    return ThreadpoolController()


def blas_threads() -> int:
    """Return the number of threads in which the BLAS may compute."""
    pools = _controller().select(user_api="blas").info()
    return max((pool["num_threads"] for pool in pools), default=1)


def _may_limit() -> bool:
    # The limit is one of the process: two threads that set and restore it leave it wrong.
    return threading.current_thread() is threading.main_thread()


def single_blas_thread() -> AbstractContextManager[Any]:
    """Hold the BLAS to one thread, where nobody else can be changing the limit."""
    return _controller().limit(limits=1, user_api="blas") if _may_limit() else nullcontext()


def map_chunks(
    function: Callable[[slice, Any], Result],
    n_rows: int,
    chunk_rows: int,
    make_buffers: Callable[[], Any],
) -> Iterator[Result]:
    """Yield ``function(rows, buffers)`` for every chunk of rows, in their order.

    As many chunks run at once as the BLAS has threads, each with a BLAS of one thread: what is
    not a matrix product takes its share of the cores then, too.

    Parameters
    ----------
    function : function of (rows, buffers)
        Takes a slice of rows, and buffers that no other chunk uses meanwhile.
    n_rows, chunk_rows : int
        Number of rows in all and in a chunk.
    make_buffers : function
        Allocates the buffers of a thread.
    """
    chunks = list(gen_batches(n_rows, chunk_rows))
    n_threads = min(blas_threads(), len(chunks)) if _may_limit() and len(chunks) > 1 else 1
    if n_threads == 1:
        buffers = make_buffers()
        for rows in chunks:
            yield function(rows, buffers)
        return
    local = threading.local()

    def run(rows: slice) -> Result:
        if not hasattr(local, "buffers"):
            local.buffers = make_buffers()
        return function(rows, local.buffers)

    pending: deque[Future[Result]] = deque()
    with single_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        for rows in chunks:
            pending.append(pool.submit(run, rows))
            if len(pending) > n_threads:  # so that results do not pile up
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
