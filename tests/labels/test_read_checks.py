"""Answers of people who checked labels, read back from a file."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from skcalib.labels import LabelIssueFinder, read_checks

HEADER = "position,sample,label,true_label,answer,type\n"


def _read(tmp_path, text, encoding="utf-8", name="checks.csv"):
    (tmp_path / name).write_bytes(text.encode(encoding))
    return read_checks(tmp_path / name)


@pytest.mark.parametrize(
    ("kind", "text", "label"),
    [
        ("int", "7", 7),
        ("str", "7", "7"),
        ("str", "", ""),
        ("str", '" a, b\n"', " a, b\n"),
        ("float", "1.0", 1.0),
        ("bool", "True", True),
        ("bool", "FALSE", False),  # as a spreadsheet writes it
        ("str", "é\u2028כ", "é\u2028כ"),
    ],
)
def test_labels_have_the_type_that_they_had(kind, text, label, tmp_path):
    row = f'2,"x, y",{text},{text},keep,{kind}\n'
    positions, labels = _read(tmp_path, HEADER + row, "utf-8-sig")
    assert (positions.tolist(), labels.tolist()) == ([2], [label])
    assert type(labels.tolist()[0]) is type(label)
    assert labels.dtype.kind == {"int": "i", "str": "U", "float": "f", "bool": "b"}[kind]


def test_none_of_the_classes_is_no_answer_left_out(tmp_path):
    rows = "5,,1,,none,int\n3,,1,,unsure,int\n4,,1,2,other,int\n9,,1,,,int\n"
    positions, labels = _read(tmp_path, HEADER + rows)
    assert (positions.tolist(), labels.tolist()) == ([5, 4], [None, 2])


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_table_that_somebody_filled_in(separator, tmp_path):
    text = "position,true_label\r\n5,2\r\n3,\r\n4,10\r\n".replace(",", separator)
    positions, labels = _read(tmp_path, text)
    assert (positions.tolist(), labels.tolist()) == ([5, 4], [2, 10])
    positions, labels = _read(tmp_path, text + f"6{separator}cat\r\n")
    assert labels.tolist() == ["2", "10", "cat"]


@pytest.mark.slow
def test_answers_go_into_the_finder(tmp_path):
    X, y = load_iris(return_X_y=True)
    finder = LabelIssueFinder().fit(X, y)
    rows = finder.draw_samples_to_check(60, random_state=0)
    for name, part in (("a.csv", rows[:25]), ("b.csv", rows[25:])):
        lines = [f"{row},,{y[row]},{y[row]},keep,int\n" for row in part]
        (tmp_path / name).write_text(HEADER + "".join(lines))
    positions, labels = read_checks([tmp_path / "a.csv", tmp_path / "b.csv"])
    np.testing.assert_array_equal(positions, rows)
    finder.update_with_checks(positions, labels)
    assert finder.n_checks_ == 60
    assert finder.is_trustworthy_
    with pytest.raises(ValueError, match=f"one answer, got several for {rows[0]}"):
        read_checks([tmp_path / "a.csv", tmp_path / "a.csv"])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "the columns position and true_label"),
        ("row,true_label\n1,2\n", "got no position in"),
        ("position,label\n1,2\n", "got no true_label in"),
        ("position,true_label\n", "path must be of a file with answers, got none in"),
        ("position,true_label\n1,\n", "got none in"),
        ("position,true_label\n1.5,2\n", "position must be an integer, got '1.5'"),
        (HEADER + "1,,a,b,perhaps,str\n", "answer must be keep, .* got 'perhaps'"),
        (HEADER + "1,,a,b,other,int\n", "true_label must be of the type .* got 'b' of type 'int'"),
        (HEADER + "1,,a,b,other,text\n", "one of str, int, float, bool"),
    ],
)
def test_what_is_no_table_of_answers_is_refused(text, what, tmp_path):
    with pytest.raises(ValueError, match=what):
        _read(tmp_path, text)
    with pytest.raises(ValueError, match="CSV UTF-8"):
        _read(tmp_path, "position,true_label\n1,é\n", "cp1252")
