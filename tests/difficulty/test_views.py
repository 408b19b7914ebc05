"""Difficulty over several views."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.difficulty import RMDScorer, difficulty_over_views


def test_mean_over_views():
    X, y = load_iris(return_X_y=True)
    views = X + np.random.default_rng(0).normal(scale=0.1, size=(3, *X.shape))
    scorer = RMDScorer()
    for view in views:
        scorer.partial_fit(view, y)
    together = RMDScorer().fit(views.reshape(-1, 4), np.tile(y, 3))
    expected = together.difficulty(views.reshape(-1, 4), np.tile(y, 3)).reshape(3, -1)
    np.testing.assert_allclose(
        difficulty_over_views(scorer, views, y), expected.mean(axis=0), atol=1e-8
    )
    np.testing.assert_allclose(
        difficulty_over_views(scorer, (view for view in views)),
        np.mean([scorer.difficulty(view) for view in views], axis=0),
    )


def test_pipeline():
    X, y = load_iris(return_X_y=True)
    scorer = make_pipeline(StandardScaler(), RMDScorer()).fit(X, y)
    np.testing.assert_allclose(
        difficulty_over_views(scorer, [X, X], y), RMDScorer().fit(X, y).difficulty(X, y), atol=1e-9
    )


def test_bad_input():
    X, y = load_iris(return_X_y=True)
    scorer = RMDScorer().fit(X, y)
    with pytest.raises(ValueError, match="at least one view"):
        difficulty_over_views(scorer, [])
    with pytest.raises(ValueError, match="same number of samples, got 150 and 3"):
        difficulty_over_views(scorer, [X, X[:3]])
    with pytest.raises(TypeError, match=r"views must be an iterable of array-likes, got int\."):
        difficulty_over_views(scorer, 3)
