"""Class distance and background distance, diagonalized together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, qr, solve_triangular

from ...utils._threads import single_blas_thread


@dataclass(frozen=True)
class JointForm:
    """Coordinates in which both squared distances are weighted sums of squares.

    With ``z(v) = v @ projection``, the class distance of v is the sum of squares of the first
    ``class_rank`` coordinates, the background distance the sum of squares weighted by
    `background`. One product therefore yields both.
    """

    projection: NDArray[np.float64]
    class_rank: int
    background: NDArray[np.float64]

    @property
    def class_weights(self) -> NDArray[np.float64]:
        """One for the coordinates of the class distance, zero for the others."""
        return (np.arange(len(self.background)) < self.class_rank).astype(np.float64)


def pseudo_inverse_factor(
    matrix: NDArray[np.float64],
    scale: NDArray[np.float64],
    noise: NDArray[np.float64],
    tol: float,
) -> NDArray[np.float64]:
    """Return F with ``F @ F.T`` the pseudo-inverse of a positive semi-definite matrix.

    Parameters
    ----------
    matrix : ndarray of shape (n_features, n_features)
        The matrix.
    scale : ndarray of shape (n_features,)
        Standard deviation of each feature. Rank is decided on the matrix divided by it, so
        that the units of a feature do not matter.
    noise : ndarray of shape (n_features,)
        Variance in each feature that is rounding of the input.
    tol : float
        Eigenvalues of the scaled matrix up to `tol`, plus the share of the noise, count as
        zero.

    Returns
    -------
    factor : ndarray of shape (n_features, rank)
        The factor.
    """
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale**2 > noise)
    scaled = matrix * inverse * inverse[:, None]
    floor = tol + noise * inverse**2
    # Idle threads of scipy's BLAS would compete for a while with those of numpy's.
    with single_blas_thread():
        triangle = _inverse_triangle_if_well_conditioned(scaled, floor.max())
    if triangle is not None:
        return inverse[:, None] * triangle
    values, vectors = np.linalg.eigh(scaled)
    kept = values > floor @ vectors**2
    if not kept.any():
        return np.empty((len(matrix), 0))
    if kept.all():
        return inverse[:, None] * vectors / np.sqrt(values)
    # In units of the features the eigenvectors span the support but are not orthonormal:
    # with F = scale * vectors, the pseudo-inverse of F diag(values) F^T needs that of F.
    span, triangle = qr(scale[:, None] * vectors[:, kept], mode="economic")
    return span @ solve_triangular(triangle, np.diag(values[kept] ** -0.5), trans="T")


def _scales(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviations; rounding may have left a variance below zero."""
    return np.sqrt(np.maximum(np.diag(covariance), 0.0))


def _inverse_triangle_if_well_conditioned(
    matrix: NDArray[np.float64], floor: float
) -> NDArray[np.float64] | None:
    """Return the inverse upper Cholesky factor if all eigenvalues are well above `floor`.

    It costs a tenth of the eigenvalues, which only decide doubtful cases.
    """
    triangle, failed = lapack.dpotrf(matrix, clean=True)
    if failed:
        return None
    norm = np.abs(matrix).sum(axis=0).max()
    reciprocal_condition, _ = lapack.dpocon(triangle, norm)
    # The smallest eigenvalue is at least 1 / norm(inverse), which LAPACK estimates to a factor.
    return lapack.dtrtri(triangle)[0] if reciprocal_condition * norm > 10 * floor else None


def plain_form(
    covariance: NDArray[np.float64], noise: NDArray[np.float64], tol: float
) -> JointForm:
    """Return the form of the class distance alone."""
    factor = pseudo_inverse_factor(covariance, _scales(covariance), noise, tol)
    return JointForm(factor, factor.shape[1], np.zeros(factor.shape[1]))


def joint_form(
    covariance: NDArray[np.float64],
    excess: NDArray[np.float64],
    noise: NDArray[np.float64],
    tol: float,
    *,
    rooted: bool = False,
) -> JointForm:
    """Diagonalize the pseudo-inverses of ``covariance`` and ``covariance + excess``.

    Parameters
    ----------
    covariance, excess : ndarray of shape (n_features, n_features)
        Symmetric; `covariance` and the sum of both are positive semi-definite.
    noise, tol : ndarray of shape (n_features,) and float
        As in `pseudo_inverse_factor`.
    rooted : bool, default=False
        `excess` is a root instead, of shape (n_classes, n_features): the excess is
        ``root.T @ root``, of rank ``n_classes - 1`` at most. Where both supports agree,
        coordinates beyond that rank are common to both distances, and are left out.

    Returns
    -------
    form : JointForm
        The coordinates.
    """
    inner = pseudo_inverse_factor(covariance, _scales(covariance), noise, tol)
    if inner.shape[1] < len(covariance):
        full = excess.T @ excess if rooted else excess
        outer = _outer_factor(covariance, full, inner, noise, tol)
        if outer.shape[1]:
            return _form_on_two_supports(inner, outer, full)
    spread = excess @ inner
    if rooted and len(spread) <= inner.shape[1]:
        singular, rotation = np.linalg.svd(spread, full_matrices=False)[1:]
        ratio, rotation = singular[:-1] ** 2, rotation[:-1].T
    else:
        left = spread if rooted else inner
        ratio, rotation = np.linalg.eigh(left.T @ spread)
    return JointForm(inner @ rotation, len(ratio), 1.0 / (1.0 + ratio))


def _outer_factor(
    covariance: NDArray, excess: NDArray, inner: NDArray, noise: NDArray, tol: float
) -> NDArray:
    """Return the factor of the part of `excess` outside the support of `covariance`."""
    basis = qr(inner, mode="economic")[0] if inner.shape[1] else inner
    outside = np.eye(len(excess)) - basis @ basis.T
    scale = _scales(covariance + excess)
    return pseudo_inverse_factor(outside @ excess @ outside, scale, noise, tol)


def _form_on_two_supports(inner: NDArray, outer: NDArray, excess: NDArray) -> JointForm:
    """Diagonalize when the background spans more directions than the classes do."""
    factor = np.hstack([inner, outer])
    rank = inner.shape[1]
    own = (np.arange(factor.shape[1]) < rank).astype(np.float64)
    # Here the class form is diag(own), and the background form the inverse of `joint`.
    joint = np.diag(own) + factor.T @ excess @ factor
    values, vectors = np.linalg.eigh(joint)
    root = np.sqrt(values)
    half = vectors[:rank] * root
    weights, rotation = np.linalg.eigh(half.T @ half)
    # Descending: coordinates that the class distance sees first, scaled to weight one there.
    rotation, weights = rotation[:, ::-1], weights[::-1]
    stretch = np.ones_like(weights)
    stretch[:rank] = np.sqrt(weights[:rank])
    projection = factor @ (vectors / root) @ (rotation * stretch)
    return JointForm(projection, rank, stretch**-2)
