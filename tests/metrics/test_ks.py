import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skcalib.metrics import expected_calibration_error, ks_calibration_error


@pytest.mark.slow
@settings(max_examples=50)
@given(seed=st.integers(0, 2**32), n_levels=st.integers(1, 40))
def test_naive_loop(seed, n_levels):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, n_levels + 1, size=30) / n_levels
    y, weight = rng.integers(2, size=30), rng.uniform(0, 2, size=30)
    # The gap of all rows at or below a confidence, over all confidences.
    gaps = [abs((weight * (p - y))[p <= level].sum()) / weight.sum() for level in p]
    found = ks_calibration_error(y, p, sample_weight=weight)
    assert found == pytest.approx(max(gaps), abs=1e-12)


def test_equal_confidences_enter_together():
    y, p = np.array([0] * 5 + [1] * 5), np.full(10, 0.5)
    assert ks_calibration_error(y, p) == 0
    assert ks_calibration_error(y[::-1], p) == 0


def test_over_confidence_is_the_gap_of_the_means():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1, size=100)
    y = np.zeros(100, dtype=int)
    assert ks_calibration_error(y, p) == pytest.approx(p.mean())
    assert ks_calibration_error(y, p) == pytest.approx(expected_calibration_error(y, p))


def test_perfect_calibration_is_zero():
    p = np.repeat([0.25, 0.5, 1.0], 4)
    assert ks_calibration_error([0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1], p) == 0


def test_top_label():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(4), size=50), rng.integers(4, size=50)
    correct = (proba.argmax(axis=1) == y).astype(int)
    assert ks_calibration_error(y, proba) == ks_calibration_error(correct, proba.max(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeros_of_both_signs_and_subnormals_are_in_order(dtype):
    rng = np.random.default_rng(0)
    tiny = np.finfo(dtype).smallest_subnormal
    ends = np.array([0.0, -0.0, -1e-6, tiny, 2 * tiny, 1.0, np.nextafter(dtype(1), 0)], dtype)
    p = rng.choice(ends, size=60)
    y = rng.integers(2, size=60)
    gap = np.maximum(p.astype(np.float64), 0) - y
    expected = max(abs(gap[p <= t].sum()) for t in ends) / 60
    assert ks_calibration_error(y, p) == pytest.approx(expected, abs=1e-5)
    weighted = ks_calibration_error(y, p, sample_weight=np.ones(60))
    assert ks_calibration_error(y, p) == pytest.approx(weighted, abs=1e-12)
