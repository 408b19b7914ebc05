import numpy as np
import torch
from skorch.dataset import Dataset
from torch.utils.data import DataLoader, Subset, TensorDataset

from skcalib.nets._batches import collate, wrap
from skcalib.nets._samples import DataSplit, FitInputs, FitState


def test_positions_of_nested_subsets_are_those_in_the_data_of_the_fit():
    data = TensorDataset(torch.arange(10))
    inner = Subset(data, [5, 3, 8, 1])
    outer = Subset(inner, np.array([2, 0]))
    split = DataSplit(data, 10)
    np.testing.assert_array_equal(split.positions(data), np.arange(10))
    np.testing.assert_array_equal(split.positions(outer), [8, 5])
    assert split.positions(TensorDataset(torch.arange(10))) is None
    np.testing.assert_array_equal(DataSplit(inner, 4).positions(outer), [2, 0])


def test_values_of_a_batch_are_known_only_while_it_lasts():
    data = Dataset(np.zeros((30, 4), np.float32), np.zeros(30, int))
    fit = FitState(FitInputs(30, sample_weight=torch.arange(30.0)))
    loader = DataLoader(wrap(data, np.arange(30), own_collate=False), batch_size=7)
    loader.collate_fn = lambda items: collate(items, collate_fn=None)
    seen = [fit.batch_values(torch.device("cpu"))["sample_weight"] for _ in fit.unwrap(loader)]
    np.testing.assert_array_equal(torch.cat(seen), np.arange(30))
    assert fit.batch_values(torch.device("cpu")) == {}
