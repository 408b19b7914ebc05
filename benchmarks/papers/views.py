"""The JSON of the studies as {setting: {method: {point: {metric: values}}}}, for the claims."""

from __future__ import annotations

from functools import partial

import numpy as np

from .summary import RESULTS, VALIDATION, load


def available():
    return {path.stem for path in RESULTS.glob("*.json")}


def view(name):
    """Return the settings of a study, or of what it keeps besides; {} where it has not run."""
    make = VIEWS.get(name, lambda: load(name)["settings"])
    return make() if name.split(":")[0] in available() else {}


def _methods(values, metric):
    return {name: {"last": {"options": {}, metric: v}} for name, v in values.items()}


def _auroc(study):
    found = load(study)["extra"]["auroc_of_flips"]
    return {setting: _methods(values, "AUROC of flips") for setting, values in found.items()}


def _toy():
    found = load("gra_toy")["extra"]["correlation"]
    return {setting: _methods(values, "correlation") for setting, values in found.items()}


def _depth():
    settings = {}
    for setting, values in load("depth")["extra"]["found"].items():
        zero = {"zero": [0.0] * max(map(len, values.values()))}
        settings[setting] = _methods(values | zero, "value")
    return settings


def _shift():
    """Severities as settings, the ways to recalibrate as points."""
    settings = {}
    for method, severities in load("shift")["extra"]["severities"].items():
        for severity, values in severities.items():
            points = {}
            for name, numbers in values.items():
                metric, _, how = name.partition(", ")
                points.setdefault(how or "last", {"options": {}})[metric] = numbers
            settings.setdefault(f"severity {severity}", {})[method] = points
    return settings


def _ranges():
    """Per seed the largest minus the smallest ECE and accuracy over alpha, at T = .3."""
    settings = {}
    for setting, methods in load("sensitivity")["settings"].items():
        groups = {}
        for name, points in methods.items():
            options = points["last"]["options"]
            if options.get("temperature", 0.3) == 0.3:
                groups.setdefault(name.split(" {")[0], []).append(points["last"])
        settings[setting] = {
            method: {
                "last": {
                    f"range of {metric}": np.ptp([v[metric] for v in values], axis=0).tolist()
                    for metric in ("ece", "accuracy")
                }
            }
            for method, values in groups.items()
        }
    return settings


def _recalibrated():
    """The methods of the shift study before and after recalibration as methods of one point."""
    settings = {}
    for severity, methods in _shift().items():
        settings[severity] = {
            f"{method}, {how}": {"last": values}
            for method, points in methods.items()
            for how, values in points.items()
        }
    return settings


def _by_labels():
    """Kinds of validation labels as methods: what each stops at, and what it would choose."""
    settings = {}
    for setting, methods in load("validation")["settings"].items():
        found = settings.setdefault(setting, {})
        for kind in VALIDATION:
            point = "stop" if kind == "clean" else f"stop, {kind}"
            for name, points in methods.items():
                found[f"{name.removesuffix(' {}')}, {kind}"] = {"last": points[point]}
            found[f"choice, {kind}"] = {"last": _choice([p[point] for p in methods.values()])}
    return settings


def _choice(points):
    """Per seed the test metrics of the candidate with the lowest loss on validation."""
    best = np.argmin([point["val_nll_scaled"] for point in points], axis=0)
    names = ("accuracy", "nll_scaled")
    return {n: [points[i][n][seed] for seed, i in enumerate(best)] for n in names}


VIEWS = {
    "validation:labels": _by_labels,
    "human:gains": lambda: load("human")["extra"]["rmd_minus"],
    "sources:auroc": partial(_auroc, "sources"),
    "rmd_images:auroc": partial(_auroc, "rmd_images"),
    "gra_toy": _toy,
    "depth": _depth,
    "shift": _shift,
    "shift:recalibrated": _recalibrated,
    "sensitivity:ranges": _ranges,
}
