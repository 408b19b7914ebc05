"""The benchmark of novelty: its measures, and the guide that reports it."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.novelty import detection, guide_table, standard_errors
from skcalib.metrics import ood_report

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("decimals", [1, 6])
def test_the_fast_measures_are_those_of_ood_report(decimals):
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(1, size=301).round(decimals), rng.normal(size=120).round(decimals)
    both = np.concatenate([inside, outside])
    report = ood_report(np.arange(421) < 301, {"score": both})[0]
    expected = report["auroc"], report["fpr_at_tpr"]
    np.testing.assert_allclose(detection(inside, outside), expected, atol=1e-12)


def test_standard_errors_are_those_of_the_mann_whitney_statistic():
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(1, size=400), rng.normal(size=200)
    below = inside[:, None] > outside
    # Hanley and McNeil: the variance of the means over rows and over columns.
    expected = np.sqrt(below.mean(axis=1).var() / 400 + below.mean(axis=0).var() / 200)
    assert standard_errors([inside], [outside])[0] == pytest.approx(expected, rel=0.15)


def test_the_guide_reports_the_results():
    rows = json.loads((ROOT / "benchmarks/novelty_results.json").read_text())
    guide = (ROOT / "docs/measured/detection.rst").read_text()
    assert guide_table(rows) in guide
