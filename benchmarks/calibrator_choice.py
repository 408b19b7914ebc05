"""What `calibrator="auto"` is worth: the stack, its maps and all peers on many prediction sets.

    python -m benchmarks.calibrator_choice --data DIR

Calibrators are fitted on 100, 300 and 1000 scores of the models of `benchmarks.prediction_sets`
and judged on up to 3000 others. Peers run where they are installed: probmetrics (with betacal,
cir-model, numba and venn-abers). Writes `calibrator_choice_results.json`, set by set, and the
tables of the guide that are made of it; without --data the tables alone. Scores that the file
holds are not computed again: an interrupted run goes on where it ended, and a calibrator that has
changed runs where its scores are deleted. Three quarters of an hour of one processor.
"""

import argparse
import json
import logging
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import expit, logit, softmax
from sklearn.calibration import _SigmoidCalibration

from benchmarks.papers.tables import csv_table
from benchmarks.prediction_sets import prediction_sets
from skcalib.posthoc import (
    BetaCalibration,
    EnsembleTemperatureScaling,
    StackedCalibration,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
)

try:
    with warnings.catch_warnings():
        # What it builds upon uses functions that torch will remove.
        warnings.simplefilter("ignore")
        from probmetrics.calibrators import get_calibrator
        from probmetrics.calibrators.temperature_scaling import ETSCalibrator
except ImportError:
    get_calibrator = ETSCalibrator = None

RESULTS = Path(__file__).with_name("calibrator_choice_results.json")
PAGE = Path(__file__).parents[1] / "docs/measured/calibrator_choice.inc"
# Samples to fit on, and how often they are drawn.
SIZES = {100: 2, 300: 2, 1000: 1}
AUTO = '"auto"'
PARTS = "open", "locked", "fresh"
OURS = {
    AUTO: StackedCalibration,
    "temperature": partial(TemperatureScaling, mix_uniform=True),
    "ensemble temperature": EnsembleTemperatureScaling,
    "structured vector": partial(StructuredVectorScaling, mix_uniform=True),
    "structured matrix": partial(StructuredMatrixScaling, mix_uniform=True),
    "beta": partial(BetaCalibration, mix_uniform=True),
}
PEERS_TWO = {
    "probmetrics temperature": "ts-mix", "scikit-learn sigmoid of log-odds": "sigmoid",
    "scikit-learn isotonic": "isotonic", "probmetrics logistic": "logistic",
    "probmetrics logistic-mix": "logistic-mix", "betacal": "beta",
    "probmetrics quadratic": "quadratic-scaling", "Venn-Abers": "ivap",
    "centered isotonic": "cir",
}  # fmt: skip
PEERS_SEVERAL = {
    "probmetrics temperature": "ts-mix", "probmetrics ensemble temperature": "ets",
    "probmetrics structured vector": "svs", "probmetrics structured matrix": "sms",
    "probmetrics logistic-mix": "logistic-mix", "scikit-learn isotonic": "isotonic",
}  # fmt: skip
# Their matrices of more classes take minutes.
MOST_CLASSES_OF_PEERS = {"sms": 30, "logistic-mix": 30}
FLOOR = 1e-12


def stated(found):
    """Return the probabilities of a model that are as they are."""
    if found.scores.ndim == 1:
        return np.column_stack([expit(-found.scores), expit(found.scores)])
    return softmax(found.scores, axis=1) if found.form == "logits" else found.scores


def ours(cls, found, fit, test, k):
    calibrator = cls(input=found.form, classes=list(range(k)))
    return calibrator.fit(found.scores[fit], found.y[fit]).predict_proba(found.scores[test])


def peer(key, found, fit, test, k):
    proba = finite(stated(found))
    if key == "sigmoid":
        log_odds = logit(proba[:, 1])
        positive = _SigmoidCalibration().fit(log_odds[fit], found.y[fit]).predict(log_odds[test])
        return np.column_stack([1 - positive, positive])
    calibrator = ETSCalibrator() if key == "ets" else get_calibrator(key)
    return np.asarray(calibrator.fit(proba[fit], found.y[fit]).predict_proba(proba[test]))


def finite(proba):
    """A probability of 0 is infinitely wrong where it happens: it counts as 1e-12."""
    proba = np.maximum(proba, FLOOR)
    return proba / proba.sum(axis=1, keepdims=True)


def functions(k):
    chosen = {name: partial(ours, cls) for name, cls in OURS.items()}
    if k > 2:
        del chosen["beta"]
    if k >= 100:
        del chosen["structured matrix"]
    if get_calibrator is not None:
        for name, key in (PEERS_TWO if k == 2 else PEERS_SEVERAL).items():
            if k <= MOST_CLASSES_OF_PEERS.get(key, k):
                chosen[name] = partial(peer, key)
    return chosen


def measured(folder):
    """Write a row a set, number of samples and draw: log-loss, accuracy, base rate of each."""
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    known = {(row["set"], row["samples"], row["draw"]): row for row in rows}
    for found in prediction_sets(folder):
        proba, n_all = stated(found), len(found.y)
        k = proba.shape[1]
        for n, n_draws in SIZES.items():
            for draw in range(n_draws if n <= 0.7 * n_all else 0):
                order = np.random.default_rng([draw, n]).permutation(n_all)
                fit, test = order[:n], order[n:][-3000:]
                row = {"set": found.name, "classes": k, "samples": n, "draw": draw}
                row |= {"part": found.part, "scores": {}}
                row = known.setdefault((found.name, n, draw), row)
                row["scores"].setdefault("none", scored(found.y[test], proba[test]))
                for name, function in functions(k).items():
                    if name not in row["scores"]:
                        row["scores"][name] = attempt(function, found, fit, test, k)
        text = ",\n".join(json.dumps(row) for row in known.values())
        RESULTS.write_text(f"[\n{text}\n]\n")
        print(found.name, flush=True)


def attempt(function, found, fit, test, k):
    """Return the scores, None where a peer refuses samples without one of the classes."""
    try:
        return scored(found.y[test], function(found, fit, test, k))
    except Exception:
        if function.func is ours:
            raise
        return None


def scored(y, proba):
    if proba.shape[1] <= y.max():
        raise ValueError("a class has no column")
    label = finite(proba)[np.arange(len(y)), y]
    excess = proba[:, -1].mean() - np.mean(y == proba.shape[1] - 1)
    values = -np.log(label).mean(), np.mean(proba.argmax(axis=1) == y), excess
    return [round(float(value), 5) for value in values]


def summary(rows, name):
    """Return regret and the measures of CalArena of one method, over the rows that it serves."""
    served = [row["scores"] for row in rows if name in row["scores"]]
    loss, right, _ = np.array([scores[name] for scores in served]).T
    best = np.array([min(value[0] for value in scores.values()) for scores in served])
    none, right_before, _ = np.array([scores["none"] for scores in served]).T
    wins = [
        np.mean([loss[i] < value[0] for other, value in scores.items() if other != name])
        for i, scores in enumerate(served)
    ]
    return {
        "cases": len(served),
        "regret": (loss - best).mean(),
        "largest": (loss - best).max(),
        "beyond": np.mean([scores[name][0] - scores[AUTO][0] for scores in served]),
        "improvement": np.mean((none - loss) / none),
        "winrate": np.mean(wins),
        "worse": loss - none,
        "lost": right_before - right,
    }


HEAD = [
    "calibrator", "cases", "regret", "largest regret", 'log-loss beyond "auto"',
    "relative improvement", "winrate", "harm rate", "worse than none by .01",
    "accuracy lost > .01",
]  # fmt: skip


def table(title, rows):
    names = dict.fromkeys(name for row in rows for name in row["scores"])
    found = {name: summary(rows, name) for name in names}
    lines = [
        [name, values["cases"], f"{values['regret']:.4f}", f"{values['largest']:.3f}",
         f"{values['beyond']:+.4f}", f"{values['improvement']:.3f}",
         f"{values['winrate']:.2f}", f"{np.mean(values['worse'] > 0):.2f}",
         np.sum(values["worse"] > 0.01), np.sum(values["lost"] > 0.01)]
        for name, values in sorted(found.items(), key=lambda item: item[1]["regret"])
    ]  # fmt: skip
    return csv_table(title, HEAD, lines)


def promises(rows):
    """Return what the default is asked for, a line a part of the sets and number of samples."""
    lines = []
    for part, n in product(PARTS, SIZES):
        some = [row for row in rows if row["part"] == part and row["samples"] == n]
        found = summary(some, AUTO)
        line = [part, n, len(some), f"{found['regret']:.4f}", f"{found['largest']:.3f}"]
        for values in (found["worse"], found["lost"]):
            line += [np.sum(values > 0.01), f"{values.max():+.3f}"]
        lines.append(line)
    head = ["sets", "samples", "cases", "regret", "largest regret", "worse than none by .01"]
    head += ["at worst", "accuracy lost > .01", "at worst"]
    return csv_table("The default", head, lines)


def page(rows):
    """Return the tables: the default on every part, then all calibrators on all and on parts."""
    for row in rows:
        row["scores"] = {name: value for name, value in row["scores"].items() if value}
    parts = [promises(rows)]
    for which in ("all", *PARTS[1:]):
        parts.append(f".. {which}\n")
        for several, what in ((False, "two classes"), (True, "several classes")):
            some = [row for row in rows if (row["classes"] > 2) == several]
            some = [row for row in some if which in ("all", row["part"])]
            n_sets = len({row["set"] for row in some})
            parts.append(table(f"{which} sets, {what}: {n_sets}".capitalize(), some))
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    if arguments.data is not None:
        logging.disable(logging.CRITICAL)
        with warnings.catch_warnings():
            # Temperatures at a bound and fits without a finite optimum are part of the answer.
            warnings.simplefilter("ignore")
            measured(arguments.data)
    PAGE.write_text(page(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
