"""X and y of estimators: what is refused, and that errors say which of the two is meant."""

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator

from skcalib.utils._arrays import naming
from skcalib.utils._features import samples_and_labels, validate_data

X = np.arange(12.0).reshape(4, 3)
Y = np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ([["a", 1.0]], "^X must be an array that .* not compatible with arrays of bytes"),
        ({1.0, 2.0}, "^X must be array-like, got set"),
        (3.0, "^X must be an array that can be used here, got one that cannot: Expected 2D"),
        (X[:0], "^X must be an array that .* Found array with 0 sample"),
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


def test_tensors_are_read():
    tensor = torch.tensor(X, requires_grad=True)
    np.testing.assert_array_equal(validate_data(BaseEstimator(), tensor), X)


def test_kind_of_the_error_is_kept():
    for kind in (TypeError, ValueError):
        with pytest.raises(kind, match=r"^weight must be .*: it is broken$"), naming("weight"):
            raise kind("it is broken")
        with pytest.raises(kind, match=r"^the weight is broken$"), naming("weight"):
            raise kind("the weight is broken")


def test_samples_of_a_meta_estimator_need_not_be_numbers():
    texts, labels = samples_and_labels(["one", "two"], ["a", "b"])
    assert texts == ["one", "two"]
    assert labels.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match=r"^X and y must have the same number of samples, got 2"):
        samples_and_labels(["one", "two"], [0, 1, 0])
