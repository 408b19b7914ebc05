import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import beta, t

from skcalib.labels._checks import (
    Draw,
    compute_inclusion,
    compute_informative_size,
    count_represented,
    draw_samples,
    estimate_rate,
    fit_line,
    rank_z,
)


def _overconfident(n, seed):
    """Log-odds that are twice too large, and shifted; which labels are wrong."""
    rng = np.random.default_rng(seed)
    score = rng.normal(1.0, 1.2, size=n)
    wrong = rng.random(n) > expit(score)
    return 2.0 * score - 1.0, wrong, rng


def _of_uniform(score, wrong, checked):
    number = np.full(len(checked), len(score) / len(checked))
    return estimate_rate(score, np.ones(len(score)), checked, wrong[checked], number)


def test_line_rate_and_interval_are_those_of_the_formulas():
    score, wrong, rng = _overconfident(900, 0)
    checked = rng.choice(900, 120, replace=False)
    result = _of_uniform(score, wrong, checked)

    def line(rows):
        def loss(x):
            right = expit(x[0] + np.exp(x[1]) * score[rows])
            fit = np.where(wrong[rows], 1 - right, right)
            return -np.log(fit).sum() + 0.5 * (x[1] / 0.64) ** 2 + 0.5 * (x[0] / 6.8) ** 2

        a, b = minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-7}).x
        return 1.0 - expit(a + np.exp(b) * score)

    np.testing.assert_allclose(expit(-result.line(score)), line(checked), atol=1e-4)
    # Residuals of a fifth of the checks are those of the line of the others.
    residual, lines = np.empty(120), []
    for fold in range(5):
        expected = line(checked[np.arange(120) % 5 != fold])
        residual[fold::5] = (wrong - expected)[checked[fold::5]]
        lines.append(expected)
    # The checks are known; of the other samples, lines and residuals predict how many are wrong.
    others = np.setdiff1d(np.arange(900), checked)
    number = np.mean(lines, axis=0)[others].sum() + len(others) * residual.mean()
    rate = (wrong[checked].sum() + number) / 900
    variance = residual.var(ddof=1) + 0.5 / 120
    half = t.ppf(0.975, 119) * np.sqrt(variance * (1 - 120 / 900) / 120)
    assert result.rate == pytest.approx(rate, abs=1e-4)
    np.testing.assert_allclose(result.interval, (rate - half, rate + half), atol=1e-3)
    assert result.half_width(120) == pytest.approx(half, rel=2e-3)
    # Four times as many checks of the same kind, of a population that is still larger.
    fourfold = t.ppf(0.975, 119) * np.sqrt(
        (residual.var(ddof=1) + 0.5 / 480) * (1 - 480 / 900) / 480
    )
    assert result.half_width(480) == pytest.approx(fourfold, rel=0.02)
    assert result.half_width(900) == 0


def test_the_rate_is_exact_where_all_labels_are_checked():
    score, wrong, rng = _overconfident(300, 1)
    weight = rng.integers(1, 4, size=300).astype(float)
    result = estimate_rate(score, weight, np.arange(300), wrong, np.ones(300))
    exact = np.average(wrong, weights=weight)
    np.testing.assert_allclose([result.rate, *result.interval], exact, rtol=1e-12)


@pytest.mark.slow
def test_the_interval_holds_and_probabilities_are_calibrated():
    held, errors = [], []
    for seed in range(60):
        score, wrong, rng = _overconfident(2000, seed)
        result = _of_uniform(score, wrong, rng.choice(2000, 100, replace=False))
        held.append(result.interval[0] <= wrong.mean() <= result.interval[1])
        p = expit(result.line(score))
        groups = np.digitize(p, np.linspace(0, 1, 11)[1:-1])
        gaps = np.bincount(groups, p - ~wrong, minlength=10)
        errors.append(np.abs(gaps).sum() / 2000)
    assert np.mean(held) > 0.88
    assert np.mean(errors) < 0.06


def test_the_line_never_falls():
    score = np.array([-3.0, -2.0, 2.0, 3.0, 5.0] * 20)
    line = fit_line(score, score < 0, np.ones(100))  # the reverse of what they say
    assert 0 < line.slope < 0.3
    # Log-odds of certainty stay apart.
    assert len(np.unique(line(np.array([30.0, 40.0, 50.0])))) == 3


@pytest.mark.parametrize(("wrong", "n"), [(0, 30), (3, 100), (30, 30), (97, 100)])
def test_few_wrong_or_right_ones_get_the_exact_interval(wrong, n):
    low = beta.ppf(0.025, wrong, n - wrong + 1) if wrong else 0.0
    high = beta.ppf(0.975, wrong + 1, n - wrong) if wrong < n else 1.0
    is_wrong = np.arange(2000) < wrong
    result = _of_uniform(np.full(2000, logit(0.9)), is_wrong, np.arange(n))
    # What was checked is known: no fewer are wrong than the checks have shown.
    low, high = max(low, wrong / 2000), min(high, 1 - (n - wrong) / 2000)
    np.testing.assert_allclose(result.interval, (low, high), atol=1e-10)
    assert low <= result.rate <= high


def test_weights_count_samples():
    score, wrong, _ = _overconfident(3000, 1)
    weight = np.where(wrong, 3.0, 1.0)
    proba = compute_inclusion(weight, 1500)
    checked = draw_samples(proba, np.random.RandomState(0))
    result = estimate_rate(score, weight, checked, wrong[checked], 1.0 / proba[checked])
    assert result.rate == pytest.approx(np.average(wrong, weights=weight), abs=0.03)
    assert result.rate > wrong.mean() + 0.1


@pytest.mark.slow
def test_informative_draws_are_those_of_the_formula_and_err_less():
    rng = np.random.default_rng(0)
    score = rng.normal(9.0, 3.0, size=4000) * np.where(rng.random(4000) < 0.15, -1.0, 1.0)
    wrong = rng.random(4000) > expit(0.7 * score)
    weight = np.ones(4000)
    size = compute_informative_size(score, weight, 100)
    p = expit(score)
    np.testing.assert_allclose(size, np.sqrt(p * (1 - p) + 0.5 / 100))
    errors, held = {}, {}
    for name, sizes in (("random", weight), ("informative", size)):
        proba = compute_inclusion(sizes, 100)
        found = []
        for seed in range(40):
            rows = draw_samples(proba, np.random.RandomState(seed))
            found.append(estimate_rate(score, weight, rows, wrong[rows], 1.0 / proba[rows]))
        errors[name] = np.sqrt(np.mean([(f.rate - wrong.mean()) ** 2 for f in found]))
        held[name] = np.mean([f.interval[0] <= wrong.mean() <= f.interval[1] for f in found])
    assert errors["informative"] < 0.75 * errors["random"]
    assert min(held.values()) > 0.88


def test_labels_that_are_all_certain_are_drawn_alike():
    size = compute_informative_size(np.full(50, 80.0), np.ones(50), 20)
    np.testing.assert_allclose(compute_inclusion(size, 20), 0.4)


@pytest.mark.slow
def test_draws_together_estimate_sums_without_bias():
    # Two draws, the second without what the first one had: the mean of the estimates is the sum.
    rng = np.random.default_rng(0)
    values, first = rng.exponential(size=60), rng.random(60) + 0.1
    one, sums = compute_inclusion(first, 8), []
    for seed in range(4000):
        state = np.random.RandomState(seed)
        rows = draw_samples(one, state)
        left = np.ones(60)
        left[rows] = 0.0
        two = compute_inclusion(left, 12)
        more = draw_samples(two, state)
        draws = [Draw(rows, one[rows], rows[:0]), Draw(more, two[more], rows)]
        both = np.concatenate([rows, more])
        sums.append(count_represented(draws, both) @ values[both])
    error = np.std(sums) / np.sqrt(len(sums))
    assert np.mean(sums) == pytest.approx(values.sum(), abs=4 * error)


@pytest.mark.slow
def test_the_rank_of_random_checks_is_normal_and_that_of_chosen_ones_is_not():
    rng = np.random.default_rng(0)
    score = np.round(rng.exponential(size=500), 1)  # with ties
    weight = rng.choice([1.0, 2.0], 500)
    proba = compute_inclusion(weight, 100)
    z = [
        rank_z(score, weight, draw_samples(proba, np.random.RandomState(seed)))
        for seed in range(300)
    ]
    assert abs(np.mean(z)) < 0.2
    assert np.std(z) == pytest.approx(1.0, abs=0.15)
    assert rank_z(score, weight, np.argsort(score)[:100]) < -10
    assert rank_z(score, weight, np.argsort(score)[-100:]) > 10
    assert rank_z(np.zeros(500), weight, np.arange(100)) == 0
    assert rank_z(score, weight, np.arange(500)) == 0
