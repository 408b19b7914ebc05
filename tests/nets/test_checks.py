import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator
from skorch.dataset import Dataset
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from skcalib.nets._checks import (
    check_difficulty_weight,
    check_inputs,
    check_X,
    check_y,
    get_labels,
    get_sizes,
)

RNG = np.random.RandomState(0)
X = RNG.rand(30, 4).astype(np.float32)
Y = RNG.randint(3, size=30)


def test_labels_of_datasets():
    data = TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    np.testing.assert_array_equal(get_labels(data), Y)
    np.testing.assert_array_equal(get_labels(Subset(data, [4, 2])), Y[[4, 2]])
    np.testing.assert_array_equal(get_labels(Dataset(X, Y)), Y)
    assert get_labels(ConcatDataset([data])) is None
    data.targets = Y
    assert get_labels(data) is data.tensors[1]


def test_sizes_of_a_sample():
    assert get_sizes(X) == {"n_features": 4, "n_channels": 4}
    assert get_sizes(X.reshape(30, 2, 1, 2)) == {"n_features": 4, "n_channels": 2}
    assert get_sizes(TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)))["n_features"] == 4
    assert get_sizes({"a": X}) == {}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_floats_of_an_accelerator_are_read_like_arrays(device, dtype):
    net = BaseEstimator()
    there = check_X(net, torch.tensor(X, device=device).to(dtype), reset=True)
    assert (there.device.type, there.dtype) == (device, torch.float32)
    np.testing.assert_allclose(there.cpu().numpy(), X, atol=1e-3)
    assert net.n_features_in_ == 4
    with pytest.raises(ValueError, match="expecting 4 features"):
        check_X(net, there[:, :3], reset=False)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        check_X(net, there * np.nan, reset=False)
    tokens = torch.ones((2, 3), dtype=torch.int64, device=device)
    assert check_X(net, tokens, reset=False) is tokens


def test_columns_of_labels_warn_and_other_shapes_are_refused():
    with pytest.warns(UserWarning, match="column-vector"):
        assert check_y(Y[:, None], 30).shape == (30,)
    with pytest.raises(ValueError, match="1d array"):
        check_y(np.zeros((30, 2)), 30)
    with pytest.raises(ValueError, match="X and y must have the same number of samples, got 31 a"):
        check_y(Y, 31)


@pytest.mark.parametrize("name", ["sample_weight", "difficulty_weight"])
def test_weights_beyond_float32_are_refused(name):
    for values in ([1.0, 1e39, 0.0], [1e-50, 0.0, 1e-60]):
        with pytest.raises(ValueError, match=f"{name} must be in the range of float32, got a l"):
            check_inputs(3, np.arange(2), **{name: values})


def test_weights_become_float32_tensors():
    inputs = check_inputs(
        3, np.arange(2), sample_weight=[0, 1, 2], difficulty_weight=np.array([0.5, 0.25, 1.0])
    )
    assert inputs.sample_weight.dtype == inputs.difficulty_weight.dtype == torch.float32
    assert inputs.sample_weight.tolist() == [0, 1, 2]
    assert inputs.difficulty_weight.tolist() == [0.5, 0.25, 1]
    assert check_inputs(3, np.arange(2)).sample_weight is None


def test_difficulty_weights_may_be_0_and_1_but_not_beyond():
    check_difficulty_weight(torch.tensor([0.0, 0.5, 1.0]))
    check_difficulty_weight(None)
    for value, number in ((-0.001, "-0.001"), (1.001, "1.001")):
        with pytest.raises(ValueError, match=f"got {number} for sample 2"):
            check_difficulty_weight(torch.tensor([0.0, 1.0, value, 7.0]))


def test_labels_of_another_byte_order_are_read():
    labels = check_y(np.array([0, 1, 2], dtype=">i8"), 3)
    assert labels.dtype.isnative
    assert labels.tolist() == [0, 1, 2]
