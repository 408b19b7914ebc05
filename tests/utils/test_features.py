"""X and y of estimators: what is refused, and that errors say which of the two is meant."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data as sklearn_validate

from skcalib.utils import _estimators
from skcalib.utils._estimators import read_samples, validate_data
from skcalib.utils._output import name_argument

X = np.arange(12.0).reshape(4, 3)
Y = np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ([["a", 1.0]], "^X cannot be used: .* not compatible with arrays of bytes"),
        ({1.0, 2.0}, "^X must be array-like, got set"),
        (3.0, "^X cannot be used: Expected 2D"),
        (X[:0], "^X cannot be used: Found array with 0 sample"),
        (X * np.nan, "^Input X contains NaN"),
        (X.astype("M8[s]"), r"^X must hold numbers, got dtype datetime64\[s\]"),
        (np.zeros((4, 3), dtype=[("a", float)]), "^X must hold numbers, got dtype"),
        (np.ma.masked_less(X, 2), "^X must not be masked"),
        (X[:3], "^X and y must have the same number of samples, got 3 and 4"),
    ],
)
def test_what_is_wrong_with_x_says_so(broken, message):
    with pytest.raises((TypeError, ValueError), match=message):
        validate_data(BaseEstimator(), broken, Y)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -np.nan])
@pytest.mark.parametrize("place", [(0, 0), (2999, 2), (1400, 1)])
def test_half_precision_is_checked_in_blocks_with_the_words_of_scikit_learn(
    monkeypatch, value, place
):
    monkeypatch.setattr(_estimators, "BLOCK_SIZE", 1000)
    limits = [np.finfo(np.float16).max, -np.finfo(np.float16).max, 0.0]
    wide = np.tile(np.array(limits, dtype=np.float16), (3000, 2))
    for samples in (wide[:, :3], wide[:, ::2], np.asfortranarray(wide[:, :3])):
        assert validate_data(BaseEstimator(), samples, dtype=[np.float16]) is samples
        spoiled = samples.copy()
        spoiled[place] = value
        with pytest.raises(ValueError) as expected:
            sklearn_validate(BaseEstimator(), spoiled)
        with pytest.raises(ValueError) as raised:
            validate_data(BaseEstimator(), spoiled)
        assert str(raised.value) == str(expected.value)
        with config_context(assume_finite=True):
            validate_data(BaseEstimator(), spoiled)


def test_half_precision_needs_no_mask_of_all_values():
    samples = np.ones((20000, 500), dtype=np.float16)
    tracemalloc.start()
    try:
        validate_data(BaseEstimator(), samples, dtype=[np.float16])
        # Two blocks of two bytes a value; the samples are 20 MB.
        assert tracemalloc.get_traced_memory()[1] < 4.1 * _estimators.BLOCK_SIZE
    finally:
        tracemalloc.stop()


def test_tensors_are_read():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(X, requires_grad=True)
    np.testing.assert_array_equal(validate_data(BaseEstimator(), tensor), X)


def test_kind_of_the_error_is_kept():
    for kind in (TypeError, ValueError):
        with (
            pytest.raises(kind, match=r"^weight cannot be used: it is broken$"),
            name_argument("weight"),
        ):
            raise kind("it is broken")
        with pytest.raises(kind, match=r"^the weight is broken$"), name_argument("weight"):
            raise kind("the weight is broken")


def test_samples_of_a_meta_estimator_need_not_be_numbers():
    texts, labels = read_samples(["one", "two"], ["a", "b"])
    assert texts == ["one", "two"]
    assert labels.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match=r"^X and y must have the same number of samples, got 2"):
        read_samples(["one", "two"], [0, 1, 0])


def test_column_of_arrays_is_refused_with_the_way_out():
    column = pd.Series([np.ones(2), np.zeros(2)])
    with pytest.raises(
        ValueError, match=r"^X must be an array of two dimensions, .*np\.stack\(X\)"
    ):
        validate_data(BaseEstimator(), column)
    images, _ = read_samples(column.to_numpy(), ["a", "b"])
    assert len(images) == 2
