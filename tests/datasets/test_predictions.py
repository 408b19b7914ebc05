import numpy as np
import pytest
from scipy.stats import chisquare

from skcalib.datasets import make_predictions


def test_labels_are_drawn_from_the_true_probabilities():
    y, _, truth = make_predictions(40_000, n_classes=4, random_state=0)
    for k in range(4):
        order = np.argsort(truth[:, k])
        for rows in np.array_split(order, 10):
            expected = truth[rows, k].sum()
            spread = np.sqrt((truth[rows, k] * (1 - truth[rows, k])).sum())
            assert abs((y[rows] == k).sum() - expected) < 4.5 * spread


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_temperature_undoes_the_distortion(temperature):
    _, proba, truth = make_predictions(100, temperature=temperature, random_state=0)
    powered = proba ** (1 / temperature)
    np.testing.assert_allclose(powered / powered.sum(axis=1, keepdims=True), truth, rtol=1e-8)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_one_sample():
    y, proba, truth = make_predictions(1, n_classes=2, random_state=0)
    assert (y.shape, proba.shape, truth.shape) == ((1,), (1, 2), (1, 2))


def test_classes_are_exchangeable():
    y, _, _ = make_predictions(30_000, n_classes=5, random_state=1)
    assert chisquare(np.bincount(y)).pvalue > 1e-3


@pytest.mark.parametrize("params", [{"n_samples": 0}, {"n_classes": 1}, {"temperature": 0}])
def test_bad_input(params):
    with pytest.raises(ValueError, match=f"'{next(iter(params))}' parameter"):
        make_predictions(**params)
