import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning

from skcalib.utils._labels import (
    as_labels,
    check_class_labels,
    check_several_classes,
    encode,
    find_positions,
    match_binary,
    match_columns,
)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([0, 2, 1], "i", [0, 2, 1]),
        ([0.0, 2.0], "i", [0, 2]),
        (np.array([1, 2], dtype=np.float32), "i", [1, 2]),
        ([True, False], "i", [1, 0]),
        (np.array([3, 4], dtype=np.uint8), "u", [3, 4]),
        (["b", "a"], "U", ["b", "a"]),
        (np.array(["b", "a"], dtype=object), "U", ["b", "a"]),
        (np.array([1, True, 2.0], dtype=object), "i", [1, 1, 2]),
        ([np.str_("b"), "a"], "U", ["b", "a"]),
    ],
)
def test_labels_are_integers_or_text(values, kind, expected):
    labels = as_labels(values, name="y")
    assert labels.dtype.kind == kind
    assert labels.tolist() == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], r"y must have shape \(n,\) with n >= 1, got shape \(0,\)"),
        (3, "got int"),
        ([[0], [1]], r"got shape \(2, 1\)"),
        ([0, 0.5], "integers or strings, got 0.5 in row 1"),
        ([0, np.nan], "integers or strings, got nan in row 1"),
        ([0, np.inf], "integers or strings, got inf in row 1"),
        ([0, 1e19], r"range of 64-bit integers, got 1e\+19 in row 1"),
        ([2.0**63], r"range of 64-bit integers, got 9.22\d+e\+18 in row 0"),
        (np.ma.array([0, 1], mask=[0, 1]), "y must not be masked"),
        ([0, "a"], "one type, integers or strings, got int, str"),
        (["a", np.nan], "a label for every sample, got none for 1 of 2, first in row 1"),
        (["a", None], "a label for every sample, got none for 1 of 2, first in row 1"),
        ([None, None], "a label for every sample, got none for 2 of 2, first in row 0"),
        ([b"a", b"b"], r"got dtype \|S1"),
        ([1j, 0], "got dtype complex128"),
        (np.array(["2026-01-01"], dtype="datetime64[D]"), r"got dtype datetime64\[D\]"),
    ],
)
def test_other_things_are_no_labels(values, message):
    with pytest.raises((TypeError, ValueError), match=message):
        as_labels(values, name="y")


def test_pandas_labels():
    pd = pytest.importorskip("pandas")
    values = ["b", "a", "b"]
    for dtype in ("category", "string", object):
        assert as_labels(pd.Series(values, dtype=dtype), name="y").tolist() == values
    assert as_labels(pd.Series([2, 0], dtype="Int64"), name="y").tolist() == [2, 0]
    # numpy reads missing integers as objects or, in newer versions of pandas, as floats.
    with pytest.raises((TypeError, ValueError), match=r"label for every sample|got nan in row 1"):
        as_labels(pd.Series([2, None], dtype="Int64"), name="y")
    with pytest.raises((TypeError, ValueError), match="y must have a label for every sample"):
        as_labels(pd.Series(["a", None]), name="y")


def test_numpy_string_dtype():
    dtypes = pytest.importorskip("numpy.dtypes")
    if not hasattr(dtypes, "StringDType"):
        pytest.skip("numpy 1")
    assert as_labels(np.array(["b", "a"], dtype=dtypes.StringDType()), name="y").dtype.kind == "U"


def test_integers_in_range_are_columns():
    codes, classes = match_columns(np.array([2, 0, 2]), labels=None, n_columns=4)
    assert codes.tolist() == [2, 0, 2]
    assert classes.tolist() == [0, 1, 2, 3]


def test_other_labels_are_sorted():
    codes, classes = match_columns(np.array([30, 10, 20, 10]), labels=None, n_columns=3)
    assert codes.tolist() == [2, 0, 1, 0]
    assert classes.tolist() == [10, 20, 30]


def test_given_labels_are_the_order_of_the_columns():
    codes, classes = match_columns(
        np.array(["b", "c", "b"]), labels=np.array(["c", "a", "b"]), n_columns=3
    )
    assert codes.tolist() == [2, 0, 2]
    assert classes.tolist() == ["c", "a", "b"]


def test_many_classes_are_cut_short_in_the_message():
    with pytest.raises(
        ValueError, match=r"got 20 classes in y_true, \[1, 2, .*, 10 and 10 more\], and 5 columns"
    ):
        match_columns(np.arange(1, 21), labels=None, n_columns=5)


@pytest.mark.parametrize(
    ("y", "options", "codes", "classes"),
    [
        ([0, 1, 1], {}, [0, 1, 1], [0, 1]),
        ([1, 1], {}, [1, 1], [0, 1]),
        ([-1, 1], {}, [0, 1], [-1, 1]),
        ([-1, -1], {}, [0, 0], [-1, 1]),
        ([0, 1, 1], {"pos_label": 0}, [1, 0, 0], [1, 0]),
        ([1, 2], {"pos_label": 1}, [1, 0], [2, 1]),
        (["n", "y"], {"pos_label": "y"}, [0, 1], ["n", "y"]),
        (["n", "y"], {"pos_label": "n"}, [1, 0], ["y", "n"]),
        (["n", "n"], {"pos_label": "y"}, [0, 0], ["n", "y"]),
        (["y", "y"], {"pos_label": "y"}, [1, 1], ["y", "y"]),
        ([2, 2], {"pos_label": 2}, [1, 1], [2, 2]),
        ([2, 2], {"pos_label": 5}, [0, 0], [2, 5]),
        (["n", "y"], {"labels": ["y", "n"]}, [1, 0], ["y", "n"]),
        (["n", "y"], {"labels": ["y", "n"], "pos_label": "y"}, [0, 1], ["n", "y"]),
        (["n", "n"], {"labels": ["y", "n"], "pos_label": "y"}, [0, 0], ["n", "y"]),
    ],
)
def test_positive_class(y, options, codes, classes):
    labels = options.get("labels")
    found = match_binary(
        np.array(y),
        labels=None if labels is None else np.array(labels),
        pos_label=options.get("pos_label"),
    )
    assert [part.tolist() for part in found] == [codes, classes]


@pytest.mark.parametrize("pos_label", ["y", 7, 0.5])
def test_positive_class_must_be_a_class(pos_label):
    with pytest.raises(ValueError, match="pos_label must"):
        match_binary(np.array([1, 2]), labels=None, pos_label=pos_label)


def test_a_positive_class_of_another_type_is_refused_where_it_is_the_only_one():
    for y, pos_label in (([2, 2], "2"), (["2", "2"], 2)):
        with pytest.raises(ValueError, match="pos_label must hold labels of the same type"):
            match_binary(np.array(y), labels=None, pos_label=pos_label)


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        ([2, 9, 0, -1], [2, 0, 5], [0, -1, 1, -1]),
        (["b", "z", ""], ["b", "a"], [0, -1, -1]),
        ([1.0, 1.5], [0, 1], [1, -1]),
        ([0, 1], ["0", "1"], [-1, -1]),
        (["0"], [0], [-1]),
        (np.array(["b", "c"], dtype=object), ["b", "a"], [0, -1]),
        (np.array([1, 7], dtype=object), [1, 0], [0, -1]),
        (np.array([1], dtype=object), np.array(["a"], dtype=object), [-1]),
        (np.array(["a", 1], dtype=object), [0, 1], [-1, -1]),
    ],
)
def test_class_positions(labels, classes, expected):
    assert find_positions(np.asarray(labels), np.asarray(classes)).tolist() == expected


def test_encode_gives_positions():
    np.testing.assert_array_equal(encode(np.array(["b", "a"]), np.array(["a", "b"])), [1, 0])
    np.testing.assert_array_equal(encode(np.array([7, 3, 7]), np.array([7, 3])), [0, 1, 0])


@pytest.mark.parametrize(
    ("y", "classes", "got"),
    [
        ([2], [0, 1], r"\[0, 1\], got 2 in row 0"),
        ([1, -1], [0, 1], r"\[0, 1\], got -1 in row 1"),
        (["a"], [0, 1], r"\[0, 1\], got 'a' in row 0"),
        ([0], ["a", "b"], r"\['a', 'b'\], got 0 in row 0"),
        (["b", "c"], ["a", "b"], r"\['a', 'b'\], got 'c' in row 1"),
    ],
)
def test_encode_refuses_unknown_labels(y, classes, got):
    with pytest.raises(ValueError, match=f"^target must hold labels among {got}.$"):
        encode(np.array(y), np.array(classes), name="target")


def test_encode_takes_labels_of_mixed_type_for_unknown():
    mixed = np.array(["a", 1, "a", 7], dtype=object)
    with pytest.raises(ValueError, match="got 'a' in row 0"):
        encode(mixed, np.array([0, 1]))


def test_class_labels_keep_their_type():
    labels = check_class_labels(np.array(["b", "a"], dtype=object))
    assert labels.dtype == object
    with pytest.warns(DataConversionWarning):
        assert check_class_labels([[1], [2]]).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.0, np.nan], "y contains NaN"),
        ([0.1, 0.2], "Unknown label type: continuous"),
        (np.array(["a", 1], dtype=object), "y must hold labels of one type, got int, str"),
        ([0, "a", 1], "y must hold labels of one type, got int, str"),
        (["a", 0.5], "y must hold labels of one type, got float, str"),
        (np.ma.array([0, 1], mask=[0, 1]), "y must not be masked"),
    ],
)
def test_class_labels_are_classes(y, message):
    with pytest.raises(ValueError, match=message):
        check_class_labels(y)


def test_class_labels_may_be_tensors_or_nullable():
    pd = pytest.importorskip("pandas")
    torch = pytest.importorskip("torch")
    assert check_class_labels(torch.tensor([0, 1])).tolist() == [0, 1]
    assert check_class_labels(pd.Series([2, 0], dtype="Int64")).tolist() == [2, 0]
    assert check_class_labels(["a", np.str_("b")]).tolist() == ["a", "b"]


def test_largest_integers_are_labels():
    assert as_labels([-(2.0**63), 2.0**62], name="y").tolist() == [-(2**63), 2**62]
    assert as_labels(np.float16([1, 2]), name="y").tolist() == [1, 2]


def test_two_classes_pass():
    check_several_classes(np.array(["a", "b"]))


@pytest.mark.parametrize(
    ("classes", "got"),
    [(["a"], "got one class: 'a'"), ([3], "got one class: 3"), ([], "no samples")],
)
def test_fewer_are_told(classes, got):
    with pytest.raises(ValueError, match=f"^y must hold at least two classes, .*{got}"):
        check_several_classes(np.array(classes))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint64])
def test_narrow_labels_beyond_the_classes_have_no_position(dtype):
    """Numpy 2.5 refuses to put a -1 among numbers that have none."""
    assert find_positions(np.array([2, 7, 0], dtype), np.arange(3)).tolist() == [2, -1, 0]
