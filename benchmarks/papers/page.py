"""Write the parts of ``docs/evidence`` from the JSON files: claims and tables."""

from __future__ import annotations

import inspect
from pathlib import Path

from scipy.stats import norm

import benchmarks.papers

from . import depth as depth_study
from . import image_statements, prio, statements
from . import shift as shift_study
from . import toy as toy_study
from .claims import VERDICTS, judge
from .statistics import holm
from .summary import load
from .tables import (
    CALIBRATION,
    COLUMNS,
    LEVEL,
    NONE,
    POINTS,
    Column,
    cell,
    comparison,
    csv_table,
    options_text,
)
from .views import available, view

FOLDER = Path(__file__).parents[2] / "docs" / "evidence"
NOISES = {
    "clean": "clean labels",
    "U20": "20 % of the labels flipped uniformly",
    "U40": "40 % of the labels flipped uniformly",
    "I20": "20 % of the labels flipped to the nearest wrong class",
}
NOTHING = "These runs were not made.\n"


def claims(statements_):
    """Return the table of claims, one sentence each."""
    rows = [(claim.text, *judge(claim, view(_study(claim)))) for claim in statements_]
    return csv_table("", ["claim", "verdict", "what was found"], rows, widths="40 12 48")


def overview():
    """Return how many claims of each part hold, in part or not."""
    rows = []
    for name, statements_ in SECTIONS.items():
        verdicts = [judge(claim, view(_study(claim)))[0] for claim in statements_]
        rows.append([name, *(verdicts.count(verdict) for verdict in VERDICTS)])
    return csv_table("", ["claims of", *VERDICTS], rows)


def _study(claim):
    return getattr(claim, "study", "")


def comparisons(study, columns=COLUMNS):
    """Return the tables of all settings of a study of methods."""
    settings = view(study)
    if not settings:
        return NOTHING
    return "\n".join(
        comparison(f"{_title(setting)}, {POINTS[point]}", methods, point, columns)
        for setting, methods in settings.items()
        for point in POINTS
        if point in next(iter(methods.values()))
    )


def _title(setting):
    text = NOISES.get(setting, setting)
    return text[0].upper() + text[1:]


def values_table(title, settings, metric, column):
    """Return one row a method and one column a setting."""
    if not settings:
        return NOTHING
    names = list(dict.fromkeys(name for methods in settings.values() for name in methods))
    rows = []
    for name in names:
        cells = [
            methods.get(name, {}).get("last", {}).get(metric) for methods in settings.values()
        ]
        rows.append([name, *(cell(values, column) if values else NONE for values in cells)])
    return csv_table(title, ["", *settings], rows)


def sensitivity():
    settings = view("sensitivity")
    columns = (
        Column("accuracy", "accuracy, %", 100, 1),
        Column("ece", "ECE, %", 100, 1),
        Column("nll", "log-loss", 1, 3),
        Column("aurc", "AURC, %", 100, 2),
    )
    if not settings:
        return NOTHING
    tables = []
    for setting, methods in settings.items():
        named = {f"{name.split(' {')[0]} [{i}]": points for i, (name, points) in
                 enumerate(methods.items(), 1)}  # fmt: skip
        tables.append(comparison(_title(setting), named, "last", columns))
    return "\n".join(tables)


def sources():
    if "sources" not in available():
        return NOTHING
    return comparisons("sources") + "\n" + _flips("sources")


def _flips(study):
    column = Column("", "", 100, 2)
    settings = view(f"{study}:auroc")
    return values_table("AUROC of flipped labels, %", settings, "AUROC of flips", column)


def rmd_images():
    if "rmd_images" not in available():
        return NOTHING
    return comparisons("rmd_images") + "\n" + _flips("rmd_images")


def human():
    """Spearman's correlation with human entropy; the difference to RMD with a normal test."""
    if "human" not in available():
        return NOTHING
    extra = load("human")["extra"]
    gains = extra["rmd_minus"]
    p_values = [2 * norm.sf(abs(gain) / error) for gain, error in gains.values()]
    significant = dict(zip(gains, holm(p_values) < LEVEL))
    rows = []
    for name, (value, error) in extra["spearman"].items():
        row = [name, f"{value:.3f} ± {error:.3f}"]
        if name in gains:
            mark = "*" if significant[name] else ""
            row.append(f"{mark}{gains[name][0]:+.3f} ± {gains[name][1]:.3f}{mark}")
        rows.append(row if name in gains else [*row, NONE])
    header = ["difficulty", "Spearman with human entropy", "RMD minus it"]
    return csv_table("CIFAR-10H, ten thousand images", header, rows)


def validation():
    """Test accuracy and scaled log-loss where each kind of validation label stops and scales."""
    settings, rows = view("validation"), []
    if not settings:
        return NOTHING
    columns = (
        Column("temperature", "", 1, 2),
        Column("epoch", "", 1, 1),
        Column("accuracy", "", 100, 1),
        Column("nll_scaled", "", 1, 3),
    )
    for setting, methods in settings.items():
        for name, points in methods.items():
            for point, values in points.items():
                if point.startswith("stop"):
                    labels = point.partition(", ")[2] or "clean"
                    cells = (cell(values[c.metric], c) for c in columns)
                    rows.append([setting, _plain(name, values), labels, *cells])
    header = ["noise", "method", "validation labels", "temperature", "epoch", "accuracy, %",
              "log-loss scaled"]  # fmt: skip
    return csv_table("Stopped and scaled by validation labels of three kinds", header, rows)


def _plain(name, values):
    """Return "method, option value" for the name of a candidate."""
    options = options_text(values["options"])
    return name.split(" {")[0] + (f", {options}" if values["options"] else "")


def prioritization():
    settings = view("prio")
    columns = (
        Column("accuracy", "accuracy, %", 100, 1, 1),
        Column("nll", "log-loss", 1, 3, -1),
        Column("nll_scaled", "log-loss scaled", 1, 3, -1),
        Column("ece", "ECE, %", 100, 1, -1),
        Column("temperature", "temperature", 1, 2),
        Column("seconds", "CPU s", 1, 2),
    )
    tables = [
        comparison(f"{_title(setting)}, after {steps} steps", methods, steps, columns, "random")
        for setting, methods in settings.items()
        for steps in ("225", "450")
    ]
    return "\n".join(tables) or NOTHING


def toy():
    column = Column("", "", 1, 3)
    title = "Correlation of the weights with the true error"
    return values_table(title, view("gra_toy"), "correlation", column)


def depth():
    found = {
        setting: {name: points for name, points in values.items() if name != "zero"}
        for setting, values in view("depth").items()
    }
    return values_table("Means over runs", found, "value", Column("", "", 1, 3))


def shift():
    settings = view("shift")
    if not settings:
        return NOTHING
    tables = [_shift_table(*parts, settings) for parts in SHIFT_PARTS]
    clean = settings["severity 0"]
    rows = [[name, cell(p["last"]["human_kl"], Column("", "", 1, 3))] for name, p in clean.items()]
    header = ["method", "divergence from human labels"]
    return "\n".join([*tables, csv_table("Clean images of CIFAR-10H", header, rows)])


SHIFT_PARTS = (
    ("Accuracy, %", "last", "accuracy"),
    ("ECE as trained, %", "last", "ECE"),
    ("ECE with a temperature from clean images, %", "clean temperature", "ECE"),
    ("ECE with a temperature from images of the same shift, %", "own temperature", "ECE"),
)


def _shift_table(title, point, metric, settings):
    column = Column(metric, "", 100, 1)
    names = list(settings["severity 0"])
    rows = [
        [name, *(cell(methods[name][point][metric], column) for methods in settings.values())]
        for name in names
    ]
    return csv_table(title, ["method", *settings], rows)


def stated_settings():
    """Return the settings: what the docstring of this package says of them."""
    text = inspect.getdoc(benchmarks.papers)
    return text.partition("-\n")[2].partition("\n\nComputing time")[0] + "\n"


def stated_by(module):
    """Return what the docstring of a study says of its settings."""
    return inspect.getdoc(module).partition("\n\n")[2] + "\n"


def runs():
    """Return the run times and versions, a line a study."""
    rows, machine = [], {}
    for name in STUDIES:
        if name in available():
            content = load(name)
            machine = content["machine"]
            minutes = f"{content['cpu_seconds'] / 60:.1f}"
            rows.append([name, content["runs"], minutes])
    versions = ", ".join(f"{name} {value}" for name, value in machine.items())
    table = csv_table("", ["study", "runs", "minutes of one core"], rows)
    return f"One thread, no accelerator: {versions}.\n\n{table}"


STUDIES = (
    "rmd20", "sensitivity", "sources", "human", "validation", "rmd100", "rmd_images", "gra_texts",
    "gra_images", "gra_toy", "prio", "depth", "shift",
)  # fmt: skip

SECTIONS = {
    "[RMD], texts": statements.RMD,
    "[RMD], images": image_statements.RMD,
    "wrong labels": (*statements.LABELS, *statements.VALIDATION),
    "[GRA], texts": statements.GRA,
    "[GRA], images": image_statements.GRA,
    "[PRIO]": statements.PRIO,
    "[DEPTH]": statements.DEPTH,
    "shift": statements.SHIFT,
}

PARTS = {
    "overview": overview,
    "settings": stated_settings,
    "runs": runs,
    "rmd_claims": lambda: claims(statements.RMD),
    "labels_claims": lambda: claims(statements.LABELS),
    "rmd20": lambda: comparisons("rmd20"),
    "rmd100": lambda: comparisons("rmd100"),
    "rmd_images_claims": lambda: claims(image_statements.RMD),
    "rmd_images": rmd_images,
    "sensitivity": sensitivity,
    "sources": sources,
    "human": human,
    "validation_claims": lambda: claims(statements.VALIDATION),
    "validation": validation,
    "gra_claims": lambda: claims(statements.GRA),
    "gra_texts": lambda: comparisons("gra_texts"),
    "gra_images_claims": lambda: claims(image_statements.GRA),
    "gra_images": lambda: comparisons("gra_images", (*COLUMNS, *CALIBRATION)),
    "gra_toy_settings": lambda: stated_by(toy_study),
    "gra_toy": toy,
    "prio_settings": lambda: stated_by(prio),
    "prio_claims": lambda: claims(statements.PRIO),
    "prio": prioritization,
    "depth_settings": lambda: stated_by(depth_study),
    "depth_claims": lambda: claims(statements.DEPTH),
    "depth": depth,
    "shift_settings": lambda: stated_by(shift_study),
    "shift_claims": lambda: claims(statements.SHIFT),
    "shift": shift,
}


def render():
    """Return {name of the file: text} of everything that the page includes."""
    return {f"{name}.inc": make() for name, make in PARTS.items()}


def write():
    FOLDER.mkdir(exist_ok=True)
    for name, text in render().items():
        (FOLDER / name).write_text(text)
