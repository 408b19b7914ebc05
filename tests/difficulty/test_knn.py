"""KNNScorer against distances one by one."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from skcalib.difficulty import KNNScorer, NoveltyDetector, cross_val_difficulty
from skcalib.selection import DifficultySelector


@pytest.fixture(params=["brute", "faiss"])
def algorithm(request):
    if request.param != "brute":
        pytest.importorskip(request.param)
    return request.param


def _sorted_distances(train, queries):
    train, queries = np.asarray(train, dtype=float), np.asarray(queries, dtype=float)
    return np.array([np.sort(np.linalg.norm(train - query, axis=1)) for query in queries])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_features", [3, 50])
@pytest.mark.parametrize("k", [1, 5, 60])
def test_distance_to_the_kth_neighbor(algorithm, n_features, k, dtype):
    rng = np.random.default_rng(0)
    train = (rng.normal(size=(60, n_features)) + 100).astype(dtype)
    queries = (rng.normal(size=(20, n_features)) + 100).astype(dtype)
    scorer = KNNScorer(k, algorithm=algorithm).fit(train)
    expected = _sorted_distances(train, queries)[:, k - 1]
    np.testing.assert_allclose(scorer.difficulty(queries), expected, rtol=3e-6)
    np.testing.assert_allclose(scorer.score_samples(queries), -expected, rtol=3e-6)


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [3, 50])
def test_training_samples_are_scored_by_the_others(algorithm, n_features):
    train = np.random.default_rng(1).normal(size=(40, n_features))
    train[5] = train[4]
    scorer = KNNScorer(3, algorithm=algorithm)
    in_turn = [_sorted_distances(np.delete(train, i, axis=0), train[[i]])[0, 2] for i in range(40)]
    np.testing.assert_allclose(scorer.fit_difficulty(train), in_turn, rtol=3e-6)
    np.testing.assert_allclose(
        scorer.fit_difficulty(train),
        cross_val_difficulty(KNNScorer(3), train, np.arange(40) % 2, cv=_leave_one_out(40)),
        rtol=3e-6,
    )


def _leave_one_out(n):
    return [(np.delete(np.arange(n), i), np.array([i])) for i in range(n)]


def test_many_duplicates_are_at_distance_zero(algorithm):
    train = np.zeros((20, 40))
    train[-1] = 3.0
    difficulty = KNNScorer(2, algorithm=algorithm).fit_difficulty(train)
    np.testing.assert_allclose(difficulty, [*np.zeros(19), 3 * np.sqrt(40)], rtol=1e-6)


def test_normalize_is_a_step_before():
    rng = np.random.default_rng(2)
    train, queries = rng.normal(size=(50, 8)), 1e30 * rng.normal(size=(20, 8))
    scorer = KNNScorer(normalize=True).fit(train)
    piped = make_pipeline(Normalizer(), KNNScorer()).fit(train)
    np.testing.assert_allclose(
        scorer.score_samples(queries), piped.score_samples(queries), rtol=1e-5
    )
    for call in (scorer.fit, scorer.difficulty):
        with pytest.raises(
            ValueError, match="0 everywhere where normalize is True, got one in row 1"
        ):
            call(_with_a_row_of_zeros(train))


def _with_a_row_of_zeros(train):
    spoiled = train.copy()
    spoiled[1] = 0
    return spoiled


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_close_samples_keep_their_digits(algorithm, offset):
    rng = np.random.default_rng(3)
    centers = np.repeat([[-1.0], [1.0]], 40, axis=0)
    train = centers + 1e-3 * rng.normal(size=(80, 64)) + offset
    scorer = KNNScorer(4, algorithm=algorithm).fit(train)
    reference = NearestNeighbors(algorithm="kd_tree").fit(train).kneighbors(train, 4)[0][:, -1]
    np.testing.assert_allclose(scorer.difficulty(train), reference, rtol=1e-3)


@pytest.mark.slow
def test_frames_pipelines_pickles():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(size=(50, 3)), columns=list("abc"))
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), KNNScorer())
    pipeline.fit(frame)
    assert pipeline[-1].feature_names_in_.tolist() == list("abc")
    restored = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(restored.score_samples(frame), pipeline.score_samples(frame))
    assert set(NoveltyDetector(clone(pipeline)).fit(frame).predict(frame)) == {1, -1}
    kept = DifficultySelector(KNNScorer(), fraction=0.5).fit(frame).get_support()
    difficulty = KNNScorer().fit_difficulty(frame)
    assert difficulty[kept].max() <= difficulty[~kept].min()


def test_bad_input():
    X = np.random.default_rng(5).normal(size=(6, 2))
    with pytest.raises(
        ValueError, match="at most the number of samples in X, got 7 with n_samples=6"
    ):
        KNNScorer(7).fit(X)
    with pytest.raises(
        ValueError, match="the number of other samples in X, got 6 with n_samples=6"
    ):
        KNNScorer(6).fit_difficulty(X)
    with pytest.raises(ValueError, match="'n_neighbors' parameter of KNNScorer"):
        KNNScorer(0).fit(X)
    with pytest.raises(ValueError, match="X must be finite in float32"):
        KNNScorer(2).fit(np.vstack([X, [[1e300, 0.0]]]))


def test_differences_that_float32_loses_are_an_error(algorithm):
    X = np.random.default_rng(0).normal(size=(40, 3))
    # Each scale is exact, so the distances are, too.
    for scale in (2.0**-100, 2.0**100):
        found = KNNScorer(algorithm=algorithm).fit(X * scale).difficulty(X * scale)
        expected = KNNScorer(algorithm=algorithm).fit(X).difficulty(X)
        np.testing.assert_allclose(found / scale, expected, rtol=1e-6, atol=1e-7)
    with pytest.raises(ValueError, match="X must have differences of 1e-38 or more"):
        KNNScorer(algorithm=algorithm).fit(X * 1e-200)
    assert not KNNScorer(2).fit(np.zeros((9, 2))).difficulty([[0, 0]]).any()
