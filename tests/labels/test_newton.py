import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from skcalib.labels._newton import Derivatives, maximum

WIDE = np.array([(-50.0, 50.0)] * 3)


def _logistic_regression(n_samples=400, scale=(1.0, 0.01, 30.0)):
    """The mean log-likelihood of labels; inputs of very different scales."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, 3)) * scale
    y = rng.random(n_samples) < expit(X @ (np.array([1.0, -2.0, 0.5]) / scale))

    def derivatives(coef):
        margin = np.where(y, 1.0, -1.0) * (X @ coef)
        slope = (np.where(y, 1.0, -1.0) * expit(-margin))[:, None] * X
        value = -np.logaddexp(0.0, -margin).mean()
        return Derivatives(value, slope.mean(axis=0), slope.T @ slope / n_samples)

    return derivatives


def _by_scipy(derivatives, bounds):
    def loss(x):
        value, gradient, _ = derivatives(x)
        return -value, -gradient

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 10_000}
    start = np.clip(np.zeros(len(bounds)), *bounds.T)
    found = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
    return found.x, -found.fun


@pytest.mark.parametrize(
    "bounds", [WIDE, [(-0.5, 0.5), (-50, 50), (0.1, 1)], [(2, 3), (-1, 0), (-50, 50)]]
)
def test_maximum_is_that_of_another_solver(bounds):
    derivatives, bounds = _logistic_regression(scale=(1.0, 0.1, 3.0)), np.array(bounds, float)
    x, value = maximum(derivatives, np.zeros(3), bounds)
    expected, best = _by_scipy(derivatives, bounds)
    assert value == pytest.approx(best, abs=1e-6)
    np.testing.assert_allclose(x, expected, atol=0.02)
    assert ((bounds[:, 0] <= x) & (x <= bounds[:, 1])).all()


def test_scales_of_the_parameters_do_not_matter():
    evaluated = []

    def counted(coef, derivatives):
        evaluated[-1] += 1
        return derivatives(coef)

    values = []
    for scale in ((1.0, 1.0, 1.0), (0.3, 1.0, 30.0)):
        derivatives = _logistic_regression(scale=scale)
        evaluated.append(0)
        _, value = maximum(lambda x, d=derivatives: counted(x, d), np.zeros(3), WIDE)
        values.append(value)
    assert values[0] == pytest.approx(values[1], abs=1e-6)
    assert max(evaluated) < 20


def test_information_that_misleads_costs_steps_and_not_the_maximum():
    # A parabola, whose information is too small: undamped steps would be 100 times too long.
    def derivatives(x):
        return Derivatives(float(-((x - 3.0) ** 2).sum()), -2.0 * (x - 3.0), np.eye(2) * 0.02)

    x, value = maximum(derivatives, np.zeros(2), WIDE[:2])
    assert value == pytest.approx(0.0, abs=1e-5)
    np.testing.assert_allclose(x, 3.0, atol=0.01)


def test_a_parameter_without_effect_stays_and_a_start_outside_is_moved_in():
    def derivatives(x):
        return Derivatives(-(x[0] ** 2), np.array([-2 * x[0], 0.0]), np.diag([2.0, 0.0]))

    x, value = maximum(derivatives, np.array([9.0, 0.7]), np.array([(1.0, 2.0), (0.0, 1.0)]))
    assert x.tolist() == [1.0, 0.7]
    assert value == -1.0


def test_derivatives_by_other_parameters_are_those_of_the_chain_rule():
    directions = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 3.0]])
    derivatives, step = _logistic_regression(), 1e-6
    x = np.array([0.3, -0.2])
    along = derivatives(x @ directions).along(directions)
    numeric = [
        (derivatives((x + h) @ directions).value - derivatives((x - h) @ directions).value)
        / (2 * step)
        for h in step * np.eye(2)
    ]
    np.testing.assert_allclose(along.gradient, numeric, rtol=1e-5, atol=1e-8)
    expected = np.einsum("ai,ij,bj->ab", directions, derivatives(x @ directions)[2], directions)
    np.testing.assert_allclose(along.information, expected)
