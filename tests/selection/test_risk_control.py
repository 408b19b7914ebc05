"""Thresholds with a guarantee: exact tests, ties, and the level by simulation."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from skcalib.selection._risk_control import (
    _choose_starts,
    _count_accepted,
    _Game,
    compute_upper_bound,
    control_risk,
    control_risk_of_counts,
)


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 50), (50, 50)])
def test_upper_bound_is_that_of_clopper_and_pearson(k, n):
    expected = binomtest(k, n).proportion_ci(0.8, method="exact").high  # two-sided: .1 each
    assert compute_upper_bound(k, n, 0.1) == pytest.approx(expected)


def test_counts_share_ties():
    values, accepted, errors, *_ = _count_accepted(
        np.array([0.9, 0.5, 0.9, 0.7]), np.array([True, False, False, True]), None
    )
    assert values.tolist() == [0.9, 0.7, 0.5]
    assert accepted.tolist() == [2, 3, 4]
    assert errors.tolist() == [1, 1, 2]


@pytest.mark.parametrize("n", [44, 45, 58, 353, 354, 5000])
def test_levels_sum_to_delta(n):
    starts, levels = _choose_starts(np.arange(1, n + 1), 0.05, 0.1)
    if n < 45:  # .95 ** 44 > .1: not even a sample without error could pass
        assert starts == []
        assert binom.cdf(0, 45, 0.05) <= 0.1 < binom.cdf(0, 44, 0.05)
        return
    assert sum(levels) == pytest.approx(0.1)
    # 59 samples without error pass at half the level; 4 * 59 = 236 are two thirds of 354.
    assert binom.cdf(0, 59, 0.05) <= 0.05 < binom.cdf(0, 58, 0.05)
    assert starts[0] == (44 if n < 354 else 58)
    assert len(starts) == {354: 2, 5000: 3}.get(n, 1)


def test_45_samples_without_error_suffice():
    # .95 ** 45 = .0994: with a true error rate of .05 all are right in less than a tenth of cases.
    for n, n_accepted in ((44, 0), (45, 45), (58, 58)):
        found = control_risk(np.arange(n) / n, np.ones(n, bool), risk=0.05, delta=0.1)
        assert found.n_accepted == n_accepted


def naive_fixed_sequence(confidence, p_value, times=1, tried=None):
    """Walk through the thresholds one by one, as the definition says; risk .05 and delta .1.

    Sequences begin where `times` as many are accepted as could pass, if none is wrong.
    """
    n, boundaries = len(confidence), [*np.unique(confidence)[::-1][1:], -np.inf]
    boundaries = [u for u in boundaries if tried is None or u in tried]

    def first(count):
        return next(u for u in boundaries if np.sum(confidence > u) >= count)

    counts = [59 * times * 4**k for k in range(9)]
    starts = [
        first(count) for count in counts if count <= n * (2 / 3 if count > 59 * times else 1)
    ]
    starts = list(dict.fromkeys(starts))
    if len(starts) <= 1:
        starts = [first(max(45, min(45 * times, int(n * 2 / 3))))]
    share = dict.fromkeys(starts, 0.05 / max(1, len(starts) - 1))
    share[starts[0]] = 0.05 if len(starts) > 1 else 0.1
    level, threshold = 0.0, np.inf
    for u in boundaries:
        level += share.get(u, 0)
        if level and p_value(confidence > u) <= level:
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
    found = control_risk(confidence, correct, risk=0.05, delta=0.1)

    def p_value(accepted):
        return binom.cdf(np.sum(~correct[accepted]), accepted.sum(), 0.05)

    assert found.threshold == naive_fixed_sequence(confidence, p_value)


def test_counts_and_bound_are_those_of_the_accepted():
    rng = np.random.default_rng(0)
    confidence = rng.random(2000).round(2)
    correct = rng.random(2000) > 0.15 * (1 - confidence)
    found = control_risk(confidence, correct, risk=0.05, delta=0.1)
    accepted = confidence > found.threshold
    assert 0 < found.n_accepted == accepted.sum() < 2000
    assert found.n_errors == np.sum(~correct[accepted])
    assert found.n_errors / found.n_accepted < found.bound <= 0.05


def test_all_are_accepted_where_none_is_wrong():
    confidence = np.linspace(0, 1, 500)
    found = control_risk(confidence, np.ones(500, dtype=bool), risk=0.05, delta=0.1)
    assert found[:3] == (-np.inf, 500, 0)


def test_none_is_accepted_where_half_are_wrong():
    rng = np.random.default_rng(0)
    confidence, correct = rng.random(500), rng.random(500) > 0.5
    for agree in (correct, 0.9 * correct):
        assert control_risk(confidence, agree, risk=0.05, delta=0.1) == (np.inf, 0, 0, 1.0)


def test_counts_in_bins_are_samples_of_equal_confidence():
    rng = np.random.default_rng(5)
    cell, largest = rng.integers(0, 12, 900), np.arange(12) / 11
    correct = rng.random(900) > 0.15 * (1 - largest[cell])
    counts = np.bincount(cell), np.bincount(cell, ~correct)
    found = control_risk_of_counts(largest, *counts, risk=0.05, delta=0.1)
    assert found == control_risk(largest[cell], correct, risk=0.05, delta=0.1)
    assert 0 < found.n_accepted < 900


def test_equal_confidence_is_one_threshold():
    constant = np.full(400, 0.5)
    right = np.arange(400) >= 8
    assert control_risk(constant, right, risk=0.05, delta=0.1).n_accepted == 400
    right = np.arange(400) >= 30
    assert control_risk(constant, right, risk=0.05, delta=0.1).n_accepted == 0


@pytest.mark.slow
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
        found = control_risk(shown, correct, risk=risk, delta=delta)
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
    found = control_risk(confidence, correct, risk=0.05, delta=0.1)
    assert found.n_accepted == 3000


def reference_of_groups(wrong, groups):
    """Return Korn and Graubard's number of samples, written out."""
    n, names = len(wrong), np.unique(groups)
    rate = wrong.mean()
    sums = [(wrong[groups == g].sum(), (groups == g).sum()) for g in names]
    if sum(errors > 0 for errors, _ in sums) < 3:
        return len(names)
    spread = sum((errors - rate * size) ** 2 for errors, size in sums)
    variance = len(names) / (len(names) - 1) * spread / n**2
    return float(np.clip(rate * (1 - rate) / variance, min(len(names), n), n))


def test_the_effective_number_is_that_of_korn_and_graubard():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 15, 120)
    confidence = rng.integers(0, 40, 120).astype(float)  # with ties
    correct = rng.random(120) < 0.5 + 0.3 * (groups % 2)
    found = _count_accepted(confidence, correct, groups)
    for value, n_effective, n_apart in zip(found.values, found.n_effective, found.n_apart):
        above = confidence >= value
        expected = reference_of_groups(~correct[above], groups[above])
        assert n_effective == pytest.approx(expected)
        assert n_apart == len(np.unique(groups[above]))


def test_groups_of_one_are_samples():
    rng = np.random.default_rng(1)
    confidence = rng.uniform(size=800)
    correct = rng.random(800) < 0.6 + 0.4 * confidence
    plain = control_risk(confidence, correct, risk=0.2, delta=0.1)
    alone = control_risk(confidence, correct, risk=0.2, delta=0.1, groups=np.arange(800))
    assert alone.n_accepted == pytest.approx(plain.n_accepted, rel=0.05)
    assert alone.bound == pytest.approx(plain.bound, abs=0.005)


@pytest.mark.slow
def test_the_limit_holds_where_errors_gather_in_groups():
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(100), 8)
    broken = np.zeros(2)
    for _ in range(150):
        mean = rng.uniform(size=100)  # confidence; the error rate is .4 (1 - confidence)
        rate = 0.4 * (1 - mean)
        gathered = np.repeat(rng.beta(rate, 1 - rate), 8)  # correlation 1/2 within groups
        correct = rng.random(800) >= gathered
        confidence = np.repeat(mean, 8) + 1e-6 * rng.uniform(size=800)
        for k, given in enumerate((None, groups)):
            found = control_risk(confidence, correct, risk=0.1, delta=0.1, groups=given)
            threshold = max(found.threshold, 0.0)
            broken[k] += threshold < 1 and 0.2 * (1 - threshold) > 0.1
    assert broken[0] / 150 > 0.15
    assert broken[1] / 150 <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 150)


def naive_p_value(losses, risk, delta):
    """Play the game loss by loss."""
    n = len(losses)
    weight, total, squares = 0.1 * n, 0.0, 0.1 * n * risk * (1 - risk)
    capital = most = 1.0
    for i, loss in enumerate(losses):
        bet = min(np.sqrt(2 * np.log(1 / delta) / n / (squares / (weight + i))), 1 / (1 - risk))
        capital *= 1 + bet * (risk - loss)
        most = max(most, capital)
        total += risk - loss
        squares += (risk - loss - total / (weight + i + 1)) ** 2
    return 1 / most


def test_the_game_of_losses_step_by_step():
    loss = np.random.default_rng(0).beta(1, 9, 80)
    game = _Game(loss, np.arange(80), np.ones(80, bool), 0.15, 0.1)
    assert game.p_value() == pytest.approx(naive_p_value(loss, 0.15, 0.1))
    bound = game.upper_bound(0.1)
    assert loss.mean() < bound <= 0.15
    assert game.p_value(bound) == pytest.approx(0.1)
    # Three samples of one person are one loss of the mean of the three.
    of_three = _Game(loss.repeat(3), np.arange(80).repeat(3), np.ones(240, bool), 0.15, 0.1)
    assert of_three.p_value() == pytest.approx(game.p_value())


def test_a_group_is_one_loss_by_its_sum_over_the_size_of_the_largest():
    rng = np.random.default_rng(0)
    loss, person = rng.beta(1, 9, 80), np.sort(rng.integers(0, 30, 80))
    game = _Game(loss, person, np.ones(80, bool), 0.15, 0.1)
    size = [np.sum(person == i) for i in np.unique(person)]
    sums = [loss[person == i].sum() for i in np.unique(person)]
    # At stake is risk * size - sum: as a loss of single samples, risk - stake.
    losses = [0.15 - (0.15 * n - s) / max(size) for n, s in zip(size, sums)]
    assert game.p_value() == pytest.approx(naive_p_value(losses, 0.15, 0.1))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n", "decimals"), [(300, 0), (120, 1), (240, 15), (720, 1)])
def test_fixed_sequence_of_losses_against_its_definition(seed, n, decimals):
    rng = np.random.default_rng(seed)
    confidence = rng.random(n).round(decimals)
    loss = np.clip(0.06 * (1 - confidence) ** 2 + 0.03 * rng.random(n), 0, 1)
    loss[confidence < 0.2] += 0.3 * (seed % 2)
    options = {"risk": 0.05, "delta": 0.1}
    found = control_risk(confidence, 1 - loss, **options)
    order = np.random.default_rng(0).permutation(n)  # any, as long as it is none of the data's
    boundaries = [*np.unique(confidence)[::-1][1:], -np.inf]
    # Of more than 200 thresholds some are tried.
    tried = {boundaries[int(i)] for i in np.linspace(0, len(boundaries) - 1, 200)}

    def p_value(accepted):
        return naive_p_value(loss[order][accepted[order]], 0.05, 0.1)

    assert found.threshold == naive_fixed_sequence(confidence, p_value, 2, tried)


def test_as_many_samples_without_loss_as_without_error():
    for n, passes in ((44, False), (45, True)):
        game = _Game(np.zeros(n), np.arange(n), np.ones(n, bool), 0.05, 0.1)
        assert (game.p_value() <= 0.1) == passes


def three_votes(n, seed, risk_at):
    """Confidence, and the fraction of three people who agree; they err more where it is low."""
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(size=n)
    return confidence, 1 - rng.binomial(3, risk_at(confidence)) / 3


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [150, 400])
def test_the_limit_holds_for_shares_of_people(n_samples):
    broken, answered = 0, []
    for seed in range(300):
        confidence, agree = three_votes(n_samples, seed, lambda c: 0.3 * (1 - c))
        found = control_risk(confidence, agree, risk=0.1, delta=0.1)
        threshold = max(found.threshold, 0.0)
        answered.append(found.n_accepted / n_samples)
        # The mean loss above a confidence u is .3 (1 - u) / 2.
        broken += found.n_accepted > 0 and 0.15 * (1 - threshold) > 0.1
        assert found.n_errors == pytest.approx((1 - agree)[confidence > found.threshold].sum())
    assert broken <= 30 + 2 * np.sqrt(300 * 0.1 * 0.9)
    assert np.mean(answered) > (0.2 if n_samples == 150 else 0.45)  # no more than 2 / 3


def test_shares_that_differ_little_answer_more_than_labels_drawn_from_them():
    of_shares, of_labels = [], []
    for seed in range(20):
        confidence, agree = three_votes(300, seed, lambda c: 0.15 * (1 - c))
        drawn = np.random.default_rng(seed).random(300) < agree
        of_shares.append(control_risk(confidence, agree, risk=0.05, delta=0.1).n_accepted)
        of_labels.append(control_risk(confidence, drawn, risk=0.05, delta=0.1).n_accepted)
    assert np.mean(of_shares) > np.mean(of_labels)


@pytest.mark.slow
def test_the_limit_holds_for_shares_in_groups():
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(100), 8)
    broken = np.zeros(2)
    for _ in range(150):
        mean = rng.uniform(size=100)
        rate = 0.4 * (1 - mean)
        gathered = np.repeat(rng.beta(rate, 1 - rate), 8)
        agree = 1 - rng.binomial(3, gathered) / 3
        confidence = np.repeat(mean, 8) + 1e-6 * rng.uniform(size=800)
        for k, given in enumerate((None, groups)):
            found = control_risk(confidence, agree, risk=0.1, delta=0.1, groups=given)
            threshold = max(found.threshold, 0.0)
            broken[k] += threshold < 1 and 0.2 * (1 - threshold) > 0.1
    assert broken[0] / 150 > 0.15
    assert broken[1] / 150 <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 150)


def test_shares_of_0_and_1_are_labels_and_very_many_are_tried_in_part():
    rng = np.random.default_rng(4)
    confidence = rng.uniform(size=3000)
    correct = rng.random(3000) < 0.5 + 0.5 * confidence
    options = {"risk": 0.1, "delta": 0.1}
    assert control_risk(confidence, 1.0 * correct, **options) == control_risk(
        confidence, correct, **options
    )
    agree = np.clip(correct - 0.01 * rng.random(3000), 0, 1)
    found = control_risk(confidence, agree, **options)
    assert found.n_accepted == np.sum(confidence > found.threshold) > 0
    assert found.bound <= 0.1
