import numpy as np
import pytest
import torch
from torch import nn

from skcalib.nets import MLP, CalibratedNetClassifier


def test_without_hidden_layers_it_is_linear():
    module = MLP(3, 2, hidden_layer_sizes=())
    data = torch.rand(4, 3)
    (linear,) = (m for m in module.modules() if isinstance(m, nn.Linear))
    torch.testing.assert_close(module(data), data @ linear.weight.T + linear.bias)


def test_layers_have_the_widths_asked_for_and_dropout_only_if_asked_for():
    module = MLP(5, 3, hidden_layer_sizes=(7, 4), dropout=0.25)
    sizes = [(m.in_features, m.out_features) for m in module.modules() if isinstance(m, nn.Linear)]
    assert sizes == [(5, 7), (7, 4), (4, 3)]
    assert [m.p for m in module.modules() if isinstance(m, nn.Dropout)] == [0.25, 0.25]
    assert not [m for m in MLP(5, 3).modules() if isinstance(m, nn.Dropout)]


def test_trains_on_images_with_sizes_from_the_data():
    images = np.random.RandomState(0).rand(12, 2, 4, 4).astype(np.float32)
    net = CalibratedNetClassifier(MLP, module__dropout=0.2, max_epochs=1, train_split=None)
    net.fit(images, np.arange(12) % 4)
    assert net.predict_proba(images).shape == (12, 4)
    assert all(p.grad is not None for p in net.module_.parameters())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dropout": float("nan")}, r"dropout must be a number in \[0, 1\), got nan"),
        ({"dropout": None}, r"dropout must be a number in \[0, 1\), got None"),
        ({"dropout": True}, "dropout must be"),
        ({"dropout": 1.0}, "dropout must be"),
        ({"n_features": 0}, "n_features must be an integer >= 1, got 0"),
        ({"n_classes": True}, "n_classes must be an integer >= 1, got True"),
        ({"hidden_layer_sizes": (8, 0)}, "hidden_layer_sizes must be an integer >= 1, got 0"),
        ({"hidden_layer_sizes": (8.0,)}, "hidden_layer_sizes must be an integer >= 1, got 8.0"),
        ({"hidden_layer_sizes": 8}, "hidden_layer_sizes must be a sequence of integers, got 8"),
    ],
)
def test_bad_sizes_are_named(change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        MLP(**({"n_features": 4, "n_classes": 3} | change))
