"""The picture of a page: what the paper prints and what we found, on one axis."""

from __future__ import annotations

import math
from html import escape
from textwrap import wrap

from .forest import COLORS

WIDTH, AXIS, END, LINE = 900, 400, 870, 20
PAPER = "#555555"


def beside(rows, unit):
    """Draw rows of (text, [(data set, change)], [(setting, mean, low, high)], verdict).

    Diamonds are the paper's changes, dots with intervals ours; the axis has their unit.
    """
    lowest, highest = _range(rows, unit)
    x = lambda value: (
        AXIS + (min(max(value, lowest), highest) - lowest) / (highest - lowest) * (END - AXIS)
    )
    y, parts = 66.0, []
    for text, papers, ours, verdict in rows:
        lines = wrap(text, 36)
        for i, line in enumerate(lines):
            parts.append(_text(10, y + LINE * i + 13, line, size=14))
        shown: dict = {}
        for label, change in papers:
            shown.setdefault(label, []).append(change)
        for i, (label, changes) in enumerate(shown.items()):
            parts += _diamonds(x, y + LINE * i + 8, f"paper, {label}", changes)
        for i, result in enumerate(ours, len(shown)):
            parts += _dot(x, y + LINE * i + 8, result, COLORS[verdict], (lowest, highest))
        y += LINE * max(len(lines), len(shown) + len(ours)) + 12
        parts.append(f'<path d="M10 {y - 5:g}H{END}" stroke="#e5e5e5"/>')
    for value in _ticks(lowest, highest):
        dash = "" if value == 0 else ' stroke-dasharray="2 4"'
        parts.insert(0, f'<path d="M{x(value):.1f} 52V{y:g}" stroke="#999"{dash}/>')
        parts.append(_text(x(value), 48, f"{value:+g}" if value else "0", "middle"))
    parts.append(_text(END, 20, f"change, {unit}", "end", size=14))
    return _drawing(y + 6, "◇ printed in the paper    ● measured here, with 95 % interval", parts)


def _range(rows, unit):
    values = [0.0]
    for _, papers, ours, _ in rows:
        values += [change for _, change in papers]
        values += [end for _, *ends in ours for end in ends if math.isfinite(end)]
    limit = 100.0 if unit == "%" else math.inf
    lowest, highest = max(min(values), -limit), min(max(values), limit)
    margin = 0.05 * (highest - lowest)
    return lowest - margin, highest + margin


def _ticks(lowest, highest):
    step = 10 ** math.floor(math.log10(highest - lowest))
    step = next(s for s in (step / 5, step / 2, step, 2 * step) if (highest - lowest) / s <= 8)
    return [step * k for k in range(math.ceil(lowest / step), math.floor(highest / step) + 1)]


def _text(x, y, text, anchor="start", fill="#222", size=12):
    return (
        f'<text x="{x:.1f}" y="{y:g}" text-anchor="{anchor}" fill="{fill}" '
        f'font-size="{size}">{escape(text)}</text>'
    )


def _diamonds(x, y, label, changes):
    parts = [_text(AXIS - 12, y + 4, label, "end", PAPER)]
    for change in changes:
        parts.append(
            f'<path d="M{x(change):.1f} {y - 6:g}l6 6l-6 6l-6 -6z" fill="white" '
            f'stroke="{PAPER}" stroke-width="1.6"/>'
        )
    return parts


def _dot(x, y, result, color, ends):
    label, mean, low, high = result
    parts = [
        _text(AXIS - 12, y + 4, f"here, {label}", "end", color),
        f'<path d="M{x(low):.1f} {y:g}H{x(high):.1f}" stroke="{color}" stroke-width="2.5"/>',
    ]
    if ends[0] <= mean <= ends[1]:
        parts.append(f'<circle cx="{x(mean):.1f}" cy="{y:g}" r="5" fill="{color}"/>')
    return parts


def histograms(rows):
    """Draw rows of (name, [(title, fractions of equal bins from 0 to 1)]), one panel each."""
    wide, high, left = 180, 96, 130
    parts = []
    for i, (name, panels) in enumerate(rows):
        bottom = 40 + (i + 1) * (high + 34)
        parts.append(_text(10, bottom - high / 2, name, size=14))
        for j, (title, shares) in enumerate(panels):
            start, step = left + j * (wide + 14), wide / len(shares)
            parts.append(_text(start + wide / 2, bottom - high - 6, title, "middle"))
            parts += [
                f'<path d="M{start + k * step:.1f} {bottom}v{-high * share:.1f}h{step - 1:.1f}'
                f'V{bottom}z" fill="#0072B2"/>'
                for k, share in enumerate(shares)
                if share
            ]
            parts.append(f'<path d="M{start} {bottom}h{wide}" stroke="#999"/>')
            parts.append(_text(start, bottom + 14, "0", "middle"))
            parts.append(_text(start + wide, bottom + 14, "1", "middle"))
    height = 40 + len(rows) * (high + 34) + 24
    return _drawing(height, "fraction of samples by weight", parts)


def dots(title, rows):
    """Draw rows of (name, mean, low, high) on an axis from 0."""
    highest = 1.1 * max(high for *_, high in rows)
    x = lambda value: AXIS - 150 + value / highest * (END - AXIS + 150)
    parts = []
    for i, (name, mean, low, high) in enumerate(rows):
        y = 60 + 26 * i
        parts += [
            _text(AXIS - 165, y + 4, name, "end", size=14),
            f'<path d="M{x(low):.1f} {y}H{x(high):.1f}" stroke="#0072B2" stroke-width="2.5"/>',
            f'<circle cx="{x(mean):.1f}" cy="{y}" r="5" fill="#0072B2"/>',
            _text(x(high) + 12, y + 4, f"{mean:.1f}"),
        ]
    height = 60 + 26 * len(rows)
    parts.append(f'<path d="M{x(0):.1f} 40V{height - 10}" stroke="#999"/>')
    return _drawing(height, title, parts)


def _drawing(height, title, parts):
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
        'font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{height:g}" fill="white"/>'
    )
    return "\n".join([head, _text(10, 20, title, size=14), *parts, "</svg>"]) + "\n"
