"""Scorers at the end of a Pipeline."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skcalib.difficulty import RMDScorer, score_difficulty
from skcalib.difficulty._pipeline import fit_difficulty


def test_pipelines_may_be_nested():
    X, y = load_iris(return_X_y=True)
    weight = np.arange(150) % 4
    inner = make_pipeline(PolynomialFeatures(include_bias=False), RMDScorer(shrinkage=0.1))
    outer = make_pipeline(StandardScaler(), inner)
    fitted, difficulty = fit_difficulty(outer, X, y, sample_weight=weight)
    scaled = StandardScaler().fit_transform(X)
    wide = PolynomialFeatures(include_bias=False).fit_transform(scaled)
    by_hand = RMDScorer(shrinkage=0.1).fit(wide, y, sample_weight=weight)
    np.testing.assert_allclose(difficulty, by_hand.difficulty(wide, y), atol=1e-9)
    np.testing.assert_allclose(score_difficulty(fitted, X), by_hand.difficulty(wide), atol=1e-9)
    assert list(fitted.named_steps) == list(outer.named_steps)


def test_the_last_step_must_score():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(RMDScorer(), StandardScaler())
    with pytest.raises(TypeError, match="ends in one, got StandardScaler, which has no fit_diff"):
        fit_difficulty(pipeline, X, y)
    with pytest.raises(TypeError, match="got StandardScaler, which has no difficulty"):
        score_difficulty(StandardScaler(), X)
