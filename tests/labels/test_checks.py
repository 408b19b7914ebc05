import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import beta

from skcalib.labels._checks import drawn, inclusion, recalibrated


def _overconfident(n, seed):
    """Probabilities whose log-odds are twice too large, and shifted; which labels are wrong."""
    rng = np.random.default_rng(seed)
    score = rng.normal(1.0, 1.2, size=n)
    wrong = rng.random(n) > expit(score)
    return expit(2.0 * score - 1.0), wrong, rng


def test_line_rate_and_interval_are_those_of_the_formulas():
    p, wrong, rng = _overconfident(900, 0)
    checked = rng.choice(900, 120, replace=False)
    result = recalibrated(p, np.ones(900), checked, wrong[checked])
    score = logit(np.clip(p, 1e-4, 1 - 1e-4))

    def loss(x):
        right = expit(x[0] + x[1] * score[checked])
        fit = np.where(wrong[checked], 1 - right, right)
        return -np.log(fit).sum() + 0.5 * (x[1] - 1) ** 2 + 0.05 * x[0] ** 2

    a, b = minimize(loss, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-7}).x
    corrected = expit(a + b * score)
    np.testing.assert_allclose(result.p_correct, corrected, atol=1e-4)
    residual = wrong[checked] - (1 - corrected[checked])
    rate = (1 - corrected).mean() + residual.mean()
    variance = residual.var(ddof=1) + 0.5 / 120
    half = 1.96 * np.sqrt(variance * (1 - 120 / 900) / 120)
    assert result.rate == pytest.approx(rate, abs=1e-4)
    np.testing.assert_allclose(result.interval, (rate - half, rate + half), atol=1e-3)


def test_the_interval_holds_and_probabilities_are_calibrated():
    held, errors = [], []
    for seed in range(60):
        p, wrong, rng = _overconfident(2000, seed)
        checked = rng.choice(2000, 100, replace=False)
        result = recalibrated(p, np.ones(2000), checked, wrong[checked])
        held.append(result.interval[0] <= wrong.mean() <= result.interval[1])
        groups = np.digitize(result.p_correct, np.linspace(0, 1, 11)[1:-1])
        gaps = np.bincount(groups, result.p_correct - ~wrong, minlength=10)
        errors.append(np.abs(gaps).sum() / 2000)
    assert np.mean(held) > 0.88
    assert np.mean(errors) < 0.06


@pytest.mark.parametrize(("wrong", "n"), [(0, 30), (3, 100), (30, 30), (97, 100)])
def test_few_wrong_or_right_ones_get_the_exact_interval(wrong, n):
    low = beta.ppf(0.025, wrong, n - wrong + 1) if wrong else 0.0
    high = beta.ppf(0.975, wrong + 1, n - wrong) if wrong < n else 1.0
    is_wrong = np.arange(n) < wrong
    result = recalibrated(np.full(500, 0.9), np.ones(500), np.arange(n), is_wrong)
    np.testing.assert_allclose(result.interval, (low, high), atol=1e-10)
    assert low <= result.rate <= high


def test_weights_count_samples():
    p, wrong, _ = _overconfident(3000, 1)
    weight = np.where(wrong, 3.0, 1.0)
    checked = drawn(inclusion(weight, 1500), np.random.RandomState(0))
    result = recalibrated(p, weight, checked, wrong[checked])
    assert result.rate == pytest.approx(np.average(wrong, weights=weight), abs=0.03)
    assert result.rate > wrong.mean() + 0.1
