"""KMeansPrototypeScorer: distance to the nearest centroid."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
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


class ArrayLike:
    """Forbids the functions of numpy, as a lazy array may."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)

    def __array_function__(self, func, types, args, kwargs):
        raise TypeError(f"no {func.__name__} here")


def test_labels_that_numpy_functions_refuse():
    X, y = make_blobs(30, centers=3, random_state=0)
    scorer = KMeansPrototypeScorer(random_state=0).fit(ArrayLike(X), ArrayLike(y))
    assert len(scorer.cluster_centers_) == 3


def test_labels_are_ignored_where_the_number_is_given():
    X = np.arange(8.0).reshape(4, 2)
    scorer = KMeansPrototypeScorer(2, random_state=0)
    expected = scorer.fit(X).difficulty(X)
    np.testing.assert_array_equal(scorer.fit(X, [0.5, 1.0, np.nan, 2.0]).difficulty(X), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_whose_squares_overflow(dtype):
    X = np.random.default_rng(0).uniform(-1, 1, size=(50, 3)).astype(dtype)
    X[0, 0] = 1
    limit = np.sqrt(np.finfo(dtype).max / X.size) / 2
    fits = KMeansPrototypeScorer(2, random_state=0).fit(X * (0.99 * limit))
    assert np.isfinite(fits.difficulty(X * (0.99 * limit))).all()
    message = r"X must hold values up to .* squared distances do not overflow in float.*, got "
    with pytest.raises(ValueError, match=message):
        KMeansPrototypeScorer(2).fit(X * (1.01 * limit))
    with pytest.raises(ValueError, match=message):
        fits.difficulty(X * (13 * limit))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 2], "X and y must have the same number of rows, got 4 and 3"),
        ([], "X and y must have the same number of rows, got 4 and 0"),
        ([0, 1, np.nan, 1], "Input y contains NaN"),
        ([0.0, 1.0, np.inf, 1.0], "Input y contains infinity"),
        ([0.1, 0.2, 0.3, 0.4], "Unknown label type"),
    ],
)
def test_labels_that_are_counted_are_checked(y, message):
    with pytest.raises(ValueError, match=message):
        KMeansPrototypeScorer().fit(np.ones((4, 2)), y)


def test_bad_input():
    X = np.ones((4, 2))
    with pytest.raises(ValueError, match="n_clusters must be given where y is None"):
        KMeansPrototypeScorer().fit(X)
    with pytest.raises(ValueError, match="'n_clusters' parameter"):
        KMeansPrototypeScorer(0).fit(X)
    with pytest.raises(ValueError, match="sample_weight must be finite and not negative"):
        KMeansPrototypeScorer(1).fit(X, sample_weight=[-1, 1, 1, 1])


def test_defaults_are_those_of_k_means():
    ours, theirs = KMeansPrototypeScorer().get_params(), KMeans().get_params()
    names = set(ours) - {"n_clusters"}
    assert {name: ours[name] for name in names} == {name: theirs[name] for name in names}
