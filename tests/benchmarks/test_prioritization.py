"""The guide's table of prioritization says what the JSON file says."""

import json

import numpy as np
from scipy.stats import sem

from benchmarks.prioritization import PAGE, RESULTS, cell, page, runs

RUNS = json.loads(RESULTS.read_text())


def test_the_guide_shows_the_results():
    # "python -m benchmarks.prioritization" writes it anew.
    assert PAGE.read_text() == page(RUNS)


def test_all_seeds_have_run_everything_once():
    ran = [(r["seed"], r["loss"], r["fraction"], r["guide"]) for r in RUNS]
    ran = [run for run in ran if run[3] != "(the target)"]
    assert sorted(ran) == sorted(runs(5, ["cross-entropy"]))


def test_a_cell_is_mean_and_standard_error_over_the_seeds():
    found = [{"loss": "focal", "fraction": 0.1, "guide": "self", "accuracy": a, "ece": a / 10}
             for a in (0.4, 0.42, 0.5)]  # fmt: skip
    accuracy = f"{np.mean([40, 42, 50]):.1f} ± {sem([40, 42, 50]):.1f} %"
    assert cell(found, "focal", 0.1, "self").startswith(accuracy)
