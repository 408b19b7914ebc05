import numpy as np
import pytest
from scipy.stats import chisquare

from skcalib.datasets import flip_labels

y = np.array(list("abcd"))[np.arange(6000) % 4]


@pytest.mark.parametrize("fraction", [0.0, 0.25, 1.0])
def test_flips_exactly_the_share_and_says_where(fraction):
    noisy, flipped = flip_labels(y, fraction=fraction, random_state=0)
    np.testing.assert_array_equal(noisy != y, flipped)
    assert flipped.sum() == round(fraction * len(y))


def test_other_classes_are_equally_likely():
    noisy, _ = flip_labels(y, fraction=1.0, random_state=0)
    counts = np.array([np.sum(noisy[y == "a"] == other) for other in "bcd"])
    assert chisquare(counts).pvalue > 1e-3


def test_input_is_left_alone_and_seed_repeats():
    before = y.copy()
    first, again = (flip_labels(y, fraction=0.3, random_state=1)[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(y, before)


@pytest.mark.parametrize(
    ("labels", "fraction", "message"),
    [
        (["a", "a"], 0.5, "y must hold at least two classes, got one class: 'a'"),
        (["a", "b"], 1.5, "'fraction' parameter"),
        ([["a", "b"], ["a", "b"]], 0.5, "1d array"),
    ],
)
def test_bad_input(labels, fraction, message):
    with pytest.raises(ValueError, match=message):
        flip_labels(labels, fraction=fraction)
