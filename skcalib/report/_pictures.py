"""The drawings of a report, made by the displays, as SVG that fits into a page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..plots import (
    ClassReliabilityDisplay,
    DifficultyDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
)
from ..utils import import_optional
from ._format import label

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
SIZES = {
    "reliability": (4.2, 4.8),
    "risk_coverage": (4.2, 3.2),
    "classes": (4.8, 3.7),
    "difficulty": (4.2, 3.2),
}


def draw(name: str, results: dict[str, Any], prefix: str) -> str:
    """Return a picture as an SVG element whose names start with `prefix`."""
    kind = "reliability" if name.startswith("reliability") else name
    with _canvas(SIZES[kind]) as ax:
        if kind == "reliability":
            _draw_reliability(results, name.removeprefix("reliability_"), ax)
        else:
            {
                "risk_coverage": _draw_risk_coverage,
                "classes": _draw_classes,
                "difficulty": _draw_difficulty,
            }[kind](results, ax)
        return tidy(_as_svg(ax.figure), prefix)


@contextmanager
def _canvas(size: tuple[float, float]) -> Iterator[Any]:
    """Open axes that owe nothing to the style of the user, nor to the figures of pyplot."""
    style = import_optional("matplotlib.style", extra="report")
    figures = import_optional("matplotlib.figure", extra="report")
    with style.context(["default", STYLE]):
        yield figures.Figure(figsize=size, layout="constrained").subplots()


def _draw_reliability(results: dict[str, Any], view: str, ax: Any) -> None:
    judged = results["calibration"]["views"][view]
    positive = results["overview"]["classes"][1] if view == "positive_class" else None
    _reliability(
        judged["curve"],
        np.array(judged["histogram"]["count"]),
        np.array(judged["histogram"]["edges"]),
        pos_label=None if positive is None else label(positive),
    ).plot(ax=ax)


def _reliability(curve: dict[str, Any], count: Any, edges: Any, **options: Any) -> Any:
    points = {name: np.array(values) for name, values in curve.items()}
    return ReliabilityDisplay(
        points["prob_true"],
        points["prob_pred"],
        count,
        edges,
        band=(points["lower"], points["upper"]),
        kind="isotonic",
        **options,
    )


def _draw_risk_coverage(results: dict[str, Any], ax: Any) -> None:
    selective, overview = results["selective"], results["overview"]
    curve = selective["curve"]
    RiskCoverageDisplay(
        np.array(curve["coverage"]),
        np.array(curve["risk"]),
        n_samples=overview["total_weight"] or overview["n_samples"],
    ).plot(ax=ax)


def _draw_difficulty(results: dict[str, Any], ax: Any) -> None:
    groups = results["hardest"]["error_rate"]
    rates = {end: np.array([group[end] for group in groups]) for end in ("value", "low", "high")}
    DifficultyDisplay(
        rates["value"],
        overall=results["selective"]["error_rate"],
        band=(rates["low"], rates["high"]),
    ).plot(ax=ax)


def _draw_classes(results: dict[str, Any], ax: Any) -> None:
    n_bins = results["method"]["n_bins"]
    no_histogram = np.zeros(1), np.array([0.0, 1.0])
    displays = {
        label(entry["label"]): _reliability(
            entry["curve"],
            *no_histogram,
            calibration_error=entry["classwise_error"],
            n_bins=n_bins,
            pos_label=1,
        )
        for entry in results["classes"]
        if "curve" in entry
    }
    ClassReliabilityDisplay(displays).plot(ax=ax, n_columns=3)


def _as_svg(figure: Any) -> str:
    buffer = io.StringIO()
    # No date and no name of the program: equal numbers are equal files.
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    return buffer.getvalue()


def tidy(svg: str, prefix: str) -> str:
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
    return f'{head} role="img">{rest}'
