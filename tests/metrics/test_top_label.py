import numpy as np
import pytest

from skcalib.metrics._top_label import iter_top_label, top_label
from skcalib.utils import _blocks
from skcalib.utils._validation import check_predictions


@pytest.mark.parametrize("n_classes", [2, 10, 32, 33, 300])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("grid", [1, 4, 1024])
def test_top_label(monkeypatch, n_classes, dtype, grid):
    monkeypatch.setattr(_blocks, "BLOCK_SIZE", 1000)
    rng = np.random.default_rng(n_classes)
    proba = rng.multinomial(grid, rng.dirichlet(np.ones(n_classes)), size=90) / grid
    proba = proba.astype(dtype)
    y = rng.integers(n_classes, size=90)
    confidence, correct = top_label(check_predictions(y, proba))
    np.testing.assert_array_equal(confidence, proba.max(axis=1))
    np.testing.assert_array_equal(correct, proba.argmax(axis=1) == y)


def test_the_first_of_equals_is_the_prediction():
    proba = [[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [0.1, 0.6, 0.3]]
    _, correct = top_label(check_predictions([0, 1, 1], proba))
    assert correct.tolist() == [True, False, True]


def test_positive_class():
    confidence, correct = top_label(
        check_predictions(["n", "y", "y"], [0.9, 0.2, 1.0], pos_label="y")
    )
    assert confidence.tolist() == [0.9, 0.2, 1.0]
    assert correct.tolist() == [False, True, True]


def test_blocks_are_checked():
    predictions = check_predictions([0, 1], [[0.5, 0.5], [0.5, 0.7]], defer_values=True)
    with pytest.raises(ValueError, match="must sum to 1"):
        list(iter_top_label(predictions))
