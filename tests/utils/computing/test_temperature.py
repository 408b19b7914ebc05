import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from skcalib.utils.computing._temperature import TemperatureProblem, best_uniform_weight


@pytest.mark.parametrize("start", [1e-6, 0.3, 0.9])
@pytest.mark.parametrize("n_wrong", [0, 5, 150])
def test_the_weight_of_the_uniform_part_maximizes_the_posterior(n_wrong, start):
    rng = np.random.default_rng(0)
    of_label = np.where(np.arange(200) < n_wrong, 1e-9, rng.uniform(0.5, 1, 200))
    weight = rng.uniform(0, 2, 200)
    fraction, n = weight / weight.sum(), weight.sum()

    def cost(logit):
        w = 1 / (1 + np.exp(-logit))
        of_data = n * fraction @ np.log((1 - w) * of_label + w / 4)
        # One pseudo-sample comes from the uniform part with probability 1 / (n + 1).
        return -of_data - (np.log(w) + n * np.log1p(-w)) / (n + 1)

    best = minimize_scalar(cost, bounds=(-25, 25), method="bounded", options={"xatol": 1e-9}).x
    found = best_uniform_weight(of_label, 0.25, fraction, n, start)
    assert found == pytest.approx(1 / (1 + np.exp(-best)), rel=1e-4)


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("pseudo_errors", [0.0, 3.0])
def test_the_curvature_is_the_derivative_of_the_slope(uniform, pseudo_errors):
    rng = np.random.default_rng(0)
    logits, y = 2 * rng.normal(size=(60, 4)), rng.integers(4, size=60)
    logits[np.arange(60), y] += 3.0 * (rng.uniform(size=60) < 0.7)
    weight = rng.uniform(0, 2, 60)
    problem = TemperatureProblem(logits, y, weight, uniform, pseudo_errors)
    (low, _), (_, curvature), (high, _) = map(problem.slope_and_curvature, (0.699, 0.7, 0.701))
    assert (high - low) / 0.002 == pytest.approx(curvature, rel=1e-4)
