"""Calibrators by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sklearn.base import clone

from ._base import PostHocCalibrator
from ._linear import (
    DirichletCalibration,
    MatrixScaling,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    VectorScaling,
)
from ._one_vs_rest import BetaCalibration, HistogramBinning, IsotonicCalibration
from ._sigmoid import SigmoidCalibration
from ._stacking import StackedCalibration
from ._temperature import EnsembleTemperatureScaling, TemperatureScaling

CALIBRATORS: dict[str, Callable[[], PostHocCalibrator]] = {
    "auto": StackedCalibration,
    "beta": BetaCalibration,
    "dirichlet": DirichletCalibration,
    "ensemble_temperature": EnsembleTemperatureScaling,
    "histogram": HistogramBinning,
    "isotonic": IsotonicCalibration,
    "matrix": MatrixScaling,
    # A stack without maps leaves the probabilities unchanged.
    "none": partial(StackedCalibration, []),
    "platt": SigmoidCalibration,
    "sigmoid": SigmoidCalibration,
    "structured_matrix": StructuredMatrixScaling,
    "structured_vector": StructuredVectorScaling,
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
}


def get_calibrator(calibrator: PostHocCalibrator | str | None) -> PostHocCalibrator:
    """Return a new calibrator by name (None means "none"), or a clone of the given one."""
    if calibrator is None or isinstance(calibrator, str):
        return CALIBRATORS[calibrator or "none"]()
    return clone(calibrator)
