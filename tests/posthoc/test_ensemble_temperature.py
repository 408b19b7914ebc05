"""The mixture: temperature and weights are optimal together, known weights are recovered."""

import warnings

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import log_loss

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
        assert mean_log_loss(other, y, weight) > best - 1e-6
    # On the simplex the optimum has equal gradients where weights are positive, larger elsewhere.
    label = np.arange(600), y
    parts = [mixture(logits, fitted.temperature_, row)[label] for row in np.eye(3)]
    gradient = [np.average(part / proba[label], weights=weight) for part in parts]
    for w, g in zip(fitted.weights_, gradient):
        assert g == pytest.approx(1, abs=5e-3) if w > 0.05 else g < 1 + 5e-3
    # Nor is another temperature, but for its prior of one pseudo-error.
    for temperature in fitted.temperature_ * np.array([0.8, 0.9, 1.1, 1.25]):
        other = mixture(logits, temperature, fitted.weights_)
        assert mean_log_loss(other, y, weight) > best - 1e-3


@pytest.mark.slow
def test_label_noise_is_the_uniform_part():
    rng = np.random.default_rng(0)
    logits, y = sample(n=30_000, temperature=2.0)
    noisy = np.where(rng.random(30_000) < 0.3, rng.integers(0, 4, 30_000), y)
    fitted = EnsembleTemperatureScaling().fit(logits, noisy)
    assert fitted.weights_[2] == pytest.approx(0.3, abs=0.04)
    truth = 0.7 * softmax(logits / 2, axis=1) + 0.3 / 4
    mixed = np.abs(fitted.predict_proba(logits) - truth).mean()
    alone = TemperatureScaling().fit(logits, noisy)
    assert mixed < np.abs(alone.predict_proba(logits) - truth).mean() / 5


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


def test_single_precision_sums_to_one_for_scikit_learn():
    logits, y = sample(n=2000, k=30)
    narrow = logits.astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # scikit-learn 1.7 takes `labels` for the y of a regression.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        for calibrator in (EnsembleTemperatureScaling(), TemperatureScaling()):
            log_loss(y, calibrator.fit(narrow, y).predict_proba(narrow), labels=np.arange(30))
