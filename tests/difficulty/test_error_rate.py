"""error_rate_by_difficulty against a count, and its laws."""

import re

import numpy as np
import pytest

from skcalib.difficulty import error_rate_by_difficulty


def test_counts_without_ties():
    rng = np.random.default_rng(0)
    difficulty = rng.permutation(60) / 7
    wrong = rng.uniform(size=60) < difficulty / difficulty.max()
    rates = error_rate_by_difficulty(np.zeros(60, int), wrong.astype(int), difficulty, n_groups=6)
    by_hand = [wrong[order].mean() for order in np.split(np.argsort(difficulty), 6)]
    np.testing.assert_allclose(rates, by_hand, atol=1e-12)


def test_ties_take_the_mean_over_their_orders():
    difficulty = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 2.0])
    wrong = np.array([0, 1, 0, 0, 1, 1])
    rates = []
    rng = np.random.default_rng(1)
    for _ in range(4000):
        order = np.lexsort([rng.uniform(size=6), difficulty])
        rates.append(wrong[order].reshape(3, 2).mean(axis=1))
    result = error_rate_by_difficulty(np.zeros(6, int), wrong, difficulty, n_groups=3)
    np.testing.assert_allclose(result, [0.25, 0.5, 0.75], atol=1e-12)
    np.testing.assert_allclose(result, np.mean(rates, axis=0), atol=0.02)


def test_constant_difficulty_gives_the_error_rate_everywhere():
    rates = error_rate_by_difficulty([0, 1, 0, 1, 1], [0, 0, 0, 1, 0], np.full(5, 3.0), n_groups=4)
    np.testing.assert_allclose(rates, 0.4)


def test_order_of_rows_and_names_of_labels_do_not_matter():
    rng = np.random.default_rng(2)
    y_true, y_pred = rng.integers(0, 3, (2, 50))
    difficulty = rng.integers(0, 8, 50)
    rates = error_rate_by_difficulty(y_true, y_pred, difficulty)
    order = rng.permutation(50)
    names = np.array(["a", "b", "c"])
    other = error_rate_by_difficulty(names[y_true][order], names[y_pred][order], difficulty[order])
    np.testing.assert_allclose(rates, other, atol=1e-12)
    assert rates.shape == (10,)


def test_weight_is_repetition():
    rng = np.random.default_rng(3)
    y_true, y_pred = rng.integers(0, 2, (2, 40))
    difficulty, count = rng.normal(size=40), rng.integers(0, 4, 40)
    weighted = error_rate_by_difficulty(y_true, y_pred, difficulty, sample_weight=count)
    repeated = error_rate_by_difficulty(
        *(np.repeat(a, count) for a in (y_true, y_pred, difficulty))
    )
    np.testing.assert_allclose(weighted, repeated, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"difficulty": [1.0, np.nan]}, "difficulty must be finite"),
        ({"y_pred": [0]}, "y_pred must have shape (2,), got length 1"),
        ({"y_pred": ["a", "b"]}, "y_pred must hold labels of the same type"),
        ({"n_groups": 3}, "n_groups must be at most the number of samples, 2, got 3"),
        ({"n_groups": 0}, "'n_groups' parameter"),
        ({"y_true": [0.5, 1.0]}, "y_true must hold class labels"),
        ({"sample_weight": [-1.0, 1.0]}, "sample_weight must be finite and not negative"),
    ],
)
def test_bad_input(arguments, message):
    defaults = {"y_true": [0, 1], "y_pred": [0, 1], "difficulty": [0.0, 1.0], "n_groups": 2}
    with pytest.raises(ValueError, match=re.escape(message)):
        error_rate_by_difficulty(**{**defaults, **arguments})
