from itertools import chain, combinations

import numpy as np
import pytest

from skcalib.metrics._groupwise import correct_by_holm
from skcalib.utils._labels import compute_design_effect, encode_groups

pd = pytest.importorskip("pandas")


def told(groups, n=4):
    names, codes = encode_groups(groups, n)
    # Names of one plain type are an array of it.
    assert (names.dtype == object) == (None in names.tolist())
    return names.tolist(), codes.tolist()


@pytest.mark.parametrize(
    ("groups", "names", "codes"),
    [
        (["b", "a", "b", "c"], ["a", "b", "c"], [1, 0, 1, 2]),
        (np.array([3, 1, 3, 2]), [1, 2, 3], [2, 0, 2, 1]),
        ([True, False, False, True], [False, True], [1, 0, 0, 1]),
        (np.array([True, False, False, True]), [False, True], [1, 0, 0, 1]),
        ([1.5, 0.5, 1.5, 2.0], [0.5, 1.5, 2.0], [1, 0, 1, 2]),
        (["b", None, "a", float("nan")], ["a", "b", None], [1, 2, 0, 2]),
        (np.array([2.0, np.nan, 1.0, 2.0]), [1, 2, None], [1, 2, 0, 1]),
        (pd.Series(["b", pd.NA, "a", "b"], dtype="string"), ["a", "b", None], [1, 2, 0, 1]),
        (pd.Series([2, None, 1, 2], dtype="Int64"), [1, 2, None], [1, 2, 0, 1]),
        (pd.Series([True, None, False, True], dtype="boolean"), [False, True, None], [1, 2, 0, 1]),
        # Categories keep their order; those that do not occur are left out.
        (
            pd.Categorical(["low", "high", None, "low"], ["low", "middle", "high"]),
            ["low", "high", None],
            [0, 1, 2, 0],
        ),
        (
            pd.Series(["low", "high", "high", "low"]).astype(
                pd.CategoricalDtype(["low", "high"], ordered=True)
            ),
            ["low", "high"],
            [0, 1, 1, 0],
        ),
        (
            np.array([["f", 2], ["m", 1], ["f", 1], ["f", 2]], dtype=object),
            ["f, 1", "f, 2", "m, 1"],
            [1, 2, 0, 1],
        ),
        (
            pd.DataFrame({"sex": ["f", "m", "f", None], "age": [2, 1, 1, 2]}),
            ["sex=f, age=1", "sex=f, age=2", "sex=m, age=1", "sex=None, age=2"],
            [1, 2, 0, 3],
        ),
        (pd.DataFrame({"sex": ["f", "m", "f", "m"]}), ["f", "m"], [0, 1, 0, 1]),
    ],
)
def test_groups_as_they_come(groups, names, codes):
    assert told(groups) == (names, codes)


@pytest.mark.parametrize("cut", [lambda a: pd.cut(a, [0, 30, 60, 90]), lambda a: pd.qcut(a, 2)])
def test_intervals_of_pandas(cut):
    age = pd.Series([25, 65, 45, 28, np.nan])
    intervals = cut(age)
    names, codes = encode_groups(intervals, 5)
    assert list(names[:-1]) == [i for i in intervals.cat.categories if (intervals == i).any()]
    assert names[-1] is None
    assert [names[c] for c in codes[:-1]] == list(intervals[:-1])
    # The same as objects, without the categories.
    objects = encode_groups(intervals.astype(object), 5)
    assert objects[0].tolist() == names.tolist()
    assert objects[1].tolist() == codes.tolist()


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        (["a", 1, "b", 2], TypeError, "groups must hold values of one kind, .* got int, str"),
        (["a", "b"], ValueError, "groups must have one entry for every sample, 4, got 2"),
        (np.zeros((2, 2, 2)), ValueError, "groups must have shape"),
        ([], ValueError, "groups must have shape"),
        (pd.DataFrame(index=range(4)), ValueError, "groups must have at least one column"),
    ],
)
def test_bad_groups(groups, error, message):
    with pytest.raises(error, match=message):
        encode_groups(groups, 4)


def test_a_group_of_one_sample():
    assert told(["a"], 1) == (["a"], [0])
    assert told([["a"], ["b"]], 2) == (["a", "b"], [0, 1])


def members(groups):
    return [np.flatnonzero(groups == g) for g in np.unique(groups)]


def test_design_effect_pair_by_pair():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 12, 60)
    values = rng.normal(size=60) + 0.4 * rng.normal(size=12)[groups]
    apart = values - values.mean()
    together = sum(apart[i] * apart[j] for rows in members(groups) for i in rows for j in rows)
    expected = 12 / 11 * together / sum(apart**2)
    assert 1.2 < expected < 4
    assert compute_design_effect(values, groups) == pytest.approx(expected)
    # A constant that is added to all of them changes no variance.
    assert compute_design_effect(values + 7, groups) == pytest.approx(expected)
    # Nor does the unit.
    assert compute_design_effect(1e-6 * values, groups) == pytest.approx(expected)


def test_a_design_effect_is_between_that_of_unlike_and_of_equal_members():
    groups = np.repeat(np.arange(8), 5)
    alike = np.repeat([0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0], 5)
    assert compute_design_effect(alike, groups) == 5.0
    # Every group has the mean of all.
    assert compute_design_effect(np.tile([0.0, 1.0, 2.0, 3.0, 4.0], 8), groups) == 1.0
    # One group, or values that do not vary, tell nothing: as if all were alike.
    assert compute_design_effect(np.arange(6.0), np.zeros(6, int)) == 6.0
    assert compute_design_effect(np.ones(40), groups) == 5.0
    # Samples of their own are independent.
    assert compute_design_effect(np.arange(40.0), np.arange(40)) == 1.0


def test_a_weight_of_k_counts_as_k_samples_in_a_design_effect():
    rng = np.random.default_rng(1)
    groups, weight = rng.integers(0, 9, 50), rng.integers(1, 4, 50)
    values = rng.normal(size=50) + 0.5 * rng.normal(size=9)[groups]
    copies = np.repeat(np.arange(50), weight)
    found = compute_design_effect(values, groups, weight.astype(float))
    assert found == pytest.approx(compute_design_effect(values[copies], groups[copies]))
    assert found > 1.5


@pytest.mark.parametrize("share", [None, np.array([0.1, 0.4, 0.2, 0.3]), np.array([3.0, 1, 1, 2])])
def test_holm_is_the_closed_test_of_all_intersections(share):
    rng = np.random.default_rng(2)
    for pvalues in rng.uniform(0, 0.3, (50, 4)):
        of = np.ones(4) if share is None else share

        def of_all(tests, pvalues=pvalues, of=of):
            """Bonferroni's p-value, by shares, of the claim that none of these is an effect."""
            tests = list(tests)
            return min(1.0, (pvalues[tests] / of[tests]).min() * of[tests].sum())

        every = list(chain.from_iterable(combinations(range(4), k) for k in (1, 2, 3, 4)))
        expected = [max(of_all(tests) for tests in every if i in tests) for i in range(4)]
        np.testing.assert_allclose(correct_by_holm(pvalues, share), expected)
