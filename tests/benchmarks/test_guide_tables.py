"""Tables of the guide that are made of JSON files say what these say."""

import json

import numpy as np
import pytest
from scipy.stats import sem, t

from benchmarks import calibrator_choice, main_example


@pytest.mark.parametrize("module", [main_example, calibrator_choice])
def test_the_guide_shows_the_results(module):
    # "python -m benchmarks.<name>" writes them anew.
    assert module.PAGE.read_text() == module.page(json.loads(module.RESULTS.read_text()))


def test_cells_are_means_with_intervals():
    values = [0.81, 0.84, 0.9]
    mean, half = np.mean(values), t.ppf(0.975, 2) * sem(values)
    scores = {
        name: {"accuracy": values, "answered": values}
        for name in ("labels as given", "soft labels")
    }
    scores["true labels"] = {"accuracy": [1.0] * 3, "answered": [1.0] * 3}
    assert f"{100 * mean:.1f} ± {100 * half:.1f}" in main_example.page(scores)


def test_the_guide_says_of_the_default_what_was_measured():
    rows = json.loads(calibrator_choice.RESULTS.read_text())
    text = " ".join((calibrator_choice.PAGE.parent / "calibrators.rst").read_text().split())
    auto, balanced = calibrator_choice.AUTO, {100: [], 300: [], 1000: []}
    regret, harm, lost = {True: [], False: []}, [], {True: [], False: []}
    for row in rows:
        scores = {name: value for name, value in row["scores"].items() if value}
        loss, accuracy, excess = scores[auto]
        regret[row["locked"]].append(loss - min(value[0] for value in scores.values()))
        harm.append(loss - scores["none"][0])
        lost[row["locked"]].append(scores["none"][1] - accuracy)
        if row["classes"] == 2 and row["set"].endswith("balanced") and "SVM" not in row["set"]:
            peer = scores["probmetrics logistic-mix"][2]
            balanced[row["samples"]].append((abs(excess) <= 0.02, abs(peer) <= 0.02))
    figures = [f"{f(regret[locked]):.{d}f}"[1:] for locked in (True, False) for f, d in
               ((np.mean, 4), (max, 3))]  # fmt: skip
    assert "mean regret is {} and the largest {}, with 100".format(*figures[:2]) in text
    assert "they are {} and {}, and one cell of 263".format(*figures[2:]) in text
    assert max(harm) <= 0.01
    assert max(lost[True]) <= 0.01
    assert sum(np.array(lost[False]) > 0.01) == 1
    shares = 100 * np.array([np.mean(found, axis=0) for found in balanced.values()])
    for column in shares.T:
        assert "{:.0f}, {:.0f} and {:.0f} %".format(*column) in text


def test_regret_winrate_and_harm_against_a_loop():
    rng = np.random.default_rng(0)
    names = ["none", calibrator_choice.AUTO, "a", "b"]
    rows = [{"scores": {n: [rng.random(), 0, 0] for n in names}} for _ in range(20)]
    for row in rows[:5]:
        del row["scores"]["b"]
    for name in names:
        found = calibrator_choice.summary(rows, name)
        served = [{n: v[0] for n, v in r["scores"].items()} for r in rows if name in r["scores"]]
        assert found["cells"] == len(served)
        regret = [losses[name] - min(losses.values()) for losses in served]
        assert found["regret"] == pytest.approx(np.mean(regret))
        assert found["largest"] == pytest.approx(max(regret))
        wins = [sum(losses[name] < v for n, v in x.items() if n != name) / (len(x) - 1)
                for x in served for losses in [x]]  # fmt: skip
        assert found["winrate"] == pytest.approx(np.mean(wins))
        assert found["harm"] == np.mean([losses[name] > losses["none"] for losses in served])
