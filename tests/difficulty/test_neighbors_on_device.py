"""Neighbors of tensors, searched where they lie."""

import copy
import pickle

import numpy as np
import pytest
import torch

from skcalib.difficulty import KNNScorer, _neighbors
from skcalib.difficulty._neighbors import NeighborSearch, NeighborVote


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    monkeypatch.setattr(_neighbors, "TILE_SIZE", 256)
    monkeypatch.setattr(_neighbors, "BLOCK_SIZE", 256)
    monkeypatch.setattr(_neighbors, "TILE_TRAIN", 32)


def _data(n=150, d=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) + 100


def _sorted(train, queries):
    return np.array([np.sort(np.linalg.norm(train - query, axis=1)) for query in queries])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
@pytest.mark.parametrize("k", [1, 5, 150])
def test_distance_to_the_kth_neighbor(device, k, dtype):
    train = torch.tensor(_data(), device=device).to(dtype)
    queries = torch.tensor(_data(20, seed=1), device=device).to(dtype)
    scorer = KNNScorer(k).fit(train)
    expected = _sorted(train.double().cpu().numpy(), queries.double().cpu().numpy())[:, k - 1]
    for asked in (queries, queries.cpu().numpy()):
        found = scorer.difficulty(asked)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=3e-6)
    on_host = KNNScorer(k).fit(train.double().cpu().numpy())
    np.testing.assert_allclose(on_host.difficulty(queries), expected, rtol=3e-6)
    np.testing.assert_allclose(on_host.score_samples(queries), -expected, rtol=3e-6)


@pytest.mark.slow
def test_samples_do_not_go_to_the_host(device, trips):
    train = torch.tensor(_data(), device=device)
    scorer = KNNScorer(4).fit(train)
    scorer.difficulty(train)
    scorer.fit_difficulty(train)
    assert max(trips) == 5 * 150  # the neighbors


@pytest.mark.parametrize("normalize", [False, True])
def test_training_samples_are_scored_by_the_others(device, normalize):
    train = _data()
    train[7] = train[3]
    scorer = KNNScorer(3, normalize=normalize)
    np.testing.assert_allclose(
        scorer.fit_difficulty(torch.tensor(train, device=device)),
        scorer.fit_difficulty(train),
        rtol=3e-6,
    )


def test_tight_clusters_are_told_apart(device):
    # Distances of 1e-4 between samples of length 1: their squares are below a digit of float32.
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(6, 40)) / 6
    train = np.repeat(centers, 30, axis=0) + 1e-5 * rng.normal(size=(180, 40))
    found = KNNScorer(4).fit(torch.tensor(train, device=device)).difficulty(train)
    train32 = (train - train.mean(axis=0)).astype(np.float32)
    np.testing.assert_allclose(found, _sorted(train32, train32)[:, 3], rtol=1e-2)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_votes_are_those_of_arrays(device, metric):
    train, queries = _data() - 100, _data(30, seed=2) - 100
    queries[:5] = train[:5]
    classes = np.arange(150) % 3
    both = []
    for place in (np.asarray, lambda values: torch.tensor(values, device=device)):
        search = NeighborSearch(5, metric=metric, algorithm="brute")
        vote = NeighborVote(search).fit(place(train), classes)
        neighbors = search.kneighbors(place(queries), one_more=True)
        itself = vote.find_self(place(queries), neighbors)
        both.append((neighbors, itself, vote.proba(neighbors), vote.predict(place(queries))))
    for on_host, there in zip(*both):
        np.testing.assert_array_equal(there, on_host)
    assert itself[:5].tolist() == [0, 1, 2, 3, 4]


def test_directions_of_length_zero_have_neighbors(device):
    train = np.vstack([np.zeros((2, 3)), np.eye(3)])
    search = NeighborSearch(2, metric="cosine", algorithm="brute")
    neighbors = search.fit(torch.tensor(train, device=device)).kneighbors(np.zeros((1, 3)))
    assert sorted(neighbors[0]) == [0, 1]


def test_a_pickle_and_a_copy_need_no_device(device):
    train = _data()
    scorer = KNNScorer(4).fit(torch.tensor(train, device=device))
    content = pickle.dumps(scorer)
    assert b"torch" not in content
    for again in (pickle.loads(content), copy.deepcopy(scorer)):
        np.testing.assert_allclose(again.difficulty(train), scorer.difficulty(train), atol=1e-12)


def test_bad_values_are_named(device):
    train = torch.tensor(_data(), device=device)
    scorer = KNNScorer().fit(train)
    with pytest.raises(ValueError, match="expecting 40 features"):
        scorer.difficulty(train[:, :3])
    with pytest.raises(ValueError, match="must be finite in float32"):
        scorer.difficulty(1e300 * train)
    with pytest.raises(ValueError, match="n_neighbors must be at most"):
        scorer.fit(train[:3])
    with pytest.raises(ValueError, match="got one in row 1"):
        KNNScorer(1, normalize=True).fit(train * torch.tensor([[1.0], [0.0]] * 75, device=device))
    train[2, 2] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        scorer.fit(train)
