"""One-pass statistics: digits, order, merging, weights."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from skcalib.difficulty import _gaussians
from skcalib.difficulty._gaussians import GaussianStatistics


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(_gaussians, "BLOCK_SIZE", 64)
    monkeypatch.setattr(_gaussians, "BLOCK_ROWS", 16)


def _data(n_samples=300, n_features=4, n_classes=5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_samples)
    return rng.normal(size=(n_samples, n_features)) + 3.0 * rng.normal(size=(5, 4))[y], y


def _expected(X, y, n_classes=5):
    X = X.astype(np.longdouble)
    means = np.array([X[y == k].mean(axis=0) for k in range(n_classes)])
    own = X - means[y]
    apart = means[y] - X.mean(axis=0)
    return means, own.T @ own / len(X), apart.T @ apart / len(X)


def _check(statistics, X, y, rtol, n_classes=5):
    means, within, between = _expected(X, y, n_classes)
    spread = np.sqrt(np.diag(within)).max()
    np.testing.assert_allclose(statistics.means() - means, 0, atol=rtol * float(spread))
    np.testing.assert_allclose(
        statistics.mean() - X.astype(np.longdouble).mean(axis=0), 0, atol=rtol * float(spread)
    )
    np.testing.assert_allclose(statistics.within_covariance(), within.astype(float), rtol=rtol)
    np.testing.assert_allclose(_between(statistics), between.astype(float), rtol=100 * rtol)


def _between(statistics):
    root = statistics.between_root()
    return root.T @ root


def _fitted(X, y, weight=None, n_classes=5):
    return GaussianStatistics.empty(n_classes, X.shape[1]).with_samples(X, y, weight)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_equals_the_definition(dtype, rtol):
    X, y = _data()
    X = X.astype(dtype)
    _check(_fitted(X, y), X, y, rtol)


@pytest.mark.parametrize("offset", [1e3, 1e5])
def test_float32_far_from_the_origin_loses_no_digits(offset):
    X, y = _data()
    # Multiples of 1/64 are exact in float32 at both offsets.
    X = np.round((X + offset) * 64) / 64
    assert (X.astype(np.float32) == X).all()
    _check(_fitted(X.astype(np.float32), y), X, y, 1e-5)


def test_float32_classes_far_apart_lose_no_digits():
    X, y = _data()
    X = np.round((X + 1e4 * y[:, None]) * 64) / 64
    _check(_fitted(X.astype(np.float32), y), X, y, 1e-5)


def test_first_row_far_out():
    X, y = _data()
    X[0] = 1e3
    _check(_fitted(X.astype(np.float32), y), X.astype(np.float32), y, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[300], [1] * 300, [7, 100, 1, 192], [150, 150]])
def test_any_chunking_and_order(sizes):
    X, y = _data()
    order = np.random.default_rng(1).permutation(300)
    statistics = GaussianStatistics.empty(5, 4)
    for rows in np.split(order, np.cumsum(sizes)[:-1]):
        statistics = statistics.with_samples(X[rows], y[rows])
    _check(statistics, X, y, 1e-11)


def test_merge_equals_the_union():
    X, y = _data()
    X += 1e4
    left, right = _fitted(X[:120], y[:120]), _fitted(X[120:], y[120:])
    before = right.scatter.copy()
    _check(left.merged(right), X, y, 1e-9)
    np.testing.assert_array_equal(right.scatter, before)


def test_merge_of_samples_with_a_feature_in_common():
    X, y = _data()
    X[:, 1] = X[:, 1] > 0  # references of both sides agree in some features
    X[:, 2] = np.arange(5)[y]
    left, right = _fitted(X[:120], y[:120]), _fitted(X[120:], y[120:])
    apart = left.reference != right.reference
    assert apart.any(axis=1).all()
    assert not apart.all(axis=1).any()
    _, within, between = _expected(X, y)
    np.testing.assert_allclose(left.merged(right).within_covariance(), within, atol=1e-12)
    np.testing.assert_allclose(_between(left.merged(right)), between, rtol=1e-10)


def test_merge_of_classes_that_one_side_lacks():
    X, y = _data()
    left, right = _fitted(X[y < 3], y[y < 3]), _fitted(X[y > 1], y[y > 1])
    _check(
        left.merged(right),
        np.vstack([X[y < 3], X[y > 1]]),
        np.concatenate([y[y < 3], y[y > 1]]),
        1e-11,
    )


def test_mixed_dtypes():
    X, y = _data()
    X = np.round((X + 1e3) * 64) / 64
    # References that float32 cannot represent, then float32 rows.
    statistics = _fitted(X[:100] + 1e-9, y[:100])
    assert (statistics.reference != statistics.reference.astype(np.float32)).any()
    statistics = statistics.with_samples(X[100:].astype(np.float32), y[100:])
    _check(statistics, X, y, 1e-5)
    assert statistics.work_eps == np.finfo(np.float32).eps
    half = _fitted(np.ones((3, 4), dtype=np.float16), np.zeros(3, dtype=int))
    assert half.input_eps == np.finfo(np.float16).eps
    assert half.work_eps == np.finfo(np.float32).eps


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weight_is_repetition(dtype):
    X, y = _data(60)
    X = X.astype(dtype)
    count = np.random.default_rng(2).integers(0, 4, 60)
    repeated = _fitted(np.repeat(X, count, axis=0), np.repeat(y, count))
    weighted = _fitted(X, y, count.astype(float))
    rtol = 1e-11 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(weighted.weight, repeated.weight)
    np.testing.assert_allclose(weighted.means(), repeated.means(), rtol=rtol, atol=rtol)
    np.testing.assert_allclose(
        weighted.within_covariance(), repeated.within_covariance(), rtol=rtol, atol=rtol
    )
    np.testing.assert_allclose(_between(weighted), _between(repeated), rtol=rtol, atol=rtol)


def test_constant_columns_have_no_variance():
    X, y = _data()
    X[:, 1] = 0.1
    X[:, 2] = 1e7 + 0.1
    for dtype in [np.float64, np.float32]:
        data = X.astype(dtype)
        within = _fitted(data, y).within_covariance()
        for column in [1, 2]:
            eps = np.finfo(dtype).eps
            assert within[column, column] <= (eps * data[0, column]) ** 2


def test_a_class_without_rows():
    X, y = _data(n_classes=4)
    statistics = _fitted(X, y)
    assert np.isnan(statistics.means()[4]).all()
    assert np.isfinite(statistics.within_covariance()).all()
    assert np.isfinite(statistics.mean()).all()


def test_statistics_are_not_changed_in_place():
    X, y = _data()
    statistics = _fitted(X, y)
    with pytest.raises(FrozenInstanceError):
        statistics.weight = statistics.weight + 1


def test_samples_of_weight_zero_place_no_reference():
    X, y = _data()
    weight = np.ones(300)
    weight[:20] = 0
    far = np.where(weight[:, None] > 0, X, 1e7).astype(np.float32)
    statistics = _fitted(far, y, weight)
    _check(statistics, far[20:], y[20:], 1e-5)
    np.testing.assert_array_equal(statistics.count, np.bincount(y[20:]))


def test_classes_of_one_sample_far_from_the_origin_lose_no_digits():
    X, y = _data()
    y[:2] = [5, 6]
    X = np.round((X + 1e5) * 64) / 64
    _check(_fitted(X.astype(np.float32), y, n_classes=7), X, y, 1e-5, n_classes=7)


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [2, 16, 256])
def test_digits_of_float32_sums_do_not_depend_on_the_number_of_features(n_features):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300_000 if n_features < 20 else 30_000, n_features), dtype=np.float32)
    y = np.zeros(len(X), dtype=int)
    covariance = _fitted(X, y).within_covariance()
    error = np.abs(covariance - np.cov(X.astype(np.float64), rowvar=False, bias=True))
    assert error.max() < 2 * np.finfo(np.float32).eps
