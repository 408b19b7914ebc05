"""Fifty broken tables: each is refused in one sentence, or read and what was read is told."""

import warnings

import numpy as np
import pytest

from skcalib.report._read import read_predictions

RNG = np.random.default_rng(0)
P = np.round(RNG.random(40), 3)
Y = (RNG.random(40) < P).astype(int)
ROWS = [f"{y},{p:.3f},x" for y, p in zip(Y, P)]
HEAD = "label,prob,note"
THREE = "label,a,b,c"
ROWS_OF_THREE = ["abc"[k % 3] + ",0.5,0.25,0.25" for k in range(30)]


def table(rows=ROWS, head=HEAD):
    return "\n".join([head, *rows]) + "\n"


def with_row(row, place=10, rows=ROWS, head=HEAD):
    return table([*rows[:place], row, *rows[place + 1 :]], head)


WIDE = [f"c{k}" for k in range(9000)]
# Text of the file; the number of rows that are read, or what the refusal says.
TABLES = {
    "empty file": ("", "no header"),
    "blank lines alone": ("\n\n\n", "no header"),
    "header alone": (HEAD + "\n", "got one line"),
    "sep alone": ("sep=;\n", "no header"),
    "no header": (table(ROWS[1:], ROWS[0]), "must have a column 'label'"),
    "comment above": ("# made by x\n" + table(), "must have|columns"),
    "title above": ("Results of Monday,,\n" + table(), "must have"),
    "one more cell": (with_row("1,0.5,x,y"), "Expected 3 fields"),
    "one more cell in the first row": (with_row("1,0.5,x,y,z", 0), "must have 3 columns, got 5"),
    "label missing": (with_row(",0.5,x"), "must hold labels, got none in line 12"),
    "label blank": (with_row("  ,0.5,x"), "must hold labels, got none in line 12"),
    "probability missing": (with_row("1,,x"), r"in \[0, 1\], got nan in line 12"),
    "word for a probability": (with_row("1,half,x"), r"in \[0, 1\], got half in line 12"),
    "NA": (with_row("1,NA,x"), r"in \[0, 1\], got NA in line 12"),
    "per cent": (with_row("1,50%,x"), r"in \[0, 1\], got 50% in line 12"),
    "above 1": (with_row("1,1.5,x"), r"in \[0, 1\], got 1.5 in line 12"),
    "negative": (with_row("1,-0.5,x"), r"in \[0, 1\], got -0.5 in line 12"),
    "infinite": (with_row("1,inf,x"), r"in \[0, 1\], got inf in line 12"),
    "in per cent": (table([f"{y},{100 * p:.1f},x" for y, p in zip(Y, P)]), r"in \[0, 1\]"),
    "decimal comma between commas": (
        table([f"{y},{p:.3f}".replace(".", ",") for y, p in zip(Y, P)], "label,prob"),
        "must have 2 columns, got 3 in line 2",
    ),
    "header again": (with_row(HEAD), "called like its label .0, 1, label."),
    "header again of three": (
        table([*ROWS_OF_THREE, THREE, *ROWS_OF_THREE], THREE),
        r"\[0, 1\], got a in line 32",
    ),
    "row of sums": (
        table([*ROWS_OF_THREE, "Total,15,7.5,7.5"], THREE),
        r"\[0, 1\], got 15.0 in line 32",
    ),
    "a page of the web": ("<html><body><table>\n", "got one line, <html><body><table>; quot"),
    "two headers": (HEAD + "\n" + table(), "must have|got prob"),
    "twice the same name": (table(head="label,prob,prob"), "distinct columns, got prob twice"),
    "no label": (table(head="a,prob,note"), "must have a column 'label'"),
    "third label": (with_row("2,0.5,x"), "for every class, called like its label .0, 1, 2."),
    "a predicted class alone": (
        table([f"{y},cat" for y in Y], "label,predicted"),
        r"in \[0, 1\], got cat",
    ),
    "sums of 2": (
        table(["a,1,0.5,0.5", *ROWS_OF_THREE], THREE),
        "sum to 1 in columns a, b, c, got 2 in line 2",
    ),
    "rounded": (
        table(["a,0.3,0.3,0.3"] * 9 + ROWS_OF_THREE, THREE),
        "which rounding does not explain",
    ),
    "logits": (
        table([f"{y},{p - 3:.3f},x" for y, p in zip(Y, P)]),
        r"'prob' .* in \[0, 1\], got -\d.\d+ in line 2",
    ),
    "class without a column": (
        with_row("d,0.5,0.25,0.25", 3, ROWS_OF_THREE, THREE),
        "every class",
    ),
    "two models": (
        table(
            [f"{y},{1 - p:.3f},{p:.3f},{p:.3f},{1 - p:.3f}" for y, p in zip(Y, P)],
            "label,p_0,p_1,prob_0,prob_1",
        ),
        "classes must say which columns",
    ),
    "two scores": (
        table([f"{y},{p},{p}" for y, p in zip(Y, P)], "label,s,t"),
        r"several columns of probabilities: s, t; --classes s=1 takes the first, and .*compare",
    ),
    "confidence of the answer": (
        table([f"{y},{max(p, 1 - p):.3f}" for y, p in zip(Y, P)], "label,confidence"),
        "pos_label must say",
    ),
    "of model 0": (table(head="label,model_0,note"), "pos_label must say"),
    "of no": (table(head="label,P(no),note"), "pos_label must say"),
    "of no fraud": (table(head="label,p_not_fraud,note"), "pos_label must say"),
    "numbered columns of words": (
        table(["bus,0.5,0.25,0.25", "car,0.25,0.5,0.25"] * 9, "label,prob_0,prob_1,prob_2"),
        "one by one .--classes prob_0=CLASS prob_1=CLASS",
    ),
    "binary": ("label,prob\n1,0.5\n\0\0\0", "binary data"),
    "quote never closed": (with_row('1,0.5,"x', 10), "EOF inside string|must be a table"),
    "quote over the header": ('"' + table(), "must have"),
    "broken last line": (table()[:-8] + "\n", "Expected|must"),
    # Read, and what was read is told.
    "inch marks": (with_row('1,0.5,"6 inch', 30, with_row('1,0.5,"5 inch').split("\n")[1:41]), 20),
    "note of two lines": (with_row('1,0.5,"a\nb"'), 40),
    "blank line": (with_row("1,0.5,x\n"), 40),
    "line of commas": (with_row("1,0.5,x\n,,"), 40),
    "short row": (with_row("1,0.5"), 40),
    "spaces around": (table([row.replace(",", " , ") for row in ROWS], "label , prob , note"), 40),
    "nine thousand classes": (
        table(
            [f"c{k}," + ",".join("1" if j == k else "0" for j in range(9000)) for k in (0, 8)],
            "label," + ",".join(WIDE),
        ),
        2,
    ),
    "index of R": (table([f"{k},{row}" for k, row in enumerate(ROWS)]), 40),
    "line separator within a name": (table(head="label,prob,no\u2028te"), 40),
    "quoted line break in the header": (table(head='label,prob,"no\nte"'), 40),
    "carriage returns": (table().replace("\n", "\r\n"), 40),
    "probability of 0": (table(head="label,P(0),note"), 40),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_broken_table(name, tmp_path):
    text, expected = TABLES[name]
    path = tmp_path / "p.csv"
    path.write_bytes(text.encode())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if isinstance(expected, str):
            with pytest.raises(ValueError, match=expected) as refusal:
                read_predictions(path)
            assert len(str(refusal.value)) < 600
            return
        found = read_predictions(path)
    assert len(found["y_true"]) == found["source"]["rows"] == expected
    told = " ".join(str(warning.message) for warning in caught)
    assert ("within quoted cells" in told) == (name in ("inch marks", "note of two lines"))


def test_what_was_read_is_told(tmp_path):
    path = tmp_path / "p.csv"
    path.write_bytes(TABLES["inch marks"][0].encode())
    with pytest.warns(UserWarning, match=r"20 rows were read, and 20 more lines .* in row 11: is"):
        source = read_predictions(path)["source"]
    assert source["lines within quoted cells"] == 20
    path.write_bytes(TABLES["probability of 0"][0].encode())
    found = read_predictions(path)
    assert found["pos_label"] == "0"
    assert found["source"]["columns of probabilities"] == "P(0) (of 0)"
