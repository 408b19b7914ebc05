"""Weights that sum to 1: the same results where only their ratios count, else one warning."""

import warnings

import numpy as np
import pytest

from skcalib.metrics import (
    CalibrationAccumulator,
    area_under_risk_coverage,
    calibration_error_interval,
    calibration_test,
    compare_calibration,
    debiased_calibration_error,
    groupwise_calibration_error,
    multilabel_calibration_error,
)
from skcalib.utils import SkcalibWarning

RNG = np.random.default_rng(0)
PROBA = RNG.uniform(0.05, 0.95, 200)
Y = (RNG.random(200) < PROBA**1.3).astype(int)
MEAN_ONE = RNG.uniform(0.2, 1.8, 200)
MEAN_ONE /= MEAN_ONE.mean()
DRAWS = {"n_resamples": 19, "random_state": 0}
TWO_LABELS = np.stack([Y, 1 - Y], axis=1), np.stack([PROBA, 1 - PROBA], axis=1)


def accumulated(weight, metric, **options):
    stream = CalibrationAccumulator(5).update(Y, PROBA, sample_weight=weight, **options)
    return stream.result(metric), *stream.interval(metric, **DRAWS)


CALLS = {
    "interval": lambda w, metric: calibration_error_interval(
        Y, PROBA, metric=metric, sample_weight=w, **DRAWS
    ),
    "test": lambda w, metric: calibration_test(Y, PROBA, metric=metric, sample_weight=w, **DRAWS),
    "groups": lambda w, metric: groupwise_calibration_error(
        Y, PROBA, np.arange(200) % 4, metric=metric, sample_weight=w, **DRAWS
    ).tolist(),
    "models": lambda w, metric: compare_calibration(
        Y, {"a": PROBA, "b": PROBA**1.2, "c": PROBA**2}, metric=metric, sample_weight=w, **DRAWS
    )[["error", "low", "high"]].tolist(),
    "labels": lambda w, metric: multilabel_calibration_error(
        *TWO_LABELS, metric=metric, sample_weight=w
    ),
    "sums": accumulated,
}


def called(call, *args, **options):
    """Return the result, and the messages of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call(*args, **options)
    assert all(issubclass(warning.category, SkcalibWarning) for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)
    return found, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("name", CALLS)
def test_ratios_of_weights_count_alone_where_no_metric_counts_samples(name):
    found, messages = called(CALLS[name], MEAN_ONE / 200, "ece")
    np.testing.assert_allclose(found, CALLS[name](MEAN_ONE, "ece"), rtol=1e-9)
    assert messages == []


@pytest.mark.parametrize("name", CALLS)
def test_a_call_warns_once_of_all_weights_where_the_metric_counts_samples(name):
    assert called(CALLS[name], MEAN_ONE, "debiased_ece")[1] == []
    messages = called(CALLS[name], MEAN_ONE / 200, "debiased_ece")[1]
    assert len(messages) == 1
    assert messages[0].startswith("sample_weight sums to 1 for")
    # Sums know the effective number of samples alone.
    n = int(MEAN_ONE.sum() ** 2 / (MEAN_ONE @ MEAN_ONE)) if name == "sums" else 200
    assert abs(int(messages[0].split()[5]) - n) <= (40 if name == "sums" else 0)


def test_a_group_of_small_weights_among_others():
    weight = np.where(np.arange(200) % 4 == 1, 0.1, 1.3)
    message = called(CALLS["groups"], weight, "debiased_ece")[1]
    assert [text[:40] for text in message] == ["sample_weight sums to 5 for 50 samples. "]


@pytest.mark.parametrize("metric", ["ece", "mce", "debiased_ece"])
def test_numbers_of_samples_that_were_normalized(metric):
    found, messages = called(
        CalibrationAccumulator(5).update,
        Y, PROBA, sample_weight=MEAN_ONE / 200, frequency_weight=True,
    )  # fmt: skip
    assert len(messages) == 1
    assert messages[0].startswith("sample_weight sums to 1 for 200 samples")
    low, high = found.interval(metric, **DRAWS)
    assert 0 == low < high <= 1
    whole = CalibrationAccumulator(5).update(Y, PROBA).interval(metric, **DRAWS)
    assert high > whole[1]  # a single sample says next to nothing


@pytest.mark.parametrize("metric", [debiased_calibration_error, area_under_risk_coverage])
def test_metrics_that_count_samples(metric):
    proba = np.stack([1 - PROBA, PROBA], axis=1)
    assert called(metric, Y, proba, sample_weight=MEAN_ONE)[1] == []
    assert len(called(metric, Y, proba, sample_weight=MEAN_ONE / 200)[1]) == 1
