"""From the lines of finished runs to the JSON that the repository keeps, one form for all studies.

``{"date": ..., "machine": ..., "cpu_seconds": ..., "runs": ..., "settings": {setting: {method:
{point: {"options": ..., metric: [value of every seed]}}}}}``. Settings such as "flips, U20" hold
what is derived from the runs of U20.
"""

from __future__ import annotations

import inspect
import json
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

from .runner import SCREENING_SEED, Records, chosen
from .tables import comparisons

RESULTS = Path(__file__).parent / "results"
# What the pages show: the files are to stay small.
SHOWN = (
    "accuracy", "nll", "ece", "nll_scaled", "ece_scaled", "temperature", "aurc", "errors_auroc",
    "ood_auroc", "ood_fpr",
)  # fmt: skip
CPUS = Path("/proc/cpuinfo")
LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch")


@dataclass(frozen=True)
class Part:
    """Runs with one file of results: what makes them, and the table of them."""

    run: Callable  # of (options, records)
    table: Callable[[dict], str] = comparisons  # of the settings
    kept: tuple[str, ...] = ()  # metrics besides those of `shown`
    order: tuple = ()  # methods, in the order of the table
    derive: Callable[[dict], dict] = dict  # settings of the results from those of the runs
    settings: str = ""  # for the page
    shown: tuple[str, ...] = SHOWN
    files: tuple[str, ...] = ()  # of the data folder
    packages: tuple[str, ...] = ()  # besides those of skcalib[all]


@dataclass(frozen=True)
class Study:
    """A page: its name in the overview, what is run for it, what is claimed, and its settings."""

    name: str
    parts: dict[str, Part]
    claims: tuple
    settings: str = ""


def described(docstring):
    """Return what a docstring says after its first paragraph, to be shown on a page."""
    return inspect.cleandoc(docstring).partition("\n\n")[2] + "\n"


def machine():
    names = re.findall(r"model name\s*: (.+)", CPUS.read_text() if CPUS.exists() else "") or [
        platform.machine()
    ]
    versions = {name: version(name) for name in LIBRARIES}
    return {"cpu": names[0], "python": platform.python_version()} | versions


def short(value):
    """Round to four significant digits."""
    return float(f"{value:.4g}")


def collected(records, part):
    """Return the settings of finished runs, of chosen candidates where there was a choice."""
    settings, kept = {}, (*part.shown, *part.kept)
    choices: dict = {}
    for row in sorted(records.rows.values(), key=lambda row: row["key"].get("seed", 0)):
        key = row["key"]
        for setting, methods in row.get("found", {}).items():
            for name, points in methods.items():
                _append(settings, setting, name, points, {}, None)
        if "points" not in row or key["seed"] == SCREENING_SEED:
            continue
        pair, options = (key["method"], key["setting"]), key.get("options", {})
        choice = choices.setdefault(pair, chosen(records, *pair))
        name = key["method"] if choice or not options else f"{key['method']} {json.dumps(options)}"
        points = {p: v for p, v in row["points"].items() if choice.get(p, options) == options}
        points = {p: v for p, v in points.items() if not choice or p in choice}
        _append(settings, key["setting"], name, points, options, kept)
    position = {method.name: i for i, method in enumerate(part.order)}
    place = lambda item: position.get(item[0], len(position))
    return {name: dict(sorted(methods.items(), key=place)) for name, methods in settings.items()}


def _append(settings, setting, name, points, options, kept):
    methods = settings.setdefault(setting, {})
    for point, values in points.items():
        lists = methods.setdefault(name, {}).setdefault(point, {"options": options})
        for metric, value in values.items():
            if kept is None or metric in kept:
                lists.setdefault(metric, []).extend(map(short, np.atleast_1d(value)))


def write(name, records, settings):
    """Write the JSON of a study, one method a line."""
    content = {
        "date": date.today().isoformat(),
        "machine": machine(),
        "cpu_seconds": round(sum(row["seconds"] for row in records.rows.values())),
        "runs": len(records.rows),
        "settings": settings,
    }
    text = json.dumps(content, separators=(",", ":"))
    (RESULTS / f"{name}.json").write_text(text.replace('},"', '},\n"') + "\n")
    load.cache_clear()


@cache
def load(name):
    """Return the results of a part; without settings where it has not run."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {"settings": {}}


def settings_of(name):
    return load(name)["settings"]


def summarize(studies, folder):
    """Write the JSON of every part whose runs are in the folder."""
    for study in studies:
        for name, part in study.parts.items():
            path = folder / f"{name}.jsonl"
            if path.exists():
                records = Records(path)
                write(name, records, part.derive(collected(records, part)))
