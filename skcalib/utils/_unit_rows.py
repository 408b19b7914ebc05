"""Rows of a matrix scaled to unit length, on demand: a memory map stays on disk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class UnitRows:
    """A matrix of which every row that is read comes scaled to unit length.

    Like an array, it has a length, a shape and the dtype of what it was made from. Rows come in
    that dtype, but at least float32. A row of zeros has no direction: reading it is an error.
    """

    def __init__(self, rows: NDArray[Any]) -> None:
        self.rows = rows
        self.shape = rows.shape
        self.dtype = rows.dtype

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> NDArray[np.floating]:
        block = self.rows[index]
        # Divided by its largest value first, no row has squares that overflow or vanish.
        largest = np.abs(block).max(axis=1)
        if not largest.all():
            row = int(np.arange(len(self))[index][np.argmin(largest)])
            raise ValueError(
                "X must not hold samples that are 0 everywhere where normalize is True, got one "
                f"in row {row}."
            )
        work = np.result_type(block.dtype, np.float32)
        scaled = np.divide(block, largest[:, None], dtype=work)
        scaled /= np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
        return scaled
