"""The parts of a report, numbers as text, and both as HTML or Markdown."""

from __future__ import annotations

import io
import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape as html_escape
from typing import Any

import numpy as np

from ..utils._output import import_optional

NONE = "-"
# With a no-break space.
PER_CENT = "\u00a0%"


def format_number(value: float | None, digits: int = 3) -> str:
    """Return a number with fixed decimals; one that would round to 0 has one digit."""
    if value is None or math.isnan(value):
        return NONE
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if value and abs(value) < 0.5 * 10**-digits:
        return f"{value:.1g}"
    return f"{value:.{digits}f}"


def format_percent(value: float | None, digits: int = 1) -> str:
    """Return a fraction in per cent; one below 1 is never shown as 100 %."""
    if value is None or math.isnan(value):
        return NONE
    text = f"{100 * value:.{digits}f}"
    if value < 1 and float(text) == 100:
        text = f">{100 - 10**-digits:.{digits}f}"
    return text + PER_CENT


def format_probability(value: float) -> str:
    """Return a probability with three decimals, or "<0.001"."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def format_interval(value: Mapping[str, Any], digits: int = 3) -> str:
    """Return the ends of an interval."""
    if math.isnan(value["low"]):
        return NONE
    return f"{format_number(value['low'], digits)} to {format_number(value['high'], digits)}"


def format_with_interval(value: Mapping[str, Any]) -> str:
    """Return a number and its interval."""
    return f"{format_number(value['value'])} ({format_interval(value)})"


def format_percent_interval(value: Mapping[str, Any]) -> str:
    """Return a fraction in per cent with its interval."""
    if math.isnan(value["value"]):
        return NONE
    low, high = 100 * value["low"], 100 * value["high"]
    return f"{format_percent(value['value'])} ({format_number(low, 1)}-{format_number(high, 1)})"


def format_threshold(value: float | None) -> str:
    """Return a confidence with four decimals, or as "1 - 2e-06" if it would round to 1."""
    if value is not None and 0 < 1 - value < 5e-5:
        return f"1 - {1 - value:.1g}"
    return format_number(value, 4)


def count(value: float) -> str:
    """Return a count in groups of three digits."""
    return f"{value:,.0f}".replace(",", "\u00a0")


# Unicode categories of invisible characters: controls, formats (with changes of direction),
# surrogates, ends of lines and paragraphs.
_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
# Zero-width joiners are needed in emoji and Persian words, and only there: between non-ASCII.
_BARE_JOINER = re.compile("(?<![^\0-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\0-\x7f])")
_KEPT = "\t\n\r\u200c\u200d"
# Text between these marks has its own direction and does not change that of its surroundings.
_ISOLATED = re.compile("\u2068([^\u2066-\u2069]*)\u2069")


def show_invisible(text: str) -> str:
    """Return text with invisible characters replaced by their codes.

    The marks of :func:`isolate` are kept.
    """
    pieces = map(_show_hidden, _ISOLATED.split(text))
    return "".join(f"\u2068{x}\u2069" if k % 2 else x for k, x in enumerate(pieces))


def _show_hidden(text: str) -> str:
    text = _BARE_JOINER.sub(lambda found: _make_code(found[0]), text)
    return "".join(
        _make_code(c) if c not in _KEPT and unicodedata.category(c) in _INVISIBLE else c
        for c in text
    )


def format_label(value: Any) -> str:
    """Return a label or name as one visible line that differs from that of every other name.

    Spaces that a page would drop also become codes: at either end, after another space, of unusual
    width (except the ideographic space), tabs and new lines.
    """
    text = re.sub(
        r"^\s|\s$|(?<=\s)\s|[^\S \u3000]",
        lambda found: _make_code(found[0]),
        _show_hidden(str(value)),
    )
    return text or "''"


def isolate(name: str) -> str:
    """Return a name for a sentence; a right-to-left name gets isolating marks."""
    turns = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in name)
    return f"\u2068{name}\u2069" if turns else name


def in_sentence(value: Any) -> str:
    """Return a label or a name for a sentence or a table."""
    return isolate(format_label(value))


def make_distinct(names: Sequence[Any]) -> list[Any]:
    """Return names so that no two look alike because of Unicode normalization.

    A letter with an accent is one character or two (in names of files on macOS, for example). If
    names differ only by that, those with two characters show codes.
    """
    forms = [unicodedata.normalize("NFC", x) if isinstance(x, str) else x for x in names]
    times = Counter(forms)
    return [
        "".join(map(_is_beyond_ascii, x)) if times[form] > 1 and x != form else x
        for x, form in zip(names, forms)
    ]


def _is_beyond_ascii(letter: str) -> str:
    return letter if letter.isascii() else _make_code(letter)


def _make_code(letter: str) -> str:
    escaped = letter.encode("unicode_escape").decode()
    return escaped if escaped != letter else f"\\x{ord(letter):02x}"


def format_points(value: float) -> str:
    """Return a difference of fractions in percentage points."""
    shown = f"{100 * value:.0f}" if round(100 * value, 1) >= 10 else format_number(100 * value, 1)
    return f"{shown} point" + ("" if shown in ("1", "1.0") else "s")


def format_means(predicted: float, observed: Mapping[str, float]) -> tuple[str, str, str]:
    """Return prediction, observation and range in per cent, with enough decimals to differ."""
    for digits in range(3):
        ends = [format_number(100 * observed[end], digits) for end in ("value", "low", "high")]
        text = f"{100 * predicted:.{digits}f}"
        if text not in ends:
            break
    return text + PER_CENT, ends[0] + PER_CENT, f"{ends[1]} to {ends[2]}{PER_CENT}"


@dataclass(frozen=True)
class Text:
    """A paragraph; a note is small print."""

    text: str
    note: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of text; the first column names the row."""

    header: list[str]
    rows: list[list[str]]
    name: str = "numbers"


@dataclass(frozen=True)
class Code:
    """Lines of Python."""

    text: str


@dataclass(frozen=True)
class Samples:
    """Samples with a picture or a text, a heading and lines below it."""

    caption: str
    entries: list[dict[str, Any]]


@dataclass(frozen=True)
class Picture:
    """A matplotlib drawing, its size in inches, and its caption."""

    draw: Callable[[Any], Any]
    size: tuple[float, float]
    caption: str


@dataclass(frozen=True)
class Chart:
    """Predictions (rings) against observations (dots on bars), one row per group or class.

    Rows are dicts with ``name``, ``predicted``, ``value``, ``low``, ``high``, ``n``, ``relevant``
    and ``negligible``.
    """

    heading: str
    rows: list[dict[str, Any]]
    caption: str


@dataclass(frozen=True)
class Section:
    """A section that unfolds: its title, blocks, and pictures beside them."""

    title: str
    blocks: list[Any]
    pictures: list[Picture] = field(default_factory=list)


@dataclass(frozen=True)
class Tile:
    """A question and a short answer; the tone is "good", "open", "bad" or ""."""

    question: str
    answer: str
    detail: str
    tone: str = ""


@dataclass(frozen=True)
class Advice:
    """What to do (in bold), and the rest of the sentence: how, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class Document:
    """The whole report: the first screen, and the folded sections below it."""

    title: str
    subtitle: str
    tone: str
    headline: str
    explanation: str
    tiles: list[Tile]
    overview: Chart | Picture | Table
    advice: list[Advice]
    sections: list[Section]


# Render a document as HTML (an element or a whole page) or as Markdown without pictures.

# What has a meaning in Markdown, in HTML or on sites that show Markdown, only where it has one:
# $ for formulas, @ and # for people and issues, : for addresses and emoji.
_MEANT = re.compile(
    r"""
    [`|$~\[\]]
    | \\(?=[!-/:-@\[-`{-~]|$)  # before punctuation
    | (?<!\s)\* | \*(?!\s)  # but not between spaces
    | (?<![^\W_])_ | _(?![^\W_])  # but not within a word
    | <(?=[A-Za-z/!?])
    | &(?=\#?\w+;)
    | [@\#](?=\w)
    | :(?=//|[\w+-]+:) | (?<=mailto): | (?<=xmpp):
    | (?<=www)\.  # makes a link of an address without a colon
    """,
    re.VERBOSE | re.IGNORECASE,
)
# At the beginning of a paragraph: items of a list, quotes, headings and rules.
_MEANT_FIRST = re.compile(r"^[-+=>#]|^\d+[.)](?=\s)")
# A color that no display uses; it is replaced by the page's text color, light or dark.
INK = "#010203"
# Between the numbers of a chart, of which there are at most six.
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
STYLE = {
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.framealpha": 0,
    # Text stays text: a tenth of the size, searchable, and in the page's font.
    "svg.fonttype": "none",
    # Fixed names within drawings, so that equal reports are equal files.
    "svg.hashsalt": "skcalib",
    **dict.fromkeys(
        (
            "text.color",
            "axes.edgecolor",
            "axes.labelcolor",
            "axes.titlecolor",
            "xtick.color",
            "ytick.color",
            "legend.labelcolor",
        ),
        INK,
    ),
}


def as_html(report: Any, key: str, *, page: bool) -> str:
    """Return a document as an HTML element or, with `page`, a page; `key` makes names unique."""
    jinja2 = import_optional("jinja2", extra="report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("skcalib.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Names in an SVG are global to the page, which may show other reports too.
    prefix = "r" + sha256(key.encode(errors="backslashreplace")).hexdigest()[:8]
    number = itertools.count()
    environment.filters |= {
        "kind": lambda block: type(block).__name__,
        "drawn": lambda picture: jinja2.filters.Markup(draw(picture, f"{prefix}{next(number)}-")),
        "placed": _place_chart,
        "tied": lambda text: text.replace(" %", PER_CENT),
    }
    template = environment.get_template("page.html" if page else "report.html")
    return str(template.render(report=report))


def _place_chart(chart: Chart) -> dict[str, Any]:
    """Return the ticks of a chart, and the positions of all marks in per cent of its width."""
    ends = [row[name] for row in chart.rows for name in ("predicted", "low", "high")]
    low, high = min(ends), max(ends)
    step = next(s for s in STEPS if round((high - low) / s, 6) <= 5)
    # Rounded first: .56 is 28 steps of .02, and a little more in binary.
    low, high = np.floor(round(low / step, 6)) * step, np.ceil(round(high / step, 6)) * step

    def position(x: float) -> float:
        return round(100 * float(x - low) / float(high - low or 1), 2)

    ticks = [(position(x), f"{100 * x:.0f} %") for x in np.arange(low, high + step / 2, step)]
    rows = []
    for row in chart.rows:
        predicted, value, ends_text = format_means(row["predicted"], row)
        positions = {name: position(row[name]) for name in ("predicted", "value", "low", "high")}
        in_words = f"predicted {predicted}, observed {value}, range {ends_text}"
        rows.append({**row, **positions, "in_words": in_words})
    return {"ticks": ticks, "rows": rows}


def escape(text: str, *, first: bool = False) -> str:
    """Return text for Markdown on one line, so that it is shown letter by letter.

    `first` says that it begins a paragraph.
    """
    line = re.sub(r"[^\S\u3000]+", " ", text)
    escaped = _MEANT.sub(_write_code, line)
    return _MEANT_FIRST.sub(_write_code, escaped.strip(" "), count=1) if first else escaped


def _write_code(found: re.Match[str]) -> str:
    """Return the code of the last letter, after what comes before it."""
    return f"{found[0][:-1]}&#{ord(found[0][-1])};"


def as_markdown(report: Any) -> str:
    """Return a document as Markdown: text and tables, which have the numbers of the charts."""
    tiles = [
        f"- {escape(tile.question)} **{escape(tile.answer)}** {escape(tile.detail)}"
        for tile in report.tiles
    ]
    advice = [
        f"{i}. **{escape(step.what)}**{escape(step.why)}"
        for i, step in enumerate(report.advice, 1)
    ]
    parts = [
        f"# {escape(report.title)}",
        escape(report.subtitle, first=True),
        f"**{escape(report.headline)}**",
        escape(report.explanation, first=True),
        "\n".join(tiles),
        *_make_block(report.overview),
        *(["## What to do", "\n".join(advice)] if advice else []),
    ]
    for section in report.sections:
        parts.append(f"## {escape(section.title)}")
        for block in section.blocks:
            parts += _make_block(block)
    return "\n\n".join(part for part in parts if part) + "\n"


def _make_block(block: Any) -> list[str]:
    if isinstance(block, Table):
        return [_write_table(block)]
    if isinstance(block, Text):
        return [escape(block.text, first=True)]
    if isinstance(block, Samples):
        return [f"### {escape(block.caption)}", _write_samples(block)]
    return [f"```python\n{block.text}\n```"] if isinstance(block, Code) else []


def _write_table(table: Table) -> str:
    rule = ["---", *["---:"] * (len(table.header) - 1)]
    lines = [[escape(cell) or " " for cell in row] for row in (table.header, *table.rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:]))


def _write_samples(samples: Samples) -> str:
    lines = []
    for entry in samples.entries:
        text = f"{escape(entry['text'])}; " if "text" in entry else ""
        what = escape("; ".join(entry["lines"]))
        lines.append(f"- **sample {escape(str(entry['sample']))}** {text}{what}")
    return "\n".join(lines)


def draw(picture: Picture, prefix: str) -> str:
    """Return a picture as an SVG element whose names start with `prefix`.

    It does not depend on the user's matplotlib style, nor on figures of pyplot.
    """
    style = import_optional("matplotlib.style", extra="report")
    figures = import_optional("matplotlib.figure", extra="report")
    buffer = io.StringIO()
    # No date and no program name, so that equal numbers are equal files.
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with style.context(["default", STYLE]):
        figure = figures.Figure(figsize=picture.size, layout="constrained")
        picture.draw(figure.subplots())
        figure.savefig(buffer, format="svg", metadata=nothing)
    return tidy(buffer.getvalue(), prefix, picture.caption)


def tidy(svg: str, prefix: str, caption: str) -> str:
    """Return the SVG as an element of a page: scalable, with the page's colors and unique names.

    (matplotlib uses the same names in every drawing, and adds styles for the whole page.)
    """
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<(style|metadata).*?</\1>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    head, rest = svg.split(">", 1)
    head = re.sub(r' (width|height|version|xmlns:\w+)="[^"]*"', "", head)
    # Keep only names that are referred to.
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', rest))
    rest = re.sub(
        r' id="([^"]*)"', lambda m: f' id="{prefix}{m[1]}"' if m[1] in used else "", rest
    )
    rest = re.sub(r"url\(#", f"url(#{prefix}", rest)
    rest = re.sub(r'(xlink:)?href="#', f'href="#{prefix}', rest)
    rest = rest.replace(INK, "currentColor").replace("#0072b2", "var(--curve)")
    rest = re.sub(r"\n\s*", "\n", rest)
    return f'{head} role="img" aria-label="{html_escape(caption)}">{rest}'
