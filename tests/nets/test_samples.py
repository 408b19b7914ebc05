import numpy as np
import pytest
import torch
from skorch.dataset import Dataset, ValidSplit
from torch.utils.data import DataLoader, Subset, TensorDataset

from skcalib.nets._data import DataSplit, FitInputs, FitState, collate, split_groups, wrap


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


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize(
    ("cv", "one_in"), [(None, 5), (5, 5), (3, 3), (0.2, 5), (0.34, 3), (0.5, 2), (0.9, 2)]
)
def test_one_part_of_the_groups_is_held_out(cv, one_in, labels):
    groups = np.repeat(np.arange(30), 4)
    y = np.tile([0, 1, 0, 1], 30) if labels else None
    data = TensorDataset(torch.arange(120))

    def held_out(seed=None):
        split = ValidSplit(cv, random_state=seed)
        train, valid = split_groups(split, data, y, groups)
        assert train.dataset is valid.dataset is data
        np.testing.assert_array_equal(np.sort([*train.indices, *valid.indices]), np.arange(120))
        assert not set(groups[train.indices]) & set(groups[valid.indices])
        assert len(valid) == 120 // one_in
        return valid.indices.tolist()

    if labels and cv is not None and cv < 1:  # a fraction is drawn
        assert len({tuple(held_out(seed)) for seed in range(5)}) == 5
    else:
        assert held_out() == held_out()
    few = np.minimum(groups, one_in - 1)
    assert len(split_groups(ValidSplit(cv), data, y, few)[1]) > 0
    with pytest.raises(ValueError, match=f"groups must have at least {one_in} values"):
        split_groups(ValidSplit(cv), data, y, np.minimum(groups, one_in - 2))


@pytest.mark.parametrize("seed", range(5))
def test_groups_that_are_held_out_have_the_shares_of_the_classes(seed):
    groups = np.repeat(np.arange(30), 4)
    y = np.repeat(np.arange(30) % 6 == 0, 4).astype(int)
    split = ValidSplit(0.2, random_state=seed)
    _, valid = split_groups(split, TensorDataset(torch.arange(120)), y, groups)
    assert y[valid.indices].sum() == 4  # one of five groups of the class, as of all thirty
    assert len(valid) == 24
