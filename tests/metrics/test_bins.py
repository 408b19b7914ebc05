import numpy as np
import pytest

from skcalib.metrics._bins import binned, curve_of, gap_norm, sums_between
from skcalib.utils._validation import check_predictions


def test_norms():
    # Gaps .1 and -.3 of bins that hold 3 and 1 of 4 rows; the empty bin counts nothing.
    sums = np.array([[3.0, 0.0, 1.0], [0.9, 0.0, 0.2], [0.6, 0.0, 0.5]])
    assert gap_norm(sums, "l1") == pytest.approx(0.75 * 0.1 + 0.25 * 0.3)
    assert gap_norm(sums, "l2") == pytest.approx(np.sqrt(0.75 * 0.01 + 0.25 * 0.09))
    assert gap_norm(sums, "max") == pytest.approx(0.3)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_sums_belong_to_the_edges(strategy):
    rng = np.random.default_rng(0)
    predictions = check_predictions(
        rng.integers(3, size=50), rng.dirichlet(np.ones(3), 50), sample_weight=rng.uniform(size=50)
    )
    bins = binned(predictions, n_bins=4, strategy=strategy)
    assert bins.sums.shape == (3, len(bins.edges) - 1)
    np.testing.assert_allclose(sums_between(predictions, bins.edges), bins.sums, rtol=1e-13)
    weight, confidence, correct = bins.sums
    curve = curve_of(bins)
    np.testing.assert_allclose(curve.prob_true * weight, np.where(weight > 0, correct, np.nan))
    np.testing.assert_allclose(curve.prob_pred * weight, np.where(weight > 0, confidence, np.nan))
    assert curve.bin_weight is not weight
