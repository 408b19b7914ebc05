from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from skcalib.metrics import (
    calibration_error_interval,
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    groupwise_calibration_error,
)
from skcalib.metrics._binned_draws import OneSeed
from skcalib.metrics._groupwise import correct_by_holm
from skcalib.metrics._resampling import Resampled
from skcalib.utils import SkcalibWarning


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=400)
    true = 0.35 * proba + 0.65 / 3  # a model that is far too sure
    y = (true.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1).clip(0, 2)
    return y, proba, rng.choice(["b", "a", "c"], size=400)


@pytest.mark.parametrize("metric", [expected_calibration_error, classwise_calibration_error])
def test_a_line_is_the_metric_of_its_samples(data, metric):
    y, proba, by = data
    table = groupwise_calibration_error(y, proba, by, metric=metric, n_resamples=20, n_bins=4)
    assert table["group"].tolist() == ["a", "b", "c"]
    for line in table:
        rows = by == line["group"]
        assert line["n_samples"] == rows.sum()
        error = metric(y[rows], proba[rows], labels=range(3), n_bins=4)
        assert line["error"] == pytest.approx(error)
        assert 0 <= line["low"] <= line["error"]
        assert line["high"] <= 1


def test_weights_count_samples_where_the_metric_counts_them(data):
    y, proba, by = data
    weight = np.random.default_rng(0).integers(1, 9, size=400)
    table = groupwise_calibration_error(
        y,
        proba,
        by,
        metric=debiased_calibration_error,
        n_resamples=5,
        sample_weight=weight,
    )
    for line in table:
        rows = by == line["group"]
        error = debiased_calibration_error(y[rows], proba[rows], sample_weight=weight[rows])
        assert line["error"] == pytest.approx(error)


@pytest.mark.slow
def test_one_group_is_the_whole(data):
    y, proba, _ = data
    run = {"n_resamples": 800, "random_state": 0}
    (line,) = groupwise_calibration_error(y, proba, np.zeros(400, dtype=int), **run)
    # Other resamples, of the same distribution.
    whole = calibration_error_interval(y, proba, **run)
    assert (line["low"], line["high"]) == pytest.approx(whole, abs=0.01)


@pytest.mark.slow
def test_one_group_of_a_hundred_whose_probabilities_are_reversed_is_found():
    rng = np.random.default_rng(3)
    by, p = np.repeat(np.arange(100), 60), rng.uniform(size=6000)
    y = rng.uniform(size=6000) < np.where(by == 17, 1 - p, p)
    table = groupwise_calibration_error(y, p, by, random_state=0)
    assert np.flatnonzero(table["pvalue"] < 0.05).tolist() == [17]


@pytest.mark.slow
@pytest.mark.parametrize("metric", [expected_calibration_error, classwise_calibration_error])
def test_resamples_of_one_seed_have_the_distribution_of_others(data, metric):
    y, proba, _ = data
    error = Resampled.of(metric, {}, y[:90], proba[:90]).error
    one, seeds = OneSeed(0, 2000), np.arange(2000)
    pairs = [(error.by_chance(one), error.by_chance(seeds))]
    drawn = [error.errors(error.bootstrap(of)[0]) for of in (one, seeds)]
    for some, others in [*pairs, drawn]:
        # Five standard errors of quantiles that 2000 draws have.
        places = [0.1, 0.5, 0.9]
        close = 5 * np.std(others) * 2 / np.sqrt(2000)
        assert np.quantile(some, places) == pytest.approx(np.quantile(others, places), abs=close)


def test_groups_in_several_jobs_are_the_same(data):
    y, proba, by = data
    one, two = (
        groupwise_calibration_error(y, proba, by, n_resamples=20, random_state=0, n_jobs=n)
        for n in (1, 2)
    )
    assert one.tolist() == two.tolist()


def test_labels_are_matched_before_the_groups_are_made():
    # Group 1 has no sample of class 0, and group 0 none of class 1.
    names = np.array(["no", "yes"])
    y, by = names[[0, 1] * 40], np.array([0, 1] * 40)
    p = np.full(80, 0.3)
    table = groupwise_calibration_error(y, p, by, pos_label="yes", n_resamples=5)
    assert table["error"] == pytest.approx([0.3, 0.7])


def test_small_groups_have_nan_and_are_not_corrected_for(data):
    y, proba, _ = data
    by = np.repeat([3, 5, 7], [29, 30, 341])
    table = groupwise_calibration_error(y, proba, by, n_resamples=39, random_state=0)
    assert table["n_samples"].tolist() == [29, 30, 341]
    for name in ("error", "low", "high", "pvalue"):
        assert np.isnan(table[name]).tolist() == [True, False, False]
    # Labels at random: the p-value of the large group is the smallest there is, times two.
    assert table["pvalue"][2] == pytest.approx(2 / 40)


def test_samples_of_weight_zero_are_not_counted(data):
    y, proba, by = data
    weight = np.where(by == "a", 0.0, 1.0)
    table = groupwise_calibration_error(y, proba, by, sample_weight=weight, n_resamples=5)
    assert table["n_samples"][0] == 0
    assert np.isnan(table["error"]).tolist() == [True, False, False]


def closed_test(pvalues):
    """Holm's correction from its principle: the largest Bonferroni p-value of all subsets."""
    m = len(pvalues)
    corrected = []
    for i in range(m):
        subsets = [s for s in product([False, True], repeat=m) if s[i]]
        bonferroni = [
            min(1, sum(s) * min(p for p, in_s in zip(pvalues, s) if in_s)) for s in subsets
        ]
        corrected.append(max(bonferroni))
    return corrected


@pytest.mark.parametrize("seed", range(5))
def test_holm_is_the_closure_of_bonferroni(seed):
    pvalues = np.random.default_rng(seed).uniform(size=5) ** 3
    assert correct_by_holm(pvalues) == pytest.approx(closed_test(pvalues))


def test_holm_by_hand():
    assert correct_by_holm(np.array([0.01, 0.04, 0.03])) == pytest.approx([0.03, 0.06, 0.06])
    assert len(correct_by_holm(np.empty(0))) == 0


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [6, pytest.param(25, marks=pytest.mark.long)])
def test_false_alarms_in_any_group_are_rare(n_draws):
    rng = np.random.default_rng(0)
    alarms = 0
    for seed in range(n_draws):
        p, by = rng.uniform(size=300), rng.integers(5, size=300)
        y = rng.uniform(size=300) < p
        table = groupwise_calibration_error(y, p, by, n_resamples=99, random_state=seed, n_bins=5)
        alarms += table["pvalue"].min() <= 0.1
    # At most a tenth is expected; more alarms than this have a probability below .001.
    assert alarms <= binom.isf(0.001, n_draws, 0.1)


def test_frame_of_groups_in_a_category(data):
    pd = pytest.importorskip("pandas")
    y, proba, by = data
    series = pd.Series(by, index=np.arange(400)[::-1], dtype="category")
    table = groupwise_calibration_error(y, proba, series, n_resamples=5, as_frame=True)
    assert table.columns.tolist() == ["group", "n_samples", "error", "low", "high", "pvalue"]
    assert table["group"].tolist() == ["a", "b", "c"]


def test_several_columns_and_missing_values_are_groups(data):
    pd = pytest.importorskip("pandas")
    y, proba, by = data
    age = np.where(np.arange(400) % 7 == 0, np.nan, np.arange(400) % 90)
    frame = pd.DataFrame({"site": by, "age": pd.cut(age, [-1, 40, 90])})
    table = groupwise_calibration_error(y, proba, frame, n_resamples=20, as_frame=True)
    counts = frame.astype(object).fillna("none").value_counts(sort=False)
    assert sorted(table["n_samples"]) == sorted(counts)
    assert "site=a, age=(-1, 40]" in table["group"].tolist()
    assert "site=c, age=None" in table["group"].tolist()


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ([0, 1], "^by must have one entry for every sample, 400, got 2"),
        (["a", 1] * 200, "^by must hold values of one kind"),
    ],
)
def test_bad_groups(data, by, message):
    with pytest.raises((ValueError, TypeError), match=message):
        groupwise_calibration_error(*data[:2], by)


def test_groups_are_kept_together_within_what_is_judged():
    rng = np.random.default_rng(1)
    patient = np.repeat(np.arange(60), 10)
    by = np.where(patient < 30, "a", "b")
    proba = np.repeat(rng.uniform(size=60), 10)
    y = np.repeat(rng.uniform(size=60), 10) < proba
    alone = groupwise_calibration_error(y, proba, by, n_resamples=99, random_state=0)
    kept = groupwise_calibration_error(
        y, proba, by, groups=patient, n_resamples=99, random_state=0
    )
    assert (kept["high"] - kept["low"] > 1.5 * (alone["high"] - alone["low"])).all()
    assert (alone["pvalue"] < 0.05).all()
    assert (kept["pvalue"] > 0.05).all()
    with pytest.warns(SkcalibWarning, match="got 15"):
        groupwise_calibration_error(y, proba, by, groups=patient // 2, n_resamples=9)


@pytest.mark.parametrize("metric", ["brier", "log_loss", "accuracy", "overconfidence"])
def test_a_score_of_a_group_has_the_interval_of_its_samples(data, metric):
    y, proba, group = data
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    loss = {
        "brier": ((proba - np.eye(3)[y]) ** 2).sum(axis=1),
        "log_loss": -np.log(proba[np.arange(len(y)), y]),
        "accuracy": right.astype(float),
        "overconfidence": confidence - right,
    }[metric]
    run = {"random_state": 0, "n_resamples": 300}
    table = groupwise_calibration_error(y, proba, group, metric=metric, **run)
    for line in table:
        of_group = loss[group == line["group"]]
        half = 1.96 * of_group.std() / np.sqrt(len(of_group))
        assert line["error"] == pytest.approx(of_group.mean())
        # Labels drawn for the samples may give a larger standard error, never a smaller one.
        assert 0.85 * half < line["high"] - line["error"] < 1.6 * half
        assert line["error"] - line["low"] == pytest.approx(line["high"] - line["error"])
        assert line["pvalue"] < 0.05  # far too sure: accuracy is too low, the others too high
