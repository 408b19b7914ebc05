"""An accumulator of calibration, filled from the chunks of dask arrays."""

from __future__ import annotations

from copy import copy
from functools import partial
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils._chunked import aligned, reduce_chunks
from ..utils._labels import as_labels, match_binary, match_columns


def accumulated_over_chunks(empty: Any, y_true: Any, y_proba: Any, sample_weight: Any) -> Any:
    """Return the accumulator `empty`, which has no samples, with those of all chunks."""
    proba, labels, weight = aligned(y_proba=y_proba, y_true=y_true, sample_weight=sample_weight)
    if empty.classes_ is None and empty.labels is None:
        # The labels of a chunk alone may tell other classes than those of all chunks.
        distinct = reduce_chunks(_distinct, _union, labels)
        empty.labels = _classes(distinct, proba.shape[1:], empty.pos_label)
    return reduce_chunks(partial(_updated, empty), add, proba, labels, weight)


def _updated(empty: Any, y_proba: NDArray, y_true: NDArray, sample_weight: NDArray | None) -> Any:
    accumulator = copy(empty)
    # A chunk of which all samples have weight 0 is not the fault that a call of it would be.
    if sample_weight is not None and len(sample_weight) == len(y_true) and not sample_weight.any():
        return accumulator
    return accumulator.update(y_true, y_proba, sample_weight=sample_weight)


def _distinct(labels: NDArray) -> NDArray | None:
    return np.unique(as_labels(labels, name="y_true")) if len(labels) else None


def _union(some: NDArray | None, others: NDArray | None) -> NDArray | None:
    if some is None or others is None:
        return others if some is None else some
    return np.union1d(some, others)


def _classes(
    distinct: NDArray | None, columns: tuple[int, ...], pos_label: Any
) -> NDArray[Any] | None:
    """Return the classes that all labels together tell, as for arrays in memory."""
    if distinct is None:
        return None
    if columns:
        return match_columns(distinct, labels=None, n_columns=columns[0])[1]
    classes = match_binary(distinct, labels=None, pos_label=pos_label)[1]
    # (label, label): all are positive, and the other class is not known.
    return classes if classes[0] != classes[1] else None
