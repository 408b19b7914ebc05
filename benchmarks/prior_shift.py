"""Class frequencies estimated from unlabeled samples: harm without a shift, gain with one.

    python -m benchmarks.prior_shift [--draws 8] [--sets DIR]

Classifiers of synthetic data with 2, 3, 7 and 12 classes, calibrated on held-out samples or not at
all. Every draw takes unlabeled samples and 3000 others to judge on, with the frequencies of
training or with others (uniform on the simplex). The change of the log-loss that PriorShift makes:
by plain EM and by the default, with the frequencies of the training labels; by the default with
scores of 2000 samples like those of training; and by the true frequencies.
benchmarks/prior_shift_results.json holds the table of the user guide. These cases chose the error
that PriorShift allows for. With --sets, the same on those of `benchmarks.prediction_sets`, which
chose nothing: benchmarks/prior_shift_sets_results.json.
"""

import argparse
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from benchmarks._tables import keep, shown, simple_table
from benchmarks.prediction_sets import PredictionSet, prediction_sets
from skcalib.posthoc import (
    PriorShift,
    StackedCalibration,
    StructuredMatrixScaling,
    TemperatureScaling,
)

RESULTS = Path(__file__).with_name("prior_shift_results.json")
RESULTS_OF_SETS = Path(__file__).with_name("prior_shift_sets_results.json")
Case = tuple[np.ndarray, np.ndarray, np.ndarray]
FREQUENCY = {
    2: [0.9, 0.1],
    3: [0.8, 0.15, 0.05],
    7: [0.42, 0.25, 0.14, 0.09, 0.06, 0.03, 0.01],
    12: (0.75 ** np.arange(12) / (0.75 ** np.arange(12)).sum()).tolist(),
}
MODELS = {
    "boosting": HistGradientBoostingClassifier(max_iter=40, random_state=0),
    "naive Bayes": GaussianNB(),
    "forest": RandomForestClassifier(60, min_samples_leaf=3, random_state=0),
    "logistic": LogisticRegression(max_iter=300),
}
CALIBRATORS = {
    "structured": partial(StructuredMatrixScaling, mix_uniform=True),
    "temperature": partial(TemperatureScaling, mix_uniform=True),
    "none": partial(StackedCalibration, []),
}
CASES = [
    (7, "boosting", "structured"), (7, "naive Bayes", "temperature"),
    (7, "forest", "temperature"), (7, "logistic", "structured"),
    (3, "boosting", "structured"), (3, "naive Bayes", "structured"),
    (12, "logistic", "structured"), (12, "forest", "temperature"),
    (2, "naive Bayes", "structured"), (2, "forest", "structured"),
    (7, "boosting", "none"), (7, "naive Bayes", "none"), (2, "naive Bayes", "none"),
]  # fmt: skip


def calibrated(n_classes: int, model: str, calibrator: str) -> Case:
    """Return the frequencies of training, and probabilities and labels of other samples."""
    X, y = make_classification(
        30_000, n_features=20, n_informative=10, n_classes=n_classes, flip_y=0.02,
        n_clusters_per_class=1 if n_classes == 12 else 2, weights=FREQUENCY[n_classes],
        class_sep=0.9, random_state=n_classes,
    )  # fmt: skip
    fitted = MODELS[model].fit(X[:4000], y[:4000])
    scaling = CALIBRATORS[calibrator](input="proba")
    scaling.fit(fitted.predict_proba(X[4000:6000]), y[4000:6000])
    proba = scaling.predict_proba(fitted.predict_proba(X[6000:]))
    return np.bincount(y[:4000], minlength=n_classes) / 4000, proba, y[6000:]


def calibrated_set(found: PredictionSet) -> Case:
    """Return the same of a prediction set, calibrated on 1000 of its samples."""
    order = np.random.default_rng(0).permutation(len(found.y))
    fit, rest = order[:1000], order[1000:]
    # No class is unknown, and those that none of the 1000 has are rare.
    count = np.bincount(found.y[fit], minlength=found.y.max() + 1) + 0.5
    scaling = StackedCalibration(input=found.form, classes=list(range(len(count))))
    proba = scaling.fit(found.scores[fit], found.y[fit]).predict_proba(found.scores[rest])
    return count / count.sum(), proba, found.y[rest]


def log_loss(proba: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(np.maximum(proba[np.arange(len(y)), y], 1e-12)).mean())


def changes(what: dict[str, object], case: Case, n_draws: int) -> Iterator[dict[str, object]]:
    frequency, proba, y = case
    before_shift, proba, y = proba[:2000], proba[2000:], y[2000:]
    rng = np.random.default_rng(0)
    for shifted in (False, True):
        for n_samples in (50, 200, 1000):
            rows = []
            for _ in range(n_draws):
                chance = None
                if shifted:
                    chance = (rng.dirichlet(np.ones(len(frequency))) / frequency)[y]
                    chance /= chance.sum()
                drawn = rng.choice(len(y), n_samples + 3000, p=chance)
                unlabeled, judged = drawn[:n_samples], drawn[n_samples:]
                before = log_loss(proba[judged], y[judged])
                row = {"before": before}
                true = np.bincount(y[judged], minlength=len(frequency)) / len(judged)
                for name, known in (
                    ("plain", {"training_priors": frequency, "prior_strength": 0.0}),
                    ("labels", {"training_priors": frequency}),
                    ("scores", {"training_scores": before_shift}),
                    ("true", {"priors": true, "training_priors": frequency}),
                ):
                    shift = PriorShift(input="proba", **known).fit(proba[unlabeled])
                    row[name] = log_loss(shift.predict_proba(proba[judged]), y[judged]) - before
                rows.append(row)
            means = {name: np.mean([r[name] for r in rows]) for name in rows[0]}
            yield {**what, "shifted": shifted, "n": n_samples, **means}


def guide_table(lines: list[dict]) -> str:
    """Return the table of the user guide."""
    head = ("model", "unlabeled", "no shift: plain", "labels", "scores")
    head += ("shift: labels", "scores", "true")
    by_key = {(r["classes"], r["model"], r["calibrator"], r["n"], r["shifted"]): r for r in lines}
    rows = []
    for n_classes, model, calibrator, n, shifted in by_key:
        if not shifted and n != 200:
            same, other = (
                by_key[n_classes, model, calibrator, n, value] for value in (False, True)
            )
            changes = [same[name] for name in ("plain", "labels", "scores")]
            changes += [other[name] for name in ("labels", "scores", "true")]
            raw = " as it is" if calibrator == "none" else ""
            name = f"{n_classes} classes, {model}{raw}"
            rows.append((name, str(n), *(shown(change, 3, "+") for change in changes)))
    return simple_table(head, rows)


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--sets", type=Path, metavar="DIR", help="folder with the real data")
    arguments = parser.parse_args()
    if arguments.sets is None:
        names = [dict(zip(("classes", "model", "calibrator"), case)) for case in CASES]
        cases = zip(names, (calibrated(*case) for case in CASES))
    else:
        # Of more than 30 classes 1000 samples do not tell the frequencies.
        sets = prediction_sets(arguments.sets)
        sets = (found for found in sets if len(found.y) >= 3000 and found.y.max() < 30)
        sets = (found for found in sets if found.part != "fresh")
        cases = (({"set": found.name}, calibrated_set(found)) for found in sets)
    lines = (changes(name, case, arguments.draws) for name, case in cases)
    out = RESULTS if arguments.sets is None else RESULTS_OF_SETS
    keep(chain.from_iterable(lines), out)


if __name__ == "__main__":
    main()
