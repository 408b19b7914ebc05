"""Acting at a threshold or at costs: the numbers of the page are those of the metrics."""

import numpy as np
import pytest

from skcalib.__main__ import main
from skcalib.metrics import cost_summary, decision_curve, validation_summary
from skcalib.report import CalibrationReport

RNG = np.random.default_rng(0)
N = 400
PATIENT = np.repeat(np.arange(N // 2), 2)
RISK = RNG.beta(1, 9, N // 2)[PATIENT]
Y = (RNG.random(N) < RISK).astype(int)
STATED = np.sqrt(RISK)
COSTS = [[0, 8], [1, 1]]


@pytest.fixture(scope="module")
def report():
    return CalibrationReport.from_predictions(Y, STATED, groups=PATIENT, costs=COSTS)


@pytest.mark.slow
def test_the_numbers_are_those_of_the_metrics(report):
    found = report.results_
    given = {"groups": PATIENT, "confidence_level": 0.99, "random_state": 0}
    table = validation_summary(Y, STATED, **given)
    for row, expected in zip(found["validation"]["table"], table, strict=True):
        assert row["statistic"] == expected["statistic"]
        for name in ("value", "low", "high", "ideal"):
            assert row[name] == pytest.approx(expected[name], rel=1e-9, abs=1e-9)
    assert found["costs"]["act_above"] == 1 / 8
    [expected] = decision_curve(Y, STATED, thresholds=[1 / 8], **given)
    acted = STATED >= 1 / 8
    at = found["costs"]["at"]
    for name in ("net_benefit", "low", "high", "predicted", "act_on_all", "interventions_avoided"):
        assert at[name] == pytest.approx(expected[name])
    assert at["fraction"] == pytest.approx(acted.mean())
    assert at["recall"]["value"] == pytest.approx(acted[Y == 1].mean())
    assert at["precision"]["value"] == pytest.approx(Y[acted].mean())
    assert found["classes"][1]["recall"] == at["recall"]
    assert found["classes"][1]["mean_confidence"] == pytest.approx(STATED[acted].mean())
    rules = cost_summary(Y, STATED, COSTS, **given)
    for row, expected in zip(found["costs"]["rules"], rules, strict=True):
        assert row["rule"] == expected["rule"]
        assert row["cost"] == pytest.approx(expected["cost"])


@pytest.mark.slow
def test_the_page_says_what_acting_is_worth(report, tmp_path):
    page = report.to_markdown()
    assert "## What an error costs" in page
    assert "probability of class 1 is 0.1250 or more" in page
    assert "what an error costs, or" not in page
    assert report.to_html().count("Net benefit of acting from each probability on") >= 1


@pytest.mark.slow
def test_without_costs_there_is_the_validation_table_alone():
    report = CalibrationReport.from_predictions(Y, STATED)
    page = report.to_markdown()
    assert "O/E ratio" in page
    assert "## What an error costs" not in page
    assert "what an error costs, or" in page
    assert report.results_["costs"] is None


@pytest.mark.slow
def test_costs_of_several_classes():
    proba = RNG.dirichlet([2, 2, 2], 200)
    labels = np.array([RNG.choice(3, p=row) for row in proba])
    costs = [[0, 4, 4], [1, 0, 4], [1, 4, 0], [2, 2, 2]]
    report = CalibrationReport.from_predictions(labels, proba, costs=costs)
    assert len(report.results_["costs"]["rules"]) == 6
    assert report.results_["validation"] is None
    assert "always 3" in report.to_markdown()
    with pytest.raises(ValueError, match="act_above must be None unless there are two classes"):
        CalibrationReport.from_predictions(labels, proba, act_above=0.3)


@pytest.mark.slow
def test_the_command_takes_a_threshold_and_costs(tmp_path, capsys):
    path, page = tmp_path / "p.csv", tmp_path / "p.md"
    rows = [f"{y},{p}" for y, p in zip(Y, STATED)]
    path.write_text("\n".join(["label,p_1", *rows]) + "\n")
    assert main(["report", str(path), "-o", str(page), "--act-above", "0.2"]) == 0
    assert "probability of class 1 is 0.2000 or more" in page.read_text()
    assert main(["report", str(path), "-o", str(page), "--costs", "0 8; 1 1"]) == 0
    assert "always 1" in page.read_text()
    for options, match in {
        ("--act-above", "1.5"): "act_above must be in (0, 1), got 1.5",
        ("--costs", "1 2; 3"): "costs must be a number for every class and decision",
        ("--costs", "1 2 3"): "costs must have shape (n_decisions, 2)",
    }.items():
        capsys.readouterr()
        assert main(["report", str(path), "-o", str(page), *options]) == 2
        assert match in capsys.readouterr().err
