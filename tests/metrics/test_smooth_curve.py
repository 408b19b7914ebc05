"""The smooth reliability curve against a naive kernel mean, and its band against simulation."""

import numpy as np
import pytest

from skcalib.metrics import smooth_calibration_error, smooth_reliability_curve


def sample(n=300, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.uniform(size=n)
    return (rng.uniform(size=n) < proba**1.5).astype(int), proba


def naive_curve(y, proba, points, bandwidth):
    """Return the kernel mean with ten reflections of every sample at 0 and 1."""
    images = np.concatenate([sign * proba + 2 * k for k in range(-5, 6) for sign in (1, -1)])
    outcome = np.tile(y, 22)
    kernel = np.exp(-((points[:, np.newaxis] - images) ** 2) / (2 * bandwidth**2))
    return kernel @ outcome / kernel.sum(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("bandwidth", [None, 0.01, 0.1, 1.0])
def test_the_curve_is_a_reflected_kernel_mean(bandwidth):
    y, proba = sample()
    curve = smooth_reliability_curve(y, proba, bandwidth=bandwidth, random_state=0)
    error = smooth_calibration_error(y, proba)
    assert curve.bandwidth == pytest.approx(bandwidth or error)
    expected = naive_curve(y, proba, curve.prob_pred, curve.bandwidth)
    near = np.abs(curve.prob_pred[:, np.newaxis] - proba).min(axis=1) <= 2 * curve.bandwidth
    near &= (curve.prob_pred >= proba.min() - 1 / 512) & (curve.prob_pred <= proba.max() + 1 / 512)
    np.testing.assert_array_equal(np.isnan(curve.prob_true), ~near)
    np.testing.assert_allclose(curve.prob_true[near], expected[near], atol=2e-3)


@pytest.mark.slow
def test_the_top_label_is_a_binary_problem():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), 200)
    y = (proba.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    of_classes = smooth_reliability_curve(y, proba, random_state=0)
    binary = smooth_reliability_curve(
        (proba.argmax(axis=1) == y).astype(int), proba.max(axis=1), random_state=0
    )
    for first, second in zip(of_classes, binary):
        np.testing.assert_allclose(first, second)


@pytest.mark.slow
def test_whole_weights_are_repetitions():
    y, proba = sample(100)
    weight = np.random.default_rng(2).integers(0, 4, 100)
    weighted = smooth_reliability_curve(y, proba, sample_weight=weight, random_state=0)
    repeated = smooth_reliability_curve(
        np.repeat(y, weight), np.repeat(proba, weight), random_state=0
    )
    for first, second in zip(weighted, repeated):
        np.testing.assert_allclose(first, second, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [200, pytest.param(2000, marks=pytest.mark.long)])
def test_the_band_holds_a_calibrated_model_as_often_as_it_says(n_samples):
    """At single confidences, over 80 new sets of labels: 90 % within four standard errors."""
    rng = np.random.default_rng(3)
    proba = rng.uniform(size=n_samples)
    options = {"bandwidth": 0.05, "confidence_level": 0.9, "random_state": 0}
    outcome = rng.uniform(size=n_samples) < proba
    band = smooth_reliability_curve(outcome, proba, n_resamples=1000, **options)
    places = np.searchsorted(band.prob_pred, [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
    inside = []
    for _ in range(80):
        y = (rng.uniform(size=n_samples) < proba).astype(int)
        curve = smooth_reliability_curve(y, proba, n_resamples=1, **options).prob_true
        inside.append((band.lower <= curve) & (curve <= band.upper))
    coverage = np.mean(inside, axis=0)[places]
    assert coverage.min() > 0.9 - 4 * np.sqrt(0.09 / 80)
    assert coverage.mean() < 0.96


@pytest.mark.slow
@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_one_sample(value):
    curve = smooth_reliability_curve([1], [value], random_state=0)
    near = np.abs(curve.prob_pred - value) <= 1 / 512
    np.testing.assert_allclose(curve.prob_true[near], 1)
    assert np.isnan(curve.prob_true[~near]).all()


@pytest.mark.parametrize(
    "options", [{"bandwidth": 0}, {"confidence_level": 1.0}, {"n_resamples": 0}]
)
def test_bad_options_are_named(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        smooth_reliability_curve([0, 1], [0.2, 0.7], **options)


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [10, pytest.param(40, marks=pytest.mark.long)])
def test_a_simultaneous_band_holds_whole_curves(n_draws):
    rng = np.random.default_rng(5)
    inside = []
    for seed in range(n_draws):
        proba = rng.uniform(size=200)
        y = rng.uniform(size=200) < proba
        curve = smooth_reliability_curve(
            y, proba, bandwidth=0.05, confidence_level=0.9, n_resamples=49, simultaneous=True,
            random_state=seed,
        )  # fmt: skip
        some = ~np.isnan(curve.prob_true)
        value, lower, upper = (part[some] for part in (curve.prob_true, curve.lower, curve.upper))
        inside.append(((lower - 1e-9 <= value) & (value <= upper + 1e-9)).all())
    assert abs(np.mean(inside) - 0.9) < 3 * np.sqrt(0.09 / n_draws)
