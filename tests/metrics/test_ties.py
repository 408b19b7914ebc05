"""Groups of tied samples against a dictionary."""

from collections import defaultdict

import numpy as np
import pytest

from skcalib.metrics._ties import tie_groups


@pytest.mark.parametrize("fraction", [0.0, 0.2, 0.8, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_groups_against_a_dictionary(fraction, weighted, dtype):
    rng = np.random.default_rng(0)
    score = rng.integers(-9, 9, 300).astype(dtype)
    positive = rng.random(300) < fraction
    weight = rng.integers(0, 3, 300).astype(float) if weighted else None
    if weighted:
        weight[score == 3] = 0  # a score without weight is no group
    expected = defaultdict(lambda: [0.0, 0.0])
    for s, h, w in zip(score.tolist(), positive, np.ones(300) if weight is None else weight):
        if w:
            expected[s][0] += w
            expected[s][1] += w * h
    groups = tie_groups(score, positive, weight)
    assert groups.score.tolist() == sorted(expected, reverse=True)
    assert groups.weight.tolist() == [expected[s][0] for s in groups.score.tolist()]
    assert groups.positive.tolist() == [expected[s][1] for s in groups.score.tolist()]


def test_zeros_of_both_signs_and_infinities():
    groups = tie_groups(
        np.array([0.0, -0.0, np.inf, -np.inf]), np.array([True, False, True, False]), None
    )
    assert groups.score.tolist() == [np.inf, 0, -np.inf]
    assert groups.positive.tolist() == [1, 1, 0]
