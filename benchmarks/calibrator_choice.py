"""Which calibrator for how many samples and classes: the table behind `calibrator="auto"`.

    python -m benchmarks.calibrator_choice --data DIR

Every calibrator is fitted on 50 to 5000 scores of trained models and judged on others, in five
splits.
Writes `calibrator_choice_results.json` (log-loss and ECE with their standard errors) and the page
of the guide that is made of it; without --data the page alone. Two minutes on a quiet machine.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from scipy.special import softmax
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier

from skcalib.metrics import expected_calibration_error
from skcalib.posthoc import (
    BetaCalibration,
    EnsembleTemperatureScaling,
    HistogramBinning,
    IsotonicCalibration,
    StructuredMatrixScaling,
    TemperatureScaling,
    VectorScaling,
    choose_calibrator,
)

RESULTS = Path(__file__).with_name("calibrator_choice_results.json")
PAGE = Path(__file__).parents[1] / "docs/user_guide/calibrator_choice.inc"
SAMPLES = (50, 100, 200, 500, 1000, 2000, 5000)
N_SPLITS = 5
CALIBRATORS = {
    "temperature": TemperatureScaling,
    "ensemble": EnsembleTemperatureScaling,
    "vector": VectorScaling,
    "structured": StructuredMatrixScaling,
    "beta": BetaCalibration,
    "isotonic": IsotonicCalibration,
    "histogram": HistogramBinning,
}
# One search a class: too slow to repeat hundreds of times with more.
MOST_CLASSES_OF_BETA = 20


def data_sets(folder):
    """Yield (name, scores, labels 0, ..., K - 1, what the scores are)."""
    with np.load(folder / "cifar10_resnet20_logits.npz") as data:
        yield "CIFAR-10, ResNet-20, shifted", data["logits"], data["y"], "logits"
    with np.load(folder / "cifar10_test_pred_probs.npz") as data:
        yield "CIFAR-10, strong model", data["proba"], data["y"], "proba"
    with np.load(folder / "clinc150_minilm.npz", allow_pickle=True) as data:
        classes, y = np.unique(data["y_train"], return_inverse=True)
        X = data["X_train"].astype(np.float32)
        others = np.vstack([data["X_val"], data["X_test"]]).astype(np.float32)
        labels = np.searchsorted(classes, np.concatenate([data["y_val"], data["y_test"]]))
    regression = LogisticRegression(C=10, max_iter=100).fit(X, y)
    yield "CLINC150, regression", regression.decision_function(others), labels, "logits"
    net = MLPClassifier((256,), max_iter=30, random_state=0).fit(X, y)
    yield "CLINC150, net", net.predict_proba(others), labels, "proba"
    X, y = load_digits(return_X_y=True)
    proba = cross_val_predict(GaussianNB(var_smoothing=1e-3), X, y, method="predict_proba")
    yield "digits, naive Bayes", proba, y, "proba"
    X, y = make_classification(
        11_000, 30, n_informative=8, n_redundant=12, flip_y=0.1, random_state=0
    )
    yield "two classes, naive Bayes", _proba(GaussianNB(), X, y), y[1000:], "proba"
    forest = RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
    yield "two classes, forest", _proba(forest, X, y), y[1000:], "proba"
    X, y = make_classification(
        11_000, 30, n_informative=10, n_classes=4, n_clusters_per_class=3, random_state=0
    )
    net = MLPClassifier((100,), max_iter=300, random_state=0)
    yield "four classes, net", _proba(net, X, y), y[1000:], "proba"


def _proba(model, X, y):
    return model.fit(X[:1000], y[:1000]).predict_proba(X[1000:])


def measure(folder):
    rows = []
    for name, scores, y, form in data_sets(folder):
        scores, y = scores.astype(np.float64), y.astype(np.int64)
        k, n_test = scores.shape[1], min(5000, len(y) // 3)
        for n in (n for n in SAMPLES if n + n_test <= len(y)):
            for calibrator, (loss, error) in _results(scores, y, form, n, n_test).items():
                rows.append([name, k, n, calibrator, *_mean(loss), *_mean(error)])
        print(f"{name}: {k} classes", flush=True)
    return rows


def _results(scores, y, form, n, n_test):
    """Return for every calibrator its log-losses and errors over the splits."""
    results = {}
    for seed in range(N_SPLITS):
        order = np.random.default_rng(seed).permutation(len(y))
        some, test = order[:n], order[-n_test:]
        raw = scores[test] if form == "proba" else softmax(scores[test], axis=1)
        _judge(results, "none", y[test], raw)
        for name, cls in CALIBRATORS.items():
            if name == "beta" and scores.shape[1] > MOST_CLASSES_OF_BETA:
                continue
            calibrator = cls(input=form).fit(scores[some], y[some])
            _judge(results, name, y[test], calibrator.predict_proba(scores[test]))
    return results


def _judge(results, name, y, proba):
    # A probability of 0 is infinitely wrong where it happens: it counts as 1e-12.
    finite = np.maximum(proba, 1e-12)
    finite /= finite.sum(axis=1, keepdims=True)
    losses, errors = results.setdefault(name, ([], []))
    losses.append(log_loss(y, finite, labels=np.arange(proba.shape[1])))
    errors.append(expected_calibration_error(y, finite))


def _mean(values):
    """Return mean and standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return [round(float(np.mean(values)), 4), round(float(error), 4)]


def auto(samples, k):
    """Return the name of the calibrator that the rule picks."""
    chosen = type(choose_calibrator(samples / k, k))
    return next(name for name, cls in CALIBRATORS.items() if cls is chosen)


def regrets(rows, rule):
    """Return log-loss less that of the best in hindsight, by data set, one a number of samples."""
    cells, regret = {}, {}
    for name, k, n, calibrator, loss, *_ in rows:
        cells.setdefault((name, k, n), {})[calibrator] = loss
    for (name, k, n), losses in cells.items():
        regret.setdefault(name, []).append(losses[rule(n, k)] - min(losses.values()))
    return regret


def page(rows):
    """Return the tables of the guide."""
    names = ["none", *CALIBRATORS]
    # The guide shows what comes below the comment on demand.
    parts = [_regret_table(rows), ".. scores\n"]
    for title, value, error in (("Log-loss", 4, 5), ("ECE, top label, 15 bins", 6, 7)):
        cells = {}
        for row in rows:
            cell = f"{row[value]:.3f} ({row[error]:.3f})"
            cells.setdefault((row[0], row[1], row[2]), {})[row[3]] = cell
        lines = [
            [f"{name} ({k})", str(n), *(found.get(c, "") for c in names), auto(n, k)]
            for (name, k, n), found in cells.items()
        ]
        head = ["data, model (classes)", "samples", *names, "auto"]
        parts.append(
            f"{title}, mean of {N_SPLITS} splits (standard error):\n\n{_table(head, lines)}"
        )
    return "\n".join(parts)


def _regret_table(rows):
    rules = {"auto": auto}
    for fixed in ("temperature", "ensemble", "structured"):
        rules[fixed] = lambda n, k, fixed=fixed: fixed
    regret = {name: regrets(rows, rule) for name, rule in rules.items()}
    lines = [
        [data, *(f"{np.mean(by_data[data]):.4f}" for by_data in regret.values())]
        for data in regret["auto"]
    ]
    together = {name: np.concatenate(list(found.values())) for name, found in regret.items()}
    lines.append(["mean of all", *(f"{values.mean():.4f}" for values in together.values())])
    lines.append(["largest", *(f"{values.max():.4f}" for values in together.values())])
    head = ["regret, mean over numbers of samples", *(f"{name}" for name in rules)]
    return _table(head, lines)


def _table(head, lines):
    """Return a table in reStructuredText."""
    widths = [max(map(len, column)) for column in zip(head, *lines)]
    rule = " ".join("=" * width for width in widths)

    def line(cells):
        first, *others = (cell or "\\" for cell in cells)
        padded = [first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]
        return " ".join(padded)

    return "\n".join([rule, line(head), rule, *map(line, lines), rule]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    data = parser.parse_args().data
    if data is not None:
        with warnings.catch_warnings():
            # Temperatures at a bound and fits without a finite optimum are part of the answer.
            warnings.simplefilter("ignore")
            rows = measure(data)
        text = ",\n".join(json.dumps(row) for row in rows)
        RESULTS.write_text(f"[\n{text}\n]\n")
    PAGE.write_text(page(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
