import numpy as np
import pytest

from skcalib.metrics import smooth_calibration_error


def direct_error(p, y, weight, bandwidth, n_grid=40_001):
    """Integrate the kernel sum itself, images of the reflected kernel and all."""
    grid = np.linspace(0, 1, n_grid)
    smoothed = np.zeros(n_grid)
    for value, label, fraction in zip(p, y, weight / weight.sum()):
        images = [sign * value + 2 * m for m in range(-4, 5) for sign in (-1, 1)]
        kernel = sum(np.exp(-((grid - image) ** 2) / (2 * bandwidth**2)) for image in images)
        smoothed += fraction * (value - label) * kernel / (bandwidth * np.sqrt(2 * np.pi))
    height = np.abs(smoothed)
    return (height.sum() - (height[0] + height[-1]) / 2) / (n_grid - 1)


def predictions(kind, n=40):
    rng = np.random.default_rng(3)
    p = {
        "spread": rng.random(n),
        "ends": rng.choice([0.0, 1.0, 0.02, 0.97], size=n),
        "top": 1 - rng.exponential(1e-3, size=n).clip(0, 1),
    }[kind]
    return p, (rng.random(n) < p**1.5 * 0.9).astype(int), rng.uniform(0, 2, size=n)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["spread", "ends", "top"])
@pytest.mark.parametrize("bandwidth", [0.001, 0.02, 0.2, 1.0])
def test_exact_against_the_kernel_sum(kind, bandwidth):
    p, y, weight = predictions(kind)
    found = smooth_calibration_error(y, p, bandwidth=bandwidth, sample_weight=weight)
    assert found == pytest.approx(direct_error(p, y, weight, bandwidth), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["spread", "ends", "top"])
def test_the_error_is_its_own_bandwidth(kind):
    p, y, weight = predictions(kind)
    found = smooth_calibration_error(y, p, sample_weight=weight)
    assert found == pytest.approx(direct_error(p, y, weight, found), abs=1e-5)


@pytest.mark.parametrize("level", [0.0, 0.3, 0.99, 1.0])
@pytest.mark.parametrize("bandwidth", [None, 1e-3, 0.1, 1.0])
def test_mass_in_one_place_counts_in_full(level, bandwidth):
    # Peers that let half the kernel fall outside [0, 1] report half of it at the ends.
    y = np.arange(10) < 4
    found = smooth_calibration_error(y, np.full(10, level), bandwidth=bandwidth)
    assert found == pytest.approx(abs(level - 0.4), abs=1e-9)


@pytest.mark.parametrize(("level", "label"), [(0.0, 1), (1.0, 0)])
def test_the_largest_error_is_one(level, label):
    assert smooth_calibration_error([label] * 3, [level] * 3) == 1


def test_perfect_calibration_is_zero():
    assert smooth_calibration_error([0, 1, 0, 0], [0.0, 1.0, 0.0, 0.0]) == 0
    p = np.repeat([0.25, 0.5, 1.0], 4)
    y = [0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1]
    assert smooth_calibration_error(y, p) == pytest.approx(0, abs=1e-9)


def test_a_wide_kernel_leaves_the_gap_of_the_means():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = (rng.random(500) < p**2).astype(int)
    gap = abs(p.mean() - y.mean())
    # The slowest term of the series has decayed to exp(-pi^2 / 2) of its size.
    assert smooth_calibration_error(y, p, bandwidth=1.0) == pytest.approx(gap, abs=0.01)
    assert smooth_calibration_error(y, p) >= gap


def test_continuous_where_bins_jump():
    from skcalib.metrics import expected_calibration_error

    y = np.arange(100) % 2
    p = np.where(y == 1, 0.6 + 1e-6, 0.6 - 1e-6)
    swapped = np.where(y == 1, 0.6 - 1e-6, 0.6 + 1e-6)
    jump = expected_calibration_error(y, p, n_bins=5) - expected_calibration_error(
        y, np.full(100, 0.6), n_bins=5
    )
    assert jump > 0.3
    for other in (p, swapped):
        step = smooth_calibration_error(y, other) - smooth_calibration_error(y, np.full(100, 0.6))
        assert abs(step) < 1e-4


def test_top_label():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(4), size=50), rng.integers(4, size=50)
    correct = (proba.argmax(axis=1) == y).astype(int)
    assert smooth_calibration_error(y, proba) == smooth_calibration_error(
        correct, proba.max(axis=1)
    )


@pytest.mark.parametrize("bandwidth", [0, -0.1, 1.5, "auto"])
def test_bad_bandwidth(bandwidth):
    with pytest.raises(ValueError, match="'bandwidth' parameter"):
        smooth_calibration_error([0, 1], [0.2, 0.7], bandwidth=bandwidth)
