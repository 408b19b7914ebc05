"""Tables of the guide that are made of JSON files say what these say."""

import json

import numpy as np
import pytest
from scipy.stats import sem, t

from benchmarks import calibrator_choice, copies, daily_looks, main_example, opinions


@pytest.mark.parametrize(
    "module", [main_example, calibrator_choice, copies, daily_looks, opinions]
)
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
    regret, cells = {part: [] for part in calibrator_choice.PARTS}, {"worse": [], "lost": []}
    balanced, matrix = {100: [], 300: [], 1000: []}, []
    for row in rows:
        scores = {name: value for name, value in row["scores"].items() if value}
        loss, accuracy, excess = scores[calibrator_choice.AUTO]
        regret[row["part"]].append(loss - min(value[0] for value in scores.values()))
        if loss - scores["none"][0] > 0.01:
            cells["worse"].append(row["samples"])
        if scores["none"][1] - accuracy > 0.01:
            cells["lost"].append(row["samples"])
        if row["classes"] == 2 and row["part"] == "fresh":
            matrix.append(loss - scores["structured matrix"][0])
        if row["classes"] == 2 and row["set"].endswith("balanced") and "SVM" not in row["set"]:
            peer = scores["probmetrics logistic-mix"][2]
            balanced[row["samples"]].append((abs(excess) <= 0.02, abs(peer) <= 0.02))
    means = [f"{np.mean(found):.4f}"[1:] for found in regret.values()]
    assert "is {} on the open sets, {} on the locked and {} on the fresh".format(*means) in text
    most = [f"{max(found):.3f}"[1:] for found in regret.values()]
    assert "the largest {}, {} and {}.".format(*most) in text
    assert not cells["worse"]
    assert f"In none of the {len(rows)} cells is it worse than no calibration by more than" in text
    assert f"{len(cells['lost'])} cells lose more than a point of accuracy" in text
    assert set(cells["lost"]) == {100, 300}
    served = [{name for name, value in row["scores"].items() if value} for row in rows]
    others = set.union(*served) - {"none", calibrator_choice.AUTO}
    kept = [
        row | {"scores": {n: row["scores"][n] for n in names}} for row, names in zip(rows, served)
    ]
    found = [calibrator_choice.summary(kept, name) for name in others]
    assert (
        f"every other calibrator is, in {min(np.sum(f['worse'] > 0.01) for f in found)} or" in text
    )
    lost = [np.sum(f["lost"] > 0.01) for f in found if f["lost"].any()]
    assert f"lose more than a point in {min(lost)} cells or more" in text
    assert f"better by {np.mean(matrix):.4f}".replace("0.", ".") in text
    shares = 100 * np.array([np.mean(found, axis=0) for found in balanced.values()])
    for column in shares.T:
        assert "{:.0f}, {:.0f} and {:.0f} %".format(*column) in text


def test_regret_winrate_and_harm_against_a_loop():
    rng = np.random.default_rng(0)
    names = ["none", calibrator_choice.AUTO, "a", "b"]
    rows = [{"scores": {n: [*rng.random(2), 0] for n in names}} for _ in range(20)]
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
        worse = [losses[name] - losses["none"] for losses in served]
        np.testing.assert_allclose(found["worse"], worse)
        right = [[r["scores"][n][1] for n in ("none", name)] for r in rows if name in r["scores"]]
        np.testing.assert_allclose(found["lost"], [before - after for before, after in right])
