import numpy as np
import pytest
import torch
from torch import nn

from skcalib.losses import CorrectnessRankingLoss, FocalLoss
from skcalib.nets import MLP, CalibratedNetClassifier
from skcalib.nets._data import Mixup

RNG = np.random.RandomState(0)
X = RNG.randn(64, 4).astype(np.float32)
Y = RNG.randint(3, size=64)


def make_net(**params):
    params = {
        "mixup_alpha": 0.5,
        "train_split": None,
        "random_state": 0,
        "max_epochs": 2,
        **params,
    }
    return CalibratedNetClassifier(MLP, module__hidden_layer_sizes=(8,), batch_size=16, **params)


def test_samples_labels_and_weights_are_combined_in_the_same_fractions():
    draw = Mixup(0.25, torch.tensor([2, 0, 1]))
    X, y = torch.randn(3, 4), torch.tensor([0, 1, 1])
    weight = torch.tensor([1.0, 2.0, 5.0])
    mixed, target = draw.inputs({"a": [X]})["a"][0], draw.targets(y, 2)
    mixed_weight = draw.batch_values({"sample_weight": weight})["sample_weight"]
    for i, j in enumerate([2, 0, 1]):
        torch.testing.assert_close(mixed[i], 0.25 * X[i] + 0.75 * X[j])
        expected = torch.zeros(2)
        expected[y[i]] += 0.25
        expected[y[j]] += 0.75
        torch.testing.assert_close(target[i], expected)
        torch.testing.assert_close(mixed_weight[i], 0.25 * weight[i] + 0.75 * weight[j])


@pytest.mark.slow
def test_fractions_follow_the_beta_distribution():
    torch.manual_seed(0)
    fractions = np.array([Mixup.draw(0.4, 2).fraction for _ in range(4000)])
    assert abs(fractions.mean() - 0.5) < 0.03
    assert abs(fractions.var() - 1 / (4 * (2 * 0.4 + 1))) < 0.01


def test_training_sees_soft_targets_and_validation_hard_ones():
    class Loss(nn.CrossEntropyLoss):
        seen = ()

        def forward(self, logits, target):
            self.seen = (*self.seen, (self.training, target.is_floating_point(), logits.shape))
            return super().forward(logits, target)

    net = make_net(criterion=Loss, train_split=half_split).fit(X, Y)
    assert {(training, soft) for training, soft, _ in net.criterion_.seen} == {
        (True, True),
        (False, False),
    }


def half_split(data, y):
    return torch.utils.data.Subset(data, range(32)), torch.utils.data.Subset(data, range(32, 64))


@pytest.mark.usefixtures("on_host")
def test_one_step_equals_a_step_by_hand():
    torch.manual_seed(3)
    module = MLP(4, 3, hidden_layer_sizes=(8,))
    options = {"batch_size": -1, "max_epochs": 1, "iterator_train__shuffle": False}
    net = CalibratedNetClassifier(
        module, mixup_alpha=0.5, optimizer=torch.optim.SGD, lr=0.1, **options
    )
    torch.manual_seed(4)
    net.fit(X, Y)
    torch.manual_seed(4)
    torch.empty((), dtype=torch.int64).random_()  # the seed that a DataLoader draws
    draw = Mixup.draw(0.5, len(X))
    fraction, partner = draw.fraction, draw.partner
    data, labels = torch.from_numpy(X), torch.from_numpy(Y)
    logits = module(fraction * data + (1 - fraction) * data[partner])
    first, second = (nn.functional.cross_entropy(logits, y) for y in (labels, labels[partner]))
    loss = fraction * first + (1 - fraction) * second
    loss.backward()
    for before, after in zip(module.parameters(), net.module_.parameters()):
        torch.testing.assert_close(before - 0.1 * before.grad, after)


def test_house_losses_take_it_with_weights():
    net = make_net(criterion=FocalLoss).fit(X, Y, sample_weight=RNG.rand(64))
    assert np.isfinite(net.history[:, "train_loss"]).all()


def test_zero_is_off():
    np.testing.assert_array_equal(
        make_net(mixup_alpha=0).fit(X, Y).predict_proba(X),
        make_net(mixup_alpha=None).fit(X, Y).predict_proba(X),
    )


def test_integer_input_cannot_be_mixed():
    class Embed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(12, 3))

        def forward(self, X):
            return self.layers(X)

    tokens = torch.randint(5, (64, 4))
    options = {"train_split": None, "max_epochs": 1}
    assert CalibratedNetClassifier(Embed, **options).fit(tokens, Y).predict(tokens).shape == (64,)
    with pytest.raises(ValueError, match="X must hold floating-point numbers for mixup_alpha"):
        CalibratedNetClassifier(Embed, mixup_alpha=0.5, **options).fit(tokens, Y)


def test_ranking_by_past_correctness_cannot_be_mixed():
    with pytest.raises(ValueError, match="mixup_alpha must be None with CorrectnessRankingLoss"):
        make_net(criterion=CorrectnessRankingLoss).fit(X, Y)


def test_negative_alpha():
    with pytest.raises(ValueError, match="mixup_alpha"):
        make_net(mixup_alpha=-1).fit(X, Y)
