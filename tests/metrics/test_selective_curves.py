"""Curves against loops over thresholds."""

import numpy as np
import pytest

from skcalib.metrics import accuracy_rejection_curve, risk_coverage_curve


def sample(n=200, n_levels=20, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(4), n)
    y = np.array([rng.choice(4, p=row) for row in proba])
    return y, proba, rng.integers(0, n_levels, n), rng.uniform(0.1, 2, n)


@pytest.mark.parametrize("weighted", [False, True])
def test_every_point_against_a_loop(weighted):
    y, proba, confidence, weight = sample()
    weight = weight if weighted else np.ones(len(y))
    curve = risk_coverage_curve(y, proba, confidence=confidence, sample_weight=weight)
    wrong = proba.argmax(axis=1) != y
    thresholds = sorted(set(confidence.tolist()), reverse=True)
    np.testing.assert_array_equal(curve.threshold, thresholds)
    for threshold, coverage, risk in zip(thresholds, curve.coverage, curve.risk):
        accepted = confidence >= threshold
        assert coverage == pytest.approx(weight[accepted].sum() / weight.sum())
        assert risk == pytest.approx(np.average(wrong[accepted], weights=weight[accepted]))


def test_ends():
    y, proba, confidence, _ = sample()
    curve = risk_coverage_curve(y, proba, confidence=confidence)
    assert curve.coverage[-1] == 1
    assert curve.risk[-1] == pytest.approx(np.mean(proba.argmax(axis=1) != y))
    assert (np.diff(curve.coverage) > 0).all()
    assert (np.diff(curve.threshold) < 0).all()


def test_accuracy_rejection_is_the_mirror_image():
    y, proba, confidence, weight = sample()
    arguments = {"confidence": confidence, "sample_weight": weight}
    risk = risk_coverage_curve(y, proba, **arguments)
    accuracy = accuracy_rejection_curve(y, proba, **arguments)
    assert accuracy.rejection[0] == 0
    np.testing.assert_allclose(accuracy.rejection + risk.coverage[::-1], 1)
    np.testing.assert_allclose(accuracy.accuracy + risk.risk[::-1], 1)
    np.testing.assert_array_equal(accuracy.threshold, risk.threshold[::-1])


def test_rows_without_weight_leave_no_threshold():
    y, proba, _, _ = sample(n=6)
    curve = risk_coverage_curve(
        y, proba, confidence=[1, 2, 3, 4, 5, 6], sample_weight=[1, 0, 1, 0, 1, 1], labels=range(4)
    )
    np.testing.assert_array_equal(curve.threshold, [6, 5, 3, 1])


@pytest.mark.parametrize(
    ("name", "score"),
    [
        ("msp", lambda p: p.max(axis=1)),
        ("margin", lambda p: np.diff(np.sort(p, axis=1)[:, -2:], axis=1)[:, 0]),
        ("entropy", lambda p: np.sum(p * np.log(p), axis=1)),
    ],
)
def test_named_confidence_is_the_array_of_the_formula(name, score):
    y, proba, _, _ = sample()
    named = risk_coverage_curve(y, proba, confidence=name)
    given = risk_coverage_curve(y, proba, confidence=score(proba))
    np.testing.assert_array_equal(named.risk, given.risk)
    np.testing.assert_allclose(named.threshold, given.threshold, atol=1e-11)
