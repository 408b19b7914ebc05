"""The contract of a difficulty scorer."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from skcalib.difficulty import DifficultyMixin


class WithoutDifficulty(DifficultyMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self


class NormScorer(WithoutDifficulty):
    def __init__(self, order=2):
        self.order = order

    def difficulty(self, X, y=None):
        return np.linalg.norm(X, ord=self.order, axis=1)


def test_a_scorer_without_difficulty_cannot_be_built():
    with pytest.raises(TypeError, match=r"abstract method .*difficulty"):
        WithoutDifficulty()


def test_the_mixin_gives_the_other_methods():
    X = np.array([[3.0, 4.0], [0.0, 1.0]])
    scorer = clone(NormScorer(order=1))
    np.testing.assert_array_equal(scorer.fit_difficulty(X), [7, 1])
    np.testing.assert_array_equal(scorer.score_samples(X), [-7, -1])
