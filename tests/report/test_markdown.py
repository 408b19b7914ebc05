"""The report as Markdown: tables that stay tables, and text that stays text."""

import html

import numpy as np
import pytest

from skcalib.datasets import make_predictions
from skcalib.report import CalibrationReport

HOSTILE = np.array(["a|b", "<script>", "$x$ *y* @user #12 [z](q) `c`\nnew line"])
# Names that pages show alike, or that turn or break what is around them.
ALIKE = [
    "two\nlines", "two lines", "two  lines", "two\tlines", "two\xa0lines", "two\u2028lines",
    " lead", "lead", "lead ", "", "zerowidth", "zero\u200bwidth", "zero\u200dwidth", "so\xadft",
    "soft", "abc\u202edef", "nul\0", "half\ud83d", "x" * 200 + "1", "x" * 200 + "2",
]  # fmt: skip
AS_THEY_ARE = ["漢字の名前", "山田\u3000太郎", "עברית", "😀", "👩\u200d👧", "می\u200cخواهم"]


def test_tables_have_rows_of_one_length():
    y, proba, _ = make_predictions(200, n_classes=3, random_state=0)
    report = CalibrationReport.from_predictions(HOSTILE[y], proba, labels=HOSTILE)
    lengths, inside = [], False
    for line in report.to_markdown().splitlines():
        if line.startswith("|"):
            n_cells = line.count("|")
            if inside:
                assert n_cells == lengths[-1]
            lengths.append(n_cells)
        inside = line.startswith("|")
    assert len(lengths) > 20


def test_labels_are_shown_letter_by_letter():
    y, proba, _ = make_predictions(200, n_classes=3, random_state=0)
    text = CalibrationReport.from_predictions(HOSTILE[y], proba, labels=HOSTILE).to_markdown()
    assert "<script>" not in text
    assert "@user" not in text
    assert "$x$" not in text
    for name in HOSTILE:
        assert name.replace("\n", "\\n") in html.unescape(text)


@pytest.mark.parametrize("part", ["class", "group"])
def test_names_that_look_alike_stay_apart(part):
    names = [*ALIKE, *AS_THEY_ARE]
    if part == "class":
        y, proba, _ = make_predictions(1200, n_classes=len(names), random_state=0)
        report = CalibrationReport.from_predictions(np.array(names)[y], proba, labels=names)
    else:
        y, proba, _ = make_predictions(600, n_classes=2, random_state=0)
        by = np.array(names, object)[np.arange(len(y)) % len(names)]
        report = CalibrationReport.from_predictions(y, proba, by=by)
    text = report.to_markdown()
    assert text.encode()
    start = {"class": "| class ", "group": "| group = "}[part]
    shown = {
        html.unescape(line.removeprefix(start).partition(" | ")[0])
        for line in text.splitlines()
        if line.startswith(start) and " samples | " not in line
    }
    assert len(shown) == len(names)
    assert set(AS_THEY_ARE) <= shown
    assert {r"two\nlines", r"two \x20lines", r"\x20lead", r"lead\x20", r"zero\u200bwidth"} <= shown


def test_names_of_models_that_look_alike_stay_apart():
    y, proba, _ = make_predictions(100, n_classes=2, random_state=0)
    models = {"a\nb": proba, "a b": proba, "\ud83d|": proba}
    report = CalibrationReport.compare(models, y)
    text = html.unescape(report.to_markdown())
    assert r"| a\nb | a b | \ud83d| | a b - a\nb | \ud83d| - a\nb |" in text
    assert text.encode()
    assert report._repr_html_().encode()
