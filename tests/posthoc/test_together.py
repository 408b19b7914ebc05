"""Samples that belong together, and weights, in calibrators and calibrated classifiers."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

from skcalib.posthoc import (
    GroupwiseCalibration,
    PostHocCalibratedClassifier,
    StackedCalibration,
    TemperatureScaling,
)
from skcalib.posthoc._stacking import draw_folds
from skcalib.utils._labels import compute_design_effect

X, Y = load_digits(return_X_y=True)


def people(n, seed, size=30, n_classes=6):
    """Return logits, labels and names of n people, whose samples are nearly alike."""
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.arange(n) % n_classes)
    logits = 2 * np.eye(n_classes)[label] + 1.2 * rng.normal(size=(n, n_classes))
    of = np.repeat(np.arange(n), size)
    noise = 0.15 * rng.normal(size=(n * size, n_classes))
    names = np.array([None, *(f"person {i}" for i in range(1, n))], dtype=object)
    return 2 * (logits[of] + noise), label[of], names[of]


@pytest.mark.slow
def test_the_stack_is_no_worse_than_a_temperature_for_new_people():
    differences = []
    for seed in range(6):
        logits, y, names = people(60, seed)
        new, y_new, _ = people(300, 100 + seed)
        stack = StackedCalibration().fit(logits, y, groups=names)
        plain = TemperatureScaling().fit(logits, y)
        losses = [log_loss(y_new, model.predict_proba(new)) for model in (stack, plain)]
        differences.append(losses[0] - losses[1])
    assert np.mean(differences) < 0.03
    blind = log_loss(y_new, StackedCalibration().fit(logits, y).predict_proba(new))
    assert blind > losses[0] + 0.2


def test_no_group_is_in_two_folds_and_groups_take_turns():
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 3, 600), rng.integers(0, 120, 600)
    proba = rng.dirichlet(np.ones(3), 600)
    folds = draw_folds(proba, y, np.ones(600), 0, groups)
    assert set(folds.tolist()) == {0, 1, 2, 3, 4}
    assert len(np.unique(groups * 5 + folds)) == len(np.unique(groups))
    order = rng.permutation(600)
    shuffled = draw_folds(proba[order], y[order], np.ones(600), 0, groups[order])
    np.testing.assert_array_equal(shuffled, folds[order])
    alone = draw_folds(proba, y, np.ones(600), 0, np.arange(600))
    assert np.ptp(np.bincount(alone)) <= 1


def test_design_effect_is_the_ratio_of_variances():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(400), 5)
    values = rng.normal(size=2000)
    assert compute_design_effect(values, groups) == pytest.approx(1, abs=0.15)
    assert compute_design_effect(rng.normal(size=400)[groups], groups) == pytest.approx(5, abs=0.5)
    # Correlation r within groups of m: 1 + (m - 1) r.
    half = np.sqrt(0.5) * (rng.normal(size=400)[groups] + values)
    assert compute_design_effect(half, groups) == pytest.approx(3, abs=0.4)


def test_a_weight_of_k_is_k_samples_to_the_design_effect():
    rng = np.random.default_rng(0)
    groups, values = rng.integers(0, 40, 200), rng.normal(size=200)
    count = rng.integers(1, 4, 200)
    repeated = compute_design_effect(np.repeat(values, count), np.repeat(groups, count))
    assert compute_design_effect(values, groups, 1.0 * count) == pytest.approx(repeated)
    # Opinions on a sample are never more than the sample.
    shares = rng.dirichlet(np.ones(3), 100).ravel()
    assert compute_design_effect(rng.normal(size=300), np.repeat(np.arange(100), 3), shares) == 1


def test_one_group_cannot_be_judged():
    logits, y, _ = people(12, 0)
    with pytest.raises(ValueError, match=r"^groups must have at least two groups"):
        StackedCalibration().fit(logits, y, groups=np.zeros(len(y)))
    with pytest.raises(ValueError, match=r"^groups must have one entry for every sample, 360"):
        TemperatureScaling().fit(logits, y, groups=[1, 2])


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [False, True])
def test_groups_and_equal_rows_reach_the_folds_of_the_calibrator(monkeypatch, frozen):
    seen = []

    def spy(*args):
        seen.append(args[4])
        return draw_folds(*args)

    monkeypatch.setattr("skcalib.posthoc._stacking.draw_folds", spy)
    model = GaussianNB().fit(X[900:], Y[900:])
    model = FrozenEstimator(model) if frozen else GaussianNB()
    names = np.array([f"p{i // 4}" for i in range(800)])
    PostHocCalibratedClassifier(model).fit(X[:800], Y[:800], groups=names)
    np.testing.assert_array_equal(np.unique(seen[-1]), np.arange(200))
    rows = np.append(np.arange(800), np.arange(40))
    PostHocCalibratedClassifier(model).fit(X[rows], Y[rows])
    assert seen[-1] is None  # equal rows are no groups
    columns = PostHocCalibratedClassifier(model, by_columns=20)
    columns.fit(X[:800], Y[:800], groups=names)
    np.testing.assert_array_equal(np.unique(seen[-1]), np.arange(200))


@pytest.mark.slow
def test_a_table_twice_is_calibrated_as_the_table_with_groups():
    rows = np.append(np.arange(600), np.arange(600))
    once = PostHocCalibratedClassifier(GaussianNB()).fit(X[:600], Y[:600])
    twice = PostHocCalibratedClassifier(GaussianNB()).fit(X[rows], Y[rows], groups=rows)
    losses = [log_loss(Y[600:], model.predict_proba(X[600:])) for model in (once, twice)]
    assert losses[1] < losses[0] + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("total", [1.0, 180_000.0])
def test_weights_of_any_scale_give_one_map(total):
    logits, y, _ = people(60, 0)
    scaled = np.full(len(y), total / len(y))
    for calibrator in (TemperatureScaling(), StackedCalibration(), GroupwiseCalibration()):
        expected = calibrator.fit(logits, y).predict_proba(logits)
        found = calibrator.fit(logits, y, sample_weight=scaled).predict_proba(logits)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
