from functools import partial

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binom, norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss

from skcalib.datasets import make_predictions
from skcalib.metrics import (
    _registry,
    calibration_error_interval,
    compare_calibration,
    debiased_calibration_error,
    expected_calibration_error,
    expected_cost,
    ks_calibration_error,
    net_benefit,
)
from skcalib.metrics._registry import get_metric


def mean_loss(y_true, y_proba, *, sample_weight=None, labels=None):
    """The log-loss of two classes, fast."""
    of_label = np.where(y_true == 1, y_proba, 1 - y_proba)
    return np.average(-np.log(of_label), weights=sample_weight)


def models(seed, n=600, power=1.6):
    rng = np.random.default_rng(seed)
    true = rng.uniform(size=n)
    y = (rng.uniform(size=n) < true).astype(int)
    return y, {"true": true, "off": true**power, "same": true.copy()}


def test_a_line_is_what_the_functions_of_one_model_say():
    y, probas = models(0)
    run = {"n_resamples": 50, "random_state": 0, "n_bins": 8}
    table = compare_calibration(y, probas, **run)
    assert table["model"].tolist() == list(probas)
    for line, proba in zip(table, probas.values()):
        assert line["error"] == expected_calibration_error(y, proba, n_bins=8)
        assert (line["low"], line["high"]) == calibration_error_interval(y, proba, **run)


@pytest.mark.slow
@pytest.mark.parametrize("metric", [expected_calibration_error, log_loss])
def test_the_first_and_its_twin_do_not_differ(metric):
    y, probas = models(0)
    if metric is log_loss:
        probas = {name: np.stack([1 - p, p], axis=1) for name, p in probas.items()}
    first, off, same = compare_calibration(
        y, probas, metric=metric, n_resamples=100, random_state=0
    )
    assert first["difference"] == same["difference"] == 0
    assert np.isnan([first["difference_low"], first["difference_high"]]).all()
    if metric is log_loss:  # the differences of the resamples are 0, too
        assert same["difference_low"] == same["difference_high"] == 0
    assert same["difference_low"] <= 0 <= same["difference_high"]
    assert 0 < off["difference_low"] < off["difference"] < off["difference_high"]


def test_what_is_hard_for_both_cancels():
    # The same model twice, far from calibrated: resamples are correlated by 1.
    _, probas = models(0, n=500, power=3.0)
    y = models(0, n=500, power=3.0)[0]
    table = compare_calibration(
        y, {"a": probas["off"], "b": probas["off"] * 0.99}, n_resamples=100, random_state=0
    )
    width = table["high"][0] - table["low"][0]
    assert table["difference_high"][1] - table["difference_low"][1] < 0.35 * width


@pytest.mark.slow
def test_interval_of_the_difference_of_means_is_that_of_a_paired_test():
    # The log-loss is a mean, so the difference has a standard error of its own.
    y, probas = models(1, n=2000)
    _, off, _ = compare_calibration(
        y,
        {name: np.stack([1 - p, p], axis=1) for name, p in probas.items()},
        metric=log_loss,
        n_resamples=100,
        random_state=0,
    )
    losses = [-np.log(np.where(y == 1, p, 1 - p)) for p in probas.values()]
    each = losses[1] - losses[0]
    half = 1.96 * each.std() / np.sqrt(len(y))
    assert off["difference"] == pytest.approx(each.mean())
    assert off["difference_low"] == pytest.approx(each.mean() - half, abs=0.2 * half)
    assert off["difference_high"] == pytest.approx(each.mean() + half, abs=0.2 * half)


@pytest.mark.slow
@pytest.mark.parametrize(
    "metric",
    [
        expected_calibration_error,
        pytest.param(debiased_calibration_error, marks=pytest.mark.long),
        pytest.param(ks_calibration_error, marks=pytest.mark.long),
    ],
)
def test_the_difference_is_held(metric):
    # Two models that are off by other amounts; the truth is that of a large sample.
    y, probas = models(99, n=100_000, power=1.3)
    truth = metric(y, probas["off"]) - 0.0
    held = 0
    for seed in range(20):
        y, probas = models(seed, n=500, power=1.3)
        _, off, _ = compare_calibration(
            y, probas, metric=metric, n_resamples=100, random_state=seed
        )
        held += off["difference_low"] <= truth <= off["difference_high"]
    assert held >= 17  # of 20: 16 have a probability of .003 at 95 %


def test_options_groups_and_frames():
    pytest.importorskip("pandas")
    y, probas = models(0, n=300)
    run = partial(
        compare_calibration,
        y,
        probas,
        n_resamples=40,
        random_state=0,
        groups=np.arange(300) // 5,
    )
    table = run(as_frame=True, metric=debiased_calibration_error, squared=True)
    assert table["error"][0] == debiased_calibration_error(y, probas["true"], squared=True)
    assert (table["low"] <= table["high"]).all()
    assert table["difference"][1] > 0
    with pytest.raises(TypeError, match="y_probas must be a dict of probabilities"):
        compare_calibration(y, probas["true"])
    with pytest.raises(ValueError, match="y_probas must name at least one model"):
        compare_calibration(y, {})
    with pytest.raises(ValueError, match="y_proba must hold probabilities in"):
        compare_calibration(y, {"a": probas["true"] * 2})


@pytest.mark.slow
@pytest.mark.parametrize("metric", [expected_calibration_error, log_loss])
def test_identical_models_differ_by_exactly_nothing(metric):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=200)
    y = (proba.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1).clip(0, 2)
    table = compare_calibration(
        y, {"a": proba, "b": proba.copy()}, metric=metric, n_resamples=50, random_state=0
    )
    assert table[["difference", "difference_low", "difference_high"]][1].tolist() == (0, 0, 0)


@pytest.mark.slow
def test_the_difference_of_two_models_is_turned_round_with_them():
    rng = np.random.default_rng(0)
    proba = rng.uniform(0.05, 0.95, 400)
    y = (rng.random(400) < proba).astype(int)
    models = {"right": proba, "sure": proba**2 / (proba**2 + (1 - proba) ** 2)}
    there, back = (
        compare_calibration(y, {name: models[name] for name in names}, random_state=0)[1]
        for names in (("right", "sure"), ("sure", "right"))
    )
    assert there["difference"] == -back["difference"]
    assert there["difference_low"] == pytest.approx(-back["difference_high"], abs=1e-9)
    assert there["difference_high"] == pytest.approx(-back["difference_low"], abs=1e-9)


@pytest.mark.slow
def test_a_calibrated_model_is_told_from_an_overconfident_one():
    """Where one of two intervals begins at 0, the paired test still has power."""
    found = []
    for seed in range(20):
        y, good, _ = make_predictions(1500, random_state=seed)
        _, bold, _ = make_predictions(1500, temperature=1.3, random_state=seed)
        line = compare_calibration(y, {"good": good, "bold": bold}, n_resamples=20)[1]
        assert 0 <= line["pvalue"] <= 1
        found.append(line["pvalue"] < 0.05)
    assert np.mean(found) > 0.5


def test_the_gain_is_that_of_a_logistic_regression():
    y, proba, _ = make_predictions(800, n_classes=2, temperature=2.0, random_state=0)
    y[:2] = proba[:2, 1] = [0, 1]  # as sure as float64 allows
    line = compare_calibration(y, {"model": proba[:, 1]}, n_resamples=5)[0]
    x = logit(np.clip(proba[:, 1], 2.0**-52, 1 - 2.0**-52))[:, None]
    fitted = LogisticRegression(C=np.inf, tol=1e-10).fit(x, y).predict_proba(x)[:, 1]
    assert line["gain"] == pytest.approx(log_loss(y, proba[:, 1]) - log_loss(y, fitted), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.0, pytest.param(1.5, marks=pytest.mark.long)])
def test_models_that_are_as_far_off_are_rarely_told_apart(temperature):
    """Two noisy views of the same truth are as far from calibration, whatever the labels."""
    rng, found = np.random.default_rng(0), []
    for _ in range(60):
        truth = rng.normal(size=300)
        y = truth + rng.normal(size=300) > 0
        views = {}
        for name in ("a", "b"):
            seen = truth + rng.normal(size=300)
            calibrated = norm.cdf(seen / 2 / np.sqrt(1.5))
            views[name] = expit(temperature * logit(calibrated))
        found.append(compare_calibration(y, views, n_resamples=1)[1]["pvalue"] < 0.05)
    assert binom.cdf(sum(found) - 1, 60, 0.05) < 0.999


def test_groups_count_once_in_the_paired_test():
    y, good, _ = make_predictions(300, random_state=0)
    _, bold, _ = make_predictions(300, temperature=1.3, random_state=0)
    models = {"good": good, "bold": bold}
    copies = {name: np.repeat(proba, 4, axis=0) for name, proba in models.items()}
    groups = np.repeat(np.arange(300), 4)
    once = compare_calibration(y, models, n_resamples=5)["pvalue"][1]
    four = compare_calibration(np.repeat(y, 4), copies, groups=groups, n_resamples=5)["pvalue"][1]
    assert four == pytest.approx(once, rel=1e-6)


@pytest.mark.parametrize("metric", [log_loss, "brier"])
def test_the_pvalue_of_a_score_is_that_of_its_interval(metric):
    y, proba, _ = make_predictions(100, random_state=0)
    models = {"a": proba, "b": proba**1.3 / (proba**1.3).sum(1, keepdims=True), "same": proba}
    options = {"metric": metric, "n_resamples": 30, "random_state": 0}
    table = compare_calibration(y, models, **options)
    assert np.isnan(table["gain"]).all()
    assert np.isnan(table["pvalue"][0])
    assert 0 < table["pvalue"][1] < 1
    assert table["pvalue"][2] == 1
    # The interval of the level 1 - p ends at 0.
    level = 1 - table["pvalue"][1]
    ends = compare_calibration(y, models, confidence_level=level, **options)[1]
    nearest = min(abs(ends["difference_low"]), abs(ends["difference_high"]))
    assert nearest == pytest.approx(0, abs=1e-9)


def test_a_score_that_no_label_changes_has_the_pvalue_of_its_difference():
    def compute_largest(y_true, y_proba, *, sample_weight=None, labels=None):
        return float(np.max(y_proba))

    y, proba = [0, 1] * 20, np.full(40, 0.5)
    models = {"a": proba, "b": proba + 0.1}
    table = compare_calibration(y, models, metric=compute_largest, n_resamples=5, random_state=0)
    assert table["pvalue"][1] == 0
    assert table["difference_low"][1] == pytest.approx(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [None, np.arange(400) // 4])
def test_a_score_of_few_positives_is_as_uncertain_as_labels_that_did_not_come(groups):
    """Without one positive among the samples, the bootstrap alone knows nothing of them."""
    rng = np.random.default_rng(0)
    rare = expit(rng.normal(-4.5, 1.0, 100))
    proba = np.repeat(rare, 4)
    y = np.zeros(400, dtype=int)
    probas = {"rare": proba, "rarer": expit(2 * logit(proba))}
    table = compare_calibration(
        y, probas, metric=mean_loss, labels=[0, 1], n_resamples=1000, random_state=0, groups=groups
    )
    low, high = table["difference_low"][1], table["difference_high"][1]
    # The standard error by hand: labels of the mean of the models, with four samples of any class
    # alike; the four samples of a group have one label.
    n = 400 if groups is None else 100
    belief = (n * (probas["rare"] + probas["rarer"]) / 2 + 2) / (n + 4)
    of_label = [
        np.log(probas["rare"] / probas["rarer"]),
        np.log((1 - probas["rare"]) / (1 - probas["rarer"])),
    ]
    mean, square = (
        (belief * of_label[0] ** k + (1 - belief) * of_label[1] ** k).mean() for k in (1, 2)
    )
    error = np.sqrt((square - mean**2) / n)
    assert (high - low) / 2 == pytest.approx(norm.ppf(0.975) * error, rel=0.1)
    assert low < 0 < high
    # The rarer one has the lower loss here: the bootstrap alone would call it better.
    assert table["difference"][1] < 0


@pytest.mark.slow
def test_differences_of_log_losses_with_few_positives_are_held_and_not_turned_round():
    held = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        true = expit(rng.normal(-4.5, 1.5, 50))
        y = (rng.uniform(size=50) < true).astype(int)
        probas = {"good": true, "bold": expit(1.5 * logit(true))}
        line = compare_calibration(
            y, probas, metric=mean_loss, labels=[0, 1], n_resamples=40, random_state=seed
        )[1]
        # The true difference is .017 nats (a large sample).
        held += line["difference_low"] <= 0.017 <= line["difference_high"]
        assert line["difference_high"] > 0
    assert held >= 37  # the bootstrap alone: 23 or so


def by_name(name, **options):
    """The same mean as a function of one's own, evaluated again for every resample."""

    def own(y_true, y_proba, *, sample_weight=None, labels=None):
        given = {"sample_weight": sample_weight} | options
        if name is not net_benefit:
            given["labels"] = labels
        return name(y_true, y_proba, **given)

    return own


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "options"),
    [
        (get_metric("log_loss"), {}),
        (log_loss, {}),
        (get_metric("brier"), {}),
        (brier_score_loss, {}),
        (get_metric("accuracy"), {}),
        (get_metric("overconfidence"), {}),
        (expected_cost, {"costs": [[0, 20], [5, 5]]}),
        (net_benefit, {"threshold": 0.3}),
    ],
)
@pytest.mark.parametrize("given", ["weights", "groups"])
def test_means_of_losses_are_what_the_metric_gives_for_every_resample(metric, options, given):
    y, probas = models(0, n=150)
    rng = np.random.default_rng(0)
    probas = {name: np.stack([1 - p, p], axis=1) for name, p in probas.items() if name != "same"}
    run = {"n_resamples": 9, "random_state": 0}
    run |= {"sample_weight": rng.integers(0, 3, 150) * 0.7} if given == "weights" else {}
    run |= {"groups": rng.integers(0, 40, 150)} if given == "groups" else {}
    fast = compare_calibration(y, probas, metric=metric, **options, **run)
    slow = compare_calibration(y, probas, metric=by_name(metric, **options), **run)
    for name in fast.dtype.names[1:]:
        np.testing.assert_allclose(fast[name], slow[name], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_a_known_mean_is_evaluated_once_a_model(monkeypatch):
    calls = []

    def counted(y_true, y_proba, *, sample_weight=None, labels=None):
        calls.append(0)
        return log_loss(y_true, y_proba, sample_weight=sample_weight, labels=labels)

    y, probas = models(0, n=100)
    compare_calibration(y, probas, metric=counted, n_resamples=5, random_state=0)
    assert len(calls) > 3 * 5
    calls.clear()
    # Its losses are private: nobody else can name those of a function.
    monkeypatch.setitem(_registry._LOSSES, counted, _registry._LOSSES[log_loss])
    compare_calibration(y, probas, metric=counted, n_resamples=5, random_state=0)
    assert len(calls) == len(probas)
    # Losses whose mean is another are not taken.
    monkeypatch.setitem(_registry._LOSSES, counted, _registry._LOSSES[brier_score_loss])
    compare_calibration(y, probas, metric=counted, n_resamples=5, random_state=0)
    assert len(calls) > 3 * 5
