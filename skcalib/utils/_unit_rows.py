"""Rows of a matrix scaled to unit length, on demand: a memory map stays on disk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._tensors import TensorRows, back_end, row_squares


class UnitRows:
    """A matrix of which every row that is read comes scaled to unit length.

    Like an array, it has a length, a shape and the dtype of what it was made from. Rows come in
    that dtype, but at least float32. A row of zeros has no direction: reading it is an error.
    Rows of a tensor on an accelerator come as tensors.
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
