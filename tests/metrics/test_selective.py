"""Areas against loops over every order of the ties, closed forms and mpmath."""

from itertools import pairwise, permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import auc, roc_auc_score

from skcalib.metrics import (
    area_under_generalized_risk_coverage,
    area_under_risk_coverage,
    excess_area_under_risk_coverage,
    risk_coverage_curve,
)

AREAS = [
    area_under_risk_coverage,
    excess_area_under_risk_coverage,
    area_under_generalized_risk_coverage,
]


def case(wrong):
    """Two-column predictions that are right or wrong as asked."""
    proba = np.tile([0.7, 0.3], (len(wrong), 1))
    return np.asarray(wrong, dtype=int), proba


def mean_risk(wrong_in_order):
    wrong = np.asarray(wrong_in_order, dtype=float)
    return np.mean(np.cumsum(wrong) / np.arange(1, len(wrong) + 1))


def mean_over_orders(confidence, wrong):
    """The mean of `mean_risk` over all orders that agree with the confidence."""
    values = [
        mean_risk([wrong[i] for i in order])
        for order in permutations(range(len(wrong)))
        if all(confidence[a] >= confidence[b] for a, b in pairwise(order))
    ]
    return np.mean(values)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=6),
)
def test_aurc_is_the_mean_over_the_orders_of_ties(rows):
    confidence, wrong = zip(*rows)
    area = area_under_risk_coverage(*case(wrong), confidence=confidence, labels=[0, 1])
    assert area == pytest.approx(mean_over_orders(confidence, wrong), abs=1e-14)


def test_aurc_without_ties_is_a_running_mean():
    rng = np.random.default_rng(0)
    confidence, wrong = rng.permutation(5000), rng.random(5000) < 0.2
    expected = mean_risk(wrong[np.argsort(-confidence)])
    assert area_under_risk_coverage(*case(wrong), confidence=confidence) == pytest.approx(
        expected, rel=1e-12
    )


def test_the_order_of_the_rows_does_not_matter_under_ties():
    wrong = np.repeat([True, False], 50)
    areas = [
        area_under_risk_coverage(*case(np.roll(wrong, shift)), confidence=np.ones(100))
        for shift in range(0, 100, 7)
    ]
    # What a sort makes of the same ties lies anywhere between these two.
    assert mean_risk(~wrong) < 0.2 < 0.8 < mean_risk(wrong)
    np.testing.assert_allclose(areas, 0.5, rtol=1e-14)


@pytest.mark.parametrize("n_right", [0, 1, 37, 1000])
@pytest.mark.parametrize("n_wrong", [0, 1, 63])
def test_perfect_ranking_has_no_excess(n_right, n_wrong):
    if n_right + n_wrong == 0:
        return
    wrong = np.repeat([False, True], [n_right, n_wrong])
    arguments = {"confidence": -wrong.astype(int), "labels": [0, 1]}
    perfect = area_under_risk_coverage(*case(wrong), **arguments)
    n = n_right + n_wrong
    expected = sum(j / (n_right + j) for j in range(1, n_wrong + 1)) / n
    assert perfect == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert excess_area_under_risk_coverage(*case(wrong), **arguments) == pytest.approx(
        0, abs=1e-12
    )


def test_excess_is_the_area_less_that_of_the_perfect_ranking():
    rng = np.random.default_rng(1)
    confidence, wrong = rng.integers(0, 40, 300), rng.random(300) < 0.3
    excess = excess_area_under_risk_coverage(*case(wrong), confidence=confidence)
    perfect = mean_risk(np.sort(wrong))
    area = area_under_risk_coverage(*case(wrong), confidence=confidence)
    assert excess == pytest.approx(area - perfect, abs=1e-13)


@pytest.mark.parametrize("weight", [0.25, 1.0, 3.5])
def test_real_weights_are_the_digamma_form_against_mpmath(weight):
    wrong, confidence = [False, True, True, False], [3, 2, 2, 1]
    weights = [1.5, weight, 0.75, 2.0]
    with mpmath.workdps(40):
        before, errors, total = mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(0)
        for m, e in [(1.5, 0.0), (weight + 0.75, weight + 0.75), (2.0, 0.0)]:
            harmonic = mpmath.digamma(before + m + 1) - mpmath.digamma(before + 1)
            rate = mpmath.mpf(e) / m
            total += rate * m + (errors - rate * before) * harmonic
            before, errors = before + m, errors + e
        expected = float(total / before)
    area = area_under_risk_coverage(*case(wrong), confidence=confidence, sample_weight=weights)
    assert area == pytest.approx(expected, rel=1e-13)


def test_augrc_is_the_published_closed_form():
    rng = np.random.default_rng(2)
    for n_levels in (3, 50, 10_000):
        confidence, wrong = rng.integers(0, n_levels, 400), rng.random(400) < 0.25
        weight = rng.uniform(0.1, 3, 400)
        accuracy = np.average(~wrong, weights=weight)
        auroc = roc_auc_score(~wrong, confidence, sample_weight=weight)
        expected = accuracy * (1 - accuracy) * (1 - auroc) + (1 - accuracy) ** 2 / 2
        area = area_under_generalized_risk_coverage(
            *case(wrong), confidence=confidence, sample_weight=weight
        )
        assert area == pytest.approx(expected, rel=1e-12)


def test_augrc_is_the_area_under_coverage_times_risk():
    rng = np.random.default_rng(3)
    confidence, wrong = rng.integers(0, 30, 200), rng.random(200) < 0.25
    curve = risk_coverage_curve(*case(wrong), confidence=confidence)
    joint = np.append(0, curve.coverage * curve.risk)
    area = area_under_generalized_risk_coverage(*case(wrong), confidence=confidence)
    assert area == pytest.approx(auc(np.append(0, curve.coverage), joint), rel=1e-12)


@pytest.mark.parametrize("area", AREAS)
def test_all_right_is_zero(area):
    assert area(*case([False] * 9), labels=[0, 1]) == 0


def test_all_wrong():
    assert area_under_risk_coverage(*case([True] * 9), labels=[0, 1]) == pytest.approx(1)
    assert excess_area_under_risk_coverage(*case([True] * 9), labels=[0, 1]) == 0
    assert area_under_generalized_risk_coverage(*case([True] * 9), labels=[0, 1]) == 0.5


def test_constant_confidence_is_the_error_rate():
    wrong = np.arange(20) < 3
    assert area_under_risk_coverage(*case(wrong)) == pytest.approx(0.15, rel=1e-14)
    assert area_under_generalized_risk_coverage(*case(wrong)) == pytest.approx(0.075, rel=1e-14)


@pytest.mark.slow
def test_random_confidence_is_the_error_rate_in_the_mean():
    rng = np.random.default_rng(0)
    wrong = rng.random(300) < 0.2
    areas = [
        area_under_risk_coverage(*case(wrong), confidence=rng.random(300)) for _ in range(300)
    ]
    assert np.mean(areas) == pytest.approx(wrong.mean(), abs=4 * np.std(areas) / np.sqrt(300))


@pytest.mark.parametrize("area", AREAS)
def test_only_the_order_of_the_confidence_counts(area):
    rng = np.random.default_rng(4)
    confidence, wrong = rng.integers(0, 9, 50).astype(float), rng.random(50) < 0.4
    expected = area(*case(wrong), confidence=confidence)
    infinite = np.where(confidence == 8, np.inf, np.exp(confidence))
    assert area(*case(wrong), confidence=infinite) == expected


@pytest.mark.slow
def test_large_samples_keep_their_digits():
    n = 1_000_000
    wrong = np.arange(n) % 10 == 0
    confidence = -np.arange(n)
    area = area_under_risk_coverage(*case(wrong), confidence=confidence)
    assert area == pytest.approx(mean_risk(wrong), rel=1e-12)
    # Twice the weight is two rows a tie, each adding E / (2 i - 1) and E / (2 i): digamma differs.
    doubled = area_under_risk_coverage(
        *case(wrong), confidence=confidence, sample_weight=np.full(n, 2)
    )
    twice = np.repeat(np.cumsum(wrong), 2) * 2.0
    twice[::2] -= np.diff(twice[1::2], prepend=0) / 2
    assert doubled == pytest.approx(np.mean(twice / np.arange(1, 2 * n + 1)), rel=1e-10)
