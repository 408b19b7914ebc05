import json

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from benchmarks import harm
from skcalib.difficulty import DifficultyAwareClassifier
from skcalib.losses import ZeroHingeLoss
from skcalib.nets import EpochPrioritizer
from skcalib.selection import DifficultySelector, MaxEntropySelector

ROWS = json.loads(harm.RESULTS.read_text())


def lost(method, key="accuracy", wrong=False):
    """What a method costs in accuracy, as docstrings write it: .012, or -.012 for a gain."""
    value = -harm.costs(ROWS, method, wrong=wrong)[key]
    return f"{value:.{2 if key.startswith('worst') else 3}f}".replace("0.", ".")


def n_tasks(method, wrong=False):
    return harm.costs(ROWS, method, wrong=wrong)["tasks"]


def said(estimator):
    return " ".join(estimator.__doc__.split())


def test_the_guide_shows_the_results():
    assert harm.PAGE.read_text() == harm.page(ROWS)


def test_costs_against_a_loop():
    rows = [
        {"method": "a", "data": name, "accuracy": a, "calibrated_log_loss": b,
         "calibration_error": c}
        for name, a, b, c in (
            ("x", -0.02, 0.1, 0.0), ("y", 0.0, -0.3, 0.2), ("z, 20 % wrong", 1, 1, 1)
        )
    ]  # fmt: skip
    cost = harm.costs(rows, "a", wrong=False)
    assert cost["tasks"] == 2
    assert cost["accuracy"] == pytest.approx(-0.01)
    assert (cost["worst accuracy"], cost["loses"]) == (-0.02, 0.5)
    assert cost["log-loss"] == pytest.approx(-0.1)
    assert (cost["worst log-loss"], cost["calibration_error"]) == (0.1, 0.1)
    assert harm.costs(rows, "a")["tasks"] == 3


def test_difficulty_weights_say_what_they_cost():
    up, down = (f"DifficultyAwareClassifier, {d}" for d in ("up", "down"))
    text = said(DifficultyAwareClassifier)
    assert (
        f'on {n_tasks(up)} small tasks with right labels, ``direction="up"`` cost {lost(up)} '
        f"accuracy on average and {lost(up, 'worst accuracy')} at worst, "
        f'``direction="down"`` {lost(down)} and {lost(down, "worst accuracy")}.'
    ) in text
    assert (
        f'With 10 or 20 % of the labels wrong, "up" cost {lost(up, wrong=True)} and "down" gained '
        f"{lost(down, wrong=True).removeprefix('-')}."
    ) in text


def test_selectors_say_what_they_cost():
    text, few, many = said(MaxEntropySelector), "MaxEntropySelector, .3", "MaxEntropySelector, .7"
    assert (
        f"On {n_tasks(few)} small tasks with right labels, the default (the least certain 70 %) "
        f"changed accuracy by less than .005 on average and cost {lost(many, 'worst accuracy')} "
        f"at worst; a random 70 % cost {lost('random, .7')} on average. The least certain 30 % "
        f"cost {lost(few)} on average and {lost(few, 'worst accuracy')} at worst; a random 30 % "
        f"cost {lost('random, .3')} on average."
    ) in text
    assert abs(harm.costs(ROWS, many, wrong=False)["accuracy"]) < 0.005
    easiest = "DifficultySelector, easiest .9"
    assert (
        f"On {n_tasks(easiest)} small tasks with right labels, the default cost {lost(easiest)} "
        f"accuracy on average and {lost(easiest, 'worst accuracy')} at worst; with 10 or 20 % "
        f"wrong labels it gained {lost(easiest, wrong=True).removeprefix('-')}."
    ) in said(DifficultySelector)


def test_what_nets_lose_is_said():
    hinge, some, most = "ZeroHingeLoss", "EpochPrioritizer, .3", "EpochPrioritizer, .7"
    assert (
        f"on {n_tasks(hinge)} small tasks it cost {lost(hinge)} accuracy on average and "
        f"{lost(hinge, 'worst accuracy')} at worst"
    ) in said(ZeroHingeLoss)
    assert (
        f"on {n_tasks(some)} small tasks {lost(some)} on average with 30 % of the samples in an "
        f"epoch, and {lost(most)} with 70 %."
    ) in said(EpochPrioritizer)
    for name in dict.fromkeys(row["method"] for row in ROWS if row["model"] == "torch net"):
        if name not in ("plain", hinge, some):
            assert harm.costs(ROWS, name, wrong=False)["accuracy"] > -0.01, name
            assert harm.costs(ROWS, name, wrong=False)["log-loss"] < 0.02, name


@pytest.mark.parametrize("method", ["soft", "relabel", "drop", "weight"])
def test_calibration_and_cleaning_cost_nothing(method):
    for name in ("PostHocCalibratedClassifier", f"LabelCleaningClassifier, {method}"):
        cost = harm.costs(ROWS, name, wrong=False)
        assert cost["accuracy"] > -0.01
        assert cost["log-loss"] < 0.02
        assert cost["worst accuracy"] > -0.05
        assert cost["worst log-loss"] < 0.1


def test_a_method_is_judged_on_samples_apart_and_the_plain_one_changes_nothing():
    X, y = load_iris(return_X_y=True)
    parts = harm.split("iris", X, y, seed=0)
    assert sum(len(labels) for _, labels in parts) == len(y)
    plain = LogisticRegression(max_iter=500)
    once, again = (
        harm.measure_method(lambda model, seed: model, plain, 0, parts) for _ in range(2)
    )
    model = plain.fit(*parts[0])
    assert once["accuracy"] == np.mean(model.predict(parts[2][0]) == parts[2][1])
    assert all(once[name] == again[name] for name in once if name != "seconds")


def test_wrong_labels_are_those_to_train_on_alone():
    X, y = load_iris(return_X_y=True)
    clean, flipped = (harm.split(name, X, y, seed=0) for name in ("iris", "iris, 20 % wrong"))
    assert (clean[0][1] != flipped[0][1]).mean() == 0.2
    assert all((a[1] == b[1]).all() for a, b in zip(clean[1:], flipped[1:]))
