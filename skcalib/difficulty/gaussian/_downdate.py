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

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs

# Relative weight up to which a class counts as empty without a sample.
_NOTHING = 1e-12


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
        self._find_lost_directions()
        # With u = a v and q = v S^-1 v: a^2 (n - w) / n * (q + g q^2).
        own = self.square * (1.0 + self.gain * self.square)
        # P v = v - q k / (k k), k v = q and k S^+ v = k k: v P S^+ P v = q - 2 q + q^2 norm.
        projected = self.square[self.only] ** 2 * self.norm - self.square[self.only]
        own[self.only] = np.maximum(projected, 0.0)
        self.distance = np.where(alone, np.inf, stretch**2 * self.scale * own)

    def _find_lost_directions(self) -> None:
        """Set, for k = S^+ v of the samples `only`: its image z(k), k k, and k S^+ k / (k k)^2."""
        factor = self.gaussian.factor
        # z F^T = v F F^T = S^+ v.
        direction = self.z[self.only] @ factor.T
        self.length = np.einsum("ij,ij->i", direction, direction)
        self.image = direction @ factor
        square = np.einsum("ij,ij->i", self.image, self.image)
        self.norm = square.astype(np.float64) / self.length.astype(np.float64) ** 2

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
        # u is v less what lies between the means, whose product with k S^+ is the slope.
        to_image = 1.0 - slope / self.length[:, None]
        return cross * (cross * self.norm[:, None].astype(cross.dtype) - 2.0 * to_image)
