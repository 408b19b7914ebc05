"""Squared distances of rows to Gaussians, in chunks and in the dtype of the rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...utils._threads import map_chunks
from ._diagonalize import JointForm
from ._statistics import working_dtype

_CHUNK_ELEMENTS = 2**21
_MIN_CHUNK_ROWS = 256


class ClassDistances:
    """Class distances minus background distances for one joint form.

    Parameters
    ----------
    form : JointForm
        Coordinates of both distances.
    means : ndarray of shape (n_classes, n_features)
        Class means; a row of NaN is a class without rows, infinitely far from everything.
    mean : ndarray of shape (n_features,)
        Mean of the background.
    """

    def __init__(
        self, form: JointForm, means: NDArray[np.float64], mean: NDArray[np.float64]
    ) -> None:
        self.form = form
        self.mean = mean
        self.absent = np.asarray(np.isnan(means).any(axis=1))
        # A stand-in for means that do not exist: their distances are overwritten by infinity.
        self.means = np.where(self.absent[:, None], mean, means)

    def _chunk_rows(self, X: NDArray, n_columns: int) -> int:
        width = X.shape[1] + self.form.projection.shape[1] + n_columns
        return min(len(X), max(_MIN_CHUNK_ROWS, _CHUNK_ELEMENTS // width))

    def to_all_classes(self, X: NDArray) -> NDArray:
        """Return the distances of each row to every class."""
        out = np.empty((len(X), len(self.means)), dtype=working_dtype(X.dtype))
        score = self._scorer(X.dtype)
        n_rows = self._chunk_rows(X, 0)

        def fill(rows: slice, buffers: tuple[NDArray, NDArray]) -> None:
            score(X[rows], buffers, out[rows])

        deque(map_chunks(fill, len(X), n_rows, lambda: self._buffers(n_rows, X)), maxlen=0)
        return out

    def reduced(self, X: NDArray, reduce: Callable[[NDArray], NDArray]) -> NDArray:
        """Return ``reduce(distances)`` of each row, without holding the distances of all."""
        score = self._scorer(X.dtype)
        n_rows = self._chunk_rows(X, len(self.means))

        def reduced(rows: slice, buffers: tuple[tuple[NDArray, NDArray], NDArray]) -> NDArray:
            own, block = buffers
            return reduce(score(X[rows], own, block[: rows.stop - rows.start]))

        def make_buffers() -> tuple[tuple[NDArray, NDArray], NDArray]:
            block = np.empty((n_rows, len(self.means)), dtype=working_dtype(X.dtype))
            return self._buffers(n_rows, X), block

        return np.concatenate(list(map_chunks(reduced, len(X), n_rows, make_buffers)))

    def _buffers(self, n_rows: int, X: NDArray) -> tuple[NDArray, NDArray]:
        work = working_dtype(X.dtype)
        # Fresh memory costs a page fault a page, which is more than the arithmetic in it.
        widths = X.shape[1], self.form.projection.shape[1]
        return np.empty((n_rows, widths[0]), dtype=work), np.empty((n_rows, widths[1]), dtype=work)

    def _scorer(
        self, dtype: np.dtype
    ) -> Callable[[NDArray, tuple[NDArray, NDArray], NDArray], NDArray]:
        """Return the function (rows, buffers, out) -> distances to every class, in `out`."""
        work = working_dtype(dtype)
        # With the center representable in `work`, all constants are exact to float64.
        center = self.mean.astype(work)
        shift = (self.mean - center) @ self.form.projection
        offset = (self.means - center) @ self.form.projection
        own, background = self.form.class_weights, self.form.background
        exact = (offset**2) @ own - (shift**2) @ background
        exact[self.absent] = np.inf
        constant = exact.astype(work)
        linear = (2.0 * (background * shift - own * offset)).T.astype(work)
        quadratic = (own - background).astype(work)
        projection = self.form.projection.astype(work)

        def score(block: NDArray, buffers: tuple[NDArray, NDArray], out: NDArray) -> NDArray:
            centered, z = (buffer[: len(block)] for buffer in buffers)
            np.subtract(block, center, out=centered)
            np.matmul(centered, projection, out=z)
            np.matmul(z, linear, out=out)
            out += np.einsum("ij,ij,j->i", z, z, quadratic)[:, None]
            out += constant
            return self._without_negative_squares(out)

        return score

    def to_own_class(self, X: NDArray, codes: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the distance of each row to the class ``codes[i]``."""
        work = working_dtype(X.dtype)
        # Rows are centered on (the rounding of) their class mean before the product: a large
        # distance between classes would otherwise cancel after it.
        anchor = self.means.astype(work)
        to_class = (anchor - self.means) @ self.form.projection
        to_background = (anchor - self.mean) @ self.form.projection
        own, background = self.form.class_weights, self.form.background
        linear = (2.0 * (own * to_class - background * to_background)).astype(work)
        constant = (to_class**2) @ own - (to_background**2) @ background
        constant[self.absent] = np.inf
        quadratic = (own - background).astype(work)
        projection = self.form.projection.astype(work)
        n_rows = self._chunk_rows(X, projection.shape[1])
        difficulty = constant[codes]

        def add(rows: slice, buffers: tuple[NDArray, NDArray, NDArray]) -> None:
            label = codes[rows]
            centered, z, slope = (buffer[: len(label)] for buffer in buffers)
            np.take(anchor, label, axis=0, out=centered, mode="clip")
            np.subtract(X[rows], centered, out=centered)
            np.matmul(centered, projection, out=z)
            np.take(linear, label, axis=0, out=slope, mode="clip")
            difficulty[rows] += np.einsum("ij,ij->i", z, slope)
            difficulty[rows] += np.einsum("ij,ij,j->i", z, z, quadratic)

        def make_buffers() -> tuple[NDArray, NDArray, NDArray]:
            centered, z = self._buffers(n_rows, X)
            return centered, z, np.empty_like(z)

        deque(map_chunks(add, len(X), n_rows, make_buffers), maxlen=0)
        return self._without_negative_squares(difficulty)

    def _without_negative_squares(self, distances: NDArray) -> NDArray:
        """Undo rounding below zero where no background is subtracted."""
        if self.form.background.any():
            return distances
        return np.maximum(distances, 0.0, out=distances)
