"""Tensors on an accelerator: read, checked and processed there, block by block.

A tensor on the CPU shares its memory with an array and is treated as one. torch is not imported
here: whoever passes a tensor has imported it.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import assert_all_finite, gen_batches

from ..checking._arrays import to_host
from ._threads import for_chunks

# Types of devices on which torch has float64 and which do not share the memory of the CPU.
ACCELERATORS = {"cuda", "xpu"}
# Blocks that fit a cache are too small for an accelerator, which gets this number of them at once.
BLOCKS_AT_ONCE = 32
# Elements of a block whose values are checked on an accelerator.
_CHECKED_SIZE = 2**26
_settings_in_use = threading.RLock()


def plain_module(module: Any) -> Any:
    """Return the module inside what ``torch.compile`` has made of it, or the module itself."""
    return getattr(module, "_orig_mod", module)


def on_accelerator(values: Any) -> bool:
    """Tell whether values are a dense torch tensor on a device that numpy cannot read."""
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


def matrix_on_accelerator(values: Any) -> TensorRows | None:
    """Return floats (n, d) that are on an accelerator, None for anything else."""
    if isinstance(values, TensorRows):
        return values
    if on_accelerator(values) and values.ndim == 2 and values.is_floating_point():
        return TensorRows(values)
    return None


def floats_on(device: Any, values: Any) -> Any:
    """Return numbers as float32 or float64: a tensor on `device`, or an array where it is None."""
    if device is None or isinstance(values, np.ndarray):
        array = to_host(values)
        array = array.astype(np.result_type(array, np.float32), copy=False)
        if device is None:
            return array
        # torch has no negative strides.
        return sys.modules["torch"].tensor(np.ascontiguousarray(array), device=device)
    return TensorRows(values)[:].to(device)


def free_bytes(device: Any) -> float:
    """Return the memory that tensors may still take on a device; infinity if torch cannot tell."""
    memory = getattr(sys.modules["torch"], device.type)
    if not hasattr(memory, "mem_get_info"):
        return math.inf
    # The device counts what torch keeps for later tensors as taken.
    kept = memory.memory_reserved(device) - memory.memory_allocated(device)
    return memory.mem_get_info(device)[0] + kept


def back_end(samples: Any) -> tuple[Any, Callable[[NDArray], Any]]:
    """Return the module that computes with samples, and a function that moves arrays to them.

    The module is numpy or torch. Callers use only functions that both have with the same
    arguments, such as einsum, amin and asarray.
    """
    torch = sys.modules.get("torch")
    device = getattr(samples, "device", None)
    if torch is None or not isinstance(device, torch.device):
        return np, lambda array: array
    return torch, lambda array: torch.tensor(array, device=device)


def take_rows(matrix: Any, positions: Any) -> Any:
    """Return ``matrix[positions]``; the method of numpy takes half the time of its indexing."""
    return matrix.take(positions, axis=0) if back_end(matrix)[0] is np else matrix[positions]


def row_squares(rows: Any) -> Any:
    """Return the sum of squares of every row, in float64."""
    if back_end(rows)[0] is np:
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
        xp, _ = back_end(block)
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
        squares = np.einsum("ij,ij->i", scaled, scaled) if xp is np else row_squares(scaled)
        scaled /= squares[:, None] ** 0.5
        return scaled


@contextmanager
def exact_products(samples: Any) -> Iterator[None]:
    """Make torch compute products with samples in their precision, and without gradients.

    That is, neither in TensorFloat-32, which keeps 10 bits of float32, nor in the precision of a
    caller's autocast. The settings are restored, also after an error. Nothing changes for arrays.
    """
    torch, _ = back_end(samples)
    if torch is np:
        yield
        return
    # The settings belong to the process: a second caller waits, since the first will restore them.
    with _settings_in_use, ExitStack() as restored:
        places = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
        if hasattr(places[0], "fp32_precision"):  # torch >= 2.9
            for place in places:
                restored.callback(setattr, place, "fp32_precision", place.fp32_precision)
                place.fp32_precision = "ieee"
        else:
            former = torch.get_float32_matmul_precision()
            restored.callback(torch.set_float32_matmul_precision, former)
            torch.set_float32_matmul_precision("highest")
        with torch.no_grad(), torch.autocast(samples.device.type, enabled=False):
            yield


def for_blocks(
    compute: Callable[[slice], Any],
    samples: Any,
    block_rows: int,
    collect: Callable[[Any], object] = lambda _: None,
    *,
    blocks_at_once: int = BLOCKS_AT_ONCE,
) -> None:
    """Call ``collect(compute(rows))`` for blocks of samples, in their order.

    Blocks of an array run in threads, see `for_chunks`. On an accelerator they run one by one,
    `blocks_at_once` of them together, with exact products.
    """
    if back_end(samples)[0] is np:
        for_chunks(compute, len(samples), block_rows, collect)
        return
    with exact_products(samples):
        for rows in gen_batches(len(samples), blocks_at_once * block_rows):
            collect(compute(rows))
