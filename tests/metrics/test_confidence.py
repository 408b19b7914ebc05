"""Named confidences, arrays of confidence, and their errors."""

import numpy as np
import pytest

from skcalib.metrics import (
    accuracy_at_coverage,
    area_under_generalized_risk_coverage,
    area_under_risk_coverage,
    coverage_at_risk,
    excess_area_under_risk_coverage,
    misclassification_report,
    risk_coverage_curve,
)

FUNCTIONS = [
    accuracy_at_coverage,
    area_under_generalized_risk_coverage,
    area_under_risk_coverage,
    coverage_at_risk,
    excess_area_under_risk_coverage,
    risk_coverage_curve,
]
Y = [0, 1, 1, 0]
PROBA = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]

BAD = {
    "name": (
        "max",
        ValueError,
        "confidence must be one of 'msp', 'entropy', 'margin' or an array",
    ),
    "length": ([1, 2, 3], ValueError, "y_true and confidence must have the same number of rows"),
    "shape": (np.ones((4, 1)), ValueError, r"confidence must have shape \(n,\)"),
    "scalar": (0.5, ValueError, r"confidence must have shape \(n,\)"),
    "NaN": ([1, 2, np.nan, 3], ValueError, "confidence must not contain NaN, got NaN in row 2"),
    "text": (["a", "b", "c", "d"], TypeError, "confidence must hold real numbers"),
    "None": (None, ValueError, "confidence must have shape"),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("fault", BAD)
def test_bad_confidence(function, fault):
    confidence, error, message = BAD[fault]
    with pytest.raises(error, match=message):
        function(Y, PROBA, confidence=confidence)


@pytest.mark.parametrize("fault", sorted(set(BAD) - {"name"}))
def test_bad_confidence_of_the_report(fault):
    confidence, error, message = BAD[fault]
    with pytest.raises(error, match=message):
        misclassification_report(Y, PROBA, confidence={"mine": confidence})


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_positive_class_alone_is_the_two_column_form(function):
    positive = np.asarray(PROBA)[:, 1]
    for confidence in ("msp", "margin", "entropy", [3, 1, 2, 2]):
        matrix = function(Y, PROBA, confidence=confidence)
        vector = function(Y, positive, confidence=confidence)
        for left, right in zip(np.atleast_1d(matrix), np.atleast_1d(vector)):
            np.testing.assert_allclose(left, right, atol=1e-12)


def test_half_is_the_first_class_as_in_predict():
    assert accuracy_at_coverage([0, 0], [0.5, 0.5], coverage=1) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("confidence", ["entropy", "margin", "msp"])
def test_rows_equal_up_to_the_order_of_classes_tie(dtype, confidence):
    rng = np.random.default_rng(0)
    row = rng.dirichlet(np.ones(6)).astype(dtype)
    proba = np.stack([rng.permutation(row) for _ in range(500)])
    y = (proba.cumsum(axis=1) < rng.random((500, 1))).sum(axis=1).clip(0, 5)
    curve = risk_coverage_curve(y, proba, confidence=confidence)
    assert len(curve.threshold) == 1
