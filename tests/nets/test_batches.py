import numpy as np
import pytest
import torch
from scipy import sparse
from skorch.callbacks import Callback
from skorch.dataset import Dataset
from torch.utils.data import DataLoader, Subset

from skcalib.nets import MLP, CalibratedNetClassifier
from skcalib.nets._data import BatchLabels, collate, makes_batches, wrap

RNG = np.random.RandomState(0)
X = RNG.rand(30, 4).astype(np.float32)
Y = RNG.randint(3, size=30)


def batches(dataset, samples, own_collate=False, **params):
    wrapped = wrap(dataset, samples, own_collate=own_collate)
    loader = DataLoader(wrapped, batch_size=7, **params)
    default = loader.collate_fn
    loader.collate_fn = lambda items: collate(items, collate_fn=default)
    return list(loader)


# Of torch's own collation of single bools, with numpy 1.26.
@pytest.mark.filterwarnings("ignore:In future, it will be an error for 'np.bool_'")
@pytest.mark.parametrize("y", [Y, None, np.array(list("abc"))[Y], torch.from_numpy(Y), Y > 1])
@pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy, sparse.csr_matrix])
def test_batches_from_arrays_are_those_of_single_items(convert, y):
    class Slow(Dataset):  # transforms its items, one by one
        def transform(self, X, y):
            X, y = super().transform(X, y)
            return 2 * X, y

    at, samples = np.array([3, 20, 11, 0, 7, 8, 29, 4, 5]), np.arange(9) * 2
    fast, slow = (batches(Subset(cls(convert(X), y), at), samples) for cls in (Dataset, Slow))
    assert len(fast) == len(slow) == 2
    for (fast_X, fast_y), (slow_X, slow_y) in zip(fast, slow):
        assert isinstance(fast_y, BatchLabels)
        assert torch.equal(fast_y.samples, slow_y.samples)
        assert torch.equal(2 * fast_X, slow_X)
        if y is not None:
            np.testing.assert_array_equal(np.asarray(fast_y.labels), np.asarray(slow_y.labels))
    plain = batches(Subset(Dataset(convert(X), y), at), None)
    assert all(torch.equal(a[0], b[0]) for a, b in zip(plain, fast))
    assert not isinstance(plain[0][1], BatchLabels)


def test_own_collation_and_loaders_without_batches():
    wrapped = wrap(Dataset(X, Y), np.arange(30), own_collate=True)
    assert [item[1] for item in wrapped.__getitems__([4, 2]).items] == [Y[4], Y[2]]
    assert makes_batches(DataLoader, {})
    assert not makes_batches(DataLoader, {"batch_size": None})
    assert not makes_batches(list, {})


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
    samples = [3, 1, 1, 7]
    net = CalibratedNetClassifier(
        MLP, iterator_train__sampler=samples, train_split=None, max_epochs=1, callbacks=[Watch()]
    )
    net.fit(X, Y)
    assert net.callbacks[0].samples_ == samples


class Watch(Callback):
    def on_batch_end(self, net, **kwargs):
        self.samples_ = net._fit_.batch_samples.tolist()
