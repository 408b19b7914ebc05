"""Squared distances of samples to Gaussians, in chunks and in the dtype of the samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...utils.checking._arrays import to_host
from ...utils.checking._labels import shown
from ...utils.computing._tensors import back_end, for_blocks, take_rows
from ...utils.meta._warnings import warn
from ._diagonalize import JointForm, RankTolerance, default_tol, joint_form, plain_form
from ._statistics import GaussianStatistics, shrunk, working_dtype

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
        out = np.empty((len(X), len(self.means)), dtype=working_dtype(X.dtype))
        return self._fill(out, X, lambda distances: distances)

    def to_nearest_class(self, X: Any) -> NDArray:
        """Return the distance of each sample to the nearest class."""
        xp, _ = back_end(X)
        out = np.empty(len(X), dtype=working_dtype(X.dtype))
        return self._fill(out, X, lambda distances: xp.amin(distances, 1))

    def nearest_class(self, X: Any) -> NDArray[np.intp]:
        """Return the position of the nearest class of each sample."""
        out = np.empty(len(X), dtype=np.intp)
        return self._fill(out, X, lambda distances: distances.argmin(1))

    def _fill(self, out: NDArray, X: Any, reduce: Callable[[Any], Any]) -> NDArray:
        """Write ``reduce(distances to all classes)`` of each sample into `out`."""
        xp, place = back_end(X)
        # One origin for all classes: their distances come from a product.
        polynomial = self._polynomial("background", working_dtype(X.dtype))
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

        for_blocks(fill, X, self._block_rows(len(self.means)))
        return out

    def to_own_class(self, X: Any, codes: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the distance of each sample to the class ``codes[i]``."""
        xp, place = back_end(X)
        # The origin of every class is its mean: otherwise, large distances between classes would
        # cancel after the product.
        polynomial = self._polynomial("classes", working_dtype(X.dtype))
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
            out[rows] += to_host(xp.einsum("ij,ij->i", z, take_rows(linear, label)))
            out[rows] += to_host(xp.einsum("ij,ij,j->i", z, z, quadratic))

        for_blocks(fill, X, self._block_rows(self.form.projection.shape[1]))
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


def class_distances(
    statistics: GaussianStatistics,
    *,
    relative: bool,
    shrinkage: float | str | None,
    tol: float | None,
) -> ClassDistances:
    """Return the distances that `RelativeMahalanobisScorer` documents.

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
    within, root = statistics.within_covariance(), statistics.between_root()
    mean, total_weight = statistics.mean(), statistics.total_weight
    # Rounding of the input is a variance, too: a value x is rounded by about eps |x|, and the mean
    # of x^2 is mean^2 + variance. The diagonal of R^T R is the variance between the classes.
    variance = np.diag(within) + np.einsum("ij,ij->j", root, root)
    noise = statistics.input_eps**2 * (mean**2 + variance)
    n_varying = int((np.diag(within) > noise).sum())
    if not n_varying:
        raise ValueError(
            "X must vary within at least one class, got no variance about the class means "
            f"({total_weight:g} samples in {n_classes} classes)."
        )
    default = default_tol(len(within), statistics.work_eps)
    tolerance = RankTolerance(noise, default if tol is None else tol)
    covariance = shrunk(within, shrinkage, total_weight)
    if not relative:
        form = plain_form(covariance, tolerance)
    elif shrinkage is None:
        form = joint_form(covariance, root, tolerance, rooted=True)
    else:
        # Each covariance moves toward its own multiple of the identity: their difference has no
        # root with one row for every class.
        background = shrunk(within + root.T @ root, shrinkage, total_weight)
        form = joint_form(covariance, background - covariance, tolerance)
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
            f"These classes have a single sample each: {shown(classes_of_one)}. It is its own "
            "class mean, so that difficulty(X, y) finds it very easy."
        )
    if too_few:
        warn(
            "The samples are too few for the covariance of X: no direction is left in which they "
            "tell chance from difficulty. Pass shrinkage='auto', or reduce the features."
        )
