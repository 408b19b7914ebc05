import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from skcalib.labels._likelihood import NoiseParameters, label_posterior
from skcalib.labels._noise_model import (
    _derivatives,
    _maximum_at_rate,
    _parameters,
    _vector,
    fit_noise_model,
    rate_interval,
)


def _draw(rng, proba):
    return (proba.cumsum(axis=1) > rng.random((len(proba), 1))).argmax(axis=1)


def _simulate(random_rate, near_rate, *, temperature=2.0, spread=1.5, n_samples=4000, seed=0):
    """Distances, true and given labels of the model itself."""
    rng = np.random.default_rng(seed)
    n_classes = 8
    distances = rng.gamma(1.0, 30.0, (n_samples, n_classes))
    true = _draw(rng, softmax(-distances / (2 * temperature), axis=1))
    near = softmax(-distances / (2 * temperature * spread), axis=1)
    near[np.arange(n_samples), true] = 0.0
    near_label = _draw(rng, near / near.sum(axis=1, keepdims=True))
    random_label = (true + rng.integers(1, n_classes, n_samples)) % n_classes
    kind = rng.choice(3, n_samples, p=[1 - random_rate - near_rate, random_rate, near_rate])
    return distances, true, np.choose(kind, [true, random_label, near_label])


def _fit(distances, given, *, mixed=True, verified=None, weight=None):
    weight = np.ones(len(given)) if weight is None else weight
    verified = np.zeros(len(given), dtype=bool) if verified is None else verified
    return fit_noise_model(distances, given, weight, verified, mixed=mixed)


@pytest.mark.parametrize("random_rate", [0.0, 0.05, 0.4])
def test_two_numbers_are_found_again(random_rate):
    distances, true, given = _simulate(random_rate, 0.0)
    p = _fit(distances, given, mixed=False).parameters
    assert p.rate == pytest.approx((true != given).mean(), abs=0.015)
    assert p.temperature == pytest.approx(2.0, rel=0.15)
    assert p.near_rate == 0


def test_four_numbers_are_found_again():
    distances, true, given = _simulate(0.05, 0.15, n_samples=20_000)
    p = _fit(distances, given).parameters
    assert p.rate == pytest.approx((true != given).mean(), abs=0.06)
    assert p.temperature == pytest.approx(2.0, rel=0.3)


def test_the_mixed_model_is_at_least_as_likely():
    distances, _, given = _simulate(0.1, 0.1)
    mixed, random = _fit(distances, given), _fit(distances, given, mixed=False)
    assert mixed.log_likelihood > random.log_likelihood


def test_the_noise_rate_is_the_mean_probability_of_a_wrong_label():
    distances, _, given = _simulate(0.1, 0.1)
    p = _fit(distances, given).parameters
    posterior = label_posterior(distances, given, np.zeros(len(given), dtype=bool), p)
    wrong = 1 - posterior[np.arange(len(given)), given]
    assert wrong.mean() == pytest.approx(p.rate, abs=1e-3)


@pytest.mark.parametrize("mixed", [False, True])
def test_interval_holds_the_rate(mixed):
    distances, true, given = _simulate(0.1, 0.0, n_samples=1500)
    fit = _fit(distances, given, mixed=mixed)
    low, high = rate_interval(fit)
    assert low < fit.parameters.rate < high
    assert low < (true != given).mean() < high


def test_derivatives_by_the_vector_are_those_of_finite_differences():
    distances, _, given = _simulate(0.05, 0.15, n_samples=200)
    likelihood, vector = _fit(distances, given).likelihood, np.array([0.4, -3.0, -1.5, -0.7])
    _, gradient, _ = _derivatives(likelihood, vector)
    numeric = [
        (_derivatives(likelihood, vector + h).value - _derivatives(likelihood, vector - h).value)
        / 2e-6
        for h in 1e-6 * np.eye(4)
    ]
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)


def _best_by_simplex(likelihood, start, parameters):
    """The largest value over vectors x, by a search that knows no derivatives."""
    options = {"xatol": 1e-7, "fatol": 1e-10, "maxfev": 4000}

    def loss(x):
        return -likelihood.derivatives(parameters(x)).value

    return -minimize(loss, start, method="Nelder-Mead", options=options).fun


def test_maxima_are_those_of_a_search_without_derivatives():
    distances, _, given = _simulate(0.05, 0.15, n_samples=1000)
    fit = _fit(distances, given)
    p = fit.parameters

    def of_rates(x):
        random, near = np.exp(x[1:3]) / (1 + np.exp(x[1:3]).sum())
        return NoiseParameters(np.exp(x[0]), random, near, 1 + np.exp(x[3]))

    best = _best_by_simplex(fit.likelihood, np.array([0.5, -3.0, -2.0, -0.5]), of_rates)
    assert fit.log_likelihood == pytest.approx(best, abs=2e-6)
    for rate in (0.7 * p.rate, 1.3 * p.rate):

        def at_rate(x, rate=rate):
            near = rate / (1 + np.exp(-x[1]))
            return NoiseParameters(np.exp(x[0]), rate - near, near, 1 + np.exp(x[2]))

        best = _best_by_simplex(fit.likelihood, np.array([0.5, 1.0, -0.5]), at_rate)
        vector, value = _maximum_at_rate(fit.likelihood, _vector(p), rate / (1 - rate))
        assert value == pytest.approx(best, abs=2e-6)
        assert _parameters(vector).rate == pytest.approx(rate)


def test_interval_covers_at_its_level():
    inside = 0
    for seed in range(40):
        distances, _, given = _simulate(0.1, 0.0, n_samples=400, seed=seed)
        low, high = rate_interval(_fit(distances, given, mixed=False))
        inside += low < 0.1 < high
    # Fewer than 34 of 40 has probability .003.
    assert inside >= 34


def test_interval_of_clean_labels_begins_at_nothing():
    distances, _, given = _simulate(0.0, 0.0, n_samples=1000)
    low, high = rate_interval(_fit(distances, given, mixed=False))
    assert low < 1e-3
    assert high < 0.02


def test_weight_is_repetition():
    distances, _, given = _simulate(0.1, 0.1, n_samples=600)
    weight = np.random.default_rng(0).integers(0, 3, len(given))
    rows = np.repeat(np.arange(len(given)), weight)
    weighted = _fit(distances, given, weight=weight.astype(float))
    repeated = _fit(distances[rows], given[rows])
    assert weighted.parameters.rate == pytest.approx(repeated.parameters.rate, abs=1e-4)
    np.testing.assert_allclose(rate_interval(weighted), rate_interval(repeated), atol=2e-3)


def test_verified_samples_settle_the_rate_of_near_flips():
    distances, true, given = _simulate(0.0, 0.2, n_samples=4000)
    verified = np.random.default_rng(0).random(len(given)) < 0.3
    labels = np.where(verified, true, given)
    fit = _fit(distances, labels, verified=verified)
    assert fit.parameters.near_rate == pytest.approx(0.2, abs=0.05)
    low, high = rate_interval(fit)
    wide_low, wide_high = rate_interval(_fit(distances, given))
    assert high - low < wide_high - wide_low


def test_of_two_classes_there_are_no_near_flips():
    rng = np.random.default_rng(0)
    distances = rng.gamma(1.0, 30.0, (500, 2))
    given = _draw(rng, softmax(-distances / 4, axis=1))
    assert _fit(distances, given).parameters.near_rate == 0


def test_of_very_many_samples_a_part_serves(monkeypatch):
    monkeypatch.setattr("skcalib.labels._noise_model._MAX_ELEMENTS", 1)
    monkeypatch.setattr("skcalib.labels._noise_model._MIN_SAMPLES", 2000)
    distances, _, given = _simulate(0.2, 0.0)
    fit = _fit(distances, given, mixed=False)
    assert fit.likelihood.total_weight == 2000
    assert fit.parameters.rate == pytest.approx(0.2, abs=0.03)
