"""Single points of the curve against definitions."""

import numpy as np
import pytest

from skcalib.metrics import accuracy_at_coverage, coverage_at_risk, risk_coverage_curve


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
