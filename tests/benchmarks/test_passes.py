"""The table of paths beside a bound shows the results."""

import json

from benchmarks.passes import PAGE, RESULTS, page

ROWS = json.loads(RESULTS.read_text())


def test_the_page_shows_the_results():
    assert PAGE.read_text() == page(ROWS)


def test_the_metric_keeps_few_copies():
    copies = [row["memory"] for row in ROWS if "refined_log_loss" in row["path"]]
    assert max(copies) <= 2.5
