import sys

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from skcalib.difficulty.depth import _neighbors
from skcalib.difficulty.depth._neighbors import NeighborVote, drop, resolve_algorithm


@pytest.fixture(params=["brute", "faiss"])
def algorithm(request):
    if request.param != "brute":
        pytest.importorskip(request.param)
    return request.param


def vote(X, classes, k, algorithm, metric="euclidean"):
    return NeighborVote(k, metric=metric, algorithm=algorithm).fit(X, classes)


def brute_neighbors(train, queries, k, exclude=None):
    """Sort all differences of coordinates, row by row, in float64."""
    found = []
    for i, query in enumerate(np.asarray(queries, dtype=np.float64)):
        squared = ((np.asarray(train, dtype=np.float64) - query) ** 2).sum(axis=1)
        if exclude is not None and exclude[i] >= 0:
            squared[exclude[i]] = np.inf
        found.append(sorted(np.argsort(squared)[:k]))
    return np.array(found)


@pytest.mark.parametrize("n_features", [3, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbors_equal_sorting_all_distances(algorithm, n_features, dtype):
    rng = np.random.default_rng(0)
    train = rng.normal(size=(300, n_features)).astype(dtype)
    queries = rng.normal(size=(70, n_features)).astype(dtype)
    classes = rng.integers(0, 4, 300)
    for k in (1, 9, 300):
        fitted = vote(train, classes, k, algorithm)
        expected = brute_neighbors(train, queries, k)
        np.testing.assert_array_equal(np.sort(fitted.kneighbors(queries)), expected)
        counts = np.array([np.bincount(classes[row], minlength=4) for row in expected])
        np.testing.assert_allclose(fitted.predict_proba(queries), counts / k)
        assert fitted.predict(queries).tolist() == [int(np.argmax(row)) for row in counts]


@pytest.mark.parametrize("n_features", [3, 40])
def test_far_from_the_origin(algorithm, n_features):
    rng = np.random.default_rng(1)
    train = rng.normal(size=(200, n_features)) + 1e6
    queries = rng.normal(size=(50, n_features)) + 1e6
    found = vote(train, np.zeros(200, dtype=int), 5, algorithm).kneighbors(queries)
    np.testing.assert_array_equal(np.sort(found), brute_neighbors(train, queries, 5))


@pytest.mark.parametrize("n_features", [3, 256])
def test_tight_clusters_far_from_each_other(algorithm, n_features):
    # Centering does not help here: in float32, |x|^2 - 2xy + |y|^2 is all rounding. Large enough
    # for faiss to work by matrix products.
    rng = np.random.default_rng(2)
    centers = np.repeat([[-1.0], [1.0]], 300, axis=0)
    train = (centers + 1e-4 * rng.normal(size=(600, n_features))).astype(np.float32)
    queries = (centers + 1e-4 * rng.normal(size=(600, n_features))).astype(np.float32)
    found = vote(train, np.zeros(600, dtype=int), 5, algorithm).kneighbors(queries)
    expected = brute_neighbors(train, queries, 5)
    # Where two distances agree to the last digit of float32, either row may be taken.
    assert (np.sort(found) == expected).all(axis=1).mean() > 0.98


@pytest.mark.parametrize("n_features", [4, 40])
@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_scale_neither_overflows_nor_vanishes(algorithm, scale, n_features):
    rng = np.random.default_rng(3)
    train, queries = rng.normal(size=(60, n_features)), rng.normal(size=(20, n_features))
    train[:, 0] = queries[:, 0] = 0.0
    found = vote(train * scale, np.zeros(60, dtype=int), 5, algorithm).kneighbors(queries * scale)
    np.testing.assert_array_equal(np.sort(found), brute_neighbors(train, queries, 5))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_activations_that_are_not_finite(algorithm, bad):
    X = np.array([[0.0, 1.0], [2.0, bad]])
    classes = np.array([0, 1])
    with pytest.raises(ValueError, match="Activations must be finite in float32"):
        vote(X, classes, 1, algorithm)
    with pytest.raises(ValueError, match="Activations must be finite in float32"):
        vote(X[:1], classes[:1], 1, algorithm).kneighbors(X)


def test_constant_layer(algorithm):
    fitted = vote(np.ones((6, 40)), np.array([0, 0, 0, 0, 0, 1]), 6, algorithm)
    np.testing.assert_allclose(fitted.predict_proba(np.ones((2, 40))), [[5 / 6, 1 / 6]] * 2)


def test_cosine(algorithm):
    rng = np.random.default_rng(4)
    train, queries = rng.normal(size=(100, 6)), rng.normal(size=(30, 6))
    found = vote(train, np.zeros(100, dtype=int), 7, algorithm, "cosine").kneighbors(queries)
    for row, query in zip(found, queries):
        angle = [-(x @ query) / (np.linalg.norm(x) * np.linalg.norm(query)) for x in train]
        assert sorted(row) == sorted(np.argsort(angle)[:7])


def test_other_metrics_come_from_sklearn():
    rng = np.random.default_rng(5)
    train, queries = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    classes = rng.integers(0, 3, 50)
    reference = KNeighborsClassifier(4, metric="manhattan").fit(train, classes)
    fitted = vote(train, classes, 4, "brute", "manhattan")
    np.testing.assert_allclose(fitted.predict_proba(queries), reference.predict_proba(queries))


def test_vote_ties_go_to_the_smallest_label(algorithm):
    train = np.array([[0.0], [1.0], [2.0], [3.0]])
    classes = np.array([2, 1, 1, 2])
    reference = KNeighborsClassifier(4).fit(train, classes)
    fitted = vote(train, classes, 4, algorithm)
    assert fitted.predict(np.array([[1.4]])).tolist() == [1]
    assert reference.predict([[1.4]]).tolist() == [1]


def neighbors_without_self(fitted, X, y_encoded=None):
    neighbors = fitted.kneighbors(X, one_more=True)
    return drop(neighbors, fitted.find_self(X, neighbors, y_encoded))


@pytest.mark.parametrize("n_features", [3, 40])
def test_training_samples_are_left_out_and_new_ones_are_not(algorithm, n_features):
    rng = np.random.default_rng(6)
    train = rng.normal(size=(80, n_features))
    queries = train.copy()
    queries[::3] = rng.normal(size=queries[::3].shape)
    exclude = np.where(np.arange(80) % 3, np.arange(80), -1)
    fitted = vote(train, np.zeros(80, dtype=int), 6, algorithm)
    neighbors = fitted.kneighbors(queries, one_more=True)
    np.testing.assert_array_equal(fitted.find_self(queries, neighbors), exclude)
    np.testing.assert_array_equal(
        np.sort(neighbors_without_self(fitted, queries)),
        brute_neighbors(train, queries, 6, exclude),
    )


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_a_sample_is_itself_in_any_number_type_and_layout(algorithm, metric):
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32) + 5
    X[7, 0] = 0.0
    fitted = vote(X, np.zeros(20, dtype=int), 4, algorithm, metric)
    minus_zero = X.copy()
    minus_zero[7, 0] = -0.0
    for same in (X, X.astype(np.float64), np.asfortranarray(X), minus_zero):
        found = fitted.find_self(same, fitted.kneighbors(same, one_more=True))
        np.testing.assert_array_equal(found, np.arange(20))
    other = X * [1, 1, 1.001]
    assert (fitted.find_self(other, fitted.kneighbors(other, one_more=True)) == -1).all()


def test_labels_tell_duplicates_apart(algorithm):
    train = np.zeros((5, 2))
    train[4] = 1
    classes = np.array([0, 1, 1, 0, 0])
    fitted = vote(train, classes, 4, algorithm)
    queries = np.concatenate([train, [[2.0, 2.0]]])
    neighbors = fitted.kneighbors(queries, one_more=True)
    found = fitted.find_self(queries, neighbors, np.append(classes, 1))
    np.testing.assert_array_equal(classes[found[:5]], classes)
    np.testing.assert_array_equal(found == 4, [False] * 4 + [True, False])
    assert found[5] == -1
    # Without labels, or with one that no duplicate has, any of the duplicates will do.
    for labels in (None, np.full(6, -1)):
        found = fitted.find_self(queries, neighbors, labels)
        np.testing.assert_array_equal(found == 4, [False] * 4 + [True, False])
        assert (found[:4] >= 0).all()
        assert found[5] == -1


def test_a_sample_among_duplicates_does_not_vote_for_itself(algorithm):
    # Ten equal samples, one of them of class 1: whatever order they are found in.
    train = np.zeros((10, 2))
    classes = np.zeros(10, dtype=int)
    classes[4] = 1
    fitted = vote(train, classes, 9, algorithm)
    proba = fitted.vote(neighbors_without_self(fitted, train, classes))
    np.testing.assert_allclose(proba[4], [1.0, 0.0])
    np.testing.assert_allclose(proba[[0, 9]], [[8 / 9, 1 / 9]] * 2)


def test_drop_leaves_out_the_given_sample_or_the_last():
    neighbors = np.array([[3, 1, 2], [0, 4, 5], [6, 7, 8]])
    np.testing.assert_array_equal(drop(neighbors, np.array([1, -1, 9])), [[3, 2], [0, 4], [6, 7]])


def test_auto_depends_on_what_is_installed_alone(monkeypatch):
    monkeypatch.setattr(_neighbors, "find_spec", lambda name: None)
    assert resolve_algorithm("auto", "euclidean") == "brute"
    monkeypatch.setattr(_neighbors, "find_spec", lambda name: object())
    assert resolve_algorithm("auto", "euclidean") == "faiss"
    assert resolve_algorithm("auto", "manhattan") == "brute"
    assert resolve_algorithm("faiss", "cosine") == "faiss"
    assert resolve_algorithm("brute", "cosine") == "brute"
    with pytest.raises(ValueError, match="algorithm must be 'brute' where metric is neither"):
        resolve_algorithm("faiss", "manhattan")


def test_missing_faiss_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    fitted = vote(np.zeros((3, 40)), np.zeros(3, dtype=int), 1, "faiss")
    with pytest.raises(ImportError, match=r"pip install 'skcalib\[faiss\]'"):
        fitted.kneighbors(np.zeros((1, 40)))
