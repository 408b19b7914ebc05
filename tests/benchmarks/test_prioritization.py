"""The guide's table of prioritization says what the JSON file says."""

import json
from pathlib import Path

from benchmarks.prioritization import RESULTS, cell, table

RUNS = json.loads(RESULTS.read_text())
GUIDE = (Path(__file__).parents[2] / "docs" / "user_guide" / "nets.rst").read_text()


def test_every_row_of_the_guide_is_that_of_the_runs():
    lines = {" ".join(line.split()) for line in GUIDE.splitlines()}
    for row in table(RUNS, "cross-entropy"):
        assert " ".join(row.split()) in lines


def test_so_is_the_sentence_about_all_samples():
    accuracy, ece = cell(RUNS, "cross-entropy", 1.0, "-").split(", ECE ")
    assert f"All samples gave an accuracy of {accuracy} and an ECE of {ece}" in GUIDE
