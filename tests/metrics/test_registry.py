"""A metric is named one way everywhere: function, name, scorer, partial."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial

import numpy as np
import pytest

from skcalib.datasets import make_predictions
from skcalib.metrics import (
    CalibrationAccumulator,
    calibration_error_interval,
    calibration_test,
    classwise_calibration_error,
    compare_calibration,
    expected_calibration_error,
    get_scorer,
    groupwise_calibration_error,
    multilabel_calibration_error,
)

Y, P, _ = make_predictions(300, n_classes=3, temperature=2.0, random_state=0)
BY = np.arange(300) % 2
FORMS = {
    "name": "expected_calibration_error",
    "name of the scorer": "neg_expected_calibration_error",
    "scorer": get_scorer("neg_expected_calibration_error"),
    "partial": partial(expected_calibration_error),
    "partial of a name": partial(get_scorer("neg_expected_calibration_error"), n_bins=15),
}
TAKERS = {
    "interval": lambda m: calibration_error_interval(
        Y, P, metric=m, n_resamples=9, random_state=0
    ),
    "test": lambda m: calibration_test(Y, P, metric=m, n_resamples=9, random_state=0),
    "compare": lambda m: compare_calibration(
        Y, {"a": P}, metric=m, n_resamples=9, random_state=0
    ).tolist(),
    "groupwise": lambda m: groupwise_calibration_error(
        Y, P, BY, metric=m, n_resamples=9, random_state=0
    ).tolist(),
    "multilabel": lambda m: multilabel_calibration_error(np.eye(3, dtype=int)[Y], P, metric=m),
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_taken_everywhere(taker, form):
    expected = TAKERS[taker](expected_calibration_error)
    np.testing.assert_equal(TAKERS[taker](FORMS[form]), expected)


def test_options_of_a_scorer_count():
    scorer = get_scorer("neg_classwise_calibration_error", n_bins=5)
    ours = calibration_error_interval(Y, P, metric=scorer, n_resamples=9, random_state=0)
    expected = calibration_error_interval(
        Y, P, metric=classwise_calibration_error, n_bins=5, n_resamples=9, random_state=0
    )
    assert ours == expected


@pytest.mark.parametrize("taker", TAKERS)
def test_an_unknown_name_is_refused_with_those_that_are_known(taker):
    with pytest.raises(ValueError, match=r"metric must be .*'expected_calibration_error'.*'ece'"):
        TAKERS[taker]("ece")


def test_the_accumulator_takes_functions_and_names_of_scorers():
    sums = CalibrationAccumulator(metrics=[classwise_calibration_error]).update(Y, P)
    for form in ("classwise_calibration_error", "neg_classwise_calibration_error"):
        assert sums.result(form) == sums.result(classwise_calibration_error)
    assert sums.result(expected_calibration_error) == sums.result()
    intervals = [
        sums.interval(m, n_resamples=9, random_state=0)
        for m in (expected_calibration_error, "neg_expected_calibration_error")
    ]
    assert intervals[0] == intervals[1]


def test_threads_lose_no_update():
    total = CalibrationAccumulator()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: total.update(Y, P), range(400)))
    assert total.sums_[0].sum() == 400 * 300
    for same in (pickle.loads(pickle.dumps(total)), deepcopy(total)):
        assert same.update(Y, P).sums_[0].sum() == 401 * 300
    assert total.sums_[0].sum() == 400 * 300
