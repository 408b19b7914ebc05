"""Curves against loops over thresholds, and single points against definitions."""

import numpy as np
import pytest

from skcalib.metrics import accuracy_at_coverage, coverage_at_risk, risk_coverage_curve


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


def case(wrong):
    return np.asarray(wrong, dtype=int), np.tile([0.7, 0.3], (len(wrong), 1))


def test_accuracy_of_whole_rows_is_a_mean_over_the_surest():
    rng = np.random.default_rng(0)
    wrong, confidence = rng.random(50) < 0.3, rng.permutation(50)
    ordered = ~wrong[np.argsort(-confidence)]
    for k in range(1, 51):
        accuracy = accuracy_at_coverage(*case(wrong), coverage=k / 50, confidence=confidence)
        assert accuracy == pytest.approx(ordered[:k].mean())


def test_a_tie_at_the_cut_counts_in_expectation():
    wrong, confidence = [False, False, True, False, True, True], [9, 5, 5, 5, 5, 1]
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(4000):
        order = np.lexsort([rng.random(6), -np.asarray(confidence)])
        draws.append(np.mean([not wrong[i] for i in order[:3]]))
    accuracy = accuracy_at_coverage(*case(wrong), coverage=0.5, confidence=confidence)
    assert accuracy == pytest.approx((1 + 2 / 4 * 2) / 3)
    assert accuracy == pytest.approx(np.mean(draws), abs=0.02)


def test_accuracy_between_rows_is_continuous():
    wrong, confidence = [False, True], [2, 1]
    for coverage in (0.1, 0.5, 0.75, 1.0):
        accuracy = accuracy_at_coverage(*case(wrong), coverage=coverage, confidence=confidence)
        assert accuracy == pytest.approx(min(1, 0.5 / coverage))


@pytest.mark.parametrize("risk", [0.0, 0.1, 0.2, 1 / 3, 0.5, 1.0])
def test_coverage_is_the_largest_within_the_risk(risk):
    rng = np.random.default_rng(1)
    wrong, confidence = rng.random(60) < 0.4, rng.integers(0, 25, 60)
    curve = risk_coverage_curve(*case(wrong), confidence=confidence)
    expected = max((c for c, r in zip(curve.coverage, curve.risk) if r <= risk), default=0.0)
    assert coverage_at_risk(*case(wrong), risk=risk, confidence=confidence) == expected


@pytest.mark.parametrize("risk", [0.0, 0.2, 0.5, 1.0])
def test_the_threshold_accepts_what_the_coverage_says(risk):
    rng = np.random.default_rng(2)
    wrong, confidence = rng.random(60) < 0.4, rng.integers(0, 25, 60)
    wrong[confidence == confidence.max()] = True
    coverage, threshold = coverage_at_risk(
        *case(wrong), risk=risk, confidence=confidence, return_threshold=True
    )
    accepted = confidence >= threshold
    assert accepted.mean() == coverage
    assert not accepted.any() or wrong[accepted].mean() <= risk
    assert (threshold == np.inf) == (coverage == 0)


def test_a_risk_of_exactly_the_limit_is_within_it():
    wrong = np.arange(10) == 0
    confidence = -np.arange(10)[::-1]
    for scale in (1, 0.1, 1 / 3):
        weight = np.full(10, scale)
        coverage = coverage_at_risk(
            *case(wrong), risk=0.1, confidence=confidence, sample_weight=weight
        )
        assert coverage == 1


def test_no_coverage_where_the_surest_row_is_wrong():
    assert coverage_at_risk(*case([True, False]), risk=0.4, confidence=[2, 1]) == 0


@pytest.mark.parametrize("coverage", [0, -0.5, 1.5, None, "all"])
def test_bad_coverage(coverage):
    with pytest.raises(ValueError, match="'coverage' parameter"):
        accuracy_at_coverage(*case([0, 1]), coverage=coverage)


@pytest.mark.parametrize("risk", [-0.1, 1.1, None])
def test_bad_risk(risk):
    with pytest.raises(ValueError, match="'risk' parameter"):
        coverage_at_risk(*case([0, 1]), risk=risk)
