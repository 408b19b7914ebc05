"""Distances to Gaussians without one of their samples: exact, without a refit.

Let a sample x of class c lose the weight w, out of m in its class and n in all. Then, with
v = x - mean_c and a = m / (m - w), its class mean is a v away from it, and the scatter W = n S
loses ``a w v v^T``. By Sherman and Morrison, the squared length of any u becomes

    (n - w) / n * (u S^-1 u + g (u S^-1 v)^2),    g = l / (1 - l v S^-1 v),    l = a w / n.

The background is one class of all samples. If only one sample has variance in some direction, the
divisor is 0: the direction leaves the support, and the pseudo-inverse becomes P S^+ P with the
projection P along S^+ v. A shrunk covariance keeps its multiple of the identity.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs

from ...utils.checking._arrays import to_host
from ...utils.computing._threads import for_chunks
from ._diagonalize import RankTolerance, default_tol, inverse_factor
from ._statistics import GaussianStatistics, shrinkage_amount, shrunk

# Elements of a chunk of samples. In smaller chunks, threads wait for each other: a quarter of the
# elements costs a tenth of the time with 512 features and 1000 classes.
_CHUNK_ELEMENTS = 2**22
_MIN_CHUNK_ROWS = 64
# Relative weight up to which a class counts as empty without a sample.
_NOTHING = 1e-12


class LeftOut:
    """Distances to the classes and the background of a fit, without each sample in turn."""

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
        self.classes = self._gaussian(self.within, self.means, statistics.weight)

    def _gaussian(self, covariance: NDArray, means: NDArray, weight: NDArray) -> Gaussian:
        """Return the Gaussian of these classes, shrunk and truncated as the fit is."""
        shrinkage = self.shrinkage, self.statistics.total_weight
        factor = inverse_factor(shrunk(covariance, *shrinkage), self.tolerance)
        part = 1.0 - shrinkage_amount(covariance, *shrinkage)
        # About the mean of all samples: far from the origin, means would lose digits.
        return Gaussian(factor, means - self.mean, weight, part, self.work)

    def to_own(
        self, X: NDArray, codes: NDArray[np.intp], weight: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the distance of each sample to its own class."""
        out = -self.to_background(X, weight)

        def fill(rows: slice, without: Without) -> None:
            out[rows] += without.distance

        self._map(fill, self.classes, self.means, X, codes, weight)
        out[self.absent[codes]] = np.inf
        return out

    def to_all(self, X: NDArray, codes: NDArray[np.intp], weight: NDArray[np.float64]) -> NDArray:
        """Return the distances of each sample to every class."""
        out = np.empty((len(X), len(self.absent)), dtype=self.work)
        background = self.to_background(X, weight).astype(self.work)

        def fill(rows: slice, without: Without) -> None:
            out[rows] = without.to_all_classes()
            if self.relative:
                out[rows] -= background[rows, None]

        self._map(fill, self.classes, self.means, X, codes, weight)
        out[:, self.absent] = np.inf
        return out

    def to_background(self, X: NDArray, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the background distance of each sample, 0 if distances are not relative."""
        out = np.zeros(len(X))
        if not self.relative:
            return out
        # One class of all samples.
        mean, codes = self.mean[None], np.zeros(len(X), dtype=np.intp)
        background = self._gaussian(self.total, mean, self.statistics.weight.sum(keepdims=True))

        def fill(rows: slice, without: Without) -> None:
            out[rows] = without.distance

        self._map(fill, background, mean, X, codes, weight)
        return out

    def _map(
        self,
        fill: Callable[[slice, Without], None],
        gaussian: Gaussian,
        means: NDArray[np.float64],
        X: NDArray,
        codes: NDArray[np.intp],
        weight: NDArray[np.float64],
    ) -> None:
        """Call `fill` with every chunk of rows, and with the Gaussian without each of them."""

        def of_chunk(rows: slice) -> None:
            if len(means) == 1:  # no copy of it for every sample
                deviation = to_host(X[rows]) - means
            else:
                own = means[codes[rows]]
                # In place: new memory costs more than the difference.
                deviation = np.subtract(to_host(X[rows]), own, out=own)
            deviation = deviation.astype(self.work, copy=False)
            fill(rows, Without(gaussian, deviation, codes[rows], weight[rows]))

        width = 2 * (X.shape[1] + len(self.absent))
        n_rows = min(len(X), max(_MIN_CHUNK_ROWS, _CHUNK_ELEMENTS // width))
        for_chunks(of_chunk, len(X), n_rows)


class Gaussian:
    """Class means, and the factor of an inverse covariance: ``factor @ factor.T`` is S^+.

    Kept in the dtype of the products with samples.
    """

    def __init__(
        self,
        factor: NDArray[np.float64],
        shift: NDArray[np.float64],
        class_weight: NDArray[np.float64],
        scatter_part: float,
        work: type[np.floating],
    ) -> None:
        self.factor, centers = np.ascontiguousarray(factor, dtype=work), shift @ factor
        self._is_triangle = len(factor) == factor.shape[1] and not np.tril(factor, -1).any()
        norms = np.einsum("ij,ij->i", centers, centers)
        # |c - d|^2 = |c|^2 + |d|^2 - 2 c d, which rounding may make negative.
        apart = norms[:, None] + norms - 2.0 * (centers @ centers.T)
        self.apart = np.maximum(apart, 0.0).astype(work)  # squared distances between the means
        self.centers = centers.astype(work)
        self.class_weight = class_weight
        self.scatter_part = scatter_part

    def coordinates(self, deviation: NDArray) -> NDArray:
        """Return ``deviation @ factor``, whose squared length is the distance."""
        if not self._is_triangle:
            return deviation @ self.factor
        # The inverse of a Cholesky factor is a triangle: half of the products would be with 0. The
        # BLAS reads matrices by columns, hence z^T = F^T v^T.
        multiply = get_blas_funcs("trmm", (self.factor,))
        return multiply(1.0, self.factor.T, deviation.T, lower=1).T


class Without:
    """Gaussians of all classes, without each of some samples in turn.

    The samples are given by their `deviation` from the means of their classes, in the dtype of
    the Gaussian, and by the `weight` that each loses. Their `distance` (n_samples,) to their own
    class is infinite where that has no other sample.
    """

    def __init__(
        self,
        gaussian: Gaussian,
        deviation: NDArray,
        codes: NDArray[np.intp],
        weight: NDArray[np.float64],
    ) -> None:
        self.gaussian, self.codes = gaussian, codes
        n, m = gaussian.class_weight.sum(), gaussian.class_weight[codes]
        rest = m - weight
        alone = (rest <= _NOTHING * m) & (weight > 0)
        stretch = np.where(alone, 1.0, m / np.where(rest > 0, rest, 1.0))
        self.z = gaussian.coordinates(deviation)
        self.square = np.einsum("ij,ij->i", self.z, self.z).astype(np.float64)
        # Without its only sample a class has no mean, and the scatter stays. In a shrunk
        # covariance, only the scatter loses the sample, not the part added to it.
        lost = np.where(alone, 0.0, stretch * weight / n) * gaussian.scatter_part
        # Not negative up to rounding, like the eigenvalues of the scatter that remains.
        divisor = 1.0 - lost * self.square
        only = divisor <= np.sqrt(np.finfo(deviation.dtype).eps)
        self.gain = np.where(only, 0.0, lost / np.where(only, 1.0, divisor))
        self.only = np.flatnonzero(only)
        self.scale = (n - weight) / n
        # Of the samples `only` and k = S^+ v = z F^T: the image z(k), k k, and k S^+ k / (k k)^2.
        direction = self.z[self.only] @ gaussian.factor.T
        self.length = np.einsum("ij,ij->i", direction, direction)
        self.image = direction @ gaussian.factor
        image_square = np.einsum("ij,ij->i", self.image, self.image).astype(np.float64)
        self.norm = image_square / self.length.astype(np.float64) ** 2
        # With u = a v and q = v S^-1 v: a^2 (n - w) / n * (q + g q^2).
        own = self.square * (1.0 + self.gain * self.square)
        # P v = v - q k / (k k), k v = q and k S^+ v = k k: v P S^+ P v = q - 2 q + q^2 norm.
        projected = self.square[self.only] ** 2 * self.norm - self.square[self.only]
        own[self.only] = np.maximum(projected, 0.0)
        self.distance = np.where(alone, np.inf, stretch**2 * self.scale * own)

    def to_all_classes(self) -> NDArray:
        """Return the distance of each sample to every class, (n_samples, n_classes)."""
        samples, gaussian = np.arange(len(self.z)), self.gaussian
        # With u the deviation from another mean: u S^-1 v = v S^-1 v - (slope - own slope).
        slope = self.z @ gaussian.centers.T
        own_slope = slope[samples, self.codes]
        # In place: new memory costs more than the difference.
        cross = np.subtract(self._column(self.square + own_slope), slope, out=slope)
        # u S^-1 u + g (u S^-1 v)^2, where u S^-1 u = apart + 2 cross - q.
        distances = self._column(self.gain) * cross
        distances += 2.0
        distances *= cross
        distances += gaussian.apart[self.codes]
        distances -= self._column(self.square)
        if len(self.only):
            distances[self.only] += self._change_by_projection(cross[self.only])
        distances *= self._column(self.scale)
        # Only the mean of its own class moves when the sample leaves.
        distances[samples, self.codes] = self.distance
        return distances

    def _column(self, values: NDArray[np.float64]) -> NDArray:
        """Return a number of each sample as a column in the dtype of the products."""
        return values[:, None].astype(self.z.dtype)

    def _change_by_projection(self, cross: NDArray) -> NDArray:
        """Return ``(k u)^2 (k S^+ k) / (k k)^2 - 2 (k u) (k S^+ u) / (k k)``; k u is `cross`."""
        slope = self.image @ self.gaussian.centers.T
        slope -= np.take_along_axis(slope, self.codes[self.only, None], axis=1)
        # k S^+ v is k k.
        # u is v minus the difference of the means, whose product with k S^+ is the slope.
        to_image = 1.0 - slope / self.length[:, None]
        return cross * (cross * self.norm[:, None].astype(cross.dtype) - 2.0 * to_image)
