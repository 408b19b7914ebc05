"""Render a document as HTML (an element or a whole page) or as Markdown without pictures."""

from __future__ import annotations

import io
import re
from hashlib import sha256
from html import escape as html_escape
from itertools import count
from typing import Any

import numpy as np

from ..utils.meta._optional import import_optional
from ._document import PER_CENT, Chart, Code, Picture, Samples, Table, Text, said_and_observed

# Characters with a meaning in Markdown, in HTML or on sites that show Markdown: $ for formulas, @
# and # for people and issues, : for addresses.
SPECIAL = "\\`*_[]<>#|&$~@:"
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
    number = count()
    environment.filters |= {
        "kind": lambda block: type(block).__name__,
        "drawn": lambda picture: jinja2.filters.Markup(draw(picture, f"{prefix}{next(number)}-")),
        "placed": _placed,
        "tied": lambda text: text.replace(" %", PER_CENT),
    }
    template = environment.get_template("page.html" if page else "report.html")
    return str(template.render(report=report))


def _placed(chart: Chart) -> dict[str, Any]:
    """Return the ticks of a chart, and the positions of all marks in per cent of its width."""
    ends = [row[name] for row in chart.rows for name in ("says", "low", "high")]
    low, high = min(ends), max(ends)
    step = next(s for s in STEPS if round((high - low) / s, 6) <= 5)
    # Rounded first: .56 is 28 steps of .02, and a little more in binary.
    low, high = np.floor(round(low / step, 6)) * step, np.ceil(round(high / step, 6)) * step

    def position(x: float) -> float:
        return round(100 * float(x - low) / float(high - low or 1), 2)

    ticks = [(position(x), f"{100 * x:.0f} %") for x in np.arange(low, high + step / 2, step)]
    rows = []
    for row in chart.rows:
        says, value, ends_text = said_and_observed({"says": row["says"], "is": row})
        positions = {name: position(row[name]) for name in ("says", "value", "low", "high")}
        in_words = f"says {says}, observed {value}, range {ends_text}"
        rows.append({**row, **positions, "in_words": in_words})
    return {"ticks": ticks, "rows": rows}


def escape(text: str) -> str:
    """Return text for Markdown, on one line and with special characters escaped."""
    line = re.sub(r"[^\S\u3000]+", " ", text)
    return "".join(f"&#{ord(letter)};" if letter in SPECIAL else letter for letter in line)


def as_markdown(report: Any) -> str:
    """Return a document as Markdown: text and tables, which have the numbers of the charts."""
    tiles = [
        f"- {escape(tile.question)} **{escape(tile.answer)}** {escape(tile.detail)}"
        for tile in report.tiles
    ]
    advice = [f"1. **{escape(step.what)}**{escape(step.why)}" for step in report.advice]
    parts = [
        f"# {escape(report.title)}",
        escape(report.subtitle),
        f"**{escape(report.headline)}**",
        escape(report.explanation),
        "\n".join(tiles),
        *_block(report.overview),
        *(["## What to do", "\n".join(advice)] if advice else []),
    ]
    for section in report.sections:
        parts.append(f"## {escape(section.title)}")
        for block in section.blocks:
            parts += _block(block)
    return "\n\n".join(part for part in parts if part) + "\n"


def _block(block: Any) -> list[str]:
    if isinstance(block, Table):
        return [_table(block)]
    if isinstance(block, Text):
        return [escape(block.text)]
    if isinstance(block, Samples):
        return [f"### {escape(block.caption)}", _samples(block)]
    return [f"```python\n{block.text}\n```"] if isinstance(block, Code) else []


def _table(table: Table) -> str:
    rule = ["---", *["---:"] * (len(table.header) - 1)]
    lines = [[escape(cell) or " " for cell in row] for row in (table.header, *table.rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:]))


def _samples(samples: Samples) -> str:
    lines = []
    for entry in samples.entries:
        text = f"{escape(entry['text'])}; " if "text" in entry else ""
        what = escape("; ".join(entry["lines"]))
        lines.append(f"- **{escape('#' + str(entry['sample']))}** {text}{what}")
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
