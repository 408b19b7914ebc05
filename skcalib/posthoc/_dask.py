"""Scores in chunks of a dask array, or on an accelerator: read and summed where they are."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..utils._arrays import check_weights
from ..utils._backends import (
    InMemory,
    TensorRows,
    find_distinct_labels,
    get_back_end,
    reduce_chunks,
    to_host,
)
from ..utils._labels import as_labels, encode
from ..utils._numeric import iter_blocks

# Size of the sample in memory with which a search over all chunks starts.
_SAMPLE_SIZE = 2**17
# The same of scores on an accelerator: what a search in memory starts with.
DEVICE_SAMPLE_SIZE = 2**11
Samples = tuple[NDArray, NDArray, NDArray]  # scores, columns of the labels, weights


class ScoresInChunks(NamedTuple):
    """The calibrator to fit, and dask arrays of scores, labels and weights."""

    calibrator: Any
    X: Any
    y: Any
    weight: Any
    scale: float = 1.0  # of the weights

    def distinct_labels(self) -> NDArray[Any]:
        """Return the sorted labels of all chunks."""
        return as_labels(find_distinct_labels(self.y), name="y")

    def sum(
        self,
        of_samples: Callable[..., Any],
        *state: Any,
        combine: Callable[[Any, Any], Any] | None = None,
    ) -> Any:
        """Return the sum over chunks of ``of_samples(calibrator, scores, codes, weight, *state)``.

        `of_samples` gets checked scores, the columns of the labels, and weights above 0. Its
        results are added, lists entry by entry, or combined by `combine`.
        """
        calibrator = copy(self.calibrator)  # workers get its present state
        of_chunk = partial(_process_chunk, calibrator, self.scale, of_samples, state)
        join = partial(_join, combine or _add)
        return reduce_chunks(of_chunk, join, self.X, self.y, self.weight)

    def sample(self) -> Samples:
        """Return every k-th sample in memory."""
        n_samples = self.X.shape[0]
        # With chunks of unknown size, take the first samples.
        stride = 1 if np.isnan(n_samples) else max(1, int(n_samples) // _SAMPLE_SIZE)
        arrays = (self.X, self.y, self.weight)
        return _read(self.calibrator, self.scale, *(take_every(array, stride) for array in arrays))


class ScoresOnDevice:
    """The same of scores on an accelerator, the columns of their labels, and weights or None."""

    def __init__(
        self,
        calibrator: Any,
        scores: TensorRows,
        y: NDArray[np.intp],
        weight: NDArray[np.float64] | None,
    ) -> None:
        _, place = get_back_end(scores)
        used = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
        weight = np.ones(len(y)) if weight is None else weight
        if len(used) < len(y):
            scores, y, weight = TensorRows(scores.tensor[place(used)]), y[used], weight[used]
        self.calibrator, self.scores = calibrator, scores
        self.y, self.weight = place(y), place(weight)
        some = slice(None, None, max(1, len(y) // DEVICE_SAMPLE_SIZE))
        self.sampled = used[some]  # rows of the sample
        self._sample = to_host(scores[some]), y[some], weight[some]

    def sum(self, of_samples: Callable[..., Any], *state: Any) -> Any:
        """Return the sum over blocks of ``of_samples(calibrator, scores, y, weight, *state)``."""
        found = [
            of_samples(self.calibrator, block, self.y[rows], self.weight[rows], *state)
            for rows, block in iter_blocks(self.scores, on_device=True)
        ]
        return to_host(sum(found))

    def sample(self) -> Samples:
        """Return every k-th sample in memory."""
        return self._sample


def find_range(rows: TensorRows) -> NDArray[Any]:
    """Return the least and the largest of all values, NaN if one is."""
    torch, _ = get_back_end(rows)
    return to_host(torch.stack(rows.tensor.aminmax()))


def find_smallest_positive(rows: TensorRows) -> float:
    """Return the smallest value above 0, infinity if there is none."""
    torch, _ = get_back_end(rows)
    blocks = (block for _, block in iter_blocks(rows, on_device=True))
    smallest = [torch.where(block > 0, block, torch.inf).min() for block in blocks]
    return float(torch.stack(smallest).min())


def sum_weights(calibrator: Any, scores: Any, y: Any, weight: Any) -> Any:
    """Return the sum of the weights."""
    return weight.sum()


def count_weights(
    calibrator: Any, scores: NDArray, y: NDArray, weight: NDArray
) -> NDArray[np.float64]:
    """Return the sum of the weights, and how many there are."""
    return np.array([weight.sum(), len(weight)])


def _read(calibrator: Any, scale: float, X: Any, y: Any, weight: Any) -> Samples:
    # A copy: reading sets the number of columns, and threads may share the calibrator.
    scores = copy(calibrator)._read_scores(X, reset=True)
    codes = encode(as_labels(y, name="y"), calibrator.classes_)
    if weight is None:
        return scores, codes, np.ones(len(codes))
    # A chunk, unlike a whole call, may have no weight above 0.
    checked = check_weights(weight, len(codes)) if np.any(weight) else weight
    weight = np.asarray(checked, dtype=np.float64)
    used = weight > 0
    return scores[used], codes[used], scale * weight[used]


def _process_chunk(
    calibrator: Any,
    scale: float,
    of_samples: Callable[..., Any],
    state: tuple[Any, ...],
    X: Any,
    y: Any,
    weight: Any,
) -> Any:
    if not len(X):  # a mask may have left a chunk without samples
        return None
    samples = _read(calibrator, scale, X, y, weight)
    return of_samples(calibrator, *samples, *state) if len(samples[0]) else None


def _join(combine: Callable[[Any, Any], Any], some: Any, other: Any) -> Any:
    if some is None or other is None:
        return other if some is None else some
    return combine(some, other)


def _add(some: Any, other: Any) -> Any:
    return [a + b for a, b in zip(some, other)] if isinstance(some, list) else some + other


def take_every(array: Any, stride: int) -> NDArray[Any] | None:
    """Return every `stride`-th sample, in memory, of an array from :func:`align_chunks`."""
    if array is None:
        return None
    is_here = isinstance(array, InMemory)
    return array.values[::stride] if is_here else array[::stride].compute()
