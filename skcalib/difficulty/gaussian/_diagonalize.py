"""Class distance and background distance as weighted sums of squares in common coordinates.

Let S be the covariance within the classes, B = R^T R that between them, and F a factor of the
inverse, F F^T = S^-1. With the eigenvectors V of F^T B F = V diag(ratio) V^T and P = F V,

    S^-1       = P P^T
    (S + B)^-1 = P diag(1 / (1 + ratio)) P^T:

one product x P gives both distances. Coordinates of ratio 0 are common to both and cancel in
their difference. The ratios are the squared singular values of R F, at most one for every class.

If S + B has variance in directions in which S has none, no such P exists. Then both distances get
their own coordinates, side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from ...utils.computing._threads import one_blas_thread


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


def default_tol(n_features: int, work_eps: float) -> float:
    """Return the largest eigenvalue that rounding alone gives, with each feature of variance 1.

    The products leave errors of about `work_eps` in every entry, and the eigenvalues, up to
    `n_features`, are computed in float64. For data with known null directions, both terms are 4
    to 8 times the errors observed.
    """
    eps = float(np.finfo(np.float64).eps)
    return 8.0 * work_eps * float(np.sqrt(n_features)) + 4.0 * eps * n_features


def inverse_factor(
    covariance: NDArray[np.float64], tolerance: RankTolerance
) -> NDArray[np.float64]:
    """Return F of shape (n_features, rank) with ``F @ F.T`` the pseudo-inverse of a covariance.

    Rank is decided on the correlations, so that the units of the features do not matter.
    """
    # Rounding may have left a variance below zero.
    variance = np.maximum(np.diag(covariance), 0.0)
    varies = variance > tolerance.noise
    scale = np.sqrt(variance)
    # A feature that does not vary gets a row and a column of zeros: an eigenvalue 0.
    inverse_scale = np.divide(1.0, scale, out=np.zeros_like(scale), where=varies)
    correlation = covariance * inverse_scale * inverse_scale[:, None]
    noise = tolerance.noise * inverse_scale**2
    # The largest noise of a feature bounds that along any unit vector.
    triangle = _inverse_triangle(correlation, tolerance.tol + noise.max())
    if triangle is not None:
        # S = D L L^T D with the scales D, so that F = D^-1 L^-T.
        return inverse_scale[:, None] * triangle.T
    values, vectors = np.linalg.eigh(correlation)
    # Rounding is independent between features: along v it has variance sum_j noise_j v_j^2.
    floor = tolerance.tol + noise @ vectors**2
    supported = values > floor
    # Full rank after all: the test of the triangle is sufficient but not necessary.
    if supported.all():
        return inverse_scale[:, None] * vectors / np.sqrt(values)
    # The supported eigenvectors U of the correlations L = U diag(values) U^T span, in units of
    # the features, the columns of scale U = Q T, which are not orthonormal. The pseudo-inverse
    # of Q T diag(values) T^T Q^T is Q T^-T diag(1 / values) T^-1 Q^T.
    span, triangle = np.linalg.qr(scale[:, None] * vectors[:, supported])
    return span @ np.linalg.inv(triangle).T / np.sqrt(values[supported])


def _inverse_triangle(
    correlation: NDArray[np.float64], floor: float
) -> NDArray[np.float64] | None:
    """Return L^-1 with L L^T the correlations, or None unless all eigenvalues exceed `floor`.

    An eigendecomposition would take six times as long. The sum of squares of L^-1 is the trace of
    the inverse, the sum of all 1 / eigenvalue, and so a bound of each.
    """
    try:
        lower = np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:
        return None
    # scipy has a BLAS of its own, whose threads would wait for more work for a while and keep
    # those of numpy from the cores.
    with one_blas_thread():
        inverse = solve_triangular(lower, np.eye(len(lower)), lower=True)
    return inverse if np.linalg.norm(inverse) ** 2 * floor < 1 else None


def plain_form(covariance: NDArray[np.float64], tolerance: RankTolerance) -> JointForm:
    """Return the form of the class distance alone."""
    factor = inverse_factor(covariance, tolerance)
    n_coordinates = factor.shape[1]
    return JointForm(n_coordinates, factor, np.ones(n_coordinates), np.zeros(n_coordinates))


def joint_form(
    covariance: NDArray[np.float64],
    between: NDArray[np.float64],
    tolerance: RankTolerance,
    *,
    rooted: bool = False,
) -> JointForm:
    """Diagonalize the pseudo-inverses of ``covariance`` and ``covariance + between``, S and S + B.

    With `rooted`, `between` is R instead, of shape (n_classes, n_features), whose weighted rows
    add up to zero; if classes are few, the coordinates common to both distances are left out.
    """
    factor = inverse_factor(covariance, tolerance)
    rank, n_features = factor.shape[1], len(covariance)
    if rank < n_features:
        background = covariance + (between.T @ between if rooted else between)
        background_factor = inverse_factor(background, tolerance)
        # The support of S is part of that of S + B: equal ranks mean equal supports.
        if background_factor.shape[1] > rank:
            of_class = np.arange(rank + background_factor.shape[1]) < rank
            projection = np.hstack([factor, background_factor])
            return JointForm(rank, projection, 1.0 * of_class, 1.0 * ~of_class)
    if rooted and len(between) <= rank:
        # F^T B F = (R F)^T (R F): its eigenvectors are the right singular vectors of R F.
        singular, rotation = np.linalg.svd(between @ factor, full_matrices=False)[1:]
        # The rows add up to zero: the last singular value is rounding.
        ratio, rotation = singular[:-1] ** 2, rotation[:-1].T
    else:
        in_units_of_class = between @ factor
        # F^T B F is the product of R F with itself, or of F with B F.
        left = in_units_of_class if rooted else factor
        ratio, rotation = np.linalg.eigh(left.T @ in_units_of_class)
    return JointForm(rank, factor @ rotation, np.ones(len(ratio)), 1.0 / (1.0 + ratio))
