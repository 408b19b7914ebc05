"""The report as Markdown: tables that stay tables, and text that stays text."""

import html
import re
import unicodedata

import numpy as np
import pytest

from skcalib.datasets import make_predictions
from skcalib.report import CalibrationReport

HOSTILE = np.array(["a|b", "<script>", "$x$ *y* @user #12 [z](q) `c`\nnew line"])
# Names that pages show alike, or that turn or break what is around them.
ALIKE = [
    "two\nlines", "two lines", "two  lines", "two\tlines", "two\xa0lines", "two\u2028lines",
    " lead", "lead", "lead ", "", "zerowidth", "zero\u200bwidth", "zero\u200dwidth", "so\xadft",
    "soft", "café", "cafe\u0301", "abc\u202edef", "\u2068a\u2069", "nul\0", "half\ud83d",
    "x" * 200 + "1", "x" * 200 + "2",
]  # fmt: skip
AS_THEY_ARE = [
    "cafe\u0301 au lait",
    "漢字の名前",
    "山田\u3000太郎",
    "עברית",
    "😀",
    "👩\u200d👧",
    "می\u200cخواهم",
]
# Names that run from right to left turn nothing around them.
SIDE_BY_SIDE = {name: f"\u2068{name}\u2069" for name in ("עברית", "می\u200cخواهم")}


@pytest.mark.slow
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


@pytest.mark.slow
def test_labels_are_shown_letter_by_letter():
    y, proba, _ = make_predictions(200, n_classes=3, random_state=0)
    text = CalibrationReport.from_predictions(HOSTILE[y], proba, labels=HOSTILE).to_markdown()
    assert "<script>" not in text
    assert "@user" not in text
    assert "$x$" not in text
    for name in HOSTILE:
        assert name.replace("\n", "\\n") in html.unescape(text)


@pytest.mark.slow
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
    assert {SIDE_BY_SIDE.get(name, name) for name in AS_THEY_ARE} <= shown
    assert {r"two\nlines", r"two \x20lines", r"\x20lead", r"lead\x20", r"zero\u200bwidth"} <= shown
    assert {"café", r"cafe\u0301", r"\u2068a\u2069"} <= shown


@pytest.mark.slow
def test_names_of_models_that_look_alike_stay_apart():
    y, proba, _ = make_predictions(100, n_classes=2, random_state=0)
    models = {"a\nb": proba, "a b": proba, "\ud83d|": proba, "é": proba, "e\u0301": proba}
    report = CalibrationReport.compare(models, y)
    text = html.unescape(report.to_markdown())
    assert r"| a\nb | a b | \ud83d| | é | e\u0301 | a b - a\nb | \ud83d| - a\nb |" in text
    assert text.encode()
    assert report._repr_html_().encode()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["class", "group", "model"])
def test_names_from_right_to_left_turn_no_sentence(kind):
    y, proba, _ = make_predictions(600, n_classes=2, random_state=0)
    names = np.array(["חתול", "كلب"])
    if kind == "class":
        report = CalibrationReport.from_predictions(names[y], proba, labels=names)
    elif kind == "group":
        report = CalibrationReport.from_predictions(y, proba, by={"עיר": names[y]})
    else:
        report = CalibrationReport.compare(dict(zip(names, [proba, (proba + 0.5) / 2])), y)
    pages = html.unescape(report.to_markdown()), html.unescape(report._repr_html_())
    for page in pages:
        # What a drawing says stands alone, and its font has no such marks.
        text = re.sub("<svg.*?</svg>", "", page, flags=re.DOTALL)
        assert text.count("\u2068") == text.count("\u2069")
        outside = re.sub("\u2068[^\u2068\u2069]*\u2069", "", text)
        assert "\u2068" in text
        assert not any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in outside)
