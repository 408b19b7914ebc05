"""Wrong labels and calibrators where rows repeat, belong together or have weights.

    python -m benchmarks.copies [--draws 20]

The promises of limits, tests and false alarms are in benchmarks.dependence. The label finder looks
for equal rows with equal labels by itself; folds of calibrators are those of `cv` and `groups`.
Writes benchmarks/copies_results.json and the table of the guide.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

from benchmarks._tables import shown, simple_table
from skcalib.datasets import flip_labels
from skcalib.labels import LabelIssueFinder
from skcalib.posthoc import PostHocCalibratedClassifier, StackedCalibration, TemperatureScaling

RESULTS = Path(__file__).with_name("copies_results.json")
PAGE = Path(__file__).parents[1] / "docs/measured/copies.inc"


def finder(n_draws, kind):
    """Yield the fraction of the wrong labels that was found, and whether the interval held."""
    X, y = load_digits(return_X_y=True)
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(y))[:700]
        given, wrong = flip_labels(y[rows], fraction=0.2, random_state=seed)
        data, again = X[rows], np.arange(700)
        if kind in ("20 % copies", "100 % copies"):
            part = rng.permutation(700)[: 140 if kind.startswith("20") else 700]
            again = np.append(again, part)
        if kind == "jittered copies":
            again = np.tile(again, 2)
        data = data[again]
        if kind == "jittered copies":
            data[700:] += 0.1 * X.std() * rng.normal(size=(700, X.shape[1]))
        weight = np.full(len(again), 1 / len(again)) if kind.endswith("1/n") else None
        judge = GaussianNB(var_smoothing=1e-2) if kind.startswith("naive Bayes") else None
        found = LabelIssueFinder(judge).fit(data, given[again], sample_weight=weight)
        low, high = found.noise_rate_interval_
        hit = found.issues_["is_issue"][:700] & wrong
        yield float(hit.sum() / wrong.sum()), float(low <= wrong[again].mean() <= high)


def checks(n_draws, *, weighted):
    """Yield whether the interval after 100 checks held the weighted rate, and its width."""
    rng = np.random.default_rng(0)
    X, y = load_digits(return_X_y=True)
    for seed in range(n_draws):
        rows = rng.permutation(len(y))[:900]
        weight = rng.choice([1.0, 5.0], 900)
        true = y[rows]
        wrong = rng.uniform(size=900) < np.where(weight > 1, 0.2, 0.05)
        given = np.where(wrong, (true + rng.integers(1, 10, 900)) % 10, true)
        found = LabelIssueFinder(GaussianNB(var_smoothing=1e-2)).fit(
            X[rows], given, sample_weight=weight if weighted else None
        )
        drawn = found.draw_samples_to_check(100, random_state=seed)
        low, high = found.update_with_checks(drawn, true[drawn]).noise_rate_interval_
        rate = np.average(wrong, weights=weight if weighted else None)
        yield float(low <= rate <= high), high - low


def calibrators(n_draws, kind):
    """Yield the log-loss of the default beyond a temperature's, for new people, and its part."""
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)

        def people(n, rng=rng):
            label = rng.permutation(np.arange(n) % 6)
            logits = 2 * np.eye(6)[label] + 1.2 * rng.normal(size=(n, 6))
            of = np.repeat(np.arange(n), 30)
            return 2 * (logits[of] + 0.15 * rng.normal(size=(n * 30, 6))), label[of], of

        logits, y, groups = people(60)
        new, y_new, _ = people(300)
        given = groups if kind == "groups" else None
        plain = TemperatureScaling(mix_uniform=True).fit(logits, y).predict_proba(new)
        stack = StackedCalibration().fit(logits, y, groups=given).predict_proba(new)
        yield log_loss(y_new, stack) - log_loss(y_new, plain), 0.0


def copied_table(n_draws, kind):
    """Yield the log-loss of a calibrated classifier whose table came twice, beyond that of one."""
    model = PostHocCalibratedClassifier(GaussianNB(var_smoothing=1e-2))
    X, y = load_digits(return_X_y=True)
    for seed in range(n_draws):
        rows = np.random.default_rng(seed).permutation(len(y))
        fit, new = rows[:600], rows[600:]
        losses = []
        for part in (fit, np.append(fit, fit)):
            model.fit(X[part], y[part], groups=part if kind == "groups" else None)
            losses.append(log_loss(y[new], model.predict_proba(X[new])))
        yield losses[1] - losses[0], 0.0


def answers(n_draws, kind):
    """Yield the log-loss of a calibrated forest where people give equal answers, beyond sigmoid.

    Every cell of the table has its own risk; many people are in one cell, with either label. The
    groups are the cells.
    """
    forest = RandomForestClassifier(50, min_samples_leaf=3, random_state=0)
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        cells, risk = rng.normal(size=(200, 4)).round(1), rng.beta(0.6, 0.6, 200)
        frequency = rng.dirichlet(np.full(200, 0.5))
        of, new = (rng.choice(200, n, p=frequency) for n in (600, 20_000))
        y = rng.uniform(size=600) < risk[of]
        groups = of if kind == "cells as groups" else None
        model = PostHocCalibratedClassifier(forest).fit(cells[of], y, groups=groups)
        sigmoid = CalibratedClassifierCV(forest, ensemble=False).fit(cells[of], y)
        losses = []
        for fitted in (model, sigmoid):
            p = np.clip(fitted.predict_proba(cells[new])[:, 1], 1e-7, 1 - 1e-7)
            losses.append(-np.mean(risk[new] * np.log(p) + (1 - risk[new]) * np.log1p(-p)))
        yield losses[0] - losses[1], 0.0


def rows(n):
    """Yield what is measured, the population, what was passed, and draws of two figures."""
    labels = "wrong labels found; interval holds"
    kinds = ("no copies", "20 % copies", "100 % copies", "jittered copies")
    for kind in (*kinds, "naive Bayes", "naive Bayes, weights 1/n"):
        yield labels, f"700 digits, {kind}", "-", finder(n, kind)
    for weighted in (False, True):
        population = "weights of 1 and 5" if weighted else "no weights"
        draws = checks(5 * n, weighted=weighted)
        yield "interval after 100 checks holds; its width", f"900 digits, {population}", "-", draws
    for kind in ("-", "groups"):
        population = "60 people with 30 samples, new people"
        yield "log-loss beyond a temperature's", population, kind, calibrators(n, kind)
    for kind in ("-", "groups"):
        population = "600 digits, the table twice"
        yield "log-loss beyond that of one table", population, kind, copied_table(n, kind)
    for kind in ("-", "cells as groups"):
        population = "600 people in 200 cells, forest"
        yield "log-loss beyond scikit-learn's sigmoid", population, kind, answers(n, kind)


def page(results):
    head = ("figure", "population", "passed", "draws", "measured")
    lines = [
        (
            row["promise"],
            row["population"],
            row["passed"],
            str(row["draws"]),
            ", ".join(shown(value, 3) for value in row["means"]),
        )
        for row in results["rows"]
    ]
    return simple_table(head, lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results = {"rows": []}
    for promise, population, passed, draws in rows(arguments.draws):
        found = np.array(list(draws))
        means = found.mean(axis=0).round(4).tolist()
        means = means if ";" in promise else means[:1]
        print(f"{promise} | {population} | {passed} | {len(found)} | {means}", flush=True)
        row = {"promise": promise, "population": population, "passed": passed}
        results["rows"].append({**row, "draws": len(found), "means": means})
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(page(results))


if __name__ == "__main__":
    main()
