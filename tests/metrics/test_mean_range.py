"""The test of a mean against exact distributions, and Holm's correction against its definition."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import beta

from skcalib.metrics import _intervals
from skcalib.metrics._groupwise import correct_by_holm
from skcalib.metrics._intervals import compute_mean_pvalue, compute_mean_range


def exact_distribution(proba):
    """The probabilities of 0, 1, ..., n outcomes, by convolution."""
    distribution = np.ones(1)
    for p in proba:
        distribution = np.convolve(distribution, [1 - p, p])
    return distribution


@pytest.mark.parametrize(
    ("n", "low", "high", "tolerance"),
    [
        (5, 0.01, 0.99, 0.1),
        (50, 0, 0.1, 0.01),
        (100, 0.3, 1, 0.01),
        (300, 0, 1, 0.01),
        (1000, 0, 0.004, 0.01),
    ],
)
def test_mean_test_has_the_tails_of_the_poisson_binomial(n, low, high, tolerance):
    proba = np.random.default_rng(0).uniform(low, high, size=n)
    distribution = exact_distribution(proba)
    for k in range(n + 1):
        exact = 2 * min(distribution[: k + 1].sum(), distribution[k:].sum())
        if 1e-9 < exact < 0.3:
            outcome = np.arange(n) < k  # which of them does not matter
            assert compute_mean_pvalue(outcome, proba, None) == pytest.approx(exact, rel=tolerance)


def test_weighted_test_has_the_tails_of_draws():
    rng = np.random.default_rng(0)
    proba, weight = rng.uniform(0, 0.4, size=60), rng.exponential(size=60)
    outcome = rng.uniform(size=60) < proba + 0.12
    draws = (rng.uniform(size=(100_000, 60)) < proba) @ weight
    observed = weight @ outcome
    expected = 2 * min((draws >= observed).mean(), (draws <= observed).mean())
    assert compute_mean_pvalue(outcome, proba, weight) == pytest.approx(expected, rel=0.05)
    # The unit of weights is nobody's business.
    assert compute_mean_pvalue(outcome, proba, 7 * weight) == pytest.approx(
        compute_mean_pvalue(outcome, proba, weight)
    )


def test_many_samples_are_tested_as_few_are(monkeypatch):
    rng = np.random.default_rng(0)
    proba = rng.uniform(size=12_000) ** 3
    outcome = rng.uniform(size=12_000) < 0.96 * proba
    rounded = compute_mean_pvalue(outcome, proba, None)
    monkeypatch.setattr(_intervals, "MANY", 10**9)
    assert rounded == pytest.approx(compute_mean_pvalue(outcome, proba, None), rel=0.02)


@pytest.mark.parametrize("k", [0, 1, 7, 39, 40])
def test_range_of_equal_probabilities_is_that_of_clopper_and_pearson(k):
    low, high = compute_mean_range(np.arange(40) < k, np.full(40, 0.3), None, 0.95)
    assert low == pytest.approx(beta.ppf(0.025, k, 41 - k) if k else 0, abs=4e-3)
    assert high == pytest.approx(beta.ppf(0.975, k + 1, 40 - k) if k < 40 else 1, abs=4e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_outcomes_that_are_all_the_same_have_an_end_at_0_or_1(weighted):
    rng = np.random.default_rng(0)
    for n in range(1, 40):
        proba, effect = rng.uniform(0.01, 0.99, n), rng.uniform(1, 9)
        weight = rng.exponential(size=n) if weighted else None
        assert compute_mean_range(np.ones(n), proba, weight, 0.95, effect)[1] == 1
        assert compute_mean_range(np.zeros(n), proba, weight, 0.95, effect)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_what_was_said_lies_outside_its_range_where_the_test_rejects_it(weighted):
    rng = np.random.default_rng(0)
    inside = []
    for shift in np.linspace(-0.3, 0.3, 25):
        proba = rng.uniform(0.3, 0.7, size=80)
        weight = rng.exponential(size=80) if weighted else None
        outcome = rng.uniform(size=80) < proba + shift
        low, high = compute_mean_range(outcome, proba, weight, 0.9)
        said = np.average(proba, weights=weight)
        inside.append(low < said < high)
        assert inside[-1] == (compute_mean_pvalue(outcome, proba, weight) > 0.1)
    assert 3 < sum(inside) < 22


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_the_ends_of_the_range_are_shifted_until_the_test_rejects(weighted, rate):
    rng = np.random.default_rng(0)
    proba, outcome = rng.uniform(0.3, 0.7, size=60), rng.random(60) < rate
    weight = rng.exponential(size=60) if weighted else None

    def excess(shift):
        return compute_mean_pvalue(outcome, expit(logit(proba) + shift), weight) - 0.1

    def mean_of(shift):
        return np.average(expit(logit(proba) + shift), weights=weight)

    middle = brentq(lambda s: mean_of(s) - np.average(outcome, weights=weight), -9, 9)
    ends = [brentq(excess, *bounds) for bounds in ((middle - 5, middle), (middle, middle + 5))]
    expected = [mean_of(end) for end in ends]
    assert compute_mean_range(outcome, proba, weight, 0.9) == pytest.approx(expected, abs=1e-4)


def test_counts_and_samples_that_belong_together_are_as_many_alone():
    rng = np.random.default_rng(0)
    proba, count = rng.uniform(0.2, 0.9, size=12), rng.integers(1, 9, 12)
    n_true = rng.binomial(count, 0.4)
    each = np.concatenate([np.arange(n) < k for n, k in zip(count, n_true)]), proba.repeat(count)
    data = n_true / count, proba, None
    alone = compute_mean_pvalue(*each, None), *compute_mean_range(*each, None, 0.9)
    in_counts = (
        compute_mean_pvalue(*data, count=count),
        *compute_mean_range(*data, 0.9, count=count),
    )
    assert in_counts == pytest.approx(alone)
    # Three times as many, of which three tell as much as one; also where they have weights.
    data = n_true / count, proba, None, 0.9, 3.0, 3.0 * count
    assert compute_mean_range(*data) == pytest.approx(alone[1:])
    outcome, proba = (values.repeat(3) for values in each)
    for weight in (None, np.full(len(outcome), 7.0)):
        data = outcome, proba, weight
        threefold = (
            compute_mean_pvalue(*data, effect=3.0),
            *compute_mean_range(*data, 0.9, effect=3.0),
        )
        assert threefold == pytest.approx(alone)


@pytest.mark.slow
def test_a_calibrated_model_is_rejected_as_often_as_promised():
    rng = np.random.default_rng(0)
    pvalues = []
    for _ in range(2000):
        proba = rng.beta(0.5, 2, size=100)
        pvalues.append(compute_mean_pvalue(rng.uniform(size=100) < proba, proba, None))
    for level in (0.01, 0.05, 0.2):
        assert np.mean(np.array(pvalues) <= level) < level + 3 * np.sqrt(level / 2000)
    assert np.mean(np.array(pvalues) <= 0.2) > 0.12


def test_impossible_and_single_outcomes_have_a_p_value():
    assert compute_mean_pvalue(np.array([True]), np.array([0.0]), None) < 1e-6
    assert compute_mean_pvalue(np.array([True]), np.array([1.0]), None) == 1
    # One that is sure takes nothing from what the others contradict, who are all wrong.
    assert compute_mean_pvalue(np.arange(9) < 1, np.array([1.0] + [0.5] * 8), None) < 0.1
    assert compute_mean_pvalue(np.array([True, True]), np.array([0.9, 0.9]), None) == 1


def test_holm_rejects_one_after_the_other():
    rng = np.random.default_rng(0)
    for _ in range(50):
        pvalues, share = rng.uniform(size=6) ** 4, rng.dirichlet(np.ones(6))
        corrected = correct_by_holm(pvalues, share)
        for level in (0.01, 0.05, 0.3):
            left = set(range(6))
            while left:
                first = min(left, key=lambda i: pvalues[i] / share[i])
                if pvalues[first] * sum(share[i] for i in left) > level * share[first]:
                    break
                left.remove(first)
            assert set(np.flatnonzero(corrected > level)) == left


@pytest.mark.parametrize("right", [1, 12, 24, 25])
def test_samples_of_one_group_tell_as_much_as_one(right):
    # One sample, right or wrong, contradicts no frequency at a level of 99.9 %.
    outcome, proba = np.arange(25) < right, np.full(25, 0.97)
    low, high = compute_mean_range(outcome, proba, None, 0.999, effect=25.0)
    assert low <= 0.001
    assert high >= 0.999
