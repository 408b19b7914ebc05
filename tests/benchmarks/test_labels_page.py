"""The guide's tables of wrong labels say what the JSON file says."""

import json

from benchmarks.labels import PAGE, RESULTS, page


def test_the_guide_shows_the_results():
    # "python -m benchmarks.labels --page" writes them anew.
    assert PAGE.read_text() == page(json.loads(RESULTS.read_text()))
