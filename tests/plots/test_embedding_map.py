"""EmbeddingMapDisplay draws positions, difficulties and rings where they belong."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.difficulty import RMDScorer
from skcalib.plots import EmbeddingMapDisplay


def sample():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 5)), rng.normal(size=40)


def example(**options):
    return EmbeddingMapDisplay.from_predictions(*sample(), **options)


def drawn(display):
    """Return x, y and color of the points, sorted."""
    points = np.column_stack([display.scatter_.get_offsets(), display.scatter_.get_array()])
    return points[np.lexsort(points.T)]


def test_features_are_projected_on_their_principal_components():
    X, difficulty = sample()
    pca = PCA(2).fit(X)
    expected = np.column_stack([pca.transform(X), difficulty])
    np.testing.assert_allclose(drawn(example()), expected[np.lexsort(expected.T)], atol=1e-8)
    assert example().ax_.get_xlabel() == (
        f"PC 1 ({pca.explained_variance_ratio_[0]:.0%} of the variance)"
    )


def test_two_features_are_drawn_as_they_are_and_a_projection_is_used():
    X, difficulty = sample()
    display = EmbeddingMapDisplay.from_predictions(X[:, :2], difficulty)
    np.testing.assert_array_equal(display.position, X[:, :2])
    other = EmbeddingMapDisplay.from_predictions(X, difficulty, projection=PCA(2, whiten=True))
    np.testing.assert_allclose(other.position.std(axis=0, ddof=1), 1)
    assert other.ax_.get_xlabel() == "PCA 1"


def test_rings_on_suspected_labels():
    X, difficulty = sample()
    suspected = difficulty > 1
    display = EmbeddingMapDisplay.from_predictions(X[:, :2], difficulty, suspected=suspected)
    np.testing.assert_array_equal(display.rings_.get_offsets(), X[suspected, :2])
    assert display.ax_.get_title() == f"Rings: {suspected.sum()} suspected labels"
    assert example().rings_ is None


def test_a_pipeline_is_mapped_by_the_features_of_its_scorer():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), RMDScorer()).fit(X, y)
    display = EmbeddingMapDisplay.from_estimator(pipeline, X, y)
    scaled = StandardScaler().fit_transform(X)
    expected = PCA(2, random_state=0).fit_transform(scaled)
    np.testing.assert_allclose(display.position, expected, atol=1e-8)
    np.testing.assert_allclose(
        display.difficulty, RMDScorer().fit(scaled, y).difficulty(scaled, y)
    )


class ThreeColumns:
    def fit_transform(self, X):
        return X[:, :3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": np.ones((40, 1))}, "features must have at least 2 columns, got 1."),
        ({"features": np.ones((3, 4))}, "must have the same number of rows"),
        ({"suspected": np.ones(40)}, "suspected must be boolean"),
        ({"suspected": np.ones(3, dtype=bool)}, "suspected must be boolean and of shape"),
        ({"projection": "tsne"}, "projection must have fit_transform, got 'tsne'"),
        ({"projection": ThreeColumns()}, r"projection must return shape \(40, 2\), got \(40, 3\)"),
        ({"difficulty": np.full(40, np.nan)}, "difficulty must be finite"),
    ],
)
def test_bad_input_is_named(options, message):
    X, difficulty = sample()
    with pytest.raises((TypeError, ValueError), match=message):
        EmbeddingMapDisplay.from_predictions(
            **{"features": X, "difficulty": difficulty, **options}
        )


@pytest.mark.slow
def test_very_many_samples_are_means_of_cells():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60_000, 2))
    display = EmbeddingMapDisplay.from_predictions(X, X[:, 0])
    # The difficulty is the horizontal coordinate, and the cells are 1 / 80 wide.
    place, mean = display.scatter_.get_offsets()[:, 0], display.scatter_.get_array()
    assert 6000 < len(mean) < 8000
    inside = (place > 0.02) & (place < 0.98)
    np.testing.assert_allclose(mean[inside], place[inside], atol=0.01)
    # Cells at the border hold fewer samples, and are fainter.
    alpha = display.scatter_.get_alpha()
    assert alpha[~inside].mean() < alpha[inside].mean()
    points = EmbeddingMapDisplay.from_predictions(X, X[:, 0], s=1)
    assert len(points.scatter_.get_offsets()) == 60_000
