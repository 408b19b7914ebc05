import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from skorch.callbacks import Callback
from skorch.dataset import Dataset
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset

from skcalib.nets import MLP, CalibratedNetClassifier
from skcalib.nets._data import (
    FitRows,
    RowLabels,
    batched,
    batches_items,
    check_y,
    collate,
    dataset_labels,
    encode_labels,
)

RNG = np.random.RandomState(0)
X = RNG.rand(30, 4).astype(np.float32)
Y = RNG.randint(3, size=30)


@settings(max_examples=50, deadline=None)
@given(
    classes=st.lists(st.sampled_from("abcdefgh"), min_size=2, unique=True),
    picks=st.lists(st.integers(0, 100), min_size=1, max_size=20),
)
def test_encoding_is_the_position_in_the_classes(classes, picks):
    labels = [classes[i % len(classes)] for i in picks]
    expected = [classes.index(label) for label in labels]
    np.testing.assert_array_equal(encode_labels(labels, np.asarray(classes)), expected)


@pytest.mark.parametrize(
    ("labels", "classes"), [(["a", "q"], ["a", "b"]), ([1, 9], [1, 2]), ([0], ["a", "b"])]
)
def test_unknown_labels_are_told(labels, classes):
    with pytest.raises(ValueError, match=r"y must hold labels from classes \[.*\] only; got \["):
        encode_labels(labels, np.asarray(classes))


def test_rows_of_nested_subsets():
    data = TensorDataset(torch.arange(10))
    rows = FitRows(10, dataset=data)
    inner = Subset(data, [5, 3, 8, 1])
    outer = Subset(inner, np.array([2, 0]))
    np.testing.assert_array_equal(rows.positions(data), np.arange(10))
    np.testing.assert_array_equal(rows.positions(outer), [8, 5])
    assert rows.positions(TensorDataset(torch.arange(10))) is None
    of_subset = FitRows(4, dataset=inner)
    np.testing.assert_array_equal(of_subset.positions(outer), [2, 0])


def batches(dataset, rows, own_collate=False, **params):
    wrapped = batched(dataset, rows, own_collate=own_collate)
    loader = DataLoader(wrapped, batch_size=7, **params)
    default = loader.collate_fn
    loader.collate_fn = lambda items: collate(items, collate_fn=default)
    return list(loader)


@pytest.mark.parametrize("y", [Y, None, np.array(list("abc"))[Y], torch.from_numpy(Y), Y > 1])
@pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy, sparse.csr_matrix])
def test_batches_from_arrays_are_those_of_single_items(convert, y):
    class Slow(Dataset):
        pass

    at, rows = np.array([3, 20, 11, 0, 7, 8, 29, 4, 5]), np.arange(9) * 2
    fast, slow = (batches(Subset(cls(convert(X), y), at), rows) for cls in (Dataset, Slow))
    assert len(fast) == len(slow) == 2
    for (fast_X, fast_y), (slow_X, slow_y) in zip(fast, slow):
        assert isinstance(fast_y, RowLabels)
        assert torch.equal(fast_y.rows, slow_y.rows)
        assert torch.equal(fast_X, slow_X)
        if y is not None:
            np.testing.assert_array_equal(np.asarray(fast_y.labels), np.asarray(slow_y.labels))
    plain = batches(Subset(Dataset(convert(X), y), at), None)
    assert all(torch.equal(a[0], b[0]) for a, b in zip(plain, fast))
    assert not isinstance(plain[0][1], RowLabels)


def test_batches_know_their_rows_only_while_they_last():
    rows = FitRows(30, sample_weight=torch.arange(30.0), dataset=Dataset(X, Y))
    seen = []
    for _ in rows.unwrap(batches(rows.dataset, np.arange(30))):
        seen.append(rows.batch_values(torch.device("cpu"))["sample_weight"])
    np.testing.assert_array_equal(torch.cat(seen), np.arange(30))
    assert rows.batch_values(torch.device("cpu")) == {}


def test_own_collation_and_loaders_without_batches():
    wrapped = batched(Dataset(X, Y), np.arange(30), own_collate=True)
    assert [item[1] for item in wrapped.__getitems__([4, 2]).items] == [Y[4], Y[2]]
    assert batches_items(DataLoader, {})
    assert not batches_items(DataLoader, {"batch_size": None})
    assert not batches_items(list, {})


def test_labels_of_datasets():
    data = TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    np.testing.assert_array_equal(dataset_labels(data), Y)
    np.testing.assert_array_equal(dataset_labels(Subset(data, [4, 2])), Y[[4, 2]])
    np.testing.assert_array_equal(dataset_labels(Dataset(X, Y)), Y)
    assert dataset_labels(ConcatDataset([data])) is None
    data.targets = Y
    assert dataset_labels(data) is data.tensors[1]


def test_columns_of_labels_warn_and_other_shapes_are_refused():
    net = CalibratedNetClassifier(MLP)
    with pytest.warns(UserWarning, match="column-vector"):
        assert check_y(net, Y[:, None], 30).shape == (30,)
    with pytest.raises(ValueError, match="1d array"):
        check_y(net, np.zeros((30, 2)), 30)


def test_any_iterator_of_skorch_still_works():
    class Whole:
        def __init__(self, dataset, batch_size):
            self.dataset = dataset

        def __iter__(self):
            yield torch.utils.data.default_collate(
                [self.dataset[i] for i in range(len(self.dataset))]
            )

    net = CalibratedNetClassifier(MLP, iterator_train=Whole, iterator_valid=Whole, max_epochs=2)
    assert net.fit(X, Y).predict(X).shape == (30,)
    with pytest.raises(ValueError, match="iterator_train must be a DataLoader"):
        net.fit(X, Y, sample_weight=np.ones(30))


def test_a_sampler_of_ones_own_takes_the_place_of_shuffling():
    rows = [3, 1, 1, 7]
    net = CalibratedNetClassifier(
        MLP, iterator_train__sampler=rows, train_split=None, max_epochs=1, callbacks=[Watch()]
    )
    net.fit(X, Y)
    assert net.callbacks[0].rows_ == rows


class Watch(Callback):
    def on_batch_end(self, net, **kwargs):
        self.rows_ = net._rows_.batch_rows.tolist()
