"""The isotonic reliability curve against scikit-learn, and its band against simulation."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from skcalib.metrics import isotonic_reliability_curve, score_decomposition
from skcalib.metrics._reliability_curves import _compute_envelope


def sample(n=300, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.uniform(size=n).round(2)
    return (rng.uniform(size=n) < proba**1.5).astype(int), proba


@pytest.mark.parametrize("weighted", [False, True])
def test_the_curve_is_that_of_scikit_learn(weighted):
    y, proba = sample()
    weight = np.random.default_rng(1).uniform(0.1, 3, len(y)) if weighted else None
    curve = isotonic_reliability_curve(y, proba, sample_weight=weight, random_state=0)
    model = IsotonicRegression().fit(proba, y, sample_weight=weight)
    np.testing.assert_array_equal(curve.prob_pred, np.unique(proba))
    np.testing.assert_allclose(curve.prob_true, model.predict(curve.prob_pred), atol=1e-12)


def test_its_gap_is_the_miscalibration_of_the_decomposition():
    y, proba = sample()
    curve = isotonic_reliability_curve(y, proba, random_state=0)
    recalibrated = np.interp(proba, curve.prob_pred, curve.prob_true)
    gap = np.mean((y - proba) ** 2) - np.mean((y - recalibrated) ** 2)
    assert gap == pytest.approx(score_decomposition(y, proba).miscalibration)


def test_the_top_label_is_a_binary_problem():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), 200)
    y = (proba.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    of_classes = isotonic_reliability_curve(y, proba, random_state=0)
    binary = isotonic_reliability_curve(
        (proba.argmax(axis=1) == y).astype(int), proba.max(axis=1), random_state=0
    )
    for first, second in zip(of_classes, binary):
        np.testing.assert_allclose(first, second)


def test_whole_weights_are_repetitions():
    y, proba = sample(100)
    weight = np.random.default_rng(2).integers(0, 4, 100)
    weighted = isotonic_reliability_curve(y, proba, sample_weight=weight, random_state=0)
    repeated = isotonic_reliability_curve(
        np.repeat(y, weight), np.repeat(proba, weight), random_state=0
    )
    for first, second in zip(weighted, repeated):
        np.testing.assert_allclose(first, second, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [200, 2000])
def test_the_band_holds_a_calibrated_model_as_often_as_it_says(n_samples):
    """At single confidences, over 200 new sets of labels: 90 % within four standard errors."""
    rng = np.random.default_rng(3)
    proba = rng.uniform(size=n_samples)
    band = isotonic_reliability_curve(
        rng.uniform(size=n_samples) < proba,
        proba,
        confidence_level=0.9,
        n_resamples=500,
        random_state=0,
    )
    places = np.searchsorted(band.prob_pred, [0.1, 0.3, 0.5, 0.7, 0.9])
    inside = []
    for _ in range(200):
        y = (rng.uniform(size=n_samples) < proba).astype(int)
        curve = isotonic_reliability_curve(y, proba, n_resamples=1, random_state=0).prob_true
        slack = 1e-9
        inside.append((band.lower - slack <= curve) & (curve <= band.upper + slack))
    coverage = np.mean(inside, axis=0)[places]
    # Curves have few values, so that a quantile may hold more than it has to.
    assert coverage.min() > 0.9 - 4 * np.sqrt(0.09 / 200)
    assert coverage.mean() < 0.97


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_samples", "n_draws"), [(150, 60), pytest.param(3000, 20, marks=pytest.mark.long)]
)
def test_a_simultaneous_band_holds_whole_curves_of_a_calibrated_model(n_samples, n_draws):
    """90 % within three standard errors; of a model that is off few."""
    rng = np.random.default_rng(4)
    inside = {"calibrated": [], "off": []}
    for seed in range(n_draws):
        proba = rng.uniform(size=n_samples)
        for name, true in (("calibrated", proba), ("off", 0.2 + 0.6 * proba)):
            y = rng.uniform(size=n_samples) < true
            curve = isotonic_reliability_curve(
                y, proba, confidence_level=0.9, n_resamples=99, simultaneous=True,
                random_state=seed,
            )  # fmt: skip
            within = (curve.lower - 1e-9 <= curve.prob_true) & (
                curve.prob_true <= curve.upper + 1e-9
            )
            inside[name].append(within.all())
    assert abs(np.mean(inside["calibrated"]) - 0.9) < 3 * np.sqrt(0.09 / n_draws)
    assert np.mean(inside["off"]) < (0.8 if n_samples == 150 else 0.05)


def test_the_curves_left_out_of_an_envelope_are_the_most_extreme():
    """Beside a loop: the smallest rank decides, then the next smallest."""
    curves = np.random.default_rng(0).normal(size=(40, 6)).cumsum(axis=1)

    def extremeness(curve):
        return sorted(
            min((column <= value).sum(), (column >= value).sum())
            for column, value in zip(curves.T, curve)
        )

    kept = sorted(curves, key=extremeness)[4:]
    expected = np.min(kept, axis=0), np.max(kept, axis=0)
    np.testing.assert_array_equal(_compute_envelope(curves, 0.9), expected)


def test_a_simultaneous_band_needs_enough_curves():
    options = {"simultaneous": True, "random_state": 0}
    with pytest.raises(ValueError, match=r"n_resamples must be at least 19 .* 0\.95, got 18"):
        isotonic_reliability_curve(*sample(), n_resamples=18, **options)
    isotonic_reliability_curve(*sample(), n_resamples=19, **options)


@pytest.mark.slow
def test_few_draws_make_no_narrower_band():
    # Quantiles between the draws would leave .02 of the curves outside of a band of .99.
    rng = np.random.default_rng(0)
    outside = []
    for seed in range(60):
        proba = rng.uniform(size=200)
        y = rng.uniform(size=200) < proba
        curve = isotonic_reliability_curve(
            y, proba, confidence_level=0.99, n_resamples=200, random_state=seed
        )
        slack = 1e-9
        below, above = curve.prob_true < curve.lower - slack, curve.prob_true > curve.upper + slack
        outside.append((below | above).mean())
    assert np.mean(outside) < 0.01 + 2 * np.std(outside) / np.sqrt(60)


def test_a_higher_level_is_a_wider_band():
    y, proba = sample()
    narrow = isotonic_reliability_curve(y, proba, confidence_level=0.5, random_state=0)
    wide = isotonic_reliability_curve(y, proba, confidence_level=0.99, random_state=0)
    assert (wide.lower <= narrow.lower).all()
    assert (wide.upper >= narrow.upper).all()


@pytest.mark.parametrize(
    "options", [{"confidence_level": 0}, {"confidence_level": 1.0}, {"n_resamples": 0}]
)
def test_bad_options_are_refused(options):
    name = next(iter(options))
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        isotonic_reliability_curve([0, 1], [0.2, 0.7], **options)
