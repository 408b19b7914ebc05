"""Generalized Brier scores against a loop and scikit-learn."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.metrics import brier_score_loss

from skcalib.metrics import generalized_brier_score


def sample(n=80, k=5, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(k), n)
    return rng.integers(0, k, n), proba


@pytest.mark.parametrize("k", [2, 5, 200])
@pytest.mark.parametrize("order", [1, 1.5, 2, 7, np.inf])
@pytest.mark.parametrize("exponent", [0.5, 1, 2, 4])
def test_against_a_loop(k, order, exponent):
    y, proba = sample(k=k)
    expected = [
        np.linalg.norm(row - np.eye(k)[label], ord=order) ** exponent
        for row, label in zip(proba, y)
    ]
    score = generalized_brier_score(y, proba, order=order, exponent=exponent)
    np.testing.assert_allclose(score, expected, rtol=1e-12)


def test_mean_is_the_brier_score_of_scikit_learn():
    y, proba = sample()
    assert generalized_brier_score(y, proba).mean() == pytest.approx(
        brier_score_loss(y, proba, labels=range(5), scale_by_half=False)
    )


def test_identities():
    y, proba = sample()
    q = 1 - proba[np.arange(len(y)), y]
    for g in (1, 3):
        infinite = generalized_brier_score(y, proba, order=np.inf, exponent=g)
        absolute = generalized_brier_score(y, proba, order=1, exponent=g)
        np.testing.assert_allclose(infinite, q**g)
        np.testing.assert_allclose(absolute, 2**g * q**g)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [66, 500, 1e6])
def test_high_orders_approach_the_largest_deviation(dtype, order):
    # Powers of the deviations themselves underflow to a perfect 0.
    proba = np.array([[0.8, 0.1, 0.1], [0.02, 0.9, 0.08]], dtype=dtype)
    score = generalized_brier_score([0, 0], proba, order=order, exponent=1)
    deviation = np.abs(proba.astype(np.float64) - [1, 0, 0])
    expected = np.exp(logsumexp(order * np.log(deviation), axis=1) / order)
    np.testing.assert_allclose(score, expected, rtol=1e-6)


def test_bounds():
    certain = np.eye(3)
    np.testing.assert_array_equal(generalized_brier_score([0, 1, 2], certain), 0)
    worst = generalized_brier_score([1, 2, 0], certain, order=3, exponent=2)
    np.testing.assert_allclose(worst, 2 ** (2 / 3))


def test_positive_class_alone_stands_for_two_columns():
    y, proba = sample(k=2)
    np.testing.assert_allclose(
        generalized_brier_score(y, proba[:, 1]), generalized_brier_score(y, proba)
    )


def test_small_errors_keep_their_digits():
    score = generalized_brier_score([0], [[1 - 1e-9, 1e-9]], exponent=1)
    assert score[0] == pytest.approx(np.sqrt(2) * 1e-9, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"order": 0.5}, "'order' parameter"), ({"exponent": 0}, "'exponent' parameter")],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        generalized_brier_score(*sample(), **options)
