"""From the lines of finished runs to the JSON that the repository keeps, one form for all studies.

``{"machine": ..., "cpu_seconds": ..., "runs": ..., "settings": {setting: {method: {point:
{"options": ..., metric: [value of every seed]}}}}}``. Settings such as "flips, U20" hold what is
derived from the runs of U20.
"""

from __future__ import annotations

import json
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

from .compare import SCREENING_SEED, chosen
from .methods import GRA, GRA_IMAGES, RMD, RMD_IMAGES
from .records import Records

# A study that was interrupted reports the methods that have as many.
LEAST_SEEDS = 4
RESULTS = Path(__file__).parent / "results"
# What the pages show: the files are to stay small.
SHOWN = (
    "accuracy", "nll", "ece", "nll_scaled", "ece_scaled", "temperature", "aurc", "errors_auroc",
    "ood_auroc", "ood_fpr",
)  # fmt: skip
LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch")


def machine():
    cpu = platform.processor() or platform.machine()
    lines = Path("/proc/cpuinfo")
    if lines.exists():
        names = [x for x in lines.read_text().splitlines() if x.startswith("model name")]
        cpu = names[0].split(":")[1].strip() if names else cpu
    return {"cpu": cpu, "python": platform.python_version()} | {n: version(n) for n in LIBRARIES}


def short(value):
    """Round to four significant digits."""
    return float(f"{value:.4g}")


def values_of(rows, point, kept):
    """Collect the metrics of a point over rows that are sorted by seed."""
    points = [row["points"][point] for row in rows if point in row["points"]]
    names = [name for name in kept if points and name in points[0]]
    return {name: [short(p[name]) for p in points] for name in names}


def compared(*kept, order=()):
    """Return what summarizes a study of chosen candidates; methods in an order."""
    names, kept = [method.name for method in order], (*SHOWN, *kept)

    def settings_of(records):
        settings = {}
        for row in list(records.rows.values()):
            key = row["key"]
            methods = settings.setdefault(key["setting"], {})
            if "points" not in row or key["seed"] == SCREENING_SEED or key["method"] in methods:
                continue
            options = chosen(records, key["method"], key["setting"])
            points = {p: _point(records, key, one, p, kept) for p, one in options.items()}
            if len(points["last"].get("accuracy", ())) >= LEAST_SEEDS:
                methods[key["method"]] = points
        position = {name: i for i, name in enumerate(names)}
        return {
            setting: dict(sorted(m.items(), key=lambda pair: position.get(pair[0], len(names))))
            for setting, m in settings.items()
            if m
        }

    return settings_of


def _point(records, key, options, point, kept):
    fixed = {name: key[name] for name in ("setting", "method")}
    rows = records.where(options=options, **fixed)
    rows = sorted(
        (row for row in rows if row["key"]["seed"] != SCREENING_SEED),
        key=lambda row: row["key"]["seed"],
    )
    return {"options": options, **values_of(rows, point, kept)}


def every_candidate(records, points=("last",), kept=SHOWN, *, with_options=True):
    """Return {setting: {method and options: {point: {...}}}}: what a sensitivity needs."""
    settings = {}
    for row in list(records.rows.values()):
        key = row["key"]
        if "points" in row:
            options = json.dumps(key["options"]) if with_options else ""
            settings.setdefault(key["setting"], {})[f"{key['method']} {options}".strip()] = {
                point: _point(records, key, key["options"], point, kept)
                for point in points
                if point in row["points"]
            }
    return settings


def by_name(field, metric, prefix=""):
    """Return what summarizes rows that hold {name: value} in a field: names as methods."""

    def settings_of(records):
        settings = {}
        for row in sorted(records.rows.values(), key=lambda row: row["key"]["seed"]):
            for name, value in row.get(field, {}).items():
                methods = settings.setdefault(prefix + row["key"]["setting"], {})
                points = methods.setdefault(name, {"last": {"options": {}, metric: []}})
                points["last"][metric].append(short(value))
        return settings

    return settings_of


FLIPS = by_name("auroc", "AUROC of flips", "flips, ")


def with_flips(summarizer):
    return lambda records: summarizer(records) | FLIPS(records)


def _sensitivity(records):
    """Besides, per seed the largest minus the smallest ECE over alpha, at T = .3."""
    settings = every_candidate(records)
    for setting, methods in list(settings.items()):
        groups = {}
        for name, points in methods.items():
            if points["last"]["options"].get("temperature", 0.3) == 0.3:
                groups.setdefault(name.split(" {")[0], []).append(points["last"]["ece"])
        settings[f"ranges, {setting}"] = {
            method: {"last": {"options": {}, "range of ece": np.ptp(values, axis=0).tolist()}}
            for method, values in groups.items()
        }
    return settings


VALIDATION = ("clean", "noisy", "repaired")


def _validation(records):
    """Kinds of validation labels as methods: what each stops at, and what it would choose."""
    kept = ("accuracy", "nll", "nll_scaled", "temperature", "epoch", "val_nll_scaled")
    points = {kind: "stop" if kind == "clean" else f"stop, {kind}" for kind in VALIDATION}
    settings = {}
    for setting, methods in every_candidate(records, points.values(), kept).items():
        found = settings.setdefault(f"labels, {setting}", {})
        for kind, point in points.items():
            stopped = [values[point] for values in methods.values()]
            best = np.argmin([values["val_nll_scaled"] for values in stopped], axis=0)
            found |= {
                f"{name.removesuffix(' {}')}, {kind}": {"last": values}
                for name, values in zip(methods, stopped)
            }
            found[f"choice, {kind}"] = {
                "last": {
                    "options": {},
                    **{n: [stopped[i][n][seed] for seed, i in enumerate(best)]
                       for n in ("accuracy", "nll_scaled")},
                }
            }  # fmt: skip
    return settings


def _human(records):
    row = next(iter(records.where(setting="CIFAR-10H")))
    parts = {
        "CIFAR-10H": ("spearman", "Spearman"),
        "RMD minus": ("rmd_minus", "gain"),
    }
    return {
        setting: {
            name: {"last": {"options": {}, metric: [short(v) for v in pair]}}
            for name, pair in row[field].items()
        }
        for setting, (field, metric) in parts.items()
    }


def _shift(records):
    """Severities as settings; methods with what was done to their probabilities."""
    settings = {}
    for row in sorted(records.rows.values(), key=lambda row: row["key"]["seed"]):
        for severity, values in row["severities"].items():
            methods = settings.setdefault(f"severity {severity}", {})
            for name, value in values.items():
                metric, _, how = name.partition(", ")
                method = f"{row['key']['method']}, {how or 'last'}"
                points = methods.setdefault(method, {"last": {"options": {}}})
                points["last"].setdefault(metric, []).append(short(value))
    return settings


def _prio(records):
    """Return {setting: {guide: {steps: ...}}}; other losses than cross-entropy by name."""
    kept, settings = (*SHOWN, "seconds"), {}
    rows = sorted(records.rows.values(), key=lambda row: row["key"]["seed"])
    for row in rows:
        key = row["key"]
        plain = key["loss"] == "cross-entropy"
        name = key["method"] if plain else f"{key['method']}, {key['loss']}"
        methods = settings.setdefault(key["setting"], {})
        same = [r for r in rows if {**r["key"], "seed": 0} == {**key, "seed": 0}]
        if name not in methods and len(same) >= LEAST_SEEDS:
            points = {point: values_of(same, point, kept) for point in row["points"]}
            methods[name] = {p: {"options": {}, **v} for p, v in points.items()}
    return settings


def _depth(records):
    """Besides, per seed the correlation of mean depth and accuracy over the data sets."""
    settings = by_name("found", "value")(records)
    if len(settings) < 3:
        return settings
    of_sets = [
        [methods[name]["last"]["value"] for methods in settings.values()]
        for name in ("mean depth", "accuracy, held out")
    ]
    n = min(len(values) for part in of_sets for values in part)
    ranks = [np.argsort(np.argsort([v[:n] for v in part], axis=0), axis=0) for part in of_sets]
    value = [short(np.corrcoef(a, b)[0, 1]) for a, b in zip(ranks[0].T, ranks[1].T)]
    name = "mean depth and accuracy"
    settings["data sets"] = {name: {"last": {"options": {}, "value": value}}}
    return settings


HUMAN = ("human_kl", "human_kl_scaled")
SUMMARIES = {
    "decay20": compared(order=RMD),
    "decay100": compared(order=RMD),
    "rmd20": compared(order=RMD),
    "rmd100": compared(order=RMD),
    "sensitivity": _sensitivity,
    "sources": with_flips(compared()),
    "human": _human,
    "validation": _validation,
    "gra_texts": compared("classwise", order=GRA),
    "gra_toy": by_name("correlation", "correlation"),
    "prio_losses": compared(),
    "prio": _prio,
    "depth": _depth,
    "pruning": with_flips(lambda records: every_candidate(records, with_options=False)),
    "shift": _shift,
    "rmd_images": with_flips(compared(*HUMAN, order=RMD_IMAGES)),
    "gra_images": compared(*HUMAN, "ece_width", "classwise", order=GRA_IMAGES),
}
# Two studies of one file, which share the runs of some methods.
RECORDED = {"rmd_images": "cifar", "gra_images": "cifar"}
_RMD, _GRA = ({method.name for method in methods} for methods in (RMD_IMAGES, GRA_IMAGES))
SHARED = {
    "rmd_images": lambda key: key["method"] in _RMD | {"AUROC of flips"},
    "gra_images": lambda key: key["method"] in _GRA and key["setting"] == "clean",
}


def write(name, records, settings):
    """Write the JSON of a study, one method a line."""
    content = {
        "machine": machine(),
        "cpu_seconds": round(sum(row["seconds"] for row in records.rows.values())),
        "runs": len(records.rows),
        "settings": settings,
    }
    text = json.dumps(content, separators=(",", ":"))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(text.replace('},"', '},\n"') + "\n")
    load.cache_clear()


@cache
def load(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def available():
    return {path.stem for path in RESULTS.glob("*.json")}


def settings_of(name):
    """Return the settings of a study; {} where it has not run."""
    return load(name)["settings"] if name in available() else {}


def summarize(folder):
    """Write the JSON of every study whose runs are in the folder."""
    for name, make in SUMMARIES.items():
        path = folder / f"{RECORDED.get(name, name)}.jsonl"
        if path.exists():
            records = Records(path).only(SHARED.get(name, lambda key: True))
            write(name, records, make(records))
