"""Every calibrator on the same rows, few and many: regret, harm, accuracy and time.

    python -m benchmarks.leaderboard [--run] [--version NAME] [--part I/N]

Calibrators are fitted on 20 to 5000 scores of `benchmarks.kept_sets`, of larger sets that are
drawn from known probabilities, of persons with many rows each, and of models with class weights or
resampled rows, where both classes have ten samples. Peers run where they are installed:
``pip install --group benchmark``. `--run` writes `leaderboard_results.json`, case by case, and
goes on where it ended; without it the tables of the guide are made of that file. The default of
an older release is measured as a version of its own: ``--run --version 0.1``, with that release
on the path. `--part 0/2` measures every other set, to share the work.
"""

import argparse
import json
import logging
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from benchmarks.calibrator_choice import AUTO, finite, functions, stated
from benchmarks.kept_sets import kept_sets, rare_sets, rounded, zeroed
from benchmarks.papers.tables import csv_table
from skcalib.posthoc import StackedCalibration, TemperatureScaling

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from netcal.binning import BBQ
except ImportError:
    BBQ = None

RESULTS = Path(__file__).with_name("leaderboard_results.json")
PAGE = Path(__file__).parents[1] / "docs" / "measured" / "leaderboard.inc"
SIZES = 20, 60, 200, 1000, 5000
N_TEST, N_TEST_RARE = 1000, 4000
FEWEST_RARE = 10
ROWS_OF_A_PERSON = 10
# A table for each of these groups of sizes.
BANDS = {"20 and 60": (20, 60), "200 to 5000": (200, 1000, 5000)}
RARE = "A rare class"
TEMPERATURE = "temperature, mix_uniform"


class Case(NamedTuple):
    """Scores, labels and form as in `prediction_sets`; persons and true probabilities if known."""

    name: str
    scores: np.ndarray
    y: np.ndarray
    form: str
    groups: np.ndarray | None = None
    proba: np.ndarray | None = None


def drawn(proba, seed):
    """Return labels that are as likely as the probabilities say."""
    u = np.random.default_rng(seed).random((len(proba), 1))
    return (proba.cumsum(axis=1) < u).sum(axis=1).clip(max=proba.shape[1] - 1)


def large_cases() -> Iterator[Case]:
    for k, seed in ((2, 300), (5, 310)):
        rng = np.random.default_rng(seed)
        z = 2 * rng.normal(size=(12_000, k))
        y = drawn(softmax(z, axis=1), seed)
        yield Case(f"{k} classes, calibrated", z, y, "logits")
        yield Case(f"{k} classes, too sure", 2.5 * z, y, "logits")
        yield Case(f"{k} classes, bent", np.sign(z) * np.abs(z) ** 1.6 + np.arange(k), y, "logits")
        yield Case(f"{k} classes, rounded", rounded(softmax(1.5 * z, axis=1), 10), y, "proba")
        if k > 3:
            yield Case(f"{k} classes, zeros", zeroed(softmax(1.3 * z, axis=1)), y, "proba")
        # A person is off as a whole: her rows say less than as many of different persons.
        person = np.arange(12_000) // ROWS_OF_A_PERSON
        off = 1.5 * rng.normal(size=(person.max() + 1, k))[person]
        said = drawn(softmax(z + off, axis=1), seed + 1)
        yield Case(f"{k} classes, persons", 1.5 * z, said, "logits", person)


def cases() -> Iterator[Case]:
    yield from large_cases()
    for found in kept_sets():
        yield Case(found.name, found.scores, found.y, found.form)
    for found, proba in rare_sets():
        yield Case(found.name, found.scores, found.y, found.form, None, proba)


class _Said(ClassifierMixin, BaseEstimator):
    """A trained classifier whose features are its probabilities."""

    def __init__(self, k=2):
        self.k = k
        self.classes_ = np.arange(k)

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return X.argmax(axis=1)


class _SaidMargins(_Said):
    """A trained classifier whose features are its decision values."""

    def decision_function(self, X):
        return X[:, 0] if self.k == 2 else X

    def predict(self, X):
        return (X[:, 0] > 0).astype(int) if self.k == 2 else X.argmax(axis=1)


def of_scikit_learn(method, ensemble, found, fit, test, k):
    if found.form == "logits":
        X = found.scores.reshape(len(found.y), -1)
        # Two columns of logits are the decision value of the second class.
        X = X[:, 1:] - X[:, :1] if X.shape[1] == 2 else X
        model = _SaidMargins(k)
    else:
        X, model = finite(stated(found)), _Said(k)
    cv = CalibratedClassifierCV(FrozenEstimator(model), method=method, cv=3, ensemble=ensemble)
    return partial(cv.fit(X[fit], found.y[fit]).predict_proba, X[test])


def of_netcal(found, fit, test, k):
    proba = finite(stated(found))[:, 1]
    said = BBQ().fit(proba[fit], found.y[fit])
    return lambda: np.column_stack([1 - said.transform(proba[test]), said.transform(proba[test])])


def ours(cls, found, fit, test, k):
    calibrator = cls(input=found.form, classes=list(range(k)))
    groups = None if found.groups is None else found.groups[fit]
    calibrator.fit(found.scores[fit], found.y[fit], groups=groups)
    return partial(calibrator.predict_proba, found.scores[test])


def peers(k):
    """Return functions that fit, and return one that predicts."""
    chosen = {
        f"scikit-learn {method}, ensemble={ensemble}": partial(of_scikit_learn, method, ensemble)
        for method in ("sigmoid", "isotonic", "temperature")
        for ensemble in (True, False)
    }
    if k == 2 and BBQ is not None:
        chosen["netcal BBQ"] = of_netcal
    for name, function in functions(k).items():
        if not name.startswith(("scikit-learn", AUTO)) and name != "temperature":
            # These fit and predict in one: their time to predict is not known.
            chosen[name] = lambda *given, function=function: partial(_given, function(*given))
    return chosen


def _given(proba):
    return proba


def split(found, n, draw):
    """Return rows to fit and rows to judge; of persons none is in both."""
    rng = np.random.default_rng([draw, n, 11])
    if found.groups is None:
        order = rng.permutation(len(found.y))
    else:
        place = rng.permutation(found.groups.max() + 1)[found.groups]
        order = np.argsort(place, kind="stable")
    return order[:n], order[n:][-(N_TEST if found.proba is None else N_TEST_RARE) :]


def measured(function, found, fit, test, k):
    """Return log-loss, accuracy, seconds to fit and to predict, and the last class's mean.

    Where the true probabilities are known, log-loss and accuracy are the expected ones; seconds
    are those of the processor.
    """
    start = time.process_time()
    predict = function(found, fit, test, k)
    middle = time.process_time()
    proba = np.asarray(predict())
    end = time.process_time()
    if proba.shape != (len(test), k) or not np.isfinite(proba).all():
        raise ValueError("no probability for every class")
    if found.proba is None:
        true = np.eye(k)[found.y[test]]
    else:
        true = np.column_stack([1 - found.proba[test], found.proba[test]])
    loss = -(true * np.log(finite(proba))).sum(axis=1).mean()
    right = true[np.arange(len(test)), proba.argmax(axis=1)].mean()
    values = loss, right, middle - start, end - middle, proba[:, -1].mean()
    return [float(f"{value:.5g}") for value in values]


def rows_of(found, known, version):
    """Yield the rows of a set, with what they lack."""
    k = stated(found).shape[1]
    for n in SIZES:
        if not k <= n <= 0.7 * len(found.y):
            continue
        fit, test = split(found, n, 0)
        counts = np.bincount(found.y[fit], minlength=k)
        if (counts > 0).sum() < 2 or (found.proba is not None and counts.min() < FEWEST_RARE):
            continue
        row = {"set": found.name, "classes": k, "samples": n, "rare": found.proba is not None}
        row |= {"rate": float(f"{counts[-1] / n:.5g}"), "scores": {}}
        row = known.setdefault(f"{found.name}, {n}", row)
        wanted = {AUTO: partial(ours, StackedCalibration)}
        if version is not None:
            wanted = {f"{AUTO}, {version}": wanted[AUTO]}
        else:
            wanted["none"] = partial(ours, partial(StackedCalibration, []))
            for name, mix_uniform in (("temperature", False), (TEMPERATURE, True)):
                make = partial(TemperatureScaling, mix_uniform=mix_uniform)
                wanted[name] = partial(ours, make)
            wanted |= peers(k)
        for name, function in wanted.items():
            if name not in row["scores"]:
                try:
                    row["scores"][name] = measured(function, found, fit, test, k)
                except Exception:
                    if name.startswith(AUTO):
                        raise
                    # A peer refuses samples without one of the classes.
                    row["scores"][name] = None
        yield row


def run(version, part):
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    known = {f"{row['set']}, {row['samples']}": row for row in rows}
    which, n_parts = part
    for number, found in enumerate(cases()):
        if number % n_parts == which:
            list(rows_of(found, known, version))
            text = ",\n".join(json.dumps(row) for row in known.values())
            RESULTS.write_text(f"[\n{text}\n]\n")
            print(found.name, flush=True)


def summary(rows, name):
    """Return the measures of one calibrator over the rows that it serves."""
    rows = [row for row in rows if row["scores"].get(name)]
    served = [row["scores"] for row in rows]
    loss, right, fit, predict, mean = np.array([scores[name] for scores in served]).T
    rivals = [[value[0] for value in scores.values() if value] for scores in served]
    none = np.array([scores["none"] for scores in served])
    temperature = np.array([scores[TEMPERATURE] for scores in served])
    regret = loss - [min(losses) for losses in rivals]
    return {
        "cases": len(served),
        "regret": regret.mean(),
        "largest": regret.max(),
        "beyond": np.mean([scores[name][0] - scores[AUTO][0] for scores in served]),
        "worse": int(np.sum(loss - none[:, 0] > 0.01)),
        "lost": int(np.sum(none[:, 1] - right > 0.01)),
        "fit": np.median(fit / temperature[:, 2]),
        "predict": np.median(predict / temperature[:, 3]),
        "ratios": mean / [max(row["rate"], 1e-12) for row in rows],
    }


HEAD = [
    "calibrator", "cases", "regret", "largest regret", 'log-loss beyond "auto"',
    "worse than none by .01", "accuracy lost > .01", "time to fit", "to predict",
]  # fmt: skip


def table(title, rows, ratios=False):
    names = dict.fromkeys(name for row in rows for name, value in row["scores"].items() if value)
    found = {name: summary(rows, name) for name in names}
    lines = [
        [name, values["cases"], f"{values['regret']:.4f}", f"{values['largest']:.3f}",
         f"{values['beyond']:+.4f}", values["worse"], values["lost"], f"{values['fit']:.2g}",
         "" if values["predict"] < 0.1 else f"{values['predict']:.2g}"]
        + [f"{of(values['ratios']):.2f}" for of in (np.median, np.max) if ratios]
        for name, values in sorted(found.items(), key=lambda item: item[1]["beyond"])
    ]  # fmt: skip
    return csv_table(title, HEAD + ["mean / rate", "largest"] * ratios, lines)


def page(rows):
    tables = []
    for several, what in ((False, "Two classes"), (True, "Several classes")):
        for band, sizes in BANDS.items():
            some = [row for row in rows if row["samples"] in sizes and not row["rare"]]
            some = [row for row in some if (row["classes"] > 2) == several]
            tables.append(table(f"{what}, {band} samples", some))
    rare = [row for row in rows if row["rare"]]
    return "\n".join([*tables, table(RARE, rare, ratios=True)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--version")
    parser.add_argument("--part", default="0/1")
    options = parser.parse_args()
    if options.run:
        logging.disable(logging.CRITICAL)
        warnings.simplefilter("ignore")
        run(options.version, [int(number) for number in options.part.split("/")])
    PAGE.write_text(page(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
