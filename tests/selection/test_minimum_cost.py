"""Decisions of least expected cost: by a loop, in searches, with costs of samples."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skcalib.metrics import expected_cost
from skcalib.posthoc import PostHocCalibratedClassifier
from skcalib.selection import MinimumCostClassifier

COSTS = [[0, 5, 9], [2, 0, 4], [3, 3, 0]]


class ZeroOne(MinimumCostClassifier):
    """Errors cost 1, whatever the number of classes."""

    def __init__(self, estimator, costs=((0, 1), (1, 0)), *, decisions=None):
        super().__init__(estimator, costs, decisions=decisions)

    def _costs(self, X):
        return 1 - np.eye(len(self.classes_))


@parametrize_with_checks([ZeroOne(LogisticRegression())])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def model():
    return make_pipeline(StandardScaler(), LogisticRegression())


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_decisions_are_those_of_least_cost(iris):
    X, y = iris
    clf = MinimumCostClassifier(model(), COSTS).fit(X, y)
    proba = clf.predict_proba(X)
    for row, decided, expected in zip(proba, clf.predict(X), clf.expected_costs(X)):
        by_hand = [sum(c * p for c, p in zip(costs, row)) for costs in COSTS]
        np.testing.assert_allclose(expected, by_hand)
        assert decided == int(np.argmin(by_hand))
    assert clf.score(X, y) == pytest.approx(-expected_cost(y, proba, COSTS))
    weight = np.arange(len(y))
    weighted = -expected_cost(y, proba, COSTS, sample_weight=weight)
    assert clf.score(X, y, sample_weight=weight) == pytest.approx(weighted)


def test_equal_costs_of_errors_are_the_class_of_the_largest_probability(iris):
    X, y = iris
    clf = MinimumCostClassifier(FrozenEstimator(model().fit(X, y)), 1 - np.eye(3)).fit(X, y)
    np.testing.assert_array_equal(clf.predict(X), clf.estimator_.predict(X))


def test_a_further_decision_asks_a_person():
    X, y = load_breast_cancer(return_X_y=True)
    names = np.array(["malignant", "benign"])[y]
    costs = [[0, 50], [5, 0], [1, 1]]  # the classes are sorted: benign, malignant
    clf = MinimumCostClassifier(model(), costs, decisions=["benign", "malignant", "ask"])
    clf.fit(X, names)
    proba = clf.predict_proba(X)
    # Asking is cheaper where malignant has a probability in (1 / 50, 4 / 5).
    asked = (proba[:, 1] > 1 / 50) & (proba[:, 1] < 4 / 5)
    np.testing.assert_array_equal(clf.predict(X) == "ask", asked)
    assert clf.decisions_.tolist() == ["benign", "malignant", "ask"]
    assert clf.classes_.tolist() == ["benign", "malignant"]


def test_a_frame_of_costs_names_classes_and_decisions():
    pd = pytest.importorskip("pandas")
    X, y = load_breast_cancer(return_X_y=True)
    y, model = (
        np.array(["malignant", "benign"])[y],
        make_pipeline(StandardScaler(), LogisticRegression()),
    )
    costs = [[0, 5], [50, 0], [1, 1]]
    frame = pd.DataFrame(costs, ["treat", "send home", "ask"], ["malignant", "benign"])
    found = MinimumCostClassifier(model, frame).fit(X, y)
    names = ["treat", "send home", "ask"]
    by_hand = MinimumCostClassifier(model, np.array(costs)[:, ::-1], decisions=names).fit(X, y)
    np.testing.assert_array_equal(found.predict(X), by_hand.predict(X))
    assert found.decisions_.tolist() == names


def test_costs_of_every_sample():
    """A missed fraud costs its amount, a false alarm 10."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=3000), rng.exponential(100, 3000)])
    y = (rng.random(3000) < 1 / (1 + np.exp(4 - 2 * X[:, 0]))).astype(int)

    def costs(X):
        table = np.zeros((len(X), 2, 2))
        table[:, 0, 1], table[:, 1, 0] = X[:, 1], 10
        return table

    clf = MinimumCostClassifier(model(), costs).fit(X, y)
    p = clf.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(clf.predict(X), p * X[:, 1] > (1 - p) * 10)
    assert clf.score(X, y) == pytest.approx(-expected_cost(y, p, costs(X)))
    # Cheaper than one threshold for all amounts, and than the more probable class.
    mean = costs(X).mean(axis=0)
    one = MinimumCostClassifier(model(), mean).fit(X, y)
    paid = {name: costs(X)[np.arange(3000), c.predict(X), y].mean() for name, c in
            (("of samples", clf), ("mean", one), ("class", clf.estimator_))}  # fmt: skip
    assert paid["of samples"] < paid["mean"] < paid["class"]


@pytest.mark.slow
def test_calibrated_inside_and_in_a_search(iris):
    X, y = iris
    inside = PostHocCalibratedClassifier(model(), "temperature", cv=3)
    clf = MinimumCostClassifier(inside, COSTS)
    name = "estimator__estimator__logisticregression__C"
    search = GridSearchCV(clf, {name: [1e-4, 1.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {name: 1.0}
    # The score of the search is minus the mean cost.
    left = cross_val_predict(clf.set_params(**search.best_params_), X, y, cv=3)
    cost = np.mean(np.asarray(COSTS, dtype=float)[left, y])
    assert -search.best_score_ == pytest.approx(cost, abs=1e-9)


def test_parameters_of_fit_reach_the_classifier(iris):
    X, y = iris
    weight = np.where(y == 0, 0.01, 1)
    plain = MinimumCostClassifier(LogisticRegression(max_iter=1000), COSTS).fit(X, y)
    given = MinimumCostClassifier(LogisticRegression(max_iter=1000), COSTS)
    given.fit(X, y, sample_weight=weight)
    assert np.abs(plain.predict_proba(X) - given.predict_proba(X)).max() > 0.01


@pytest.mark.parametrize(
    ("costs", "decisions", "message"),
    [
        ([[0, 1], [1, 0]], None, r"costs must have shape \(n_decisions, 3\)"),
        (np.ones((150, 3, 3)), None, "or be a function of X"),
        ([*COSTS, [1, 1, 1]], None, "decisions must name the rows of costs unless they are the 3"),
        (COSTS, ["a"], "decisions must have one entry for every row of costs, 3"),
        (np.full((3, 3), np.inf), None, "costs must be finite"),
    ],
)
def test_errors(iris, costs, decisions, message):
    with pytest.raises(ValueError, match=message):
        MinimumCostClassifier(model(), costs, decisions=decisions).fit(*iris)


def test_dask():
    da = pytest.importorskip("dask.array")
    X, y = load_iris(return_X_y=True)
    clf = MinimumCostClassifier(model(), COSTS).fit(X, y)
    chunks = da.from_array(X, chunks=(40, 4))
    np.testing.assert_array_equal(clf.predict(chunks).compute(), clf.predict(X))
    np.testing.assert_allclose(clf.expected_costs(chunks).compute(), clf.expected_costs(X))
