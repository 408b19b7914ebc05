"""One model trained on all samples, or the models of the folds: what `ensemble=` is worth.

    python -m benchmarks.calibrator_ensemble [--out FILE]

benchmarks/calibrator_ensemble_results.json holds the table of the guide.

Both share the folds and the map, which is "auto" on out-of-fold scores. Simulated data and those
of scikit-learn, 200 or 800 training samples, seven kinds of models; judged on up to 3000 others.
The results hold log-loss, accuracy, AUROC (of being right, where there are several classes), the
debiased calibration error, and seconds to fit and to predict.
"""

import json
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from benchmarks._tables import simple_table, study
from benchmarks.prediction_sets import clusters, drawn, scaled, shuffled
from skcalib.metrics import debiased_calibration_error
from skcalib.posthoc import PostHocCalibratedClassifier

RESULTS = Path(__file__).with_name("calibrator_ensemble_results.json")
PAGE = Path(__file__).parents[1] / "docs/measured/calibrator_ensemble.inc"
MODELS = {
    "regression": lambda: scaled(LogisticRegression(max_iter=300)),
    "naive Bayes": GaussianNB,
    "neighbors": lambda: scaled(KNeighborsClassifier(10)),
    "net": lambda: scaled(MLPClassifier((32,), max_iter=150, random_state=0)),
    "tree": lambda: DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
    "forest": lambda: RandomForestClassifier(50, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=40, random_state=0),
}
MEASURES = "log_loss", "accuracy", "auroc", "calibration_error", "fit_seconds", "predict_seconds"


def tasks() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    yield "cancer", *shuffled(*datasets.load_breast_cancer(return_X_y=True))
    yield "digits", *shuffled(*datasets.load_digits(return_X_y=True))
    X, signal = datasets.make_friedman1(4000, random_state=31)
    yield "waves", X, drawn(signal, 0.3, 31)
    yield "tails", *clusters(4000, 8, [0.6, 0.3, 0.1], 0.9, 32, degrees=4)
    yield "moons", *datasets.make_moons(4000, noise=0.3, random_state=33)


def measured(fitted, X: np.ndarray, y: np.ndarray, seconds: float) -> dict[str, float]:
    start = process_time()
    proba = fitted.predict_proba(X)
    predicting = process_time() - start
    right = proba.argmax(axis=1) == y
    two = proba.shape[1] == 2
    auroc = roc_auc_score(y, proba[:, 1]) if two else roc_auc_score(right, proba.max(axis=1))
    error = debiased_calibration_error(y, proba[:, 1] if two else proba)
    values = log_loss(y, proba), right.mean(), auroc, error, seconds, predicting
    return {name: round(float(value), 5) for name, value in zip(MEASURES, values)}


def records() -> Iterator[dict]:
    for (task, X, y), n, (kind, make) in product(tasks(), (200, 800), MODELS.items()):
        if n > 0.7 * len(y):
            continue
        record = {"task": task, "samples": n, "model": kind}
        for ensemble in (False, True):
            model = PostHocCalibratedClassifier(make(), ensemble=ensemble)
            start = process_time()
            with warnings.catch_warnings():
                # Nets that have not converged are what users have, too.
                warnings.simplefilter("ignore")
                model.fit(X[:n], y[:n])
            seconds = process_time() - start
            name = "ensemble" if ensemble else "one"
            record[name] = measured(model, X[n:][:3000], y[n:][:3000], seconds)
        yield record


def page(records: list[dict]) -> str:
    """Return a line a kind of model: the ensemble's mean less that of one model, and its costs."""
    lines = []
    for kind in [*MODELS, "all"]:
        some = [record for record in records if kind in ("all", record["model"])]
        line = [kind, str(len(some))]
        for measure, digits in (
            ("log_loss", 4), ("accuracy", 4), ("auroc", 4), ("calibration_error", 4)
        ):  # fmt: skip
            change = [record["ensemble"][measure] - record["one"][measure] for record in some]
            error = np.std(change, ddof=1) / len(change) ** 0.5
            line.append(f"{np.mean(change):+.{digits}f} ± {error:.{digits}f}")
        for measure in ("fit_seconds", "predict_seconds"):
            ratio = [r["ensemble"][measure] / max(r["one"][measure], 1e-4) for r in some]
            line.append(f"{np.median(ratio):.1f}")
        lines.append(line)
    head = "model", "tasks", "log-loss", "accuracy", "AUROC", "calibration error", "fit", "predict"
    return simple_table(head, lines) + "\n"


if __name__ == "__main__":
    study(__doc__, records)
    PAGE.write_text(page(json.loads(RESULTS.read_text())))
