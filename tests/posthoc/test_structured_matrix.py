"""Structured matrix scaling: the optimum by another solver, its limits, its gain."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning

from skcalib.posthoc import StructuredMatrixScaling, TemperatureScaling

from ._sample import mean_log_loss, sample


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 4])
def test_the_fit_is_the_minimum_of_the_penalized_loss(weighted, k):
    logits, y = sample(n=250, k=k, temperature=2.0)
    weight = np.random.default_rng(1).uniform(0.5, 3, 250) if weighted else np.ones(250)
    fitted = StructuredMatrixScaling().fit(logits, y, sample_weight=weight if weighted else None)
    temperature = TemperatureScaling().fit(logits, y, sample_weight=weight).temperature_
    assert fitted.temperature_ == pytest.approx(temperature, rel=1e-6)
    x, n = log_softmax(logits / temperature, axis=1), weight.sum()

    def objective(theta):
        deviation, intercept = theta[:-k].reshape(k, k), theta[-k:]
        proba = softmax(x + x @ deviation.T + intercept, axis=1)
        diagonal = np.diag(deviation)
        off_diagonal = deviation - np.diag(diagonal)
        return (
            mean_log_loss(proba, y, weight)
            + k / n * (np.sum(diagonal**2) + np.sum(intercept**2))
            + k * (k - 1) / n * np.sum(off_diagonal**2)
        )

    best = minimize(objective, np.zeros(k * k + k), method="BFGS", options={"gtol": 1e-8})
    theta = np.append((fitted.coef_ - np.eye(k)).ravel(), fitted.intercept_)
    assert objective(theta) <= best.fun + 1e-12
    np.testing.assert_allclose(theta, best.x, atol=1e-5)


def test_one_sample_a_class_leaves_the_temperature_alone():
    logits, y = sample(n=4000, k=8, temperature=2.0)
    one_each = np.array([np.flatnonzero(y == label)[0] for label in range(8)])
    fitted = StructuredMatrixScaling().fit(logits[one_each], y[one_each])
    assert np.abs(fitted.coef_ - np.eye(8)).max() < 0.15


def test_many_samples_find_what_a_temperature_cannot():
    bias = np.array([0.8, -0.8, 1.2, -1.2])
    logits, y = sample(n=20_000, temperature=2.0, bias=bias)
    half = slice(0, 10_000), slice(10_000, None)
    losses = {
        cls.__name__: mean_log_loss(
            cls().fit(logits[half[0]], y[half[0]]).predict_proba(logits[half[1]]),
            y[half[1]],
            np.ones(10_000),
        )
        for cls in (TemperatureScaling, StructuredMatrixScaling)
    }
    assert losses["StructuredMatrixScaling"] < losses["TemperatureScaling"] - 0.05


def test_too_few_iterations_are_told():
    logits, y = sample(n=300)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        StructuredMatrixScaling(max_iter=1).fit(logits, y)
