"""Gaussians that share one covariance: their statistics, and coordinates that diagonalize them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import csc_array
from sklearn.utils import gen_batches

from ..utils._backends import (
    collect_blocks,
    exact_products,
    get_back_end,
    one_blas_thread,
    take_rows,
    to_host,
)

# Sufficient statistics of Gaussians that share one covariance, in one pass.
#
# From sums and outer products of raw samples, the covariance would be a small difference of
# large numbers far from the origin. So every class k has a reference point r_k near its samples,
# and
#
#     sums_k  = sum over i in k of w_i (x_i - r_k)
#     scatter = sum over k, sum over i in k of w_i (x_i - r_k) (x_i - r_k)^T
#
# are about the references. With m_k the weight of class k, its mean is r_k + sums_k / m_k, and
# the scatter about the means is scatter - sum_k sums_k sums_k^T / m_k. Statistics of parts add
# up if their references are the same; moving these, r_k -> r_k + shift_k, changes (exactly)
#
#     sums_k  by  -m_k shift_k
#     scatter by  sum_k [ m_k shift_k shift_k^T - sums_k shift_k^T - shift_k sums_k^T ] = P + P^T,
#                 P = sum_k shift_k (m_k shift_k / 2 - sums_k)^T, a single product.
#
# Products over samples run in the dtype of the data, everything else in float64.

# Elements, least and most rows of a chunk whose scatter matrix is added up. Half the elements cost
# a twelfth with 1024 features. Half the rows cost a fifth with 16 features, double the rows digits
# of float32.
BLOCK_SIZE = 2**22
BLOCK_ROWS = 512
BLOCK_MOST_ROWS = 2**13
# Number of chunks for which the references stay the same.
_CHUNKS_PER_PIECE = 8


def choose_working_dtype(dtype: np.dtype) -> type[np.floating]:
    """Return the dtype of products over data of `dtype`: float32 for float16 and float32."""
    # Integers in float64: float32 holds them only up to 2**24.
    return np.float64 if dtype.itemsize > 4 or dtype.kind != "f" else np.float32


@dataclass(frozen=True)
class GaussianStatistics:
    """Weights, means and within-class scatter of labeled samples; never changed in place."""

    count: NDArray[np.intp]  # (n_classes,) samples of each class
    weight: NDArray[np.float64]  # (n_classes,) sums of their weights
    reference: NDArray[np.float64]  # (n_classes, n_features) reference points
    sums: NDArray[np.float64]  # (n_classes, n_features) weighted sums about these points
    scatter: NDArray[np.float64]  # (n_features, n_features) weighted outer products about them
    input_eps: float = 0.0  # coarsest machine epsilon of the samples seen
    work_eps: float = 0.0  # and of the products over them

    @classmethod
    def empty(cls, n_classes: int, n_features: int) -> GaussianStatistics:
        """Return the statistics of no samples."""
        reference, sums = np.zeros((2, n_classes, n_features))
        scatter = np.zeros((n_features, n_features))
        return cls(
            np.zeros(n_classes, dtype=np.intp), np.zeros(n_classes), reference, sums, scatter
        )

    def with_samples(
        self,
        X: Any,
        codes: NDArray[np.intp],
        sample_weight: NDArray | None = None,
        *,
        work: type[np.floating] | None = None,
    ) -> GaussianStatistics:
        """Add samples of the classes ``codes[i]``; those of weight 0 change nothing.

        Products run in `work` or, with None, in the working dtype of the samples.
        """
        work = choose_working_dtype(X.dtype) if work is None else work
        input_dtype = X.dtype if X.dtype.kind == "f" else work
        chunk_rows = min(max(BLOCK_ROWS, BLOCK_SIZE // X.shape[1]), BLOCK_MOST_ROWS)
        _, place = get_back_end(X)
        total = replace(
            self,
            # Changed in place below, where the samples are.
            sums=place(self.sums.copy()),
            scatter=place(self.scatter.copy()),
            input_eps=max(self.input_eps, float(np.finfo(input_dtype).eps)),
            work_eps=max(self.work_eps, float(np.finfo(work).eps)),
        )
        # Overflows are reported when the distances are computed.
        with exact_products(X), np.errstate(over="ignore", invalid="ignore"):
            for rows in gen_batches(len(X), _CHUNKS_PER_PIECE * chunk_rows):
                weight = None if sample_weight is None else sample_weight[rows]
                total = total._with_piece(X[rows], codes[rows], weight, chunk_rows, work)
        return replace(total, sums=to_host(total.sums), scatter=to_host(total.scatter))

    def _with_piece(
        self,
        X: Any,
        codes: NDArray[np.intp],
        sample_weight: NDArray | None,
        chunk_rows: int,
        work: type[np.floating],
    ) -> GaussianStatistics:
        """Add samples about the same references; change the caller's `sums` and `scatter`.

        These are where the samples are.
        """
        used = np.ones(len(X), dtype=bool) if sample_weight is None else sample_weight > 0
        placed = self._with_references_near(X, codes, used, chunk_rows, work)
        _, place = get_back_end(X)
        minus_reference = place(np.negative(placed.reference, dtype=work))
        sums, scatter = placed.sums, placed.scatter

        def chunk_sums(rows: slice) -> tuple[Any, Any]:
            if sample_weight is None:
                return _compute_sums(X[rows], codes[rows], None, minus_reference)
            chosen = rows.start + np.flatnonzero(used[rows])
            # The root, since outer products contain a factor of the samples twice.
            root = place(np.sqrt(sample_weight[chosen]).astype(work))
            return _compute_sums(X[place(chosen)], codes[chosen], root, minus_reference)

        def add(chunk: tuple[Any, Any]) -> None:
            nonlocal sums, scatter
            sums += chunk[0]
            scatter += chunk[1]

        # Longer blocks would lose digits in float32.
        collect_blocks(chunk_sums, X, chunk_rows, add, blocks_at_once=1)
        count = self.count + np.bincount(codes[used], minlength=len(self.count))
        weight = self.weight + np.bincount(codes, sample_weight, minlength=len(self.weight))
        return replace(placed, count=count, weight=weight, sums=sums, scatter=scatter)

    def _with_references_near(
        self,
        X: Any,
        codes: NDArray[np.intp],
        used: NDArray[np.bool_],
        chunk_rows: int,
        work: type[np.floating],
    ) -> GaussianStatistics:
        """Return the same statistics about references near the samples.

        A new class gets the mean of its samples in the first chunk that has any. An old class
        gets its mean so far, if its first samples have turned out to lie apart. All references
        are representable in `work`: deviations from them lose nothing to rounding.
        """
        reference = self.reference.astype(work)
        missing = self.weight == 0
        _, place = get_back_end(X)
        for rows in gen_batches(len(X), chunk_rows):
            new = rows.start + np.flatnonzero(missing[codes[rows]] & used[rows])
            if len(new):
                sums = to_host(_compute_class_sums(X[place(new)], codes[new], None, len(missing)))
                count = np.bincount(codes[new], minlength=len(missing))
                found = count > 0
                # Without the weights: a reference need only be near.
                reference[found] = sums[found] / count[found, None]
                missing[found] = False
        apart = self._apart() & (np.bincount(codes[used], minlength=len(missing)) > 0)
        if apart.any():
            offset = to_host(self.sums[place(np.flatnonzero(apart))]) / self.weight[apart, None]
            reference[apart] = self.reference[apart] + offset
        # Usually none moves: a comparison instead of a new matrix of all classes.
        if np.array_equal(reference, self.reference):
            return self
        return self.with_references(reference.astype(np.float64))

    def _apart(self) -> NDArray[np.bool_]:
        """Return which classes have a mean far from their reference."""
        if not self.weight.any():
            return np.zeros(len(self.weight), dtype=bool)
        xp, place = get_back_end(self.scatter)
        # If all references are a standard deviation off in every feature, the variance about them
        # is twice that about the means.
        variance = xp.diagonal(self.scatter) / self.total_weight
        inverse = xp.where(variance > 0, 1.0 / xp.where(variance > 0, variance, 1.0), 0.0)
        # Then offset^2 / variance is 1/2 in each feature; the sums are weight times offset. An
        # overflow does no harm: sums are right whether references move or not.
        squares = xp.einsum("ij,ij,j->i", self.sums, self.sums, inverse)
        apart = squares > place(0.5 * len(variance) * self.weight**2)
        return to_host(apart & xp.isfinite(variance).all())

    def with_references(self, reference: NDArray[np.float64]) -> GaussianStatistics:
        """Return the same statistics about other references."""
        # Sums of classes without samples are zero and need not move.
        moved = np.flatnonzero((reference != self.reference).any(axis=1) & (self.weight > 0))
        if not len(moved):
            return replace(self, reference=reference)
        _, place = get_back_end(self.scatter)
        rows, shift = place(moved), place(reference[moved] - self.reference[moved])
        weighted_shift = place(self.weight[moved, None]) * shift
        change = shift.T @ (0.5 * weighted_shift - self.sums[rows])
        sums = deepcopy(self.sums)
        sums[rows] -= weighted_shift
        scatter = self.scatter + (change + change.T)
        return replace(self, reference=reference, sums=sums, scatter=scatter)

    def merged(self, other: GaussianStatistics) -> GaussianStatistics:
        """Add the samples of `other`, whose classes are in the same order."""
        # References of self where it has samples: then only the sums of `other` move.
        common = np.where((self.weight > 0)[:, None], self.reference, other.reference)
        mine, theirs = self.with_references(common), other.with_references(common)
        return GaussianStatistics(
            count=mine.count + theirs.count,
            weight=mine.weight + theirs.weight,
            reference=common,
            sums=mine.sums + theirs.sums,
            scatter=mine.scatter + theirs.scatter,
            input_eps=max(mine.input_eps, theirs.input_eps),
            work_eps=max(mine.work_eps, theirs.work_eps),
        )

    def with_classes(self, positions: NDArray[np.intp], n_classes: int) -> GaussianStatistics:
        """Move class i to ``positions[i]`` among `n_classes`."""
        moved = GaussianStatistics.empty(n_classes, self.sums.shape[1])
        for name in ("count", "weight", "reference", "sums"):
            getattr(moved, name)[positions] = getattr(self, name)
        # The scatter is a sum over the classes: their order does not matter.
        return replace(
            moved, scatter=self.scatter, input_eps=self.input_eps, work_eps=self.work_eps
        )

    @property
    def total_weight(self) -> float:
        """Sum of all weights."""
        return float(self.weight.sum())

    def means(self) -> NDArray[np.float64]:
        """Return the class means; NaN where a class has no sample."""
        with np.errstate(invalid="ignore"):
            return self.reference + self.sums / self.weight[:, None]

    def mean(self) -> NDArray[np.float64]:
        """Return the mean of all samples."""
        seen = self.weight > 0
        means, fraction = self.means()[seen], self.weight[seen] / self.total_weight
        # About the first class mean: far from the origin the weighted sum would round.
        return means[0] + fraction @ (means - means[0])

    def within_covariance(self, place: Callable[[NDArray], Any] = np.asarray) -> Any:
        """Return the covariance about the class means, normalized by the total weight.

        It is computed where `place` moves arrays.
        """
        # The sum of sums_k sums_k^T / m_k is one product of the rows sums_k / sqrt(m_k). Classes
        # without samples have sums of 0.
        root = np.sqrt(np.where(self.weight > 0, self.weight, 1.0))
        scaled_sums = place(self.sums / root[:, None])
        return (place(self.scatter) - scaled_sums.T @ scaled_sums) / self.total_weight

    def between_root(self) -> NDArray[np.float64]:
        """Return R with ``R.T @ R`` the weighted covariance of the class means about the mean.

        It has a row for every class with samples, and the covariance about the mean of all
        samples is ``within_covariance() + R.T @ R``.
        """
        seen = self.weight > 0
        fraction = self.weight[seen] / self.total_weight
        means = self.means()[seen]
        # About the first class mean, as in `mean`: far from the origin digits would be lost.
        apart = means - means[0]
        return np.sqrt(fraction)[:, None] * (apart - fraction @ apart)


def shrink(covariance: Any, shrinkage: float | str | None, n_samples: float) -> Any:
    """Return the covariance, moved toward the identity times its mean variance."""
    if shrinkage is None:
        return covariance
    amount = compute_shrinkage(covariance, shrinkage, n_samples)
    variance = covariance.trace() / len(covariance)
    _, place = get_back_end(covariance)
    identity = place(np.eye(len(covariance)))
    return (1.0 - amount) * covariance + amount * variance * identity


def compute_shrinkage(covariance: Any, shrinkage: float | str | None, n_samples: float) -> float:
    """Return how far `shrink` moves: for "auto" as Chen et al. (2010), in scikit-learn's form."""
    if shrinkage != "auto":
        return float(shrinkage or 0)
    variance = float(covariance.trace()) / len(covariance)
    mean_square = float((covariance**2).mean())
    denominator = (n_samples + 1.0) * (mean_square - variance**2 / len(covariance))
    # Up to rounding, the denominator is 0 if the covariance is a multiple of the identity.
    return 1.0 if denominator <= 0 else min((mean_square + variance**2) / denominator, 1.0)


def _compute_sums(
    X: Any, codes: NDArray[np.intp], root_weight: Any, minus_reference: Any
) -> tuple[Any, Any]:
    """Return the sums (n_classes, n_features) and outer products of samples about references."""
    _, place = get_back_end(X)
    with np.errstate(over="ignore", invalid="ignore"):
        # In place: new memory costs more than the sum.
        deviation = take_rows(minus_reference, place(codes))
        deviation += X
        if root_weight is not None:
            deviation *= root_weight[:, None]
        # One root of the weight here and one in the deviation: w_i (x_i - r).
        sums = _compute_class_sums(deviation, codes, root_weight, len(minus_reference))
        return sums, deviation.T @ deviation


def _compute_class_sums(X: Any, codes: NDArray[np.intp], weight: Any, n_classes: int) -> Any:
    """Return the sums (n_classes, n_features) of the samples of every class, weighted or not."""
    xp, place = get_back_end(X)
    if xp is np:
        dtype = np.result_type(X, np.float32)
        values = np.ones(len(codes), dtype) if weight is None else weight
        # Every column has one entry, so column i begins at entry i.
        indptr = np.arange(len(codes) + 1)
        indicator = csc_array((values, codes, indptr), shape=(n_classes, len(codes)))
        return indicator @ X.astype(dtype, copy=False)
    # In float64, since the order of sums on an accelerator varies.
    sums = xp.zeros((n_classes, X.shape[1]), dtype=xp.float64, device=X.device)
    weighted = X.double() if weight is None else X * weight.double()[:, None]
    return sums.index_add_(0, place(codes), weighted)


# Class distance and background distance as weighted sums of squares in common coordinates.
#
# Let S be the covariance within the classes, B = R^T R that between them, and F a factor of the
# inverse, F F^T = S^-1. With the eigenvectors V of F^T B F = V diag(ratio) V^T and P = F V,
#
#     S^-1       = P P^T
#     (S + B)^-1 = P diag(1 / (1 + ratio)) P^T:
#
# one product x P gives both distances. Coordinates of ratio 0 are common to both and cancel in
# their difference. The ratios are the squared singular values of R F, at most one for every
# class.
#
# Of samples on an accelerator, all of this is computed there, and the result goes to the host.
#
# If S + B has variance in directions in which S has none, no such P exists. Then both distances
# get their own coordinates, side by side.


@dataclass(frozen=True)
class JointForm:
    """Coordinates in which both squared distances are weighted sums of squares.

    With ``z = v @ projection``, the class distance of v is the sum of squares of z weighted by
    `class_weights`, the background distance that weighted by `background_weights`. `rank` is that
    of the covariance within the classes: coordinates common to both distances may be left out.
    """

    rank: int
    projection: NDArray[np.float64]
    class_weights: NDArray[np.float64]
    background_weights: NDArray[np.float64]


@dataclass(frozen=True)
class RankTolerance:
    """Up to where a variance counts as zero.

    `noise` (n_features,) is the variance of each feature that is rounding of the input.
    Eigenvalues up to `tol`, in units in which every feature has variance one, are zero.
    """

    noise: NDArray[np.float64]
    tol: float


def compute_default_tol(n_features: int, work_eps: float) -> float:
    """Return the largest eigenvalue that rounding alone gives, with each feature of variance 1.

    The products leave errors of about `work_eps` in every entry, and the eigenvalues, up to
    `n_features`, are computed in float64. For data with known null directions, both terms are 4
    to 8 times the errors observed.
    """
    eps = float(np.finfo(np.float64).eps)
    return 8.0 * work_eps * float(np.sqrt(n_features)) + 4.0 * eps * n_features


def compute_inverse_factor(covariance: Any, tolerance: RankTolerance) -> Any:
    """Return F of shape (n_features, rank) with ``F @ F.T`` the pseudo-inverse of a covariance.

    Rank is decided on the correlations, so that the units of the features do not matter.
    """
    xp, place = get_back_end(covariance)
    noise = place(tolerance.noise)
    # Rounding may have left a variance below zero.
    variance = xp.diagonal(covariance).clip(min=0.0)
    varies = variance > noise
    scale = variance**0.5
    # A feature that does not vary gets a row and a column of zeros: an eigenvalue 0.
    inverse_scale = xp.where(varies, 1.0 / xp.where(varies, scale, 1.0), 0.0)
    correlation = covariance * inverse_scale * inverse_scale[:, None]
    noise = noise * inverse_scale**2
    # The largest noise of a feature bounds that along any unit vector.
    triangle = _invert_triangle(correlation, tolerance.tol + noise.max())
    if triangle is not None:
        # S = D L L^T D with the scales D, so that F = D^-1 L^-T.
        return inverse_scale[:, None] * triangle.T
    values, vectors = xp.linalg.eigh(correlation)
    # Rounding is independent between features: along v it has variance sum_j noise_j v_j^2.
    floor = tolerance.tol + noise @ vectors**2
    supported = values > floor
    # Full rank after all: the test of the triangle is sufficient but not necessary.
    if supported.all():
        return inverse_scale[:, None] * vectors / values**0.5
    # The supported eigenvectors U of the correlations L = U diag(values) U^T span, in units of
    # the features, the columns of scale U = Q T, which are not orthonormal. The pseudo-inverse
    # of Q T diag(values) T^T Q^T is Q T^-T diag(1 / values) T^-1 Q^T.
    span, triangle = xp.linalg.qr(scale[:, None] * vectors[:, supported])
    return span @ xp.linalg.inv(triangle).T / values[supported] ** 0.5


def _invert_triangle(correlation: Any, floor: Any) -> Any:
    """Return L^-1 with L L^T the correlations, or None unless all eigenvalues exceed `floor`.

    An eigendecomposition would take six times as long. The sum of squares of L^-1 is the trace of
    the inverse, the sum of all 1 / eigenvalue, and so a bound of each.
    """
    xp, place = get_back_end(correlation)
    identity = place(np.eye(len(correlation)))
    if xp is np:
        try:
            lower = np.linalg.cholesky(correlation)
        except np.linalg.LinAlgError:
            return None
        # scipy has a BLAS of its own, whose threads would wait for more work for a while and keep
        # those of numpy from the cores.
        with one_blas_thread():
            inverse = solve_triangular(lower, identity, lower=True)
        n_failed = 0
    else:
        lower, n_failed = xp.linalg.cholesky_ex(correlation)
        inverse = xp.linalg.solve_triangular(lower, identity, upper=False)
    # Asked once: it takes an accelerator a transfer to answer.
    all_exceed = (n_failed == 0) & (xp.linalg.norm(inverse) ** 2 * floor < 1)
    return inverse if all_exceed else None


def make_plain_form(covariance: Any, tolerance: RankTolerance) -> JointForm:
    """Return the form of the class distance alone."""
    factor = to_host(compute_inverse_factor(covariance, tolerance))
    n_coordinates = factor.shape[1]
    return JointForm(n_coordinates, factor, np.ones(n_coordinates), np.zeros(n_coordinates))


def make_joint_form(
    covariance: Any, between: Any, tolerance: RankTolerance, *, rooted: bool = False
) -> JointForm:
    """Diagonalize the pseudo-inverses of ``covariance`` and ``covariance + between``, S and S + B.

    With `rooted`, `between` is R instead, of shape (n_classes, n_features), whose weighted rows
    add up to zero; if classes are few, the coordinates common to both distances are left out.
    Both are arrays, or tensors on an accelerator, where the form is computed.
    """
    xp, _ = get_back_end(covariance)
    factor = compute_inverse_factor(covariance, tolerance)
    rank, n_features = factor.shape[1], len(covariance)
    if rank < n_features:
        background = covariance + (between.T @ between if rooted else between)
        background_factor = compute_inverse_factor(background, tolerance)
        # The support of S is part of that of S + B: equal ranks mean equal supports.
        if background_factor.shape[1] > rank:
            of_class = np.arange(rank + background_factor.shape[1]) < rank
            projection = to_host(xp.concatenate([factor, background_factor], 1))
            return JointForm(rank, projection, 1.0 * of_class, 1.0 * ~of_class)
    in_units_of_class = between @ factor
    if rooted and len(between) <= rank:
        # F^T B F = (R F)^T (R F) = Q T T^T Q^T: its eigenvectors are Q times those of T T^T.
        span, triangle = xp.linalg.qr(in_units_of_class.T)
        ratio, rotation = xp.linalg.eigh(triangle @ triangle.T)
        # The rows add up to zero: the smallest eigenvalue is rounding.
        ratio, rotation = ratio[1:], span @ rotation[:, 1:]
    else:
        # F^T B F is the product of R F with itself, or of F with B F.
        left = in_units_of_class if rooted else factor
        ratio, rotation = xp.linalg.eigh(left.T @ in_units_of_class)
    projection, background_weights = to_host(factor @ rotation), to_host(1.0 / (1.0 + ratio))
    return JointForm(rank, projection, np.ones(len(background_weights)), background_weights)
