import json

import pytest

from benchmarks.scale import PAGE, RESULTS
from benchmarks.scale_page import page, time_of


def test_the_page_shows_the_results():
    assert PAGE.read_text() == page(json.loads(RESULTS.read_text()))


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
