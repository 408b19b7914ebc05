"""Label issues with known truth: python -m benchmarks.labels --data DIR [--out FILE] [--seeds N].

CLINC150 on MiniLM features (5 to 100 samples a class), the handwritten digits, and CIFAR-10 test
images on the features of a ResNet-20. Labels are flipped at random, to the class nearest to the
sample, or in systematic pairs (A is called B). For every method: the estimated noise rate;
precision and recall of the issues; the calibration error of p_label_correct (ten bins); the
fraction of labels that are right after every issue got its suggested label.

Where cleanlab is installed, it judges the same samples by out-of-fold probabilities of a logistic
regression, if every class has samples; "noise model on probabilities" is LabelIssueFinder on these
very probabilities. Means over seeds, and standard errors. benchmarks/labels_results.json holds all
runs that the guide reports.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from skcalib.datasets import flip_labels
from skcalib.labels import LabelIssueFinder

NOISE = (
    ("clean", 0.0),
    ("random", 0.01),
    ("random", 0.05),
    ("random", 0.2),
    ("random", 0.4),
    ("nearest", 0.05),
    ("nearest", 0.2),
    ("pairs", 0.08),
)
COLUMNS = ("rate", "precision", "recall", "flagged", "calibration", "right", "seconds")


def with_noise(y, kind, rate, seed, means, X):
    """Return labels with noise; "pairs" renames 40 % of the samples of some classes."""
    rng = np.random.default_rng(seed)
    n_classes = len(means)
    if kind in ("clean", "random"):
        return flip_labels(y, fraction=rate, random_state=seed)[0]
    given = y.copy()
    if kind == "nearest":
        rows = rng.choice(len(y), round(rate * len(y)), replace=False)
        distance = ((X[rows, None, :] - means) ** 2).sum(axis=2)
        distance[np.arange(len(rows)), y[rows]] = np.inf
        given[rows] = distance.argmin(axis=1)
        return given
    apart = ((means[:, None, :] - means) ** 2).sum(axis=2) + np.diag(np.full(n_classes, np.inf))
    for a in rng.choice(n_classes, max(1, round(n_classes * rate / 0.4)), replace=False):
        rows = np.flatnonzero(y == a)
        given[rng.choice(rows, round(0.4 * len(rows)), replace=False)] = apart[a].argmin()
    return given


class Precomputed(ClassifierMixin, BaseEstimator):
    """A classifier whose input is the numbers of the rows of a matrix of probabilities."""

    def __init__(self, proba=None):
        self.proba = proba

    def fit(self, X, y):
        self.classes_ = np.arange(self.proba.shape[1])
        return self

    def predict_proba(self, X):
        return self.proba[X[:, 0]]


def judged(true, given, issue, suggested, p_correct, rate):
    wrong = true != given
    repaired = np.where(issue, suggested, given)
    row = {
        "rate": rate,
        "true_rate": wrong.mean(),
        "precision": (wrong & issue).sum() / issue.sum() if issue.any() else np.nan,
        "recall": (wrong & issue).sum() / wrong.sum() if wrong.any() else np.nan,
        "flagged": issue.mean(),
        "right": (repaired == true).mean(),
    }
    if p_correct is not None:
        group = np.minimum((10 * p_correct).astype(int), 9)
        gaps = np.bincount(group, p_correct - ~wrong, minlength=10)
        row["calibration"] = np.abs(gaps).sum() / len(wrong)
    return {name: float(value) for name, value in row.items()}


def by_finder(finder, X, given, true):
    start = time.perf_counter()
    issues = finder.fit(X, given).issues_
    seconds = time.perf_counter() - start
    low, high = finder.noise_rate_interval_
    row = judged(
        true, given, issues["is_issue"], issues["suggested_label"], issues["p_label_correct"],
        finder.noise_rate_,
    )  # fmt: skip
    covered = float(low <= (true != given).mean() <= high)
    return row | {"seconds": seconds, "covered": covered, "low": low, "high": high}


def out_of_fold(X, given):
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class smaller than the number of folds; not settled
        model = LogisticRegression(C=10.0, max_iter=100)
        return cross_val_predict(model, X, given, cv=folds, method="predict_proba")


def by_cleanlab(proba, given, true):
    from cleanlab.filter import find_label_issues

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes of few samples
        issue = find_label_issues(given, proba, n_jobs=1)
    return judged(true, given, issue, proba.argmax(axis=1), None, issue.mean())


def rows_of(X, y, means, seed, kind, rate, *, rivals):
    given = with_noise(y, kind, rate, seed, means, X)
    for noise in ("mixed", "random"):
        yield f"LabelIssueFinder, {noise}", by_finder(LabelIssueFinder(noise=noise), X, given, y)
    if not rivals:
        return
    if np.bincount(given, minlength=len(means)).min() < 2:
        return
    start = time.perf_counter()
    proba = out_of_fold(X, given)
    seconds = time.perf_counter() - start
    row = by_cleanlab(proba, given, y)
    yield "cleanlab", row | {"seconds": seconds}
    finder = LabelIssueFinder(Precomputed(proba), n_refits=0)
    yield "noise model on probabilities", by_finder(finder, np.arange(len(X))[:, None], given, y)


def sets(folder, seeds):
    """Yield (name, seed, X, y, means of all samples of the set, noise, whether rivals run)."""
    data = np.load(folder / "clinc150_minilm.npz", allow_pickle=True)
    X, y = data["X_train"].astype(np.float32), data["y_train"].astype(int)
    means = np.stack([X[y == k].mean(axis=0) for k in range(150)])
    for n_each in (5, 10, 20, 100):
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            rows = [rng.choice(np.flatnonzero(y == k), n_each, replace=False) for k in range(150)]
            rows = np.concatenate(rows)
            rivals = n_each < 100 or seed < 1
            yield f"CLINC150, {n_each} a class", seed, X[rows], y[rows], means, NOISE, rivals
    X, y = load_digits(return_X_y=True)
    X = PCA(30, random_state=0).fit_transform(X)
    X /= X.std()  # for the logistic regression; the scorer is indifferent to it
    means = np.stack([X[y == k].mean(axis=0) for k in range(10)])
    for seed in range(seeds):
        rows = np.random.default_rng(seed).choice(len(X), 900, replace=False)
        yield "digits, 90 a class", seed, X[rows], y[rows], means, NOISE, True
    data = np.load(folder / "cifar10_resnet20_features.npz")
    X, y = data["features"].astype(np.float32), data["y"].astype(int)
    means = np.stack([X[y == k].mean(axis=0) for k in range(10)])
    for seed in range(min(seeds, 2)):
        yield "CIFAR-10, 1000 a class", seed, X, y, means, (NOISE[0], *NOISE[2:5]), False


def has_cleanlab() -> bool:
    try:
        import cleanlab  # noqa: F401
    except ImportError:
        return False
    return True


def summary(rows):
    """Mean and standard error over the seeds of each (set, noise, rate, method)."""
    groups = {}
    for row in rows:
        key = (row["set"], row["noise"], row["noise_rate"], row["method"])
        groups.setdefault(key, []).append(row)
    for key, group in groups.items():
        cells = {}
        for name in (*COLUMNS, "covered"):
            values = np.array([r[name] for r in group if np.isfinite(r.get(name, np.nan))])
            if len(values):
                error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
                cells[name] = (float(values.mean()), float(error))
        yield key, len(group), cells


def show(rows) -> None:
    previous = None
    for (name, noise, rate, method), n, cells in summary(rows):
        if name != previous:
            print(f"\n{name}\n{'noise':14s}{'method':30s}" + "".join(f"{c:>14s}" for c in COLUMNS))
            previous = name
        text = [
            f"{cells[c][0]:8.4f}±{cells[c][1]:.4f}" if c in cells else " " * 8 + "-"
            for c in COLUMNS
        ]
        print(f"{noise:8s}{rate:5.0%} {method:30s}" + "".join(f"{t:>15s}" for t in text), f"n={n}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="JSON of all runs, written as they come")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="sets whose name contains this")
    arguments = parser.parse_args()
    rows, compare = [], has_cleanlab()
    for name, seed, X, y, means, noises, rivals in sets(arguments.data, arguments.seeds):
        if arguments.only not in name:
            continue
        for kind, rate in noises:
            for method, row in rows_of(X, y, means, seed, kind, rate, rivals=rivals and compare):
                key = {"set": name, "seed": seed, "noise": kind, "noise_rate": rate}
                rows.append(key | {"method": method} | row)
        if arguments.out:
            arguments.out.write_text(json.dumps(rows, indent=0) + "\n")
    show(rows)


if __name__ == "__main__":
    main()
