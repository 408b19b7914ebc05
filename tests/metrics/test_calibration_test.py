from functools import partial
from itertools import product

import numpy as np
import pytest
from joblib import parallel_config
from scipy.stats import norm
from sklearn.metrics import brier_score_loss

from skcalib.datasets import make_predictions
from skcalib.metrics import (
    calibration_error_interval,
    calibration_test,
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    generalized_brier_score,
    ks_calibration_error,
    maximum_calibration_error,
    predictive_entropy,
    smooth_calibration_error,
)
from skcalib.metrics._resampling import Resampled
from skcalib.utils import SkcalibWarning


def exact_pvalue(y, proba, metric):
    """Probability of an error as large, summed over all labels that might have come."""
    observed = metric(y, proba)
    columns = np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba
    return sum(
        np.prod(columns[np.arange(len(y)), labels])
        for labels in product(range(columns.shape[1]), repeat=len(y))
        if metric(list(labels), proba) >= observed - 1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("metric", [expected_calibration_error, ks_calibration_error])
@pytest.mark.parametrize("y", [(0, 0, 1, 1), (1, 1, 1, 1), (0, 1, 0, 0)])
def test_pvalue_is_the_sum_over_all_outcomes(metric, y):
    proba = np.array([0.9, 0.8, 0.3, 0.55])
    found = calibration_test(y, proba, metric=metric, n_resamples=4000, random_state=0)
    expected = exact_pvalue(y, proba, metric)
    assert found.statistic == metric(y, proba)
    assert found.pvalue == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 4000))


@pytest.mark.slow
def test_all_columns_are_drawn_for_a_metric_of_all_columns():
    proba = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.5, 0.3], [0.4, 0.4, 0.2]])
    y = [2, 0, 1, 0]
    metric = partial(classwise_calibration_error, labels=range(3))
    found = calibration_test(
        y, proba, metric=classwise_calibration_error, n_resamples=4000, random_state=0
    )
    expected = exact_pvalue(y, proba, metric)
    assert 0.01 < expected < 0.99
    assert found.pvalue == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 4000))


@pytest.mark.slow
@pytest.mark.parametrize("metric", [expected_calibration_error, classwise_calibration_error])
def test_level_is_kept_and_error_is_found(metric):
    rng = np.random.default_rng(0)
    n_trials, rejected = 100, {"calibrated": 0, "overconfident": 0}
    for seed in range(n_trials):
        proba = rng.dirichlet(np.ones(3), size=100)
        for name, truth in (("calibrated", proba), ("overconfident", 0.5 * proba + 1 / 6)):
            y = (rng.uniform(size=(100, 1)) > np.cumsum(truth, axis=1)[:, :2]).sum(axis=1)
            test = calibration_test(
                y, proba, metric=metric, n_resamples=39, random_state=seed, labels=range(3)
            )
            rejected[name] += test.pvalue <= 0.1
    # 10 of 100 are expected; more than 20 have a probability below .001.
    assert rejected["calibrated"] <= 20
    assert rejected["overconfident"] >= 70


def test_pvalue_counts_what_was_observed():
    # Ten probabilities of .999, all wrong: no draw comes near.
    assert calibration_test([0] * 10, [0.999] * 10, n_resamples=99).pvalue == 1 / 100
    # One sample of probability 1/2 has an error of 1/2 whatever its label.
    assert calibration_test([1], [0.5], n_resamples=99) == (0.5, 1.0)


@pytest.mark.slow
def test_outcomes_of_equal_error_count_whatever_the_rounding():
    # Eight samples of one probability: a draw with as many ones has the same error, in whatever
    # order its sums were taken.
    y = [1, 1, 0, 0, 0, 0, 0, 0]
    proba = np.full(8, 0.3)
    found = calibration_test(y, proba, n_resamples=4000, random_state=0)
    expected = exact_pvalue(y, proba, expected_calibration_error)
    assert found.pvalue == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 4000))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_short_floats_have_the_p_value_of_the_same_numbers_in_float64(dtype):
    # One unlikely sample makes the error, in the samples as in many draws: a tie.
    rng = np.random.default_rng(0)
    proba = rng.beta(0.3, 3, size=(20, 100)).astype(dtype)
    for p in proba:
        y = rng.random(100) < p.astype(np.float64)
        short, full = (
            calibration_test(
                y, values, metric=maximum_calibration_error, n_resamples=99, random_state=0
            )
            for values in (p, p.astype(np.float64))
        )
        assert short.pvalue == full.pvalue


def test_jobs_change_nothing_and_seeds_do():
    rng = np.random.default_rng(0)
    proba = rng.uniform(size=200)
    y = rng.uniform(size=200) < proba
    run = partial(calibration_test, y, proba, n_resamples=50)
    with parallel_config(backend="threading"):
        assert run(random_state=0) == run(random_state=0, n_jobs=2)
    assert {run(random_state=seed).pvalue for seed in range(5)} != {run(random_state=0).pvalue}


def test_constant_weights_change_nothing():
    rng = np.random.default_rng(0)
    proba = rng.uniform(size=200)
    y = rng.uniform(size=200) < proba
    run = partial(calibration_test, y, proba, n_resamples=50, random_state=0)
    assert run(sample_weight=np.full(200, 3.0)) == pytest.approx(run())


@pytest.mark.parametrize(
    "options", [{"n_resamples": 0}, {"metric": 3}, {"n_bins": 0}, {"strategy": "x"}]
)
def test_bad_options_are_named(options):
    with pytest.raises(ValueError, match=f"'{next(iter(options))}' parameter"):
        calibration_test([0, 1], [0.2, 0.9], **options)


@pytest.mark.parametrize("metric", [predictive_entropy, generalized_brier_score])
def test_a_metric_of_another_kind_is_named(metric):
    with pytest.raises(TypeError, match=r"metric must be a function .* sample_weight and labels"):
        calibration_test([0, 1], [0.2, 0.7], metric=metric, n_resamples=5)


def patients(rng, n_groups, n_each, power=1.0):
    """Labels of calibrated probabilities (for power 1) that are all equal within a group."""
    proba = np.repeat(rng.uniform(size=n_groups), n_each)
    return np.repeat(rng.uniform(size=n_groups), n_each) < proba**power, proba


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "options"),
    [
        (expected_calibration_error, {"strategy": "quantile"}),
        pytest.param(maximum_calibration_error, {"n_bins": 5}, marks=pytest.mark.long),
        pytest.param(debiased_calibration_error, {}, marks=pytest.mark.long),
        pytest.param(ks_calibration_error, {}, marks=pytest.mark.long),
        pytest.param(smooth_calibration_error, {}, marks=pytest.mark.long),
    ],
)
def test_groups_keep_the_level_and_find_errors(metric, options):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 10)
    rejected = np.zeros(3)
    n_draws = 25
    for seed in range(n_draws):
        options |= {"metric": metric, "n_resamples": 59, "random_state": seed}
        y, proba = patients(rng, 60, 10)
        rejected[0] += calibration_test(y, proba, **options).pvalue <= 0.05
        rejected[1] += calibration_test(y, proba, groups=groups, **options).pvalue <= 0.05
        y, proba = patients(rng, 60, 10, power=4)
        rejected[2] += calibration_test(y, proba, groups=groups, **options).pvalue <= 0.05
    alone, together, wrong = rejected / n_draws
    assert together <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_draws) < alone
    assert wrong > 0.5


def test_signs_of_groups_are_drawn_as_the_definition_says():
    rng = np.random.default_rng(3)
    y, proba = patients(rng, 25, 4)
    groups = np.repeat(rng.permutation(25), 4)
    error = Resampled.of(expected_calibration_error, {"n_bins": 6}, y, proba, groups=groups).error
    expected = []
    for seed in range(5):
        sign = np.random.default_rng(seed).choice([-1.0, 1.0], 25)[groups]
        cell = np.digitize(proba, np.linspace(0, 1, 7)[1:-1])
        gaps = np.bincount(cell, sign * (proba - y), minlength=6)
        expected.append(np.abs(gaps).sum() / 100)
    np.testing.assert_allclose(error.by_signs(np.arange(5)), expected)


def test_few_groups_and_metrics_of_others_are_told():
    rng = np.random.default_rng(0)
    y, proba = patients(rng, 19, 10)
    groups = np.repeat(np.arange(19), 10).astype(object)
    groups[:10] = None
    with pytest.warns(SkcalibWarning, match="groups must be 20 or more .*, got 19"):
        calibration_test(y, proba, groups=groups, n_resamples=9)
    with pytest.warns(SkcalibWarning, match="got 19"):
        calibration_error_interval(y, proba, groups=groups, n_resamples=9)
    groups = np.arange(190) // 9
    with pytest.raises(ValueError, match=r"^metric must be one of .*'ks'\] where groups"):
        calibration_test(y, proba, groups=groups, metric=brier_score_loss, n_resamples=9)


@pytest.mark.parametrize("temperature", [0.6, 1.8])
def test_overconfidence_of_either_sign_is_found(temperature):
    y, proba, _ = make_predictions(400, temperature=temperature, random_state=0)
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    z = (confidence - right).sum() / np.sqrt((confidence * (1 - confidence)).sum())
    assert abs(z) > 3
    run = {"random_state": 0, "n_resamples": 199}
    assert calibration_test(y, proba, metric="overconfidence", **run).pvalue == 1 / 200
    # Of an accuracy, where larger = better, only a small one speaks against the model.
    pvalue = calibration_test(y, proba, metric="accuracy", **run).pvalue
    assert pvalue == (1 / 200 if z > 0 else 1)


def test_overconfidence_has_the_two_sided_pvalue():
    y, proba, _ = make_predictions(300, temperature=0.9, random_state=3)
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    z = (confidence - right).sum() / np.sqrt((confidence * (1 - confidence)).sum())
    found = calibration_test(y, proba, metric="overconfidence", random_state=0, n_resamples=1999)
    assert found.statistic == pytest.approx((confidence - right).mean())
    assert found.pvalue == pytest.approx(2 * norm.sf(abs(z)), abs=0.05)
