"""Forest plots as SVG: the gain of every comparison, in units of the effect that was asked for."""

from __future__ import annotations

import math
from html import escape
from textwrap import wrap

COLORS = {
    "holds": "#009E73", "holds, smaller": "#009E73", "holds in part": "#56B4E9",
    "undecided": "#777777", "does not hold here": "#D55E00", "not testable here": "#999999",
}  # fmt: skip
LOW, HIGH = -2.0, 4.0
AXIS, VERDICT, WIDTH = 470, 790, 930
LINE = 17


def _x(gain):
    """Return the position of a gain; what is outside of the axis stands at its end."""
    share = (min(max(gain, LOW), HIGH) - LOW) / (HIGH - LOW)
    return AXIS + share * (VERDICT - 20 - AXIS)


def forest(rows):
    """Draw rows of (claim, [(setting, mean, low, high) in units of the effect], verdict)."""
    y, parts = 44.0, []
    for text, results, verdict in rows:
        lines = wrap(text, 58)
        height = LINE * max(len(lines), len(results), 1) + 8
        color = COLORS[verdict]
        for i, line in enumerate(lines):
            parts.append(_text(10, y + LINE * i + 12, line))
        for i, result in enumerate(results):
            parts += _interval(y + LINE * i + 8, result, color)
        weight = ' font-weight="bold"' * (verdict == "holds")
        parts.append(_text(VERDICT, y + 12, verdict, f' fill="{color}"{weight}'))
        y += height
        parts.append(f'<path d="M10 {y - 3:g}H{WIDTH - 10}" stroke="#e5e5e5"/>')
    ticks = [
        f'<path d="M{_x(at):g} 34V{y:g}" stroke="#888" stroke-dasharray="{dash}"/>'
        + _text(_x(at), 28, label, ' text-anchor="middle" fill="#555"')
        for at, label, dash in ((0, "nothing", "0"), (1, "the effect", "4 3"))
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 8:g}" '
        'font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{y + 8:g}" fill="white"/>'
    )
    return "\n".join([head, *ticks, *parts, "</svg>"]) + "\n"


def _text(x, y, text, more=""):
    return f'<text x="{x:g}" y="{y:g}"{more}>{escape(text)}</text>'


def _interval(y, result, color):
    setting, mean, low, high = result
    low, high = (v if math.isfinite(v) else (LOW if v < 0 else HIGH) for v in (low, high))
    parts = [
        f'<path d="M{_x(low):.1f} {y:g}H{_x(high):.1f}" stroke="{color}" stroke-width="2"/>',
        _text(AXIS - 12, y + 4, setting, ' text-anchor="end" fill="#666" font-size="10"'),
    ]
    # An arrow where the interval leaves the axis, and how far its mean is out, in effects.
    for end, way, anchor in ((LOW, -1, "start"), (HIGH, 1, "end")):
        at = _x(end)
        if way * (high if way > 0 else low) > way * end:
            parts.append(f'<path d="M{at:g} {y - 4:g}l{6 * way} 4l{-6 * way} 4z" fill="{color}"/>')
        if way * (low if way > 0 else high) > way * end:
            more = f' text-anchor="{anchor}" fill="{color}" font-size="11"'
            parts.append(_text(at - 8 * way, y + 4, f"{mean:.0f} times", more))
    if LOW <= mean <= HIGH:
        parts.append(f'<circle cx="{_x(mean):.1f}" cy="{y:g}" r="3.5" fill="{color}"/>')
    return [f"<g>{''.join(parts)}</g>"]
