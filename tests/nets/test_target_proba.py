import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from skorch.dataset import ValidSplit
from torch import nn

from skcalib import losses
from skcalib.nets import MLP, CalibratedNetClassifier, EpochPrioritizer
from skcalib.selection import MaxEntropySelector

# What a network saw is compared as arrays.
pytestmark = pytest.mark.usefixtures("on_host")

RNG = np.random.RandomState(0)
N = 60
X = RNG.randn(N, 4).astype(np.float32)
Y = RNG.randint(3, size=N)
NAMES = np.array(["cat", "dog", "eel"])[Y]
PROBA = RNG.dirichlet(np.ones(3), N)
ONE_HOT = np.eye(3)[Y]


def make_net(**params):
    params = {"max_epochs": 2, "batch_size": 16, "lr": 0.05, "random_state": 0, **params}
    return CalibratedNetClassifier(MLP, module__hidden_layer_sizes=(8,), **params)


class Spy(nn.Module):
    """Cross-entropy that remembers its targets, and what came with them."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, logits, target, *, sample_weight=None, difficulty_weight=None):
        self.seen.append((self.training, target, sample_weight, difficulty_weight))
        return nn.functional.cross_entropy(logits, target)


@pytest.mark.parametrize("criterion", [losses.CrossEntropyLoss, losses.BSCEGRALoss])
def test_one_hot_targets_train_the_network_of_the_labels(criterion):
    given = make_net(criterion=criterion).fit(X, NAMES, target_proba=ONE_HOT).predict_proba(X)
    expected = make_net(criterion=criterion).fit(X, NAMES).predict_proba(X)
    np.testing.assert_allclose(given, expected, rtol=1e-3, atol=1e-5)


def test_a_step_on_the_whole_batch_equals_one_by_hand():
    module = MLP(4, 3, hidden_layer_sizes=(8,))
    options = {"batch_size": -1, "max_epochs": 1, "optimizer": torch.optim.SGD, "lr": 0.1}
    net = CalibratedNetClassifier(module, **options).fit(X, Y, target_proba=PROBA)
    log_proba = torch.log_softmax(module(torch.from_numpy(X)), 1)
    (-(torch.from_numpy(PROBA).float() * log_proba).sum(1).mean()).backward()
    for before, after in zip(module.parameters(), net.module_.parameters()):
        torch.testing.assert_close(before - 0.1 * before.grad, after)


def test_targets_and_weights_follow_their_samples_and_validation_sees_the_labels():
    weight = np.arange(1.0, N + 1)
    split = ValidSplit(5, stratified=True)
    net = make_net(criterion=Spy, train_split=split, callbacks=[])
    net.fit(X, NAMES, sample_weight=weight, difficulty_weight=weight / N, target_proba=PROBA)
    trained = [seen[1:] for seen in net.criterion_.seen if seen[0]]
    held_out = [seen[1:] for seen in net.criterion_.seen if not seen[0]]
    assert sum(len(target) for target, *_ in trained) == 2 * 48
    for target, sample_weight, difficulty_weight in trained:
        at = sample_weight.long().numpy() - 1
        np.testing.assert_array_equal(target, PROBA[at].astype(np.float32))
        np.testing.assert_allclose(difficulty_weight, weight[at] / N, rtol=1e-6)
    for target, sample_weight, _ in held_out:
        np.testing.assert_array_equal(target, Y[sample_weight.long().numpy() - 1])


def test_the_samples_that_a_prioritizer_chooses_keep_their_targets():
    features = np.column_stack([np.arange(N), np.zeros((N, 3))]).astype(np.float32)

    class Look(MLP):
        def forward(self, X):
            self.samples = X[:, 0].long().numpy()
            return super().forward(X)

    class Compare(Spy):
        def forward(self, logits, target, **given):
            expected = PROBA[net.module_.samples].astype(np.float32)
            np.testing.assert_array_equal(target, expected)
            return super().forward(logits, target, **given)

    prioritizer = EpochPrioritizer(MaxEntropySelector(n_samples=20), warmup_epochs=1)
    net = CalibratedNetClassifier(Look, criterion=Compare, prioritizer=prioritizer, max_epochs=3)
    net.fit(features, Y, target_proba=PROBA)
    assert sum(len(target) for _, target, *_ in net.criterion_.seen) == N + 20 + 20


def test_mixup_mixes_the_targets_as_it_mixes_the_samples():
    # The targets are two features of the sample: after mixup they must still be.
    half = RNG.rand(N).astype(np.float32)
    features = np.column_stack([half, 1 - half])

    class Look(MLP):
        def forward(self, X):
            self.X = X
            return super().forward(X)

    class Compare(Spy):
        def forward(self, logits, target, **given):
            torch.testing.assert_close(target, net.module_.X)
            return super().forward(logits, target, **given)

    net = CalibratedNetClassifier(Look, criterion=Compare, mixup_alpha=0.5, max_epochs=2)
    net.fit(features, half > 0.5, target_proba=features)
    assert all(target.is_floating_point() for _, target, *_ in net.criterion_.seen)


@pytest.mark.slow
def test_grid_search_pipeline_and_routing_slice_it_per_fold():
    class Compare(Spy):
        def forward(self, logits, target, *, sample_weight=None):
            at = sample_weight.long().numpy() - 1
            np.testing.assert_array_equal(target, PROBA[at].astype(np.float32))
            return super().forward(logits, target)

    given = {"sample_weight": np.arange(1.0, N + 1), "target_proba": PROBA}
    net = CalibratedNetClassifier(MLP, criterion=Compare, max_epochs=1)
    name = "calibratednetclassifier"
    grid = {f"{name}__module__hidden_layer_sizes": [(4,), (8,)]}
    options = {"cv": 2, "error_score": "raise"}
    search = GridSearchCV(make_pipeline(MinMaxScaler(), net), grid, **options)
    search.fit(X, NAMES, **{f"{name}__{key}": value for key, value in given.items()})
    with sklearn.config_context(enable_metadata_routing=True):
        net.set_fit_request(sample_weight=True, target_proba=True)
        make_pipeline(MinMaxScaler(), net).fit(X, NAMES, **given)


def test_partial_fit_takes_classes_that_no_label_shows():
    net = make_net(max_epochs=1)
    few = Y < 2
    net.partial_fit(X[few], Y[few], classes=[0, 1, 2], target_proba=PROBA[few])
    assert net.predict_proba(X).shape == (N, 3)
    with pytest.raises(ValueError, match=r"target_proba must have shape .*, 2\), .* classes"):
        make_net().fit(X[few], Y[few], target_proba=PROBA[few])


@pytest.mark.slow
def test_columns_that_are_named_by_labels_are_matched_by_name():
    frame = pd.DataFrame(PROBA, columns=["cat", "dog", "eel"])
    expected = make_net().fit(X, NAMES, target_proba=PROBA).predict_proba(X)
    for given in (frame, frame[["eel", "cat", "dog"]], pd.DataFrame(PROBA)):
        np.testing.assert_array_equal(
            make_net().fit(X, NAMES, target_proba=given).predict_proba(X), expected
        )
    with pytest.raises(ValueError, match="target_proba must have columns that are named by the l"):
        make_net().fit(X, NAMES, target_proba=frame.set_axis(["cat", "dog", "fox"], axis=1))


def test_read_only_arrays_are_read():
    proba = PROBA.astype(np.float32)
    proba.flags.writeable = False
    make_net().fit(X, Y, target_proba=proba)


@pytest.mark.parametrize(
    ("proba", "message"),
    [
        (2 * PROBA / 3, "rows of target_proba must sum to 1, got a sum of 0.66"),
        (PROBA - 0.5, r"target_proba must hold probabilities in \[0, 1\]"),
        (np.full((N, 3), np.nan), "target_proba must not contain NaN"),
        (PROBA[:10], r"target_proba must have shape \(60, 3\), .* got shape \(10, 3\)"),
        (np.full((N, 4), 0.25), r"target_proba must have shape \(60, 3\), .* got shape \(60, 4\)"),
        (PROBA[:, 0], r"target_proba must have a column for every class, .* got shape \(60,\)"),
    ],
)
def test_bad_targets_are_told(proba, message):
    with pytest.raises(ValueError, match=message):
        make_net().fit(X, Y, target_proba=proba)


@pytest.mark.parametrize(
    "criterion", [losses.ZeroHingeLoss, losses.MMCELoss, nn.MultiMarginLoss], ids=repr
)
@pytest.mark.parametrize("name", ["target_proba", "mixup_alpha"])
def test_losses_of_class_indices_refuse_by_name(criterion, name):
    params, given = {}, {}
    (given if name == "target_proba" else params)[name] = PROBA if name == "target_proba" else 0.5
    net = make_net(criterion=criterion, **params)
    with pytest.raises(ValueError, match=f"{name}, got {criterion.__name__}, which takes class i"):
        net.fit(X, Y, **given)


def test_batches_that_do_not_know_their_samples_are_refused():
    def loader(dataset, **params):
        return torch.utils.data.DataLoader(dataset, **params)

    with pytest.raises(ValueError, match="target_proba or history"):
        make_net(iterator_train=loader, iterator_train__shuffle=False).fit(
            X, Y, target_proba=PROBA
        )
