"""Linear calibrators: the optimum by finite differences, scikit-learn, and known truth."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skcalib import posthoc
from skcalib.posthoc import (
    BetaCalibration,
    DirichletCalibration,
    MatrixScaling,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
    VectorScaling,
)
from skcalib.utils import SkcalibWarning

from ._sample import mean_log_loss, sample

WEIGHT = np.random.default_rng(9).uniform(0.2, 2, 400)


FREE = {"diagonal_penalty": 0, "off_diagonal_penalty": 0, "intercept_penalty": 0}


def centered(logits):
    return logits - logits.mean(axis=1, keepdims=True)


def objective(features, y, theta, penalties):
    """The mean of the penalized loss of the docstrings, from scratch."""
    k = features.shape[1]
    b = theta[-k:]
    if len(theta) == 2 * k:
        return mean_log_loss(softmax(features * theta[:k] + b, axis=1), y, WEIGHT)
    coef = theta[:-k].reshape(k, k)
    diagonal = np.diag(coef)
    off_diagonal = coef - np.diag(diagonal)
    penalty = (
        k * penalties[0] * np.sum((diagonal - 1) ** 2)
        + k * (k - 1) * penalties[1] * np.sum(off_diagonal**2)
        + k * penalties[2] * np.sum(b**2)
    )
    loss = mean_log_loss(softmax(features @ coef.T + b, axis=1), y, WEIGHT)
    return loss + penalty / len(WEIGHT)  # only ratios of weights matter: their mean is 1


@pytest.mark.parametrize("model", [VectorScaling, MatrixScaling, DirichletCalibration])
@pytest.mark.parametrize("penalties", [(1, 1, 1), (0.3, 0.01, 2), (0, 0, 0), (5, 0, 0)], ids=str)
def test_the_gradient_vanishes_at_the_fit(model, penalties):
    logits, y = sample(n=400, bias=[0, 1, 0, -1])
    params = {} if model is VectorScaling else dict(zip(FREE, penalties))
    fitted = model(**params).fit(logits, y, sample_weight=WEIGHT)
    temperature = TemperatureScaling().fit(logits, y, sample_weight=WEIGHT).temperature_
    assert fitted.temperature_ == pytest.approx(temperature, rel=1e-6)
    of = partial(log_softmax, axis=1) if model is DirichletCalibration else centered
    features = of(logits) / fitted.temperature_
    theta = np.concatenate([fitted.coef_.ravel(), fitted.intercept_])

    def loss(t):
        return objective(features, y, t, penalties)

    np.testing.assert_allclose(approx_fprime(theta, loss, 1e-6), 0, atol=3e-6)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert loss(theta + 0.05 * rng.normal(size=len(theta))) > loss(theta)


def test_matrix_without_penalty_is_multinomial_regression():
    logits, y = sample(n=1500)
    fitted = MatrixScaling(**FREE).fit(logits, y)
    x = centered(logits)
    regression = LogisticRegression(C=1e10, tol=1e-10, max_iter=5000).fit(x, y)
    np.testing.assert_allclose(
        fitted.predict_proba(logits), regression.predict_proba(x), atol=1e-5
    )


@pytest.mark.parametrize("model", [VectorScaling(), MatrixScaling()])
def test_a_constant_of_a_row_changes_nothing(model):
    logits, y = sample(n=600, bias=[0, 1, 0, -1])
    shifted = logits + 5 * np.random.default_rng(0).normal(size=(600, 1))
    proba = clone(model).fit(logits, y).predict_proba(logits)
    again = clone(model).fit(shifted, y)
    for other in (shifted, logits, log_softmax(logits, axis=1)):
        np.testing.assert_allclose(again.predict_proba(other), proba, atol=1e-5)
    by_proba = clone(model).set_params(input="proba")
    p = softmax(logits, axis=1)
    np.testing.assert_allclose(by_proba.fit(p, y).predict_proba(p), proba, atol=1e-5)


@pytest.mark.parametrize("name", ["MatrixScaling", "VectorScaling", "DirichletCalibration"])
def test_a_large_constant_of_float32_rows_changes_nothing(name):
    logits, y = sample(300, 4)
    model = getattr(posthoc, name)().fit(logits, y)
    rows = np.array([[1, 2, 3, 0], [0, 0, 5, 1]], dtype=np.float32)
    moved = rows + np.float32(2**20)  # exact
    np.testing.assert_allclose(model.predict_proba(moved), model.predict_proba(rows), atol=1e-6)


def test_slopes_and_intercepts_are_recovered():
    bias = np.array([0.5, -0.5, 1.0, -1.0])
    logits, y = sample(n=20_000, temperature=2.0, bias=bias)
    fitted = VectorScaling().fit(logits, y)
    np.testing.assert_allclose(fitted.coef_ / fitted.temperature_, 0.5, atol=0.04)
    np.testing.assert_allclose(fitted.intercept_, bias, atol=0.1)
    full = MatrixScaling(**FREE).fit(logits, y)
    of_logits = (full.coef_ - full.coef_.mean(axis=0)) / full.temperature_
    of_logits -= of_logits.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(of_logits, np.eye(4) / 2 - 1 / 8, atol=0.08)


def test_intercepts_sum_to_zero():
    logits, y = sample(n=400, bias=[0, 1, 0, -1])
    for model in (VectorScaling(), MatrixScaling(), DirichletCalibration()):
        assert model.fit(logits, y).intercept_.sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("model", [MatrixScaling, DirichletCalibration])
def test_large_penalties_leave_the_temperature(model):
    logits, y = sample(n=400, bias=[0, 1, 0, -1])
    fitted = model(diagonal_penalty=1e6, off_diagonal_penalty=1e6, intercept_penalty=1e6)
    expected = TemperatureScaling().fit(logits, y).predict_proba(logits)
    np.testing.assert_allclose(fitted.fit(logits, y).predict_proba(logits), expected, atol=1e-4)


def test_a_large_penalty_off_the_diagonal_leaves_vector_scaling():
    logits, y = sample(n=400, bias=[0, 1, 0, -1])
    penalties = FREE | {"off_diagonal_penalty": 1e6}
    np.testing.assert_allclose(
        MatrixScaling(**penalties).fit(logits, y).predict_proba(logits),
        VectorScaling().fit(logits, y).predict_proba(logits),
        atol=1e-4,
    )


@pytest.mark.parametrize("model", [MatrixScaling, DirichletCalibration])
def test_a_thousandfold_weight_leaves_the_penalties_as_they_are(model):
    logits, y = sample(n=400, bias=[0, 1, 0, -1])
    model = model(**dict.fromkeys(FREE, 1))
    proba = clone(model).fit(logits, y, sample_weight=WEIGHT).predict_proba(logits)
    heavy = clone(model).fit(logits, y, sample_weight=1000 * WEIGHT).predict_proba(logits)
    np.testing.assert_allclose(heavy, proba, rtol=1e-6)
    # So thirty samples of each weigh more than any weight: the penalty is less.
    many = clone(model).fit(np.tile(logits, (30, 1)), np.tile(y, 30)).predict_proba(logits)
    assert np.abs(many - clone(model).fit(logits, y).predict_proba(logits)).max() > 1e-3


def test_structured_scaling_is_dirichlet_with_all_penalties_where_the_temperature_is_one():
    logits, y = sample(n=4000, temperature=2.0)
    structured = StructuredMatrixScaling().fit(logits, y)
    scaled = log_softmax(logits / structured.temperature_, axis=1)
    again = DirichletCalibration(diagonal_penalty=1, intercept_penalty=0.1).fit(scaled, y)
    assert again.temperature_ == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(
        again.predict_proba(scaled), structured.predict_proba(logits), atol=1e-5
    )


def test_few_samples_do_not_make_a_matrix_worse_than_the_temperature():
    bias = [0.3, -0.3, 0.5, -0.5, 0, 0, 0, 0, 0, 0]
    logits, y = sample(n=20_000, k=10, bias=bias)
    some, others = slice(200), slice(200, None)
    losses = [
        mean_log_loss(model.fit(logits[some], y[some]).predict_proba(logits[others]), y[others])
        for model in (TemperatureScaling(), MatrixScaling(), StructuredMatrixScaling())
    ]
    assert max(losses[1:]) < losses[0]


def test_richer_maps_fit_at_least_as_well():
    logits, y = sample(n=800, bias=[0, 1, 0, -1])
    losses = [
        mean_log_loss(model.fit(logits, y).predict_proba(logits), y)
        for model in (
            TemperatureScaling(),
            VectorScaling(),
            MatrixScaling(**FREE),
        )
    ]
    assert losses[0] > losses[1] > losses[2]


def test_calibrated_probabilities_are_left_almost_alone():
    logits, y = sample(n=10_000, temperature=1.0)
    proba = softmax(logits, axis=1)
    for model in (VectorScaling(), MatrixScaling(), DirichletCalibration()):
        assert np.abs(model.fit(logits, y).predict_proba(logits) - proba).mean() < 0.01


def test_dirichlet_of_two_classes_without_penalty_is_beta_calibration():
    logits, y = sample(n=1500, k=2)
    logits /= 3
    dirichlet = DirichletCalibration(**FREE).fit(logits, y)
    expected = BetaCalibration().fit(logits, y).predict_proba(logits)
    np.testing.assert_allclose(dirichlet.predict_proba(logits), expected, atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("vector", [False, True])
def test_structured_scaling_is_the_minimum_of_the_penalized_loss(weighted, k, vector):
    logits, y = sample(n=250, k=k, temperature=2.0)
    weight = np.random.default_rng(1).uniform(0.5, 3, 250) if weighted else np.ones(250)
    model = StructuredVectorScaling if vector else StructuredMatrixScaling
    fitted = model().fit(logits, y, sample_weight=weight if weighted else None)
    x, n = log_softmax(logits / fitted.temperature_, axis=1), 250

    def objective(theta):
        rows, intercept = theta[:-k], theta[-k:]
        deviation = np.diag(rows) if vector else rows.reshape(k, k)
        proba = softmax(x + x @ deviation.T + intercept, axis=1)
        diagonal = np.diag(deviation)
        off_diagonal = deviation - np.diag(diagonal)
        return (
            mean_log_loss(proba, y, weight)
            + k / n * (np.sum(diagonal**2) + 0.1 * np.sum(intercept**2))
            + k * (k - 1) / n * np.sum(off_diagonal**2)
        )

    start = np.zeros(2 * k if vector else k * k + k)
    best = minimize(objective, start, method="BFGS", options={"gtol": 1e-8})
    theta = np.append((fitted.coef_ - (1 if vector else np.eye(k))).ravel(), fitted.intercept_)
    # Log-probabilities end at 1e-7, which these samples do not reach.
    assert x.min() > np.log(1e-7)
    assert objective(theta) <= best.fun + 1e-11
    np.testing.assert_allclose(theta, best.x, atol=2e-5)


def test_one_sample_a_class_leaves_the_temperature_alone():
    logits, y = sample(n=4000, k=8, temperature=2.0)
    one_each = np.array([np.flatnonzero(y == label)[0] for label in range(8)])
    fitted = StructuredMatrixScaling().fit(logits[one_each], y[one_each])
    assert np.abs(fitted.coef_ - np.eye(8)).max() < 0.15


def test_many_samples_find_what_a_temperature_cannot():
    logits, y = sample(n=20_000, temperature=2.0, bias=np.array([0.8, -0.8, 1.2, -1.2]))
    some, others = slice(10_000), slice(10_000, None)
    temperature, *structured = (
        mean_log_loss(cls().fit(logits[some], y[some]).predict_proba(logits[others]), y[others])
        for cls in (TemperatureScaling, StructuredVectorScaling, StructuredMatrixScaling)
    )
    assert max(structured) < temperature - 0.05


def test_stopping_early_is_a_warning():
    logits, y = sample(n=400, bias=[0, 1, 0, -1])
    for model in (VectorScaling, MatrixScaling, DirichletCalibration):
        with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations"):
            assert model(max_iter=1).fit(logits, y).n_iter_ == 1


@pytest.mark.parametrize("model", [VectorScaling(), MatrixScaling()])
@pytest.mark.parametrize("scale", [1e-2, 100])
def test_the_scale_of_the_logits_does_not_matter(model, scale):
    logits, y = sample(n=300)
    expected = model.fit(logits, y).predict_proba(logits)
    scaled = model.fit(scale * logits, y).predict_proba(scale * logits)
    np.testing.assert_allclose(scaled, expected, rtol=1e-5, atol=1e-7)


# The search starts on a subset where there are many samples. Logits that are thirty times too
# large know next to nothing of what they state.
@pytest.mark.filterwarnings("ignore:X seems to belong to rows")
@pytest.mark.parametrize("n", [300, 20_000])
@pytest.mark.parametrize("temperature", [0.1, 30.0])
def test_vector_scaling_converges_from_afar(n, temperature):
    logits, y = sample(n, k=3, temperature=temperature, bias=[3, 0, -3])
    fitted = VectorScaling().fit(logits, y)
    features = np.hstack([centered(logits) / fitted.temperature_, np.ones((n, 1))])
    residual = fitted.predict_proba(logits) - np.eye(3)[y]
    slopes = residual.T @ features
    np.testing.assert_allclose(np.append(np.diag(slopes), slopes[:, 3]) / n, 0, atol=1e-7)


@pytest.mark.filterwarnings("ignore:The temperature is at its lower bound")
@pytest.mark.parametrize(
    "calibrator", [VectorScaling, StructuredVectorScaling, MatrixScaling, StructuredMatrixScaling]
)
@pytest.mark.parametrize("distance", [4, 30, 1000])
@pytest.mark.parametrize("k", [2, 5])
def test_probabilities_that_round_to_0_and_1(calibrator, distance, k):
    rng = np.random.default_rng(k)
    y = rng.integers(k, size=200)
    logits = distance * np.eye(k)[y] + rng.normal(size=(200, k)) / 2
    proba = calibrator().fit(logits, y).predict_proba(logits)
    assert (proba[np.arange(200), y] > 0.99).all()


def test_vector_scaling_ends_where_a_class_is_separable():
    logits, y = sample(n=60, k=3)
    logits[:, 2] = np.where(y == 2, 1.0, 0.0)
    logits[:, :2] -= logits.sum(axis=1, keepdims=True) / 2
    fitted = VectorScaling().fit(logits, y)
    assert fitted.n_iter_ < 50
    proba = fitted.predict_proba(logits)
    np.testing.assert_allclose(proba[:, 2], y == 2, atol=1e-6)


@pytest.mark.parametrize("name", ["MatrixScaling", "StructuredMatrixScaling"])
def test_ten_thousand_classes_are_no_matrix(name):
    logits, y = np.random.default_rng(0).normal(size=(20, 10_000)), np.arange(20)
    with pytest.raises(ValueError, match="100,010,000 parameters for 10,000 classes"):
        getattr(posthoc, name)(classes=np.arange(10_000)).fit(logits, y)


@pytest.mark.parametrize("model", [VectorScaling, MatrixScaling, StructuredVectorScaling])
def test_samples_that_are_all_right_give_the_lower_bound_with_a_warning(model):
    logits, _ = sample(n=60)
    y = logits.argmax(axis=1)
    second, first = np.sort(logits, axis=1)[:, -2:].T
    lower = 1e-3 * np.sort(first - second)[29]  # of the median of 60 margins
    with pytest.warns(SkcalibWarning, match="lower bound, 0.00[0-9]*: the samples are too"):
        assert model().fit(logits, y).temperature_ == pytest.approx(lower, rel=1e-12)
    mixed = model(mix_uniform=True).fit(logits, y)  # no warning: the prior has a minimum
    assert mixed.temperature_ > 1e-2
