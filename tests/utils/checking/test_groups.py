import numpy as np
import pytest

from skcalib.utils.checking._groups import group_codes

pd = pytest.importorskip("pandas")


def told(groups, n=4):
    names, codes = group_codes(groups, n)
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
    names, codes = group_codes(intervals, 5)
    assert list(names[:-1]) == [i for i in intervals.cat.categories if (intervals == i).any()]
    assert names[-1] is None
    assert [names[c] for c in codes[:-1]] == list(intervals[:-1])
    # The same as objects, without the categories.
    objects = group_codes(intervals.astype(object), 5)
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
        group_codes(groups, 4)
