"""From the lines of finished runs to the compact JSON that the repository keeps.

``{"machine": ..., "cpu_seconds": ..., "runs": ..., "settings": {setting: {method: {point:
{"options": ..., metric: [value of every seed]}}}}}``; what a study keeps besides is in "extra".
"""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path

from .compare import SCREENING_SEED, chosen
from .methods import GRA, GRA_IMAGES, RMD, RMD_IMAGES
from .records import Records

# A study that was interrupted reports the settings that have as many.
LEAST_SEEDS = 5
RESULTS = Path(__file__).parent / "results"
# What the page shows: the files are to stay small.
SHOWN = (
    "accuracy", "nll", "ece", "nll_scaled", "ece_scaled", "temperature", "aurc", "errors_auroc",
    "ood_auroc",
)  # fmt: skip
IMAGES = (*SHOWN, "human_kl", "human_kl_scaled")
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


def compared(records, *, kept):
    """Return {setting: {method: {point: {...}}}} of the candidates chosen for each point."""
    settings = {}
    for row in list(records.rows.values()):
        key = row["key"]
        if "points" not in row or key["seed"] == SCREENING_SEED:
            continue
        methods = settings.setdefault(key["setting"], {})
        if key["method"] in methods:
            continue
        options = chosen(records, key["method"], key["setting"])
        methods[key["method"]] = {
            point: {
                "options": options[point],
                **values_of(_reported(records, key, options[point]), point, kept),
            }
            for point in options
        }
    return settings


def _reported(records, key, options):
    fixed = {name: key[name] for name in ("setting", "method")}
    rows = [
        row
        for row in records.where(options=options, **fixed)
        if row["key"]["seed"] != SCREENING_SEED
    ]
    return sorted(rows, key=lambda row: row["key"]["seed"])


def every_candidate(records, *, points=("last",), kept):
    """Return {setting: {method and options: {point: {...}}}}: what a sensitivity needs."""
    settings = {}
    for row in list(records.rows.values()):
        key = row["key"]
        if "points" not in row:
            continue
        name = f"{key['method']} {json.dumps(key['options'])}"
        rows = _reported(records, key, key["options"])
        settings.setdefault(key["setting"], {})[name] = {
            point: {"options": key["options"], **values_of(rows, point, kept)}
            for point in points
            if point in row["points"]
        }
    return settings


def write(name, records, settings, **extra):
    """Write the JSON of a study, one method a line."""
    content = {
        "machine": machine(),
        "cpu_seconds": round(sum(row["seconds"] for row in records.rows.values())),
        "runs": len(records.rows),
        "extra": extra,
        "settings": settings,
    }
    text = json.dumps(content, separators=(",", ":"))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(text.replace('},"', '},\n"') + "\n")


def load(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def summarize(folder):
    """Write the JSON of every study whose runs are in the folder."""
    for name, make in SUMMARIES.items():
        path = folder / f"{RECORDED.get(name, name)}.jsonl"
        if path.exists():
            records = Records(path).only(SHARED.get(name, lambda key: True))
            settings, extra = make(records)
            write(name, records, settings, **extra)


def _texts(methods, *more):
    """Return what summarizes a study of these methods on texts."""
    kept = (*SHOWN, "ood_fpr", *more)
    return lambda records: (_in_order(compared(records, kept=kept), methods), {})


def _in_order(settings, methods):
    """Return the methods in the order of the tables, whatever was run first."""
    return {
        setting: {m.name: found[m.name] for m in methods if m.name in found}
        for setting, found in settings.items()
    }


def _human(records):
    row = next(iter(records.where(setting="CIFAR-10H")))
    parts = ("spearman", "rmd_minus")
    return {}, {p: {n: [short(v) for v in pair] for n, pair in row[p].items()} for p in parts}


def _sources(records):
    kept = ("accuracy", "nll", "ece", "nll_scaled", "ece_scaled", "aurc")
    return compared(records, kept=kept), _flips(records)


def _flips(records):
    auroc = {}
    for row in records.where(method="AUROC of flips"):
        for name, value in row["auroc"].items():
            by_source = auroc.setdefault(row["key"]["setting"], {})
            by_source.setdefault(name, []).append(short(value))
    return {"auroc_of_flips": auroc}


def _rmd_images(records):
    found = _complete_settings(compared(records, kept=IMAGES))
    return _in_order(found, RMD_IMAGES), _flips(records)


def _gra_images(records):
    found = _complete_settings(compared(records, kept=(*IMAGES, "ece_width", "classwise")))
    return _in_order(found, GRA_IMAGES), {}


def _toy(records):
    correlation = {}
    for row in sorted(records.rows.values(), key=lambda row: row["key"]["seed"]):
        by_weight = correlation.setdefault(row["key"]["setting"], {})
        for name, value in row["correlation"].items():
            by_weight.setdefault(name, []).append(short(value))
    return {}, {"correlation": correlation}


def _depth(records):
    found = {}
    for row in sorted(records.rows.values(), key=lambda row: row["key"]["seed"]):
        of_set = found.setdefault(row["key"]["setting"], {})
        for name, value in row["found"].items():
            of_set.setdefault(name, []).append(short(value))
    return {}, {"found": found}


def _prio(records):
    """Return {setting: {guide: {steps: ...}}}; other losses than cross-entropy by name."""
    kept = (*PRIO_METRICS, "seconds")
    settings = {}
    rows = sorted(records.rows.values(), key=lambda row: row["key"]["seed"])
    for row in rows:
        key = row["key"]
        plain = key["loss"] == "cross-entropy"
        name = key["method"] if plain else f"{key['method']}, {key['loss']}"
        methods = settings.setdefault(key["setting"], {})
        if name not in methods:
            same = [r for r in rows if {**r["key"], "seed": 0} == {**key, "seed": 0}]
            methods[name] = {point: values_of(same, point, kept) for point in row["points"]}
            methods[name] = {p: {"options": {}, **v} for p, v in methods[name].items()}
    return _complete_settings(settings), {}


def _complete_settings(settings):
    complete = {setting: _complete(methods) for setting, methods in settings.items()}
    return {setting: methods for setting, methods in complete.items() if methods}


def _complete(methods):
    """Leave out methods that have not run on enough seeds yet."""
    seeds = {name: len(points["last"]["accuracy"]) for name, points in methods.items()}
    return {name: points for name, points in methods.items() if seeds[name] >= LEAST_SEEDS}


def _shift(records):
    found = {}
    for row in sorted(records.rows.values(), key=lambda row: row["key"]["seed"]):
        of_method = found.setdefault(row["key"]["method"], {})
        for severity, values in row["severities"].items():
            at = of_method.setdefault(severity, {})
            for name, value in values.items():
                at.setdefault(name, []).append(short(value))
    return {}, {"severities": found}


PRIO_METRICS = ("accuracy", "nll", "nll_scaled", "ece", "ece_scaled", "temperature")


def _sensitivity(records):
    return every_candidate(records, kept=("accuracy", "ece", "nll", "aurc")), {}


def _validation(records):
    kept = (
        "accuracy",
        "nll",
        "nll_scaled",
        "ece_scaled",
        "temperature",
        "epoch",
        "val_nll_scaled",
    )
    names = ("last", "stop")
    points = [p if v == "clean" else f"{p}, {v}" for p in names for v in VALIDATION]
    return every_candidate(records, points=points, kept=kept), {}


VALIDATION = ("clean", "noisy", "repaired")
SUMMARIES = {
    "rmd20": _texts(RMD),
    "rmd100": _texts(RMD),
    "sensitivity": _sensitivity,
    "sources": _sources,
    "human": _human,
    "validation": _validation,
    "gra_toy": _toy,
    "prio": _prio,
    "depth": _depth,
    "shift": _shift,
    "gra_texts": _texts(GRA, "classwise"),
    "rmd_images": _rmd_images,
    "gra_images": _gra_images,
}
# Two studies of one file, which share the runs of some methods.
RECORDED = {"rmd_images": "cifar", "gra_images": "cifar"}
_RMD, _GRA = ({method.name for method in methods} for methods in (RMD_IMAGES, GRA_IMAGES))
SHARED = {
    "rmd_images": lambda key: key["method"] in _RMD | {"AUROC of flips"},
    "gra_images": lambda key: key["method"] in _GRA and key["setting"] == "clean",
}
