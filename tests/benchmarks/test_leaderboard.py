import json
from functools import partial
from importlib import import_module

import numpy as np
import pytest

from benchmarks import calibrator_ablations
from benchmarks.leaderboard import AUTO, TEMPERATURE, Case, measured, ours, split, summary
from skcalib.posthoc import PriorShift, StackedCalibration, TemperatureScaling


def test_no_person_is_fitted_and_judged():
    groups = np.arange(3000) // 10
    found = Case("a", np.zeros((3000, 2)), np.zeros(3000, dtype=int), "logits", groups)
    fit, test = split(found, 200, 0)
    assert (len(fit), len(test)) == (200, 1000)
    assert len(set(groups[fit])) == 20
    assert not set(groups[fit]) & set(groups[test])


def test_measures_are_those_of_the_rows_judged():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(400, 3))
    y = (scores + rng.normal(size=(400, 3))).argmax(axis=1)
    found, fit, test = Case("a", scores, y, "logits"), np.arange(200), np.arange(200, 400)
    loss, right, *seconds = measured(partial(ours, TemperatureScaling), found, fit, test, 3)
    said = TemperatureScaling().fit(scores[:200], y[:200]).predict_proba(scores[200:])
    assert loss == pytest.approx(-np.log(said[np.arange(200), y[200:]]).mean(), rel=1e-4)
    assert right == pytest.approx(np.mean(scores[200:].argmax(axis=1) == y[200:]), rel=1e-4)
    assert min(seconds) >= 0


def test_a_summary_counts_what_is_worse_than_none():
    scores = [
        {TEMPERATURE: [0.4, 0.8, 2, 1, 0.2], AUTO: [0.45, 0.78, 8, 3, 0.3]},
        {TEMPERATURE: [0.4, 0.8, 2, 1, 0.2], AUTO: [0.52, 0.81, 12, 5, 0.1]},
        {TEMPERATURE: [0.4, 0.8, 2, 1, 0.2], AUTO: None},
    ]
    none = {"none": [0.5, 0.8, 1, 1, 0.2]}
    found = summary([{"rate": 0.2, "scores": none | values} for values in scores], AUTO)
    assert found["cases"] == 2
    assert found["regret"] == pytest.approx(0.085)
    assert found["largest"] == pytest.approx(0.12)
    assert (found["worse"], found["lost"]) == (1, 1)
    assert (found["fit"], found["predict"]) == (5, 4)
    assert found["ratios"] == pytest.approx([1.5, 0.5])


@pytest.mark.parametrize("study", calibrator_ablations.STUDIES)
def test_every_rule_of_a_calibrator_is_switched_off(study):
    rules = calibrator_ablations.STUDIES[study].rules
    for rule in rules:
        for path in rule.off:
            module, name = path.rsplit(".", 1)
            assert hasattr(import_module(module), name)
    rows = json.loads(calibrator_ablations.RESULTS.read_text())
    found = [row["rule"] for row in rows if row["study"] == study]
    assert found == ["", *(rule.name for rule in rules)]


def test_priors_are_not_drawn_back(monkeypatch):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([3.0, 1.0], 300)
    known = {"training_priors": [0.7, 0.3], "input": "proba"}
    drawn = calibrator_ablations.Shift(**known).fit(proba)
    assert drawn.trust_ == PriorShift(**known).fit(proba).trust_ < 1
    monkeypatch.setattr(calibrator_ablations, "DRAWN_BACK", False)
    assert calibrator_ablations.Shift(**known).fit(proba).trust_ == 1


@pytest.mark.slow
def test_a_map_is_left_out(monkeypatch):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(100, 3))
    y = (scores + rng.normal(size=(100, 3))).argmax(axis=1)
    whole = StackedCalibration().fit(scores, y)
    monkeypatch.setattr(calibrator_ablations, "LEFT_OUT", "isotonic")
    less = calibrator_ablations.Stack().fit(scores, y)
    assert set(whole.log_losses_) - set(less.log_losses_) == {"isotonic"}
