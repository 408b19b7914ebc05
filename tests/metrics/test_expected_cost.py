"""Costs of decisions by their definition."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skcalib.metrics import (
    calibration_error_interval,
    compare_calibration,
    cost_summary,
    expected_cost,
    get_scorer,
    net_benefit,
)
from skcalib.report import CalibrationReport

COSTS = np.array([[0.0, 5.0, 9.0], [2.0, 0.0, 4.0], [3.0, 3.0, 0.0], [1.0, 1.0, 1.0]])


def sample(n=300, k=3, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(k, 0.7), n)
    return np.array([rng.choice(k, p=row) for row in proba]), proba


def by_definition(y, proba, costs, weight=None):
    total = []
    for i, (label, row) in enumerate(zip(y, proba)):
        table = costs if np.ndim(costs) == 2 else costs[i]
        expected = [sum(c * p for c, p in zip(of_decision, row)) for of_decision in table]
        total.append(table[int(np.argmin(expected))][label])
    return np.average(total, weights=weight)


def test_value_is_the_definition():
    y, proba = sample()
    weight = np.random.default_rng(1).uniform(0, 2, len(y))
    assert expected_cost(y, proba, COSTS) == pytest.approx(by_definition(y, proba, COSTS))
    found = expected_cost(y, proba, COSTS, sample_weight=weight)
    assert found == pytest.approx(by_definition(y, proba, COSTS, weight), abs=1e-9)
    amounts = np.random.default_rng(2).exponential(size=(len(y), 1, 1)) * COSTS
    assert expected_cost(y, proba, amounts) == pytest.approx(by_definition(y, proba, amounts))


def test_without_costs_it_is_the_error_rate():
    y, proba = sample()
    assert expected_cost(y, proba) == pytest.approx(np.mean(proba.argmax(axis=1) != y))


def test_labels_name_the_columns():
    y, proba = sample()
    names = np.array(["c", "a", "b"])
    order = np.argsort(names)
    found = expected_cost(names[y], proba[:, order], COSTS[:, order])
    assert found == pytest.approx(expected_cost(y, proba, COSTS))


def test_shares_of_labels_cost_their_mean():
    y, proba = sample(100)
    shares = np.random.default_rng(3).dirichlet(np.ones(3), 100)
    one_hot = np.eye(3)[y]
    assert expected_cost(one_hot, proba, COSTS) == pytest.approx(expected_cost(y, proba, COSTS))
    rows, labels = np.repeat(np.arange(100), 3), np.tile(np.arange(3), 100)
    weighted = expected_cost(labels, proba[rows], COSTS, sample_weight=shares.ravel())
    assert expected_cost(shares, proba, COSTS) == pytest.approx(weighted)


def test_two_decisions_are_a_threshold_and_a_net_benefit():
    y, proba = sample(k=2)
    costs = np.array([[0, 7.0], [3.0, 1.0]])  # acting on an event still costs 1
    t = 3 / (3 + 6)
    cost = expected_cost(y, proba[:, 1], costs)
    # The cost of acting on none less what acting gains: 6 for each event.
    assert cost == pytest.approx(7 * y.mean() - 6 * net_benefit(y, proba, t))


def test_rows_of_the_summary():
    y, proba = sample()
    sharp = proba**2 / (proba**2).sum(axis=1, keepdims=True)
    names = ["a", "b", "c", "ask"]
    table = cost_summary(y, sharp, COSTS, decisions=names, random_state=0)
    assert table["rule"].tolist() == ["model", "recalibrated", *(f"always {d}" for d in names)]
    assert table["cost"][0] == pytest.approx(expected_cost(y, sharp, COSTS))
    np.testing.assert_allclose(table["cost"][2:], COSTS[:, y].mean(axis=1))
    np.testing.assert_allclose(table["predicted"][2:], (sharp @ COSTS.T).mean(axis=0))
    assert table["predicted"][0] == pytest.approx((sharp @ COSTS.T).min(axis=1).mean())
    np.testing.assert_allclose(table["difference"], table["cost"] - table["cost"][0], atol=1e-12)
    assert (table["low"] < table["cost"])[:-1].all()
    assert (table["cost"] < table["high"])[:-1].all()
    # Asking costs 1, whatever the class.
    np.testing.assert_allclose([table["low"][-1], table["high"][-1]], 1)
    # The model is too sure of itself, and claims too little; recalibrated, it is right.
    assert table["predicted"][0] < table["low"][0]
    assert table["low"][1] < table["predicted"][1] < table["high"][1]


@pytest.mark.slow
def test_interval_of_what_miscalibration_costs():
    rng = np.random.default_rng(0)
    risk = rng.beta(1, 9, 4000)
    y = rng.random(4000) < risk
    table = cost_summary(y, risk**2, [[0, 10], [1, 1]], random_state=0)
    assert table["difference_high"][1] < 0
    right = cost_summary(y, risk, [[0, 10], [1, 1]], random_state=0)
    assert right["difference_low"][1] < 0 < right["difference_high"][1]
    group = np.repeat(np.arange(2000), 2)
    wide = cost_summary(
        np.repeat(y[:2000], 2), np.repeat(risk[:2000], 2), [[0, 10], [1, 1]], groups=group,
        random_state=0,
    )  # fmt: skip
    alone = cost_summary(y[:2000], risk[:2000], [[0, 10], [1, 1]], random_state=0)
    assert wide["high"][0] - wide["low"][0] == pytest.approx(
        alone["high"][0] - alone["low"][0], rel=0.05
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [15, pytest.param(60, marks=pytest.mark.long)])
def test_intervals_hold_the_true_costs_of_rare_large_losses(n_draws):
    """About four losses of 100 among 1 000 samples."""
    costs, rng = np.array([[0, 100], [3, 3]]), np.random.default_rng(0)
    many = rng.beta(0.4, 20, 200_000)
    true = np.where(many * 100 <= 3, many * 100, 3).mean()
    holds = []
    for _ in range(n_draws):
        risk = rng.beta(0.4, 20, 1000)
        table = cost_summary(rng.random(1000) < risk, risk, costs, random_state=0)
        holds.append(table["low"][0] <= true <= table["high"][0])
    # At 95 %, fewer have a probability of .03.
    assert sum(holds) >= binom.ppf(0.03, n_draws, 0.95)


def test_columns_of_a_frame_are_matched_by_their_names():
    pd = pytest.importorskip("pandas")
    y, proba = sample()
    y, order = np.array(["x", "y", "z"])[y], [2, 0, 1]
    frame = pd.DataFrame(COSTS[:, order], ["a", "b", "c", "d"], ["z", "x", "y"])
    assert expected_cost(y, proba, frame) == expected_cost(y, proba, COSTS)
    summaries = [cost_summary(y, proba, costs, random_state=0) for costs in (COSTS, frame)]
    np.testing.assert_array_equal(summaries[1]["cost"], summaries[0]["cost"])
    assert summaries[1]["rule"][-1] == "always d"
    options = {"metric": expected_cost, "random_state": 0, "n_resamples": 20}
    found, expected = (
        calibration_error_interval(y, proba, costs=costs, **options) for costs in (frame, COSTS)
    )
    assert found == expected
    found, expected = (
        compare_calibration(y, {"a": proba, "b": proba[:, order]}, costs=costs, **options)
        for costs in (frame, COSTS)
    )
    np.testing.assert_array_equal(found["difference"], expected["difference"])
    with pytest.raises(ValueError, match=r"^costs must have columns that are named by the labels"):
        expected_cost(y, proba, frame.rename(columns={"z": "other"}))


@pytest.mark.slow
def test_columns_of_costs_in_a_report():
    pd = pytest.importorskip("pandas")
    y, proba = sample()
    y, order = np.array(["x", "y", "z"])[y], [2, 0, 1]
    frame = pd.DataFrame(COSTS[:, order], columns=["z", "x", "y"])
    found, expected = (
        CalibrationReport.from_predictions(y, proba, costs=costs).results_["costs"]["rules"]
        for costs in (frame, COSTS)
    )
    assert [rule["cost"] for rule in found] == [rule["cost"] for rule in expected]


@pytest.mark.slow
def test_a_score_for_a_search():
    X, y = load_iris(return_X_y=True)
    scorer = get_scorer("neg_expected_cost", costs=COSTS)
    search = GridSearchCV(LogisticRegression(max_iter=1000), {"C": [1e-4, 1.0]}, scoring=scorer)
    search.fit(X, y)
    assert search.best_params_ == {"C": 1.0}
    expected = -expected_cost(y, search.predict_proba(X), COSTS)
    assert scorer(search, X, y) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"costs": np.ones((2, 2))}, "costs must have shape"),
        ({"costs": np.full((2, 3), np.nan)}, "costs must be finite"),
        ({"costs": COSTS, "decisions": ["a"]}, "decisions must name every row of costs, 4"),
        ({"costs": COSTS, "groups": np.zeros(300)}, "groups must be two or more for the folds"),
    ],
)
def test_errors(options, message):
    y, proba = sample()
    with pytest.raises(ValueError, match=message):
        cost_summary(y, proba, **options)
