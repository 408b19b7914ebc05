"""The guide's tables of wrong labels say what the JSON file says."""

import json
import re

from benchmarks import labels_trust
from benchmarks.labels import PAGE, RESULTS, page

COUNTS = ("runs", "off", "too_high", "off_and_warned", "warned_otherwise", "interval_holds")


def test_the_guide_shows_the_results():
    # "python -m benchmarks.labels" writes them anew.
    assert PAGE.read_text() == page(json.loads(RESULTS.read_text()))


def test_the_guide_says_how_often_the_finder_warns(repository):
    counts = json.loads(labels_trust.RESULTS.read_text())
    assert labels_trust.PAGE.read_text() == labels_trust.page(counts)
    text = (repository / "docs" / "measured" / "labels.rst").read_text(encoding="utf-8")
    for judges, start in (
        ("default", "* Default base models:"),
        ("distances", "* Distances alone:"),
    ):
        some = [count for count in counts if count["judges"] == judges]
        total = {name: sum(c[name] for c in some) for name in COUNTS}
        numbers = [int(n) for n in re.findall(r"\d+", text[text.index(start) :])[:9]]
        runs, off = total["runs"], total["off"]
        warned = [total["off_and_warned"], off, total["warned_otherwise"], runs - off]
        assert numbers == [off, runs, total["too_high"], *warned, total["interval_holds"], runs]
