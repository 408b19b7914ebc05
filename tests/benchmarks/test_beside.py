import json
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks import beside

ROWS = json.loads(beside.RESULTS.read_text())


def test_the_page_is_that_of_the_results():
    assert (beside.DOCS / "reference/beside.inc").read_text() == beside.page(ROWS)


def test_readme_says_what_was_measured(repository):
    text = " ".join((repository / "README.md").read_text().split())
    of = beside.accused(ROWS, 2, 300)
    for name in ("skcalib", "uncertainty-calibration", "probcal"):
        assert f"{name} {of[f'{name}, interval'][0]}" in text
    flags = {row["library"]: row for row in ROWS if "recall" in row}
    cleanlab, ours = flags["cleanlab, Datalab"], flags["skcalib"]
    for value in ("recall", "precision"):
        assert f"{cleanlab[value]:.2f}".removeprefix("0") in text
        assert f"{ours[value]:.2f}".removeprefix("0") in text


def test_our_own_verdicts_are_held_to_their_level():
    for row in ROWS:
        if row["library"].startswith("skcalib,") and row["temperature"] == 1:
            # 11 of 100 are seen with probability .01 at a level of .05
            assert row["accused"] <= 0.11, row


@pytest.mark.slow
def test_a_verdict_is_by_each_function_of_its_own():
    rng = np.random.default_rng(0)
    proba = rng.uniform(0.05, 0.95, 2000)
    y = (rng.uniform(size=2000) < proba).astype(int)
    far = np.where(proba > 0.5, 0.99, 0.01)
    for name, (package, verdict, _) in beside.VERDICTS.items():
        if find_spec(package) is not None:
            assert verdict(y, far, 0), name
    assert not beside.by_interval(y, proba, 0)
    assert not beside.by_test(y, proba, 0)
