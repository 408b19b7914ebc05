"""Tables of ``docs/evidence``: reStructuredText made of the JSON files, and of nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skcalib.metrics._groupwise import correct_by_holm

from .statistics import mean_and_error, paired

LEVEL = 0.05
NONE = "\\-"  # a lone dash would be a bullet
POINTS = {"last": "after the last epoch", "stop": "stopped by validation"}
NOISES = {
    "clean": "clean labels",
    "U20": "20 % of the labels flipped uniformly",
    "U40": "40 % of the labels flipped uniformly",
    "I20": "20 % of the labels flipped to the nearest wrong class",
}
NOTHING = "These runs were not made.\n"
FLIPS = "AUROC of flips"


@dataclass(frozen=True)
class Column:
    """A metric, how its header reads, its unit, digits and which direction is better."""

    metric: str
    header: str
    factor: float = 1.0
    digits: int = 1
    better: int = 0  # 1: larger, -1: smaller, 0: neither


COLUMNS = (
    Column("temperature", "temperature", digits=2),
    Column("accuracy", "accuracy, %", 100, 1, 1),
    Column("ece", "ECE, %", 100, 1, -1),
    Column("nll", "log-loss", 1, 3, -1),
    Column("aurc", "AURC, %", 100, 2, -1),
    Column("errors_auroc", "errors: AUROC, %", 100, 1, 1),
    Column("ood_auroc", "OOD: AUROC, %", 100, 1, 1),
    Column("ood_fpr", "OOD: FPR95, %", 100, 1, -1),
    Column("ece_scaled", "ECE scaled, %", 100, 1, -1),
    Column("nll_scaled", "log-loss scaled", 1, 3, -1),
    Column("human_kl", "divergence from human labels", 1, 3, -1),
    Column("human_kl_scaled", "divergence scaled", 1, 3, -1),
)
# Other ways to bin, where calibration is all that is asked.
CALIBRATION = (
    Column("classwise", "classwise ECE, %", 100, 2, -1),
    Column("ece_width", "ECE of equal width, %", 100, 1, -1),
)


def cell(values, column):
    mean, error = mean_and_error(values)
    text = f"{column.factor * mean:.{column.digits}f}"
    return text if np.isnan(error) else f"{text} ± {column.factor * error:.{column.digits}f}"


def marks(methods, point, column, reference):
    """Return {method: "**", "*" or ""}: better or worse than the reference by a paired t-test.

    Corrected by Holm's method over the methods of the table.
    """
    names = [
        name for name in methods if name != reference and column.metric in methods[name][point]
    ]
    if not column.better or not names or reference not in methods:
        return {}
    base = methods[reference][point][column.metric]
    tests = [paired(methods[name][point][column.metric], base) for name in names]
    adjusted = correct_by_holm(np.array([p for _, _, p in tests]))
    return {
        name: ("**" if mean * column.better > 0 else "*") if p < LEVEL else ""
        for name, (mean, _, _), p in zip(names, tests, adjusted)
    }


def csv_table(title, header, rows, *, widths="auto", css_class=None):
    """Return a csv-table directive; the rows hold strings."""
    lines = [
        f".. csv-table:: {title}".rstrip(),
        *([f"   :class: {css_class}"] * (css_class is not None)),
        f"   :widths: {widths}",
        f"   :header: {_csv(header)}",
        "",
    ]
    return "\n".join([*lines, *(f"   {_csv(row)}" for row in rows), ""])


def _csv(cells):
    return ", ".join('"' + str(cell).replace('"', '""') + '"' for cell in cells)


def options_text(options):
    return ", ".join(f"{name} {_short(value)}" for name, value in options.items()) or NONE


def _short(value):
    if isinstance(value, list | tuple):
        return "/".join(f"{v:g}" for v in value)
    return f"{value:g}"


def comparison(title, methods, point, columns=COLUMNS, reference="cross-entropy"):
    """Return the table of one setting at one point, marked against the reference."""
    columns = [c for c in columns if any(c.metric in m[point] for m in methods.values())]
    by_column = [marks(methods, point, column, reference) for column in columns]
    chosen = any(points[point].get("options") for points in methods.values())
    rows = []
    for name, points in methods.items():
        cells = [name, *[options_text(points[point].get("options", {}))] * chosen]
        for column, mark in zip(columns, by_column):
            values = points[point].get(column.metric)
            text = cell(values, column) if values else NONE
            cells.append(f"{mark.get(name, '')}{text}{mark.get(name, '')}")
        rows.append(cells)
    header = ["method", *["chosen"] * chosen, *(c.header for c in columns)]
    return csv_table(title, header, rows, css_class="numbers")


def comparisons(settings, columns=COLUMNS, points=POINTS, reference="cross-entropy"):
    """Return the tables of all settings of a study of methods, and how well flips are found."""
    tables = []
    for setting, methods in settings.items():
        title = NOISES.get(setting, setting)
        tables += [
            comparison(f"{title[0].upper()}{title[1:]}, {how}", methods, point, columns, reference)
            for point, how in points.items()
            if "accuracy" in next(iter(methods.values())).get(point, ())
        ]
    found = {s: m for s, m in settings.items() if s.startswith("flips")}
    if found:
        tables.append(values_tables(found, [Column(FLIPS, "AUROC of flipped labels, %", 100, 2)]))
    return "\n".join(tables) or NOTHING


def values_tables(settings, columns):
    """Return a table of every metric: one row a method and one column a setting."""
    tables = []
    for column in columns:
        rows = []
        for name in dict.fromkeys(name for methods in settings.values() for name in methods):
            values = [
                m.get(name, {}).get("last", {}).get(column.metric) for m in settings.values()
            ]
            if any(values):
                rows.append([name, *(cell(v, column) if v else NONE for v in values)])
        tables += [csv_table(column.header, ["", *settings], rows)] if rows else []
    return "\n".join(tables) or NOTHING
