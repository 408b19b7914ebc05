"""Thresholds with a guarantee: exact tests, ties, and the level by simulation."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from skcalib.selection._risk_control import (
    _accepted_counts,
    _starts,
    risk_control,
    upper_bound,
)


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 50), (50, 50)])
def test_upper_bound_is_that_of_clopper_and_pearson(k, n):
    expected = binomtest(k, n).proportion_ci(0.8, method="exact").high  # two-sided: .1 each
    assert upper_bound(k, n, 0.1) == pytest.approx(expected)


def test_counts_share_ties():
    values, accepted, errors = _accepted_counts(
        np.array([0.9, 0.5, 0.9, 0.7]), np.array([True, False, False, True])
    )
    assert values.tolist() == [0.9, 0.7, 0.5]
    assert accepted.tolist() == [2, 3, 4]
    assert errors.tolist() == [1, 1, 2]


@pytest.mark.parametrize("n", [44, 45, 58, 235, 236, 5000])
def test_levels_sum_to_delta(n):
    starts, levels = _starts(np.arange(1, n + 1), 0.05, 0.1)
    if n < 45:  # .95 ** 44 > .1: not even a sample without error could pass
        assert starts == []
        assert binom.cdf(0, 45, 0.05) <= 0.1 < binom.cdf(0, 44, 0.05)
        return
    assert sum(levels) == pytest.approx(0.1)
    # 59 samples without error pass at half the level; 4 * 59 = 236 make room for two starts.
    assert binom.cdf(0, 59, 0.05) <= 0.05 < binom.cdf(0, 58, 0.05)
    assert starts[0] == (44 if n < 236 else 58)
    assert len(starts) == {236: 2, 5000: 4}.get(n, 1)


def test_45_samples_without_error_suffice():
    # .95 ** 45 = .0994: with a true error rate of .05 all are right in less than a tenth of cases.
    for n, n_accepted in ((44, 0), (45, 45), (58, 58)):
        found = risk_control(np.arange(n) / n, np.ones(n, bool), risk=0.05, delta=0.1)
        assert found.n_accepted == n_accepted


def naive_fixed_sequence(confidence, correct, risk, delta):
    """Walk through the thresholds one by one, as the definition says."""
    boundaries = [*np.unique(confidence)[::-1][1:], -np.inf]
    assert (risk, delta) == (0.05, 0.1)

    def first(count):
        return next(u for u in boundaries if np.sum(confidence > u) >= count)

    starts = [first(59 * 4**k) for k in range(9) if 59 * 4**k <= len(confidence)]
    starts = list(dict.fromkeys(starts))
    if len(starts) == 1:
        starts = [first(45)]
    share = dict.fromkeys(starts, delta / 2 / max(1, len(starts) - 1))
    share[starts[0]] = delta / 2 if len(starts) > 1 else delta
    level, threshold = 0.0, np.inf
    for u in boundaries:
        level += share.get(u, 0)
        accepted = confidence > u
        if level and binom.cdf(np.sum(~correct[accepted]), accepted.sum(), risk) <= level:
            threshold = u
        else:
            level = 0.0
    return threshold


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("decimals", [1, 2, 15])
@pytest.mark.parametrize("n", [100, 700])
def test_fixed_sequence_against_its_definition(seed, decimals, n):
    rng = np.random.default_rng(seed)
    confidence = rng.random(n).round(decimals)
    correct = rng.random(n) > 0.2 * (1 - confidence) ** 2 + 0.01 * (seed % 3)
    found = risk_control(confidence, correct, risk=0.05, delta=0.1)
    assert found.threshold == naive_fixed_sequence(confidence, correct, 0.05, 0.1)


def test_counts_and_bound_are_those_of_the_accepted():
    rng = np.random.default_rng(0)
    confidence = rng.random(2000).round(2)
    correct = rng.random(2000) > 0.15 * (1 - confidence)
    found = risk_control(confidence, correct, risk=0.05, delta=0.1)
    accepted = confidence > found.threshold
    assert 0 < found.n_accepted == accepted.sum() < 2000
    assert found.n_errors == np.sum(~correct[accepted])
    assert found.n_errors / found.n_accepted < found.bound <= 0.05


def test_all_are_accepted_where_none_is_wrong():
    confidence = np.linspace(0, 1, 500)
    found = risk_control(confidence, np.ones(500, dtype=bool), risk=0.05, delta=0.1)
    assert found[:3] == (-np.inf, 500, 0)


def test_none_is_accepted_where_half_are_wrong():
    rng = np.random.default_rng(0)
    found = risk_control(rng.random(500), rng.random(500) > 0.5, risk=0.05, delta=0.1)
    assert found == (np.inf, 0, 0, 1.0)


def test_equal_confidence_is_one_threshold():
    constant = np.full(400, 0.5)
    right = np.arange(400) >= 8
    assert risk_control(constant, right, risk=0.05, delta=0.1).n_accepted == 400
    right = np.arange(400) >= 30
    assert risk_control(constant, right, risk=0.05, delta=0.1).n_accepted == 0


@pytest.mark.parametrize("ties", [False, True])
def test_the_limit_is_exceeded_as_seldom_as_promised(ties):
    """P(wrong | confidence u) = (1 - u) / 2: above t the error rate is (1 - t) / 4."""
    rng = np.random.default_rng(0)
    risk, delta, n_draws = 0.1, 0.2, 600
    exceeded = 0
    for _ in range(n_draws):
        confidence = rng.random(400)
        correct = rng.random(400) > (1 - confidence) / 2
        shown = np.floor(confidence * 20) / 20 if ties else confidence
        found = risk_control(shown, correct, risk=risk, delta=delta)
        if found.n_accepted:
            # A shown value v stands for confidences in [v, v + 1/20).
            limit = found.threshold + 0.05 * ties if np.isfinite(found.threshold) else 0.0
            exceeded += (1 - limit) / 4 > risk
    # Beyond delta only by the noise of the simulation: three standard errors.
    assert exceeded / n_draws <= delta + 3 * np.sqrt(delta * (1 - delta) / n_draws)


def test_wrong_labels_among_the_most_confident_do_not_end_the_search():
    rng = np.random.default_rng(0)
    confidence = rng.permutation(np.linspace(0, 1, 3000))
    correct = rng.random(3000) > 0.02
    correct[np.argmax(confidence)] = False
    correct[np.argsort(-confidence)[5]] = False
    found = risk_control(confidence, correct, risk=0.05, delta=0.1)
    assert found.n_accepted == 3000
