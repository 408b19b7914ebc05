import numpy as np
import pytest

from skcalib.utils._labels import as_labels, class_positions, encode_binary, encode_labels


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
        (3, r"got shape \(\)"),
        ([[0], [1]], r"got shape \(2, 1\)"),
        ([0, 0.5], "integers or strings, got 0.5 in row 1"),
        ([0, np.nan], "integers or strings, got nan in row 1"),
        ([0, np.inf], "integers or strings, got inf in row 1"),
        ([0, "a"], "one type, integers or strings, got int, str"),
        (["a", np.nan], "one type, integers or strings, got float, str"),
        (["a", None], "one type, integers or strings, got NoneType, str"),
        ([None, None], "one type, integers or strings, got NoneType"),
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
    with pytest.raises((TypeError, ValueError), match="y must hold class labels"):
        as_labels(pd.Series([2, None], dtype="Int64"), name="y")
    with pytest.raises((TypeError, ValueError), match="y must hold class labels"):
        as_labels(pd.Series(["a", None]), name="y")


def test_numpy_string_dtype():
    dtypes = pytest.importorskip("numpy.dtypes")
    if not hasattr(dtypes, "StringDType"):
        pytest.skip("numpy 1")
    assert as_labels(np.array(["b", "a"], dtype=dtypes.StringDType()), name="y").dtype.kind == "U"


def test_integers_in_range_are_columns():
    codes, classes = encode_labels(np.array([2, 0, 2]), labels=None, n_classes=4)
    assert codes.tolist() == [2, 0, 2]
    assert classes.tolist() == [0, 1, 2, 3]


def test_other_labels_are_sorted():
    codes, classes = encode_labels(np.array([30, 10, 20, 10]), labels=None, n_classes=3)
    assert codes.tolist() == [2, 0, 1, 0]
    assert classes.tolist() == [10, 20, 30]


def test_given_labels_are_the_order_of_the_columns():
    codes, classes = encode_labels(
        np.array(["b", "c", "b"]), labels=np.array(["c", "a", "b"]), n_classes=3
    )
    assert codes.tolist() == [2, 0, 2]
    assert classes.tolist() == ["c", "a", "b"]


def test_many_classes_are_cut_short_in_the_message():
    with pytest.raises(ValueError, match=r"holds 20 classes, \[1, 2, .*, 10, \.\.\.\], y_proba"):
        encode_labels(np.arange(1, 21), labels=None, n_classes=5)


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
        (["n", "y"], {"labels": ["y", "n"]}, [1, 0], ["y", "n"]),
        (["n", "y"], {"labels": ["y", "n"], "pos_label": "y"}, [0, 1], ["n", "y"]),
        (["n", "n"], {"labels": ["y", "n"], "pos_label": "y"}, [0, 0], ["n", "y"]),
    ],
)
def test_positive_class(y, options, codes, classes):
    labels = options.get("labels")
    found = encode_binary(
        np.array(y),
        labels=None if labels is None else np.array(labels),
        pos_label=options.get("pos_label"),
    )
    assert [part.tolist() for part in found] == [codes, classes]


@pytest.mark.parametrize("pos_label", ["y", 7, 0.5])
def test_positive_class_must_be_a_class(pos_label):
    with pytest.raises(ValueError, match="pos_label must"):
        encode_binary(np.array([1, 2]), labels=None, pos_label=pos_label)


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
    assert class_positions(np.asarray(labels), np.asarray(classes)).tolist() == expected
