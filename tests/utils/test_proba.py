import tracemalloc

import numpy as np
import pytest
from scipy.stats import binomtest

from skcalib.metrics import expected_calibration_error, predictive_entropy
from skcalib.metrics._per_sample import check_logits
from skcalib.utils import _numeric
from skcalib.utils._numeric import compute_binomial_interval, iter_blocks
from skcalib.utils._proba import (
    TOLERANCE,
    as_proba,
    check_proba_matrix,
    check_values,
    iter_proba_blocks,
)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_returned_as_they_are(dtype, order):
    proba = np.full((7, 4), 0.25, dtype=dtype, order=order)
    assert check_proba_matrix(proba) is proba
    assert check_logits(proba) is proba
    assert as_proba(proba[:, 0]).base is proba


def test_integers_and_booleans_become_float64():
    assert check_proba_matrix(np.eye(3, dtype=int)).dtype == np.float64
    assert check_proba_matrix(np.eye(3, dtype=bool)).dtype == np.float64


def test_frames_and_tensors():
    pd = pytest.importorskip("pandas")
    torch = pytest.importorskip("torch")
    proba = np.array([[0.25, 0.75], [1.0, 0.0]], dtype=np.float32)
    for other in (pd.DataFrame(proba), pd.DataFrame(proba, dtype="Float32"), torch.tensor(proba)):
        np.testing.assert_array_equal(check_proba_matrix(other), proba)
    assert np.shares_memory(check_proba_matrix(tensor := torch.tensor(proba)), tensor.numpy())
    for other in (torch.tensor(proba, requires_grad=True), torch.tensor(proba).bfloat16()):
        np.testing.assert_array_equal(check_proba_matrix(other), proba)


@pytest.mark.parametrize("shape", [(9,), (9, 1)])
def test_a_matrix_of_one_column_gets_the_way_to_two(shape):
    with pytest.raises(ValueError, match=r"X must have a column for .*np.column_stack\(\[1 - p"):
        check_proba_matrix(np.full(shape, 0.5), name="X")


@pytest.mark.parametrize("shape", [(1000,), (1000, 3), (999, 1001)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_blocks_cover_all_rows_once(monkeypatch, shape, dtype):
    monkeypatch.setattr(_numeric, "BLOCK_SIZE", 1001)
    array = np.random.default_rng(0).random(shape).astype(dtype)
    blocks = list(iter_blocks(array))
    assert [rows.start for rows, _ in blocks[1:]] == [rows.stop for rows, _ in blocks[:-1]]
    np.testing.assert_array_equal(np.concatenate([block for _, block in blocks]), array)
    for _, block in blocks:
        assert block.size <= 1001
        assert block.flags.c_contiguous
        assert block.dtype == (np.float32 if dtype == np.float16 else dtype)


@pytest.mark.parametrize("row", [0, 99, 100, 499])
@pytest.mark.parametrize("value", [np.nan, -2e-3, 1 + 2e-3, np.inf, -np.inf])
def test_a_single_bad_value_is_found_and_named(monkeypatch, row, value):
    monkeypatch.setattr(_numeric, "BLOCK_SIZE", 300)
    proba = np.full((500, 3), 1 / 3)
    proba[row, 1] = value
    with pytest.raises(ValueError, match=rf"y_proba must .*in row {row}, column 1\."):
        check_proba_matrix(proba)
    with pytest.raises(ValueError, match=rf"p must .*in row {row}\."):
        check_values(proba[:, 1], name="p")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("excess", [-0.0011, 0.0011])
def test_row_sums(dtype, excess):
    proba = np.full((50, 4), 0.25, dtype=dtype)
    proba[17, 2] += excess
    with pytest.raises(ValueError, match=r"rows of y_proba must sum to 1, got .* in row 17"):
        check_proba_matrix(proba)
    proba[17, 2] = 0.25 + 0.9 * excess
    check_proba_matrix(proba)


def test_the_fault_is_named_and_not_what_is_within_the_tolerance():
    for dtype in (np.float32, np.float64):
        for rounding in (0.000009, 0.00001):
            proba = np.array([[1 + rounding, -rounding], [0.5, 0.6]], dtype=dtype)
            with pytest.raises(ValueError, match=r"must sum to 1, got a sum of 1.1 in row 1\.$"):
                check_proba_matrix(proba)


def test_percentages_and_sums_near_1_are_named_with_what_to_do():
    percent = r" If these are percentages, divide them by 100\.$"
    with pytest.raises(ValueError, match=r"got 85.0 in row 0\." + percent):
        expected_calibration_error([1, 0, 1], [85.0, 20.0, 99.5])
    with pytest.raises(ValueError, match=r"got 85.0 in row 0, column 0\." + percent):
        expected_calibration_error([1, 0], [[85.0, 15.0], [0.5, 99.0]])
    for other in ([1.5, 0.2], [700.0, 3.0], [-4.0, 3.0]):  # no percentages
        with pytest.raises(ValueError, match=r"in row 0\.$"):
            expected_calibration_error([1, 0], other)
    with pytest.raises(ValueError, match=r"in row 0, column 0\.$"):
        expected_calibration_error([1, 0], [[4.0, 0.5], [0.5, 3.0]])
    proba = (
        np.random.default_rng(0).dirichlet([1, 1, 1], 50)
        * np.linspace(0.9985, 0.9995, 50)[:, None]
    )
    with pytest.raises(
        ValueError, match=r"0.9985 in row 0\. If .* divide every row by its sum\.$"
    ):
        check_proba_matrix(proba)
    check_proba_matrix(proba / proba.sum(axis=1, keepdims=True))


def test_value_above_one_hidden_by_a_negative_one():
    # The rows sum to 1, the values are outside.
    with pytest.raises(ValueError, match=r"got 1.0015 in row 0"):
        check_proba_matrix([[1.0015, -0.0005, -0.0009], [0.5, 0.5, 0]])
    with pytest.raises(ValueError, match=r"got -0.0015 in row 1"):
        check_proba_matrix([[0.5, 0.5, 0], [1.0005, -0.0015, 0.001]])


def test_an_entry_may_be_off_as_much_as_the_sum_of_its_row():
    y_proba = np.array([[1.0009, 0.0], [-0.0009, 1.0], [0.5, 0.5009]])
    check_proba_matrix(y_proba)
    assert np.isfinite(predictive_entropy(y_proba)).all()
    assert expected_calibration_error([0, 1, 1], y_proba) == pytest.approx(0.4991 / 3, abs=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tolerance_of_values_is_kept_in_the_dtype(dtype):
    check_proba_matrix(np.array([[1.001, -0.0005], [-0.0009, 1]], dtype=dtype))
    check_values(np.array([1.001, -0.001], dtype=dtype))
    with pytest.raises(ValueError, match=r"must hold probabilities in \[0, 1\]"):
        check_values(np.array([1.00101], dtype=dtype))


def test_values_are_checked_as_the_blocks_are_read(monkeypatch):
    monkeypatch.setattr(_numeric, "BLOCK_SIZE", 4)
    proba = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.6]])
    blocks = iter_proba_blocks(proba)
    next(blocks)
    with pytest.raises(ValueError, match="row 2"):
        next(blocks)


def test_no_copy_of_the_input():
    proba = np.full((20_000, 500), 1 / 500, dtype=np.float32)
    tracemalloc.start()
    check_proba_matrix(proba)
    check_logits(proba)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e6 < proba.nbytes / 10


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_logits_are_finite(bad):
    logits = np.zeros((5, 3))
    logits[3, 1] = bad
    with pytest.raises(ValueError, match=f"logits must be finite, got {bad} in row 3"):
        check_logits(logits)
    with pytest.raises(ValueError, match=f"logits must be finite, got {bad} in row 3"):
        check_logits(logits[:, 1])


@pytest.mark.parametrize("shape", [(), (2, 1), (0, 3), (2, 2, 2)])
def test_shapes_of_logits(shape):
    with pytest.raises(ValueError, match=r"logits must have .*got shape"):
        check_logits(np.zeros(shape))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_binomial_interval_against_scipy(level):
    for count in (1, 7, 200):
        for successes in {0, 1, count // 2, count}:
            low, high = compute_binomial_interval(
                np.array([successes / count]), np.array([float(count)]), level
            )
            expected = binomtest(successes, count).proportion_ci(level, method="exact")
            assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_binomial_interval_holds_the_fraction():
    counts = np.arange(1.0, 2000.0)
    for level in (0.5, 0.9, 0.95, 0.999):
        for fraction in (0.0, 1.0):
            low, high = compute_binomial_interval(np.full_like(counts, fraction), counts, level)
            assert ((low >= 0) & (low <= fraction) & (fraction <= high) & (high <= 1)).all()


def test_binomial_interval_of_no_trials_is_nan():
    low, high = compute_binomial_interval(np.array([np.nan]), np.array([0.0]), 0.9)
    assert np.isnan([low[0], high[0]]).all()


@pytest.mark.parametrize("level", [0, 1, 95])
def test_confidence_level_is_a_probability(level):
    with pytest.raises(ValueError, match=r"confidence_level must be in \(0, 1\)"):
        compute_binomial_interval(np.array([0.5]), np.array([2.0]), level)


def test_row_sums_of_half_precision_follow_the_format():
    torch = pytest.importorskip("torch")
    logits = 3 * torch.randn(500, 300, generator=torch.Generator().manual_seed(0))
    rounded = torch.softmax(logits, dim=1).to(torch.bfloat16)
    assert (rounded.double().sum(dim=1) - 1).abs().max() > TOLERANCE
    assert check_proba_matrix(rounded).dtype == np.float32
    check_proba_matrix(torch.softmax(logits, dim=1).half())
    # The same error in float32 is none of rounding.
    off = np.full((2, 4), 0.25, dtype=np.float32) * np.float32(1.003)
    with pytest.raises(ValueError, match="must sum to 1"):
        check_proba_matrix(off)
    for dtype in (torch.bfloat16, torch.float16):
        step = torch.finfo(dtype).eps / 4  # the spacing at 0.25
        check_proba_matrix(torch.full((2, 4), 0.25 + 2 * step, dtype=dtype))
        with pytest.raises(ValueError, match="must sum to 1"):
            check_proba_matrix(torch.full((2, 4), 0.25 + 3 * step, dtype=dtype))


def test_rounded_rows():
    check_proba_matrix([[0.333, 0.333, 0.333], [0.2, 0.3, 0.501]])  # off by as much as is allowed
    for decimals in (2, 3):
        proba = np.random.default_rng(0).dirichlet(np.ones(9), 50).round(decimals)
        with pytest.raises(
            ValueError, match=r"If rounding did that, divide every row by its sum\."
        ):
            check_proba_matrix(proba)
        check_proba_matrix(proba / proba.sum(axis=1, keepdims=True))
    with pytest.raises(ValueError, match=r"must sum to 1, got a sum of 1.2 in row 1\.$"):
        check_proba_matrix([[0.25, 0.25, 0.5], [0.3, 0.3, 0.6]])
