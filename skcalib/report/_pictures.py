"""The drawings of a report, made by the displays, as SVG that fits into a page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from ..utils import import_optional
from ._document import Picture

# Colors that nobody draws with, which become those of the page: its text, in light and in dark.
INK = "#010203"
STYLE = {
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.framealpha": 0,
    # Text stays text: a tenth of the size, it can be searched, and has the font of the page.
    "svg.fonttype": "none",
    # Names within a drawing do not depend on chance, so equal reports are equal files.
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


def draw(picture: Picture, prefix: str) -> str:
    """Return a picture as an SVG element whose names start with `prefix`."""
    with _canvas(picture.size) as ax:
        picture.draw(ax)
        return tidy(_as_svg(ax.figure), prefix, picture.caption)


@contextmanager
def _canvas(size: tuple[float, float]) -> Iterator[Any]:
    """Open axes that owe nothing to the style of the user, nor to the figures of pyplot."""
    style = import_optional("matplotlib.style", extra="report")
    figures = import_optional("matplotlib.figure", extra="report")
    with style.context(["default", STYLE]):
        yield figures.Figure(figsize=size, layout="constrained").subplots()


def _as_svg(figure: Any) -> str:
    buffer = io.StringIO()
    # No date and no name of the program: equal numbers are equal files.
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    return buffer.getvalue()


def tidy(svg: str, prefix: str, caption: str) -> str:
    """Return the SVG as an element of a page: it scales, takes its colors, and keeps its names.

    matplotlib numbers its elements from 1 in every drawing, and styles all elements of the page.
    """
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<(style|metadata).*?</\1>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    head, rest = svg.split(">", 1)
    head = re.sub(r' (width|height|version|xmlns:\w+)="[^"]*"', "", head)
    # Only what is referred to needs a name.
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', rest))
    rest = re.sub(
        r' id="([^"]*)"',
        lambda m: f' id="{prefix}{m[1]}"' if m[1] in used else "",
        rest,
    )
    rest = re.sub(r"url\(#", f"url(#{prefix}", rest)
    rest = re.sub(r'(xlink:)?href="#', f'href="#{prefix}', rest)
    rest = rest.replace(INK, "currentColor").replace("#0072b2", "var(--curve)")
    rest = re.sub(r"\n\s*", "\n", rest)
    return f'{head} role="img" aria-label="{escape(caption)}">{rest}'
