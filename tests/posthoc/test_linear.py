"""Linear calibrators: the optimum by finite differences, scikit-learn, and known truth."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skcalib.posthoc import (
    BetaCalibration,
    DirichletCalibration,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
)

from ._sample import mean_log_loss, sample

WEIGHT = np.random.default_rng(9).uniform(0.2, 2, 400)


def objective(model, logits, y, theta, penalties):
    """The penalized loss as the docstring tells it, from scratch."""
    k = logits.shape[1]
    coef, b = theta[:-k].reshape(model.coef_.shape), theta[-k:]
    mapped = logits * coef + b if coef.ndim == 1 else logits @ coef.T + b
    loss = mean_log_loss(softmax(mapped, axis=1), y, WEIGHT)
    if coef.ndim == 2:
        loss += penalties[0] * np.mean(coef[~np.eye(k, dtype=bool)] ** 2)
        loss += penalties[1] * np.mean(b**2)
    return loss


@pytest.mark.parametrize(
    ("model", "penalties"),
    [
        (VectorScaling(), (0, 0)),
        (MatrixScaling(), (1, 1)),
        (MatrixScaling(off_diagonal_penalty=0.01, intercept_penalty=0.3), (0.01, 0.3)),
        (MatrixScaling(off_diagonal_penalty=0, intercept_penalty=0), (0, 0)),
        (DirichletCalibration(), (1, 1)),
        (DirichletCalibration(off_diagonal_penalty=0.1, intercept_penalty=0), (0.1, 0)),
    ],
    ids=str,
)
def test_the_gradient_vanishes_at_the_fit(model, penalties):
    logits, y = sample(n=400, bias=[0, 1, 0, -1])
    model.fit(logits, y, sample_weight=WEIGHT)
    features = log_softmax(logits, axis=1) if isinstance(model, DirichletCalibration) else logits
    theta = np.concatenate([model.coef_.ravel(), model.intercept_])

    def loss(t):
        return objective(model, features, y, t, penalties)

    np.testing.assert_allclose(approx_fprime(theta, loss, 1e-6), 0, atol=3e-6)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert loss(theta + 0.05 * rng.normal(size=len(theta))) > loss(theta)


def test_matrix_without_penalty_is_multinomial_regression():
    logits, y = sample(n=1500)
    fitted = MatrixScaling(off_diagonal_penalty=0, intercept_penalty=0).fit(logits, y)
    regression = LogisticRegression(C=1e10, tol=1e-10, max_iter=5000).fit(logits, y)
    np.testing.assert_allclose(
        fitted.predict_proba(logits), regression.predict_proba(logits), atol=1e-5
    )


def test_slopes_and_intercepts_are_recovered():
    bias = np.array([0.5, -0.5, 1.0, -1.0])
    logits, y = sample(n=20_000, temperature=2.0, bias=bias)
    fitted = VectorScaling().fit(logits, y)
    np.testing.assert_allclose(fitted.coef_, 0.5, atol=0.04)
    np.testing.assert_allclose(fitted.intercept_, bias, atol=0.1)
    full = MatrixScaling(off_diagonal_penalty=1e-3, intercept_penalty=0).fit(logits, y)
    np.testing.assert_allclose(
        full.coef_ - full.coef_.mean(axis=0), np.eye(4) / 2 - 1 / 8, atol=0.08
    )


def test_intercepts_sum_to_zero():
    logits, y = sample(n=400, bias=[0, 1, 0, -1])
    for model in (VectorScaling(), MatrixScaling(), DirichletCalibration()):
        assert model.fit(logits, y).intercept_.sum() == pytest.approx(0, abs=1e-9)


def test_a_large_penalty_leaves_the_diagonal():
    logits, y = sample(n=400, bias=[0, 1, 0, -1])
    fitted = MatrixScaling(off_diagonal_penalty=1e6, intercept_penalty=1e6).fit(logits, y)
    np.testing.assert_allclose(fitted.coef_ * (1 - np.eye(4)), 0, atol=1e-4)
    np.testing.assert_allclose(fitted.intercept_, 0, atol=1e-4)


def test_richer_maps_fit_at_least_as_well():
    logits, y = sample(n=800, bias=[0, 1, 0, -1])
    losses = [
        mean_log_loss(model.fit(logits, y).predict_proba(logits), y)
        for model in (
            TemperatureScaling(),
            VectorScaling(),
            MatrixScaling(off_diagonal_penalty=0, intercept_penalty=0),
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
    dirichlet = DirichletCalibration(off_diagonal_penalty=0, intercept_penalty=0)
    np.testing.assert_allclose(
        dirichlet.fit(logits, y).predict_proba(logits),
        BetaCalibration().fit(logits, y).predict_proba(logits),
        atol=1e-4,
    )


def test_stopping_early_is_told():
    logits, y = sample(n=400, bias=[0, 1, 0, -1])
    for model in (VectorScaling, MatrixScaling, DirichletCalibration):
        with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations"):
            assert model(max_iter=1).fit(logits, y).n_iter_ == 1


def test_extreme_logits_stay_finite():
    logits, y = sample(n=300)
    proba = VectorScaling().fit(1000 * logits, y).predict_proba(1000 * logits)
    assert np.isfinite(proba).all()
