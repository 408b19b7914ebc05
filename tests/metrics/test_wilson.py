import numpy as np
import pytest
from scipy.stats import binomtest

from skcalib.metrics._wilson import wilson_interval


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_against_scipy(level):
    for count in (1, 7, 200):
        for hits in {0, 1, count // 2, count}:
            low, high = wilson_interval(np.array([hits / count]), np.array([float(count)]), level)
            expected = binomtest(hits, count).proportion_ci(level, method="wilson")
            assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_empty_bins_are_nan():
    low, high = wilson_interval(np.array([np.nan]), np.array([0.0]), 0.9)
    assert np.isnan([low[0], high[0]]).all()


@pytest.mark.parametrize("level", [0, 1, 95])
def test_bad_level(level):
    with pytest.raises(ValueError, match=r"confidence_level must be in \(0, 1\)"):
        wilson_interval(np.array([0.5]), np.array([2.0]), level)
