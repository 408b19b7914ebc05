"""Wrong labels with known truth: python -m benchmarks.labels [--data DIR].

Labels that people gave wrong (votes on CIFAR-10 images, on the features of a ResNet-20; genres of
songs), labels as published, and flips at random or from class to class. For every method:
precision and recall of the issues, AUROC of the ranking, the estimated rate, the calibration error
of p_label_correct (ten bins), the fraction of labels right after every issue got its suggested
label. "checks" is the mean over draws of 100 random checks. Where cleanlab is installed, it judges
by out-of-fold probabilities of a logistic regression, as do small loss (half of the probability
mass of the label is gone) and the votes of 15 neighbors. No method can know the true rate where
people err on hard samples: only the checks see it.

Writes benchmarks/labels_results.json and the tables of the guide; without --data the tables alone.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._tables import keep
from benchmarks.papers.tables import csv_table
from skcalib.datasets import flip_labels
from skcalib.labels import LabelIssueFinder

try:
    from cleanlab.filter import find_label_issues
except ImportError:
    find_label_issues = None

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "labels_results.json"
PAGE = ROOT / "docs" / "measured" / "labels_results.inc"
DRAWS = 20


def votes(counts, true, n_votes, seed):
    """Return a wrong vote where one of `n_votes` is wrong, else the true label."""
    rng = np.random.default_rng(seed)
    given = true.copy()
    for row, count in enumerate(counts):
        drawn = rng.choice(len(count), n_votes, p=count / count.sum())
        wrong = drawn[drawn != true[row]]
        given[row] = wrong[0] if len(wrong) else true[row]
    return given


def from_class_to_class(true, seed):
    """Rename up to 40 % of the samples of every class into one other class."""
    rng = np.random.default_rng(seed)
    n_classes = true.max() + 1
    rate = rng.uniform(0, 0.4, n_classes)
    other = (np.arange(n_classes) + rng.integers(1, n_classes, n_classes)) % n_classes
    return np.where(rng.random(len(true)) < rate[true], other[true], true)


def sets(folder):
    """Yield (set, noise, X, true, given)."""
    human = np.load(folder / "human_labels.npz")
    for name in ("one_0", "one_1", "majority"):
        yield "music", name, human["music_X"], human["music_true"], human[f"music_{name}"]
    features = np.load(folder / "cifar10_resnet20_features.npz")
    rows = np.arange(0, 10_000, 4)
    X, true = features["features"][rows].astype(np.float32), features["y"][rows].astype(int)
    counts = np.load(folder / "cifar10h.npz")["counts"][rows]
    for n_votes in (1, 3, 10):
        yield "ResNet-20", f"{n_votes} votes", X, true, votes(counts, true, n_votes, n_votes)
    clinc = np.load(folder / "clinc150_minilm.npz", allow_pickle=True)
    y = clinc["y_train"].astype(int)
    rng = np.random.default_rng(0)
    some = np.concatenate(
        [rng.choice(np.flatnonzero(y == k), 20, replace=False) for k in range(150)]
    )
    tables = {
        "segment": (human["segment_X"][::2], human["segment_true"][::2]),
        "phoneme": (human["phoneme_X"][::3], human["phoneme_true"][::3]),
        "digits": load_digits(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "CLINC150": (clinc["X_train"][some].astype(np.float32), y[some]),
    }
    for name, (X, true) in tables.items():
        yield name, "published", X, true, true
        yield name, "random 5 %", X, true, flip_labels(true, fraction=0.05, random_state=0)[0]
        yield name, "random 20 %", X, true, flip_labels(true, fraction=0.2, random_state=0)[0]
        yield name, "class to class", X, true, from_class_to_class(true, 0)


def judged(true, given, issue, suggested, p_correct, rate):
    wrong = true != given
    both = (wrong & issue).sum()
    row = {
        "true_rate": wrong.mean(),
        "rate": rate,
        "precision": both / issue.sum() if issue.any() else None,
        "recall": both / wrong.sum() if wrong.any() else None,
        "auroc": roc_auc_score(wrong, -p_correct) if wrong.any() else None,
        "right": np.mean(np.where(issue, suggested, given) == true),
        "calibration": np.abs(
            np.bincount(np.minimum((10 * p_correct).astype(int), 9), p_correct - ~wrong, 10)
        ).sum()
        / len(wrong),
    }
    return {name: None if v is None else round(float(v), 4) for name, v in row.items()}


def found_by(finder, true, given):
    issues, (low, high) = finder.issues_, finder.noise_rate_interval_
    columns = (issues[name] for name in ("is_issue", "suggested_label", "p_label_correct"))
    row = judged(true, given, *columns, finder.noise_rate_)
    return row | {"covered": bool(low - 1e-9 <= row["true_rate"] <= high + 1e-9)}


def mean_of(rows):
    table = {name: [row[name] for row in rows if row[name] is not None] for name in rows[0]}
    return {n: round(float(np.mean(values)), 4) if values else None for n, values in table.items()}


def rows_of(X, true, given):
    """Yield (method, results)."""
    start = time.process_time()
    finder = LabelIssueFinder().fit(X, given)
    seconds = time.process_time() - start
    found = found_by(finder, true, given)
    yield "skcalib", found | {"doubts": len(finder.caveats_), "cpu_seconds": round(seconds, 2)}
    draws = []
    for seed in range(DRAWS):
        rows = finder.draw_samples_to_check(min(100, len(X)), random_state=seed)
        draws.append(found_by(finder.update_with_checks(rows, true[rows]), true, given))
    yield "skcalib, 100 checks", mean_of(draws)
    classes, codes = np.unique(given, return_inverse=True)
    rivals = {
        "small loss": LogisticRegression(max_iter=100, tol=1e-3),
        "15 neighbors": KNeighborsClassifier(15),
    }
    for method, model in rivals.items():
        model = make_pipeline(StandardScaler(), model)
        proba = cross_val_predict(model, X, codes, cv=5, method="predict_proba")
        p, best = proba[np.arange(len(codes)), codes], classes[proba.argmax(axis=1)]
        issue = p < 0.5 * proba.max(axis=1)
        yield method, judged(true, given, issue, best, p, issue.mean())
        if method == "small loss" and find_label_issues is not None:
            issue = find_label_issues(codes, proba, n_jobs=1)
            yield "cleanlab", judged(true, given, issue, best, p, issue.mean())


def page(rows):
    """Return the tables of the guide: issues and ranking, rates and repair."""
    cells = {(r["set"], r["noise"], r["method"]): r for r in rows}
    keys = list(dict.fromkeys((r["set"], r["noise"]) for r in rows))
    methods = [m for m in dict.fromkeys(r["method"] for r in rows) if "checks" not in m]

    def number(row, *names):
        found = [row.get(name) for name in names]
        return " / ".join("\\-" if v is None else f"{v:.2f}" for v in found)

    ranked = [
        [*key, *(number(cells[(*key, m)], "precision", "recall", "auroc") for m in methods)]
        for key in keys
    ]
    rates = []
    for key in keys:
        ours, checked = (cells[(*key, m)] for m in ("skcalib", "skcalib, 100 checks"))
        rates.append(
            [
                *key,
                f"{ours['true_rate']:.3f}",
                f"{ours['rate']:.3f}",
                f"{checked['rate']:.3f}",
                f"{checked['covered']:.0%}",
                f"{number(ours, 'recall')}, {number(checked, 'recall')}",
                number(ours, "calibration"),
                number(checked, "calibration"),
                *(f"{cells[(*key, m)]['right']:.3f}" for m in methods),
            ]
        )
    return "\n".join([
        csv_table("Precision / recall / AUROC", ["Set", "Noise", *methods], ranked),
        csv_table(
            "Noise rate, calibration error of p_label_correct, right labels after repair",
            ["Set", "Noise", "True rate", "Rate", "After 100 checks", "Interval holds then",
             "Recall, after checks", "Error", "After checks",
             *(f"Right: {m}" for m in methods)],
            rates,
        ),
    ])  # fmt: skip


def results(folder):
    for name, noise, X, true, given in sets(folder):
        for method, row in rows_of(X, true, given):
            yield {"set": name, "noise": noise, "method": method} | row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    folder = parser.parse_args().data
    if folder is not None:
        warnings.simplefilter("ignore")
        keep(results(folder), RESULTS)
    PAGE.write_text(page(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
