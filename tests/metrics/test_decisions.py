"""Net benefit by its definition, weights as repetitions, and intervals in simulated studies."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from skcalib.metrics import decision_curve, expected_cost, net_benefit, score_decomposition
from skcalib.utils import SkcalibWarning


def sample(n=400, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.beta(1, 3, n).round(2)
    return (rng.random(n) < proba).astype(int), proba


def by_definition(y, p, t, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return np.average(
        [(a >= t) * (b - (1 - b) * t / (1 - t)) for a, b in zip(p, y)], weights=weight
    )


@pytest.mark.parametrize("seed", range(3))
def test_value_is_the_definition(seed):
    y, proba = sample(seed=seed)
    weight = np.random.default_rng(seed).uniform(0, 2, len(y))
    for t in (0.0, 0.01, 0.25, 0.6, 0.99):
        assert net_benefit(y, proba, t) == pytest.approx(by_definition(y, proba, t), abs=1e-9)
        found = net_benefit(y, proba, t, sample_weight=weight)
        assert found == pytest.approx(by_definition(y, proba, t, weight), abs=1e-9)
    grid = [0.5, 0.1]
    np.testing.assert_array_equal(
        net_benefit(y, proba, grid), [net_benefit(y, proba, t) for t in grid]
    )


def test_two_columns_and_the_other_class():
    y, proba = sample()
    both = np.column_stack([1 - proba, proba])
    assert net_benefit(y, both, 0.3) == pytest.approx(net_benefit(y, proba, 0.3), abs=1e-12)
    other = net_benefit(y, 1 - proba, 0.3, labels=[1, 0])
    assert other == pytest.approx(by_definition(1 - y, 1 - proba, 0.3), abs=1e-9)


def test_columns_of_the_curve():
    y, proba = sample()
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    grid = np.array([0.1, 0.3, 0.5])
    table = decision_curve(y, proba, thresholds=grid, sample_weight=weight, random_state=0)
    odds, rate = grid / (1 - grid), np.average(y, weights=weight)
    np.testing.assert_array_equal(table["threshold"], grid)
    np.testing.assert_allclose(
        table["net_benefit"], net_benefit(y, proba, grid, sample_weight=weight), atol=1e-12
    )
    np.testing.assert_allclose(table["act_on_all"], rate - (1 - rate) * odds, atol=1e-12)
    predicted = [np.average((proba >= t) * (proba - t) / (1 - t), weights=weight) for t in grid]
    np.testing.assert_allclose(table["predicted"], predicted, atol=1e-12)
    avoided = (table["net_benefit"] - table["act_on_all"]) * (1 - grid) / grid
    np.testing.assert_allclose(table["interventions_avoided"], avoided, atol=1e-12)
    # Claimed less delivered is the miscalibration of those acted on.
    gap = [np.average((proba >= t) * (proba - y), weights=weight) / (1 - t) for t in grid]
    np.testing.assert_allclose(table["predicted"] - table["net_benefit"], gap, atol=1e-12)
    assert (table["band_low"] < table["low"]).all()
    assert (table["high"] < table["band_high"]).all()
    repeated = decision_curve(
        np.repeat(y, weight), np.repeat(proba, weight), thresholds=grid, random_state=0
    )
    for name in ("net_benefit", "predicted", "act_on_all"):
        np.testing.assert_allclose(table[name], repeated[name], atol=1e-12)


def test_groups_of_copies_are_one_sample():
    y, proba = sample(100)
    group = np.arange(100)
    once = decision_curve(y, proba, thresholds=[0.2, 0.4], random_state=0)
    twice = decision_curve(
        np.tile(y, 2), np.tile(proba, 2), groups=np.tile(group, 2), thresholds=[0.2, 0.4],
        random_state=0,
    )  # fmt: skip
    for name in ("low", "high", "band_low", "band_high"):
        np.testing.assert_allclose(once[name], twice[name], atol=1e-12)
    as_if_alone = decision_curve(np.tile(y, 2), np.tile(proba, 2), thresholds=[0.2])
    assert as_if_alone["high"] < once["high"][0]


def test_several_models_and_a_frame():
    y, proba = sample()
    table = decision_curve(
        y, {"a": proba, "b": np.sqrt(proba)}, thresholds=[0.2, 0.3], random_state=0, as_frame=True
    )
    assert table["model"].tolist() == ["a", "a", "b", "b"]
    assert table.loc[2, "net_benefit"] == pytest.approx(net_benefit(y, np.sqrt(proba), 0.2))


def test_default_thresholds():
    y, proba = sample()
    np.testing.assert_allclose(decision_curve(y, proba)["threshold"], np.arange(1, 100) / 100)
    y[:] = 0
    y[:5] = 1
    grid = decision_curve(y, proba)["threshold"]
    assert grid[0] == pytest.approx(5 / 400 / 10)
    assert grid[-1] == pytest.approx(0.99)
    np.testing.assert_allclose(np.diff(np.log(grid)), np.log(grid[1] / grid[0]))


def test_regret_of_all_costs_is_the_miscalibration_of_the_brier_score():
    """Brier(p) - Brier(c) = 2 integral of (1 - t) (NB of c - NB of p), c isotonic."""
    from sklearn.isotonic import IsotonicRegression

    y, proba = sample(200)
    again = IsotonicRegression().fit(proba, y).predict(proba)
    # Net benefits change at the probabilities alone: midpoints are exact for (1 - t) NB, linear
    # in between.
    edges = np.unique(np.concatenate([[0, 1], proba, again]))
    middle, length = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    difference = net_benefit(y, again, middle) - net_benefit(y, proba, middle)
    regret = 2 * np.sum(length * (1 - middle) * difference)
    assert regret == pytest.approx(score_decomposition(y, proba).miscalibration, abs=1e-12)


@pytest.mark.slow
def test_intervals_and_band_of_patients_with_two_visits():
    """The full simulation is in the guide; here a quick one."""
    grid = np.arange(2, 61, 4) / 100
    risk = expit(-1.8 + np.random.default_rng(5).normal(size=400_000))
    true = np.array([np.mean((risk >= t) * (risk - t) / (1 - t)) for t in grid])
    rng, holds, whole = np.random.default_rng(0), [], []
    group = np.repeat(np.arange(250), 2)
    for _ in range(80):
        score = np.sqrt(0.7) * rng.normal(size=250)[group] + np.sqrt(0.3) * rng.normal(size=500)
        proba = expit(-1.8 + score)
        alike = np.sqrt(0.5) * (rng.normal(size=250)[group] + rng.normal(size=500))
        y = norm.cdf(alike) < proba
        table = decision_curve(
            y, proba, thresholds=grid, groups=group, n_resamples=199, random_state=0
        )
        holds.append((table["low"] <= true) & (true <= table["high"]))
        whole.append(np.all((table["band_low"] <= true) & (true <= table["band_high"])))
    assert np.mean(holds) >= 0.92
    assert np.mean(whole) >= 0.9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y, p: net_benefit(y, p, 1.0), r"threshold must be in \[0, 1\)"),
        (lambda y, p: net_benefit(y, np.full((len(y), 3), 1 / 3), 0.5), "must be of two classes"),
        (lambda y, p: decision_curve(y, p, thresholds=[0.0]), r"thresholds must be in \(0, 1\)"),
        (lambda y, p: decision_curve(y, {}), "y_proba must name at least one model, got none"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call(*sample())


def test_few_groups_bring_a_warning():
    y, proba = sample()
    with pytest.warns(SkcalibWarning, match="groups must be 20 or more"):
        decision_curve(y, proba, groups=np.arange(400) % 10)


@pytest.mark.parametrize("weighted", [False, True])
def test_means_over_chunks_of_dask_are_those_in_memory(weighted):
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(0)
    risk = rng.beta(1, 4, 500)
    y_true = np.where(rng.random(500) < risk, "yes", "no")
    y_true[:100] = "no"  # a chunk without a positive sample
    weight = rng.random(500) if weighted else None
    for y_proba in (risk, np.column_stack([1 - risk, risk])):
        chunks = da.from_array(y_proba, chunks=(100, *y_proba.shape[1:]))
        options = {"sample_weight": weight}
        if y_proba.ndim == 1:
            options["pos_label"] = "yes"
        for thresholds in (0.2, [0.1, 0.4]):
            np.testing.assert_allclose(
                net_benefit(da.from_array(y_true, chunks=100), chunks, thresholds, **options),
                net_benefit(y_true, y_proba, thresholds, **options),
            )
        costs = [[0, 7], [1, 0], [0.5, 0.5]]
        assert expected_cost(y_true, chunks, costs, **options) == pytest.approx(
            expected_cost(y_true, y_proba, costs, **options)
        )
    with pytest.raises(ValueError, match="if y_proba is a dask array, got one table"):
        expected_cost(y_true, chunks, np.ones((500, 2, 2)))
