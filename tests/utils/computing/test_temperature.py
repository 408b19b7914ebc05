import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from skcalib.utils.computing._temperature import (
    TemperatureFit,
    TemperatureProblem,
    TemperatureSums,
    best_uniform_weight,
    fit_temperature,
    fit_temperature_by_sums,
    temperature_sums,
)


def example():
    rng = np.random.default_rng(0)
    logits, y = 2 * rng.normal(size=(60, 4)), rng.integers(4, size=60)
    logits[np.arange(60), y] += 3.0 * (rng.uniform(size=60) < 0.7)
    return logits, y, rng.uniform(0, 2, 60)


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
    problem = TemperatureProblem(*example(), uniform, pseudo_errors)
    (low, _), (_, curvature), (high, _) = map(problem.slope_and_curvature, (0.699, 0.7, 0.701))
    assert (high - low) / 0.002 == pytest.approx(curvature, rel=1e-4)


@pytest.mark.parametrize("w", [None, 0.2])
def test_sums_are_derivatives_of_their_loss(w):
    logits, y, weight = example()

    def at(beta, w):
        sums = temperature_sums(logits, y, weight, beta, w, weight.sum(), 3.0)
        return TemperatureSums(*sums)

    here, step = at(0.7, w), 1e-4
    low, high = at(0.7 - step, w), at(0.7 + step, w)
    assert (high.loss - low.loss) / (2 * step) == pytest.approx(here.slope, rel=1e-5)
    assert (high.slope - low.slope) / (2 * step) == pytest.approx(here.curvature, rel=1e-5)
    if w is None:
        return
    # Those in w are of the log-likelihood.
    low, high = at(0.7, w - step), at(0.7, w + step)
    assert (low.loss - high.loss) / (2 * step) == pytest.approx(-here.by_weight, rel=1e-5)
    bend = (high.by_weight - low.by_weight) / (2 * step)
    assert bend == pytest.approx(here.twice_by_weight, rel=1e-5)
    assert (high.slope - low.slope) / (2 * step) == pytest.approx(here.mixed, rel=1e-5)


@pytest.mark.parametrize("start", [0.5, 30.0])
@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("pseudo_errors", [0.0, 3.0])
def test_sums_of_chunks_lead_to_the_fit_of_all(uniform, pseudo_errors, start):
    logits, y, weight = example()
    bounds, n = (1e-3, 1e3), weight.sum()
    expected = fit_temperature(
        logits, y, weight, bounds, uniform=uniform, pseudo_errors=pseudo_errors
    )

    def sums_at(beta, w):
        chunks = np.split(np.arange(60), [13, 40])
        return sum(
            temperature_sums(logits[rows], y[rows], weight[rows], beta, w, n, pseudo_errors)
            for rows in chunks
        )

    start = TemperatureFit(start, 0.1 if uniform else None)
    found = fit_temperature_by_sums(sums_at, start, n, bounds, pseudo_errors=pseudo_errors)
    assert found.temperature == pytest.approx(expected.temperature, rel=1e-5)
    assert (found.uniform_weight is None) == (not uniform)
    if uniform:
        assert found.uniform_weight == pytest.approx(expected.uniform_weight, rel=1e-3)
