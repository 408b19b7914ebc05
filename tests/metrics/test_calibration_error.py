import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skcalib.metrics import (
    expected_calibration_error,
    maximum_calibration_error,
    reliability_curve,
)


def naive_error(confidence, correct, weight, edges, norm):
    """Loop over bins and rows, as the definition reads."""
    total, squares, gaps = 0.0, 0.0, []
    for b in range(len(edges) - 1):
        rows = [
            i
            for i, c in enumerate(confidence)
            if (edges[b] < c or b == 0) and (c <= edges[b + 1] or b == len(edges) - 2)
        ]
        mass = sum(weight[i] for i in rows)
        if mass == 0:
            continue
        gap = sum(weight[i] * (confidence[i] - correct[i]) for i in rows) / mass
        total += mass / sum(weight) * abs(gap)
        squares += mass / sum(weight) * gap**2
        gaps.append(abs(gap))
    return {"l1": total, "l2": squares**0.5, "max": max(gaps)}[norm]


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), n_bins=st.integers(1, 20), n_classes=st.integers(2, 6))
def test_naive_loop(norm, weighted, seed, n_bins, n_classes):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), size=40)
    y = rng.integers(n_classes, size=40)
    weight = rng.uniform(0, 2, 40) if weighted else np.ones(40)
    options = {"n_bins": n_bins, "norm": norm, "labels": range(n_classes)}
    if weighted:
        options["sample_weight"] = weight
    edges = [b / n_bins for b in range(n_bins + 1)]
    confidence, correct = proba.max(axis=1), proba.argmax(axis=1) == y
    expected = naive_error(confidence, correct, weight, edges, norm)
    assert expected_calibration_error(y, proba, **options) == pytest.approx(expected, abs=1e-12)
    options["labels"] = [0, 1]
    expected = naive_error(proba[:, 0], y == 0, weight, edges, norm)
    found = expected_calibration_error((y == 0).astype(int), proba[:, 0], **options)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), n_bins=st.integers(1, 12))
def test_naive_loop_over_bins_of_equal_mass(seed, n_bins):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 9, size=36) / 8
    y = (rng.random(36) < 0.5).astype(int)
    ordered = sorted(p)
    edges = {ordered[-(-36 * j // n_bins) - 1] for j in range(1, n_bins)}
    edges = [0.0, *sorted(edges - {1.0}), 1.0]
    for norm in ("l1", "l2", "max"):
        found = expected_calibration_error(y, p, n_bins=n_bins, strategy="quantile", norm=norm)
        assert found == pytest.approx(naive_error(p, y, np.ones(36), edges, norm), abs=1e-12)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_perfect_calibration_is_zero(strategy, norm):
    # A fraction p of the rows with probability p is positive.
    p = np.repeat([0.0, 0.25, 0.5, 0.75, 1.0], 8)
    y = np.concatenate([np.arange(8) < 8 * level for level in (0, 0.25, 0.5, 0.75, 1)])
    assert expected_calibration_error(y, p, strategy=strategy, norm=norm) == 0


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_constant_confidence(strategy):
    # Peers that split ties by row order report .158 for the first of these.
    y = np.arange(1000) < 900
    p = np.full(1000, 0.9)
    assert expected_calibration_error(y, p, strategy=strategy) == pytest.approx(0, abs=1e-12)
    assert expected_calibration_error(y, p - 0.2, strategy=strategy) == pytest.approx(0.2)


def test_certain_predictions_share_the_last_bin():
    # .97 and 1 are in one bin: the gaps .97 - 0 and 1 - 1 meet before the absolute value.
    proba = [[0.97, 0.03], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]
    error = expected_calibration_error([1, 0, 0, 0], proba, n_bins=10)
    assert error == pytest.approx((3.97 - 3) / 4)
    assert reliability_curve([1, 0, 0, 0], proba, n_bins=10).bin_weight.tolist() == [0] * 9 + [4]


def test_confidence_on_an_edge_belongs_to_the_bin_below():
    curve = reliability_curve([0, 1, 1], [0.0, 0.5, 1.0], n_bins=2)
    assert curve.bin_weight.tolist() == [2, 1]


def test_one_bin_is_the_gap_of_the_means():
    rng = np.random.default_rng(0)
    p, y = rng.random(100), rng.integers(2, size=100)
    assert expected_calibration_error(y, p, n_bins=1) == pytest.approx(abs(p.mean() - y.mean()))


def test_two_columns_are_not_the_positive_class():
    # Both rows are positive: gaps .7 and .3 of the positive class. As top labels they have one
    # confidence of .7, of which one is right.
    y, p = [1, 1], np.array([0.3, 0.7])
    assert expected_calibration_error(y, p) == pytest.approx(0.5)
    assert expected_calibration_error(y, np.column_stack([1 - p, p])) == pytest.approx(0.2)


def test_maximum_is_the_max_norm():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(3), size=80), rng.integers(3, size=80)
    for options in ({}, {"n_bins": 4}, {"strategy": "quantile"}):
        expected = expected_calibration_error(y, proba, norm="max", **options)
        assert maximum_calibration_error(y, proba, **options) == expected


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_the_curve_adds_up_to_the_error(strategy):
    rng = np.random.default_rng(1)
    proba, y = rng.dirichlet(np.ones(4), size=70), rng.integers(4, size=70)
    weight = rng.uniform(size=70)
    options = {"strategy": strategy, "n_bins": 6, "sample_weight": weight}
    curve = reliability_curve(y, proba, **options)
    assert len(curve.edges) == len(curve.prob_true) + 1
    fraction = curve.bin_weight / weight.sum()
    error = np.nansum(fraction * np.abs(curve.prob_true - curve.prob_pred))
    assert expected_calibration_error(y, proba, **options) == pytest.approx(error)


def test_empty_bins_are_nan_in_the_curve():
    curve = reliability_curve([1, 1], [0.9, 0.8], n_bins=4)
    np.testing.assert_array_equal(curve.prob_true, [np.nan] * 3 + [1])
    np.testing.assert_allclose(curve.prob_pred, [np.nan] * 3 + [0.85])


@pytest.mark.slow
def test_no_copy_of_the_input():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(100), size=100_000).astype(np.float32)
    y = rng.integers(100, size=len(proba))
    tracemalloc.start()
    expected_calibration_error(y, proba)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6 < proba.nbytes / 9


@pytest.mark.parametrize(
    "options", [{"strategy": "equal"}, {"norm": "l3"}, {"norm": 2}, {"strategy": None}]
)
def test_bad_options(options):
    with pytest.raises(ValueError, match=f"'{next(iter(options))}' parameter"):
        expected_calibration_error([0, 1], [0.5, 0.5], **options)


def test_large_unsigned_labels_are_told_apart():
    # As floats, both are 2**60.
    y = np.array([2**60, 2**60 + 1], dtype=np.uint64)
    proba = np.array([[0.2, 0.8], [0.6, 0.4]])
    found = expected_calibration_error(y, proba, labels=[2**60 + 1, 2**60])
    assert found == pytest.approx(expected_calibration_error([1, 0], proba))


def test_options_are_checked_although_equal_ones_have_passed():
    y, p = [0, 1, 1], [0.2, 0.7, 0.9]
    for wrong in (1.5, 0):  # scikit-learn takes True for 1
        expected_calibration_error(y, p, n_bins=1)
        with pytest.raises(ValueError, match="'n_bins' parameter"):
            expected_calibration_error(y, p, n_bins=wrong)
