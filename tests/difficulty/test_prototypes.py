"""KMeansPrototypeScorer: distance to the nearest centroid."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from skcalib.difficulty import KMeansPrototypeScorer


def test_distance_to_the_nearest_centroid():
    X, y = make_blobs(90, centers=3, cluster_std=0.3, random_state=0)
    scorer = KMeansPrototypeScorer(random_state=0).fit(X, y)
    assert scorer.cluster_centers_.shape == (3, 2)
    by_hand = [min(np.linalg.norm(x - c) for c in scorer.cluster_centers_) for x in X]
    np.testing.assert_allclose(scorer.difficulty(X), by_hand, atol=1e-9)
    np.testing.assert_array_equal(scorer.difficulty(X, y), scorer.difficulty(X))
    np.testing.assert_array_equal(scorer.score_samples(X), -scorer.difficulty(X))
    means = np.array([X[y == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(
        np.sort(scorer.cluster_centers_, axis=0), np.sort(means, axis=0), atol=1e-9
    )


def test_weight_zero_removes():
    X, _ = make_blobs(60, centers=2, cluster_std=0.2, random_state=1)
    X[:5] += 1000
    scorer = KMeansPrototypeScorer(2, random_state=0).fit(X, sample_weight=[0] * 5 + [1] * 55)
    assert np.abs(scorer.cluster_centers_).max() < 100


def test_random_state_repeats_the_fit():
    X = np.random.default_rng(0).normal(size=(100, 3))
    first, second = (KMeansPrototypeScorer(8, random_state=4).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.cluster_centers_, second.cluster_centers_)


def test_bad_input():
    X = np.ones((4, 2))
    with pytest.raises(ValueError, match="n_clusters must be given where y is None"):
        KMeansPrototypeScorer().fit(X)
    with pytest.raises(ValueError, match="'n_clusters' parameter"):
        KMeansPrototypeScorer(0).fit(X)
    with pytest.raises(ValueError, match="sample_weight must be finite and not negative"):
        KMeansPrototypeScorer(1).fit(X, sample_weight=[-1, 1, 1, 1])
