"""Nearest neighbors against sorting all distances."""

import sys

import numpy as np
import pytest

from skcalib.difficulty import _neighbors
from skcalib.difficulty._neighbors import NeighborSearch, drop


@pytest.fixture(params=["brute", "faiss"])
def algorithm(request):
    if request.param != "brute":
        pytest.importorskip(request.param)
    return request.param


def search(X, k, algorithm, metric="euclidean"):
    return NeighborSearch(k, metric=metric, algorithm=algorithm).fit(X)


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
    for k in (1, 9, 300):
        fitted = search(train, k, algorithm)
        expected = brute_neighbors(train, queries, k)
        np.testing.assert_array_equal(np.sort(fitted.kneighbors(queries)), expected)
        last = fitted.kneighbors(queries)[:, -1]
        distance = np.linalg.norm(queries.astype(float) - train.astype(float)[last], axis=1)
        np.testing.assert_allclose(fitted.distance(queries, last), distance, rtol=2e-6)


@pytest.mark.parametrize("n_features", [3, 40])
def test_far_from_the_origin(algorithm, n_features):
    rng = np.random.default_rng(1)
    train = rng.normal(size=(200, n_features)) + 1e6
    queries = rng.normal(size=(50, n_features)) + 1e6
    found = search(train, 5, algorithm).kneighbors(queries)
    np.testing.assert_array_equal(np.sort(found), brute_neighbors(train, queries, 5))


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [3, 256])
def test_tight_clusters_far_from_each_other(algorithm, n_features):
    # Centering does not help here: in float32, |x|^2 - 2xy + |y|^2 is all rounding. Large enough
    # for faiss to work by matrix products.
    rng = np.random.default_rng(2)
    centers = np.repeat([[-1.0], [1.0]], 300, axis=0)
    train = (centers + 1e-4 * rng.normal(size=(600, n_features))).astype(np.float32)
    queries = (centers + 1e-4 * rng.normal(size=(600, n_features))).astype(np.float32)
    found = search(train, 5, algorithm).kneighbors(queries)
    expected = brute_neighbors(train, queries, 5)
    # Where two distances agree to the last digit of float32, either row may be taken.
    assert (np.sort(found) == expected).all(axis=1).mean() > 0.98


@pytest.mark.parametrize("n_features", [4, 40])
@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_scale_neither_overflows_nor_vanishes(algorithm, scale, n_features):
    rng = np.random.default_rng(3)
    train, queries = rng.normal(size=(60, n_features)), rng.normal(size=(20, n_features))
    train[:, 0] = queries[:, 0] = 0.0
    found = search(train * scale, 5, algorithm).kneighbors(queries * scale)
    np.testing.assert_array_equal(np.sort(found), brute_neighbors(train, queries, 5))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_samples_that_are_not_finite(algorithm, bad):
    X = np.array([[0.0, 1.0], [2.0, bad]])
    with pytest.raises(ValueError, match="X must be finite in float32"):
        search(X, 1, algorithm)
    with pytest.raises(ValueError, match="X must be finite in float32"):
        search(X[:1], 1, algorithm).kneighbors(X)


def test_cosine(algorithm):
    rng = np.random.default_rng(4)
    train, queries = rng.normal(size=(100, 6)), rng.normal(size=(30, 6))
    found = search(train, 7, algorithm, "cosine").kneighbors(queries)
    for row, query in zip(found, queries):
        angle = [-(x @ query) / (np.linalg.norm(x) * np.linalg.norm(query)) for x in train]
        assert sorted(row) == sorted(np.argsort(angle)[:7])


@pytest.mark.parametrize("tiles", [(40, 7), (1, 64), (2**26, 2**16), (35, 3)])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_tiles_of_an_accelerator_give_the_nearest_of_all(monkeypatch, tiles, kind):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(_neighbors, "TILE_SIZE", tiles[0])
    monkeypatch.setattr(_neighbors, "TILE_TRAIN", tiles[1])
    rng = np.random.default_rng(5)
    train, queries = rng.normal(size=(64, 4)), rng.normal(size=(23, 4))
    every = np.square(queries[:, None] - train).sum(axis=2)
    for k in (1, 5, 64):
        squared, indices = _neighbors.find_nearest_in_tiles(
            torch.tensor(queries, dtype=getattr(torch, kind)), torch.tensor(train).float(), k
        )
        assert str(squared.dtype) == f"torch.{kind}"
        np.testing.assert_allclose(squared, np.sort(every)[:, :k], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(indices, np.argsort(every)[:, :k])


def test_drop_leaves_out_the_given_sample_or_the_last():
    neighbors = np.array([[3, 1, 2], [0, 4, 5], [6, 7, 8]])
    np.testing.assert_array_equal(drop(neighbors, np.array([1, -1, 9])), [[3, 2], [0, 4], [6, 7]])


def test_auto_depends_on_what_is_installed_alone(monkeypatch):
    def resolved(algorithm, metric):
        return NeighborSearch(5, metric=metric, algorithm=algorithm).algorithm

    monkeypatch.setattr(_neighbors, "find_spec", lambda name: None)
    assert resolved("auto", "euclidean") == "brute"
    monkeypatch.setattr(_neighbors, "find_spec", lambda name: object())
    assert resolved("auto", "euclidean") == "faiss"
    assert resolved("auto", "manhattan") == "brute"
    assert resolved("faiss", "cosine") == "faiss"
    assert resolved("brute", "cosine") == "brute"
    with pytest.raises(ValueError, match="algorithm must be 'brute' where metric is neither"):
        resolved("faiss", "manhattan")


def test_missing_faiss_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"pip install 'skcalib\[faiss\] @"):
        search(np.zeros((3, 40)), 1, "faiss")
