"""The report as Markdown: tables that stay tables, and text that stays text."""

import html
import re
import unicodedata

import numpy as np
import pytest

from skcalib.datasets import make_predictions
from skcalib.report import CalibrationReport, _document

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
def test_an_ordinary_report_is_read_as_text():
    y, proba, _ = make_predictions(300, n_classes=3, temperature=2.0, random_state=0)
    names = np.array(["cat", "sea_lion", "dog: big (50 % or so) - & <5"])
    by = {"site_no": np.array(["a/b", "c-d, 1.5 * e", "f: >g"])[np.arange(300) % 3]}
    report = CalibrationReport.from_predictions(names[y], proba, labels=names, by=by)
    text = report.to_markdown()
    assert re.findall(r"&#?\w+;", text) == []
    assert "\\" not in text
    assert "**Calibrate it**: " in text
    for name in (*names, "site_no = a/b", "site_no = c-d, 1.5 * e", "site_no = f: >g"):
        assert name in text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a_b, _c_ d_", "a_b, &#95;c&#95; d&#95;"),
        ("*a* 2 * 3 **", "&#42;a&#42; 2 * 3 &#42;&#42;"),
        (
            "a: b, http://c :smile: mailto:d 10:30",
            "a: b, http&#58;//c &#58;smile: mailto&#58;d 10:30",
        ),
        ("<b> </b> <!-- <?x < 5 <0.001 > 3", "&#60;b> &#60;/b> &#60;!-- &#60;?x < 5 <0.001 > 3"),
        ("&amp; &#38; & a", "&#38;amp; &#38;&#35;38; & a"),
        (r"\n \* \\", r"\n &#92;&#42; &#92;&#92;"),
        ("@user a@b.c #12 # 12", "&#64;user a&#64;b.c &#35;12 # 12"),
        (
            "[x](y) `z` $w$ ~v~ a|b",
            "&#91;x&#93;(y) &#96;z&#96; &#36;w&#36; &#126;v&#126; a&#124;b",
        ),
    ],
)
def test_what_has_a_meaning_is_escaped_and_nothing_else(text, escaped):
    assert _document.escape(text) == escaped
    assert html.unescape(escaped) == text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("- a", "&#45; a"),
        ("# a", "&#35; a"),
        ("> a", "&#62; a"),
        ("=== a", "&#61;== a"),
        ("1. a", "1&#46; a"),
        ("2) a", "2&#41; a"),
        ("12. a", "12&#46; a"),
        ("   a", "a"),
        ("1.5 a", "1.5 a"),
        ("a. - b", "a. - b"),
    ],
)
def test_a_paragraph_stays_one(text, escaped):
    assert _document.escape(text, first=True) == escaped


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
