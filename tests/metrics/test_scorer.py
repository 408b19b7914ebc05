import pickle

import numpy as np
import pytest
import sklearn
import sklearn.metrics
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, cross_validate

import skcalib.metrics
from skcalib.metrics import (
    expected_calibration_error,
    get_scorer,
    get_scorer_names,
    score_decomposition,
    smooth_calibration_error,
)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="module")
def model(iris):
    return LogisticRegression(C=0.01, max_iter=1000).fit(*iris)


@pytest.mark.parametrize("name", get_scorer_names())
def test_score_is_the_metric_times_its_sign(name, iris, model):
    X, y = iris
    value = get_scorer(name)(model, X, y)
    proba = model.predict_proba(X)
    if name in ("neg_miscalibration", "discrimination"):
        expected = getattr(score_decomposition(y, proba), name.removeprefix("neg_"))
    elif name == "neg_brier":
        one_hot = model.classes_ == y[:, np.newaxis]
        assert value == pytest.approx(-((proba - one_hot) ** 2).sum(axis=1).mean())
        return
    elif name in ("neg_log_loss", "accuracy"):
        assert value == pytest.approx(sklearn.metrics.get_scorer(name)(model, X, y))
        return
    else:
        expected = getattr(skcalib.metrics, name.removeprefix("neg_"))(y, model.predict_proba(X))
    assert value == (-expected if name.startswith("neg_") else expected)


@pytest.mark.parametrize("name", get_scorer_names())
def test_fold_may_lack_a_class_and_carry_weights(name, iris, model):
    X, y = iris[0][:100], iris[1][:100]
    weight = np.random.default_rng(0).uniform(size=100)
    value = get_scorer(name)(model, X, y, sample_weight=weight)
    assert np.isfinite(value)
    assert value != get_scorer(name)(model, X, y)


@pytest.mark.parametrize("name", get_scorer_names())
def test_scorers_pickle(name, iris, model):
    scorer = pickle.loads(pickle.dumps(get_scorer(name)))
    assert scorer(model, *iris) == get_scorer(name)(model, *iris)


def test_two_classes_are_judged_on_the_positive_class():
    X, y = load_breast_cancer(return_X_y=True)
    names = np.array(["malignant", "benign"])[y]
    model = LogisticRegression(max_iter=50, solver="newton-cholesky").fit(X, names)
    first, second = model.predict_proba(X).T
    assert list(model.classes_) == ["benign", "malignant"]
    score = get_scorer("neg_expected_calibration_error")(model, X, names)
    assert score == -expected_calibration_error(names, second, pos_label="malignant")
    score = get_scorer("neg_expected_calibration_error", pos_label="benign")(model, X, names)
    assert score == -expected_calibration_error(names, first, pos_label="benign")


def test_options_reach_the_metric(iris, model):
    X, y = iris
    value = get_scorer("neg_expected_calibration_error", n_bins=3, norm="l2")(model, X, y)
    assert value == -expected_calibration_error(y, model.predict_proba(X), n_bins=3, norm="l2")
    # The registered scorer is not touched by the options of another.
    value = get_scorer("neg_expected_calibration_error")(model, X, y)
    assert value == -expected_calibration_error(y, model.predict_proba(X))


@pytest.mark.slow
def test_grid_search_and_several_metrics_at_once(iris):
    scoring = {
        "ece": get_scorer("neg_expected_calibration_error"),
        "smooth": get_scorer("neg_smooth_calibration_error"),
        "accuracy": "accuracy",
    }
    search = GridSearchCV(
        LogisticRegression(max_iter=1000), {"C": [1e-4, 1.0]}, scoring=scoring, refit="ece", cv=3
    ).fit(*iris)
    assert search.best_params_ == {"C": 1.0}
    assert (search.cv_results_["mean_test_smooth"] < 0).all()


def test_metadata_routing(iris):
    X, y = iris
    weight = np.random.default_rng(0).uniform(size=len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = get_scorer("neg_smooth_calibration_error").set_score_request(sample_weight=True)
        model = LogisticRegression(max_iter=1000).set_fit_request(sample_weight=False)
        result = cross_validate(
            model,
            X,
            y,
            scoring=scorer,
            params={"sample_weight": weight},
            return_estimator=True,
            return_indices=True,
            cv=3,
        )
    for score, fitted, test in zip(
        result["test_score"], result["estimator"], result["indices"]["test"]
    ):
        expected = smooth_calibration_error(
            y[test], fitted.predict_proba(X[test]), sample_weight=weight[test]
        )
        assert score == -expected


def test_metrics_that_are_a_number_have_scorers():
    names = set(get_scorer_names())
    assert {"neg_expected_calibration_error", "coverage_at_risk", "discrimination"} <= names
    # Values of every sample, intervals, curves, and what takes no probabilities have none.
    others = ("generalized_brier", "interval", "curve", "fpr", "report", "entropy")
    assert not [name for name in names if any(other in name for other in others)]


class Oracle(ClassifierMixin, BaseEstimator):
    """Predict the label, which is the only feature, or the next one, with a given confidence."""

    def __init__(self, confidence=1.0, shift=0):
        self.confidence = confidence
        self.shift = shift

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        chosen = np.eye(len(self.classes_))[(X[:, 0] + self.shift) % len(self.classes_)]
        rest = (1 - self.confidence) / (len(self.classes_) - 1)
        return chosen * (self.confidence - rest) + rest


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", get_scorer_names())
def test_larger_is_better(name, n_classes):
    y = np.arange(60) % n_classes
    X = y[:, np.newaxis].copy()
    X[::6] = (X[::6] + 1) % n_classes  # a sixth of the predictions is wrong
    scorer = get_scorer(name)
    perfect = scorer(Oracle().fit(X, y), y[:, np.newaxis], y)
    poor = scorer(Oracle(confidence=0.95).fit(X, y), X, y)
    hopeless = scorer(Oracle(shift=1).fit(X, y), y[:, np.newaxis], y)
    assert perfect >= max(poor, hopeless)
    assert perfect > min(poor, hopeless) or "excess" in name


def test_repr_names_the_metric_and_its_options():
    scorer = get_scorer("neg_expected_calibration_error", n_bins=10, norm="l2")
    assert repr(scorer) == "<scorer neg_expected_calibration_error(n_bins=10, norm='l2')>"


class CountingRegression(LogisticRegression):
    calls = 0

    def predict_proba(self, X):
        type(self).calls += 1
        return super().predict_proba(X)


def test_model_predicts_once_for_several_scorers(iris):
    model = CountingRegression(max_iter=1000).fit(*iris)
    scoring = {name: get_scorer(name) for name in get_scorer_names()}
    scores = check_scoring(model, scoring=scoring)(model, *iris)
    assert CountingRegression.calls == 1
    assert scores == {name: scorer(model, *iris) for name, scorer in scoring.items()}


def test_unknown_name():
    with pytest.raises(ValueError, match=r"scoring must be one of .*'accuracy'.*, got 'recall'"):
        get_scorer("recall")


def test_the_registry_of_scikit_learn_is_left_alone():
    shared = set(get_scorer_names()) & set(sklearn.metrics.get_scorer_names())
    assert shared == {"accuracy", "neg_log_loss"}  # the same numbers


def test_errors_speak_of_the_y_of_the_scorer(iris, model):
    X, y = iris
    with pytest.raises(ValueError, match=r"^y must hold labels among \['setosa', .*, got 'rose'"):
        get_scorer("neg_expected_calibration_error")(model, X, np.where(y == "setosa", "rose", y))


def test_errors_of_unknown_options_and_unfitted_models(iris, model):
    message = "got an unexpected keyword argument 'nbins'"
    with pytest.raises(TypeError, match=message):
        get_scorer("neg_expected_calibration_error", nbins=5)(model, *iris)
    with pytest.raises(TypeError, match=message):
        skcalib.metrics.expected_calibration_error([0, 1], [0.2, 0.9], nbins=5)
    with pytest.raises(NotFittedError):
        get_scorer("neg_expected_calibration_error")(LogisticRegression(), *iris)
