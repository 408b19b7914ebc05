"""Calibrators by the number of samples to fit on: the table of the guide on post-hoc calibration.

    python -m benchmarks.posthoc_samples [--data DIR]

Real logits, judged on 5000 others, in five splits; the implementation of structured scaling by its
authors, probmetrics, runs where it is installed. Writes `posthoc_samples_results.json` and the
table that is made of it; without --data the table alone. Two minutes.
"""

import argparse
import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.special import softmax
from sklearn.metrics import log_loss

from benchmarks.papers.statistics import mean_and_error
from benchmarks.papers.tables import csv_table
from skcalib.posthoc import (
    MatrixScaling,
    StructuredMatrixScaling,
    TemperatureScaling,
    VectorScaling,
)

RESULTS = Path(__file__).with_name("posthoc_samples_results.json")
PAGE = Path(__file__).parents[1] / "docs/user_guide/posthoc_samples.inc"
SAMPLES = (200, 500, 2000, 5000)
N_SPLITS = 5
CALIBRATORS = {
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "structured matrix": StructuredMatrixScaling,
}


def authors_of_structured():
    """Return {name and version: function of (logits, y, others)}, empty where not installed."""
    try:
        from probmetrics.calibrators import get_calibrator
    except ImportError:
        return {}

    def proba(logits, y, others):
        fitted = get_calibrator("sms").fit(softmax(logits, axis=1), y)
        found = fitted.predict_proba(softmax(others, axis=1))
        return found / found.sum(axis=1, keepdims=True)

    return {f"probmetrics {version('probmetrics')}": proba}


def ours(cls):
    return lambda logits, y, others: cls().fit(logits, y).predict_proba(others)


def measured(folder):
    """Return one row a calibrator and number of samples, with the log-loss of every split."""
    with np.load(folder / "cifar10_resnet20_logits.npz") as data:
        logits, y = data["logits"].astype(np.float64), data["y"].astype(np.int64)
    functions = {name: ours(cls) for name, cls in CALIBRATORS.items()} | authors_of_structured()
    rows = []
    for n_samples in SAMPLES:
        for name, function in functions.items():
            losses = []
            for seed in range(N_SPLITS):
                order = np.random.default_rng(seed).permutation(len(y))
                fit, test = order[:n_samples], order[5000:]
                losses.append(log_loss(y[test], function(logits[fit], y[fit], logits[test])))
            rows.append({"samples": n_samples, "calibrator": name,
                         "log_loss": [round(loss, 5) for loss in losses]})  # fmt: skip
            print(rows[-1], flush=True)
    return rows


def page(rows):
    """Return the table: means over splits, and standard errors."""
    cells = {(row["samples"], row["calibrator"]): row["log_loss"] for row in rows}
    names = list(dict.fromkeys(name for _, name in cells))
    lines = [[n, *(_cell(cells[n, name]) for name in names)] for n in SAMPLES]
    return csv_table("", ["samples", *names], lines)


def _cell(losses):
    mean, error = mean_and_error(losses)
    return f"{mean:.3f} ± {error:.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    data = parser.parse_args().data
    if data is not None:
        text = ",\n".join(json.dumps(row) for row in measured(data))
        RESULTS.write_text(f"[\n{text}\n]\n")
    PAGE.write_text(page(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
