import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skcalib.difficulty.training_dynamics import prediction_depth


def loop_depth(probes, final):
    depth = []
    for row, label in zip(probes, final):
        settled = [layer for layer in range(len(row)) if all(p == label for p in row[layer:])]
        depth.append(min(settled) if settled else np.nan)
    return np.array(depth, dtype=float)


@pytest.mark.slow
@given(st.integers(1, 8), st.integers(1, 6), st.integers(0, 2**16))
@settings(max_examples=60)
def test_equals_trying_every_layer(n_samples, n_layers, seed):
    rng = np.random.default_rng(seed)
    probes, final = rng.integers(0, 2, (n_samples, n_layers)), rng.integers(0, 2, n_samples)
    expected = loop_depth(probes, final)
    np.testing.assert_array_equal(prediction_depth(probes, final), expected)
    names = np.array(["no", "yes"])
    np.testing.assert_array_equal(prediction_depth(names[probes], names[final]), expected)


def test_last_probe_disagreeing_has_no_depth():
    np.testing.assert_array_equal(prediction_depth([[1, 1, 0], [0, 0, 1]], [1, 1]), [np.nan, 2])


@pytest.mark.parametrize(
    ("probes", "final", "message"),
    [
        ([0, 1], [0, 1], "must be 2-dimensional"),
        (np.zeros((0, 3), dtype=int), [], "2-dimensional and not empty"),
        ([[0, 1]], [0, 1], r"final_predictions must have shape \(1,\), got length 2"),
        ([[0, 1]], ["a"], "final_predictions must hold labels of the same type as the others"),
        ([[0.5, 1]], [0], r"probe_predictions\[0\] must hold class labels"),
    ],
)
def test_bad_input(probes, final, message):
    with pytest.raises(ValueError, match=message):
        prediction_depth(probes, final)
