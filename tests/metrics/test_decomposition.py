"""The isotonic decomposition against scikit-learn's pieces, identities and limits."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss

from skcalib.metrics import score_decomposition


def sample(n=400, k=4, seed=0, levels=None):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(k), n)
    y = np.array([rng.choice(k, p=row) for row in proba])
    sharp = proba**2 / (proba**2).sum(axis=1, keepdims=True)
    if levels is not None:
        sharp = np.stack([rng.multinomial(levels, row) for row in sharp]) / levels
    return y, sharp, rng.uniform(0.1, 2, n)


def binary_score(positive, p, weight, rule):
    p = np.asarray(p)
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = (
            (p - positive) ** 2
            if rule == "brier"
            else -np.where(positive, np.log(np.maximum(p, 0)), np.log(np.maximum(1 - p, 0)))
        )
    return np.average(losses, weights=weight)


# Tied forecasts of 0 and 1 make the log-loss infinite: see below.
@pytest.mark.parametrize(("rule", "levels"), [("brier", None), ("brier", 8), ("log_loss", None)])
@pytest.mark.parametrize("weighted", [False, True])
def test_binary_against_isotonic_regression_of_scikit_learn(rule, levels, weighted):
    y, proba, weight = sample(k=2, levels=levels)
    weight = weight if weighted else np.ones(len(y))
    p = proba[:, 1]
    recalibrated = IsotonicRegression().fit(p, y, sample_weight=weight).predict(p)
    rate = np.full(len(y), np.average(y, weights=weight))
    score, best, constant = (
        binary_score(y == 1, q, weight, rule) for q in (p, recalibrated, rate)
    )
    parts = score_decomposition(y, p, scoring_rule=rule, sample_weight=weight)
    np.testing.assert_allclose(
        parts, [score - best, constant - best, constant, score], rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("rule", ["brier", "log_loss"])
def test_the_parts_add_up_and_are_not_negative(rule):
    for seed in range(5):
        y, proba, weight = sample(seed=seed, n=50)
        for average in ("sum", None):
            parts = score_decomposition(
                y, proba, scoring_rule=rule, average=average, sample_weight=weight, labels=range(4)
            )
            total = parts.miscalibration - parts.discrimination + parts.uncertainty
            np.testing.assert_allclose(total, parts.score, atol=1e-12)
            assert np.min(parts) >= 0


def test_brier_sums_to_the_multiclass_score():
    y, proba, weight = sample()
    parts = score_decomposition(y, proba, sample_weight=weight)
    expected = brier_score_loss(
        y, proba, sample_weight=weight, labels=range(4), scale_by_half=False
    )
    assert parts.score == pytest.approx(expected)
    rates = np.bincount(y, weight) / weight.sum()
    assert parts.uncertainty == pytest.approx(np.sum(rates * (1 - rates)))


def test_log_loss_sums_one_against_the_rest():
    y, proba, _ = sample()
    parts = score_decomposition(y, proba, scoring_rule="log_loss")
    expected = sum(log_loss(y == k, proba[:, k]) for k in range(4))
    assert parts.score == pytest.approx(expected)
    assert parts.score > log_loss(y, proba)


def test_classes_are_the_binary_decompositions():
    y, proba, weight = sample()
    of_classes = score_decomposition(y, proba, average=None, sample_weight=weight)
    for k in range(4):
        one = score_decomposition((y == k).astype(int), proba[:, k], sample_weight=weight)
        np.testing.assert_allclose([part[k] for part in of_classes], one, rtol=1e-12)


@pytest.mark.parametrize("rule", ["brier", "log_loss"])
def test_any_increasing_map_changes_miscalibration_alone(rule):
    y, proba, _ = sample(k=2)
    p = proba[:, 1]
    before = score_decomposition(y, p, scoring_rule=rule)
    after = score_decomposition(y, 0.2 + 0.5 * p**3, scoring_rule=rule)
    assert after.discrimination == pytest.approx(before.discrimination)
    assert after.uncertainty == pytest.approx(before.uncertainty)
    assert after.miscalibration != pytest.approx(before.miscalibration)


def test_perfect_calibration_in_closed_form():
    # Groups whose fraction of positives is the forecast: no miscalibration at all.
    p = np.repeat([0.2, 0.6, 0.8], 10)
    y = np.concatenate([np.arange(10) < 10 * fraction for fraction in (0.2, 0.6, 0.8)]).astype(int)
    parts = score_decomposition(y, p)
    rate = y.mean()
    assert parts.miscalibration == pytest.approx(0, abs=1e-15)
    assert parts.discrimination == pytest.approx(np.var([0.2, 0.6, 0.8]))
    assert parts.uncertainty == pytest.approx(rate * (1 - rate))


def test_constant_forecast_has_no_discrimination():
    parts = score_decomposition([0, 1, 1, 1], [0.5] * 4)
    np.testing.assert_allclose(parts, [1 / 16, 0, 3 / 16, 1 / 4], atol=1e-15)


def test_certain_and_wrong_is_an_infinite_log_loss():
    parts = score_decomposition([0, 1], [1.0, 1.0], scoring_rule="log_loss")
    assert parts.score == parts.miscalibration == np.inf
    assert parts.uncertainty == pytest.approx(np.log(2))
    beyond = score_decomposition([1, 0], [-1e-6, 1 + 1e-6], scoring_rule="log_loss")
    assert beyond.score == np.inf
    certain = score_decomposition([0, 1], [0.0, 1.0], scoring_rule="log_loss")
    np.testing.assert_allclose(certain, [0, np.log(2), np.log(2), 0])


def test_calibrated_forecasts_approach_zero_miscalibration():
    rng = np.random.default_rng(0)
    p = rng.random(50_000)
    parts = score_decomposition((rng.random(50_000) < p).astype(int), p)
    assert parts.miscalibration < 0.0005
    # Discrimination is the variance of the true probability, uncertainty p (1 - p) at 1/2.
    assert parts.discrimination == pytest.approx(1 / 12, abs=0.002)
    assert parts.uncertainty == pytest.approx(1 / 4, abs=1e-3)


@pytest.mark.parametrize("options", [{"scoring_rule": "mse"}, {"average": "macro"}])
def test_bad_options(options):
    with pytest.raises(ValueError, match="parameter"):
        score_decomposition([0, 1], [0.2, 0.7], **options)


@pytest.mark.parametrize("rule", ["brier", "log_loss"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_every_class_is_one_against_the_rest(rule, dtype):
    y, proba, weight = sample(k=40, n=120)
    proba = proba.astype(dtype)
    options = {"scoring_rule": rule, "sample_weight": weight}
    parts = score_decomposition(y, proba, labels=range(40), average=None, **options)
    for k in np.unique(y):
        alone = score_decomposition((y == k).astype(int), proba[:, k], **options)
        np.testing.assert_allclose([part[k] for part in parts], alone, rtol=1e-12, atol=1e-15)


def test_a_block_of_positives_alone_costs_nothing_whatever_the_weights():
    # Sums of the weights in two orders would differ, and log(0) be taken of the difference.
    rng = np.random.default_rng(0)
    p, weight = rng.random(1000), rng.uniform(0.1, 2, 1000)
    parts = score_decomposition(p > 0.5, p, scoring_rule="log_loss", sample_weight=weight)
    assert parts.discrimination == parts.uncertainty


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["brier", "log_loss"])
def test_many_classes_are_each_decomposed_against_the_rest(rule):
    y, proba, _ = sample(n=3000, k=70, levels=200)
    parts = np.array(score_decomposition(y, proba, scoring_rule="brier", average=None))
    weighted = score_decomposition(y, proba, sample_weight=np.ones(3000), average=None)
    np.testing.assert_allclose(parts, weighted, rtol=1e-10, atol=1e-13)
    if rule == "log_loss":
        proba = (proba + 1e-3) / (1 + 70 * 1e-3)
    for k in (0, 69):
        of_class = score_decomposition(y == k, proba[:, k], scoring_rule=rule)
        found = np.array(score_decomposition(y, proba, scoring_rule=rule, average=None))[:, k]
        np.testing.assert_allclose(found, of_class, rtol=1e-10, atol=1e-13)
        ones = np.ones(3000)
        tied = score_decomposition(y == k, proba[:, k], scoring_rule=rule, sample_weight=ones)
        np.testing.assert_allclose(found, tied, rtol=1e-10, atol=1e-13)


def test_an_infinite_loss_of_weight_0_counts_nothing():
    parts = score_decomposition(
        [0, 1, 1, 0], [0.2, 0.7, 0.0, 0.4], scoring_rule="log_loss", sample_weight=[1, 2, 0, 1]
    )
    without = score_decomposition(
        [0, 1, 0], [0.2, 0.7, 0.4], scoring_rule="log_loss", sample_weight=[1, 2, 1]
    )
    np.testing.assert_allclose(parts, without, rtol=1e-12)
