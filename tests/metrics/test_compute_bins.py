import numpy as np
import pytest

from skcalib.metrics._calibration_error import (
    compute_bins,
    compute_curve,
    compute_residual_norm,
    compute_top_label,
    iter_top_label,
    sum_bins,
)
from skcalib.utils import _numeric
from skcalib.utils._proba import check_predictions


def test_norms():
    # Gaps .1 and -.3 of bins that hold 3 and 1 of 4 rows; the empty bin counts nothing.
    sums = np.array([[3.0, 0.0, 1.0], [0.9, 0.0, 0.2], [0.6, 0.0, 0.5]])
    assert compute_residual_norm(sums, "l1") == pytest.approx(0.75 * 0.1 + 0.25 * 0.3)
    assert compute_residual_norm(sums, "l2") == pytest.approx(np.sqrt(0.75 * 0.01 + 0.25 * 0.09))
    assert compute_residual_norm(sums, "max") == pytest.approx(0.3)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_sums_belong_to_the_edges(strategy):
    rng = np.random.default_rng(0)
    predictions = check_predictions(
        rng.integers(3, size=50), rng.dirichlet(np.ones(3), 50), sample_weight=rng.uniform(size=50)
    )
    bins = compute_bins(predictions, n_bins=4, strategy=strategy)
    assert bins.sums.shape == (3, len(bins.edges) - 1)
    np.testing.assert_allclose(sum_bins(predictions, bins.edges), bins.sums, rtol=1e-13)
    weight, confidence, correct = bins.sums
    curve = compute_curve(bins)
    np.testing.assert_allclose(curve.prob_true * weight, np.where(weight > 0, correct, np.nan))
    np.testing.assert_allclose(curve.prob_pred * weight, np.where(weight > 0, confidence, np.nan))
    assert curve.bin_weight is not weight


@pytest.mark.parametrize("n_classes", [2, 10, 32, 33, 300])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("grid", [1, 4, 1024])
def test_top_label(monkeypatch, n_classes, dtype, grid):
    monkeypatch.setattr(_numeric, "BLOCK_SIZE", 1000)
    rng = np.random.default_rng(n_classes)
    proba = rng.multinomial(grid, rng.dirichlet(np.ones(n_classes)), size=90) / grid
    proba = proba.astype(dtype)
    y = (proba.cumsum(axis=1) < rng.random((90, 1))).sum(axis=1).clip(0, n_classes - 1)
    confidence, correct = compute_top_label(check_predictions(y, proba))
    np.testing.assert_array_equal(confidence, proba.max(axis=1))
    np.testing.assert_array_equal(correct, proba.argmax(axis=1) == y)


def test_the_first_of_equals_is_the_prediction():
    proba = [[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [0.1, 0.6, 0.3]]
    _, correct = compute_top_label(check_predictions([0, 1, 1], proba))
    assert correct.tolist() == [True, False, True]


def test_positive_class():
    confidence, correct = compute_top_label(
        check_predictions(["n", "y", "y"], [0.9, 0.2, 1.0], pos_label="y")
    )
    assert confidence.tolist() == [0.9, 0.2, 1.0]
    assert correct.tolist() == [False, True, True]


def test_blocks_are_checked():
    predictions = check_predictions([0, 1], [[0.5, 0.5], [0.5, 0.7]], defer_values=True)
    with pytest.raises(ValueError, match="must sum to 1"):
        list(iter_top_label(predictions))
