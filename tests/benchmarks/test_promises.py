"""Sentences that promise a rate, a coverage or a level, and the figures they rest on."""

import json
import re
from pathlib import Path

import pytest

import skcalib

coverage = pytest.importorskip("benchmarks.coverage")
false_alarms = pytest.importorskip("benchmarks.false_alarms")
prior_shift = pytest.importorskip("benchmarks.prior_shift")

REPOSITORY = Path(skcalib.__file__).parent.parent
PROMISES = json.loads((REPOSITORY / "benchmarks/promises.json").read_text())


def results(name):
    return json.loads((REPOSITORY / f"benchmarks/{name}_results.json").read_text())


def guide(name):
    return (REPOSITORY / f"docs/measured/{name}.rst").read_text()


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise["phrase"])
def test_a_promise_stands_where_it_is_listed_and_is_measured(promise):
    # Key phrases: who rewords one changes it in benchmarks/promises.json, and looks there whether
    # the measurement still says so.
    text = re.sub(r"\s+", " ", (REPOSITORY / promise["file"]).read_text())
    assert promise["phrase"] in text
    assert (REPOSITORY / promise["measured"]).exists()


def test_tables_of_the_guide_are_those_of_the_simulations():
    assert coverage.guide_table(results("coverage")) in guide("intervals")
    assert false_alarms.guide_table(results("false_alarms")) in guide("detection")
    assert prior_shift.guide_table(results("prior_shift")) in guide("calibrators")


def test_intervals_hold_as_often_as_the_guide_says():
    lines = results("coverage")
    said = re.search(r"hold in at least (\d+) % of the draws", guide("intervals"))[1]
    assert min(line["coverage"] for line in lines) >= int(said) / 100 - 1e-9
    assert sum(line["coverage"] >= 0.95 for line in lines) > len(lines) / 2
    assert {line["metric"] for line in lines} == set(coverage.METRICS)
    # The errors that the guide recommends hold at least nine of ten times in every regime.
    recommended = [line for line in lines if line["metric"] in ("ECE", "debiased", "smooth")]
    assert min(line["coverage"] for line in recommended) >= 0.9
    calibrated = {r["metric"]: r["mean_error"] for r in lines if r["regime"].endswith("2 classes")}
    means = [round(calibrated[name], 2) for name in ("ECE", "smooth", "KS")]
    assert means == [0.08, 0.05, 0.04]


def test_false_alarms_are_as_rare_as_promised():
    deviations = [
        (line["rate"] - false_alarms.CONTAMINATION) / line["standard_error"]
        for line in results("false_alarms")
    ]
    assert len(deviations) == 36
    # Chance alone leaves 68 % within one standard error, and 95 % within two.
    assert sum(abs(z) <= 1 for z in deviations) >= 0.6 * len(deviations)
    assert sum(abs(z) <= 2 for z in deviations) >= 0.9 * len(deviations)


def test_prior_shift_does_as_little_harm_as_the_guide_says():
    lines = results("prior_shift")
    same = [line for line in lines if not line["shifted"]]
    assert max(line["mean"] for line in same) <= 0.03
    assert round(max(line["labels"] for line in same), 2) == 0.33
    assert round(max(line["plain"] for line in same), 1) == 6.3
    assert all(line["mean"] < 0 for line in lines if line["shifted"])
