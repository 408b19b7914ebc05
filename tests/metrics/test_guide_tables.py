"""The tables of simulations in the guide are those that the benchmarks have written."""

import json
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
GUIDE = REPOSITORY / "docs/measured/intervals.rst"
pytestmark = pytest.mark.usefixtures("repository")


def results(name):
    return json.loads((REPOSITORY / f"benchmarks/{name}_results.json").read_text())


def table_with(*columns):
    """Rows of cells of the simple table that has these columns."""
    lines = [re.split(r" {2,}", line.strip()) for line in GUIDE.read_text().splitlines()]
    head = next(i for i, cells in enumerate(lines) if set(columns) <= set(cells))
    # Below the head a rule, and the rows up to the next rule.
    stop = lines.index(lines[head + 1], head + 2)
    return lines[head + 2 : stop]


def shown(value, digits):
    return f"{value:.{digits}f}".removeprefix("0")


def test_level_and_power_of_the_calibration_test():
    tests = ["ECE", "debiased", "KS", "smooth", "Brier", "classwise"]
    tests += [f"mapie {name}" for name in ("kolmogorov_smirnov", "kuiper", "spiegelhalter")]
    rows = {}
    for line in results("calibration_test"):
        cells = rows.setdefault((line["model"], str(line["samples"])), dict.fromkeys(tests, "-"))
        cells[line["test"]] = shown(line["rejected"], 2)
    expected = [[*key, *cells.values()] for key, cells in rows.items()]
    assert table_with("smooth", "Kuiper (M)") == expected


def test_standard_errors_are_within_what_the_guide_says():
    assert max(line["error"] for line in results("calibration_test")) < 0.036
