"""Computations on dask arrays, all in this file.

The results of a function of chunks are combined in the graph, or stay in chunks. dask is imported
only where a user passes such an array, which is recognized by the module of its type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


def aligned(at_once: bool = False, /, **arrays: Any) -> list[Any]:
    """Return arrays, passed by the names of the arguments, in chunks of the same samples.

    The first is a dask array, whose chunks the others get; all columns come into one chunk.
    None stays None. Arrays in memory become part of the graph or, where all is computed `at_once`,
    an :class:`InMemory`, which :func:`reduce_chunks` takes.
    """
    import dask.array as da

    (name, first), *others = arrays.items()
    if not isinstance(first, da.Array) or first.ndim not in (1, 2):
        got = f"shape {first.shape}" if isinstance(first, da.Array) else type(first).__name__
        raise TypeError(
            f"{name} must be a dask array of one or two dimensions, got {got}; "
            "to_dask_array(lengths=True) makes one of a DataFrame."
        )
    if first.ndim == 2:
        first = first.rechunk({1: -1})
    return [first, *(_in_chunks_of(first, name, *other, at_once) for other in others)]


def _in_chunks_of(first: Any, first_name: str, name: str, values: Any, at_once: bool) -> Any:
    """Return `values` in the chunks of `first`, as :func:`aligned` does."""
    import dask.array as da

    if values is None:
        return None
    if not isinstance(values, da.Array):
        values = np.asarray(values)
        if at_once and values.shape[:1] == first.shape[:1]:
            return InMemory(values, first.chunks[0])
        values = da.from_array(values, chunks=-1)
    is_known = not np.isnan([*first.shape[:1], *values.shape[:1]]).any()
    if values.ndim == 2:
        values = values.rechunk({1: -1})
    if is_known and values.shape[:1] == first.shape[:1]:
        return values.rechunk({0: first.chunks[0]})
    # Chunks of unknown sizes are matched by their order.
    if is_known or values.numblocks[:1] != first.numblocks[:1]:
        raise ValueError(
            f"{name} must have the samples of {first_name}, in chunks of known sizes or in as "
            f"many, got shapes {values.shape} and {first.shape} in {values.numblocks} and "
            f"{first.numblocks} chunks."
        )
    return values


class InMemory(NamedTuple):
    """An array in memory beside arrays in chunks of these sizes; its parts go to their workers."""

    values: NDArray[Any]
    sizes: tuple[int, ...]

    @property
    def numblocks(self) -> tuple[int]:
        """Number of chunks, as of a dask array."""
        return (len(self.sizes),)

    def parts(self, client: Any) -> list[Any]:
        """Return the chunks; with a client, those that it has sent to the workers."""
        ends = np.cumsum(self.sizes)
        found = [self.values[end - size : end] for size, end in zip(self.sizes, ends)]
        return found if client is None else client.scatter(found, hash=False)


def every(array: Any, stride: int) -> NDArray[Any] | None:
    """Return every `stride`-th sample, in memory, of an array that :func:`aligned` returned."""
    if array is None:
        return None
    is_here = isinstance(array, InMemory)
    return array.values[::stride] if is_here else array[::stride].compute()


def distinct(labels: Any) -> NDArray[Any]:
    """Return the sorted values of all samples of what :func:`aligned` returned."""
    if isinstance(labels, InMemory):
        return np.unique(labels.values)
    found: Any = np.unique(labels)  # by dask, chunk by chunk
    return found.compute()


def _client() -> Any:
    """Return the client of a distributed scheduler, None with any other scheduler."""
    import dask

    client = getattr(dask.base.get_scheduler(), "__self__", None)
    return client if hasattr(client, "scatter") else None


def reduce_chunks(
    of_chunk: Callable[..., Any], combine: Callable[[Any, Any], Any], X: Any, *others: Any
) -> Any:
    """Return the results of ``of_chunk(X, *others)`` over :func:`aligned` arrays, combined.

    A list among the others has one entry for every chunk. The results are combined pair by pair in
    the graph: no process holds more than a few of them, and the client holds one.
    """
    import dask

    client = _client()
    # The workers keep what was sent to them for as long as this list exists.
    columns = [_blocks(array, X.numblocks[0], client) for array in (X, *others)]
    call, join = dask.delayed(of_chunk, traverse=False), dask.delayed(combine, traverse=False)
    results = [call(*chunks) for chunks in zip(*columns)]
    while len(results) > 1:
        pairs = zip(results[::2], results[1::2])
        results = [join(*pair) for pair in pairs] + results[len(results) - len(results) % 2 :]
    return results[0].compute()


def _blocks(array: Any, n_blocks: int, client: Any) -> Any:
    """Return one entry for every chunk: delayed, sent to the workers, as it is, or None."""
    if array is None:
        return [None] * n_blocks
    if isinstance(array, list):
        return array
    if isinstance(array, InMemory):
        return array.parts(client)
    return array.to_delayed().ravel()


def map_chunks(
    of_chunk: Callable[..., Any],
    state: Any,
    X: Any,
    *others: Any,
    dtype: Any,
    n_columns: int | None = None,
) -> Any:
    """Return ``of_chunk(state, X, *others)`` lazily, in chunks (n,) or (n, n_columns).

    The state is sent to every process once.
    """
    import dask
    import dask.array as da

    empty = np.empty((0,) if n_columns is None else (0, n_columns), dtype=dtype)
    arrays = [
        part
        for array in (X, *others)
        for part in ((None, None) if array is None else (array, "ij"[: array.ndim]))
    ]
    return da.blockwise(
        _of_samples,
        "ik"[: empty.ndim],
        *arrays,
        of_chunk=of_chunk,
        state=dask.delayed(state, traverse=False),
        empty=empty,
        new_axes=None if n_columns is None else {"k": n_columns},
        concatenate=True,
        align_arrays=False,
        dtype=dtype,
        meta=empty,
    )


def map_rows(of_chunk: Callable[..., Any], state: Any, name: str, X: Any) -> Any:
    """Return ``of_chunk(state, X)`` lazily, in chunks of the same rows; X is called `name`.

    The result for one row of equal numbers gives the dtype and the number of columns.
    """
    (X,) = aligned(**{name: X})
    row = np.full((1, *X.shape[1:]), 0.5 if X.ndim == 1 else 1 / X.shape[1], dtype=X.dtype)
    example = np.asarray(of_chunk(state, row))
    n_columns = None if example.ndim == 1 else example.shape[1]
    return map_chunks(of_chunk, state, X, dtype=example.dtype, n_columns=n_columns)


def _of_samples(X: Any, *others: Any, of_chunk: Callable[..., Any], state: Any, empty: Any) -> Any:
    # A mask may have left a chunk without samples.
    return of_chunk(state, X, *others) if len(X) else empty


def choose_samples(
    chosen: Callable[[Any], Any], of_chunk: Callable[..., Any], state: Any, X: Any, *others: Any
) -> list[Any]:
    """Return the samples of X and of the others in the mask ``chosen(scores)``, in chunks, lazily.

    The scores are ``of_chunk(state, X)``; one process gathers those of all samples. The mask is
    computed at once and stays with the workers.
    """
    import dask
    import dask.array as da

    if np.isnan(X.shape[0]):
        raise ValueError(
            "X must have chunks of known sizes, got unknown ones; compute_chunk_sizes() finds "
            "them."
        )
    scores = map_chunks(of_chunk, state, X, dtype=np.float64)
    whole = dask.delayed(chosen, traverse=False)(scores)
    mask = da.from_delayed(whole, shape=(len(X),), dtype=bool).rechunk((X.chunks[0],))
    # Within one graph, every chunk of X would be held until the last score is known.
    mask = mask.persist()
    return [array[mask] for array in (X, *others)]
