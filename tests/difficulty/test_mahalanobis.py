"""RelativeMahalanobisScorer against its definition, and its laws."""

import numpy as np
import pandas as pd
import pytest

from skcalib.difficulty import RelativeMahalanobisScorer, RMDScorer


def _blobs(n_samples, n_features, n_classes, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_samples) % n_classes)
    means = rng.normal(size=(n_classes, n_features))
    mix = np.eye(n_features) + 0.2 * rng.normal(size=(n_features, n_features))
    return (means[y] + rng.normal(size=(n_samples, n_features)) @ mix).astype(dtype), y


def _distances(X, y, query, relative=True, sample_weight=None):
    """Distance of every query to every class by the definition, and the rank difference."""
    X, query = np.asarray(X, dtype=np.float64), np.asarray(query, dtype=np.float64)
    weight = np.ones(len(X)) if sample_weight is None else sample_weight
    classes = np.unique(y[weight > 0])
    mean = np.average(X, axis=0, weights=weight)
    means = [np.average(X[y == k], axis=0, weights=weight[y == k]) for k in classes]
    within = np.zeros((X.shape[1], X.shape[1]))
    background = np.zeros_like(within)
    for x, label, w in zip(X, y, weight):
        if w > 0:
            own = x - means[int(np.searchsorted(classes, label))]
            within += w * np.outer(own, own) / weight.sum()
            background += w * np.outer(x - mean, x - mean) / weight.sum()
    rank = [
        np.linalg.matrix_rank(m, tol=1e-9 * np.trace(m), hermitian=True)
        for m in (within, background)
    ]
    within = np.linalg.pinv(within, rcond=1e-9, hermitian=True)
    background = np.linalg.pinv(background, rcond=1e-9, hermitian=True)
    distances = np.empty((len(query), len(classes)))
    for i, x in enumerate(query):
        for k, center in enumerate(means):
            distances[i, k] = (x - center) @ within @ (x - center)
            if relative:
                distances[i, k] -= (x - mean) @ background @ (x - mean)
    return distances, rank[0] - rank[1]


SHAPES = {
    "more features than classes": (120, 8, 4),
    "more classes than features": (200, 6, 20),
    "more features than rows": (24, 40, 4),
    "one feature": (50, 1, 3),
}


@pytest.mark.filterwarnings("ignore:The samples are too few")
@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-9), (np.float32, 2e-5)])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_equals_the_definition(shape, dtype, rtol, relative):
    X, y = _blobs(*shape, dtype=dtype)
    query = np.vstack([X, 2 * _blobs(*shape, seed=1, dtype=dtype)[0]])
    expected, rank_difference = _distances(X, y, query, relative)
    scorer = RelativeMahalanobisScorer(relative=relative).fit(X, y)
    atol = rtol * np.abs(expected).max()
    assert scorer.transform(query).dtype == dtype
    np.testing.assert_allclose(scorer.transform(query), expected, atol=atol)
    np.testing.assert_allclose(scorer.difficulty(query), expected.min(axis=1), atol=atol)
    np.testing.assert_array_equal(scorer.predict(query), expected.argmin(axis=1))
    fitted = scorer.difficulty(X, y)
    np.testing.assert_allclose(fitted, expected[np.arange(len(X)), y], atol=atol)
    np.testing.assert_allclose(scorer.score_samples(X), -scorer.difficulty(X))
    if relative:
        assert fitted.mean() == pytest.approx(rank_difference, abs=100 * rtol)


def test_alias_is_the_same_class():
    assert RMDScorer is RelativeMahalanobisScorer


def test_larger_is_harder():
    X, y = _blobs(300, 5, 3)
    X[:, 0] += 6 * y
    flipped = y.copy()
    flipped[:30] = (y[:30] + 1) % 3
    difficulty = RMDScorer().fit(X, flipped).difficulty(X, flipped)
    assert np.median(difficulty[:30]) > np.quantile(difficulty[30:], 0.99)


def test_string_labels_and_frames():
    X, y = _blobs(60, 3, 3)
    names = np.array(["ant", "bee", "cat"])[y]
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    scorer = RMDScorer().set_output(transform="pandas").fit(frame, names)
    out = scorer.transform(frame)
    assert list(out.columns) == ["rmd_ant", "rmd_bee", "rmd_cat"]
    plain = RMDScorer().fit(X, y)
    np.testing.assert_array_equal(out.to_numpy(), plain.transform(X))
    np.testing.assert_array_equal(scorer.difficulty(frame, names), plain.difficulty(X, y))
    assert set(scorer.predict(frame)) <= set(names)
    names_out = RMDScorer(relative=False).fit(X, y).get_feature_names_out()
    assert list(names_out) == ["mahalanobis_0", "mahalanobis_1", "mahalanobis_2"]


def test_bad_input():
    X, y = _blobs(30, 3, 3)
    scorer = RMDScorer().fit(X, y)
    with pytest.raises(ValueError, match=r"y must hold labels among .*got 7 in row"):
        scorer.difficulty(X, np.full(30, 7))
    with pytest.raises(ValueError, match=r"at least two classes .* got one class"):
        RMDScorer().fit(X, np.zeros(30))
    with pytest.raises(ValueError, match="X must vary within at least one class"):
        RMDScorer().fit(X[:20], np.arange(20))
    with pytest.raises(ValueError, match=r"sample_weight must be finite and not negative"):
        RMDScorer().fit(X, y, sample_weight=-np.ones(30))
    with pytest.raises(ValueError, match="contains NaN"):
        RMDScorer().fit(np.where(X > 1, np.nan, X), y)
    with pytest.raises(ValueError, match="contains NaN"):  # also where it has no weight
        RMDScorer().fit(np.where(X > 1, np.nan, X), y, sample_weight=(X <= 1).all(axis=1))
    with pytest.raises(ValueError, match="X has 2 features"):
        scorer.difficulty(X[:, :2], y)
    with pytest.raises(ValueError, match="same number of samples, got 30 and 5"):
        scorer.difficulty(X, y[:5])
    with pytest.raises(ValueError, match="got values that overflow; scale the features or pass"):
        RMDScorer().fit((1e25 * X).astype(np.float32), y)
    with pytest.raises(ValueError, match="The 'shrinkage' parameter"):
        RMDScorer(shrinkage=2.0).fit(X, y)
