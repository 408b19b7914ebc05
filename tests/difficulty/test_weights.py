"""difficulty_weights against Eq. 10 in arbitrary precision."""

import mpmath
import numpy as np
import pytest

from skcalib.difficulty import difficulty_weights
from skcalib.utils import SkcalibWarning


def _exact(difficulty, temperature, c):
    with mpmath.workdps(60):
        powers = [mpmath.exp(mpmath.mpf(float(d)) / mpmath.mpf(temperature)) for d in difficulty]
        largest = max(powers)
        return np.array([float(p / (largest + mpmath.mpf(c))) for p in powers])


@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize("temperature", [0.05, 0.7, 3.0])
@pytest.mark.parametrize(
    "difficulty",
    [
        [0.0, 0.25, 0.5, 1.0],
        [-124.0, 3.0, 11.0, 488.0],
        [-700.0, -650.0, -649.9],
        [-3.0, -2.0],
        [7e4, 7e4 - 1e-3, 7e4 - 2.0],
        [1e5 * 0.7, 0.0, -1e5],
        [0.3],
    ],
)
def test_equation_10(difficulty, temperature):
    weights = difficulty_weights(difficulty, temperature=temperature, scale=None)
    np.testing.assert_allclose(weights, _exact(difficulty, temperature, 1e-3), rtol=1e-11)


def test_scales():
    difficulty = np.array([-120.0, 0.0, 30.0, 60.0])
    minmax = (difficulty + 120) / 180
    weights = difficulty_weights(difficulty, scale="minmax", temperature=0.7)
    np.testing.assert_allclose(weights, _exact(minmax, 0.7, 1e-3), rtol=1e-12)
    assert 0.239 < weights.min() < weights.max() < 1
    rank = np.array([0, 1, 2, 3]) / 3
    np.testing.assert_allclose(difficulty_weights(difficulty), _exact(rank, 0.3, 1e-3), rtol=1e-12)
    std = (difficulty - difficulty.mean()) / difficulty.std()
    np.testing.assert_allclose(
        difficulty_weights(difficulty, scale="std"), _exact(std, 0.3, 1e-3), rtol=1e-12
    )


@pytest.mark.parametrize("scale", ["rank", "minmax", "std"])
def test_constant_difficulty_gives_equal_weights(scale):
    weights = difficulty_weights([5.0, 5.0, 5.0], scale=scale, c=0.25)
    np.testing.assert_allclose(weights, 1 / 1.25)


def test_only_the_order_rules_the_ranks():
    difficulty = np.random.default_rng(0).normal(size=30)
    weights = difficulty_weights(difficulty)
    np.testing.assert_allclose(difficulty_weights(np.exp(5 * difficulty)), weights, rtol=1e-12)
    np.testing.assert_allclose(np.sort(weights), difficulty_weights(np.arange(30.0)), rtol=1e-12)


def test_equal_difficulties_share_their_mean_rank():
    rank = np.array([0.0, 1.5, 1.5, 3.0]) / 3
    weights = difficulty_weights([2.0, 5.0, 5.0, 7.0])
    np.testing.assert_allclose(weights, _exact(rank, 0.3, 1e-3), rtol=1e-12)


def test_copies_that_differ_by_rounding_are_equal():
    weights = difficulty_weights([2.0, 5.0, np.nextafter(5.0, 6.0), 7.0])
    np.testing.assert_array_equal(weights, difficulty_weights([2.0, 5.0, 5.0, 7.0]))


def test_collapse_warns():
    message = r"3 of 4 difficulty weights are below 1e-06.*scale='rank' or a larger temperature"
    with pytest.warns(SkcalibWarning, match=message) as record:
        difficulty_weights([-124.0, 3.0, 11.0, 488.0], scale=None)
    assert record[0].filename == __file__


def test_a_third_of_the_weights_may_vanish():
    weights = difficulty_weights([0.0, 50.0, 50.0], scale=None, temperature=1.0)
    assert weights[0] < 1e-20
    with pytest.warns(SkcalibWarning, match="1 of 2"):
        difficulty_weights([0.0, 50.0], scale=None, temperature=1.0)


def test_order_is_kept():
    difficulty = np.random.default_rng(0).normal(size=50)
    for scale in ["rank", "minmax", "std", None]:
        weights = difficulty_weights(difficulty, scale=scale)
        np.testing.assert_array_equal(np.argsort(weights), np.argsort(difficulty))


@pytest.mark.parametrize("scale", ["rank", "minmax", "std"])
def test_sample_weight_is_repetition(scale):
    difficulty = np.array([-4.0, 0.0, 1.0, 2.0, 90.0])
    count = np.array([2, 1, 3, 1, 0])
    repeated = difficulty_weights(np.repeat(difficulty, count), scale=scale)
    weighted = difficulty_weights(difficulty, scale=scale, sample_weight=count)
    np.testing.assert_allclose(np.repeat(weighted, count), repeated, rtol=1e-12)
    assert weighted[-1] == 0
    for unit in (1e300, 1e-300):  # squares would be infinite, or 0
        same = difficulty_weights(difficulty, scale=scale, sample_weight=unit * count)
        np.testing.assert_allclose(same, weighted, rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-200, 1e-320, 1e200, 1.7e308])
@pytest.mark.parametrize("scale", ["rank", "minmax", "std"])
def test_the_unit_of_the_difficulty_does_not_matter(unit, scale):
    difficulty = np.array([-1.0, 0.0, 0.5, 1.0])
    expected = difficulty_weights(difficulty, scale=scale)
    count = [1e308, 1e308, 1e308, 1e308]
    for sample_weight in [None, count]:
        weights = difficulty_weights(unit * difficulty, scale=scale, sample_weight=sample_weight)
        np.testing.assert_allclose(weights, expected, rtol=1e-3 if unit == 1e-320 else 1e-12)


def test_extremes_by_the_letter_of_the_equation():
    with pytest.warns(SkcalibWarning, match="2 of 3"):
        weights = difficulty_weights([-1.7e308, 0.0, 1.7e308], scale=None)
    np.testing.assert_array_equal(weights, [0, 0, 1])
    with pytest.warns(SkcalibWarning, match="1 of 1"):
        np.testing.assert_array_equal(difficulty_weights([-1.7e308], scale=None), [0])
    np.testing.assert_allclose(difficulty_weights([1e-200, 0.0], scale=None), 1 / 1.001)


def test_large_integers_are_numbers():
    with pytest.warns(SkcalibWarning):
        weights = difficulty_weights([0.0, 1.0], c=10**30, temperature=1)
    np.testing.assert_allclose(weights, [1e-30, np.e * 1e-30])
    equal = difficulty_weights([0.0, 1.0], c=1, temperature=10**30)
    np.testing.assert_allclose(equal, 0.5)


@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize("scale", ["rank", "minmax", "std", None])
def test_infinite_difficulty_is_finite_weight_at_the_top(scale):
    finite = np.array([-3.0, 0.0, 2.5, 40.0])
    weights = difficulty_weights(np.array([*finite, np.inf, np.inf]), scale=scale)
    assert np.isfinite(weights).all()
    assert (weights < 1).all() or scale is None
    assert weights[4] == weights[5] == weights.max()
    np.testing.assert_array_equal(np.argsort(weights[:4]), range(4))
    if scale == "rank":
        # Two of six share the last place, 4.5 of 0 to 4.5.
        rank = np.array([0, 1, 2, 3, 4.5, 4.5]) / 4.5
        np.testing.assert_allclose(weights, _exact(rank, 0.3, 1e-3), rtol=1e-12)
    else:
        hardest = np.array([*finite, 40.0, 40.0])
        np.testing.assert_array_equal(weights, difficulty_weights(hardest, scale=scale))


@pytest.mark.parametrize("scale", ["rank", "minmax", "std", None])
def test_infinite_difficulty_beside_nothing_else(scale):
    weights = difficulty_weights([np.inf, np.inf], scale=scale)
    np.testing.assert_allclose(weights, 1 / 1.001)
    weights = difficulty_weights([np.inf, 3.0], scale=scale, sample_weight=[0.0, 1.0])
    np.testing.assert_array_equal(weights, [0, difficulty_weights([3.0], scale=scale)[0]])


def test_infinite_weights_are_repetition():
    difficulty, count = np.array([0.0, np.inf, 1.0, np.inf]), np.array([2, 1, 1, 2])
    weighted = difficulty_weights(difficulty, sample_weight=count)
    repeated = difficulty_weights(np.repeat(difficulty, count))
    np.testing.assert_allclose(np.repeat(weighted, count), repeated, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"difficulty": [1.0, np.nan]}, "difficulty must be finite"),
        ({"difficulty": [1.0, -np.inf]}, "difficulty must be finite"),
        ({"difficulty": []}, "difficulty must be 1-dimensional"),
        ({"difficulty": [[1.0]]}, "difficulty must be 1-dimensional"),
        ({"difficulty": [1.0], "temperature": 0}, "'temperature' parameter"),
        ({"difficulty": [1.0], "c": 0}, "'c' parameter"),
        ({"difficulty": [1.0], "c": np.inf}, "'c' parameter"),
        ({"difficulty": [1.0], "c": 10**400}, "'c' parameter"),
        ({"difficulty": [1.0], "temperature": np.inf}, "'temperature' parameter"),
        ({"difficulty": [1.0], "scale": "log"}, "'scale' parameter"),
        ({"difficulty": [1.0], "sample_weight": [-1.0]}, "sample_weight must be finite and not"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        difficulty_weights(**arguments)


@pytest.mark.parametrize("scale", ["rank", "minmax", "std", None])
def test_reference_is_the_scale_of_its_own_difficulties(scale):
    rng = np.random.default_rng(0)
    reference = rng.normal(size=60)
    weights = difficulty_weights(reference, scale=scale)
    rows = rng.permutation(60)[:20]
    np.testing.assert_allclose(
        difficulty_weights(reference[rows], scale=scale, reference=reference), weights[rows]
    )
    ends = [reference.min() - 9, reference.max() + 9, np.inf]
    np.testing.assert_allclose(
        difficulty_weights(ends, scale=scale, reference=reference),
        [weights.min(), weights.max(), weights.max()],
    )


def test_reference_by_the_equation():
    reference, new = np.array([0.2, 1.5, 0.7]), np.array([0.9, 1.1])
    expected = np.exp(new / 0.7) / (np.exp(1.5 / 0.7) + 1e-3)
    got = difficulty_weights(new, temperature=0.7, scale=None, reference=reference)
    np.testing.assert_allclose(got, expected)
    with pytest.raises(ValueError, match="sample_weight must be None where reference is given"):
        difficulty_weights(new, reference=reference, sample_weight=[1, 1])


def test_infinity_in_the_reference_keeps_its_own_rank():
    reference = [1.0, 3.0, np.inf]
    weights = difficulty_weights(reference)
    got = difficulty_weights([3.0, 50.0, np.inf], reference=reference)
    np.testing.assert_allclose(got, weights[[1, 1, 2]])
