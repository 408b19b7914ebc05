"""Distances of samples to Gaussians, also to those fitted without the sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs

from ..utils._backends import as_float64, collect_blocks, get_back_end, take_rows, to_host
from ..utils._labels import format_labels
from ..utils._output import format_count, warn
from ._gaussians import (
    GaussianStatistics,
    JointForm,
    RankTolerance,
    choose_working_dtype,
    compute_default_tol,
    compute_inverse_factor,
    compute_shrinkage,
    make_joint_form,
    make_plain_form,
    shrink,
)

# Squared distances of samples to Gaussians, in chunks and in the dtype of the samples.

# Elements and least rows of a block of distances to all classes. Flat up to 2**21; a fifth slower
# from 2**23 on.
BLOCK_SIZE = 2**21
BLOCK_ROWS = 256


class _Polynomial(NamedTuple):
    """``constant + z @ linear + z**2 @ quadratic`` with ``z = (x - origin) @ projection``.

    There is one origin for all classes or one for each; every class has a constant and a row of
    `linear`.
    """

    origin: NDArray
    projection: NDArray
    constant: NDArray[np.float64]
    linear: NDArray
    quadratic: NDArray


class ClassDistances:
    """Class distances minus background distances.

    With class weights w and background weights b, and the class mean and the mean of all samples
    at c and m in coordinates z, the difference of both distances is a polynomial:

        sum w (z - c)^2 - sum b (z - m)^2
        = [sum w c^2 - sum b m^2] + sum 2 (b m - w c) z + sum (w - b) z^2.

    A row of NaN in `means` is a class without samples, infinitely far from everything; `mean` is
    that of the background. `n_unresolved` directions were left out only because the sums of
    squares lack digits.
    """

    def __init__(
        self,
        form: JointForm,
        means: NDArray[np.float64],
        mean: NDArray[np.float64],
        n_unresolved: int = 0,
    ) -> None:
        self.form = form
        self.mean = mean
        self.n_unresolved = n_unresolved
        self.absent = np.asarray(np.isnan(means).any(axis=1))
        # Any finite mean will do for an absent class: its distances become infinite.
        self.means = np.where(self.absent[:, None], mean, means) if self.absent.any() else means
        self._polynomials: dict[str, _Polynomial] = {}

    def to_all_classes(self, X: Any) -> NDArray:
        """Return the distances of each sample to every class."""
        out = np.empty((len(X), len(self.means)), dtype=choose_working_dtype(X.dtype))
        return self._fill(out, X, lambda distances: distances)

    def to_nearest_class(self, X: Any) -> NDArray:
        """Return the distance of each sample to the nearest class."""
        xp, _ = get_back_end(X)
        out = np.empty(len(X), dtype=choose_working_dtype(X.dtype))
        return self._fill(out, X, lambda distances: xp.amin(distances, 1))

    def nearest_class(self, X: Any) -> NDArray[np.intp]:
        """Return the position of the nearest class of each sample."""
        out = np.empty(len(X), dtype=np.intp)
        return self._fill(out, X, lambda distances: distances.argmin(1))

    def _fill(self, out: NDArray, X: Any, reduce: Callable[[Any], Any]) -> NDArray:
        """Write ``reduce(distances to all classes)`` of each sample into `out`."""
        xp, place = get_back_end(X)
        # One origin for all classes: their distances come from a product.
        polynomial = self._polynomial("background", choose_working_dtype(X.dtype))
        origin, projection = place(polynomial.origin), place(polynomial.projection)
        slopes, quadratic = place(polynomial.linear.T), place(polynomial.quadratic)
        constant = place(polynomial.constant.astype(polynomial.linear.dtype))

        def fill(rows: slice) -> None:
            z = (X[rows] - origin) @ projection
            distances = z @ slopes
            # The quadratic term is the same for all classes.
            distances += xp.einsum("ij,ij,j->i", z, z, quadratic)[:, None]
            distances += constant
            out[rows] = to_host(reduce(self._not_negative(distances)))

        collect_blocks(fill, X, self._block_rows(len(self.means)))
        return out

    def to_own_class(self, X: Any, codes: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the distance of each sample to the class ``codes[i]``."""
        xp, place = get_back_end(X)
        # The origin of every class is its mean: otherwise, large distances between classes would
        # cancel after the product.
        polynomial = self._polynomial("classes", choose_working_dtype(X.dtype))
        minus_origin, projection = place(-polynomial.origin), place(polynomial.projection)
        linear, quadratic = place(polynomial.linear), place(polynomial.quadratic)
        # About its own mean c is 0 up to rounding: constant and slope are the background's.
        out = polynomial.constant[codes]

        def fill(rows: slice) -> None:
            label = place(codes[rows])
            # In place: new memory costs more than the sum.
            deviation = take_rows(minus_origin, label)
            deviation += X[rows]
            z = deviation @ projection
            distances = place(out[rows])
            distances += xp.einsum("ij,ij->i", z, take_rows(linear, label))
            distances += xp.einsum("ij,ij,j->i", z, z, quadratic)
            out[rows] = to_host(distances)

        collect_blocks(fill, X, self._block_rows(self.form.projection.shape[1]))
        return self._not_negative(out)

    def prepare(self, work: type[np.floating]) -> None:
        """Compute the polynomials for samples of dtype `work`, with labels and without."""
        for origins in ("background", "classes"):
            self._polynomial(origins, work)

    def _block_rows(self, n_columns: int) -> int:
        """Return the number of rows of a block."""
        # A row takes the sample, its coordinates, and `n_columns` numbers more.
        width = sum(self.form.projection.shape) + n_columns
        return max(BLOCK_ROWS, BLOCK_SIZE // width)

    def _polynomial(self, origins: str, work: type[np.floating]) -> _Polynomial:
        """Return the polynomials about the mean of all samples or those about the class means."""
        # Cached: for a single sample they cost a hundred times as much as the distances.
        key = f"{origins}, {work.__name__}"  # a text: skops stores no other keys
        if key not in self._polynomials:
            form = self.form
            mean = self.mean if origins == "background" else self.means
            # Rounded first, so that exactly the origin of the constants, which are in float64, is
            # subtracted from the samples.
            origin = mean.astype(work)
            class_mean = (self.means - origin) @ form.projection
            background_mean = (self.mean - origin) @ form.projection
            constant = class_mean**2 @ form.class_weights
            constant -= background_mean**2 @ form.background_weights
            constant[self.absent] = np.inf
            # Half of the slope in the formula above; doubled below.
            linear = form.background_weights * background_mean - form.class_weights * class_mean
            quadratic = form.class_weights - form.background_weights
            self._polynomials[key] = _Polynomial(
                origin, form.projection.astype(work), constant,
                (2.0 * linear).astype(work), quadratic.astype(work),
            )  # fmt: skip
        return self._polynomials[key]

    def _not_negative(self, distances: Any) -> Any:
        """Raise negative rounding errors to zero where no background is subtracted."""
        return distances if self.form.background_weights.any() else distances.clip(min=0.0)


def compute_class_distances(
    statistics: GaussianStatistics,
    *,
    relative: bool,
    shrinkage: float | str | None,
    tol: float | None,
    samples: Any = None,
) -> ClassDistances:
    """Return the distances that `RelativeMahalanobisScorer` documents, as numpy arrays.

    They are computed where the `samples` are.

    Raises ValueError if there is a single class for a relative distance, or no variance within
    the classes, or if the sums of squares have overflowed.
    """
    n_classes = int((statistics.count > 0).sum())
    if not n_classes:
        raise ValueError("X must have held samples in some call of partial_fit, got none.")
    if relative and n_classes < 2:
        raise ValueError(
            "y must have at least two classes for the relative distance, got one class; "
            "relative=False scores a single class."
        )
    if not np.isfinite(statistics.scatter).all():
        raise ValueError(
            "X must be small enough for its squares to be finite in its precision, got values "
            "that overflow; scale the features or pass float64."
        )
    xp, place = get_back_end(samples)
    mean, total_weight = statistics.mean(), statistics.total_weight
    root = statistics.between_root()
    between = np.einsum("ij,ij->j", root, root)  # the diagonal of R^T R
    within, root = statistics.within_covariance(place), place(root)
    spread = to_host(xp.diagonal(within))
    # Rounding of the input is a variance, too: a value x is rounded by about eps |x|, and the mean
    # of x^2 is mean^2 + variance.
    noise = statistics.input_eps**2 * (mean**2 + spread + between)
    n_varying = int((spread > noise).sum())
    if not n_varying:
        raise ValueError(
            "X must vary within at least one class, got no variance about the class means "
            f"({format_count(total_weight)} samples in {n_classes} classes)."
        )
    default = compute_default_tol(len(within), statistics.work_eps)
    tolerance = RankTolerance(noise, default if tol is None else tol)
    covariance = shrink(within, shrinkage, total_weight)
    if not relative:
        form = make_plain_form(covariance, tolerance)
    elif shrinkage is None:
        form = make_joint_form(covariance, root, tolerance, rooted=True)
    else:
        # Each covariance moves toward its own multiple of the identity: their difference has no
        # root with one row for every class.
        background = shrink(within + root.T @ root, shrinkage, total_weight)
        form = make_joint_form(covariance, background - covariance, tolerance)
    n_unresolved = 0
    if tol is None and statistics.work_eps > np.finfo(np.float64).eps:
        # The directions that the samples could span, minus those that their sums in float32 show.
        # n samples about the means of K classes span at most n - K directions.
        spanned = min(n_varying, int(statistics.count.sum()) - n_classes)
        n_unresolved = max(spanned - form.rank, 0)
    return ClassDistances(form, statistics.means(), mean, n_unresolved)


def warn_of_limits(distances: ClassDistances, classes_of_one: NDArray[Any], too_few: bool) -> None:
    """Warn about directions that float32 sums lose, classes of a single sample, few samples."""
    if distances.n_unresolved:
        warn(
            f"{distances.n_unresolved} directions of X have too little variance for sums in "
            "float32 and are left out: pass float64 to partial_fit, or one array to fit."
        )
    if len(classes_of_one):
        warn(
            f"These classes have a single sample each: {format_labels(classes_of_one)}. It is "
            "its own "
            "class mean, so that difficulty(X, y) finds it very easy."
        )
    if too_few:
        warn(
            "The samples are too few for the covariance of X: no direction is left in which they "
            "separate chance from difficulty. Pass shrinkage='auto', or reduce the features."
        )


# Distances to Gaussians without one of their samples: exact, without a refit.
#
# Let a sample x of class c lose the weight w, out of m in its class and n in all. Then, with
# v = x - mean_c and a = m / (m - w), its class mean is a v away from it, and the scatter W = n S
# loses ``a w v v^T``. By Sherman and Morrison, the squared length of any u becomes
#
#     (n - w) / n * (u S^-1 u + g (u S^-1 v)^2),    g = l / (1 - l v S^-1 v),    l = a w / n.
#
# The background is one class of all samples. If only one sample has variance in some direction,
# the divisor is 0: the direction leaves the support, and the pseudo-inverse becomes P S^+ P with
# the projection P along S^+ v. A shrunk covariance keeps its multiple of the identity.

# Elements of a chunk of samples. In smaller chunks, threads wait for each other: a quarter of the
# elements costs a tenth of the time with 512 features and 1000 classes.
_CHUNK_ELEMENTS = 2**22
_MIN_CHUNK_ROWS = 64
# Relative weight up to which a class counts as empty without a sample.
_NOTHING = 1e-12


class LeftOut:
    """Distances to the classes and the background of a fit, without each sample in turn.

    They are computed where the `samples` of the fit are, and given as arrays.
    """

    def __init__(
        self,
        statistics: GaussianStatistics,
        relative: bool,
        shrinkage: float | str | None,
        tol: float | None,
        samples: Any,
    ) -> None:
        self.statistics, self.relative, self.shrinkage = statistics, relative, shrinkage
        self.work, self.mean = choose_working_dtype(samples.dtype), statistics.mean()
        _, self.place = get_back_end(samples)
        self.within, root = statistics.within_covariance(), statistics.between_root()
        self.total = self.within + root.T @ root
        noise = statistics.input_eps**2 * (self.mean**2 + np.diag(self.total))
        tol = compute_default_tol(len(self.within), statistics.work_eps) if tol is None else tol
        self.tolerance = RankTolerance(noise, tol)
        self.absent = statistics.weight <= 0
        # Any finite mean will do for a class without samples: its distances become infinite.
        self.means = np.where(self.absent[:, None], self.mean, statistics.means())
        self.classes = self._gaussian(self.within, self.means, statistics.weight)

    def _gaussian(self, covariance: NDArray, means: NDArray, weight: NDArray) -> Gaussian:
        """Return the Gaussian of these classes, shrunk and truncated as the fit is."""
        shrinkage, place = (self.shrinkage, self.statistics.total_weight), self.place
        factor = compute_inverse_factor(place(shrink(covariance, *shrinkage)), self.tolerance)
        part = 1.0 - compute_shrinkage(covariance, *shrinkage)
        # About the mean of all samples: far from the origin, means would lose digits.
        return Gaussian(factor, place(means - self.mean), place(weight), part, self.work)

    def to_own(
        self, X: Any, codes: NDArray[np.intp], weight: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the distance of each sample to its own class."""
        out = -self.to_background(X, weight)

        def fill(rows: slice, without: Without) -> None:
            out[rows] += to_host(without.distance)

        self._map(fill, self.classes, self.means, X, codes, weight)
        out[self.absent[codes]] = np.inf
        return out

    def to_all(self, X: Any, codes: NDArray[np.intp], weight: NDArray[np.float64]) -> NDArray:
        """Return the distances of each sample to every class."""
        out = np.empty((len(X), len(self.absent)), dtype=self.work)
        background = self.to_background(X, weight).astype(self.work)

        def fill(rows: slice, without: Without) -> None:
            out[rows] = to_host(without.to_all_classes())
            if self.relative:
                out[rows] -= background[rows, None]

        self._map(fill, self.classes, self.means, X, codes, weight)
        out[:, self.absent] = np.inf
        return out

    def to_background(self, X: Any, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the background distance of each sample, 0 if distances are not relative."""
        out = np.zeros(len(X))
        if not self.relative:
            return out
        # One class of all samples.
        mean, codes = self.mean[None], np.zeros(len(X), dtype=np.intp)
        background = self._gaussian(self.total, mean, self.statistics.weight.sum(keepdims=True))

        def fill(rows: slice, without: Without) -> None:
            out[rows] = to_host(without.distance)

        self._map(fill, background, mean, X, codes, weight)
        return out

    def _map(
        self,
        fill: Callable[[slice, Without], None],
        gaussian: Gaussian,
        means: NDArray[np.float64],
        X: Any,
        codes: NDArray[np.intp],
        weight: NDArray[np.float64],
    ) -> None:
        """Call `fill` with every chunk of rows, and with the Gaussian without each of them."""
        xp, place = get_back_end(X)
        centers = place(means)

        def of_chunk(rows: slice) -> None:
            label = place(codes[rows])
            if len(means) == 1:  # no copy of it for every sample
                deviation = X[rows] - centers
            else:
                own = take_rows(centers, label)
                # In place: new memory costs more than the difference.
                deviation = xp.subtract(X[rows], own, out=own)
            deviation = xp.asarray(deviation, dtype=getattr(xp, self.work.__name__))
            fill(rows, Without(gaussian, deviation, label, place(weight[rows])))

        width = 2 * (X.shape[1] + len(self.absent))
        n_rows = min(len(X), max(_MIN_CHUNK_ROWS, _CHUNK_ELEMENTS // width))
        collect_blocks(of_chunk, X, n_rows)


class Gaussian:
    """Class means, and the factor of an inverse covariance: ``factor @ factor.T`` is S^+.

    Kept in the dtype of the products with samples, and where these are.
    """

    def __init__(
        self,
        factor: Any,
        shift: Any,
        class_weight: Any,
        scatter_part: float,
        work: type[np.floating],
    ) -> None:
        xp, _ = get_back_end(factor)
        dtype, centers = getattr(xp, work.__name__), shift @ factor
        self.factor = xp.asarray(factor, dtype=dtype)
        self._is_triangle = False
        if xp is np:
            self.factor = np.ascontiguousarray(self.factor)
            self._is_triangle = len(factor) == factor.shape[1] and not np.tril(factor, -1).any()
        norms = xp.einsum("ij,ij->i", centers, centers)
        # |c - d|^2 = |c|^2 + |d|^2 - 2 c d, which rounding may make negative.
        apart = norms[:, None] + norms - 2.0 * (centers @ centers.T)
        # Squared distances between the means.
        self.apart = xp.asarray(apart.clip(min=0.0), dtype=dtype)
        self.centers = xp.asarray(centers, dtype=dtype)
        self.class_weight = class_weight
        self.scatter_part = scatter_part

    def coordinates(self, deviation: Any) -> Any:
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
    class is infinite where that has no other sample. All are arrays, or tensors on one device.
    """

    def __init__(self, gaussian: Gaussian, deviation: Any, codes: Any, weight: Any) -> None:
        xp, self.place = get_back_end(deviation)
        self.gaussian, self.codes = gaussian, codes
        n, m = gaussian.class_weight.sum(), gaussian.class_weight[codes]
        rest = m - weight
        alone = (rest <= _NOTHING * m) & (weight > 0)
        stretch = xp.where(alone, 1.0, m / xp.where(rest > 0, rest, 1.0))
        self.z = gaussian.coordinates(deviation)
        self.square = as_float64(xp.einsum("ij,ij->i", self.z, self.z))
        # Without its only sample a class has no mean, and the scatter stays. In a shrunk
        # covariance, only the scatter loses the sample, not the part added to it.
        lost = xp.where(alone, 0.0, stretch * weight / n) * gaussian.scatter_part
        # Not negative up to rounding, like the eigenvalues of the scatter that remains.
        divisor = 1.0 - lost * self.square
        only = divisor <= float(xp.finfo(deviation.dtype).eps) ** 0.5
        self.gain = xp.where(only, 0.0, lost / xp.where(only, 1.0, divisor))
        (self.only,) = xp.where(only)
        self.scale = (n - weight) / n
        # Of the samples `only` and k = S^+ v = z F^T: the image z(k), k k, and k S^+ k / (k k)^2.
        direction = self.z[self.only] @ gaussian.factor.T
        self.length = xp.einsum("ij,ij->i", direction, direction)
        self.image = direction @ gaussian.factor
        image_square = as_float64(xp.einsum("ij,ij->i", self.image, self.image))
        self.norm = image_square / as_float64(self.length) ** 2
        # With u = a v and q = v S^-1 v: a^2 (n - w) / n * (q + g q^2).
        own = self.square * (1.0 + self.gain * self.square)
        # P v = v - q k / (k k), k v = q and k S^+ v = k k: v P S^+ P v = q - 2 q + q^2 norm.
        projected = self.square[self.only] ** 2 * self.norm - self.square[self.only]
        own[self.only] = projected.clip(min=0.0)
        self.distance = xp.where(alone, xp.inf, stretch**2 * self.scale * own)

    def to_all_classes(self) -> Any:
        """Return the distance of each sample to every class, (n_samples, n_classes)."""
        xp, _ = get_back_end(self.z)
        samples, gaussian = self.place(np.arange(len(self.z))), self.gaussian
        # With u the deviation from another mean: u S^-1 v = v S^-1 v - (slope - own slope).
        slope = self.z @ gaussian.centers.T
        own_slope = slope[samples, self.codes]
        # In place: new memory costs more than the difference.
        cross = xp.subtract(self._column(self.square + own_slope), slope, out=slope)
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
        distances[samples, self.codes] = self._column(self.distance)[:, 0]
        return distances

    def _column(self, values: Any) -> Any:
        """Return a number of each sample as a column in the dtype of the products."""
        xp, _ = get_back_end(self.z)
        return xp.asarray(values[:, None], dtype=self.z.dtype)

    def _change_by_projection(self, cross: Any) -> Any:
        """Return ``(k u)^2 (k S^+ k) / (k k)^2 - 2 (k u) (k S^+ u) / (k k)``; k u is `cross`."""
        slope = self.image @ self.gaussian.centers.T
        own = self.place(np.arange(len(self.only))), self.codes[self.only]
        slope -= slope[own][:, None]
        # k S^+ v is k k.
        # u is v minus the difference of the means, whose product with k S^+ is the slope.
        to_image = 1.0 - slope / self.length[:, None]
        return cross * (cross * self._column(self.norm) - 2.0 * to_image)
