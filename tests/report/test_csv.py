"""A file of predictions, and the command line."""

import csv
import subprocess
import sys

import numpy as np
import pytest

from skcalib.__main__ import main
from skcalib.datasets import make_predictions
from skcalib.report import CalibrationReport
from skcalib.report._csv import read_predictions


def write(path, columns):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values()))
    return path


@pytest.fixture(scope="module")
def table():
    y, proba, _ = make_predictions(120, n_classes=3, random_state=0)
    names = np.array(["cat", "dog", "a, b"])
    return {"label": names[y], "dog": proba[:, 1], "a, b": proba[:, 2], "cat": proba[:, 0]}


def test_file_gives_the_report_of_its_columns(table, tmp_path):
    weight, site = np.tile([1, 2], 60), np.tile(["x", "y", "z"], 40)
    path = write(tmp_path / "p.csv", {**table, "weight": weight, "site": site})
    found = CalibrationReport.from_csv(path, sample_weight="weight", groups=["site"]).results_
    names = ["dog", "a, b", "cat"]
    expected = CalibrationReport.from_predictions(
        table["label"],
        np.column_stack([table[name] for name in names]),
        labels=names,
        sample_weight=weight,
        groups={"site": site},
    ).results_
    for section in ("overview", "calibration", "selective", "calibrators", "groups"):
        assert found[section] == expected[section]


def test_command_writes_a_page(table, tmp_path):
    path, page = write(tmp_path / "p.csv", table), tmp_path / "page.html"
    command = [sys.executable, "-m", "skcalib", "report", str(path), "-o", str(page)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.startswith("No miscalibration found at n = 120")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_command_writes_markdown_of_one_column(table, tmp_path, capsys):
    y = np.where(table["label"] == "cat", "cat", "other")
    path = write(tmp_path / "p.csv", {"truth": y, "cat": table["cat"]})
    page = tmp_path / "page.md"
    assert main(["report", str(path), "--label", "truth", "-o", str(page)]) == 0
    assert "probability of class cat" in page.read_text(encoding="utf-8")
    assert str(page) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have a header and a line a sample"),
        ("label,a,b\n", "must have a header and a line a sample"),
        ("y,a,b\na,0.5,0.5\n", "must have a column 'label', got y, a, b"),
        ("label\na\n", "must have a column of probabilities a class"),
        ("label,a,a\na,0.5,0.5\n", "must have distinct columns"),
        ("label,a,b\na,0.5\n", "must have 3 columns, got 2 in sample 1"),
        ("label,a,b\na,0.5,0.5\nb,half,0.5\n", "'a' .* must hold numbers, got 'half' in sample 2"),
        ("label,a,b\na,0.5,0.7\n", "rows of y_proba must sum to 1"),
        ("label,a,b\nc,0.5,0.5\n", "y_true must hold labels among .*got 'c'"),
        ("label,a\nb,0.5\nc,0.5\n", r"got the other labels \['b', 'c'\]"),
    ],
)
def test_bad_file_is_refused_in_one_sentence(text, message, tmp_path, capsys):
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        CalibrationReport.from_csv(path)
    assert main(["report", str(path), "-o", str(tmp_path / "page.html")]) == 2
    assert capsys.readouterr().err.startswith("python -m skcalib report: ")
    assert not (tmp_path / "page.html").exists()


def test_missing_file_is_refused(tmp_path, capsys):
    path = tmp_path / "none.csv"
    assert main(["report", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"python -m skcalib report: {path} must be a file that can be opened, got "
        "'No such file or directory'.\n"
    )


def test_folder_that_does_not_exist_is_refused(table, tmp_path, capsys):
    page = tmp_path / "none" / "page.md"
    assert main(["report", str(write(tmp_path / "p.csv", table)), "-o", str(page)]) == 2
    assert f"{page} must be a file that can be opened, got 'No" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"label;a;b\na;.9;.1\n", "must have commas between columns, got ';'"),
        (b"label;a;b\na;0,9;0,1\n", "must have commas between columns, got ';'"),
        (b"label\ta\tb\na\t.9\t.1\n", "must have commas between columns"),
        ("label,ä,b\nä,.9,.1\n".encode("latin-1"), "must be a CSV file in UTF-8"),
        ("label,a,b\na,.9,.1\n".encode("utf-16"), "must be a CSV file in UTF-8"),
        (b"label,a,b\n" + b"a" * 200_000 + b",.9,.1\n", "must be a CSV file in UTF-8"),
        (b"id,label,a,b\n7,a,.9,.1\n", "Column 'id' of .* must hold probabilities .*got '7'"),
        (b"label,a,b\na,90,10\n", "Column 'a' of .* must hold probabilities in .*got '90'"),
        (b"label,a,b\na,nan,.1\n", "Column 'a' of .* must hold probabilities"),
    ],
)
def test_file_that_cannot_be_read_is_told_why(content, message, tmp_path):
    path = tmp_path / "p.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        CalibrationReport.from_csv(path)


def test_empty_lines_hold_nothing(table, tmp_path):
    path = write(tmp_path / "p.csv", table)
    expected = read_predictions(path)["y_proba"]
    with path.open("a", encoding="utf-8") as file:
        file.write("\n  \n,,,\n")
    np.testing.assert_array_equal(read_predictions(path)["y_proba"], expected)


def test_groups_are_a_list_of_names(table, tmp_path):
    path = write(tmp_path / "p.csv", {**table, "site": ["x"] * 120})
    with pytest.raises(TypeError, match="groups must be a sequence of names"):
        CalibrationReport.from_csv(path, groups="site")


def test_command_does_not_replace_a_file_of_another_kind(table, tmp_path, capsys):
    path = write(tmp_path / "p.csv", table)
    before = path.read_bytes()
    assert main(["report", str(path), "-o", str(path)]) == 2
    assert path.read_bytes() == before
    assert "path must end in .html, .htm or .md" in capsys.readouterr().err
