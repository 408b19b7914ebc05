"""The guide's tables of losses on small data say what the JSON file says."""

import json
from pathlib import Path

import pytest

from benchmarks.losses_compared import METHODS, RESULTS, SETTINGS, table

RUNS = json.loads(RESULTS.read_text())
GUIDE = (Path(__file__).parents[2] / "docs" / "measured" / "losses.rst").read_text()


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_row_of_the_guide_is_that_of_the_runs(setting):
    lines = {" ".join(line.split()) for line in GUIDE.splitlines()}
    for row in table(RUNS, setting):
        assert " ".join(row.split()) in lines


def test_all_losses_were_run_with_the_same_seeds():
    seeds = {
        (setting, method): sorted(
            r["seed"] for r in RUNS if (r["setting"], r["method"]) == (setting, method)
        )
        for setting in SETTINGS
        for method in METHODS
    }
    assert len(set(map(tuple, seeds.values()))) == 1
    assert len(RUNS) == sum(map(len, seeds.values()))
