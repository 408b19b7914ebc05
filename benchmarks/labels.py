"""Label issues with known truth: python -m benchmarks.labels --data DIR [--out FILE] [--seeds N].

With --out, runs that the file holds are not repeated. --verified: what checked labels are worth.
--plot FILE draws how p_label_correct is calibrated. --speed 100000 512 1000: the time of so many
samples, features and classes against the sum of its parts (no data needed), and that of cleanlab.

CLINC150 on MiniLM features (5 to 100 samples a class), the handwritten digits, and CIFAR-10 test
images on the features of a ResNet-20. Labels are flipped at random, to the class nearest to the
sample, or in systematic pairs (A is called B). For every method: the estimated noise rate;
precision and recall of the issues; the calibration error of p_label_correct (ten bins); the
fraction of labels that are right after every issue got its suggested label.

Where cleanlab is installed, it judges the same samples by out-of-fold probabilities of a logistic
regression; "noise model on probabilities" is LabelIssueFinder on these very probabilities. A class
without labels has a probability of 0. Means over seeds, and standard errors.
benchmarks/labels_results.json holds all runs that the guide reports; benchmarks/labels_page.py
makes its tables of them.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from skcalib.datasets import flip_labels
from skcalib.difficulty import RelativeMahalanobisScorer
from skcalib.labels import LabelIssueFinder, find_label_issues

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
METHODS = (
    "LabelIssueFinder, mixed",
    "LabelIssueFinder, random",
    "cleanlab",
    "noise model on probabilities",
)
KEYS = ("set", "noise", "noise_rate", "method", "seed")
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


def out_of_fold(X, given, n_classes):
    """Return a column for every class; 0 where no sample of it was there to learn from."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    proba = np.zeros((len(X), n_classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class smaller than the number of folds; not settled
        model = LogisticRegression(C=10.0, max_iter=100)
        proba[:, np.unique(given)] = cross_val_predict(
            model, X, given, cv=folds, method="predict_proba"
        )
    return proba


def by_cleanlab(proba, given, true):
    from cleanlab.filter import find_label_issues

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes of few samples
        issue = find_label_issues(given, proba, n_jobs=1)
    return judged(true, given, issue, proba.argmax(axis=1), None, issue.mean())


def rows_of(X, y, means, seed, kind, rate, wanted):
    """Yield (method, results) of the wanted methods."""
    given = with_noise(y, kind, rate, seed, means, X)
    for noise in ("mixed", "random"):
        method = f"LabelIssueFinder, {noise}"
        if method in wanted:
            yield method, by_finder(LabelIssueFinder(noise=noise), X, given, y)
    methods = {"cleanlab", "noise model on probabilities"} & wanted
    if not methods:
        return
    start = time.perf_counter()
    proba = out_of_fold(X, given, len(means))
    seconds = time.perf_counter() - start
    if "cleanlab" in methods:
        yield "cleanlab", by_cleanlab(proba, given, y) | {"seconds": seconds}
    if "noise model on probabilities" in methods:
        finder = LabelIssueFinder(Precomputed(proba), n_refits=0)
        rows = np.arange(len(X))[:, None]
        yield "noise model on probabilities", by_finder(finder, rows, given, y)


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
            yield f"CLINC150, {n_each} a class", seed, X[rows], y[rows], means, NOISE, True
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


def load(path):
    """Return the runs of a file: one line each, in the order of its columns."""
    if path is None or not path.exists():
        return []
    table = json.loads(path.read_text())
    return [
        {k: v for k, v in zip(table["columns"], run) if v is not None} for run in table["runs"]
    ]


def save(path, rows) -> None:
    columns = [*KEYS, *COLUMNS, "true_rate", "covered", "low", "high"]
    rows = sorted(rows, key=lambda r: [r[k] for k in KEYS])
    runs = [[_short(row.get(name)) for name in columns] for row in rows]
    lines = ",\n".join(json.dumps(run, separators=(",", ":")) for run in runs)
    path.write_text(f'{{"columns": {json.dumps(columns)},\n"runs": [\n{lines}\n]}}\n')


def _short(value):
    if isinstance(value, float):
        return float(f"{value:.4g}") if np.isfinite(value) else None
    return value


def compare(arguments) -> None:
    rows = load(arguments.out)
    done = {tuple(row[k] for k in KEYS) for row in rows}
    methods = set(METHODS if has_cleanlab() else METHODS[:2])
    for name, seed, X, y, means, noises, rivals in sets(arguments.data, arguments.seeds):
        if arguments.only not in name:
            continue
        for kind, rate in noises:
            wanted = {
                method
                for method in (methods if rivals else METHODS[:2])
                if (name, kind, rate, method, seed) not in done
            }
            for method, row in rows_of(X, y, means, seed, kind, rate, wanted):
                rows.append(dict(zip(KEYS, (name, kind, rate, method, seed))) | row)
            if arguments.out and wanted:
                save(arguments.out, rows)
    show(sorted(rows, key=lambda r: [r[k] for k in KEYS]))


def verified(arguments) -> None:
    """Print precision and recall among unchecked labels, by the fraction of checked ones."""
    print(f"{'set':26s}{'noise':14s}{'checked':>8s}{'precision':>12s}{'recall':>10s}{'rate':>10s}")
    cells = {}
    for name, seed, X, y, means, *_ in sets(arguments.data, arguments.seeds):
        if arguments.only not in name:
            continue
        for kind, rate in (("nearest", 0.05), ("nearest", 0.2), ("pairs", 0.08)):
            given = with_noise(y, kind, rate, seed, means, X)
            for fraction in (0.0, 0.1, 0.3):
                known = np.random.default_rng(seed).random(len(y)) < fraction
                labels = np.where(known, y, given)
                finder = LabelIssueFinder().fit(X, labels, verified=known)
                wrong, issue = (given != y)[~known], finder.issues_["is_issue"][~known]
                both = (wrong & issue).sum()
                values = both / max(issue.sum(), 1), both / wrong.sum(), finder.noise_rate_
                cells.setdefault((name, kind, rate, fraction), []).append(values)
    for (name, kind, rate, fraction), values in cells.items():
        text = "".join(f"{value:10.3f}" for value in np.mean(values, axis=0))
        print(f"{name:26s}{kind:9s}{rate:5.0%}{fraction:8.0%}  {text}  n={len(values)}")


def plot(arguments) -> None:
    """Draw the fraction of right labels against p_label_correct, one panel a set."""
    from matplotlib.figure import Figure

    from skcalib.plots import ReliabilityDisplay

    noises = (("random", 0.2), ("nearest", 0.2), ("pairs", 0.08))
    drawn = [s for s in sets(arguments.data, 1) if arguments.only in s[0] and "CIFAR" not in s[0]]
    figure = Figure(figsize=(4 * len(drawn), 4.6), layout="constrained")
    for ax, (name, seed, X, y, means, *_) in zip(
        np.atleast_1d(figure.subplots(1, len(drawn))), drawn
    ):
        for kind, rate in noises:
            given = with_noise(y, kind, rate, seed, means, X)
            p = LabelIssueFinder().fit(X, given).issues_["p_label_correct"]
            ReliabilityDisplay.from_predictions(
                (given == y).astype(int),
                np.clip(p, 0, 1),
                n_bins=5,
                name=f"{kind} {rate:.0%}",
                ax=ax,
            )
        ax.set(title=f"{name}: p_label_correct", ylabel="Fraction of right labels")
    figure.savefig(arguments.plot, dpi=100)


def speed(n_samples, n_features, n_classes) -> None:
    """Print the time of `find_label_issues`, and that of 3 fits, 4 scorings and 30 passes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_samples)
    means = 0.35 * rng.standard_normal((n_classes, n_features), dtype=np.float32)
    X = rng.standard_normal((n_samples, n_features), dtype=np.float32)
    X += means[y]
    given, _ = flip_labels(y, fraction=0.1, random_state=0)
    scorer = RelativeMahalanobisScorer(shrinkage="auto")
    fit = least_time(lambda: scorer.fit(X, given))
    distances = scorer.transform(X)
    score = least_time(lambda: scorer.transform(X))
    # In [-1, 1], so that three exponentials in place stay far from all limits.
    distances /= np.abs(distances).max()
    one_pass = least_time(lambda: np.exp(distances, out=distances))
    total = least_time(lambda: find_label_issues(None, X, given))
    bound = 3 * fit + 4 * score + 30 * one_pass
    print(f"{n_samples} x {n_features}, {n_classes} classes: {total:.1f} s")
    print(f"fit {fit:.2f} s, all distances {score:.2f} s, one pass (exp) {one_pass:.3f} s")
    print(f"bound, 3 fits + 4 scorings + 30 passes: {bound:.1f} s; ratio {total / bound:.2f}")
    if has_cleanlab():
        from cleanlab.filter import find_label_issues as of_cleanlab

        proba = softmax(-0.5 * scorer.transform(X), axis=1)
        seconds = least_time(lambda: of_cleanlab(given, proba, n_jobs=1))
        print(f"cleanlab, without the out-of-fold probabilities that it needs: {seconds:.1f} s")


def least_time(function) -> float:
    """Return the least seconds of three calls: memory that is new to the process varies."""
    least = np.inf
    for _ in range(3):
        start = time.perf_counter()
        function()
        least = min(least, time.perf_counter() - start)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, help="JSON of all runs, written as they come")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="sets whose name contains this")
    parser.add_argument("--verified", action="store_true", help="with checked labels")
    parser.add_argument("--plot", type=Path, help="picture of the calibration")
    parser.add_argument("--speed", type=int, nargs=3, metavar=("N", "D", "K"))
    arguments = parser.parse_args()
    if arguments.speed:
        speed(*arguments.speed)
    elif arguments.data is None:
        parser.error("--data or --speed is needed")
    elif arguments.plot:
        plot(arguments)
    elif arguments.verified:
        verified(arguments)
    else:
        compare(arguments)


if __name__ == "__main__":
    main()
