import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.selection import MaxEntropySelector, SubsetClassifier
from skcalib.utils import SkcalibWarning

X, y = load_iris(return_X_y=True)
names = np.array(["setosa", "versicolor", "virginica"])[y]


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


def test_equals_fit_on_the_chosen_rows():
    model = LogisticRegression(max_iter=500)
    clf = SubsetClassifier(model, MaxEntropySelector(model, fraction=0.8)).fit(X, names)
    chosen = clf.selector_.get_support()
    expected = LogisticRegression(max_iter=500).fit(X[chosen], names[chosen])
    np.testing.assert_allclose(clf.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_array_equal(clf.predict(X), expected.predict(X))
    assert list(clf.classes_) == ["setosa", "versicolor", "virginica"]


def test_row_parameters_are_cut_to_the_chosen_rows():
    weight = np.random.RandomState(0).uniform(size=len(y))
    clf = SubsetClassifier(LogisticRegression(max_iter=500), FirstRows(110))
    clf.fit(X[::-1], y[::-1], sample_weight=weight)
    expected = LogisticRegression(max_iter=500).fit(
        X[::-1][:110], y[::-1][:110], sample_weight=weight[:110]
    )
    np.testing.assert_allclose(clf.estimator_.coef_, expected.coef_)


def test_a_class_with_no_chosen_row_is_told_and_has_probability_zero():
    clf = SubsetClassifier(LogisticRegression(), FirstRows(100))
    with pytest.warns(SkcalibWarning, match="No row of class 'virginica' was selected"):
        clf.fit(X, names)
    proba = clf.predict_proba(X)
    assert proba.shape == (150, 3)
    np.testing.assert_allclose(proba[:, :2], clf.estimator_.predict_proba(X))
    assert not proba[:, 2].any()


def test_grid_search_over_the_share_in_a_pipeline():
    model = LogisticRegression(max_iter=500)
    pipe = make_pipeline(StandardScaler(), SubsetClassifier(model, MaxEntropySelector(model)))
    grid = GridSearchCV(
        pipe,
        {
            "subsetclassifier__selector__fraction": [0.6, 1.0],
            "subsetclassifier__estimator__C": [0.1, 1.0],
        },
        cv=3,
        n_jobs=2,
        scoring="accuracy",
    ).fit(pd.DataFrame(X, columns=list("abcd")), names)
    assert grid.best_score_ > 0.9
    assert list(grid.best_estimator_[-1].classes_) == ["setosa", "versicolor", "virginica"]


def test_no_probabilities_from_an_estimator_that_has_none():
    from sklearn.svm import LinearSVC

    clf = SubsetClassifier(LinearSVC(), FirstRows(120)).fit(X, y)
    assert not hasattr(clf, "predict_proba")
    assert clf.score(X, y) > 0.5


def test_bad_parameters():
    with pytest.raises(ValueError, match="'selector' parameter"):
        SubsetClassifier(LogisticRegression(), 3).fit(X, y)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        SubsetClassifier(LogisticRegression(), FirstRows()).fit(X, y + 0.5)
    with pytest.raises(ValueError, match="at least two classes, got one class"):
        SubsetClassifier(LogisticRegression(), FirstRows()).fit(X, np.zeros(150))
