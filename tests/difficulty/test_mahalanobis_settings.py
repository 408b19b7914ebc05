"""Settings that change between the samples, and weights that tell the wrong number of them."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from skcalib.difficulty import RMDScorer
from skcalib.utils import SkcalibWarning

X, Y = load_iris(return_X_y=True)
X = np.random.RandomState(0).permutation(X.T).T[:, :4] * [1, 5, 0.2, 2]


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("settings", [{"relative": False}, {"shrinkage": 0.5}, {"tol": 0.1}])
def test_settings_hold_from_the_next_call_on(settings, asked):
    scorer = RMDScorer().partial_fit(X[:90], Y[:90], classes=[0, 1, 2])
    if asked:
        scorer.difficulty(X)
    scorer.partial_fit(X[90:], Y[90:])
    if asked:
        scorer.difficulty(X)
    scorer.set_params(**settings)
    expected = RMDScorer(**settings).fit(X, Y)
    np.testing.assert_allclose(scorer.difficulty(X), expected.difficulty(X), rtol=1e-6)


def test_samples_of_another_norm_are_refused():
    scorer = RMDScorer().fit(X, Y).set_params(normalize=True)
    for call in (scorer.difficulty, scorer.transform, lambda X: scorer.partial_fit(X, Y)):
        with pytest.raises(ValueError, match="normalize must be False as when samples were added"):
            call(X)
    with pytest.raises(ValueError, match="normalize=True"):
        RMDScorer(normalize=True).fit(X, Y).merge(scorer.set_params(normalize=False))
    assert scorer.set_params(normalize=True).fit(X, Y).difficulty(X).shape == (150,)


def test_weights_that_sum_to_one_are_told_where_they_count():
    weight = np.full(150, 1 / 150)
    with pytest.warns(SkcalibWarning, match="sample_weight sums to 1 for 150 samples"):
        RMDScorer(shrinkage="auto").fit(X, Y, sample_weight=weight)
    RMDScorer().fit(X, Y, sample_weight=weight)  # the scale of weights does not count
    RMDScorer(shrinkage="auto").fit(X, Y, sample_weight=150 * weight)
