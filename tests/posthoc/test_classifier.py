"""The meta-estimator does by itself what is done here by hand."""

import re
from difflib import get_close_matches

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skcalib.posthoc import (
    DirichletCalibration,
    IsotonicCalibration,
    PostHocCalibratedClassifier,
    StackedCalibration,
    StructuredMatrixScaling,
    TemperatureScaling,
    VectorScaling,
)

NAMES = np.array(["ant", "bee", "cat"])


def data(n=300, k=3, seed=0):
    X, y = make_classification(n, n_informative=5, n_classes=k, n_redundant=8, random_state=seed)
    return X, NAMES[y]


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        (LogisticRegression(), "decision_function"),
        (GaussianNB(), "predict_proba"),
        (SGDClassifier(random_state=0), "decision_function"),
    ],
    ids=str,
)
def test_against_the_steps_by_hand(k, estimator, method):
    X, y = data(k=k)
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    model = PostHocCalibratedClassifier(estimator, VectorScaling(), cv=cv).fit(X, y)
    scores = cross_val_predict(estimator, X, y, cv=cv, method=method)
    form = "logits" if method == "decision_function" else "proba"
    by_hand = VectorScaling(input=form).fit(scores, y)
    np.testing.assert_allclose(model.calibrator_.coef_, by_hand.coef_, rtol=1e-6)
    new = getattr(clone(estimator).fit(X, y), method)(X)
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(new), atol=1e-7)
    np.testing.assert_array_equal(
        model.predict(X), NAMES[:k][model.predict_proba(X).argmax(axis=1)]
    )


@pytest.mark.slow
def test_the_default_is_a_stack_and_it_helps():
    X, y = data(n=1500)
    train, test = slice(0, 1000), slice(1000, None)
    model = PostHocCalibratedClassifier(GaussianNB()).fit(X[train], y[train])
    assert isinstance(model.calibrator_, StackedCalibration)
    assert model.calibrator_.input == "proba"
    assert model.calibrator_.weights_["identity"] < 0.5
    plain = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])
    assert log_loss(y[test], model.predict_proba(X[test])) < log_loss(y[test], plain)


@pytest.mark.parametrize(
    ("name", "calibrator"),
    [
        ("isotonic", IsotonicCalibration()),
        ("structured_matrix", StructuredMatrixScaling()),
        ("temperature", TemperatureScaling()),
    ],
)
def test_calibrators_go_by_their_names(name, calibrator):
    X, y = data()
    by_name, by_hand = (
        PostHocCalibratedClassifier(GaussianNB(), c).fit(X, y) for c in (name, calibrator)
    )
    np.testing.assert_array_equal(by_name.predict_proba(X), by_hand.predict_proba(X))


@pytest.mark.parametrize("nothing", ["none", None])
def test_none_leaves_the_probabilities_as_they_are(nothing):
    X, y = data()
    model = PostHocCalibratedClassifier(GaussianNB(), nothing).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), GaussianNB().fit(X, y).predict_proba(X))


@pytest.mark.slow
def test_a_wrong_base_rate_is_repaired():
    X, y = make_classification(6000, weights=[0.9], flip_y=0, class_sep=0.7, random_state=1)
    train, test = slice(0, 3000), slice(3000, None)
    weighted = LogisticRegression(class_weight="balanced")
    before = clone(weighted).fit(X[train], y[train]).predict_proba(X[test])[:, 1].mean()
    model = PostHocCalibratedClassifier(weighted).fit(X[train], y[train])
    after = model.predict_proba(X[test])[:, 1].mean()
    assert before > y[test].mean() + 0.05
    assert after == pytest.approx(y[test].mean(), abs=0.02)


@pytest.mark.slow
def test_method_can_be_chosen():
    X, y = data()
    model = PostHocCalibratedClassifier(LogisticRegression(), response_method="predict_proba").fit(
        X, y
    )
    assert model.calibrator_.input == "proba"
    logits = PostHocCalibratedClassifier(LogisticRegression()).fit(X, y)
    assert logits.calibrator_.input == "logits"
    # Logits and log-probabilities of a multinomial model differ by a constant of the row.
    np.testing.assert_allclose(model.predict_proba(X), logits.predict_proba(X), atol=1e-3)


def test_a_frozen_model_is_not_fitted_again():
    X, y = data(n=600)
    forest = RandomForestClassifier(20, random_state=0).fit(X[:300], y[:300])
    model = PostHocCalibratedClassifier(FrozenEstimator(forest), IsotonicCalibration())
    model.fit(X[300:], y[300:])
    by_hand = IsotonicCalibration(input="proba").fit(forest.predict_proba(X[300:]), y[300:])
    np.testing.assert_array_equal(
        model.predict_proba(X), by_hand.predict_proba(forest.predict_proba(X))
    )


@pytest.mark.parametrize(
    ("labels", "unknown"), [(NAMES, "zebra"), (np.arange(3), 9), (np.array([7, 3, 5]), 9)]
)
@pytest.mark.parametrize("model", [GaussianNB(), LogisticRegression()], ids=str)
@pytest.mark.filterwarnings("ignore:y has no sample of class")
def test_a_frozen_model_may_know_classes_that_are_not_in_y(labels, unknown, model):
    X, y = data(n=600)
    y = labels[np.searchsorted(NAMES, y)]
    trained = model.fit(X[:300], y[:300])
    X, y = X[300:], y[300:]
    rows = y != labels[0]
    calibrated = PostHocCalibratedClassifier(FrozenEstimator(trained), "temperature").fit(
        X[rows], y[rows]
    )
    np.testing.assert_array_equal(calibrated.classes_, np.sort(labels))
    name = "decision_function" if hasattr(model, "decision_function") else "predict_proba"
    form = "logits" if name == "decision_function" else "proba"
    by_hand = TemperatureScaling(input=form, classes=np.sort(labels))
    scores = getattr(trained, name)
    by_hand.fit(scores(X[rows]), y[rows])
    np.testing.assert_array_equal(calibrated.predict_proba(X), by_hand.predict_proba(scores(X)))
    with pytest.raises(ValueError, match="y must hold labels among"):
        calibrated.fit(X, np.where(rows, y, unknown))


def test_weights_reach_the_folds_the_calibrator_and_the_classifier():
    X, y = data()
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y))
    model = PostHocCalibratedClassifier(GaussianNB(), "temperature", cv=3).fit(
        X, y, sample_weight=weight
    )
    scores = cross_val_predict(
        GaussianNB(), X, y, cv=3, method="predict_proba", params={"sample_weight": weight}
    )
    by_hand = TemperatureScaling(input="proba").fit(scores, y, sample_weight=weight)
    assert model.calibrator_.temperature_ == by_hand.temperature_
    expected = GaussianNB().fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.estimator_.theta_, expected.theta_)


def test_weights_that_the_classifier_does_not_take_are_an_error():
    X, y = data()
    with pytest.raises(
        ValueError, match="estimator must have the parameter 'sample_weight' in its fit, got KN"
    ):
        PostHocCalibratedClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(300))


def test_fit_params_of_one_entry_a_row_are_cut_to_the_folds():
    X, y = data()
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y))
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    model = PostHocCalibratedClassifier(pipeline, "temperature", cv=3)
    model.fit(X, y, gaussiannb__sample_weight=weight)
    expected = make_pipeline(StandardScaler(), GaussianNB()).fit(
        X, y, gaussiannb__sample_weight=weight
    )
    np.testing.assert_array_equal(model.estimator_[-1].theta_, expected[-1].theta_)


def test_metadata_routing():
    X, y = data()
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y))
    plain = PostHocCalibratedClassifier(GaussianNB(), "temperature", cv=3).fit(
        X, y, sample_weight=weight
    )
    with sklearn.config_context(enable_metadata_routing=True):
        asks = GaussianNB().set_fit_request(sample_weight=True)
        routed = PostHocCalibratedClassifier(asks, "temperature", cv=3).fit(
            X, y, sample_weight=weight
        )
        refuses = GaussianNB().set_fit_request(sample_weight=False)
        half = PostHocCalibratedClassifier(refuses, "temperature", cv=3).fit(
            X, y, sample_weight=weight
        )
    np.testing.assert_array_equal(routed.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(half.estimator_.theta_, GaussianNB().fit(X, y).theta_)
    assert half.calibrator_.temperature_ != plain.calibrator_.temperature_


@pytest.mark.slow
def test_grid_search_over_the_calibrator():
    X, y = data()
    grid = {
        "calibrator": [TemperatureScaling(), DirichletCalibration()],
        "estimator__var_smoothing": [1e-9, 1e-2],
    }
    model = PostHocCalibratedClassifier(GaussianNB(), "temperature", cv=2)
    search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=2).fit(X, y)
    assert len(search.cv_results_["params"]) == 4


@pytest.mark.slow
def test_rare_classes_are_an_error():
    X, y = data()
    y[:] = "ant"
    y[:100], y[100:103] = "bee", "cat"
    with pytest.raises(ValueError, match=r"as cv has folds, 5, got 3 of class 'cat'"):
        PostHocCalibratedClassifier(GaussianNB()).fit(X, y)
    assert len(PostHocCalibratedClassifier(GaussianNB(), cv=3).fit(X, y).classes_) == 3


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"calibrator": LogisticRegression()}, "'calibrator' parameter"),
        ({"response_method": "transform"}, "'response_method' parameter"),
        ({"n_jobs": "all"}, "'n_jobs' parameter"),
        ({"estimator": StandardScaler()}, "'estimator' parameter"),
    ],
)
def test_bad_parameters(params, message):
    arguments = {"estimator": GaussianNB(), **params}
    with pytest.raises(ValueError, match=message):
        PostHocCalibratedClassifier(**arguments).fit(*data())


def test_prefit_names_what_replaces_it():
    X, y = data()
    model = PostHocCalibratedClassifier(GaussianNB().fit(X, y), cv="prefit")
    with pytest.raises(ValueError, match=r"cv must be .* got 'prefit'; .* sklearn.frozen.Froz"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="'cv' parameter"):
        PostHocCalibratedClassifier(GaussianNB(), cv="other").fit(X, y)


@pytest.mark.parametrize("labels", [NAMES, np.array([0, 1, 2]), np.array([-1, 3, 7])], ids=str)
def test_the_fitted_calibrator_prints_briefly(labels):
    X, y = data()
    y = labels[np.searchsorted(NAMES, y)]
    user = TemperatureScaling(classes=["of", "no", "use"])
    model = PostHocCalibratedClassifier(GaussianNB(), user).fit(X, y)
    assert str(model.calibrator_) == "TemperatureScaling(input='proba')"
    np.testing.assert_array_equal(model.calibrator_.classes_, labels)


def test_masked_features_are_refused():
    X, y = data()
    with pytest.raises(ValueError, match="X must not be masked"):
        PostHocCalibratedClassifier(GaussianNB()).fit(np.ma.array(X, mask=X > 1), y)


def test_one_class_is_an_error():
    X, _ = data()
    with pytest.raises(ValueError, match="y must hold at least two classes"):
        PostHocCalibratedClassifier(GaussianNB()).fit(X, ["ant"] * 300)


def test_one_class_of_positive_weight_is_refused_by_name():
    X, y = data(n=60, k=2)
    weight = (y == y[0]).astype(float)
    with pytest.raises(ValueError, match=r"^y must hold at least two classes, got one class"):
        PostHocCalibratedClassifier(GaussianNB(), cv=2).fit(X, y, sample_weight=weight)


@pytest.mark.skipif(
    sklearn.__version__.startswith("1.7."), reason="scikit-learn 1.7 takes columns of one name"
)
def test_columns_of_one_name_are_refused():
    X, y = data(n=60, k=2)
    frame = pd.DataFrame(X[:, [0, 0]], columns=["a", "a"])
    with pytest.raises(ValueError, match="unique column names"):
        PostHocCalibratedClassifier(GaussianNB(), cv=2).fit(frame, y)


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_an_ensemble_is_the_geometric_mean_of_the_folds(method):
    """By hand: one map of all out-of-fold scores, applied to the scores of every fold's model."""
    kind = GaussianNB if method == "predict_proba" else LogisticRegression
    X, y = make_classification(400, n_informative=6, n_classes=3, random_state=0)
    folds = list(StratifiedKFold(4).split(X, y))
    model = PostHocCalibratedClassifier(kind(), "temperature", cv=folds, ensemble=True)
    model.fit(X[:], y)
    scores, fitted = np.empty((400, 3)), []
    for train, test in folds:
        fitted.append(kind().fit(X[train], y[train]))
        scores[test] = getattr(fitted[-1], method)(X[test])
    form = "proba" if method == "predict_proba" else "logits"
    scaling = TemperatureScaling(input=form).fit(scores, y)
    logs = sum(np.log(scaling.predict_proba(getattr(part, method)(X))) for part in fitted)
    expected = np.exp(logs / 4)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)
    assert model.calibrator_.temperature_ == pytest.approx(scaling.temperature_)
    assert len(model.estimators_) == 4
    assert not hasattr(model, "estimator_")


@pytest.mark.slow
def test_who_predicts_by_default():
    X, y = make_classification(300, random_state=0)
    tree = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=4, random_state=0))
    frozen = FrozenEstimator(clone(tree).fit(X, y))
    for estimator, folds in ((tree, 5), (GaussianNB(), 5), (frozen, 1)):
        for given, count in (({}, 1), ({"ensemble": False}, 1), ({"ensemble": True}, folds)):
            model = PostHocCalibratedClassifier(clone(estimator), **given).fit(X, y)
            assert len(model.estimators_) == count
    model = PostHocCalibratedClassifier(frozen, ensemble=True).fit(X, y)
    assert model.estimator_ is model.estimators_[0]


@pytest.mark.slow
def test_an_ensemble_of_two_classes_and_one_score():
    X, y = make_classification(300, random_state=0)
    one, folds = (
        PostHocCalibratedClassifier(LogisticRegression(), ensemble=ensemble).fit(X, y > 0)
        for ensemble in (False, True)
    )
    # The folds are the same, and so is the map.
    np.testing.assert_allclose(
        folds.calibrator_.predict_proba([0.5]), one.calibrator_.predict_proba([0.5])
    )
    assert np.abs(folds.predict_proba(X) - one.predict_proba(X)).max() < 0.2
    np.testing.assert_array_equal(folds.classes_, [False, True])


@pytest.mark.parametrize("given", ["sigmod", "Isotonic", "temprature"])
def test_a_name_that_is_none_lists_the_nearest_first(given):
    meant = {"sigmod": "sigmoid", "Isotonic": "isotonic", "temprature": "temperature"}[given]
    with pytest.raises(ValueError, match=rf"among {{'{meant}', .*'vector'.*}}") as caught:
        PostHocCalibratedClassifier(GaussianNB(), given).fit(*load_iris(return_X_y=True))
    names = re.findall(r"'(\w+)'", str(caught.value).partition("{")[2].partition("}")[0])
    assert {"auto", "platt", "beta", "histogram", "dirichlet", "vector"} < set(names)
    far = [
        name for name in names if name not in get_close_matches(given.lower(), names, cutoff=0.5)
    ]
    assert far == sorted(far)
