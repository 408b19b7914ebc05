"""Coverage of the intervals of risk models: a few trials run, and give fractions."""

import pytest

risk_models = pytest.importorskip("benchmarks.risk_models")


@pytest.mark.slow
def test_trials_are_as_the_file_says(monkeypatch):
    monkeypatch.setattr(risk_models, "N_TRIALS", 5)
    monkeypatch.setattr(risk_models, "N_TRUTH", 20_000)
    monkeypatch.setattr(
        risk_models, "SETTINGS", {"visits": risk_models.SETTINGS["calibrated, visits"]}
    )
    (line,) = risk_models.coverage()
    assert line["samples"] == 600
    assert 80 < line["events"] < 130
    assert all(0.6 <= line[name] <= 1 for name in ("slope", "O/E", "net benefit", "band"))
