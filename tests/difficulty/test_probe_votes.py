"""Votes of the neighbors, and samples that do not vote for themselves."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from skcalib.difficulty._neighbors import NeighborSearch, NeighborVote, drop


@pytest.fixture(params=["brute", "faiss"])
def algorithm(request):
    if request.param != "brute":
        pytest.importorskip(request.param)
    return request.param


def vote(X, classes, k, algorithm, metric="euclidean"):
    search = NeighborSearch(k, metric=metric, algorithm=algorithm)
    return NeighborVote(search).fit(X, classes)


@pytest.mark.parametrize("n_classes", [1, 3, 1000])
@pytest.mark.parametrize("k", [1, 2, 9, 30])
def test_the_winner_has_most_votes_and_of_those_that_tie_the_smallest_label(k, n_classes):
    rng = np.random.default_rng(0)
    classes = rng.integers(0, n_classes, 500)
    fitted = vote(rng.normal(size=(500, 3)), classes, k, "brute")
    neighbors = rng.integers(0, 500, (200, k))
    counts = np.array([np.bincount(classes[row], minlength=n_classes) for row in neighbors])
    np.testing.assert_array_equal(fitted.winner(neighbors), counts.argmax(axis=1))
    np.testing.assert_allclose(
        fitted.proba(neighbors)[:, : counts.shape[1]], counts[:, : classes.max() + 1] / k
    )


def test_constant_layer(algorithm):
    fitted = vote(np.ones((6, 40)), np.array([0, 0, 0, 0, 0, 1]), 6, algorithm)
    np.testing.assert_allclose(
        fitted.proba(fitted.search.kneighbors(np.ones((2, 40)))), [[5 / 6, 1 / 6]] * 2
    )


def test_other_metrics_come_from_sklearn():
    rng = np.random.default_rng(5)
    train, queries = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    classes = rng.integers(0, 3, 50)
    reference = KNeighborsClassifier(4, metric="manhattan").fit(train, classes)
    fitted = vote(train, classes, 4, "brute", "manhattan")
    np.testing.assert_allclose(
        fitted.proba(fitted.search.kneighbors(queries)), reference.predict_proba(queries)
    )


def test_vote_ties_go_to_the_smallest_label(algorithm):
    train = np.array([[0.0], [1.0], [2.0], [3.0]])
    classes = np.array([2, 1, 1, 2])
    reference = KNeighborsClassifier(4).fit(train, classes)
    fitted = vote(train, classes, 4, algorithm)
    assert fitted.predict(np.array([[1.4]])).tolist() == [1]
    assert reference.predict([[1.4]]).tolist() == [1]


def neighbors_without_self(fitted, X, y_encoded=None):
    neighbors = fitted.search.kneighbors(X, one_more=True)
    return drop(neighbors, fitted.find_self(X, neighbors, y_encoded))


@pytest.mark.parametrize("n_features", [3, 40])
def test_training_samples_are_left_out_and_new_ones_are_not(algorithm, n_features):
    rng = np.random.default_rng(6)
    train = rng.normal(size=(80, n_features))
    queries = train.copy()
    queries[::3] = rng.normal(size=queries[::3].shape)
    exclude = np.where(np.arange(80) % 3, np.arange(80), -1)
    fitted = vote(train, np.zeros(80, dtype=int), 6, algorithm)
    neighbors = fitted.search.kneighbors(queries, one_more=True)
    np.testing.assert_array_equal(fitted.find_self(queries, neighbors), exclude)
    others = ((queries[:, None] - train) ** 2).sum(axis=2)
    others[np.arange(80) % 3 > 0, np.arange(80)[np.arange(80) % 3 > 0]] = np.inf
    np.testing.assert_array_equal(
        np.sort(neighbors_without_self(fitted, queries)), np.sort(np.argsort(others)[:, :6])
    )


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_a_sample_is_itself_in_any_number_type_and_layout(algorithm, metric):
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32) + 5
    X[7, 0] = 0.0
    fitted = vote(X, np.zeros(20, dtype=int), 4, algorithm, metric)
    minus_zero = X.copy()
    minus_zero[7, 0] = -0.0
    for same in (X, X.astype(np.float64), np.asfortranarray(X), minus_zero):
        found = fitted.find_self(same, fitted.search.kneighbors(same, one_more=True))
        np.testing.assert_array_equal(found, np.arange(20))
    other = X * [1, 1, 1.001]
    assert (fitted.find_self(other, fitted.search.kneighbors(other, one_more=True)) == -1).all()


def test_labels_tell_duplicates_apart(algorithm):
    train = np.zeros((5, 2))
    train[4] = 1
    classes = np.array([0, 1, 1, 0, 0])
    fitted = vote(train, classes, 4, algorithm)
    queries = np.concatenate([train, [[2.0, 2.0]]])
    neighbors = fitted.search.kneighbors(queries, one_more=True)
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
    proba = fitted.proba(neighbors_without_self(fitted, train, classes))
    np.testing.assert_allclose(proba[4], [1.0, 0.0])
    np.testing.assert_allclose(proba[[0, 9]], [[8 / 9, 1 / 9]] * 2)
