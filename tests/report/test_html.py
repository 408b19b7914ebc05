"""The page: whole, self-contained, and true to the letters of labels."""

import re
from pathlib import Path

import numpy as np
import pytest

import skcalib.report
from skcalib.datasets import make_predictions
from skcalib.report import CalibrationReport

from ._page import read_page

HOSTILE = ["<script>alert(1)</script>", r"$\frac{$", "& \"quoted\" 'name' {{ 7 * 7 }}"]


@pytest.fixture(scope="module")
def report():
    y, proba, _ = make_predictions(300, n_classes=3, temperature=2.0, random_state=0)
    rng = np.random.default_rng(0)
    return CalibrationReport.from_predictions(
        np.array(HOSTILE)[y],
        proba,
        labels=HOSTILE,
        images=rng.integers(0, 255, (300, 40, 40, 3), dtype=np.uint8),
        by={"<b>": np.array(HOSTILE)[rng.integers(0, 3, 300)]},
    )


@pytest.fixture(scope="module")
def html(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.save(path)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def binary():
    y, proba, _ = make_predictions(300, n_classes=2, random_state=0)
    texts = [f"text {i} <img src=x> $x$" for i in range(300)]
    names = np.array(HOSTILE[:2])
    return CalibrationReport.from_predictions(names[y], proba, labels=names, images=texts)


@pytest.mark.slow
def test_page_loads_nothing_and_runs_nothing(html):
    page = read_page(html)
    tags = [tag for tag, _ in page.elements]
    assert not {"script", "link", "iframe", "object", "embed", "base", "form"} & set(tags)
    for _, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name.endswith(("src", "href")):
                assert value.startswith(("data:image/", "#"))
    # Neither does a style, of the page or of an element.
    for url in re.findall(r"url\((.*?)\)", html):
        assert url.startswith("#")
    assert "@import" not in html
    policies = [
        attributes.get("content", "") for tag, attributes in page.elements if tag == "meta"
    ]
    assert any(policy.startswith("default-src 'none'") for policy in policies)


@pytest.mark.slow
def test_labels_are_shown_letter_by_letter(html):
    page = read_page(html)
    for name in HOSTILE:
        assert name in page.text


@pytest.mark.slow
def test_drawings_show_labels_letter_by_letter(binary):
    page = read_page(binary._repr_html_())
    # matplotlib wraps a long name; the first letters stand in the drawing nevertheless.
    drawn = [text for text in page.texts if "of class" in text]
    assert any(r"$\frac{$" in text for text in drawn)
    assert any("<img src=x> $x$" in text for text in page.texts)


@pytest.mark.slow
def test_names_of_elements_are_unique(report, html, binary):
    together = html + binary._repr_html_()
    names = [a["id"] for _, a in read_page(together).elements if "id" in a]
    assert len(names) == len(set(names)) > 0
    for name in re.findall(r'url\(#([^)]*)\)|href="#([^"]*)"', html):
        assert "".join(name) in names


@pytest.mark.slow
def test_styles_touch_the_report_alone(report):
    styles = read_page(report._repr_html_()).styles
    assert styles
    for style in styles:
        plain = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
        for selectors in re.findall(r"([^{}]+)\{[^{}]*\}", plain):
            # Around the report there may be a page that has chosen light or dark.
            for selector in re.sub(r":is\([^)]*\)", "", selectors).split(","):
                assert selector.strip().startswith(".skcalib-report")


@pytest.mark.slow
def test_drawings_take_the_colors_of_the_page(html):
    drawings = re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)
    assert len(drawings) == 2
    for drawing in drawings:
        assert "currentColor" in drawing
        assert "#000000" not in drawing
        assert "<style" not in drawing


@pytest.mark.slow
def test_large_report_is_small(tmp_path):
    y, proba, _ = make_predictions(10_000, n_classes=10, random_state=0)
    images = np.random.default_rng(0).integers(0, 255, (10_000, 32, 32, 3), dtype=np.uint8)
    CalibrationReport.from_predictions(y, proba, images=images).save(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 400_000


@pytest.mark.slow
def test_page_does_not_depend_on_the_style_of_the_user(report):
    import matplotlib as mpl

    expected = report._repr_html_()
    with mpl.rc_context({"text.usetex": True, "font.size": 30, "axes.facecolor": "red"}):
        assert report._repr_html_() == expected


@pytest.mark.slow
def test_labels_that_no_screen_shows_are_shown_as_codes(tmp_path):
    names = np.array(["nul\x00", "esc\x1b[31m", "half\ud83d"], dtype=object)
    y, proba, _ = make_predictions(90, n_classes=3, random_state=0)
    report = CalibrationReport.from_predictions(
        names[y].astype(str), proba, labels=names.astype(str), title="\ud83d", by=names[y]
    )
    for path in (tmp_path / "r.html", tmp_path / "r.md"):
        report.save(path)
        text = path.read_text(encoding="utf-8")
        assert not {"\x00", "\x1b"} & set(text)
        assert "half" + r"\ud83d" in text.replace("&#92;", "\\")


@pytest.mark.slow
def test_a_report_that_cannot_be_written_leaves_the_old_one(report, tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        report.save(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_first_screen_is_open_and_the_rest_is_folded(html):
    page = read_page(html)
    details = [attributes for tag, attributes in page.elements if tag == "details"]
    assert len(details) >= 8
    assert not any("open" in attributes for attributes in details)
    assert "main" in [tag for tag, _ in page.elements]
    # Pictures and the chart have words for those who do not see them, and tables can be reached.
    for _, attributes in page.elements:
        if attributes.get("role") == "img":
            assert attributes["aria-label"]
        if attributes.get("class") == "scroll":
            assert attributes["tabindex"] == "0"


@pytest.mark.slow
def test_the_title_is_that_of_the_page(tmp_path):
    y, proba, _ = make_predictions(60, random_state=0)
    report = CalibrationReport.from_predictions(y, proba, title="Tumors & more")
    report.save(tmp_path / "r.html")
    assert "<h1>Tumors &amp; more</h1>" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert report.to_markdown().startswith("# Tumors & more")


def test_the_page_lays_itself_out_by_its_own_width_and_takes_the_color_mode_of_its_site():
    style = (Path(skcalib.report.__file__).parent / "templates" / "style.css").read_text()
    assert "container: skcalib-report / inline-size" in style
    assert "vw" not in style
    assert not re.findall(r"@media[^{]*width", style)
    # The choice of a site or notebook comes after that of the system, and wins.
    system = style.index("prefers-color-scheme: dark")
    assert system < style.index('[data-theme="light"]') < style.index('[data-theme="dark"]')


@pytest.mark.slow
def test_a_verdict_stands_in_its_row_and_for_a_narrow_box_under_it():
    y, proba, _ = make_predictions(600, n_classes=3, random_state=0)
    html = CalibrationReport.from_predictions(y, proba)._repr_html_()
    rows = re.findall(
        r'<tr>(?:(?!</tr>).)*<td>([^<]*)</td></tr>\n<tr class="under">'
        r'<td colspan="8"><div>([^<]*)</div></td></tr>',
        html,
        re.DOTALL,
    )
    assert len(rows) == 4  # all samples and three classes
    assert all(beside == under for beside, under in rows)
