"""The table of the main example in the guide: python -m benchmarks.main_example [--run].

--run runs `examples/whole/plot_find_repair_calibrate.py` (one minute) and keeps what it measured
in `main_example_results.json`; the table and the sentence below it are made of that file.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import runpy
import tempfile
from pathlib import Path

import matplotlib
import numpy as np

from benchmarks.papers.statistics import interval
from benchmarks.papers.tables import csv_table

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "whole" / "plot_find_repair_calibrate.py"
RESULTS = Path(__file__).with_name("main_example_results.json")
PAGE = ROOT / "docs/measured/main_example.inc"
NAMES = {"drop": '``"drop"``', "relabel": '``"relabel"``', "soft labels": '``"soft"``'}


def measured():
    """Run the example in a folder of its own; return {training: {column: values of the seeds}}."""
    matplotlib.use("Agg")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        scores = runpy.run_path(str(EXAMPLE))["scores"]
    return {
        name: {column: [round(float(v), 5) for v in values] for column, values in columns.items()}
        for name, columns in scores.items()
    }


def page(scores):
    """Return the table, means with 95 % intervals in percent, and what the repair is worth."""
    rows = [
        [NAMES.get(name, name), _percent(columns["accuracy"], 1), _percent(columns["answered"], 0)]
        for name, columns in scores.items()
    ]
    table = csv_table("", ["Training", "Accuracy, %", "Answered, %"], rows)
    given, soft, true = (scores[n] for n in ("labels as given", "soft labels", "true labels"))
    accuracy = [np.mean(columns["accuracy"]) for columns in (given, soft, true)]
    won = (accuracy[1] - accuracy[0]) / (accuracy[2] - accuracy[0])
    answered = [100 * np.mean(columns["answered"]) for columns in (soft, given)]
    return (
        f'{table}\nRepair by ``"soft"`` wins {100 * won:.0f} % of what the wrong labels cost. The '
        f"net\nthen answers {answered[0]:.0f} % of the samples instead of {answered[1]:.0f} %.\n"
    )


def _percent(values, digits):
    mean, low, _, _ = interval(100 * np.array(values))
    return f"{mean:.{digits}f} ± {mean - low:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", action="store_true", help="run the example anew")
    if parser.parse_args().run:
        text = ",\n".join(f"{json.dumps(n)}: {json.dumps(v)}" for n, v in measured().items())
        RESULTS.write_text(f"{{\n{text}\n}}\n")
    PAGE.write_text(page(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
