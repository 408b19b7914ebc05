"""The mixture: optimality on the simplex, recovery of known weights."""

import numpy as np
import pytest
from scipy.special import softmax

from skcalib.posthoc import EnsembleTemperatureScaling, TemperatureScaling

from ._sample import mean_log_loss, sample


def mixture(logits, temperature, weights):
    k = logits.shape[1]
    parts = softmax(logits / temperature, axis=1), softmax(logits, axis=1), 1 / k
    return sum(w * part for w, part in zip(weights, parts))


@pytest.mark.parametrize("seed", range(3))
def test_no_other_weights_are_better(seed):
    logits, y = sample(n=600, temperature=3.0, seed=seed)
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(600) < 0.2, rng.integers(0, 4, 600), y)
    weight = rng.uniform(0.2, 2, 600)
    fitted = EnsembleTemperatureScaling().fit(logits, y, sample_weight=weight)
    proba = fitted.predict_proba(logits)
    np.testing.assert_allclose(
        proba, mixture(logits, fitted.temperature_, fitted.weights_), rtol=1e-12
    )
    best = mean_log_loss(proba, y, weight)
    for weights in rng.dirichlet(np.ones(3), 300):
        other = mixture(logits, fitted.temperature_, weights)
        assert mean_log_loss(other, y, weight) > best - 1e-9
    # On the simplex the optimum has equal gradients where weights are positive, larger elsewhere.
    label = np.arange(600), y
    parts = [mixture(logits, fitted.temperature_, row)[label] for row in np.eye(3)]
    gradient = [np.average(part / proba[label], weights=weight) for part in parts]
    for w, g in zip(fitted.weights_, gradient):
        assert g == pytest.approx(1, abs=1e-3) if w > 1e-4 else g < 1 + 1e-3


def test_the_temperature_is_that_of_temperature_scaling():
    logits, y = sample(n=600)
    assert EnsembleTemperatureScaling().fit(logits, y).temperature_ == pytest.approx(
        TemperatureScaling().fit(logits, y).temperature_, rel=1e-9
    )


def test_label_noise_is_the_uniform_part():
    rng = np.random.default_rng(0)
    logits, y = sample(n=30_000, temperature=1.0)
    noisy = np.where(rng.random(30_000) < 0.3, rng.integers(0, 4, 30_000), y)
    fitted = EnsembleTemperatureScaling().fit(logits, noisy)
    assert fitted.weights_[2] > 0.1
    truth = 0.7 * softmax(logits, axis=1) + 0.3 / 4
    mixed = np.abs(fitted.predict_proba(logits) - truth).mean()
    scaled = np.abs(TemperatureScaling().fit(logits, noisy).predict_proba(logits) - truth).mean()
    assert mixed < scaled / 2


def test_the_prediction_never_changes():
    logits, y = sample(n=600, temperature=5.0)
    np.testing.assert_array_equal(
        EnsembleTemperatureScaling().fit(logits, y).predict(logits), logits.argmax(axis=1)
    )


def test_weights_are_on_the_simplex():
    for temperature in (0.3, 1.0, 4.0):
        logits, y = sample(n=300, temperature=temperature)
        weights = EnsembleTemperatureScaling().fit(logits, y).weights_
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(1)
