"""Does the finder of wrong labels warn where it is wrong?

``python -m benchmarks.labels_trust --data DIR --rows FILE`` judges many sets, as they are and with
features that fit badly (two principal components, exponentials, added noise), under four kinds of
wrong labels, by the default judges and by distances alone. A claim is off where the fraction of
issues that are wrong differs by more than .25 from what their probabilities say (of five issues or
more). FILE gets a line a run; a run that it has is not repeated. Sets are in thirds by a hash of
their names, and no threshold is set on the last third. In the end the counts go to
labels_trust_results.json and the table to the guide.
"""

import argparse
import json
import warnings
import zlib
from itertools import product
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.label_sets import labels_of, published, sentences, shapes
from benchmarks.labels import found_by
from benchmarks.papers.tables import csv_table
from skcalib.difficulty import RMDScorer
from skcalib.labels import LabelIssueFinder

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "labels_trust_results.json"
PAGE = ROOT / "docs" / "measured" / "labels_trust.inc"
NOISES = ("published", "random 20 %", "class to class", "hard samples")
JUDGES = {
    "default": None,
    "distances": make_pipeline(StandardScaler(), RMDScorer(shrinkage="auto")),
}
MOST_SAMPLES = 800


def sets(folder):
    """Yield (name, X, y)."""
    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield name, *getattr(datasets, f"load_{name}")(return_X_y=True)
    classes = {"n_informative": 6, "n_classes": 4, "flip_y": 0, "random_state": 3}
    for sep in (0.5, 1.0, 2.0):
        yield f"generated{sep}", *datasets.make_classification(1000, class_sep=sep, **classes)
    yield from shapes()
    yield from published(folder)
    for name, X, y in sentences(folder, ((60, 20), (30, 40), (12, 80)), 100):
        yield name.replace(" ", ""), X, y


def views(name, X, y):
    """Yield a set as it is, and one in three of them with features that fit badly."""
    rng = np.random.default_rng(0)
    y = np.unique(y, return_inverse=True)[1]
    if len(y) > MOST_SAMPLES and y.max() < 20:
        rows = rng.permutation(len(y))[:MOST_SAMPLES]
        X, y = X[rows], y[rows]
    enough = np.bincount(y)[y] >= 8
    X, y = X[enough], np.unique(y[enough], return_inverse=True)[1]
    yield name, X, y
    if zlib.crc32(name[::-1].encode()) % 3 == 0 and X.shape[1] > 2:
        Z = StandardScaler().fit_transform(X)
        yield f"{name}, two components", PCA(2, random_state=0).fit_transform(Z), y
        yield f"{name}, exponentials", np.exp(1.5 * Z.clip(-5, 5)), y
        yield f"{name}, noise added", Z + 2.0 * rng.standard_normal(Z.shape), y


def kept_out(name):
    return zlib.crc32(name.split(",")[0].encode()) % 3 == 2


def run(X, true, given, judges):
    """Return what the finder claims, how far that holds, and the same after 100 checks."""
    finder = LabelIssueFinder(judges).fit(X, given)
    issue, row = finder.issues_["is_issue"], found_by(finder, true, given)
    row |= {"issues": int(issue.sum()), "doubts": len(finder.caveats_)}
    if issue.any():
        row["claimed"] = float(1 - finder.issues_["p_label_correct"][issue].mean())
    rows = finder.draw_samples_to_check(min(100, len(X)), random_state=0)
    checked = found_by(finder.update_with_checks(rows, true[rows]), true, given)
    return row | {f"checked_{name}": value for name, value in checked.items()}


def is_off(row):
    return row["issues"] >= 5 and abs(row["claimed"] - row["precision"]) > 0.25


def counted(rows):
    """Return counts for all judges and wrong labels, of the sets kept out and of the others."""
    result = []
    for judges, out in product(JUDGES, (True, False)):
        for noise in NOISES:
            of = judges, noise, out
            some = [r for r in rows if (r["judges"], r["noise"], kept_out(r["set"])) == of]
            off = [r for r in some if is_off(r)]
            warned = sum(r["doubts"] > 0 for r in off)
            result.append({
                "judges": judges, "kept_out": out, "noise": noise, "runs": len(some),
                "off": len(off), "too_high": sum(r["claimed"] > r["precision"] for r in off),
                "off_and_warned": warned,
                "warned_otherwise": sum(r["doubts"] > 0 for r in some) - warned,
                "right_given": round(1 - np.mean([r["true_rate"] for r in some]), 4),
                "right_repaired": round(np.mean([r["right"] for r in some]), 4),
                "interval_holds": sum(r["checked_covered"] for r in some),
                "error": round(np.mean([r["calibration"] for r in some]), 4),
                "error_checked": round(np.mean([r["checked_calibration"] for r in some]), 4),
            })  # fmt: skip
    return result


def page(counts):
    """Return the table of the guide."""
    head = [
        "Judges", "Sets", "Labels", "Runs", "Claim off", "too high", "off and warned",
        "Warned, not off",
        "Right as given", "Right after repair", "Error of p", "after 100 checks",
        "Interval holds then",
    ]  # fmt: skip
    cells = [
        [
            c["judges"], "kept out" if c["kept_out"] else "others", c["noise"], c["runs"],
            c["off"], c["too_high"], c["off_and_warned"], c["warned_otherwise"],
            f"{c['right_given']:.3f}",
            f"{c['right_repaired']:.3f}", f"{c['error']:.3f}", f"{c['error_checked']:.3f}",
            f"{c['interval_holds']} of {c['runs']}",
        ]
        for c in counts
    ]  # fmt: skip
    return csv_table("", head, cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.rows.touch()
    rows = [json.loads(line) for line in options.rows.read_text().splitlines()]
    done = {(row["judges"], row["set"], row["noise"]) for row in rows}
    with options.rows.open("a") as file:
        for base in sets(options.data):
            for name, X, true in views(*base):
                for noise, judges in product(NOISES, JUDGES):
                    if (judges, name, noise) in done:
                        continue
                    row = {"judges": judges, "set": name, "noise": noise}
                    row |= run(X, true, labels_of(noise, X, true), JUDGES[judges])
                    rows.append(row)
                    print(json.dumps(row), file=file, flush=True)
    counts = counted(rows)
    RESULTS.write_text("[\n" + ",\n".join(map(json.dumps, counts)) + "\n]\n")
    PAGE.write_text(page(counts))


if __name__ == "__main__":
    main()
