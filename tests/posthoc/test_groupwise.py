"""Groups: who is off is repaired, who is not keeps the common map."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from scipy.stats import norm
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skcalib.posthoc import (
    GroupwiseCalibration,
    PostHocCalibratedClassifier,
    StackedCalibration,
    TemperatureScaling,
)
from skcalib.posthoc._shifts import fit_shifts

from ._sample import sample


def grouped(seed, sizes, off, n_test=20_000):
    """Logits, labels, groups and true probabilities; the last group is off by `off`."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    group = np.append(group, rng.choice(len(sizes), n_test))
    logits = 1.5 * rng.normal(size=len(group))
    bad = group == len(sizes) - 1
    truth = np.where(bad, np.clip(expit(logits) - off, 0.01, 0.99), expit(logits))
    return logits, (rng.random(len(group)) < truth).astype(int), group, truth


def excess(truth, said, rows):
    """Mean log-loss above that of the true probabilities."""
    truth, said = truth[rows], said[rows]
    per_sample = truth * np.log(truth / said) + (1 - truth) * np.log((1 - truth) / (1 - said))
    return per_sample.mean()


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[1900, 100], [475] * 4 + [100], [100] * 20], ids=len)
def test_a_bad_group_is_repaired_and_the_others_are_not_harmed(sizes):
    n, losses, gaps = sum(sizes), [], []
    for seed in range(5):
        logits, y, group, truth = grouped(seed, sizes, 0.15)
        model = GroupwiseCalibration("structured_matrix").fit(logits[:n], y[:n], by=group[:n])
        together = model.predict_proba(logits[n:])[:, 1]
        by_group = model.predict_proba(logits[n:], by=group[n:])[:, 1]
        truth, bad = truth[n:], group[n:] == len(sizes) - 1
        losses.append(
            [excess(truth, p, rows) for p in (together, by_group) for rows in (bad, ~bad)]
        )
        gaps.append([abs((p - truth)[bad].mean()) for p in (together, by_group)])
    bad_before, others_before, bad_after, others_after = np.mean(losses, axis=0)
    assert bad_after < 0.6 * bad_before
    assert others_after < others_before + 5e-4
    assert np.mean(gaps, axis=0)[1] < 0.6 * np.mean(gaps, axis=0)[0]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[1000, 1000], [100] * 20], ids=len)
def test_groups_that_do_not_differ_keep_the_common_map(sizes):
    n, differences = sum(sizes), []
    for seed in range(5):
        logits, y, group, truth = grouped(seed, sizes, 0.0)
        model = GroupwiseCalibration("temperature").fit(logits[:n], y[:n], by=group[:n])
        together = model.predict_proba(logits[n:])[:, 1]
        by_group = model.predict_proba(logits[n:], by=group[n:])[:, 1]
        everybody = slice(None)
        differences.append(
            excess(truth[n:], by_group, everybody) - excess(truth[n:], together, everybody)
        )
    assert np.mean(differences) < 3e-4


@pytest.mark.slow
def test_that_none_differs_is_as_likely_beforehand_for_any_number_of_groups():
    """Where no group differs, the posterior says so: half is not what the grid would add."""
    differ = []
    for seed in range(10):
        logits, y, group, _ = grouped(seed, [100] * 20, 0.0)
        model = GroupwiseCalibration("temperature").fit(logits, y, by=group)
        differ.append(np.mean(list(model.differs_)))
    assert np.mean(differ) < 0.028  # .035 if every point of the grid had as much as all do


@pytest.mark.parametrize("spread", [(0.5, 0.3), (1.0, 0.0), (0.0, 0.3)])
def test_a_group_is_fitted_to_its_posterior_mode(spread):
    logits, y = sample(n=150, k=3, bias=[0, 1, 0])
    log_proba = log_softmax(logits, axis=1)
    weight = np.random.default_rng(0).uniform(0.5, 2, 150)
    free = np.append(np.full(3, spread[0] > 0), spread[1] > 0)
    scale = np.append(np.full(3, spread[0]), spread[1])[free]

    def loss(some):
        theta = np.zeros(4)
        theta[free] = some
        log_q = log_softmax((1 + theta[3]) * log_proba + theta[:3], axis=1)
        return -weight @ log_q[np.arange(150), y] + 0.5 * np.sum((some / scale) ** 2)

    best = minimize(loss, np.zeros(free.sum()), method="BFGS", options={"gtol": 1e-6})
    found = fit_shifts(log_proba, y, weight, *spread)[0]
    np.testing.assert_allclose(found[free], best.x, atol=1e-5)
    assert not found[~free].any()


def test_the_evidence_is_the_integral_of_the_likelihood():
    logits, y = sample(n=60, k=2, bias=[0, 0.5])
    log_proba = log_softmax(logits, axis=1)

    def likelihood(shift):
        log_q = log_softmax(log_proba + shift * np.array([-0.5, 0.5]), axis=1)
        return np.exp((log_q - log_proba)[np.arange(60), y].sum())

    # The difference of two shifts of the standard deviation .5.
    exact, _ = quad(lambda b: likelihood(b) * norm.pdf(b, scale=0.5 * np.sqrt(2)), -6, 6)
    assert fit_shifts(log_proba, y, np.ones(60), 0.5, 0.0)[1] == pytest.approx(
        np.log(exact), abs=0.03
    )


def test_groups_unknown_to_the_fit_get_the_common_map():
    logits, y, group, _ = grouped(0, [500, 500], 0.3, n_test=0)
    group = np.array(["a", "b"])[group]
    model = GroupwiseCalibration("temperature").fit(logits, y, by=group)
    together = TemperatureScaling().fit(logits, y).predict_proba(logits)
    np.testing.assert_allclose(model.predict_proba(logits), together, rtol=1e-12)
    strangers = model.predict_proba(logits, by=["c"] * 1000)
    np.testing.assert_allclose(strangers, together, rtol=1e-12)
    both = model.predict_proba(logits[:2], by=["c", "b"])
    np.testing.assert_allclose(both[0], together[0], rtol=1e-12)
    expected = softmax((1 + model.slopes_[1]) * np.log(together[1]) + model.shifts_[1])
    np.testing.assert_allclose(both[1], expected, rtol=1e-12)
    assert model.predict([0.3], by=["b"]) == [0] != model.predict([0.3])


def test_one_group_and_small_groups_are_left_alone():
    logits, y, group, _ = grouped(0, [500, 9], 0.9, n_test=0)
    model = GroupwiseCalibration("temperature").fit(logits, y, by=group)
    assert not model.shifts_[1].any()
    assert model.differs_[1] == 0
    for model in (
        GroupwiseCalibration("temperature").fit(logits, y),
        GroupwiseCalibration("temperature").fit(logits, y, by=["all"] * 509),
    ):
        assert not model.shifts_.any()


def test_weights_of_any_scale_and_of_zero():
    logits, y, group, _ = grouped(1, [200, 100], 0.3, n_test=0)
    used = np.random.default_rng(0).random(300) < 0.5
    weighted = GroupwiseCalibration("temperature")
    weighted.fit(logits, y, sample_weight=100.0 * used, by=group)
    some = GroupwiseCalibration("temperature").fit(logits[used], y[used], by=group[used])
    np.testing.assert_allclose(weighted.shifts_, some.shifts_, rtol=1e-4, atol=1e-7)


def test_groups_of_two_columns_with_missing_values():
    logits, y, group, _ = grouped(1, [200, 200], 0.3, n_test=0)
    place = pd.Series(np.where(group, "south", None))
    frame = pd.DataFrame({"place": place, "old": np.arange(400) % 2 == 0})
    model = GroupwiseCalibration("temperature").fit(logits, y, by=frame)
    assert list(model.groups_)[:2] == ["place=south, old=False", "place=south, old=True"]
    one = GroupwiseCalibration("temperature").fit(logits, y, by=place)
    assert list(one.groups_) == ["south", None]
    shuffled = np.random.default_rng(0).permutation(400)
    proba = one.predict_proba(logits, by=place)
    again = one.predict_proba(logits[shuffled], by=place[shuffled])
    np.testing.assert_allclose(again, proba[shuffled])


@pytest.mark.slow
@pytest.mark.parametrize("as_frame", [True, False])
def test_columns_of_a_classifier_are_groups(as_frame):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=3000), rng.integers(0, 3, 3000)])
    y = (rng.random(3000) < expit(2 * X[:, 0] - 2.0 * (X[:, 1] == 2))).astype(int)
    column = 1
    if as_frame:
        X, column = pd.DataFrame({"x": X[:, 0], "site": X[:, 1]}), "site"
    trained = LogisticRegression().fit(X[:1000], y[:1000])
    frozen = FrozenEstimator(trained)
    model = PostHocCalibratedClassifier(frozen, by_columns=column).fit(X, y)
    scores = trained.decision_function(X)
    sites = X["site"] if as_frame else X[:, 1]
    by_hand = GroupwiseCalibration(StackedCalibration()).fit(scores, y, by=sites)
    np.testing.assert_allclose(
        model.predict_proba(X), by_hand.predict_proba(scores, by=sites), rtol=1e-9
    )
    several = PostHocCalibratedClassifier(frozen, by_columns=[column]).fit(X, y)
    np.testing.assert_allclose(several.predict_proba(X), model.predict_proba(X))


def test_columns_that_X_does_not_have():
    X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
    model = PostHocCalibratedClassifier(LogisticRegression(), by_columns="site")
    for features in (X, pd.DataFrame(X, columns=["age", "dose"])):
        with pytest.raises(ValueError, match=r"^by_columns must name columns of X, got 'site'"):
            model.fit(features, y)
    with pytest.raises(ValueError, match="by must have one entry for every sample, 50, got 3"):
        GroupwiseCalibration("temperature").fit(X[:, 0], y, by=[1, 2, 3])
