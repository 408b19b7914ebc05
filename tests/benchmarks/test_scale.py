import json

from benchmarks.scale import PAGE, RESULTS, page


def test_the_page_shows_the_results():
    assert PAGE.read_text() == page(json.loads(RESULTS.read_text()))
