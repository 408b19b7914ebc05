from types import SimpleNamespace

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from skcalib.utils._estimators import (
    Folds,
    check_fit_takes,
    combine_input_tags,
    fit_router,
    get_group_params,
    get_inner_fit_params,
    has_argument,
    join_classes,
    predict_columns,
    predict_labels,
    predict_out_of_fold,
    show_inner,
)


class Meta(BaseEstimator):
    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y, sample_weight=None):
        return self

    def get_metadata_routing(self):
        return fit_router(self, estimator=self.estimator)


def test_gives_what_there_is_and_no_more():
    outer = SimpleNamespace()
    show_inner(outer, SimpleNamespace(n_features_in_=3, other_=1))
    assert vars(outer) == {"n_features_in_": 3}


@pytest.mark.parametrize(
    ("estimators", "sparse", "allow_nan"),
    [
        ([LogisticRegression()], True, False),
        ([LogisticRegression(), GaussianNB()], False, False),
        ([HistGradientBoostingClassifier(), HistGradientBoostingClassifier()], False, True),
        ([HistGradientBoostingClassifier(), GaussianNB()], False, False),
        ([LogisticRegression(), object()], True, False),
    ],
    ids=["sparse", "dense", "NaN", "no NaN", "no estimator"],
)
def test_input_that_all_take(estimators, sparse, allow_nan):
    tags = combine_input_tags(*estimators)
    assert (tags.sparse, tags.allow_nan) == (sparse, allow_nan)


def test_parameters_of_fit():
    assert has_argument(GaussianNB().fit, "sample_weight")
    assert has_argument(make_pipeline(GaussianNB()).fit, "gaussiannb__sample_weight")
    assert not has_argument(KNeighborsClassifier().fit, "sample_weight")
    check_fit_takes(GaussianNB(), "sample_weight")
    with pytest.raises(
        ValueError,
        match=r"^scorer must have the parameter 'sample_weight' in its fit \(why\), got KNeigh",
    ):
        check_fit_takes(KNeighborsClassifier(), "sample_weight", " (why)", name="scorer")


def test_without_routing_everything_reaches_the_estimator():
    weight = np.ones(3)
    meta = Meta(GaussianNB())
    assert get_inner_fit_params(meta, "estimator", None, {"a": 1}) == {"a": 1}
    params = get_inner_fit_params(meta, "estimator", weight, {"a": 1})
    assert params == {"a": 1, "sample_weight": weight}
    with pytest.raises(ValueError, match="estimator must have the parameter 'sample_weight'"):
        get_inner_fit_params(Meta(KNeighborsClassifier()), "estimator", weight, {})


def test_with_routing_the_estimator_gets_what_it_requests():
    weight = np.ones(3)
    with sklearn.config_context(enable_metadata_routing=True):
        asks = Meta(GaussianNB().set_fit_request(sample_weight=True))
        assert get_inner_fit_params(asks, "estimator", weight, {}) == {"sample_weight": weight}
        assert get_inner_fit_params(asks, "estimator", None, {}) == {}
        refuses = Meta(GaussianNB().set_fit_request(sample_weight=False))
        refuses.set_fit_request(sample_weight=True)
        assert get_inner_fit_params(refuses, "estimator", weight, {}) == {}


def knows(classes, **returns):
    """A fitted classifier with fixed predictions."""
    methods = {name: lambda X, values=values: values for name, values in returns.items()}
    return SimpleNamespace(classes_=np.array(classes), **methods)


@pytest.mark.parametrize(
    ("method", "least"), [("predict_proba", 0), ("predict_log_proba", -np.inf)]
)
def test_columns_come_in_the_order_of_the_classes(method, least):
    values, classes = np.array([[0.25, 0.75], [0.5, 0.5]]), np.array(["a", "b", "c"])
    some = knows(["c", "a"], **{method: values})
    expected = [[0.75, least, 0.25], [0.5, least, 0.5]]
    assert predict_columns(some, None, classes, method).tolist() == expected
    assert predict_columns(some, None, np.array(["a", "c"]), method).tolist() == [
        [0.75, 0.25],
        [0.5, 0.5],
    ]


def test_a_score_of_two_classes_is_that_of_the_second():
    score, dtype = np.array([0.5, -2.0], dtype=np.float32), np.finfo(np.float32)
    in_order = knows(["a", "b"], decision_function=score)
    turned = knows(["b", "a"], decision_function=score)
    classes, three = np.array(["a", "b"]), np.array(["a", "b", "c"])
    for model, sign in ((in_order, 1), (turned, -1)):
        of_two = predict_columns(model, None, classes, "decision_function")
        assert of_two.tolist() == (sign * score).tolist()
        of_three = predict_columns(model, None, three, "decision_function")
        expected = np.column_stack([-sign * score, sign * score, [dtype.min] * 2])
        assert of_three.tolist() == expected.tolist()


def test_classes_and_columns_that_do_not_fit_are_refused_or_left_out():
    proba, classes = np.array([[0.25, 0.75], [0.5, 0.5]]), np.array(["a", "c"])
    other = knows(["b", "a"], predict_proba=proba)
    with pytest.raises(ValueError, match=r"than \['a', 'c'\], got \['b'\]"):
        predict_columns(other, None, classes)
    assert predict_columns(other, None, classes, leave_out=True).tolist() == [[0.75, 0], [0.5, 0]]
    with pytest.raises(ValueError, match=r"one column for every class, 3, got shape \(2, 2\)"):
        predict_columns(knows([*"abc"], predict_proba=proba), None, np.array([*"abc"]))


def test_out_of_fold_columns_are_those_of_models_that_have_not_seen_the_sample():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 3
    held_out = np.split(rng.permutation(30), 3)
    folds = Folds([(np.setdiff1d(np.arange(30), test), test) for test in held_out], 30)
    found = predict_out_of_fold(GaussianNB(), X, y, folds, classes=np.arange(3))
    for train, test in folds:
        expected = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])
        np.testing.assert_array_equal(found[test], expected)
    with pytest.raises(ValueError, match="no other classes"):
        predict_out_of_fold(GaussianNB(), X, y, folds, classes=np.arange(2))
    some = predict_out_of_fold(GaussianNB(), X, y, folds, classes=np.arange(2), leave_out=True)
    np.testing.assert_array_equal(some, found[:, :2])


def test_classes_of_labels_and_of_a_classifier_are_joined():
    assert join_classes(knows([0, 1]), np.array([1, 2])).tolist() == [0, 1, 2]
    assert join_classes(knows([0, 1]), np.array([0, 1, 2])).tolist() == [0, 1, 2]
    assert join_classes(object(), np.array([2, 1])).tolist() == [1, 2]
    assert predict_labels(knows([0, 1], predict=np.array([[1], [0]])), None).tolist() == [1, 0]


def test_groups_go_where_folds_need_them():
    groups = [0, 0, 1]
    by_groups = GridSearchCV(GaussianNB(), {}, cv=GroupKFold(2))
    by_number = GridSearchCV(GaussianNB(), {}, cv=2)
    assert get_group_params(by_groups, groups) == {"groups": groups}
    assert get_group_params(make_pipeline(by_groups), groups) == {"gridsearchcv__groups": groups}
    assert get_group_params(by_groups, None) == {}
    for without in (by_number, GaussianNB()):
        assert get_group_params(without, groups) == {}

    class Grouped(GaussianNB):
        def fit(self, X, y, groups=None):
            return super().fit(X, y)

    assert get_group_params(Grouped(), groups) == {"groups": groups}
