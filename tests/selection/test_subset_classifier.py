import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError

from skcalib.selection import MaxEntropySelector, SubsetClassifier
from skcalib.utils import SkcalibWarning

X, y = load_iris(return_X_y=True)
names = np.array(["setosa", "versicolor", "virginica"])[y]


# scikit-learn 1.7 warns of an object without tags, which newer ones take as it is.
pytestmark = pytest.mark.filterwarnings("ignore:The following error was raised:DeprecationWarning")


class FirstRows:
    """A selector that is no scikit-learn estimator beyond fit, get_support and get_params."""

    def __init__(self, n=10):
        self.n = n

    def get_params(self, deep=True):
        return {"n": self.n}

    def fit(self, X, y=None):
        self.mask_ = np.arange(len(X)) < self.n
        return self

    def get_support(self, indices=False):
        return np.flatnonzero(self.mask_) if indices else self.mask_


def test_equals_fit_on_the_chosen_samples():
    model = LogisticRegression(max_iter=500)
    clf = SubsetClassifier(model, MaxEntropySelector(model, fraction=0.8)).fit(X, names)
    chosen = clf.selector_.get_support()
    expected = LogisticRegression(max_iter=500).fit(X[chosen], names[chosen])
    np.testing.assert_allclose(clf.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_array_equal(clf.predict(X), expected.predict(X))
    assert list(clf.classes_) == ["setosa", "versicolor", "virginica"]


def test_sample_parameters_are_cut_to_the_chosen_samples():
    weight = np.random.RandomState(0).uniform(size=len(y))
    clf = SubsetClassifier(LogisticRegression(max_iter=500), FirstRows(110))
    clf.fit(X[::-1], y[::-1], sample_weight=weight)
    expected = LogisticRegression(max_iter=500).fit(
        X[::-1][:110], y[::-1][:110], sample_weight=weight[:110]
    )
    np.testing.assert_allclose(clf.estimator_.coef_, expected.coef_)


def test_a_class_with_no_chosen_sample_is_a_warning_and_has_probability_zero():
    clf = SubsetClassifier(LogisticRegression(), FirstRows(100))
    with pytest.warns(SkcalibWarning, match="No sample of class 'virginica' was selected"):
        clf.fit(X, names)
    proba = clf.predict_proba(X)
    assert proba.shape == (150, 3)
    np.testing.assert_allclose(proba[:, :2], clf.estimator_.predict_proba(X))
    assert not proba[:, 2].any()
    scores = clf.decision_function(X)
    np.testing.assert_array_equal(scores[:, 1], clf.estimator_.decision_function(X))
    np.testing.assert_array_equal(scores[:, 0], -scores[:, 1])
    assert (scores[:, 2] == np.finfo(float).min).all()


def test_decision_function_is_that_of_the_classifier():
    for rows in (slice(None), slice(100)):
        model = LogisticRegression(max_iter=500)
        clf = SubsetClassifier(model, MaxEntropySelector(model, fraction=0.8)).fit(
            X[rows], y[rows]
        )
        np.testing.assert_array_equal(
            clf.decision_function(X), clf.estimator_.decision_function(X)
        )
    assert not hasattr(SubsetClassifier(GaussianNB(), FirstRows()), "decision_function")


def test_a_class_lost_among_four_keeps_the_columns_of_the_others():
    four = np.where((y == 0) & (X[:, 0] > 5), 3, y)[::-1]
    with pytest.warns(SkcalibWarning, match="No sample of class 0, 3 was selected"):
        clf = SubsetClassifier(LogisticRegression(max_iter=500), FirstRows(100)).fit(X[::-1], four)
    scores = clf.decision_function(X)
    assert (scores[:, [0, 3]] == np.finfo(float).min).all()
    np.testing.assert_array_equal(scores[:, 2], clf.estimator_.decision_function(X))
    np.testing.assert_array_equal(clf.predict_proba(X)[:, [0, 3]], 0)


def test_weights_reach_the_selector_and_the_classifier():
    weight = np.random.RandomState(0).uniform(size=len(y)) * (np.arange(len(y)) % 4 > 0)
    model = LogisticRegression(max_iter=500)
    clf = SubsetClassifier(model, MaxEntropySelector(GaussianNB(), fraction=0.8))
    clf.fit(X, y, sample_weight=weight)
    selector = MaxEntropySelector(GaussianNB(), fraction=0.8).fit(X, y, sample_weight=weight)
    rows = selector.get_support()
    assert weight[rows].all()
    np.testing.assert_array_equal(clf.selector_.get_support(), rows)
    expected = LogisticRegression(max_iter=500).fit(X[rows], y[rows], sample_weight=weight[rows])
    np.testing.assert_array_equal(clf.estimator_.coef_, expected.coef_)


def test_metadata_routing_through_a_pipeline():
    weight = np.random.RandomState(0).uniform(size=len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression(max_iter=500).set_fit_request(sample_weight=True)
        scored = GaussianNB().set_fit_request(sample_weight=True)
        selector = MaxEntropySelector(scored, fraction=0.8).set_fit_request(sample_weight=True)
        unweighted = GaussianNB().set_fit_request(sample_weight=False)
        plain = MaxEntropySelector(unweighted, fraction=0.8)
        both, one = (
            make_pipeline(
                StandardScaler().set_fit_request(sample_weight=False),
                SubsetClassifier(model, s).set_fit_request(sample_weight=True),
            ).fit(X, y, sample_weight=weight)
            for s in (selector, plain.set_fit_request(sample_weight=False))
        )
    Z = StandardScaler().fit_transform(X)
    for fitted, selector_weight in ((both, weight), (one, None)):
        chosen = MaxEntropySelector(GaussianNB(), fraction=0.8).fit(Z, y, selector_weight)
        rows = chosen.get_support()
        np.testing.assert_array_equal(fitted[-1].selector_.get_support(), rows)
        expected = LogisticRegression(max_iter=500).fit(Z[rows], y[rows], weight[rows])
        np.testing.assert_array_equal(fitted[-1].estimator_.coef_, expected.coef_)


def test_inner_parameters_are_validated():
    with pytest.raises(InvalidParameterError, match="'C' parameter of LogisticRegression"):
        SubsetClassifier(LogisticRegression(C=-1), FirstRows(110)).fit(X[::-1], y[::-1])
    with pytest.raises(InvalidParameterError, match="'fraction' parameter of MaxEntropySelector"):
        SubsetClassifier(GaussianNB(), MaxEntropySelector(GaussianNB(), fraction=2)).fit(X, y)


@pytest.mark.slow
def test_grid_search_over_the_fraction_in_a_pipeline():
    model = LogisticRegression(max_iter=500)
    pipe = make_pipeline(StandardScaler(), SubsetClassifier(model, MaxEntropySelector(model)))
    grid = GridSearchCV(
        pipe,
        {
            "subsetclassifier__selector__fraction": [0.6, 1.0],
            "subsetclassifier__estimator__C": [0.1, 1.0],
        },
        cv=3,
        scoring="accuracy",
    ).fit(pd.DataFrame(X, columns=list("abcd")), names)
    assert grid.best_score_ > 0.9
    assert list(grid.best_estimator_[-1].classes_) == ["setosa", "versicolor", "virginica"]


def test_no_probabilities_from_an_estimator_that_has_none():
    from sklearn.svm import LinearSVC

    clf = SubsetClassifier(LinearSVC(), FirstRows(120)).fit(X, y)
    assert not hasattr(clf, "predict_proba")
    assert clf.score(X, y) > 0.5


@pytest.mark.slow
def test_a_fitted_classifier_inside_the_selector_is_a_warning():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=500)
    selector = MaxEntropySelector(clone(model).fit(X, y), fraction=0.9)
    with pytest.warns(
        SkcalibWarning, match=r"^selector\.estimator is a fitted LogisticRegression"
    ):
        SubsetClassifier(model, selector).fit(X, y)
    frozen = MaxEntropySelector(FrozenEstimator(clone(model).fit(X, y)), fraction=0.9)
    SubsetClassifier(model, frozen).fit(X, y)  # warnings are errors here


def test_bad_parameters():
    with pytest.raises(ValueError, match="'selector' parameter"):
        SubsetClassifier(LogisticRegression(), 3).fit(X, y)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        SubsetClassifier(LogisticRegression(), FirstRows()).fit(X, y + 0.5)
    with pytest.raises(ValueError, match="at least two classes, got one class"):
        SubsetClassifier(LogisticRegression(), FirstRows()).fit(X, np.zeros(150))
    with pytest.raises(ValueError, match="at least two classes, got one class"):
        SubsetClassifier(LogisticRegression(), FirstRows()).fit(X, y, sample_weight=y == 0)
    with pytest.raises(ValueError, match="sample_weight must be finite and not negative"):
        SubsetClassifier(LogisticRegression(), FirstRows()).fit(X, y, sample_weight=-np.ones(150))
    with pytest.raises(ValueError, match=r"estimator must have the parameter .*KNeighborsC"):
        SubsetClassifier(KNeighborsClassifier(), FirstRows()).fit(X, y, sample_weight=np.ones(150))
    with pytest.raises(ValueError, match="X must not be masked"):
        SubsetClassifier(GaussianNB(), FirstRows()).fit(np.ma.array(X, mask=X > 5), y)
    with pytest.raises(ValueError, match="y must hold labels of one type, got int, str"):
        SubsetClassifier(GaussianNB(), FirstRows()).fit(X[:4], [0, 1, "a", "a"])
