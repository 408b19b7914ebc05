import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from skcalib.difficulty import (
    DifficultyAwareClassifier,
    RelativeMahalanobisScorer,
    _gaussians,
    difficulty_weights,
)
from skcalib.utils import SkcalibWarning


def _refitted(scorer, X, y, weight, n_classes):
    """Distances of each sample to the classes of a fit on the others; infinite without one."""
    distances = np.full((len(X), n_classes), np.inf)
    for i in range(len(X)):
        others = weight.copy()
        others[i] -= min(others[i], 1.0)
        fitted = clone(scorer).fit(X, y, sample_weight=others)
        distances[i, fitted.classes_] = fitted.transform(X[i : i + 1])[0]
    return distances


def _data(n_samples, n_features, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % n_classes
    X = 3.0 + rng.normal(size=(n_samples, n_features))
    return X + rng.normal(size=(n_classes, n_features))[y], y, rng


def _close(actual, expected, tolerance=1e-10):
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(actual), finite)
    scale = np.abs(expected[finite]).max()
    np.testing.assert_allclose(actual[finite], expected[finite], rtol=0, atol=tolerance * scale)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The samples are too few")
@pytest.mark.parametrize("apart", [1e-3, 0.3, 30.0])
@pytest.mark.parametrize("relative", [True, False])
def test_classes_near_and_far_from_one_another(apart, relative):
    X, y, _ = _data(40, 4, 3)
    X[y == 1] += apart - X[y == 1].mean(axis=0) + X[y == 0].mean(axis=0)
    scorer = RelativeMahalanobisScorer(relative=relative).fit(X, y)
    expected = _refitted(scorer, X, y, np.ones(40), 3)
    _close(scorer.leave_one_out_transform(X, y), expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The samples are too few")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize(("n_samples", "n_features"), [(40, 5), (20, 10), (20, 30)])
def test_equals_a_refit_on_the_other_samples(n_samples, n_features, relative, weighted):
    X, y, rng = _data(n_samples, n_features, 3)
    weight = rng.uniform(0.2, 3.0, n_samples) if weighted else np.ones(n_samples)
    scorer = RelativeMahalanobisScorer(relative=relative)
    expected = _refitted(scorer, X, y, weight, 3)
    own = expected[np.arange(n_samples), y]
    _close(scorer.fit(X, y, weight).leave_one_out_difficulty(X, y, weight), own)
    _close(scorer.leave_one_out_transform(X, y, weight), expected)


@pytest.mark.slow
def test_a_feature_that_one_sample_alone_varies_in_is_ignored_without_it():
    X, y, _ = _data(30, 5, 3)
    X[:, 0] = 1.0
    X[:, 1] = 0.0
    X[4, 1] = 1.0
    scorer = RelativeMahalanobisScorer().fit(X, y)
    expected = _refitted(scorer, X, y, np.ones(30), 3)
    _close(scorer.leave_one_out_transform(X, y), expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* have a single sample:skcalib.utils.SkcalibWarning")
def test_classes_of_one_and_of_two_samples():
    X, y, _ = _data(30, 4, 3)
    y[-1] = 3
    y[-3:-1] = 4
    scorer = RelativeMahalanobisScorer().fit(X, y)
    expected = _refitted(scorer, X, y, np.ones(30), 5)
    assert expected[-1, 3] == np.inf
    assert np.isfinite(np.delete(expected, -1, axis=0)).all()
    _close(scorer.leave_one_out_transform(X, y), expected)
    assert scorer.leave_one_out_difficulty(X, y)[-1] == np.inf


def test_samples_of_weight_zero_are_scored_as_new_ones():
    X, y, _ = _data(40, 4, 3)
    weight = np.ones(40)
    weight[:5] = 0.0
    y[0] = 7
    scorer = RelativeMahalanobisScorer().fit(X, y, sample_weight=weight)
    left_out = scorer.leave_one_out_transform(X, y, weight)
    np.testing.assert_allclose(left_out[:5], scorer.transform(X[:5]), rtol=1e-10)


def test_weight_is_repetition():
    X, y, rng = _data(20, 3, 2)
    weight = rng.integers(0, 4, 20)
    rows = np.repeat(np.arange(20), weight)
    weighted = RelativeMahalanobisScorer().fit(X, y, weight).leave_one_out_transform(X, y, weight)
    repeated = RelativeMahalanobisScorer().fit(X[rows], y[rows])
    left_out = repeated.leave_one_out_transform(X[rows], y[rows])
    np.testing.assert_allclose(left_out, weighted[rows], rtol=1e-9)


@pytest.mark.parametrize("shrinkage", [0.1, 0.7, "auto"])
def test_shrunk_covariances_keep_their_multiple_of_the_identity(shrinkage):
    X, y, _ = _data(30, 6, 3)
    scorer = RelativeMahalanobisScorer(shrinkage=shrinkage, relative=False).fit(X, y)
    plain = RelativeMahalanobisScorer(relative=False).fit(X, y)
    # covariance_ = (1 - amount) * plain + ridge * identity
    off = ~np.eye(6, dtype=bool)
    amount = 1.0 - scorer.covariance_[off].sum() / plain.covariance_[off].sum()
    ridge = amount * np.trace(plain.covariance_) / 6
    left_out = scorer.leave_one_out_transform(X, y)
    for i in range(30):
        others = np.arange(30) != i
        means = np.stack([X[others & (y == k)].mean(axis=0) for k in range(3)])
        deviation = X[others] - means[y[others]]
        scatter = (1 - amount) * deviation.T @ deviation + 30 * ridge * np.eye(6)
        u = X[i] - means
        expected = np.einsum("ki,ij,kj->k", u, np.linalg.inv(scatter / 29), u)
        np.testing.assert_allclose(left_out[i], expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_single_precision_is_close_and_stays_single(dtype):
    X, y, _ = _data(200, 8, 4)
    X = X.astype(dtype)
    single = RelativeMahalanobisScorer().fit(X, y).leave_one_out_transform(X, y)
    double = RelativeMahalanobisScorer().fit(X.astype(float), y)
    exact = double.leave_one_out_transform(X.astype(float), y)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, exact, rtol=2e-3, atol=2e-3)


def test_chunks_do_not_matter(monkeypatch):
    X, y, _ = _data(50, 4, 3)
    scorer = RelativeMahalanobisScorer().fit(X, y)
    whole = scorer.leave_one_out_transform(X, y)
    module = "skcalib.difficulty._distances"
    monkeypatch.setattr(f"{module}._CHUNK_ELEMENTS", 1)
    monkeypatch.setattr(f"{module}._MIN_CHUNK_ROWS", 7)
    np.testing.assert_allclose(scorer.leave_one_out_transform(X, y), whole, rtol=1e-12)


@pytest.mark.parametrize("relative", [True, False])
def test_a_factor_that_is_no_triangle_gives_the_same_distances(monkeypatch, relative):
    """Covariances of full rank that are all but singular have one of eigenvectors."""
    X, y, _ = _data(40, 5, 3)
    scorer = RelativeMahalanobisScorer(relative=relative).fit(X, y)
    by_triangle = scorer.leave_one_out_transform(X, y)
    monkeypatch.setattr(_gaussians, "_invert_triangle", lambda *_: None)
    _close(scorer.leave_one_out_transform(X, y), by_triangle)


def test_other_samples_than_those_of_the_fit_are_refused():
    X, y, _ = _data(20, 3, 2)
    scorer = RelativeMahalanobisScorer().fit(X, y)
    with pytest.raises(ValueError, match="must be those of the fit"):
        scorer.leave_one_out_transform(X[:-1], y[:-1])
    with pytest.raises(ValueError, match="must be those of the fit"):
        scorer.leave_one_out_transform(X, y, np.full(20, 2.0))
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        scorer.leave_one_out_transform(X[:, :2], y)
    frame = pd.DataFrame(X, columns=list("abc"))
    scorer.fit(frame, y)
    for method in (scorer.leave_one_out_transform, scorer.leave_one_out_difficulty):
        with pytest.raises(ValueError, match="feature names"):
            method(frame[["b", "a", "c"]], y)
    assert list(scorer.feature_names_in_) == ["a", "b", "c"]


def test_a_sample_is_harder_without_itself():
    X, y, _ = _data(60, 3, 2)
    scorer = RelativeMahalanobisScorer(relative=False).fit(X, y)
    assert (scorer.leave_one_out_difficulty(X, y) > scorer.difficulty(X, y)).all()


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_difficulty_of_the_fit_leaves_out(weighted):
    X, y, rng = _data(40, 5, 3)
    weight = rng.uniform(0.2, 3.0, 40) if weighted else np.ones(40)
    params = {"sample_weight": weight} if weighted else {}
    own = _refitted(RelativeMahalanobisScorer(), X, y, weight, 3)[np.arange(40), y]
    _close(RelativeMahalanobisScorer().fit_difficulty(X, y, **params), own)


def test_the_only_sample_of_a_class_is_the_hardest_and_its_weight_finite():
    X, y, _ = _data(30, 4, 3)
    y[-1] = 3
    with pytest.warns(SkcalibWarning, match="have a single sample"):
        difficulty = RelativeMahalanobisScorer().fit_difficulty(X, y)
    assert difficulty[-1] == np.inf
    assert np.isfinite(difficulty[:-1]).all()
    weights = difficulty_weights(difficulty)
    assert weights.argmax() == 29
    assert 0 < weights[-1] < 1


def test_weights_are_by_the_order_among_the_fitted_samples():
    X, y, _ = _data(30, 4, 3)
    y[-1] = 3
    model = DifficultyAwareClassifier(GaussianNB(), fit_param="sample_weight")
    with pytest.warns(SkcalibWarning, match="have a single sample"):
        model.fit(X, y)
    difficulty = model.scorer_.difficulty(X, y)
    np.testing.assert_allclose(model.difficulty_[:-1], difficulty[:-1])
    assert model.difficulty_[-1] == np.inf
    assert model.weights_.argmax() == 29
    # Weight 2 is two samples.
    with pytest.warns(SkcalibWarning, match="have a single sample"):
        model.fit(X, y, sample_weight=np.where(y == 0, 1.0, 2.0) * np.where(y == 3, 0.5, 1.0))
    assert model.difficulty_[-1] == np.inf
