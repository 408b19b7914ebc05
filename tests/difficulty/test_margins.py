import numpy as np
import pytest

from skcalib.difficulty.records import output_margin


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_equals_sorting_row_by_row(dtype):
    logits = np.random.default_rng(0).normal(scale=50, size=(40, 6)).astype(dtype)
    expected = [sorted(map(float, row))[-1] - sorted(map(float, row))[-2] for row in logits]
    np.testing.assert_allclose(output_margin(logits), expected, rtol=1e-12)


def test_shift_of_all_logits_changes_nothing():
    logits = np.random.default_rng(1).normal(size=(10, 3))
    np.testing.assert_allclose(output_margin(logits + 4), output_margin(logits), rtol=1e-9)


@pytest.mark.parametrize(
    ("logits", "error", "message"),
    [
        ([1.0, 2.0], ValueError, "logits must be 2-dimensional"),
        ([[1.0], [2.0]], ValueError, "logits must have at least 2 columns, got shape"),
        ([[np.inf, 0.0]], ValueError, "logits must be finite"),
        ([["a", "b"]], TypeError, "logits must hold real numbers"),
    ],
)
def test_bad_input(logits, error, message):
    with pytest.raises(error, match=message):
        output_margin(logits)
