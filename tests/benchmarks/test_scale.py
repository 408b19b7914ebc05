"""The page of scale, and its picture, show the results."""

import json

import numpy as np
import pytest

from benchmarks.scale import PAGE, RESULTS, draw, page, time_of

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


def test_results_can_be_drawn(tmp_path):
    draw(ROWS, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
