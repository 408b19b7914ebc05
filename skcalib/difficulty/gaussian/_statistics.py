"""Sufficient statistics of Gaussians that share one covariance, in one pass."""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array
from sklearn.utils import gen_batches

from ...utils._threads import map_chunks

_CHUNK_ELEMENTS = 2**22
_MIN_CHUNK_ROWS = 512


def working_dtype(dtype: np.dtype) -> type[np.floating]:
    """Return the dtype of products over data of `dtype`: float32 for float16 and float32."""
    return np.float64 if dtype.itemsize > 4 or dtype.kind != "f" else np.float32


class GaussianStatistics:
    """Weights, means and within-class scatter of labeled rows.

    Every class has a reference point, the mean of its rows in the first chunk that contains
    it. Sums and scatter are about the references, so that neither the distance of the data
    from the origin nor that of the classes from each other costs digits. Products run in the
    dtype of the data, one chunk at a time, and are added up in float64.

    Parameters
    ----------
    n_classes, n_features : int
        Shape of the statistics.

    Attributes
    ----------
    weight : ndarray of shape (n_classes,)
        Sum of the weights of each class.
    reference, sums : ndarray of shape (n_classes, n_features)
        Reference points, and weighted sums of the rows about them.
    scatter : ndarray of shape (n_features, n_features)
        Sum of the weighted outer products of the rows about the references.
    input_eps, work_eps : float
        Coarsest machine epsilon of the rows seen, and of the products over them.
    """

    def __init__(self, n_classes: int, n_features: int) -> None:
        self.weight = np.zeros(n_classes)
        self.reference = np.zeros((n_classes, n_features))
        self.sums = np.zeros((n_classes, n_features))
        self.scatter = np.zeros((n_features, n_features))
        self.input_eps = 0.0
        self.work_eps = 0.0

    def update(
        self, X: NDArray, codes: NDArray[np.intp], sample_weight: NDArray | None = None
    ) -> None:
        """Add rows; those of weight 0 leave no trace."""
        work = working_dtype(X.dtype)
        self.work_eps = max(self.work_eps, float(np.finfo(work).eps))
        input_dtype = X.dtype if X.dtype.kind == "f" else work
        self.input_eps = max(self.input_eps, float(np.finfo(input_dtype).eps))
        n_rows = min(len(X), max(_MIN_CHUNK_ROWS, _CHUNK_ELEMENTS // X.shape[1]))
        kept = np.ones(len(X), dtype=bool) if sample_weight is None else sample_weight > 0
        self._place_references(X, codes, kept, n_rows, work)
        reference = self._working_reference(work)

        def chunk_sums(rows: slice, buffer: NDArray) -> tuple[NDArray, NDArray]:
            block, label, root = X[rows], codes[rows], None
            if sample_weight is not None:
                block, label = block[kept[rows]], label[kept[rows]]
                root = np.sqrt(sample_weight[rows][kept[rows]])
            deviation = np.take(reference, label, axis=0, out=buffer[: len(label)], mode="clip")
            np.subtract(block, deviation, out=deviation, casting="same_kind")
            return _sums(deviation, label, root, len(reference))

        buffers = lambda: np.empty((n_rows, X.shape[1]), dtype=work)
        for sums, scatter in map_chunks(chunk_sums, len(X), n_rows, buffers):
            self.sums += sums
            self.scatter += scatter
        self.weight += np.bincount(codes, weights=sample_weight, minlength=len(self.weight))

    def _working_reference(self, work: type[np.floating]) -> NDArray:
        """Return the references in `work`, after moving there those that it cannot represent."""
        reference = self.reference.astype(work)
        if not np.array_equal(reference, self.reference):
            self._move_references(reference - self.reference)
        return reference

    def _move_references(self, shift: NDArray[np.float64]) -> None:
        moved = shift * self.weight[:, None]
        cross = self.sums.T @ shift
        self.scatter += shift.T @ moved - cross - cross.T
        self.sums -= moved
        self.reference += shift

    def _place_references(
        self,
        X: NDArray,
        codes: NDArray[np.intp],
        kept: NDArray[np.bool_],
        n_rows: int,
        work: type[np.floating],
    ) -> None:
        """Give classes not seen before a reference."""
        missing = self.weight == 0
        for rows in gen_batches(len(X), n_rows):
            if not missing.any():
                return
            new = np.flatnonzero(missing[codes[rows]] & kept[rows])
            if not len(new):
                continue
            label, block = codes[rows], X[rows]
            if len(new) < len(label):
                label, block = label[new], block[new]
            block = block.astype(work, copy=False)
            sums = _indicator(label, len(missing), np.ones(len(label), dtype=work)) @ block
            count = np.bincount(label, minlength=len(missing))[:, None]
            placed = count[:, 0] > 0
            # Representable in the dtype of the rows, so that deviations lose nothing to it.
            self.reference[placed] = (sums[placed] / count[placed]).astype(work)
            missing &= ~placed

    def merge(self, other: GaussianStatistics) -> None:
        """Add the rows that `other` has seen; its classes are in the same order."""
        other = copy.deepcopy(other)
        unseen = self.weight == 0
        self.reference[unseen] = other.reference[unseen]
        other._move_references(
            np.where(other.weight[:, None] > 0, self.reference - other.reference, 0.0)
        )
        self.scatter += other.scatter
        self.sums += other.sums
        self.weight += other.weight
        self.input_eps = max(self.input_eps, other.input_eps)
        self.work_eps = max(self.work_eps, other.work_eps)

    def with_classes(self, positions: NDArray[np.intp], n_classes: int) -> GaussianStatistics:
        """Copy with class i moved to ``positions[i]`` among `n_classes`."""
        moved = GaussianStatistics(n_classes, self.sums.shape[1])
        moved.weight[positions] = self.weight
        moved.reference[positions] = self.reference
        moved.sums[positions] = self.sums
        moved.scatter = self.scatter.copy()
        moved.input_eps, moved.work_eps = self.input_eps, self.work_eps
        return moved

    @property
    def total_weight(self) -> float:
        """Sum of all weights."""
        return float(self.weight.sum())

    def means(self) -> NDArray[np.float64]:
        """Class means; NaN where a class has no row."""
        with np.errstate(invalid="ignore"):
            return self.reference + self.sums / self.weight[:, None]

    def mean(self) -> NDArray[np.float64]:
        """Mean of all rows."""
        return self.center()[1]

    def center(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Class means, mean of all rows, and root of the covariance of the former about it.

        The root has one row a class seen; ``root.T @ root`` is the weighted covariance.
        """
        means, seen = self.means(), self.weight > 0
        share = self.weight[seen] / self.total_weight
        # About the first mean: far from the origin the weighted sum would round.
        first = means[seen.argmax()]
        apart = means[seen] - first
        middle = share @ apart
        return means, first + middle, (apart - middle) * np.sqrt(share)[:, None]

    def within_covariance(self) -> NDArray[np.float64]:
        """Covariance about the class means, normalized by the total weight."""
        root = np.sqrt(np.where(self.weight > 0, self.weight, 1.0))[:, None]
        drift = self.sums / root
        return (self.scatter - drift.T @ drift) / self.total_weight


def _sums(
    deviation: NDArray, label: NDArray[np.intp], root: NDArray | None, n_classes: int
) -> tuple[NDArray, NDArray]:
    """Return sums (n_classes, n_features) and outer products; `root` is that of the weights."""
    if root is None:
        member = np.ones(len(label), dtype=deviation.dtype)
    else:
        member = root.astype(deviation.dtype)
        deviation *= member[:, None]
    # What overflows here is found, and said, when the covariance is asked for.
    with np.errstate(over="ignore", invalid="ignore"):
        return _indicator(label, n_classes, member) @ deviation, deviation.T @ deviation


def _indicator(label: NDArray[np.intp], n_classes: int, values: NDArray) -> csc_array:
    """Return the (n_classes, n_rows) matrix with ``values[i]`` at row ``label[i]``."""
    indptr = np.arange(len(label) + 1)
    return csc_array((values, label, indptr), shape=(n_classes, len(label)))
