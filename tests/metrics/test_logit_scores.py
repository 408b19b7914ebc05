"""Scores of logits against scipy and mpmath."""

import mpmath
import numpy as np
import pytest
from scipy.special import logsumexp

from skcalib.metrics import energy_score, max_logit_score


@pytest.mark.parametrize("k", [2, 10, 60, 1000])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_against_scipy(k, dtype):
    logits = (5 * np.random.default_rng(0).normal(size=(300, k))).astype(dtype)
    wide = logits.astype(np.float64)
    tolerance = 1e-13 if dtype == np.float64 else 2e-6
    assert max_logit_score(logits).dtype == (np.float64 if dtype == np.float64 else np.float32)
    np.testing.assert_array_equal(max_logit_score(logits), wide.max(axis=1))
    for temperature in (0.3, 1.0, 7.0):
        expected = temperature * logsumexp(wide / temperature, axis=1)
        score = energy_score(logits, temperature=temperature)
        assert score.dtype == max_logit_score(logits).dtype
        np.testing.assert_allclose(score, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extreme_logits_against_mpmath(dtype):
    logits = np.array([[1000, -1000, 999], [-1000, -1001, -1000], [0, 0, 0]], dtype=dtype)
    with mpmath.workdps(40):
        expected = [float(mpmath.log(sum(mpmath.exp(float(z)) for z in row))) for row in logits]
    np.testing.assert_allclose(energy_score(logits), expected, rtol=2e-7)


def test_low_temperature_is_the_largest_logit():
    logits = np.random.default_rng(0).normal(size=(50, 8))
    np.testing.assert_allclose(
        energy_score(logits, temperature=1e-4), max_logit_score(logits), atol=1e-3
    )


def test_a_shift_of_the_row_is_a_shift_of_the_score():
    logits = np.random.default_rng(0).normal(size=(50, 8))
    for score in (max_logit_score, energy_score):
        np.testing.assert_allclose(score(logits + 3), score(logits) + 3)


@pytest.mark.parametrize("score", [max_logit_score, energy_score])
@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ([[1.0, np.nan]], ValueError, "logits must be finite, got nan"),
        ([[1.0, np.inf]], ValueError, "logits must be finite, got inf"),
        ([1.0, 2.0], ValueError, r"logits must have shape \(n_samples, n_classes\)"),
        ([[1.0]], ValueError, "at least two"),
        (np.empty((0, 3)), ValueError, "at least one row"),
        ([["a", "b"]], TypeError, "logits must hold real numbers"),
    ],
)
def test_bad_logits(score, bad, error, message):
    with pytest.raises(error, match=message):
        score(bad)


@pytest.mark.parametrize("temperature", [0, -1, "1"])
def test_bad_temperature(temperature):
    with pytest.raises(ValueError, match="'temperature' parameter"):
        energy_score([[1.0, 2.0]], temperature=temperature)
