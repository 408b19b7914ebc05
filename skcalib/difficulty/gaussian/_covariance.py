"""From sufficient statistics to distances: shrinkage, rank tolerance, degenerate cases."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._class_distances import ClassDistances
from ._diagonalize import joint_form, plain_form
from ._statistics import GaussianStatistics


def default_tol(n_features: int, work_eps: float) -> float:
    """Return the largest eigenvalue that rounding alone gives, with each feature of variance 1.

    The products leave a matrix of errors of about `work_eps` in every entry, and the eigenvalues,
    of which the largest is up to `n_features`, are computed in float64. Over data with known null
    directions both terms are 4 to 8 times what was observed.
    """
    eps = float(np.finfo(np.float64).eps)
    return 8.0 * work_eps * float(np.sqrt(n_features)) + 4.0 * eps * n_features


def class_distances(
    statistics: GaussianStatistics,
    *,
    relative: bool,
    shrinkage: float | str | None,
    tol: float | None,
) -> ClassDistances:
    """Return the distances that `RelativeMahalanobisScorer` documents.

    Raises
    ------
    ValueError
        If there is nothing to compare (one class) or to divide by (no variance), or if the sums
        of squares have overflown.
    """
    seen = int((statistics.weight > 0).sum())
    if relative and seen < 2:
        raise ValueError(
            "y must have at least two classes for the relative distance, got one class; "
            "relative=False scores a single class."
        )
    if not np.isfinite(statistics.scatter).all():
        raise ValueError(
            "X must be small enough for its squares to be finite in its precision, got values "
            "that overflow; scale the features or pass float64."
        )
    within, (means, mean, root) = statistics.within_covariance(), statistics.center()
    variance = np.diag(within) + (root**2).sum(axis=0)
    # Rounding of the input is a variance too: that of its last digit.
    noise = statistics.input_eps**2 * (mean**2 + variance)
    if not (np.diag(within) > noise).any():
        raise ValueError(
            "X must vary within at least one class, got no variance about the class means "
            f"({statistics.total_weight:g} rows in {seen} classes)."
        )
    if tol is None:
        tol = default_tol(len(within), statistics.work_eps)
    total = statistics.total_weight
    if not relative:
        form = plain_form(shrunk(within, shrinkage, total), noise, tol)
    elif shrinkage is None:
        form = joint_form(within, root, noise, tol, rooted=True)
    else:
        covariance = shrunk(within, shrinkage, total)
        excess = shrunk(within + root.T @ root, shrinkage, total) - covariance
        form = joint_form(covariance, excess, noise, tol)
    return ClassDistances(form, means, mean)


def shrunk(
    covariance: NDArray[np.float64], shrinkage: float | str | None, n_samples: float
) -> NDArray[np.float64]:
    """Return the covariance, moved toward the identity times its mean variance."""
    if shrinkage is None:
        return covariance
    n_features = len(covariance)
    variance = np.trace(covariance) / n_features
    if shrinkage == "auto":
        shrinkage = _oas_coefficient(covariance, variance, n_samples)
    amount = float(shrinkage)
    return (1.0 - amount) * covariance + amount * variance * np.eye(n_features)


def _oas_coefficient(covariance: NDArray[np.float64], variance: float, n_samples: float) -> float:
    """Return the coefficient of Chen et al. (2010), in the form that scikit-learn gives it."""
    energy = float(np.mean(covariance**2))
    denominator = (n_samples + 1.0) * (energy - variance**2 / len(covariance))
    return 1.0 if denominator <= 0 else min((energy + variance**2) / denominator, 1.0)
