"""Tables of the guide that are made of JSON files say what these say."""

import json

import numpy as np
import pytest
from scipy.stats import sem, t

from benchmarks import (
    calibrator_ablations,
    calibrator_choice,
    calibrator_ensemble,
    copies,
    cuda,
    daily_looks,
    leaderboard,
    main_example,
    opinions,
    rare_classes,
    risk_models,
    vote_gains,
    votes,
)


@pytest.mark.parametrize(
    "module",
    [
        main_example,
        calibrator_ablations,
        calibrator_choice,
        calibrator_ensemble,
        copies,
        cuda,
        daily_looks,
        leaderboard,
        opinions,
        rare_classes,
        risk_models,
        vote_gains,
        votes,
    ],
)
def test_the_guide_shows_the_results(module):
    # "python -m benchmarks.<name>" writes them anew, that of a GPU with --page.
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


def summaries_of_calibrators():
    """Return the rows, and the summaries of the default, of its first version, of all others."""
    rows = [
        row | {"scores": {name: value for name, value in row["scores"].items() if value}}
        for row in json.loads(calibrator_choice.RESULTS.read_text())
    ]
    names = set().union(*(row["scores"] for row in rows)) - {"none"}
    found = {name: calibrator_choice.summary(rows, name) for name in names}
    auto = found.pop(calibrator_choice.AUTO)
    for version in ("second", "third"):
        del found[f"{calibrator_choice.AUTO}, {version} rule"]
    return rows, auto, found.pop(f"{calibrator_choice.AUTO}, first rule"), found


def shown(value, digits):
    return f"{value:.{digits}f}".lstrip("0")


@pytest.mark.slow
def test_the_guide_says_of_the_default_what_was_measured():
    text = " ".join((calibrator_choice.PAGE.parent / "calibrators.rst").read_text().split())
    rows, auto, before, found = summaries_of_calibrators()
    mean = f"The mean regret is {shown(auto['regret'], 4)} over all {len(rows)} cases"
    assert f"{mean}, of the first version {shown(before['regret'], 4)};" in text
    assert f"the largest is {shown(auto['largest'], 3)}." in text
    worse = np.flatnonzero(auto["worse"] > 0.01)
    assert {rows[i]["samples"] for i in worse} == {100}
    assert f"In {len(worse)} case, with 100 samples" in text
    assert f"by more than .01, at most {shown(auto['worse'].max(), 3)};" in text
    least = min(np.sum(other["worse"] > 0.01) for other in found.values())
    assert f"every other calibrator is, in {least} or more." in text
    lost = [np.sum(version["lost"] > 0.01) for version in (auto, before)]
    assert (
        "{} cases lose more than a point of accuracy ({} of the first version)".format(*lost)
        in text
    )
    assert f"at most {shown(auto['lost'].max(), 3)}; the others" in text
    least = min(np.sum(f["lost"] > 0.01) for f in found.values() if f["lost"].any())
    assert f"can change predictions lose it in {least} or more." in text


@pytest.mark.slow
def test_readme_says_of_the_default_what_was_measured(repository):
    text = " ".join((repository / "README.md").read_text().split())
    rows, auto, _, found = summaries_of_calibrators()
    least = min(np.sum(other["worse"] > 0.01) for other in found.values())
    assert (
        f"in {len(rows)} cases, the log-loss of the default was above that of the best calibrator "
        f"by {shown(auto['regret'], 4)} on average and by {shown(auto['largest'], 3)} at most. "
        "The default was worse than no calibration by more than .01 in "
        f"{np.sum(auto['worse'] > 0.01)} case; every other calibrator was in {least} or more."
    ) in text


def test_regret_winrate_and_harm_against_a_loop():
    rng = np.random.default_rng(0)
    names = ["none", calibrator_choice.AUTO, "a", "b"]
    rows = [{"scores": {n: [*rng.random(2), 0] for n in names}} for _ in range(20)]
    for row in rows[:5]:
        del row["scores"]["b"]
    for name in names:
        found = calibrator_choice.summary(rows, name)
        served = [{n: v[0] for n, v in r["scores"].items()} for r in rows if name in r["scores"]]
        assert found["cases"] == len(served)
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


@pytest.mark.parametrize("population", rare_classes.POPULATIONS)
def test_rare_classes_are_as_rare_as_said(population):
    X, y, proba = rare_classes.draw(population, 0.05, 20_000, seed=0)
    assert proba.mean() == pytest.approx(0.05, abs=1e-9)
    assert y.mean() == pytest.approx(0.05, abs=0.006)
    assert rare_classes.balanced(y) @ y == pytest.approx(len(y) / 2)
    for resample in (rare_classes.under, rare_classes.over):
        rows, labels = resample(X, y)
        assert labels.mean() == 0.5
        assert len(rows) == 2 * (y.sum() if resample is rare_classes.under else len(y) - y.sum())


def test_rare_classes_keep_their_mean_and_the_log_loss_of_a_sigmoid():
    rows = json.loads(rare_classes.RESULTS.read_text())
    enough = [row for row in rows if row["rate"] >= 0.02]  # 40 positives or more
    ratios = [row["ratio"] for row in enough if row["calibrator"] == "auto"]
    assert abs(np.median(ratios) - 1) < 0.05
    assert max(ratios) < 1.4
    cells = [
        [row["log_loss"] for row in rows if row["calibrator"] == name]
        for name in ("auto", "sigmoid", "without INTERCEPT_SPREADS")
    ]
    auto, sigmoid, without = np.array(cells)
    assert (auto - sigmoid).mean() < 0.001
    assert (without - auto).mean() > 0
    n_above = int((np.round(auto - sigmoid, 4) > 0.003).sum())
    text = " ".join((rare_classes.PAGE.parent / "calibrators.rst").read_text().split())
    assert f"by more than .003 in {n_above} of {len(auto)} cases" in text
