"""The difficulty of each fitted sample without itself: exact, without a refit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...utils._arrays import to_host
from ...utils._threads import for_chunks
from ._diagonalize import RankTolerance, default_tol, inverse_factor
from ._downdate import Gaussian, Without
from ._statistics import GaussianStatistics, shrinkage_amount, shrunk

# Elements of a chunk of samples. In smaller chunks, threads wait for each other: a quarter of the
# elements costs a tenth of the time with 512 features and 1000 classes.
_CHUNK_ELEMENTS = 2**22
_MIN_CHUNK_ROWS = 64


class LeftOut:
    """Distances to both Gaussians of a fit: the classes, and the background."""

    def __init__(
        self,
        statistics: GaussianStatistics,
        relative: bool,
        shrinkage: float | str | None,
        tol: float | None,
        work: type[np.floating],
    ) -> None:
        self.statistics, self.relative, self.shrinkage = statistics, relative, shrinkage
        self.work, self.mean = work, statistics.mean()
        self.within, root = statistics.within_covariance(), statistics.between_root()
        self.total = self.within + root.T @ root
        noise = statistics.input_eps**2 * (self.mean**2 + np.diag(self.total))
        tol = default_tol(len(self.within), statistics.work_eps) if tol is None else tol
        self.tolerance = RankTolerance(noise, tol)
        self.absent = statistics.weight <= 0
        # Any finite mean will do for a class without samples: its distances become infinite.
        self.means = np.where(self.absent[:, None], self.mean, statistics.means())

    def _classes(self) -> Gaussian:
        return self._gaussian(self.within, self.means, self.statistics.weight)

    def _gaussian(self, covariance: NDArray, means: NDArray, weight: NDArray) -> Gaussian:
        shrinkage = self.shrinkage, self.statistics.total_weight
        factor = inverse_factor(shrunk(covariance, *shrinkage), self.tolerance)
        part = 1.0 - shrinkage_amount(covariance, *shrinkage)
        # About the mean of all samples: far from the origin, means would lose digits.
        return Gaussian(factor, means - self.mean, weight, part, self.work)

    def to_own(
        self, X: NDArray, codes: NDArray[np.intp], weight: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the distance of each sample to its own class."""
        out, classes = -self.to_background(X, weight), self._classes()

        def fill(rows: slice) -> None:
            out[rows] += self._without(classes, self.means, X, codes, weight, rows).distance

        self._map(fill, X)
        out[self.absent[codes]] = np.inf
        return out

    def to_all(self, X: NDArray, codes: NDArray[np.intp], weight: NDArray[np.float64]) -> NDArray:
        """Return the distances of each sample to every class."""
        out = np.empty((len(X), len(self.absent)), dtype=self.work)
        background, classes = self.to_background(X, weight).astype(self.work), self._classes()

        def fill(rows: slice) -> None:
            without = self._without(classes, self.means, X, codes, weight, rows)
            out[rows] = without.to_all_classes()
            if self.relative:
                out[rows] -= background[rows, None]

        self._map(fill, X)
        out[:, self.absent] = np.inf
        return out

    def to_background(self, X: NDArray, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what a relative distance subtracts; 0 if distances are not relative."""
        out = np.zeros(len(X))
        if not self.relative:
            return out
        # One class of all samples.
        mean, codes = self.mean[None], np.zeros(len(X), dtype=np.intp)
        background = self._gaussian(self.total, mean, self.statistics.weight.sum(keepdims=True))

        def fill(rows: slice) -> None:
            out[rows] = self._without(background, mean, X, codes, weight, rows).distance

        self._map(fill, X)
        return out

    def _map(self, fill: Callable[[slice], None], X: NDArray) -> None:
        width = 2 * (X.shape[1] + len(self.absent))
        n_rows = min(len(X), max(_MIN_CHUNK_ROWS, _CHUNK_ELEMENTS // width))
        for_chunks(fill, len(X), n_rows)

    def _without(
        self,
        gaussian: Gaussian,
        means: NDArray[np.float64],
        X: NDArray,
        codes: NDArray[np.intp],
        weight: NDArray[np.float64],
        rows: slice,
    ) -> Without:
        own = means[codes[rows]]
        # In place: new memory costs more than the difference.
        deviation = np.subtract(to_host(X[rows]), own, out=own).astype(self.work, copy=False)
        return Without(gaussian, deviation, codes[rows], weight[rows])
