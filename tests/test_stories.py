"""The long examples: what their texts and pictures say is what comes out."""

import re
import runpy

import matplotlib.pyplot as plt
import numpy as np
import pytest

from skcalib.metrics import decision_curve

pytestmark = pytest.mark.slow


@pytest.fixture
def run_story(repository, tmp_path, monkeypatch):
    """Return a function that runs an example in an empty folder and returns its names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    yield lambda path: runpy.run_path(str(repository / "examples" / path))
    plt.close("all")


def test_an_ai_judge(run_story):
    names = run_story("whole/plot_ai_judge.py")
    # "far too sure": the whole interval of the error is far from zero.
    assert names["confidence"].mean() > names["right"].mean() + 0.15
    low, high = names["calibration_error"]
    assert 0.15 < low < high < 0.25
    # "At most 10 % of the answers that customers see may be wrong."
    assert names["error_rate"] <= 0.1 < names["error_rate_of_all"] / 3
    assert 0.35 < names["shown"].mean() < 0.5
    # "The judge alone is off by more than ten points; the interval is narrower."
    truth, judge = names["good"].mean(), names["verdict"].mean()
    assert judge - truth > 0.1
    widths = []
    for low, high in names["intervals"].values():
        assert low < truth < high
        widths.append(high - low)
    assert widths[1] < 0.85 * widths[0]


def test_a_risk_model_in_use(run_story):
    names = run_story("whole/plot_risk_model_in_use.py")
    before, after, test = names["before"], names["after"], names["test"]
    # "O/E is far below 1 and calibration in the large below 0. The slope is right."
    assert before.loc["O/E ratio", "high"] < 0.7
    assert before.loc["calibration in the large", "high"] < -0.5
    for table in (before, after):
        assert table.loc["slope", "low"] < 1 < table.loc["slope", "high"]
    assert after.loc["O/E ratio", "low"] < 1 < after.loc["O/E ratio", "high"]
    # "At this threshold the updated risks are worth more. Above .26, the old ones do harm."
    assert names["benefit"]["updated"] > 1.3 * names["benefit"]["risk"]
    high = np.arange(26, 51) / 100
    for column, is_harmful in (("risk", True), ("updated", False)):
        curve = decision_curve(test["event"], test[column], thresholds=high, n_resamples=9)
        assert ((curve["net_benefit"] < 0) == is_harmful).all()
    # What another program computes from the file is the update.
    np.testing.assert_allclose(names["by_formula"], test["updated"], rtol=1e-12)
    # "Five days of wrong risks are enough. The alarm dates the change a day too early."
    assert names["day"] == 23
    assert re.match(r"Since March 18 .* too high on the whole", names["monitor"].alarm_)
    assert plt.figure(plt.get_fignums()[-1]).axes[0].get_title().startswith("alarm at March 23")


def test_three_annotators(run_story):
    names = run_story("whole/plot_three_annotators.py")
    # "Ben and eve agree best", but ann is right most often.
    pairs, skill = names["pairs"], {"ann": 0, "ben": 0, "eve": 0}
    assert pairs.loc[0, ["annotator", "other"]].tolist() == ["ben", "eve"]
    assert pairs["kappa"][0] > 0.85 > 0.75 > pairs["kappa"][1:].max()
    for who in skill:
        seen = names["wide"][who].dropna()
        skill[who] = np.mean(seen == names["true"][seen.index])
    assert max(skill, key=skill.get) == "ann"
    # "In most of the shared mistakes, the same digit."
    assert names["same"]["ben, eve"] > 0.9 > 0.2 > max(list(names["same"].values())[1:])
    assert len(names["finder"].copying_pairs_) == 0
    right = names["right"]
    assert right["majority"] < 0.9 < 0.98 < right["consensus"] < right["consensus, 40 checked"]
    assert len(names["page"].positions_) == 40
    # The labels are worth as much as the truth.
    accuracy = names["accuracy"]
    for name in ("soft labels of the votes", "consensus, 40 checked"):
        assert accuracy[name] > accuracy["truth"] - 0.01 > accuracy["majority"] + 0.05


def test_batches_and_models_compared(run_story):
    ends = run_story("measure/plot_batches.py")["ends"]
    assert ends["overconfident"] == pytest.approx((0.082, 0.059, 0.099), abs=0.004)
    assert ends["calibrated"] == pytest.approx((0.022, 0.0, 0.027), abs=0.004)
    table = run_story("measure/plot_compare_models.py")["table"].set_index("model")
    assert (table["low"] == 0).tolist() == [True, True, False]
    assert table.loc["random forest", "pvalue"] > 0.3
    assert table.loc["naive Bayes", "pvalue"] < 0.001
    others = table.iloc[1:]
    assert (others["difference_low"] < 0).all()
    assert (others["difference_high"] > 0).all()
