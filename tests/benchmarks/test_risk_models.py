"""Validation of risk models: a few trials run, and give fractions; the guide has the results."""

import json

import numpy as np
import pytest

risk_models = pytest.importorskip("benchmarks.risk_models")


@pytest.mark.slow
def test_trials_are_as_the_file_says(monkeypatch):
    monkeypatch.setattr(risk_models, "N_TRUTH", 20_000)
    monkeypatch.setattr(
        risk_models, "SETTINGS", {"visits": risk_models.SETTINGS["calibrated, visits"]}
    )
    (line,) = risk_models.coverage(5)
    assert line["samples"] == 600
    assert 80 < line["events"] < 130
    assert all(0.6 <= line[name] <= 1 for name in ("slope", "O/E", "net benefit", "band"))


def test_formulas_by_their_definition():
    score = risk_models.Study(0.14, 1.5, 0.3).score(2000)
    p = 1 / (1 + np.exp(-score))
    assert p.mean() == pytest.approx(0.14)
    positive, negative = p / p.sum(), (1 - p) / (1 - p).sum()
    wins = (score[:, None] > score) + 0.5 * (score[:, None] == score)
    area = risk_models.area_of(score)
    assert area == pytest.approx(positive @ wins @ negative)
    n = risk_models.samples_by_formula("slope", 0.14, score, 0.3)
    x = np.column_stack([np.ones_like(score), score])
    covariance = np.linalg.inv(n * (x * (p * (1 - p))[:, None]).T @ x / len(p))
    assert 2 * 1.959964 * np.sqrt(covariance[1, 1]) == pytest.approx(0.3, rel=1e-6)
    n = risk_models.samples_by_formula("o_e_ratio", 0.14, score, 0.3)
    reach = 1.959964 * np.sqrt(0.86 / (0.14 * n))
    assert np.exp(reach) - np.exp(-reach) == pytest.approx(0.3, rel=1e-6)


def test_intervals_hold_and_numbers_are_near_those_of_the_formulas():
    results = json.loads(risk_models.RESULTS.read_text())
    rows = {row["model"]: row for row in results["coverage"]}
    two_visits = rows["two visits"]
    assert two_visits["net benefit"] >= 0.92
    assert two_visits["band"] >= 0.9
    for name in ("calibrated", "calibrated, visits", "slope .7"):
        assert min(rows[name][k] for k in ("slope", "in the large", "O/E")) >= 0.91
    assert rows["slope .7, visits"]["slope"] >= 0.9
    assert rows["slope .7, common"]["slope below 1"] >= 0.75  # 30 of 40
    ratios = [row["ratio"] for row in results["sizes"] if row["ratio"] is not None]
    assert 0.7 <= min(ratios) <= max(ratios) <= 1.4
