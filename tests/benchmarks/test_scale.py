"""The page of scale, and its picture, show the results."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.many_rows import (
    PARTS,
    guide_table,
    interval_of_classes,
    report_of_a_million,
    sums,
    write,
)
from benchmarks.scale import PAGE, RESULTS, draw, page, time_of

REPOSITORY = Path(__file__).parents[2]

FOUND = json.loads(RESULTS.read_text())
ROWS = FOUND["growth"]


def test_the_page_shows_the_results():
    assert PAGE.read_text() == page(FOUND)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3.2, "3 s"),
        (119, "119 s"),
        (121, "2 minutes"),
        (9000, "2 hours"),
        (200_000, "2 days"),
        (1e8, "3 years"),
    ],
)
def test_times_are_read_in_a_unit_that_fits(seconds, text):
    assert time_of(seconds) == text


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["path"])
def test_lines_of_the_picture_go_on_as_the_measured_ones_end(row):
    n, t = np.log(row["samples"][-3:]), np.log(row["seconds"][-3:])
    assert np.polyfit(n, t, 1)[0] == pytest.approx(row["power"], abs=0.15)


@pytest.mark.slow
def test_results_can_be_drawn(tmp_path):
    draw(ROWS, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_the_guide_has_the_table_of_many_rows():
    lines = json.loads((REPOSITORY / "benchmarks/many_rows_results.json").read_text())
    assert guide_table(lines) in (REPOSITORY / "docs/measured/scale.rst").read_text()
    assert [line["path"] for line in lines] == [part[0] for part in PARTS]
    by_path = {line["path"]: line for line in lines}
    # A block of 500 000 rows is 20 MB of the 800.
    for name in ("CalibrationAccumulator.update", "expected_calibration_error"):
        assert by_path[name]["rows"] == 20_000_000
        assert by_path[name]["megabytes"] < 100


@pytest.mark.slow
def test_parts_of_many_rows_run(tmp_path):
    write(tmp_path, 3000)
    assert sums(tmp_path).sums_[0].sum() == 3000
    report_of_a_million(tmp_path)
    interval_of_classes(tmp_path)
