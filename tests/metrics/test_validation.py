"""Statistics of a validation against statsmodels, scikit-learn and loops; their coverage."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.metrics import brier_score_loss, roc_auc_score

from skcalib.metrics import validation_summary
from skcalib.utils import SkcalibWarning

IDEAL = {
    "O/E ratio": 1, "calibration in the large": 0, "slope": 1, "ICI": 0, "E50": 0, "E90": 0,
    "Brier score": 0, "scaled Brier score": 1, "AUROC": 1,
}  # fmt: skip


def sample(n=300, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.normal(-1, 1, n)
    return (rng.random(n) < expit(0.3 + 0.8 * score)).astype(int), expit(score)


def by_name(*args, **options):
    table = validation_summary(*args, n_resamples=99, random_state=0, **options)
    return {row["statistic"]: row for row in table}


def least_loss(y, proba, weight, *, slope):
    x = logit(proba)

    def loss(theta):
        z = theta[0] + (theta[1] if slope else 1.0) * x
        return -weight @ (y * z - np.logaddexp(0, z))

    return minimize(loss, [0.0, 1.0][: 1 + slope], method="BFGS", options={"gtol": 1e-8}).x


def lowess(y, proba, weight, span=2 / 3):
    """R's lowess without robustness steps, as a loop."""
    curve = []
    for x in proba:
        away = np.abs(proba - x)
        order = np.argsort(away, kind="stable")
        enough = np.searchsorted(np.cumsum(weight[order]), span * weight.sum() * (1 - 1e-12))
        reach = away[order][enough]
        w = weight * np.clip(1 - (away / reach) ** 3, 0, None) ** 3
        _slope, intercept = np.polyfit(proba - x, y, 1, w=np.sqrt(w))
        curve.append(intercept)
    return np.array(curve)


@pytest.mark.parametrize("weighted", [False, True])
def test_values_by_definition(weighted):
    y, proba = sample(90)
    weight = np.random.default_rng(1).integers(1, 4, 90) if weighted else np.ones(90)
    found = by_name(y, proba, sample_weight=weight if weighted else None)
    mean = {name: np.average(v, weights=weight) for name, v in (("y", y), ("p", proba))}
    brier = brier_score_loss(y, proba, sample_weight=weight)
    gap = np.abs(lowess(y, proba, weight) - proba)
    order = np.argsort(gap)
    mass = np.cumsum(weight[order])
    expected = {
        "O/E ratio": mean["y"] / mean["p"],
        "Brier score": brier,
        "scaled Brier score": 1 - brier / (mean["y"] * (1 - mean["y"])),
        "AUROC": roc_auc_score(y, proba, sample_weight=weight),
        "ICI": np.average(gap, weights=weight),
        "E50": gap[order][np.searchsorted(mass, 0.5 * mass[-1] - 1e-9)],
        "E90": gap[order][np.searchsorted(mass, 0.9 * mass[-1] - 1e-9)],
    }
    for name, value in expected.items():
        assert found[name]["value"] == pytest.approx(value, abs=1e-9), name
    assert {name: row["ideal"] for name, row in found.items()} == IDEAL
    intercept = least_loss(y, proba, weight, slope=False)[0]
    assert found["calibration in the large"]["value"] == pytest.approx(intercept, abs=1e-5)
    slope = least_loss(y, proba, weight, slope=True)[1]
    assert found["slope"]["value"] == pytest.approx(slope, abs=1e-5)
    if weighted:
        repeated = by_name(np.repeat(y, weight), np.repeat(proba, weight))
        for name, row in found.items():
            assert row["value"] == pytest.approx(repeated[name]["value"], abs=1e-9), name


@pytest.mark.slow
def test_logistic_recalibration_is_that_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    y, proba = sample()
    family, x, one = sm.families.Binomial(), logit(proba), np.ones(len(y))
    found = by_name(y, proba)
    in_the_large = sm.GLM(y, one, offset=x, family=family).fit(tol=1e-12)
    assert found["calibration in the large"]["value"] == pytest.approx(in_the_large.params[0])
    both = sm.GLM(y, np.column_stack([one, x]), family=family).fit(tol=1e-12)
    assert found["slope"]["value"] == pytest.approx(both.params[1])


@pytest.mark.slow
def test_intervals_of_intercept_and_slope_are_those_of_leaving_out_groups():
    y, proba = sample(120)
    group = np.arange(120) // 3
    found = by_name(y, proba, groups=group)
    for name, slope in (("calibration in the large", False), ("slope", True)):
        whole = least_loss(y, proba, np.ones(120), slope=slope)[-1]
        left = [
            least_loss(y, proba, (group != g).astype(float), slope=slope)[-1] for g in range(40)
        ]
        error = np.sqrt(39 / 40 * np.sum((np.array(left) - whole) ** 2))
        reach = student.ppf(0.975, 39) * error
        # The fits without a group are one Newton step away.
        ends = found[name]["low"], found[name]["high"]
        np.testing.assert_allclose(ends, [whole - reach, whole + reach], atol=0.01 * reach)


def test_an_area_of_delong():
    y, proba = sample()
    positive, negative = proba[y == 1], proba[y == 0]
    wins = (positive[:, None] > negative).astype(float)
    of_positive, of_negative = wins.mean(axis=1), wins.mean(axis=0)
    variance = np.var(of_positive) / len(positive) + np.var(of_negative) / len(negative)
    area = wins.mean()
    error = np.sqrt(variance * 300 / 299) / (area * (1 - area))
    reach = student.ppf(0.975, 299) * error
    row = by_name(y, proba)["AUROC"]
    ends = expit(logit(area) + np.array([-reach, reach]))
    np.testing.assert_allclose([row["low"], row["high"]], ends, atol=1e-9)


def test_groups_of_copies_are_one_sample_and_the_scale_of_weights_is_free():
    y, proba = sample(100)
    once = by_name(y, proba)
    group = np.tile(np.arange(100), 2)
    copies = by_name(np.tile(y, 2), np.tile(proba, 2), groups=group)
    scaled = by_name(y, proba, sample_weight=np.full(100, 1e-3))
    for name, row in once.items():
        for other in (copies, scaled):
            for column in ("value", "low", "high"):
                assert other[name][column] == pytest.approx(row[column], abs=1e-6), name


@pytest.mark.slow
def test_classes_of_several_against_the_rest():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 200)
    y = np.array([rng.choice(3, p=row) for row in proba])
    names = np.array(["a", "b", "c"])
    table = validation_summary(names[y], proba, random_state=0, n_resamples=99, as_frame=True)
    assert table["class"].tolist() == np.repeat(names, len(IDEAL)).tolist()
    for k, name in enumerate(names):
        alone = by_name(y == k, proba[:, k])
        part = table[table["class"] == name].set_index("statistic")
        for statistic, row in alone.items():
            assert part.loc[statistic, "value"] == pytest.approx(row["value"], abs=1e-12)
    two = by_name(names[:2][(y > 0).astype(int)], np.column_stack([proba[:, 0], 1 - proba[:, 0]]))
    assert two["slope"]["value"] == pytest.approx(
        by_name(y > 0, 1 - proba[:, 0])["slope"]["value"]
    )


@pytest.mark.slow
def test_a_class_that_does_not_occur_is_nan_with_a_warning():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    with pytest.warns(SkcalibWarning, match="Class 2 has a frequency of 0 in y_true"):
        table = validation_summary(np.arange(50) % 2, proba, random_state=0)
    assert np.isnan(table["value"][table["class"] == 2]).all()
    with pytest.raises(ValueError, match="y_true must hold both classes, got one, class 1"):
        validation_summary(np.zeros(50), proba[:, 0])


def test_probabilities_of_0_and_1_are_counted_and_left_out_of_the_slope():
    y, proba = sample()
    proba[:3], proba[3], y[:4] = 0, 1, [0, 0, 1, 1]
    message = "4 of 300 probabilities of class 1 are exactly 0 or 1, 1 of them wrong: these have"
    with pytest.warns(SkcalibWarning, match=message):
        found = by_name(y, proba)
    rest = by_name(y[4:], proba[4:])
    for name, row in found.items():
        left_out = name in ("slope", "calibration in the large")
        assert row["n_samples"] == (296 if left_out else 300)
        if left_out:
            assert list(row)[1:4] == pytest.approx(list(rest[name])[1:4])
    assert found["O/E ratio"]["value"] == pytest.approx(y.mean() / proba.mean())


def test_without_a_finite_slope_it_is_nan():
    y = np.arange(60) >= 30
    separated = by_name(y, np.linspace(0.1, 0.9, 60))
    assert np.isnan(separated["slope"]["value"])
    assert separated["AUROC"]["value"] == 1
    assert np.isnan(separated["AUROC"]["low"])
    constant = by_name(y, np.full(60, 0.4))
    assert np.isnan(constant["slope"]["value"])
    intercept = constant["calibration in the large"]["value"]
    assert intercept == pytest.approx(logit(0.5) - logit(0.4))
    assert constant["ICI"]["value"] == pytest.approx(0.1)


def draw(rng, n_groups, per, alike, *, rate=0.14, slope=1.0):
    group = np.repeat(np.arange(n_groups), per)
    n = len(group)
    score = logit(rate) + np.sqrt(0.7) * rng.normal(size=n_groups)[group]
    score += np.sqrt(0.3) * rng.normal(size=n)
    latent = np.sqrt(alike) * rng.normal(size=n_groups)[group]
    latent += np.sqrt(1 - alike) * rng.normal(size=n)
    return norm.cdf(latent) < expit(slope * score), expit(score), group


# 2 000 draws of each are in the guide.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_groups", "per", "alike"),
    [pytest.param(600, 1, 0.0, marks=pytest.mark.long), (150, 4, 0.5)],
)
def test_intervals_hold_the_true_values(n_groups, per, alike):
    holds = []
    rng = np.random.default_rng(4)
    for _ in range(100):
        y, proba, group = draw(rng, n_groups, per, alike)
        table = validation_summary(y, proba, groups=group, n_resamples=1, random_state=0)[:3]
        holds.append((table["low"] <= table["ideal"]) & (table["ideal"] <= table["high"]))
    assert (np.mean(holds, axis=0) >= 0.91).all()


@pytest.mark.slow
def test_a_slope_of_seven_tenths_is_found():
    rng, found = np.random.default_rng(0), 0
    for _ in range(40):
        y, proba, _ = draw(rng, 600, 1, 0.0, slope=0.7, rate=0.3)
        found += by_name(y, proba)["slope"]["high"] < 1
    assert found >= 30


@pytest.mark.slow
def test_ici_of_a_calibrated_and_of_a_wrong_model():
    rng, holds = np.random.default_rng(0), []
    for _ in range(40):
        y, proba, _ = draw(rng, 300, 1, 0.0)
        row = by_name(y, proba)["ICI"]
        assert row["low"] <= row["value"] <= row["high"]
        holds.append(row["low"] == 0)
        off, proba, _ = draw(rng, 600, 1, 0.0, slope=0.3)
        assert by_name(off, proba)["ICI"]["low"] > 0
    assert np.mean(holds) >= 0.9


def test_no_other_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        validation_summary(*sample(40), random_state=0)
