"""The uniform component: fitted together with every map, on a prior of one sample."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from skcalib.posthoc import (
    BetaCalibration,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    MatrixScaling,
    StackedCalibration,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
    VectorScaling,
)
from skcalib.posthoc._base import fit_simplex_weights

from ._sample import mean_log_loss, sample

LINEAR = [
    VectorScaling,
    MatrixScaling,
    DirichletCalibration,
    StructuredVectorScaling,
    StructuredMatrixScaling,
]
KNOWN = [TemperatureScaling, BetaCalibration, *LINEAR]


def noisy(n=600, k=3, noise=0.15, seed=0):
    logits, y = sample(n=n, k=k, seed=seed)
    rng = np.random.default_rng(seed + 1)
    return logits, np.where(rng.random(n) < noise, rng.integers(0, k, n), y)


def prior(w, n):
    """One pseudo-sample, of the uniform component with probability 1 / (n + 1)."""
    return -(np.log(w) / (n + 1) + (1 - 1 / (n + 1)) * np.log1p(-w)) / n


@pytest.mark.parametrize("noise", [0.0, 0.15])
@pytest.mark.parametrize("weighted", [False, True])
def test_temperature_and_weight_are_optimal_together(noise, weighted):
    logits, y = noisy(noise=noise)
    weight = np.random.default_rng(2).uniform(0.5, 2, 600) if weighted else np.ones(600)
    n = 600  # only ratios of weights matter: their mean is 1
    ordered = np.sort(logits, axis=1)
    gap = ordered[:, -1] - ordered[:, -2]

    def objective(theta):
        beta, w = np.exp(theta[0]), expit(theta[1])
        proba = (1 - w) * softmax(beta * logits, axis=1) + w / 3
        pseudo_error = np.average(np.logaddexp(0, beta * gap), weights=weight)
        return mean_log_loss(proba, y, weight) + prior(w, n) + pseudo_error / n

    fitted = TemperatureScaling(mix_uniform=True).fit(logits, y, sample_weight=weight)
    w = fitted.uniform_weight_
    theta = np.array([-np.log(fitted.temperature_), np.log(w / (1 - w))])
    best = minimize(objective, theta + 0.3, method="Nelder-Mead",
                    options={"xatol": 1e-7, "fatol": 1e-14, "maxiter": 4000})  # fmt: skip
    assert objective(theta) <= best.fun + 1e-10
    assert abs(theta[0] - best.x[0]) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("model", LINEAR)
def test_linear_maps_and_weight_are_optimal_together(model):
    logits, y = noisy()
    fitted, n, k = model(mix_uniform=True).fit(logits, y), 600, 3
    # A constant of a row says nothing: vectors and matrices read it centered.
    scaled = (logits - logits.mean(axis=1, keepdims=True)) / fitted.temperature_
    if model is DirichletCalibration:
        scaled = log_softmax(logits, axis=1) / fitted.temperature_
    elif "Structured" in model.__name__:
        scaled = np.maximum(log_softmax(scaled, axis=1), np.log(1e-7))
    free = {VectorScaling: 0, DirichletCalibration: 0}.get(model, 1)
    others = 0 if model is VectorScaling else 1
    intercept = 0.1 if "Structured" in model.__name__ else others

    def objective(theta):
        w, b, deviation = expit(theta[0]), theta[1 : k + 1], theta[k + 1 :]
        deviation = np.diag(deviation) if len(deviation) == k else deviation.reshape(k, k)
        proba = (1 - w) * softmax(scaled + scaled @ deviation.T + b, axis=1) + w / k
        diagonal = np.diag(deviation)
        square = free * k * diagonal @ diagonal + intercept * k * b @ b
        square += others * k * (k - 1) * (np.sum(deviation**2) - diagonal @ diagonal)
        return mean_log_loss(proba, y) + prior(w, n) + square / n

    w = fitted.uniform_weight_
    slopes = fitted.coef_ - (1 if fitted.coef_.ndim == 1 else np.eye(k))
    theta = np.concatenate([[np.log(w / (1 - w))], fitted.intercept_, slopes.ravel()])
    best = minimize(objective, theta + 0.01, method="BFGS", options={"gtol": 1e-9})
    assert objective(theta) <= best.fun + 1e-9
    # A matrix may bend to the labels that a vector leaves to the uniform component.
    assert w > 0.05 or fitted.coef_.ndim == 2


@pytest.mark.parametrize("model", KNOWN)
def test_a_few_labels_held_for_impossible_do_not_rule_the_map(model):
    logits, y = sample(n=600, k=2, temperature=1.0)
    truth, wrong = softmax(logits, axis=1), logits.copy()
    # Five samples of which the model is as sure as can be, and wrong.
    wrong[:5] = np.where(np.arange(2) == y[:5, None], -20.0, 20.0)
    beside, alone = (
        mean_log_loss(model(mix_uniform=uniform).fit(wrong, y).predict_proba(logits)[5:], y[5:])
        for uniform in (True, False)
    )
    assert beside < mean_log_loss(truth[5:], y[5:]) + 0.02
    # Beta calibration reads no logit beyond that of 1e-7.
    assert alone > beside + (0.005 if model is BetaCalibration else 0.05)


@pytest.mark.parametrize(
    "model",
    [
        TemperatureScaling(mix_uniform=True),
        StructuredVectorScaling(mix_uniform=True),
        StructuredMatrixScaling(mix_uniform=True),
        StackedCalibration(),
    ],
)
def test_samples_that_are_all_right_leave_room_for_errors(model):
    logits, y = sample(n=4000, k=3, temperature=1.0)
    right = logits.argmax(axis=1) == y
    some = np.flatnonzero(right)[:100]
    proba = model.fit(logits[some], y[some]).predict_proba(logits)
    assert mean_log_loss(proba, y) < 2 * mean_log_loss(softmax(logits, axis=1), y)


MIXED = [
    EnsembleTemperatureScaling,
    StackedCalibration,
    *(partial(model, mix_uniform=True) for model in KNOWN),
]


@pytest.mark.parametrize("model", MIXED)
def test_exact_zeros_of_the_label(model):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    proba = rng.dirichlet([0.3, 0.3, 0.3], 300)
    proba[proba < 0.05] = 0
    proba /= proba.sum(axis=1, keepdims=True)
    assert (proba[np.arange(300), y] == 0).sum() > 20
    calibrated = model(input="proba").fit(proba, y).predict_proba(proba)
    assert mean_log_loss(calibrated, y) < np.log(3) + 0.01


def test_logits_that_overflow_at_their_temperature():
    logits = np.array([[1e38, 0], [2e38, 0], [0, 1e38], [1e37, 0]], dtype=np.float32)
    for model in (partial(TemperatureScaling, mix_uniform=True), EnsembleTemperatureScaling):
        proba = model(input="scores").fit(logits, [0, 0, 1, 0]).predict_proba(logits)
        expected = model(input="scores").fit(logits / 1e38, [0, 0, 1, 0])
        np.testing.assert_allclose(proba, expected.predict_proba(logits / 1e38), atol=1e-5)
    small = TemperatureScaling(bounds=(1e-3, 1e-3), input="scores").fit(logits, [0, 0, 1, 0])
    np.testing.assert_allclose(small.predict_proba(logits), np.eye(2)[[0, 0, 1, 0]], atol=1e-30)


@pytest.mark.parametrize(
    "model",
    [
        TemperatureScaling(mix_uniform=True),
        EnsembleTemperatureScaling(),
        StackedCalibration(),
    ],
)
def test_logits_of_minus_infinity_are_options_that_do_not_exist(model):
    logits, y = noisy(n=900, k=5)
    missing = np.random.default_rng(3).random((900, 5)) < 0.3
    missing[np.arange(900), y] = False
    logits = np.where(missing, -np.inf, logits)
    proba = model.fit(logits, y).predict_proba(logits)
    np.testing.assert_array_equal(proba[missing], 0)
    assert (proba[~missing] > 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    finite = np.where(missing, -1e4, logits)
    if isinstance(model, TemperatureScaling):
        temperature = TemperatureScaling().fit(finite, y).temperature_
        assert TemperatureScaling().fit(logits, y).temperature_ == pytest.approx(temperature)
        # The uniform component is that of the options of the sample.
        raw = softmax(logits / model.temperature_, axis=1)
        options = (~missing).sum(axis=1, keepdims=True)
        w = model.uniform_weight_
        np.testing.assert_allclose(proba, np.where(missing, 0, (1 - w) * raw + w / options))


def test_bad_options_are_named():
    logits, y = sample(n=60)
    with pytest.raises(
        ValueError, match="X must hold a finite logit in every row, got none in row 3"
    ):
        TemperatureScaling().fit(np.where(np.arange(60)[:, None] == 3, -np.inf, logits), y)
    hidden = logits.copy()
    hidden[7, y[7]] = -np.inf
    with pytest.raises(
        ValueError, match="options that exist, got one with a logit of -inf in row 7"
    ):
        TemperatureScaling().fit(hidden, y)
    for model in (MatrixScaling, StructuredVectorScaling, BetaCalibration):
        with pytest.raises(ValueError, match="infinity"):
            model().fit(hidden, y)
    with pytest.raises(ValueError, match="infinity"):
        TemperatureScaling().fit(-hidden, y)


@pytest.mark.parametrize("prior", [0.0, np.array([20.0, 5.0, 9.0, 1.0])])
def test_weights_of_a_mixture_against_a_general_solver(prior):
    rng = np.random.default_rng(0)
    of_label = (rng.random((200, 4)) ** [1, 2, 3, 0.5]).T
    weight = rng.uniform(0.5, 2, 200)

    def objective(z):
        w = softmax(z)
        return -weight @ np.log(w @ of_label) - np.sum(prior * log_softmax(z))

    best = minimize(objective, np.zeros(4), options={"gtol": 1e-9})
    found = fit_simplex_weights(of_label, weight, prior)
    assert objective(np.log(np.maximum(found, 1e-300))) <= best.fun + 1e-4 * weight.sum()
    np.testing.assert_allclose(found, softmax(best.x), atol=2e-3)


@pytest.mark.parametrize("seed", range(12))
def test_weights_of_a_mixture_are_at_the_maximum(seed):
    """None has a slope above that of the sum, and those that are not 0 have the same."""
    rng = np.random.default_rng(seed)
    of_label = np.maximum(rng.random((1 + seed % 5, 200)) ** rng.choice([0.3, 1, 200]), 1e-38)
    of_label[-1] = of_label[0]  # the same component twice, or the only one
    weight = rng.random(200)
    w = fit_simplex_weights(of_label, weight)
    slope = (of_label / (w @ of_label)) @ weight / weight.sum() - 1
    assert np.all(w >= 0)
    assert w.sum() == pytest.approx(1)
    assert slope.max() < 1e-6
    assert np.abs(w * slope).max() < 1e-6


@pytest.mark.parametrize("model", [StructuredVectorScaling, VectorScaling])
def test_wrong_labels_cost_no_iterations(model):
    """Newton's steps know how the best weight of the uniform component moves with the map."""
    logits, y = sample(1000, 3)
    y[::10] = (y[::10] + 1) % 3
    assert model(mix_uniform=True).fit(logits, y).n_iter_ <= 5
