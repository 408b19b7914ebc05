"""Means and their intervals: what all sections of a report count with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..utils._proba import wilson_interval

# Of all intervals in a report.
LEVEL = 0.95


def fraction(of: NDArray[np.bool_], mass: NDArray[np.float64]) -> dict[str, float]:
    """Return a fraction of the mass with its Wilson interval; weights count as samples."""
    total = mass.sum()
    value = float(mass[of].sum() / total) if total else float("nan")
    low, high = wilson_interval(np.array([value]), np.array([total]), LEVEL)
    return {"value": value, "low": float(low[0]), "high": float(high[0])}


def mean(values: NDArray[np.float64], mass: NDArray[np.float64]) -> float:
    """Return the weighted mean."""
    return float(np.average(values, weights=mass)) if mass.sum() else float("nan")


def mean_interval(values: NDArray[np.float64], mass: NDArray[np.float64]) -> dict[str, float]:
    """Return a mean with its normal interval; a sample of weight k counts as k samples."""
    total, center = mass.sum(), mean(values, mass)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = (mass @ (values - center) ** 2) / (total - 1)
    # One sample or less tells no spread.
    half = ndtri((1 + LEVEL) / 2) * np.sqrt(variance / total) if total > 1 else np.inf
    return {"value": center, "low": float(center - half), "high": float(center + half)}


def thinned(x: NDArray[Any], n_points: int = 300) -> NDArray[np.intp]:
    """Return the positions of at most about `n_points` points of a curve, the ends among them.

    A picture a few hundred pixels wide shows no more. Half of the points are spread evenly along
    the curve, half along x.
    """
    if len(x) <= n_points:
        return np.arange(len(x))
    along = np.linspace(0, len(x) - 1, n_points // 2).round().astype(np.intp)
    across = np.searchsorted(x, np.linspace(x[0], x[-1], n_points // 2))
    return np.unique(np.concatenate([along, np.minimum(across, len(x) - 1)]))


def plain(value: Any) -> Any:
    """Return numbers, arrays, tuples and dicts as what JSON knows."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return value
