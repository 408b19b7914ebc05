"""The same question to skcalib and to other libraries: the figures of README and comparison.

    python -m benchmarks.beside [--draws 100]
    python -m benchmarks.beside --page

How often are calibrated models flagged, and overconfident ones found? An interval of the
calibration error flags a model where it excludes 0, a test where its p-value is below .05. Each
library gets its own function, at 95 %, on the same draws of `make_predictions`: labels are drawn
from the probabilities that the model states (calibrated), or from those that its logits divided by
1.5 would give (overconfident).

Which labels of digits are flagged, where a tenth of them is wrong? cleanlab's Datalab gets the
features, as ours does.

Libraries that are not installed are left out: uncertainty-calibration, probcal, MAPIE, cleanlab
(with datasets). Rows go to beside_results.json; --page makes docs/reference/beside.inc and the
pictures docs/_static/beside.png and beside_dark.png of what is there.
"""

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from benchmarks._tables import keep
from benchmarks.papers.tables import csv_table
from skcalib.datasets import flip_labels, make_predictions
from skcalib.labels import LabelIssueFinder
from skcalib.metrics import calibration_error_interval, calibration_test

RESULTS = Path(__file__).with_name("beside_results.json")
DOCS = Path(__file__).parents[1] / "docs"
LEVEL = 0.05
# Answer: is this model flagged? Two classes: the probability of class 1; several: all columns.
Verdict = Callable[[np.ndarray, np.ndarray, int], bool]


def by_interval(y, proba, seed):
    return calibration_error_interval(y, proba, random_state=seed)[0] > 0


def by_test(y, proba, seed):
    return calibration_test(y, proba, random_state=seed).pvalue < LEVEL


def by_uncertainty_calibration(y, proba, seed):
    import calibration

    np.random.seed(seed)  # noqa: NPY002 - its bootstrap knows no other way
    mode = "marginal" if proba.ndim == 1 else "top-label"
    low = calibration.get_calibration_error_uncertainties(proba, y, p=1, alpha=LEVEL, mode=mode)[0]
    return low > 0


def by_probcal(y, proba, seed, metric="ece"):
    from probcal.metrics import evaluate

    report = evaluate(y, proba, metrics=[metric], n_boot=200, random_state=seed)
    return report.ci_low[0] > 0


def by_probcal_test(y, proba, seed):
    from probcal.metrics import calibration_test

    return calibration_test(y, proba).p_value < LEVEL


def by_mapie(y, proba, seed, name="kolmogorov_smirnov"):
    from mapie.metrics import calibration

    return getattr(calibration, f"{name}_p_value")(y, proba) < LEVEL


# Name -> (package to import, function, takes several classes).
VERDICTS: dict[str, tuple[str, Verdict, bool]] = {
    "skcalib, interval": ("skcalib", by_interval, True),
    "skcalib, test": ("skcalib", by_test, True),
    "uncertainty-calibration, interval": ("calibration", by_uncertainty_calibration, True),
    "probcal, interval": ("probcal", by_probcal, False),
    "probcal, interval of its debiased error": (
        "probcal",
        lambda y, proba, seed: by_probcal(y, proba, seed, "ece_debiased"),
        False,
    ),
    "probcal, test": ("probcal", by_probcal_test, False),
    "MAPIE, Kolmogorov-Smirnov test": ("mapie", by_mapie, False),
    "MAPIE, Spiegelhalter test": (
        "mapie",
        lambda y, proba, seed: by_mapie(y, proba, seed, "spiegelhalter"),
        False,
    ),
}


def accusations(draws: int) -> Iterator[dict]:
    """Yield the fraction of models that each library flags."""
    for n_classes in (2, 4):
        for n in (300, 1000):
            for temperature in (1.0, 1.5):
                models = []
                for seed in range(draws):
                    y, proba, _ = make_predictions(
                        n, n_classes=n_classes, temperature=temperature, random_state=seed
                    )
                    models.append((y, proba[:, 1] if n_classes == 2 else proba, seed))
                for name, (package, verdict, several) in VERDICTS.items():
                    if find_spec(package) is None or (n_classes > 2 and not several):
                        continue
                    share = float(np.mean([verdict(*model) for model in models]))
                    yield {
                        "library": name,
                        "n_classes": n_classes,
                        "n_samples": n,
                        "temperature": temperature,
                        "accused": share,
                        "draws": draws,
                    }


def flagged_by_cleanlab(X, y):
    from cleanlab import Datalab

    lab = Datalab({"y": y}, label_name="y", verbosity=0)
    lab.find_issues(features=X, issue_types={"label": {}})
    return lab.get_issues("label")["is_label_issue"].to_numpy()


def flagged_here(X, y):
    return np.asarray(LabelIssueFinder().fit(X, y).issues_["is_issue"])


def flags(draws: int) -> Iterator[dict]:
    """Yield how many flagged labels are wrong, and how many wrong labels are flagged."""
    X, right = load_digits(return_X_y=True)
    finders = {"skcalib": flagged_here}
    if find_spec("cleanlab") is not None and find_spec("datasets") is not None:
        finders["cleanlab, Datalab"] = flagged_by_cleanlab
    for name, find in finders.items():
        found = []
        for seed in range(draws):
            y, _ = flip_labels(right, fraction=0.1, random_state=seed)
            flagged, wrong = find(X, y), y != right
            hits = (flagged & wrong).sum()
            found.append((hits / flagged.sum(), hits / wrong.sum()))
        precision, recall = np.mean(found, axis=0)
        yield {
            "library": name,
            "precision": float(precision),
            "recall": float(recall),
            "draws": draws,
        }


def measure(draws: int = 100) -> Iterator[dict]:
    """Yield the rows of both questions; the second, slower one asks a tenth of the draws."""
    warnings.simplefilter("ignore")
    yield from accusations(draws)
    yield from flags(max(1, draws // 10))


def accused(rows: list[dict], n_classes: int, n_samples: int) -> dict[str, tuple[int, int]]:
    """Return {library: percent of calibrated and of overconfident models that it accuses}."""
    found: dict[str, dict[float, int]] = {}
    for row in rows:
        if row.get("n_classes") == n_classes and row["n_samples"] == n_samples:
            found.setdefault(row["library"], {})[row["temperature"]] = round(100 * row["accused"])
    return {name: (by[1.0], by[1.5]) for name, by in found.items()}


def page(rows: list[dict]) -> str:
    """Return the table of all sizes: calibrated / overconfident models flagged, in percent."""
    sizes = [(2, 300), (2, 1000), (4, 300), (4, 1000)]
    columns = {size: accused(rows, *size) for size in sizes}
    names = list(columns[sizes[0]])
    body = [
        # In a cell, a lone "-" would be the bullet of a list.
        [name, *(" / ".join(map(str, columns[s].get(name, [r"\-"]))) for s in sizes)]
        for name in names
    ]
    head = ["95 %", *(f"{k} classes, {n} samples" for k, n in sizes)]
    return csv_table("", head, body) + "\n"


def draw(rows: list[dict], path: Path, style: str, colors: tuple[str, str], gray: str) -> None:
    """Draw one line a library: the calibrated models that it accuses, and the overconfident."""
    both = accused(rows, 2, 300)
    with plt.style.context([style, {"font.size": 11}]):
        figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
        for y, (calibrated, overconfident) in enumerate(reversed(both.values())):
            ax.plot([0, 100], [y, y], color=gray, linewidth=0.5, alpha=0.5)
            ax.scatter(overconfident, y, s=70, marker="D", color=colors[1], zorder=3)
            ax.scatter(calibrated, y, s=70, color=colors[0], zorder=4)
        ax.axvline(100 * LEVEL, color=gray, linestyle=":")
        ax.set_yticks(range(len(both)), list(reversed(both)))
        ax.set(xlim=(-3, 103), xlabel="flagged, of 100 models, each tested on 300 samples")
        ax.scatter([], [], marker="o", color=colors[0], label="calibrated: should be at most 5")
        ax.scatter([], [], marker="D", color=colors[1], label="overconfident: the more the better")
        figure.legend(loc="outside upper left", ncols=2, frameon=False)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        figure.savefig(path, dpi=144, transparent=style != "default")
        plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--page", action="store_true", help="make page and pictures alone")
    given = parser.parse_args()
    if not given.page:
        keep(measure(given.draws), RESULTS)
    kept = json.loads(RESULTS.read_text())
    (DOCS / "reference/beside.inc").write_text(page(kept))
    static = DOCS / "_static"
    draw(kept, static / "beside.png", "default", ("#d55e00", "#0072b2"), "#555555")
    draw(kept, static / "beside_dark.png", "dark_background", ("#ff9a4d", "#56b4e9"), "#aaaaaa")
