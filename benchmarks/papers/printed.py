"""What the four papers print, typed from their tables, and the changes that follow from it.

``printed.json``: paper, table, row and column. A row is named by its data set first and by what it
measures last; two columns of one row, or two rows of one column, are a comparison.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

PATH = Path(__file__).parent / "printed.json"


@cache
def tables():
    return json.loads(PATH.read_text())


def cell(paper, table, row, column):
    found = tables()[paper][table]
    return found["rows"][row][found["columns"].index(column)]


class Figure(NamedTuple):
    """What the rival has in the paper and what the method has, on one data set; None: no rival."""

    label: str
    before: float | None
    after: float


@dataclass(frozen=True)
class Printed:
    """Figures of one table; their changes are differences, percent or powers of ten."""

    where: str
    figures: tuple[Figure, ...]
    unit: str = "points"

    def change(self, figure):
        before, after = figure.before, figure.after
        if before is None:
            return after
        if self.unit == "powers of ten":
            return math.log10(after / before)
        return (after - before) * (100 / before if self.unit == "%" else 1)

    def gains(self, better):
        """Return (label, gain) of every figure in the direction of the claim."""
        return [(figure.label, better * self.change(figure)) for figure in self.figures]

    def effect(self, better):
        """Return the smallest of the paper's gains; 0 where it has none."""
        return min((gain for _, gain in self.gains(better) if gain > 0), default=0.0)

    def text(self):
        """Return "Table 2: CIFAR-10 93.79 → 95.67 (+1.88)", columns parted by strokes."""
        parts = []
        for label in dict.fromkeys(figure.label for figure in self.figures):
            found = [figure for figure in self.figures if figure.label == label]
            text = f"{label} {_joined(_short(figure.after) for figure in found)}"
            if found[0].before is not None:
                before = _joined(_short(figure.before) for figure in found)
                changes = _joined(self.written(self.change(figure)) for figure in found)
                after = text.removeprefix(f"{label} ")
                unit = "" if self.unit == "points" else f" {self.unit}"
                text = f"{label} {before} → {after} ({changes}{unit})"
            parts.append(text)
        return f"{self.where}: " + ", ".join(parts)

    def written(self, change):
        digits = {"%": 0, "powers of ten": 1}.get(self.unit, 2)
        return f"{change:+.{digits}f}"


def _joined(texts):
    return "/".join(texts)


def _short(value):
    """Return a number as printed, without the zero before its point."""
    text = f"{value:.4g}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def columns(paper, table, metric, after, before, *, of="", unit="", scale=1.0):
    """Return the figures of two columns, in all rows of a metric whose name contains `of`.

    Of several columns in `before`, each row has the one that is hardest to beat. `scale` makes
    fractions of percentages, where ours are fractions.
    """
    found = tables()[paper][table]
    before = (before,) if isinstance(before, str) else before
    hardest = max if metric.startswith(("accuracy", "AU")) else min
    figures = [
        Figure(name.split(", ")[0],
               scale * hardest(cell(paper, table, name, one) for one in before),
               scale * cell(paper, table, name, after))
        for name in found["rows"] if name.endswith(f", {metric}") and of in name
    ]  # fmt: skip
    where = f"{table}, {of or found['of']}".removesuffix(", ")
    return Printed(where, tuple(figures), unit or _unit(metric))


def rows(paper, table, metric, after, before, of, *, other=""):
    """Return the figures of two rows in the columns `of`; `other` is the table of `before`."""
    other_name = lambda name: name.replace(f", {after},", f", {before},")
    figures = [
        Figure(name.split(", ")[0], cell(paper, other or table, other_name(name), column),
               cell(paper, table, name, column))
        for name in tables()[paper][table]["rows"] if name.endswith(f", {after}, {metric}")
        for column in of
    ]  # fmt: skip
    where = f"{table} against {other}" if other else table
    return Printed(f"{where}, {_joined(of)}", tuple(figures), _unit(metric))


def value(paper, table, row, column):
    """Return one figure that has no rival."""
    figure = Figure(row.split(", ")[0], None, cell(paper, table, row, column))
    return Printed(f"{table}, {tables()[paper][table]['of']}", (figure,))


def _unit(metric):
    """Calibration errors are compared in percent: networks and data are others."""
    return "%" if metric in ("ECE", "AdaECE", "classwise") else "points"
