"""Sample sizes beside Riley's formulas, and in new simulated studies."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logit
from sklearn.metrics import roc_auc_score

from skcalib.metrics import decision_curve, samples_for_validation, validation_summary
from skcalib.metrics._sample_size import (  # the guessed distribution
    _find_risk,
    _make_probabilities,
)


def size_of(table):
    return dict(zip(table["statistic"], table["n_samples"]))


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "auroc"), [(0.3, 0.7), (0.1, 0.8)])
def test_beside_the_formulas_of_riley(rate, auroc):
    proba = _make_probabilities(None, rate, auroc)
    score, spread = logit(proba), proba * (1 - proba)
    table = samples_for_validation(
        proba, width={"o_e_ratio": 0.3, "slope": 0.3}, n_simulations=40, random_state=0
    )
    error = brentq(lambda s: np.exp(1.96 * s) - np.exp(-1.96 * s) - 0.3, 1e-4, 1)
    of_ratio = (1 - rate) / (rate * error**2)
    i_a, i_ab, i_b = (np.mean(score**k * spread) for k in range(3))
    of_slope = i_a / ((i_a * i_b - i_ab**2) * (0.3 / 3.92) ** 2)
    found = size_of(table)
    assert 0.7 < found["o_e_ratio"] / of_ratio < 1.4
    assert 0.7 < found["slope"] / of_slope < 1.4
    np.testing.assert_allclose(table["n_events"], table["n_samples"] * rate, rtol=1e-6)


def test_a_guess_of_rate_and_auroc():
    proba = _make_probabilities(None, 0.07, 0.77)
    assert proba.mean() == pytest.approx(0.07, abs=1e-9)
    y = np.tile([0, 1], len(proba))
    weight = np.column_stack([1 - proba, proba]).ravel()
    area = roc_auc_score(y, np.repeat(proba, 2), sample_weight=weight)
    assert area == pytest.approx(0.77, abs=1e-6)


def studies(proba, risk, n, m=60):
    rng = np.random.default_rng(9)
    for _ in range(m):
        rows = rng.integers(len(proba), size=n)
        y = rng.random(n) < risk[rows]
        yield y, proba[rows]


@pytest.mark.long
@pytest.mark.slow
def test_the_aims_are_reached_with_the_stated_probability():
    proba = _make_probabilities(None, 0.3, 0.75)
    given = {"n_simulations": 60, "random_state": 0}
    table = samples_for_validation(
        proba, width={"slope": 0.5, "ici": 0.08}, detect={"slope": 0.6, "o_e_ratio": 1.3}, **given
    )
    n = dict(zip(zip(table["aim"], table["statistic"]), table["n_samples"]))
    hits = [
        (row := validation_summary(y, p, n_resamples=1, random_state=0)[2])["high"] - row["low"]
        < 0.5
        for y, p in studies(proba, proba, n["width", "slope"])
    ]
    assert 0.75 < np.mean(hits) <= 1
    for place, statistic, value in ((2, "slope", 0.6), (0, "o_e_ratio", 1.3)):
        risk = _find_risk(proba, statistic, value)
        found = []
        for y, p in studies(proba, risk, n["detect", statistic]):
            row = validation_summary(y, p, n_resamples=1, random_state=0)[place]
            found.append(not row["low"] <= 1 <= row["high"])
        assert 0.75 < np.mean(found) <= 1
    assert n["width", "ici"] > 50


def test_width_of_a_net_benefit():
    proba = _make_probabilities(None, 0.3, 0.75)
    table = samples_for_validation(
        proba, width={"net_benefit": 0.1}, threshold=0.2, n_simulations=40, random_state=0
    )
    y, p = next(studies(proba, proba, table["n_samples"][0]))
    curve = decision_curve(y, p, thresholds=[0.2], random_state=0)
    assert curve["high"][0] - curve["low"][0] == pytest.approx(0.1, rel=0.1)


@pytest.mark.slow
def test_more_samples_for_more():
    given = {"rate": 0.2, "auroc": 0.8, "n_simulations": 40, "random_state": 0}
    few = size_of(samples_for_validation(detect={"slope": 0.6}, **given))["slope"]
    weak = size_of(samples_for_validation(detect={"slope": 0.75}, **given))["slope"]
    likely = size_of(samples_for_validation(detect={"slope": 0.6}, probability=0.99, **given))
    assert few < weak
    assert few < likely["slope"]
    frame = samples_for_validation(detect={"slope": 0.6}, as_frame=True, **given)
    assert frame.loc[0, "aim"] == "detect"
    assert frame.loc[0, "n_samples"] == few


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "y_proba must be given, or rate"),
        ({"rate": 0.1, "auroc": 0.4}, "y_proba must be given, or rate"),
        ({"y_proba": [0.1, 0.4], "width": {"slop": 1}}, "width must name some of"),
        ({"y_proba": [0.1, 0.4], "width": {"slope": -1}}, "width must hold positive numbers"),
        ({"y_proba": [0.1, 0.4], "detect": {"auroc": 0.9}}, "detect must name some of"),
        ({"y_proba": [0.1, 0.4], "detect": {"slope": 1.0}}, "detect must hold values of a mis"),
        ({"y_proba": [0.5, 0.4], "detect": {"o_e_ratio": 3}}, "a possible O/E ratio"),
        ({"y_proba": [0.1, 0.4], "width": {"net_benefit": 0.1}}, "threshold must be in"),
        ({"y_proba": [0.1, 0.4], "width": {"o_e_ratio": 1e-4}}, "fewer than 1,000,000 samples"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        samples_for_validation(n_simulations=20, random_state=0, **options)


@pytest.mark.parametrize("auroc", [0.51, 0.8, 0.999])
@pytest.mark.parametrize("rate", [0.001, 0.018, 0.5, 0.99])
def test_rare_events_and_areas_near_the_ends(rate, auroc):
    table = samples_for_validation(
        rate=rate, auroc=auroc, width={"o_e_ratio": 2.0}, n_simulations=20, random_state=0
    )
    assert table["n_events"][0] == pytest.approx(rate * table["n_samples"][0])


def test_risks_of_a_steep_slope_keep_the_mean():
    proba = np.array([1e-12, 0.2, 0.7, 1 - 1e-12])
    for slope in (-3, 0.01, 20):
        assert _find_risk(proba, "slope", slope).mean() == pytest.approx(proba.mean(), abs=1e-6)
