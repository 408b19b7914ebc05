"""Laws of RelativeMahalanobisScorer: streams, weights, affine maps, degenerate data."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ortho_group
from sklearn.covariance import oas

from skcalib.difficulty import RelativeMahalanobisScorer, RMDScorer
from skcalib.difficulty._gaussians import compute_shrinkage
from skcalib.utils import SkcalibWarning


def _blobs(n_samples=150, n_features=6, n_classes=5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_samples) % n_classes)
    means = rng.normal(size=(n_classes, n_features))
    return means[y] + rng.normal(size=(n_samples, n_features)), y


def _class_rank(scorer):
    return int(scorer._distances.form.class_weights.sum())


def _agree(left, right, X, y, atol=1e-9):
    np.testing.assert_allclose(left.transform(X), right.transform(X), atol=atol)
    np.testing.assert_allclose(left.difficulty(X, y), right.difficulty(X, y), atol=atol)
    np.testing.assert_array_equal(left.classes_, right.classes_)
    for name in ["class_count_", "means_", "mean_", "covariance_", "background_covariance_"]:
        np.testing.assert_allclose(getattr(left, name), getattr(right, name), atol=atol)


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_affine_invariance(relative, seed):
    X, y = _blobs()
    rng = np.random.default_rng(seed)
    stretch = 10.0 ** rng.uniform(-2, 2, 6)
    A = ortho_group.rvs(6, random_state=seed) * stretch @ ortho_group.rvs(6, random_state=seed + 9)
    moved = X @ A + 10 * rng.normal(size=6)
    left = RMDScorer(relative=relative).fit(X, y)
    right = RMDScorer(relative=relative).fit(moved, y)
    np.testing.assert_allclose(left.transform(X), right.transform(moved), atol=1e-6)
    np.testing.assert_allclose(left.difficulty(X, y), right.difficulty(moved, y), atol=1e-6)


def test_units_of_float32_features():
    X, y = _blobs()
    units = 10.0 ** np.array([-12, -6, 0, 3, 6, 12])
    left = RMDScorer().fit(X, y)
    right = RMDScorer().fit((X * units).astype(np.float32), y)
    np.testing.assert_allclose(
        left.difficulty(X, y), right.difficulty((X * units).astype(np.float32), y), atol=1e-3
    )


@pytest.mark.parametrize("sizes", [[150], [1, 2, 3, 144], [50, 50, 50]])
def test_partial_fit_in_any_chunking_and_order(sizes):
    X, y = _blobs()
    names = np.array(list("abcde"))[y]
    order = np.random.default_rng(1).permutation(150)
    stream = RMDScorer()
    for rows in np.split(order, np.cumsum(sizes)[:-1]):
        assert stream.partial_fit(X[rows], names[rows]) is stream
    _agree(stream, RMDScorer().fit(X, names), X, names)


def test_partial_fit_after_scoring_updates_the_scores():
    X, y = _blobs()
    stream = RMDScorer().partial_fit(X[:70], y[:70])
    stream.difficulty(X, y)
    _agree(stream.partial_fit(X[70:], y[70:]), RMDScorer().fit(X, y), X, y)


def test_announced_classes():
    X, y = _blobs()
    stream = RMDScorer().partial_fit(X[y < 4], y[y < 4], classes=range(5))
    assert np.isnan(stream.means_[4]).all()
    distances = stream.transform(X)
    assert np.isinf(distances[:, 4]).all()
    assert np.isfinite(distances[:, :4]).all()
    assert np.isfinite(stream.difficulty(X)).all()
    assert np.isinf(stream.difficulty(X[:3], [4, 4, 4])).all()
    _agree(
        stream.partial_fit(X[y == 4], y[y == 4], classes=[4, 3, 2, 1, 0]),
        RMDScorer().fit(X, y), X, y,
    )  # fmt: skip
    with pytest.raises(ValueError, match="y must hold labels among "):
        stream.partial_fit(X[:1], [9])
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        stream.partial_fit(X, y, classes=[0, 1])
    _agree(stream, RMDScorer().fit(X, y), X, y)


def test_one_class_is_an_error_at_the_first_use_of_a_stream():
    X, y = _blobs()
    stream = RMDScorer().partial_fit(X[y == 0], y[y == 0])
    with pytest.raises(ValueError, match="at least two classes"):
        stream.difficulty(X)
    assert RMDScorer(relative=False).fit(X[y == 0], y[y == 0]).difficulty(X).min() >= 0
    stream.partial_fit(X[y != 0], y[y != 0]).difficulty(X)


def test_merge_equals_the_union():
    X, y = _blobs()
    half = (np.arange(150) % 3 == 0) & (y < 4)
    left, right = RMDScorer().fit(X[half], y[half]), RMDScorer().fit(X[~half], y[~half])
    assert left.merge(right) is left
    _agree(left, RMDScorer().fit(X, y), X, y)
    with pytest.raises(ValueError, match="features of this scorer, 6 unnamed ones, got 3 unnamed"):
        left.merge(RMDScorer().fit(X[:, :3], y))
    with pytest.raises(TypeError, match="other must be such a scorer, got dict"):
        left.merge({})
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        RMDScorer().fit(X, None)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    with pytest.raises(ValueError, match=r"features of this scorer, \['a', .* got 6 unnamed ones"):
        RMDScorer().fit(frame, y).merge(left)


@pytest.mark.parametrize("relative", [True, False])
def test_weight_is_repetition_and_zero_removes(relative):
    X, y = _blobs()
    y[:7] = 9  # a class that the weights remove
    count = np.random.default_rng(2).integers(0, 4, 150)
    count[:7] = 0
    repeated = RMDScorer(relative=relative).fit(np.repeat(X, count, axis=0), np.repeat(y, count))
    weighted = RMDScorer(relative=relative).fit(X, y, sample_weight=count)
    assert 9 not in weighted.classes_
    _agree(weighted, repeated, X[7:], y[7:])
    scaled = RMDScorer(relative=relative).fit(X, y, sample_weight=0.1 * count)
    np.testing.assert_allclose(scaled.transform(X), repeated.transform(X), atol=1e-9)


def test_weights_in_a_stream():
    X, y = _blobs()
    y[:7] = 9
    weight = np.where(y == 9, 0.0, np.random.default_rng(3).uniform(size=150))
    stream = RMDScorer()
    for rows in [slice(0, 60), slice(60, 150)]:
        stream.partial_fit(X[rows], y[rows], sample_weight=weight[rows])
    _agree(stream, RMDScorer().fit(X, y, sample_weight=weight), X[7:], y[7:])
    assert stream.class_count_.sum() == pytest.approx(weight.sum())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_constant_and_duplicate_columns_change_nothing(dtype):
    X, y = _blobs()
    X = X.astype(dtype)
    extra = np.column_stack(
        [np.full(150, 0.1), X[:, 0], 3 * X[:, 1], X[:, 2] - X[:, 3], np.zeros(150)]
    ).astype(dtype)
    wide = np.hstack([X, extra])
    expected, scorer = RMDScorer().fit(X, y), RMDScorer().fit(wide, y)
    atol = {np.float16: 0.2, np.float32: 2e-4, np.float64: 1e-9}[dtype]
    np.testing.assert_allclose(scorer.difficulty(wide, y), expected.difficulty(X, y), atol=atol)
    np.testing.assert_allclose(scorer.transform(wide), expected.transform(X), atol=atol)
    rank = [_class_rank(scorer), RMDScorer(relative=False).fit(wide, y)]
    assert rank[0] == 4
    assert _class_rank(rank[1]) == 6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(8))
def test_rank_law_on_degenerate_columns(seed, dtype):
    rng = np.random.default_rng(seed)
    n_samples, n_classes = rng.integers(30, 2000), rng.integers(2, 6)
    y = rng.permutation(np.arange(n_samples) % n_classes)
    X = rng.normal(size=(n_samples, 8))
    X[:, 1] = rng.uniform() * 10.0 ** rng.integers(-3, 6)  # constant
    X[:, 4] = 3.3 * X[:, 3] + rng.uniform()  # a copy
    X[:, 6] = 0.1 * y  # varies between classes alone: seen by the background alone
    X = X.astype(dtype)
    assert RMDScorer(relative=False).fit(X, y).difficulty(X, y).mean() == pytest.approx(5)
    assert RMDScorer().fit(X, y).difficulty(X, y).mean() == pytest.approx(-1, abs=1e-3)


def test_float32_noise_directions_are_not_inverted():
    # Computed columns differ from an exact combination by float32 rounding. A float64
    # tolerance takes that for variance and answers with distances of 1e10.
    rng = np.random.default_rng(0)
    X, y = _blobs(400, 40)
    mix = rng.normal(size=(40, 60))
    wide = X.astype(np.float32) @ mix.astype(np.float32) + np.float32(50)
    query = _blobs(100, 40, seed=1)[0].astype(np.float32)
    scorer = RMDScorer(relative=False).fit(wide, y)
    assert _class_rank(scorer) == 40
    plain = RMDScorer(relative=False).fit(X, y)
    np.testing.assert_allclose(
        scorer.transform(query @ mix.astype(np.float32) + np.float32(50)),
        plain.transform(query), rtol=0.02,
    )  # fmt: skip


def test_tolerance_is_a_parameter():
    X, y = _blobs()
    X[:, 5] = X[:, 4] + 1e-3 * X[:, 5]
    assert _class_rank(RMDScorer(relative=False).fit(X, y)) == 6
    assert _class_rank(RMDScorer(relative=False, tol=1e-4).fit(X, y)) == 5


def test_classes_with_one_row():
    X, y = _blobs(60)
    y[:3] = [10, 11, 12]
    with pytest.warns(SkcalibWarning, match=r"single sample each: \[10, 11, 12\]"):
        scorer = RMDScorer().fit(X, y)
    assert np.isfinite(scorer.transform(X)).all()
    np.testing.assert_allclose(scorer.means_[5:], X[:3])
    with pytest.raises(ValueError, match=r"got no variance .* \(20 samples in 20 classes\)"):
        RMDScorer().fit(X[:20], np.arange(20))


def test_float32_classes_far_apart():
    X, y = _blobs(400)
    X += 2000.0 * y[:, None]
    X = np.round(X * 1024) / 1024
    exact = RMDScorer().fit(X, y)
    single = RMDScorer().fit(X.astype(np.float32), y)
    np.testing.assert_allclose(
        single.difficulty(X.astype(np.float32), y), exact.difficulty(X, y), atol=1e-2
    )


@pytest.mark.parametrize("shrinkage", [0.0, 0.3, 1.0, "auto"])
def test_shrinkage(shrinkage):
    X, y = _blobs(40, 12, 3)
    scorer = RMDScorer(shrinkage=shrinkage).fit(X, y)
    own = X - np.array([X[y == k].mean(axis=0) for k in range(3)])[y]
    expected = []
    for rows in [own, X - X.mean(axis=0)]:
        covariance = rows.T @ rows / len(X)
        amount = oas(rows, assume_centered=True)[1] if shrinkage == "auto" else shrinkage
        variance = np.trace(covariance) / 12
        expected.append((1 - amount) * covariance + amount * variance * np.eye(12))
    np.testing.assert_allclose(scorer.covariance_, expected[0], atol=1e-10)
    np.testing.assert_allclose(scorer.background_covariance_, expected[1], atol=1e-10)
    away = X - X.mean(axis=0)
    by_hand = np.sum(own @ np.linalg.inv(expected[0]) * own, axis=1)
    by_hand -= np.sum(away @ np.linalg.inv(expected[1]) * away, axis=1)
    np.testing.assert_allclose(scorer.difficulty(X, y), by_hand, atol=1e-8)


@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.1, 0.5])
def test_shrinkage_of_all_but_spheres_is_that_of_scikit_learn(noise):
    rng = np.random.default_rng(0)
    for n_features in (2, 5):
        rows = np.concatenate([np.eye(n_features), -np.eye(n_features)])
        rows += noise * rng.normal(size=rows.shape)
        expected = oas(rows, assume_centered=True)[1]
        covariance = rows.T @ rows / len(rows)
        assert compute_shrinkage(covariance, "auto", len(rows)) == pytest.approx(expected)
        assert noise > 0.1 or expected == 1.0


def test_shrinkage_gives_variance_to_every_direction():
    X, y = _blobs(20, 50, 4)
    scorer = RMDScorer(relative=False, shrinkage="auto").fit(X, y)
    assert _class_rank(scorer) == 50
    # Without it a step out of the support goes unnoticed, as the documentation says.
    with pytest.warns(SkcalibWarning, match="The samples are too few for the covariance of X"):
        plain = RMDScorer(relative=False).fit(X, y)
    off = np.linalg.svd(X - X.mean(axis=0))[2][-1]
    np.testing.assert_allclose(plain.difficulty(X + 100 * off), plain.difficulty(X), atol=1e-6)
    assert (scorer.difficulty(X + 100 * off) > scorer.difficulty(X) + 100).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_do_not_depend_on_the_rows_beside_them(dtype):
    X, y = _blobs(1500, 30, 7)
    X = X.astype(dtype)
    scorer = RMDScorer().fit(X, y)
    atol = 1e-3 if dtype == np.float32 else 1e-10
    alone = np.concatenate([scorer.difficulty(X[i : i + 1], y[i : i + 1]) for i in range(40)])
    np.testing.assert_allclose(scorer.difficulty(X, y)[:40], alone, atol=atol)
    np.testing.assert_allclose(scorer.transform(X)[:40], scorer.transform(X[:40]), atol=atol)


def test_memory_map_and_pickle(tmp_path):
    X, y = _blobs()
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    scorer = RMDScorer().fit(mapped, y)
    again = pickle.loads(pickle.dumps(scorer))
    np.testing.assert_array_equal(again.difficulty(mapped, y), scorer.difficulty(mapped, y))
    again.partial_fit(X[:10], y[:10])
    assert again.class_count_.sum() == 160


def test_is_a_relative_of_linear_discriminant_analysis():
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    X, y = _blobs()
    lda = LinearDiscriminantAnalysis(priors=np.full(5, 0.2)).fit(X, y)
    scorer = RelativeMahalanobisScorer().fit(X, y)
    np.testing.assert_array_equal(scorer.predict(X), lda.predict(X))
    assert scorer.score(X, y) == lda.score(X, y)
