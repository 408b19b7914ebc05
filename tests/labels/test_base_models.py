import tracemalloc
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.datasets import flip_labels
from skcalib.difficulty import RMDScorer
from skcalib.labels import LabelIssueFinder
from skcalib.labels._base_models import (
    Neighbors,
    OutOfBag,
    OutOfBagByGroup,
    OutOfFold,
    Precomputed,
    diagnose_features,
    make_base_models,
)
from skcalib.utils import SkcalibWarning
from skcalib.utils._estimators import Folds

X, Y = load_iris(return_X_y=True)
CLASSES = np.unique(Y)


def test_neighbors_vote_without_the_sample_and_with_weights():
    weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    found = Neighbors(X, weight).distances(Y, CLASSES)
    best = []
    for number in (5, 15, 40):
        p = np.zeros((len(X), 3))
        for i in range(len(X)):
            far = ((X - X[i]) ** 2).sum(axis=1)
            far[i] = np.inf
            for j in np.argsort(far, kind="stable")[:number]:
                p[i, Y[j]] += weight[j]
        p /= np.maximum(p.sum(axis=1, keepdims=True), 1e-30)
        p = (0.5 * number * p + 1 / 3) / (0.5 * number + 1)
        best.append((weight @ np.log(p[np.arange(len(X)), Y]), p))
    expected = max(best, key=lambda pair: pair[0])[1]
    # Two samples as far as each other may change places at the end of the list.
    assert np.mean(np.abs(np.exp(-0.5 * found) - expected).max(axis=1) > 1e-5) < 0.05


@pytest.mark.slow
def test_a_forest_predicts_out_of_bag():
    forest = RandomForestClassifier(100, min_samples_leaf=2, random_state=0)
    found = np.exp(-0.5 * OutOfBag(forest, X, None).distances(Y, CLASSES))
    forest = RandomForestClassifier(100, min_samples_leaf=2, random_state=0, oob_score=True)
    votes = forest.fit(X, Y).oob_decision_function_
    np.testing.assert_allclose(found, (100 * votes + 1 / 3) / 101, rtol=1e-5)


def test_weights_reach_the_classifiers_of_the_folds():
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, len(X)).astype(float)
    half = np.arange(len(X)) % 2
    parts = [(np.flatnonzero(half == k), np.flatnonzero(half != k)) for k in (0, 1)]
    folds = Folds(parts, len(X))
    found = OutOfFold(GaussianNB(), X, weight, folds).distances(Y, CLASSES)
    train, test = parts[0]
    fitted = GaussianNB().fit(X[train], Y[train], weight[train])
    expected = np.maximum(fitted.predict_proba(X[test]), np.finfo(float).eps)
    np.testing.assert_allclose(np.exp(-0.5 * found[test]), expected)
    plain = OutOfFold(GaussianNB(), X, None, folds).distances(Y, CLASSES)
    assert np.abs(plain - found).max() > 0.1


@pytest.mark.slow
def test_the_default_are_judges_of_standardized_features():
    models = make_base_models(None, X, Y, None, None, None, has_groups=False)
    assert list(models) == ["distances", "logistic regression", "neighbors", "forest"]
    np.testing.assert_allclose(models["neighbors"].nearest.shape, (150, 40))
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(models["logistic regression"].X, scaled)
    one = make_base_models(None, X * [1e6, 1, 1e-6, 1], Y, None, None, None, has_groups=False)
    for name, model in one.items():
        changed = model.distances(Y, CLASSES)[:]
        np.testing.assert_allclose(changed, models[name].distances(Y, CLASSES)[:], rtol=1e-3)


def test_size_decides_which_models_take_part(monkeypatch):
    for name in ("MOST_OF_REGRESSION", "MOST_OF_NEIGHBORS", "MOST_OF_FOREST"):
        monkeypatch.setattr(f"skcalib.labels._base_models.{name}", 1.0)
    assert list(make_base_models(None, X, Y, None, None, None, has_groups=False)) == ["distances"]


def test_groups_are_in_no_two_folds():
    groups = np.arange(len(X)) // 3
    models = make_base_models(None, X, Y, None, None, groups, has_groups=True)
    assert list(models) == ["logistic regression", "neighbors", "forest"]
    for train, test in models["logistic regression"].folds:
        assert not np.isin(groups[test], groups[train]).any()
    assert not (groups[models["neighbors"].nearest] == groups[:, None]).any()
    one = make_base_models(
        [GaussianNB(), LogisticRegression()], X, Y, None, 3, groups, has_groups=True
    )
    assert list(one) == ["GaussianNB", "LogisticRegression"]
    assert one["GaussianNB"].folds is one["LogisticRegression"].folds


@pytest.mark.slow
def test_a_forest_is_out_of_bag_by_group():
    # Triplets with the same label, drawn at random: a model fitted to a duplicate predicts it.
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(100), 3)
    features = rng.normal(size=(100, 5))[groups] + 0.01 * rng.normal(size=(300, 5))
    labels, classes = rng.integers(0, 2, 100)[groups], np.arange(2)
    forest = RandomForestClassifier(100, min_samples_leaf=2, random_state=0)

    def accuracy(model):
        return np.mean(model.distances(labels, classes).argmin(axis=1) == labels)

    assert accuracy(OutOfBag(forest, features, None)) > 0.9
    assert accuracy(OutOfBagByGroup(forest, features, None, groups)) < 0.65
    # Without duplicates it is the forest of scikit-learn, but for the trees drawn.
    alone = OutOfBagByGroup(forest, X, None, np.arange(len(X))).distances(Y, np.unique(Y))
    usual = OutOfBag(forest, X, None).distances(Y, np.unique(Y))
    assert np.mean(alone.argmin(axis=1) == usual.argmin(axis=1)) > 0.85


def test_columns_of_probabilities_are_named_or_in_the_order_of_the_labels():
    pd = pytest.importorskip("pandas")
    words = np.array(["b", "c", "a"])[Y]
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=len(X))
    sorted_ = Precomputed(proba, words)
    np.testing.assert_array_equal(sorted_.classes, ["a", "b", "c"])
    expected = -2 * np.log(proba)
    np.testing.assert_allclose(sorted_.distances(words, sorted_.classes)[:], expected)
    named = Precomputed(pd.DataFrame(proba, columns=["c", "a", "b"]), words)
    np.testing.assert_allclose(named.distances(words, named.classes)[:], expected[:, [1, 2, 0]])
    more = Precomputed(pd.DataFrame(np.eye(4)[Y], columns=["b", "c", "a", "d"]), words)
    np.testing.assert_array_equal(more.classes, ["a", "b", "c", "d"])
    for wrong, message in [
        (pd.DataFrame(proba, columns=["x", "y", "z"]), "y must hold"),
        (
            proba[:, :2] / proba[:, :2].sum(axis=1, keepdims=True),
            "X must have one column for each class in y",
        ),
        (X, "X must hold probabilities in"),
    ]:
        with pytest.raises(ValueError, match=message):
            Precomputed(wrong, words)


def test_columns_of_text_get_an_error_that_says_what_to_do():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"length": X[:, 0], "size": "medium"})
    with pytest.raises(ValueError, match="got column 'size' of other values; make_pipeline"):
        make_base_models(None, frame, Y, None, None, None, has_groups=False)
    with pytest.raises(ValueError, match="got column 'size' of other values; make_pipeline"):
        make_base_models(
            None, frame.astype({"size": "category"}), Y, None, None, None, has_groups=False
        )
    texts = ["some words"] * len(Y)
    for given in (texts, np.array(texts), pd.Series(texts)):
        with pytest.raises(ValueError, match=r"got texts; make_pipeline.*into numbers"):
            make_base_models(None, given, Y, None, None, None, has_groups=False)


def test_a_sparse_array_gets_an_error_that_names_a_base_model_that_takes_it():
    sparse = csr_array(np.maximum(X, 0))
    with pytest.raises(TypeError, match=r"X must be dense .* in LabelIssueFinder\(Logistic"):
        LabelIssueFinder().fit(sparse, Y)
    finder = LabelIssueFinder(LogisticRegression()).fit(sparse, Y)
    assert finder.label_proba_.shape == (len(Y), len(np.unique(Y)))


def test_scales_that_differ_are_named_where_they_matter():
    unequal = X * [1e4, 1, 1, 1]
    for model in (LogisticRegression(), KNeighborsClassifier(), RMDScorer(shrinkage="auto")):
        (remark,) = diagnose_features([GaussianNB(), model], unequal, Y)
        assert "differ by a factor of" in remark
        assert type(model).__name__ in remark
        assert not diagnose_features(model, X, Y)
        assert not diagnose_features(make_pipeline(StandardScaler(), model), unequal, Y)
    for model in (None, "precomputed", RandomForestClassifier(), GaussianNB(), RMDScorer()):
        assert not diagnose_features(model, unequal, Y)
    assert not diagnose_features(LogisticRegression(), np.array([["a", "b"]]), Y)


def test_groups_of_probabilities_at_hand_are_refused():
    y = np.arange(30) % 3
    with pytest.raises(ValueError, match=r"^groups must be None for precomputed probabilities"):
        LabelIssueFinder("precomputed").fit(np.eye(3)[y], y, groups=y)


@pytest.mark.slow
def test_samples_that_no_fold_can_learn_from():
    # Out of fold, a single sample of one of two classes leaves one class to learn.
    X = np.array([[0.0, 1.0], [3.0, 1.2], [3.1, 0.9], [2.9, 1.1]])
    with pytest.warns(SkcalibWarning, match="features hardly predict"):
        finder = LabelIssueFinder().fit(X, [0, 1, 1, 1])
    assert "logistic regression" not in finder.base_models_
    np.testing.assert_allclose(finder.label_proba_.sum(axis=1), 1.0)


def test_missing_values_are_named_before_anything_is_fitted():
    X = np.array([[0.0, 1.0], [np.nan, 1.2], [3.1, 0.9], [2.9, 1.1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="X contains NaN"):
            LabelIssueFinder().fit(X, [0, 0, 1, 1])


def _many_digits(name):
    X, y = load_digits(return_X_y=True)
    given, _ = flip_labels(y, fraction=0.2, random_state=0)
    given[7] = 77  # alone in its class
    X += np.random.default_rng(0).normal(size=X.shape)
    if name == "precomputed":
        proba = GaussianNB(var_smoothing=0.1).fit(X, given).predict_proba(X)
        return name, 0.9 * proba + 0.1 / proba.shape[1], given
    shrunk = RMDScorer(shrinkage="auto")
    return (shrunk if name == "distances" else [shrunk, GaussianNB()]), X, given


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:The least populated class", "ignore::skcalib.utils.SkcalibWarning"
)
@pytest.mark.parametrize("name", ["precomputed", "distances", "several"])
def test_blocks_of_samples_are_scored_as_all_at_once(name, monkeypatch):
    estimator, X, given = _many_digits(name)
    weight = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    whole = LabelIssueFinder(estimator).fit(X, given, weight)
    monkeypatch.setattr("skcalib.labels._base_models._BLOCK", 1000)
    monkeypatch.setattr("skcalib.labels._em.KEPT_ELEMENTS", 0)
    blocks = LabelIssueFinder(estimator).fit(X, given, weight)
    np.testing.assert_allclose(blocks.label_proba_, whole.label_proba_, rtol=0, atol=1e-10)
    for column in ("margin", "difficulty"):
        found = blocks.issues_[column], whole.issues_[column]
        np.testing.assert_allclose(*found, rtol=1e-10, atol=1e-10)
    for column in ("suggested_label", "is_issue"):
        np.testing.assert_array_equal(blocks.issues_[column], whole.issues_[column])
    assert blocks.noise_rate_interval_ == pytest.approx(whole.noise_rate_interval_, abs=1e-10)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
def test_of_many_probabilities_on_disk_one_array_is_made(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 50, 40_000)
    proba = np.lib.format.open_memmap(tmp_path / "p.npy", "w+", np.float64, (len(y), 50))
    proba[:] = 0.2 / 49
    proba[np.arange(len(y)), np.where(rng.random(len(y)) < 0.1, 0, y)] = 0.8
    monkeypatch.setattr("skcalib.labels._noise_model.BLOCK_ELEMENTS", 1)
    monkeypatch.setattr("skcalib.labels._base_models._BLOCK", 2**14)
    monkeypatch.setattr("skcalib.labels._em.KEPT_ELEMENTS", 0)
    tracemalloc.start()
    LabelIssueFinder("precomputed", noise="random").fit(proba, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.2 * proba.nbytes  # `label_proba_` has the size of the input


def test_distances_are_those_without_the_sample_as_of_a_new_one():
    weight = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    scorer = RMDScorer(relative=False, shrinkage="auto")
    model = make_base_models(scorer, X, Y, weight, None, None, has_groups=False)[
        "RelativeMahalanobisScorer"
    ]
    plain = scorer.fit(X, Y, weight).leave_one_out_transform(X, Y, weight)
    size = np.bincount(Y, weight)
    expected = plain * size / (size + 1)
    for i, label in enumerate(Y):
        if weight[i]:
            m = size[label] - 1
            expected[i, label] = plain[i, label] * m / (m + 1)
    found = model.distances(Y, CLASSES)
    np.testing.assert_allclose(found.filled(), expected)
    np.testing.assert_allclose(found[np.array([77, 3])], expected[[77, 3]])


def test_probabilities_in_a_list_of_models_are_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"list of scorers and classifiers, got 'precomputed'"):
        LabelIssueFinder(["precomputed", GaussianNB()]).fit(X, y)
