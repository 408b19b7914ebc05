import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, train_test_split

from skcalib.datasets import flip_labels

y = np.array(list("abcd"))[np.arange(6000) % 4]


@pytest.mark.parametrize("fraction", [0.0, 0.25, 1.0])
def test_flips_exactly_the_fraction_and_says_where(fraction):
    noisy, flipped = flip_labels(y, fraction=fraction, random_state=0)
    np.testing.assert_array_equal(noisy != y, flipped)
    assert flipped.sum() == round(fraction * len(y))


def test_the_count_is_rounded_to_the_nearest():
    for fraction, count in [(0.049, 0), (0.05, 1), (0.149, 1), (0.151, 2), (0.96, 10)]:
        _, flipped = flip_labels(y[:10], fraction=fraction, random_state=0)
        assert flipped.sum() == count


def test_other_classes_are_equally_likely():
    noisy, _ = flip_labels(y, fraction=1.0, random_state=0)
    counts = np.array([np.sum(noisy[y == "a"] == other) for other in "bcd"])
    assert chisquare(counts).pvalue > 1e-3


def test_input_is_left_alone_and_seed_repeats():
    before = y.copy()
    first, again = (flip_labels(y, fraction=0.3, random_state=1)[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(y, before)


SPLITTERS = {
    "shuffled folds": lambda seed: KFold(4, shuffle=True, random_state=seed),
    "random splits": lambda seed: ShuffleSplit(1, test_size=0.25, random_state=seed),
    "stratified": lambda seed: StratifiedKFold(4, shuffle=True, random_state=seed),
}


@pytest.mark.parametrize("seed", [0, 1, 2, 42, 12345])
@pytest.mark.parametrize("splitter", SPLITTERS)
def test_a_split_by_an_equal_seed_has_its_part_of_the_flipped_labels(splitter, seed):
    _, flipped = flip_labels(y, fraction=0.2, random_state=seed)
    for train, test in SPLITTERS[splitter](seed).split(y, y):
        # Five standard deviations of a draw without replacement.
        assert abs(flipped[test].mean() - 0.2) < 5 * np.sqrt(0.2 * 0.8 / len(test) * 0.75)
        assert abs(flipped[train].mean() - 0.2) < 5 * np.sqrt(0.2 * 0.8 / len(train) * 0.25)


def test_train_test_split_of_an_equal_seed():
    noisy, flipped = flip_labels(y[:1000], fraction=0.2, random_state=0)
    *_, in_train, in_test = train_test_split(noisy, flipped, test_size=0.2, random_state=0)
    assert 0.1 < in_train.mean() < 0.3
    assert 0.1 < in_test.mean() < 0.3


def test_seeds_differ_and_a_generator_goes_on():
    first, second = (flip_labels(y, fraction=0.3, random_state=seed)[1] for seed in (1, 2))
    assert 0.2 < np.mean(first == second) < 0.8
    rng = np.random.RandomState(0)
    assert (
        flip_labels(y, fraction=0.3, random_state=rng)[1]
        != flip_labels(y, fraction=0.3, random_state=rng)[1]
    ).any()
    np.testing.assert_array_equal(flip_labels(y, fraction=0.3, random_state=np.int32(1))[1], first)


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(list("abca") * 5, dtype=object),
        pd.Series(list("abca") * 5, dtype="category"),
        pd.Series([0, 1, 2, 1] * 5, dtype="Int64"),
        pd.Series([0.0, 1.0, 2.0, 1.0] * 5),
        pd.Series([True, False] * 10),
    ],
    ids=lambda s: str(s.dtype),
)
def test_a_series_keeps_index_name_and_dtype(values):
    values.index, values.name = np.arange(20)[::-1], "label"
    before = values.copy()
    noisy, flipped = flip_labels(values, fraction=0.5, random_state=0)
    pd.testing.assert_series_equal(values, before)
    pd.testing.assert_index_equal(noisy.index, values.index)
    assert noisy.name == "label"
    assert noisy.dtype == values.dtype
    np.testing.assert_array_equal(np.asarray(noisy != values), flipped)
    plain, _ = flip_labels(np.array(values.tolist()), fraction=0.5, random_state=0)
    assert noisy.tolist() == plain.tolist()


@pytest.mark.parametrize(
    ("labels", "fraction", "message"),
    [
        (["a", "a"], 0.5, "y must hold at least two classes, got one class: 'a'"),
        (["a", "b"], 1.5, "'fraction' parameter"),
        ([["a", "b"], ["a", "b"]], 0.5, "1d array"),
        ([0.0, 1.0, np.nan, 1.0], 1.0, "y contains NaN"),
        ([0.0, 1.0, np.inf, 1.0], 1.0, "y contains infinity"),
        ([0.5, 1.0, 0.0], 1.0, "continuous"),
        ([0, "a", 1], 1.0, "y must hold labels of one type, got int, str"),
        (np.ma.array([0, 1, 1], mask=[0, 0, 1]), 1.0, "y must not be masked"),
    ],
)
def test_bad_input(labels, fraction, message):
    with pytest.raises(ValueError, match=message):
        flip_labels(labels, fraction=fraction)
