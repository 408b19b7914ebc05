"""Files of predictions as pandas and spreadsheets write them, and the command line."""

import gzip
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from skcalib.__main__ import main
from skcalib.datasets import make_predictions
from skcalib.report import CalibrationReport
from skcalib.report._data import read_data
from skcalib.report._read import read_predictions
from skcalib.utils import SkcalibWarning

NAMES = np.array(["cat", "dog", "a, b"])


def predictions(n_samples, n_classes):
    """Labels and probabilities of few digits: pandas 2 reads longer ones to the last but one."""
    y, proba, _ = make_predictions(n_samples, n_classes=n_classes, random_state=0)
    proba = np.floor(proba * 1024) / 1024
    proba[:, 0] = 1 - proba[:, 1:].sum(axis=1)
    return y, proba


@pytest.fixture(scope="module")
def frame():
    y, proba = predictions(120, 3)
    columns = {"dog": proba[:, 1], "a, b": proba[:, 2], "cat": proba[:, 0]}
    return pd.DataFrame({"label": NAMES[y], **columns})


@pytest.fixture(scope="module")
def binary():
    y, proba = predictions(80, 2)
    return pd.DataFrame({"label": y, "0": proba[:, 0], "1": proba[:, 1]})


def as_read(frame, path, *, write=None, **options):
    """Write a frame, read it, and return the result as labels and a frame of probabilities."""
    frame.to_csv(path, **{"index": False, **(write or {})})
    found = read_predictions(path, **options)
    proba = found["y_proba"]
    columns = found["labels"] if proba.ndim == 2 else [found["pos_label"]]
    return found["y_true"], pd.DataFrame(proba.reshape(len(proba), -1), columns=columns), found


def check(frame, path, **options):
    """The probabilities of every class are those of its column, in any kind of file."""
    y, proba, found = as_read(frame, path, **options)
    np.testing.assert_array_equal(y, frame["label"].to_numpy().astype(str))
    for name in proba:
        np.testing.assert_array_equal(proba[name], frame[name].to_numpy())
    return found


@pytest.mark.parametrize(
    "write",
    [
        {},
        {"index": True},
        {"sep": ";"},
        {"sep": ";", "decimal": ","},
        {"sep": "\t"},
        {"sep": "|"},
        {"encoding": "utf-8-sig"},
        {"encoding": "utf-16"},
        {"lineterminator": "\r\n"},
        {"quoting": 1},
        {"compression": "gzip"},
    ],
)
def test_files_of_pandas_and_spreadsheets(frame, tmp_path, write):
    found = check(frame, tmp_path / "p.csv", write=write)
    assert found["labels"] == ["dog", "a, b", "cat"]


def test_other_columns_are_not_used_and_are_named(frame, tmp_path):
    wide = frame.assign(
        id=np.arange(120), age=40.5, predicted="cat", fold=0, none=0.0, share=0.3, text="x"
    )
    found = check(wide, tmp_path / "p.csv", write={"index": True})
    assert found["labels"] == ["dog", "a, b", "cat"]
    expected = "(column 1), id, age, predicted, fold, none, share, text"
    assert found["source"]["columns not used"] == expected


def test_letters_of_windows_are_read(frame, tmp_path):
    frame = frame.replace("cat", "Käse").rename(columns={"cat": "Käse"})
    check(frame, tmp_path / "p.csv", write={"encoding": "cp1252"})


@pytest.mark.parametrize("line", ["sep=;\n", '"sep=;"\n', "\n"])
def test_lines_above_the_header_are_skipped(frame, tmp_path, line):
    path = tmp_path / "p.csv"
    frame.rename(columns={"label": "Actual"}).to_csv(path, sep=";", index=False)
    path.write_text(line + path.read_text())
    found = read_predictions(path)
    np.testing.assert_array_equal(found["y_true"], frame["label"])
    np.testing.assert_array_equal(found["y_proba"], frame[["dog", "a, b", "cat"]].to_numpy())


def test_index_of_r_has_no_place_in_the_header(frame, tmp_path):
    path = tmp_path / "p.csv"
    frame.to_csv(path)
    path.write_text(path.read_text().removeprefix(","))
    expected = frame[["dog", "a, b", "cat"]].to_numpy()
    np.testing.assert_array_equal(read_predictions(path)["y_proba"], expected)


@pytest.mark.slow
def test_words_among_many_numbers_are_named(binary, tmp_path):
    """pandas reads long files in pieces, each of which may have a type of its own."""
    long = pd.concat([binary] * 4000, ignore_index=True).astype({"0": object})
    path = tmp_path / "p.csv"
    long.assign(id=np.where(np.arange(len(long)) % 7, "x", "1")).to_csv(path, index=False)
    assert len(read_predictions(path)["y_true"]) == len(long)
    long.loc[len(long) - 1, "0"] = "half"
    long.to_csv(path, index=False)
    with pytest.raises(ValueError, match=f"got half in line {len(long) + 1}"):
        read_predictions(path, classes=["0", "1"])


def test_classes_without_samples_complete_the_rows(frame, tmp_path):
    check(frame[frame["label"] != "dog"], tmp_path / "p.csv")


@pytest.mark.parametrize("name", ["p_{}", ".pred_{}", "P({})", "prob.{}", "p{}"])
def test_columns_may_share_a_prefix_or_an_ending(frame, tmp_path, name):
    renamed = frame.rename(columns={n: name.format(n) for n in NAMES})
    _, proba, _ = as_read(renamed, tmp_path / "p.csv")
    pd.testing.assert_frame_equal(proba, frame[list(proba)])


@pytest.mark.parametrize("label", [lambda y: y, lambda y: y.astype(float), lambda y: y == 1])
def test_two_classes_of_numbers(binary, tmp_path, label):
    given = binary.assign(label=label(binary["label"]))
    if given["label"].dtype == bool:
        given = given[["label", "1"]].rename(columns={"1": "score"}).assign(predicted=1)
    _, proba, _ = as_read(given, tmp_path / "p.csv")
    np.testing.assert_array_equal(proba.iloc[:, -1], binary["1"])


@pytest.mark.parametrize("column", ["probability", "1", "yes"])
@pytest.mark.parametrize("label", ["label", "y_true", "target"])
def test_one_column_of_probabilities(binary, tmp_path, column, label):
    given = pd.DataFrame({label: binary["label"], column: binary["1"], "predicted": 0, "id": 7})
    if column == "yes":
        given[label] = np.where(given[label] == 1, "yes", "no")
    _, proba, found = as_read(given, tmp_path / "p.csv")
    np.testing.assert_array_equal(proba.iloc[:, 0], binary["1"])
    assert found["pos_label"] in ("1", "yes")


def test_one_of_many_columns_is_named_and_so_is_the_label(binary, tmp_path):
    given = pd.DataFrame({"Label": binary["label"], "lgb": binary["1"], "share": 0.3})
    with pytest.raises(ValueError, match=r"of probabilities: lgb, share; --classes lgb=1"):
        as_read(given, tmp_path / "p.csv")
    found = as_read(given, tmp_path / "p.csv", classes=["lgb"])[2]
    assert found["pos_label"] == "1"
    np.testing.assert_array_equal(found["y_proba"], binary["1"])


def test_positive_class_of_other_words_is_asked_for_and_given(binary, tmp_path):
    y = np.where(binary["label"] == 1, "sick", "well")
    given = pd.DataFrame({"label": y, "score": binary["1"]})
    with pytest.raises(ValueError, match=r"pos_label must say .*'score'.*, sick or well"):
        as_read(given, tmp_path / "p.csv")
    found = as_read(given, tmp_path / "p.csv", pos_label="sick")[2]
    assert found["labels"] == ["well", "sick"]


def test_integers_are_classes_in_the_order_given(frame, tmp_path):
    codes = pd.Series([list(NAMES).index(name) for name in frame["label"]])
    given = frame.assign(label=codes)
    with pytest.raises(ValueError, match="the option classes must name them in the order"):
        as_read(given, tmp_path / "p.csv")
    y, proba, _ = as_read(given, tmp_path / "p.csv", classes=list(NAMES))
    np.testing.assert_array_equal(y, frame["label"].to_numpy().astype(str))
    pd.testing.assert_frame_equal(proba, frame[list(NAMES)])


@pytest.mark.slow
def test_groups_and_weights_may_have_gaps_and_be_many(frame, tmp_path):
    given = frame.assign(
        weight=np.tile([1, 2], 60),
        site=np.tile(["x", "", "z"], 40),
        year=np.where(np.arange(120) % 4, 2024.0, np.nan),
    )
    path = tmp_path / "p.csv"
    given.to_csv(path)
    report = CalibrationReport.from_csv(path, sample_weight="weight", by=["site", "year"])
    tested = report.results_["group_tests"]
    names = [(entry["column"], entry["name"]) for entry in tested if entry["kind"] == "group"]
    assert names == [
        *(("site", name) for name in ("x", "z", "(missing)")),
        *(("year", name) for name in ("2024", "(missing)")),
    ]
    assert report.results_["overview"]["total_weight"] == 180


@pytest.mark.slow
def test_file_gives_the_report_of_its_columns(frame, tmp_path):
    path = tmp_path / "p.csv"
    frame.to_csv(path, index=False)
    found = CalibrationReport.from_csv(path).results_
    columns = ["dog", "a, b", "cat"]
    expected = CalibrationReport.from_predictions(
        frame["label"], frame[columns].to_numpy(), labels=columns
    ).results_
    for section in ("summary", "group_tests", "calibration", "selective", "calibrators"):
        assert found[section] == expected[section]
    assert found["overview"]["title"] == "p"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have a header and one line for each sample"),
        ("label,a,b\n", "must have a header and one line for each sample"),
        ("z,a,b\na,0.5,0.5\n", "must have a column 'label' in its header, .* got z, a, b"),
        ("label\na\n", "must have a column of probabilities for every class"),
        ("label,a,a\na,0.5,0.5\n", "must have distinct columns"),
        ("label,a,b\na,0.5,.5,.1,.2\nb,1,2,3\n", "must have 3 columns, got 5 in line 2"),
        ("label,a,b\na,0.5,.5\nb,1,2,3\n", "must be a table of text, got: Expected 3 fields"),
        ("label,a,b\na,.5,.5\nb,half,.5\n", "'a' .* must hold probabilities .*half in line 3"),
        ("label,a,b\na,.5,.5\n\n,,\nb,half,.5\n", "got half in line 5"),
        ("\n\nlabel,a,b\na,.5,.5\n,.5,.5\n", "must hold labels, got none in line 5"),
        ("label,a,b\na,.5,.5\nb,.5,.7\n", "sum to 1 in columns a, b, got 1.2 in line 3, which"),
        ("label,a,b\nc,0.5,0.5\n", "called like its label .c., .*in .0, 1.: a, b"),
        ("label,a,b\n,.5,.5\nb,.5,.5\n", "'label' .* must hold labels, got none in line 2"),
        ("label,a\nb,0.5\nc,0.5\n", "must have a column of probabilities for every|pos_label"),
        ("label,a,b\na,90,10\nb,10,90\n", r"'a' .* in \[0, 1\], got 90.* in line 2"),
        ("label,a,b\na,nan,.1\nb,.5,.5\n", r"'a' .* in \[0, 1\], got nan in line 2"),
        (",y,p\n0,1,99.5\n7,0,.5\n", r"Column 'p' .* in \[0, 1\], got 99.5 in line 2"),
        ("id,y,q\n0,1,99.5\n7,0,.5\n", r"columns of numbers in \[0, 1\]: none\.$"),
        ("pred,y,p\n0,1,99.5\n1,0,.5\n", r"Column 'p' .* in \[0, 1\], got 99.5 in line 2"),
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


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"by": "site"}, TypeError, "by must be a sequence of names"),
        ({"classes": "cat"}, TypeError, "classes must be a sequence of names"),
        ({"classes": ["cat", "cow"]}, ValueError, "must have a column 'cow', got label, dog"),
        ({"classes": ["cat", "dog"]}, ValueError, "must be among the classes cat, dog, or 0"),
        ({"label": "truth"}, ValueError, "must have a column 'truth'"),
        ({"sample_weight": "w"}, ValueError, "must have a column 'w'"),
    ],
)
def test_bad_options_are_named(frame, tmp_path, options, error, message):
    frame.to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(error, match=message):
        CalibrationReport.from_csv(tmp_path / "p.csv", **options)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"PK\x03\x04\0",
            "must be a table of text, got binary data: write it as CSV",
        ),
        (b"PAR1\x15\0", "must be a whole parquet file, got: "),
        (gzip.compress(b"label,p\n1,.5\n", mtime=0)[:-9], "must be a whole gzip file, got: "),
        (b"\x1f\x8b\x08none", "must be a whole gzip file, got: "),
    ],
)
def test_binary_files_are_refused(data, message, tmp_path):
    if data.startswith(b"PAR1"):
        pytest.importorskip("pyarrow")
    (tmp_path / "p.csv").write_bytes(data)
    with pytest.raises(ValueError, match=message):
        read_predictions(tmp_path / "p.csv")


def test_empty_lines_hold_nothing(frame, tmp_path):
    path = tmp_path / "p.csv"
    frame.to_csv(path, index=False)
    expected = read_predictions(path)["y_proba"]
    with path.open("a", encoding="utf-8") as file:
        file.write("\n  \n,,,\n")
    np.testing.assert_array_equal(read_predictions(path)["y_proba"], expected)


@pytest.mark.slow
def test_command_writes_a_page(frame, tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    path, page = tmp_path / "p.csv", tmp_path / "page.html"
    frame.assign(id=7).to_csv(path)
    command = [sys.executable, "-m", "skcalib", "report", str(path), "-o", str(page)]
    run = subprocess.run([*command, "--title", "Pets"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("Too few samples to decide: an error of ")
    assert run.stderr == (
        "Read 120 rows as utf-8; labels: label; probabilities: dog, a, b, cat; "
        "classes: dog, a, b, cat\n"
        "Columns that were not used: (column 1), id\n"
    )
    assert "<h1>Pets</h1>" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_command_writes_markdown_of_one_column(frame, tmp_path, capsys):
    y = np.where(frame["label"] == "cat", "cat", "other")
    path, page = tmp_path / "p.csv", tmp_path / "page.md"
    pd.DataFrame({"truth": y, "cat": frame["cat"]}).to_csv(path)
    assert main(["report", str(path), "--label", "truth", "-o", str(page)]) == 0
    assert "probability of class cat" in page.read_text(encoding="utf-8")
    assert str(page) in capsys.readouterr().out


def test_missing_file_is_refused(tmp_path, capsys):
    path = tmp_path / "none.csv"
    assert main(["report", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"python -m skcalib report: {path} must be a file that can be opened, got "
        "'No such file or directory'.\n"
    )


@pytest.mark.slow
def test_folder_that_does_not_exist_is_refused(frame, tmp_path, capsys):
    path, page = tmp_path / "p.csv", tmp_path / "none" / "page.md"
    frame.to_csv(path)
    assert main(["report", str(path), "-o", str(page)]) == 2
    assert f"{page} must be a file that can be opened, got 'No" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["p.csv", "p.md", "p.html"])
def test_predictions_are_never_overwritten(frame, tmp_path, capsys, name):
    path = tmp_path / name
    frame.to_csv(path)
    before = path.read_bytes()
    assert main(["report", str(path), "-o", str(tmp_path / "." / name)]) == 2
    assert path.read_bytes() == before
    assert "output must be another file than the predictions" in capsys.readouterr().err


@pytest.mark.slow
def test_a_confidence_in_the_answer_is_not_taken_for_the_probability_of_class_1(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("y,answer,confidence\n0,0,0.9\n1,1,0.6\n0,1,0.4\n1,0,0.8\n")
    with pytest.raises(ValueError, match=r"--prediction answer --confidence confidence; .*=CLASS"):
        CalibrationReport.from_csv(path)
    # Said to be that of class 1, it is.
    report = CalibrationReport.from_csv(path, pos_label="1")
    assert report.results_["method"]["source"]["columns not used"] == "answer"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_parquet_is_read_as_the_same_csv(frame, tmp_path, dtype):
    pytest.importorskip("pyarrow")
    table = frame.assign(site=np.arange(120) // 40, note="x", weight=np.arange(120) % 3 + 1.0)
    table = table.astype(dict.fromkeys(["dog", "a, b", "cat"], dtype))
    table.loc[7, "site"] = None
    options = {"by": ["site"], "groups": "note", "sample_weight": "weight"}
    table.to_csv(tmp_path / "p.csv", index=False)
    table.set_index("note", append=True).reset_index(level=1).to_parquet(tmp_path / "p.pq")
    csv, parquet = (read_predictions(tmp_path / name, **options) for name in ("p.csv", "p.pq"))
    assert parquet.pop("source")["encoding"] == "parquet"
    assert csv["by"]["site"][7] is parquet["by"]["site"][7] is None
    for name in ("y_true", "y_proba", "labels", "sample_weight", "groups"):
        columns = [found["labels"].index("dog") for found in (csv, parquet)]
        if name == "y_proba":
            pair = [found[name][:, k] for found, k in zip((csv, parquet), columns)]
            np.testing.assert_allclose(*pair, rtol=1e-6)
        elif name == "labels":
            assert sorted(csv[name]) == sorted(parquet[name])
        else:
            np.testing.assert_array_equal(csv[name], parquet[name])


def test_labels_of_parquet_may_be_numbers_truths_and_categories(binary, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "p.parquet"
    for kind in (np.int8, float, "category", "Int64"):
        binary.astype({"label": kind}).to_parquet(path)
        np.testing.assert_array_equal(
            read_predictions(path)["y_true"], binary["label"].to_numpy().astype(str)
        )
    truths = binary["label"].astype(bool)
    pd.DataFrame({"label": truths, "proba": binary["1"]}).to_parquet(path)
    assert read_predictions(path)["pos_label"] == "True"


def test_what_is_wrong_with_a_parquet_file_is_said(binary, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "p.parquet"
    holed = binary.astype({"label": "Int64"})
    holed.loc[3, "label"] = pd.NA
    holed.to_parquet(path)
    with pytest.raises(ValueError, match="must hold labels, got none in line 4"):
        read_predictions(path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"p\.parquet must be a whole parquet file, got: "):
        read_predictions(path)


@pytest.mark.slow
def test_the_command_reads_parquet_and_tells_what_it_is_at(binary, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    path, output = tmp_path / "p.parquet", tmp_path / "r.md"
    binary.to_parquet(path)
    assert main(["report", str(path), "-o", str(output), "--verbose"]) == 0
    told, headline = capsys.readouterr().err, output.read_text()
    first = told.splitlines()[0]
    assert re.fullmatch(r"\[CalibrationReport\] \.+ reading p\.parquet, total= .*s", first)
    assert re.search(r"\n\[CalibrationReport\] \.+ calibrators, total= .*s\n", told)
    assert "Read 80 rows as parquet; labels: label; probabilities: 0, 1; classes: 0, 1" in told
    assert headline.startswith("# p\n")
    assert main(["report", str(path), "-o", str(output)]) == 0
    assert "[CalibrationReport]" not in capsys.readouterr().err


def test_ctrl_c_ends_the_command_with_one_line(binary, tmp_path, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    path, output = tmp_path / "p.csv", tmp_path / "r.html"
    binary.to_csv(path, index=False)
    monkeypatch.setattr("skcalib.report._sections.compute_trust", interrupt)
    assert main(["report", str(path), "-o", str(output)]) == 130
    assert capsys.readouterr() == ("", "python -m skcalib report: interrupted.\n")
    assert not output.exists()


def test_a_name_may_hold_a_line_break(tmp_path):
    path = tmp_path / "p.csv"
    rows = "".join(
        f"{'ab'[k // 3 % 2]},{0.5 + 0.3 * (k % 2)},{0.5 - 0.3 * (k % 2)}\n" for k in range(30)
    )
    for between in ("\n", "\u2028"):
        path.write_text(f'"true{between}label",p_b,p_a\n{rows}')
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = read_predictions(path, "true label")
        assert found["labels"] == ["b", "a"]
        assert found["source"]["columns of probabilities"] == "p_b (of b), p_a (of a)"


def test_a_positive_label_that_is_none(binary, tmp_path):
    path = tmp_path / "p.csv"
    binary.to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"pos_label must be one of .*, 0, 1, got 'yes'"):
        read_predictions(path, pos_label="yes")


@pytest.mark.parametrize("times", [2, 3])
def test_a_table_that_stands_there_several_times_is_told(times):
    rng = np.random.default_rng(0)
    proba = rng.uniform(size=40)
    y = (rng.random(40) < proba).astype(int)
    word = "twice" if times == 2 else "3 times"
    with pytest.warns(SkcalibWarning, match=f"is there {word}: 40 of the {40 * times} are"):
        read_data(np.tile(y, times), np.tile(proba, times), labels=None)
    few = np.tile([0.2, 0.4, 0.6, 0.8], 20)  # of a tree
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_data(y, proba, labels=None)
        read_data(np.tile([0, 1], 40), few, labels=None)
        read_data(np.tile(y, 2), np.tile(proba, 2), labels=None, groups=np.tile(np.arange(40), 2))


@pytest.mark.parametrize("decimals", [2, 3])
@pytest.mark.parametrize("options", [{}, {"classes": [*"abcdef"]}])
def test_rounded_rows_are_divided_by_their_sums(decimals, options, tmp_path):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(6), 60).round(decimals)
    sums = proba.sum(axis=1)
    assert np.abs(sums - 1).max() > 1.5 / 10**decimals
    path = tmp_path / "rounded.csv"
    rows = [f"{'abcdef'[k % 6]},{','.join(map(str, row))}" for k, row in enumerate(proba)]
    path.write_text("\n".join(["label,a,b,c,d,e,f", *rows]))
    found = read_predictions(path, **options)
    used = found["source"]["columns of probabilities"]
    assert used.endswith(", rounded rows divided by their sums")
    np.testing.assert_array_equal(found["y_proba"], proba / sums[:, np.newaxis])
