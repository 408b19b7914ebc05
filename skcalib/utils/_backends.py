"""Arrays that are not numpy's (dask, tensors on a device), threads, and state of the process."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache, partial, wraps
from inspect import signature
from threading import RLock, current_thread, main_thread
from typing import Any, NamedTuple, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import assert_all_finite, gen_batches
from threadpoolctl import ThreadpoolController

# State of the process: the handler of Ctrl-C, torch's generators and the default device.


@contextmanager
def raise_ctrl_c() -> Iterator[Callable[[], None]]:
    """Raise KeyboardInterrupt at the end of the block where Ctrl-C was swallowed within it.

    MLPClassifier and skorch catch KeyboardInterrupt, and `fit` returns a half-trained network as
    if it were whole. Python itself swallows it within `__del__` and the callbacks of weak
    references, which `import` has for every module, and the training would go on. So the block
    gets a function, which long computations call every now and then: it raises at once. The
    exception alone may also come from a callback that ends the training, such as EarlyStopping;
    the signal is always Ctrl-C.
    """
    interrupted = False

    def raise_if_interrupted() -> None:
        if interrupted:
            raise KeyboardInterrupt

    former = signal.getsignal(signal.SIGINT)
    # Only the main thread gets signals, and without a handler in Python, Ctrl-C raises nothing.
    if current_thread() is not main_thread() or not callable(former):
        yield raise_if_interrupted
        return

    def remember(number: int, frame: Any) -> None:
        nonlocal interrupted
        try:
            former(number, frame)
        except KeyboardInterrupt:
            interrupted = True
            raise

    signal.signal(signal.SIGINT, remember)
    try:
        yield raise_if_interrupted
    finally:
        signal.signal(signal.SIGINT, former)
    raise_if_interrupted()


_GENERATOR = RLock()


def _forget_other_threads() -> None:
    """Make a new lock in a forked process: the thread that holds the old one is not there."""
    global _GENERATOR
    _GENERATOR = RLock()


if hasattr(os, "register_at_fork"):  # the thread that holds the lock is not in the child
    os.register_at_fork(after_in_child=_forget_other_threads)


@contextmanager
def seed_torch(seed: int, device: Any = "cpu") -> Iterator[None]:
    """Seed torch's generators of the CPU and of `device`, and restore them at the end.

    They belong to the whole process, and dropout can draw from no others. So threads take turns:
    one that arrives while another is inside such a block waits for its end.
    """
    import torch

    with _GENERATOR:
        device = torch.device(device)
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            # torch.manual_seed would also seed all other devices, which are not restored.
            torch.default_generator.manual_seed(seed)
            if device.type == "cuda":
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(seed)
            elif device.type == "mps":
                torch.mps.manual_seed(seed)
            yield


@cache
def choose_device() -> str:
    """Return what ``device="auto"`` means: the first of "cuda", "mps" and "cpu" there is."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


# Chunks of rows, in as many threads as the BLAS has.

Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])
_threads_in_use = threading.Lock()


@cache
def _find_blas() -> ThreadpoolController:
    """Return the BLAS libraries of the process; finding them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


def count_blas_threads() -> int:
    """Return the number of threads in which the BLAS may compute."""
    return max((library["num_threads"] for library in _find_blas().info()), default=1)


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
        with _find_blas().limit(limits=1):
            yield True
    finally:
        _threads_in_use.release()


def collect_chunks(
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
    n_threads = min(count_blas_threads(), len(chunks))
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


# Tensors on an accelerator: read, checked and processed there, block by block.
#
# A tensor on the CPU shares its memory with an array and is treated as one. torch is not
# imported here: whoever passes a tensor has imported it.

# Types of devices on which torch has float64 and which do not share the memory of the CPU.
ACCELERATORS = {"cuda", "xpu"}
# Blocks that fit a cache are too small for an accelerator, which gets this number of them at once.
BLOCKS_AT_ONCE = 32
# Elements of a block whose values are checked on an accelerator.
_CHECKED_SIZE = 2**26
_settings_in_use = threading.RLock()


def unwrap_module(module: Any) -> Any:
    """Return the module inside what ``torch.compile`` has made of it, or the module itself."""
    return getattr(module, "_orig_mod", module)


def is_on_accelerator(values: Any) -> bool:
    """Return whether values are a dense torch tensor on a device that numpy cannot read."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(values, torch.Tensor):
        return False
    return values.layout == torch.strided and values.device.type in ACCELERATORS


class TensorRows:
    """Samples on an accelerator, usually a matrix, read as float32 or float64.

    It has a length, a shape and a dtype like an array; bfloat16, which numpy lacks, counts as
    float32. Rows come as tensors of that dtype, but at least float32.
    """

    def __init__(self, tensor: Any) -> None:
        torch = sys.modules["torch"]
        self.tensor, self.ndim = tensor.detach(), tensor.ndim
        self.shape, self.device = tuple(tensor.shape), tensor.device
        known = {torch.float16: np.float16, torch.bfloat16: np.float32, torch.float32: np.float32}
        self.dtype = np.dtype(known.get(tensor.dtype, np.float64))
        self._work = torch.float64 if self.dtype == np.float64 else torch.float32
        self.are_proba = False  # whether all rows have been found to be probabilities

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        return self.tensor[index].to(self._work)

    def check_finite(self, **names: str) -> None:
        """Raise what scikit-learn would raise for NaN and infinity."""
        if get_config()["assume_finite"] or not self.tensor.is_floating_point():
            return
        size = max(1, math.prod(self.shape[1:]))
        for rows in gen_batches(len(self), max(1, _CHECKED_SIZE // size)):
            block = self.tensor[rows]
            if not block.isfinite().all():
                assert_all_finite(to_host(block), **names)


def find_accelerated(values: Any) -> TensorRows | None:
    """Return floats (n, d) that are on an accelerator, None for anything else."""
    if isinstance(values, TensorRows):
        return values
    if is_on_accelerator(values) and values.ndim == 2 and values.is_floating_point():
        return TensorRows(values)
    return None


def get_back_end(samples: Any) -> tuple[Any, Callable[[NDArray], Any]]:
    """Return the module that computes with samples, and a function that moves arrays to them.

    The module is numpy or torch. Callers use only functions that both have with the same
    arguments, such as einsum, amin and asarray.
    """
    torch = sys.modules.get("torch")
    device = getattr(samples, "device", None)
    if torch is None or not isinstance(device, torch.device):
        return np, lambda array: array
    return torch, lambda array: torch.tensor(array, device=device)


def as_float64(values: Any) -> Any:
    """Return an array or a tensor in float64."""
    return values.double() if get_back_end(values)[0] is not np else values.astype(np.float64)


def take_rows(matrix: Any, positions: Any) -> Any:
    """Return ``matrix[positions]``; the method of numpy takes half the time of its indexing."""
    return matrix.take(positions, axis=0) if get_back_end(matrix)[0] is np else matrix[positions]


def sum_by_index(index: Any, values: Any, size: int) -> Any:
    """Return the float64 sums (size,) of the values that share an index."""
    if get_back_end(values)[0] is np:
        return np.bincount(index, values, size)
    # On CUDA, index_add_ has a deterministic implementation, and bincount with weights has none.
    values = as_float64(values)
    return values.new_zeros(size).index_add_(0, index, values)


def compute_row_squares(rows: Any) -> Any:
    """Return the sum of squares of every row, in float64."""
    if get_back_end(rows)[0] is np:
        return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    return rows.double().square().sum(1)


class UnitRows:
    """A matrix whose rows are scaled to unit length when they are read.

    A memory map stays on disk. The matrix has a length, a shape and a dtype like an array. Rows
    come in that dtype, but at least float32; those of a tensor on an accelerator come as tensors.
    A row of zeros has no direction: reading it is an error.
    """

    def __init__(self, rows: NDArray[Any] | TensorRows) -> None:
        self.rows = rows
        self.shape = rows.shape
        self.dtype = rows.dtype
        self.device = getattr(rows, "device", None)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        block = self.rows[index]
        xp, _ = get_back_end(block)
        # Divided by its largest value first, no row has squares that overflow or vanish.
        largest = xp.amax(abs(block), 1)
        if not largest.all():
            row = int(np.arange(len(self))[index][int(largest.argmin())])
            raise ValueError(
                "X must not hold samples that are 0 everywhere where normalize is True, got one "
                f"in row {row}."
            )
        if xp is np and block.dtype == np.float16:
            block = block.astype(np.float32)
        scaled = block / largest[:, None]
        # Not a product on an accelerator, where TensorFloat-32 would round it.
        squares = (
            np.einsum("ij,ij->i", scaled, scaled) if xp is np else compute_row_squares(scaled)
        )
        scaled /= squares[:, None] ** 0.5
        return scaled


@contextmanager
def exact_products(samples: Any) -> Iterator[None]:
    """Make torch compute products with samples in their precision, and without gradients.

    That is, neither in TensorFloat-32, which keeps 10 bits of float32, nor in the precision of a
    caller's autocast. The settings are restored, also after an error. Nothing changes for arrays.
    """
    torch, _ = get_back_end(samples)
    if torch is np:
        yield
        return
    # The settings belong to the process: a second caller waits, since the first will restore them.
    with _settings_in_use, ExitStack() as restored:
        if hasattr(torch.backends.cuda.matmul, "fp32_precision"):  # torch >= 2.9
            for place in (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul):
                restored.callback(setattr, place, "fp32_precision", place.fp32_precision)
                place.fp32_precision = "ieee"
        else:
            former = torch.get_float32_matmul_precision()
            restored.callback(torch.set_float32_matmul_precision, former)
            torch.set_float32_matmul_precision("highest")
        with torch.no_grad(), torch.autocast(samples.device.type, enabled=False):
            yield


def collect_blocks(
    compute: Callable[[slice], Any],
    samples: Any,
    block_rows: int,
    collect: Callable[[Any], object] = lambda _: None,
    *,
    blocks_at_once: int = BLOCKS_AT_ONCE,
) -> None:
    """Call ``collect(compute(rows))`` for blocks of samples, in their order.

    Blocks of an array run in threads, see `collect_chunks`. On an accelerator they run one by one,
    `blocks_at_once` of them together, with exact products.
    """
    if get_back_end(samples)[0] is np:
        collect_chunks(compute, len(samples), block_rows, collect)
        return
    with exact_products(samples):
        for rows in gen_batches(len(samples), blocks_at_once * block_rows):
            collect(compute(rows))


# Computations on dask arrays, all in this file.
#
# The results of a function of chunks are combined in the graph, or stay in chunks. dask is
# imported only where a user passes such an array, which is recognized by the module of its type.


def align_chunks(at_once: bool = False, /, **arrays: Any) -> list[Any]:
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
    """Return `values` in the chunks of `first`, as :func:`align_chunks` does."""
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


def find_distinct_labels(labels: Any) -> NDArray[Any]:
    """Return the sorted values of all samples of what :func:`align_chunks` returned."""
    if isinstance(labels, InMemory):
        return np.unique(labels.values)
    found: Any = np.unique(labels)  # by dask, chunk by chunk
    return found.compute()


def _get_client() -> Any:
    """Return the client of a distributed scheduler, None with any other scheduler."""
    import dask

    client = getattr(dask.base.get_scheduler(), "__self__", None)
    return client if hasattr(client, "scatter") else None


def reduce_chunks(
    of_chunk: Callable[..., Any], combine: Callable[[Any, Any], Any], X: Any, *others: Any
) -> Any:
    """Return the results of ``of_chunk(X, *others)`` over :func:`align_chunks` arrays, combined.

    A list among the others has one entry for every chunk. The results are combined pair by pair in
    the graph: no process holds more than a few of them, and the client holds one.
    """
    import dask

    client = _get_client()
    # The workers keep what was sent to them for as long as this list exists.
    columns = [_make_blocks(array, X.numblocks[0], client) for array in (X, *others)]
    call, join = dask.delayed(of_chunk, traverse=False), dask.delayed(combine, traverse=False)
    results = [call(*chunks) for chunks in zip(*columns)]
    while len(results) > 1:
        pairs = zip(results[::2], results[1::2])
        results = [join(*pair) for pair in pairs] + results[len(results) - len(results) % 2 :]
    return results[0].compute()


def _make_blocks(array: Any, n_blocks: int, client: Any) -> Any:
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
        _map_samples,
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
    (X,) = align_chunks(**{name: X})
    row = np.full((1, *X.shape[1:]), 0.5 if X.ndim == 1 else 1 / X.shape[1], dtype=X.dtype)
    example = np.asarray(of_chunk(state, row))
    n_columns = None if example.ndim == 1 else example.shape[1]
    return map_chunks(of_chunk, state, X, dtype=example.dtype, n_columns=n_columns)


def read_first_chunk(X: Any) -> NDArray[Any]:
    """Return the rows of the first chunk that has some, in memory."""
    (X,) = align_chunks(X=X)
    rows = np.zeros((0, *X.shape[1:]), dtype=X.dtype)
    for chunk in range(X.numblocks[0]):
        rows = X.blocks[chunk].compute()
        if len(rows):
            break
    return rows


def by_chunks(function: Function) -> Function:
    """Pass a dask X of a function or method of (state, X) to :func:`map_rows`.

    Tiny numbers may underflow, also where the user has numpy raise for that.
    """
    _, name, *_ = signature(function).parameters

    @wraps(function)
    def of_any(state: Any, X: Any, *args: Any, **options: Any) -> Any:
        if is_chunked(X):
            return map_rows(partial(of_any, *args, **options), state, name, X)
        with np.errstate(under="ignore"):
            return function(state, X, *args, **options)

    return of_any  # type: ignore[return-value]


def send_chunks_to(name: str) -> Callable[[Function], Function]:
    """Send a dask `X` of the decorated method to the method `name`, with the other arguments."""

    def decorate(method: Function) -> Function:
        @wraps(method)
        def of_any(self: Any, X: Any, *args: Any, **options: Any) -> Any:
            call = getattr(self, name) if is_chunked(X) else partial(method, self)
            return call(X, *args, **options)

        return of_any  # type: ignore[return-value]

    return decorate


def _map_samples(
    X: Any, *others: Any, of_chunk: Callable[..., Any], state: Any, empty: Any
) -> Any:
    # A mask may have left a chunk without samples.
    return of_chunk(state, X, *others) if len(X) else empty


# Histograms of numbers that add up over chunks, with bins that do not depend on the data.
#
# A bin holds numbers that agree in their sign, their exponent and the next eleven bits: they
# differ by less than 1 in 2000. For probabilities, the bins are those of their log-odds.

# Bits of a float32 that are dropped. Twelve leave at most some 60 000 bins between -16 and 16.
_DROPPED_BITS = 12


class LogBins(NamedTuple):
    """Sorted bins (m,), sums over each of them (c, m), and the largest value in each (m,)."""

    keys: NDArray[np.int32]
    sums: NDArray[np.float64]
    largest: NDArray[np.float64]

    def __add__(self, other: LogBins) -> LogBins:  # type: ignore[override]
        keys, place = np.unique(np.concatenate([self.keys, other.keys]), return_inverse=True)
        return _gather_bins(
            keys,
            place,
            np.hstack([self.sums, other.sums]),
            np.concatenate([self.largest, other.largest]),
        )


def compute_log_bins(
    values: NDArray[np.float64], summands: NDArray[np.float64], *, are_proba: bool
) -> LogBins:
    """Return the sums of `summands` (c, n) over the bins of the values (n,)."""
    scale = values
    if are_proba:
        with np.errstate(divide="ignore"):
            scale = np.log(values) - np.log1p(-values)
    bits = scale.astype(np.float32).view(np.int32)
    # Negative floats are ordered by their magnitude; the shift rounds all downward.
    ordered = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits) >> _DROPPED_BITS
    keys, place = np.unique(ordered, return_inverse=True)
    return _gather_bins(keys.astype(np.int32), place, summands, values)


def _gather_bins(
    keys: NDArray[np.int32],
    place: NDArray[np.intp],
    summands: NDArray[np.float64],
    values: NDArray[np.float64],
) -> LogBins:
    """Return bins of these keys: sums of `summands` (c, n) and largest of `values` (n,)."""
    sums = np.array([np.bincount(place, row, len(keys)) for row in summands])
    largest = np.full(len(keys), -np.inf)
    np.maximum.at(largest, place, values)
    return LogBins(keys, sums, largest)


def is_chunked(values: Any) -> TypeGuard[Any]:
    """Return whether `values` is a collection of dask; dask is not imported."""
    kind = type(values)
    return kind.__module__.split(".")[0] == "dask" and hasattr(kind, "__dask_graph__")


def to_host(values: Any) -> Any:
    """Return a torch tensor as an ndarray, other things as they are; torch is not imported."""
    if not (hasattr(values, "detach") and hasattr(values, "cpu")):
        return values
    tensor = values.detach().cpu()
    # numpy has no bfloat16; float32 holds all its values.
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
