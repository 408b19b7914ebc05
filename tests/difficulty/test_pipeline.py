"""Scorers at the end of a Pipeline."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skcalib.difficulty import DifficultyAwareClassifier, RMDScorer, score_difficulty
from skcalib.utils._estimators import fit_difficulty


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


class Oversampler(BaseEstimator):
    """Repeats the samples of class 0, as a sampler of imbalanced-learn would."""

    def fit_resample(self, X, y):
        repeated = np.concatenate([np.arange(len(y)), np.flatnonzero(y == 0)])
        return X[repeated], y[repeated]


class ResamplingPipeline(Pipeline):
    """A Pipeline whose samplers work in `fit` alone, as that of imbalanced-learn does."""

    def fit(self, X, y=None, **params):
        for _, step in self.steps[:-1]:
            if hasattr(step, "fit_resample"):
                X, y = step.fit_resample(X, y)
            elif step not in (None, "passthrough"):
                X = step.fit_transform(X, y)
        self.steps[-1][1].fit(X, y, **params)
        return self


def _resampling():
    steps = [("scale", StandardScaler()), ("none", None), ("skip", "passthrough")]
    return ResamplingPipeline([*steps, ("sample", Oversampler()), ("score", RMDScorer())])


def test_samplers_take_no_part_in_scoring():
    X, y = load_iris(return_X_y=True)
    scaled = StandardScaler().fit_transform(X)
    by_hand = RMDScorer().fit(*Oversampler().fit_resample(scaled, y))
    fitted = _resampling().fit(X, y)
    np.testing.assert_array_equal(score_difficulty(fitted, X, y), by_hand.difficulty(scaled, y))
    np.testing.assert_array_equal(score_difficulty(fitted, X), by_hand.difficulty(scaled))
    again, difficulty = fit_difficulty(_resampling(), X, y)
    np.testing.assert_array_equal(difficulty, by_hand.difficulty(scaled, y))
    np.testing.assert_array_equal(score_difficulty(again, X, y), difficulty)
    with pytest.raises(ValueError, match=r"sample_weight must be None where a step .* resamples"):
        fit_difficulty(_resampling(), X, y, sample_weight=np.ones(150))


def test_a_classifier_by_the_difficulty_of_a_resampling_pipeline():
    X, y = load_iris(return_X_y=True)
    clf = DifficultyAwareClassifier(
        LogisticRegression(max_iter=500), _resampling(), fit_param="sample_weight"
    ).fit(X, y)
    expected = fit_difficulty(clone(_resampling()), X, y)[1]
    np.testing.assert_array_equal(clf.difficulty_, expected)
