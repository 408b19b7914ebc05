"""The tables of simulations in the guide are those that the benchmarks have written."""

import json
import re
from pathlib import Path

import skcalib

REPOSITORY = Path(skcalib.__file__).parent.parent
GUIDE = REPOSITORY / "docs/user_guide/metrics.rst"


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


def test_coverage_of_intervals():
    expected = [
        [
            line["model"],
            str(line["samples"]),
            shown(line["truth"], 3),
            shown(line["mean_error"], 3),
            shown(line["basic"], 2),
            shown(line["percentile"], 2),
        ]
        for line in results("interval_coverage")
    ]
    assert table_with("mean ECE", "percentile") == expected
