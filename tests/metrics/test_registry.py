"""A metric is named one way everywhere: function, name, scorer, partial."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score, log_loss

from skcalib import metrics
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
    score_decomposition,
)

# A private function: the net gets a metric with its options as a partial.
from skcalib.metrics._registry import get_metric
from skcalib.posthoc import TemperatureScaling

Y, P, _ = make_predictions(300, n_classes=3, temperature=2.0, random_state=0)
BY = np.arange(300) % 2
# Full names by short ones, as in the reference; True where larger = better.
NAMES = {
    "ece": "expected_calibration_error",
    "mce": "maximum_calibration_error",
    "debiased_ece": "debiased_calibration_error",
    "classwise_ece": "classwise_calibration_error",
    "smooth_ece": "smooth_calibration_error",
    "ks": "ks_calibration_error",
    "log_loss": "log_loss",
    "refined_log_loss": "refined_log_loss",
    "brier": "brier",
    "miscalibration": "miscalibration",
    "discrimination": "discrimination",
    "accuracy": "accuracy",
    "overconfidence": "overconfidence",
    "aurc": "area_under_risk_coverage",
    "eaurc": "excess_area_under_risk_coverage",
    "augrc": "area_under_generalized_risk_coverage",
    "accuracy_at_coverage": "accuracy_at_coverage",
    "coverage_at_risk": "coverage_at_risk",
}
LARGER_IS_BETTER = {"discrimination", "accuracy", "accuracy_at_coverage", "coverage_at_risk"}
OPTIONS = {"accuracy_at_coverage": {"coverage": 0.8}, "coverage_at_risk": {"risk": 0.2}}
WITHOUT_SCORER = {"overconfidence"}
ADDS_UP = {
    "ece", "mce", "debiased_ece", "classwise_ece", "smooth_ece", "ks", "log_loss", "brier",
    "accuracy", "overconfidence",
}  # fmt: skip
MEANS = {"accuracy", "brier", "log_loss", "overconfidence"}


def by_hand(name, y, proba):
    """The values of the metrics, by scikit-learn, by numpy and by functions of this package."""
    if name in MEANS:
        correct = proba.argmax(axis=1) == y
        return {
            "accuracy": accuracy_score(y, proba.argmax(axis=1)),
            "brier": ((proba - np.eye(proba.shape[1])[y]) ** 2).sum(axis=1).mean(),
            "log_loss": log_loss(y, proba),
            "overconfidence": proba.max(axis=1).mean() - correct.mean(),
        }[name]
    if name in ("miscalibration", "discrimination"):
        return getattr(score_decomposition(y, proba), name)
    return getattr(metrics, NAMES[name])(y, proba, **OPTIONS.get(name, {}))


def spellings(name):
    """Every spelling of a metric: names, scorers, functions, partials."""
    names = [name, NAMES[name]]
    if name not in LARGER_IS_BETTER | WITHOUT_SCORER:
        names += [f"neg_{name}", f"neg_{NAMES[name]}"]
    yield from names
    if name not in WITHOUT_SCORER:
        yield get_scorer(name)
        yield partial(get_scorer(name))
    if hasattr(metrics, NAMES[name]):
        yield getattr(metrics, NAMES[name])
        yield partial(getattr(metrics, NAMES[name]))


class Given(ClassifierMixin, BaseEstimator):
    """A classifier that returns the probabilities that are its samples."""

    classes_ = np.arange(3)

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return X


def of_groupwise(metric, name):
    options = OPTIONS.get(name, {})
    table = groupwise_calibration_error(
        Y, P, np.zeros(300), metric=metric, n_resamples=3, random_state=0, **options
    )
    return table["error"][0]


def of_compare(metric, name):
    options = OPTIONS.get(name, {})
    table = compare_calibration(
        Y, {"a": P}, metric=metric, n_resamples=3, random_state=0, **options
    )
    return table["error"][0]


def of_test(metric, name):
    options = OPTIONS.get(name, {})
    found = calibration_test(Y, P, metric=metric, n_resamples=3, random_state=0, **options)
    return found.statistic


def of_scorer(metric, name):
    sign = 1 if name in LARGER_IS_BETTER else -1
    return sign * get_scorer(metric, **OPTIONS.get(name, {}))(Given(), P, Y)


def of_accumulator(metric, name):
    return CalibrationAccumulator(metrics=[metric]).update(Y, P).result(metric)


def of_checks(metric, name):
    """The interval where all are checked has no width."""
    low, high = metrics.prediction_powered_interval(Y, P, Y, checked=np.arange(300), metric=metric)
    assert high == pytest.approx(low)
    return low


USERS = {
    "groupwise": (of_groupwise, set(NAMES)),
    "compare": (of_compare, set(NAMES)),
    "test": (of_test, set(NAMES)),
    "scorer": (of_scorer, set(NAMES) - WITHOUT_SCORER),
    "accumulator": (of_accumulator, ADDS_UP),
    "prediction_powered_interval": (of_checks, MEANS),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("user", USERS)
def test_every_spelling_gives_the_same_number_everywhere(user, name):
    evaluate, allowed = USERS[user]
    if name not in allowed:
        with pytest.raises(
            ValueError, match=r"^(metrics?|scoring) must be one of \[.*, got .*\.$"
        ):
            evaluate(name, name)
        return
    expected = by_hand(name, Y, P)
    # The sums of a stream put the largest cumulative residual at the ends of narrow bins.
    tolerance = 1e-3 if (user, name) == ("accumulator", "ks") else 1e-9
    for spelling in spellings(name):
        assert evaluate(spelling, name) == pytest.approx(expected, abs=tolerance), spelling


@pytest.mark.parametrize("name", NAMES)
def test_the_interval_and_several_labels_take_every_spelling(name):
    options = OPTIONS.get(name, {})
    given = {"n_resamples": 3, "random_state": 0, **options}
    intervals = [
        calibration_error_interval(Y, P, metric=spelling, **given) for spelling in spellings(name)
    ]
    indicator = np.eye(3, dtype=int)[Y]
    several = [
        multilabel_calibration_error(indicator, P, metric=spelling, **options)
        for spelling in spellings(name)
    ]
    assert len(set(intervals)) == len(set(several)) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_net_records_every_spelling(name):
    nets = pytest.importorskip("skcalib.nets")
    X = np.log(P).astype(np.float32)
    known = OPTIONS.get(name, {})
    for spelling in [name, *spellings(name)][-3:]:
        metric = partial(get_metric(spelling), **known) if known else spelling
        scoring = nets.CalibrationScoring(metric=metric, on_train=True, use_caching=False)
        scoring.initialize()
        assert scoring.name_ == f"train_{name}"
        assert scoring.lower_is_better == (name not in LARGER_IS_BETTER)
        net = SimpleNamespace(
            _encoded=lambda y: y, predict_proba=lambda _: P, classes_=np.arange(3)
        )
        assert scoring.scoring(net, X, Y) == pytest.approx(by_hand(name, Y, P))


def test_temperature_scaling_takes_every_spelling_of_its_two_criteria():
    for name in ("log_loss", "ece"):
        found = {
            TemperatureScaling(criterion=spelling, input="proba").fit(P, Y).temperature_
            for spelling in spellings(name)
        }
        assert len(found) == 1
    with pytest.raises(
        ValueError, match=r"^criterion must be one of \['log_loss', 'ece'\], got 'aurc'\.$"
    ):
        TemperatureScaling(criterion="aurc", input="proba").fit(P, Y)


def test_scorers_have_no_prefix_where_larger_is_better():
    with pytest.raises(ValueError, match=r"^scoring must be one of .*got 'neg_accuracy'"):
        get_scorer("neg_accuracy")


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


def test_options_of_a_scorer_count():
    scorer = get_scorer("neg_classwise_calibration_error", n_bins=5)
    ours = calibration_error_interval(Y, P, metric=scorer, n_resamples=9, random_state=0)
    expected = calibration_error_interval(
        Y, P, metric=classwise_calibration_error, n_bins=5, n_resamples=9, random_state=0
    )
    assert ours == expected


@pytest.mark.parametrize("taker", TAKERS)
def test_an_unknown_name_is_refused_with_those_that_are_known(taker):
    with pytest.raises(
        ValueError, match=r"^metric must be a function or one of .*'ece'.*, got 'recall'"
    ):
        TAKERS[taker]("recall")


@pytest.mark.parametrize(
    ("given", "meant"), [("brierr", "brier"), ("logloss", "log_loss"), ("smoth_ece", "smooth_ece")]
)
def test_the_nearest_name_comes_first(given, meant):
    for taker in TAKERS.values():
        with pytest.raises(ValueError, match=rf"must be a function or one of \['{meant}', "):
            taker(given)
    with pytest.raises(ValueError, match=rf"^scoring must be one of \['{meant}', "):
        get_scorer(given)


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
