import warnings
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax

from skcalib.datasets import make_predictions
from skcalib.metrics import _temperature_fit
from skcalib.metrics._temperature_fit import (
    TemperatureFit,
    TemperatureProblem,
    TemperatureSums,
    compute_softmax_at,
    compute_softmax_in_place,
    compute_temperature_sums,
    find_uniform_weight,
    fit_temperature,
    fit_temperature_by_sums,
    label_terms,
    log_softmax_at,
    update_uniform_weight,
    warn_of_bound,
)
from skcalib.posthoc import EnsembleTemperatureScaling, TemperatureScaling, _temperature
from skcalib.utils import SkcalibWarning


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
    found = find_uniform_weight(of_label, 0.25, fraction, n, start)
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
        sums = compute_temperature_sums(logits, y, weight, beta, w, weight.sum(), 3.0)
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


@pytest.mark.parametrize("scale", [0.01, 1.0, 200.0])
@pytest.mark.parametrize("start", [0.5, 30.0])
# A uniform component without pseudo-errors may have several optima.
@pytest.mark.parametrize(
    ("uniform", "pseudo_errors"), [(False, 0.0), (False, 3.0), (True, 1.0), (True, 3.0)]
)
def test_sums_of_chunks_lead_to_the_fit_of_all(uniform, pseudo_errors, start, scale):
    logits, y, weight = example()
    logits *= scale
    bounds, n = (1e-3, 1e3), weight.sum()
    expected = fit_temperature(
        logits, y, weight, bounds, uniform=uniform, pseudo_errors=pseudo_errors
    )

    def sums_at(beta, w):
        chunks = np.split(np.arange(60), [13, 40])
        return sum(
            compute_temperature_sums(
                logits[rows], y[rows], weight[rows], beta, w, n, pseudo_errors
            )
            for rows in chunks
        )

    start = TemperatureFit(start, 0.1 if uniform else None)
    found = fit_temperature_by_sums(sums_at, start, n, bounds, pseudo_errors=pseudo_errors)
    assert found.temperature == pytest.approx(expected.temperature, rel=1e-5)
    assert (found.uniform_weight is None) == (not uniform)
    if uniform:
        assert found.uniform_weight == pytest.approx(expected.uniform_weight, rel=1e-3)


@pytest.mark.parametrize("scale", [0.05, 1.0])  # of the weights: 3 or 60 samples in all
@pytest.mark.parametrize("n_times", [1, 150])
@pytest.mark.parametrize("pseudo_errors", [0.0, 3.0])
@pytest.mark.parametrize("uniform", [False, True])
def test_the_fit_minimizes_the_log_loss_as_written(uniform, pseudo_errors, n_times, scale):
    logits, y, weight = example()
    logits[:9, 3], y[:9] = -np.inf, y[:9] % 3  # options that do not exist
    weight *= scale
    n, n_options = n_times * weight.sum(), np.isfinite(logits).sum(axis=1)
    top_two = np.sort(logits, axis=1)[:, -2:]
    prior = 1 / (max(n, 1) + 1)

    def cost(parameters):
        beta, w = np.exp(parameters[0]), 1 / (1 + np.exp(-parameters[1])) if uniform else 0.0
        proba = softmax(beta * logits, axis=1)[np.arange(60), y]
        total = -n_times * weight @ np.log((1 - w) * proba + w / n_options)
        wrong = np.logaddexp(0, beta * (top_two[:, 1] - top_two[:, 0]))
        total += n_times * pseudo_errors * weight @ wrong / max(n, 10)
        return total - (prior * np.log(w) + (1 - prior) * np.log1p(-w) if uniform else 0.0)

    options = {"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000}
    best = minimize(cost, [-0.5, -3.0], method="Nelder-Mead", options=options).x
    rows = np.tile(np.arange(60), n_times)
    data, bounds = (logits[rows], y[rows], weight[rows]), (1e-3, 1e3)
    options = {"uniform": uniform, "pseudo_errors": pseudo_errors}
    found = fit_temperature(*data, bounds, **options)
    assert found.temperature == pytest.approx(np.exp(-best[0]), rel=1e-5)
    if pseudo_errors or not uniform:
        scaled = fit_temperature(100 * data[0], *data[1:], bounds, **options).temperature
        assert scaled == pytest.approx(100 * found.temperature, rel=1e-5)
    near = fit_temperature(*data, bounds, near=1.1 * found.temperature, **options)
    assert near.temperature == pytest.approx(found.temperature, rel=1e-4)
    if uniform:
        assert found.uniform_weight == pytest.approx(1 / (1 + np.exp(-best[1])), rel=1e-3)
    else:
        assert found.uniform_weight is None


@pytest.mark.parametrize("uniform", [False, True])
def test_labels_on_top_lead_to_the_lower_bound_and_constant_rows_nowhere(uniform):
    logits, bounds = np.eye(3), (0.01, 10.0)
    at_bound = TemperatureFit(0.01, 0.0 if uniform else None)
    assert fit_temperature(logits, np.arange(3), None, bounds, uniform=uniform) == at_bound
    tied = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert fit_temperature(tied, np.array([1, 2]), None, bounds, uniform=uniform) == at_bound
    found = fit_temperature(np.zeros((3, 3)), np.arange(3), None, bounds, uniform=uniform)
    assert found.temperature == pytest.approx(0.1**0.5)  # in the middle of the bounds

    # The same from sums.
    def sums_at(y, logits):
        return lambda beta, w: compute_temperature_sums(
            logits, y, np.ones(len(y)), beta, w, len(y), 0.0
        )

    start = TemperatureFit(2.0, 0.1 if uniform else None)
    for data in ((np.arange(3), logits), (np.array([1, 2]), tied)):
        assert fit_temperature_by_sums(sums_at(*data), start, len(data[0]), bounds) == at_bound
    constant = sums_at(np.arange(3), np.zeros((3, 3)))
    assert fit_temperature_by_sums(constant, start, 3, bounds).temperature == 2
    counts = TemperatureSums(*sums_at(np.array([0, 0, 2]), np.diag([1.0, 1, 0]))(1.0, None))
    assert (counts.n_below_top, counts.n_varied) == (1, 2)


def test_labels_below_all_others_lead_to_the_upper_bound():
    logits, y = -np.eye(3), np.arange(3)
    assert fit_temperature(logits, y, None, (0.01, 10.0)).temperature == 10
    start = TemperatureFit(0.5, None)
    found = fit_temperature_by_sums(
        lambda beta, w: compute_temperature_sums(logits, y, np.ones(3), beta, w, 3, 0.0),
        start,
        3,
        (0.01, 10.0),
    )
    assert found.temperature == 10


@pytest.mark.parametrize(
    ("temperature", "which"), [(0.01, "lower"), (10.0, "upper"), (1.0, None), (9.99, None)]
)
def test_a_temperature_at_a_bound_is_told(temperature, which, recwarn):
    warn_of_bound(temperature, (temperature, temperature))
    assert not recwarn
    warn_of_bound(temperature, (0.01, 10.0))
    assert [f"its {which} bound, {temperature:g}:" in str(w.message) for w in recwarn] == (
        [True] if which else []
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_softmax_is_that_of_scipy_in_blocks_of_rows(dtype, order):
    rng = np.random.default_rng(0)
    logits = np.asarray(30 * rng.normal(size=(70_001, 4)), dtype=dtype, order=order)
    logits[0] = [0, -np.inf, 1, 2]
    logits[1] = np.finfo(dtype).max / dtype([1, 2, -1, -2])  # their differences overflow
    wide = dtype if dtype != np.float16 else np.float32
    with np.errstate(over="ignore"):
        exact = logits.astype(np.float64)
        exact = (exact - exact.max(axis=1, keepdims=True)) / 0.7
        expected, logs = softmax(exact, axis=1), log_softmax(exact, axis=1)
    atol = 30 * np.finfo(wide).eps
    proba, log_proba = log_softmax_at(logits, 0.7)
    np.testing.assert_allclose(compute_softmax_at(logits, 0.7), expected, atol=atol)
    np.testing.assert_allclose(proba, expected, atol=atol)
    np.testing.assert_allclose(log_proba[2:], logs[2:], atol=200 * atol)
    assert {compute_softmax_at(logits, 0.7).dtype, proba.dtype, log_proba.dtype} == {
        np.dtype(wide)
    }
    at_1 = compute_softmax_in_place(logits[2:].astype(wide))
    np.testing.assert_allclose(at_1, softmax(logits[2:].astype(np.float64), axis=1), atol=atol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_terms_of_labels_are_moments_of_the_logits(dtype):
    rng = np.random.default_rng(0)
    logits, y = rng.normal(size=(70_001, 4)).astype(dtype), rng.integers(4, size=70_001)
    z = logits.astype(np.float64)
    label, p = z[np.arange(len(y)), y], softmax(1.3 * z, axis=1)
    mean = (p * z).sum(axis=1)
    of_label = -log_softmax(1.3 * z, axis=1)[np.arange(len(y)), y]
    expected = [of_label, mean - label, (p * z**2).sum(axis=1) - mean**2]
    for rows, *terms in label_terms(logits, y, 1.3):
        for term, wanted in zip(terms, expected):
            assert term.dtype == np.float64
            np.testing.assert_allclose(term, wanted[rows], atol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("slope", [-30.0, -0.5, 0.4, 30.0])
@pytest.mark.parametrize("bend", [0.0, 2.0, 500.0])
@pytest.mark.parametrize("n", [0.3, 40.0])
def test_the_next_weight_minimizes_a_parabola_beside_its_prior(slope, bend, n):
    prior = 1 / (max(n, 1) + 1)

    def cost(logit):
        v = 1 / (1 + np.exp(-logit))
        of_data = slope * (v - 0.1) + bend * (v - 0.1) ** 2 / 2
        return of_data - prior * np.log(v) - (1 - prior) * np.log1p(-v)

    best = minimize_scalar(cost, bounds=(-25, 25), method="bounded", options={"xatol": 1e-9}).x
    found = update_uniform_weight(slope, bend, 0.1, n)
    assert found == pytest.approx(max(1 / (1 + np.exp(-best)), 1e-4), rel=1e-5)


def test_the_next_weight_falls_to_a_thousandth_at_most():
    assert update_uniform_weight(1e9, 0.0, 0.1, 40.0) == pytest.approx(1e-4)
    assert update_uniform_weight(-1e9, 0.0, 0.1, 40.0) == pytest.approx(1.0)


@pytest.mark.parametrize(("n_samples", "noise"), [(2000, 0.0), (2000, 0.3), (12, 0.3)])
def test_the_curvature_of_an_ensemble_is_the_derivative_of_its_slope(n_samples, noise):
    """With some more and some less than ten samples of the component that is scaled."""
    rng = np.random.default_rng(1)
    y, proba, _ = make_predictions(n_samples, n_classes=4, temperature=2.0, random_state=1)
    y = np.where(rng.random(n_samples) < noise, rng.integers(4, size=n_samples), y)
    problem = _temperature._Mixture(np.log(proba), y, rng.uniform(0.5, 1.5, n_samples))
    for beta in (0.3, 0.6):
        slopes = [problem.slope_and_curvature(beta + step)[0] for step in (-1e-3, 1e-3)]
        curvature = problem.slope_and_curvature(beta)[1]
        assert curvature == pytest.approx((slopes[1] - slopes[0]) / 2e-3, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("calibrator", "problem"),
    [
        (TemperatureScaling, _temperature_fit.TemperatureProblem),
        (partial(TemperatureScaling, mix_uniform=True), _temperature_fit.TemperatureProblem),
        (EnsembleTemperatureScaling, _temperature._Mixture),
    ],
)
def test_a_fit_has_a_budget_of_evaluations(calibrator, problem, monkeypatch):
    # Without the halving of a bracket around a kink, one fit takes 71; without an end, 200. With a
    # curvature that leaves out what moves with beta, one takes 18.
    counted = []
    evaluate = problem.slope_and_curvature

    def count(self, beta):
        counted[-1] += 1
        return evaluate(self, beta)

    monkeypatch.setattr(problem, "slope_and_curvature", count)
    for seed in range(200):
        y, proba, _ = make_predictions(
            (30, 100, 300)[seed % 3],
            n_classes=(2, 3, 8)[seed // 3 % 3],
            temperature=(0.4, 1.0, 1.5, 4.0)[seed % 4],
            random_state=seed,
        )
        counted.append(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SkcalibWarning)  # at a bound, of few samples
            calibrator(input="proba").fit(proba, y)
    assert max(counted) <= 15
    assert np.mean(counted) <= 6
