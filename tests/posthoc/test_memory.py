"""A fit keeps few copies of the probabilities."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from skcalib import posthoc
from skcalib.datasets import make_predictions


def copies(name, n_samples, n_classes):
    y, proba, _ = make_predictions(n_samples, n_classes=n_classes, random_state=0)
    proba = proba.astype(np.float32)
    calibrator = getattr(posthoc, name)(input="proba")
    tracemalloc.start()
    try:
        calibrator.fit(proba, y)
        return tracemalloc.get_traced_memory()[1] / proba.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_samples", "n_classes", "most"),
    [
        ("TemperatureScaling", 60_000, 10, 3.5),
        ("MatrixScaling", 60_000, 10, 4.5),
        ("StructuredMatrixScaling", 60_000, 10, 3.5),
        ("StructuredMatrixScaling", 600, 300, 12),
        ("StructuredMatrixScaling", 1200, 600, 6),
        ("StackedCalibration", 60_000, 10, 6),
        ("StackedCalibration", 1000, 300, 6),
    ],
)
def test_copies_of_the_probabilities(name, n_samples, n_classes, most):
    assert copies(name, n_samples, n_classes) < most
