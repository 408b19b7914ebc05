import pickle
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import sklearn
import skorch
import torch
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, GroupKFold
from skorch.callbacks import Callback, EarlyStopping, EpochScoring
from skorch.dataset import ValidSplit
from skorch.helper import SliceDataset
from skorch.hf import AccelerateMixin
from torch import nn

from skcalib.difficulty import DifficultyAwareClassifier
from skcalib.losses import DifficultyAwareLoss
from skcalib.nets import (
    MLP,
    CalibratedNetClassifier,
    EpochPrioritizer,
    TrainingDynamics,
    adversarial_input_margin,
)
from skcalib.selection import MaxEntropySelector

X, Y = make_classification(
    120, 6, n_informative=5, n_redundant=0, n_classes=3, class_sep=2.0, random_state=0
)
X = X.astype(np.float32)
NAMES = np.array(["cat", "dog", "eel"])[Y]


def make_net(**params):
    params = {
        "module__hidden_layer_sizes": (16,),
        "optimizer": torch.optim.SGD,
        "lr": 0.1,
        "batch_size": 20,
        "max_epochs": 3,
        "train_split": ValidSplit(5, stratified=True),
        "random_state": 0,
        **params,
    }
    return CalibratedNetClassifier(MLP, **params)


class Recorder(nn.Module):
    """Cross-entropy by hand that remembers what came with every batch."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, logits, target, *, difficulty_weight=None, sample_weight=None):
        self.seen.append((self.training, target.clone(), difficulty_weight, sample_weight))
        return -torch.log_softmax(logits, 1)[torch.arange(len(target)), target].mean()


@pytest.mark.parametrize("criterion", [nn.CrossEntropyLoss, nn.MultiMarginLoss])
@pytest.mark.usefixtures("on_host")
def test_predict_proba_is_the_softmax_of_logits_whatever_the_criterion(criterion):
    net = make_net(criterion=criterion).fit(X, Y)
    with torch.no_grad():
        logits = net.module_(torch.from_numpy(X)).double().numpy()
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(net.predict_proba(X), expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(net.decision_function(X), logits, rtol=1e-5, atol=1e-6)


def test_binary_decision_function_is_the_log_odds_of_the_second_class():
    net = make_net().fit(X, Y > 0)
    scores, proba = net.decision_function(X), net.predict_proba(X)
    assert scores.shape == (len(X),)
    np.testing.assert_allclose(1 / (1 + np.exp(-scores)), proba[:, 1], atol=1e-6)
    np.testing.assert_array_equal(net.predict(X), scores > 0)


@pytest.mark.slow
def test_learns_and_validates_on_string_labels():
    net = make_net(max_epochs=15, callbacks=[EpochScoring("f1_macro", lower_is_better=False)])
    net.fit(X, NAMES)
    assert net.classes_.tolist() == ["cat", "dog", "eel"]
    assert set(net.predict(X)) <= set(NAMES)
    assert net.score(X, NAMES) > 0.8
    assert net.history[-1, "valid_acc"] > 0.7
    assert net.history[-1, "f1_macro"] > 0.7


def test_scores_without_cache_see_the_labels_as_given():
    scoring = EpochScoring("accuracy", use_caching=False, name="again", lower_is_better=False)
    net = make_net(callbacks=[scoring]).fit(X, NAMES)
    assert net.history[:, "again"] == net.history[:, "valid_acc"]


@pytest.mark.slow
def test_labels_of_any_kind_train_the_same_network():
    expected = make_net().fit(X, Y).predict_proba(X)
    for labels in (
        NAMES,
        NAMES.tolist(),
        Y * 10 - 3,
        Y.astype(float),
        pd.Series(NAMES, dtype="category"),
    ):
        np.testing.assert_array_equal(make_net().fit(X, labels).predict_proba(X), expected)


@pytest.mark.slow
def test_classes_may_be_given_in_another_order():
    order = [1, 2, 0]
    net = make_net(classes=["dog", "eel", "cat"], max_epochs=15).fit(X, NAMES)
    plain = make_net(max_epochs=15).fit(X, np.argsort(order)[Y])
    assert net.classes_.tolist() == ["dog", "eel", "cat"]
    np.testing.assert_array_equal(net.predict_proba(X), plain.predict_proba(X))


@pytest.mark.slow
def test_input_types_train_the_same_network():
    names = [f"f{i}" for i in range(X.shape[1])]
    frame = pd.DataFrame(X.astype(np.float64), columns=names)
    expected = make_net().fit(X, Y).predict_proba(X)
    for data in (X.astype(np.float64), frame, X.tolist(), torch.from_numpy(X)):
        net = make_net().fit(data, Y)
        np.testing.assert_array_equal(net.predict_proba(data), expected)
    assert make_net().fit(frame, Y).feature_names_in_.tolist() == names


@pytest.mark.slow
def test_random_state_repeats_the_fit_and_spares_the_global_generator():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = make_net(module__dropout=0.5).fit(X, Y)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    second = clone(first).fit(X, Y)
    other = clone(first).set_params(random_state=1).fit(X, Y)
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert np.abs(first.predict_proba(X) - other.predict_proba(X)).max() > 1e-3


@pytest.mark.slow
def test_without_random_state_the_global_generator_decides():
    def run():
        torch.manual_seed(3)
        return make_net(random_state=None).fit(X, Y).predict_proba(X)

    np.testing.assert_array_equal(run(), run())


def test_every_epoch_takes_the_samples_in_a_new_order():
    net = make_net(criterion=Recorder, max_epochs=2, batch_size=96)
    net.fit(X, Y)
    first, second = (target for training, target, *_ in net.criterion_.seen if training)
    assert torch.equal(first.sort().values, second.sort().values)
    assert not torch.equal(first, second)


@pytest.mark.usefixtures("on_host")
def test_both_weights_follow_their_samples():
    weight = np.arange(1.0, len(X) + 1)
    difficulty_weight = weight / 128
    features = np.column_stack([weight, np.zeros_like(weight)]).astype(np.float32)

    class Spy(MLP):
        def forward(self, X):
            self.samples = X[:, 0].clone()
            return super().forward(X)

    class SpyLoss(Recorder):
        def forward(self, logits, target, **given):
            np.testing.assert_array_equal(given["sample_weight"], net.module_.samples)
            np.testing.assert_array_equal(given["difficulty_weight"], net.module_.samples / 128)
            return super().forward(logits, target, **given)

    split = ValidSplit(5, stratified=True)
    net = CalibratedNetClassifier(Spy, criterion=SpyLoss, max_epochs=2, train_split=split)
    net.fit(features, Y, sample_weight=weight, difficulty_weight=difficulty_weight)
    trained = torch.cat([w for training, *_, w in net.criterion_.seen if training])
    held_out = torch.cat([w for training, *_, w in net.criterion_.seen if not training])
    assert len(trained) == 2 * 96
    assert len(held_out) == 2 * 24
    assert not set(trained.tolist()) & set(held_out.tolist())


@pytest.mark.slow
def test_grid_search_slices_both_weights_per_fold():
    class SpyLoss(Recorder):
        def forward(self, logits, target, *, difficulty_weight=None, sample_weight=None):
            assert torch.equal(difficulty_weight, sample_weight / 2)
            return super().forward(logits, target)

    net = CalibratedNetClassifier(MLP, criterion=SpyLoss, max_epochs=1)
    weight = np.linspace(0.1, 1, len(X))
    search = GridSearchCV(
        net, {"module__hidden_layer_sizes": [(4,), (8,)]}, cv=2, error_score="raise"
    )
    search.fit(X, NAMES, sample_weight=weight, difficulty_weight=weight / 2)
    assert search.best_estimator_.criterion_.seen


@pytest.mark.slow
def test_weight_is_repetition_in_the_loss_of_a_full_batch():
    count = np.random.RandomState(0).randint(0, 4, len(X))
    options = {"train_split": None, "batch_size": -1, "max_epochs": 5}
    for criterion in (
        {},
        {"criterion__weight": torch.tensor([1.0, 2.0, 5.0])},
        {"criterion": nn.MultiMarginLoss},
    ):
        weighted = make_net(**options, **criterion).fit(X, Y, sample_weight=count)
        repeated = make_net(**options, **criterion).fit(X.repeat(count, 0), Y.repeat(count))
        np.testing.assert_allclose(
            weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-4, atol=1e-6
        )


@pytest.mark.usefixtures("on_host")
def test_parameters_stay_as_given():
    module, criterion = MLP(6, 3), nn.CrossEntropyLoss()
    before = [p.clone() for p in module.parameters()]
    net = CalibratedNetClassifier(module, criterion=criterion, lr=0.5, max_epochs=2).fit(X, Y)
    assert net.module is module
    assert net.get_params()["device"] == "auto"
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters()))
    assert not torch.equal(before[0], next(net.module_.parameters()))


def test_pickle_and_frozen_estimator():
    net = make_net().fit(X, NAMES)
    again = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(again.predict_proba(X), net.predict_proba(X))
    assert again.get_params()["device"] == "auto"
    frozen = clone(FrozenEstimator(net)).fit(X, NAMES)
    np.testing.assert_array_equal(frozen.predict(X), net.predict(X))


@pytest.mark.slow
def test_grid_search_in_two_processes_over_the_criterion():
    search = GridSearchCV(
        make_net(max_epochs=1), {"criterion__label_smoothing": [0.0, 0.5]}, cv=2, n_jobs=2
    )
    with parallel_config("multiprocessing"):  # forks where it can: nothing is imported again
        search.fit(X, NAMES, sample_weight=np.ones(len(X)))
    assert search.best_estimator_.criterion_.label_smoothing in (0.0, 0.5)


def test_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        net = CalibratedNetClassifier(MLP, criterion=Recorder, max_epochs=1)
        net.set_fit_request(sample_weight=True, difficulty_weight=True)
        net.set_score_request(sample_weight=False)
        search = GridSearchCV(
            net, {"module__hidden_layer_sizes": [(4,)]}, cv=2, error_score="raise"
        )
        search.fit(X, Y, sample_weight=np.ones(len(X)), difficulty_weight=np.ones(len(X)))
        assert all(w is not None for *_, w in search.best_estimator_.criterion_.seen)


def test_partial_fit_goes_on():
    net = make_net(max_epochs=1)
    net.partial_fit(X[Y < 2], NAMES[Y < 2], classes=["cat", "dog", "eel"])
    net.partial_fit(X, NAMES)
    assert len(net.history) == 2
    assert net.predict_proba(X).shape == (len(X), 3)
    with pytest.raises(ValueError, match=r"y must hold labels among .*, got 'fox' in row"):
        net.partial_fit(X, np.where(Y == 0, "fox", NAMES))


def test_warm_start_goes_on_and_draws_on():
    net = make_net(warm_start=True, max_epochs=1).fit(X, Y)
    net.fit(X, Y)
    assert len(net.history) == 2
    cold = make_net(max_epochs=1).fit(X, Y).fit(X, Y)
    assert len(cold.history) == 1


def test_early_stopping_and_other_callbacks_work():
    net = make_net(max_epochs=50, callbacks=[EarlyStopping(patience=1, threshold=10.0)])
    net.fit(X, Y)
    assert len(net.history) < 10


@pytest.mark.slow
def test_torch_datasets_as_input():
    data = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    expected = make_net().fit(X, Y).predict_proba(X)
    weight = np.random.RandomState(0).rand(len(X))
    for y in (None, Y):
        net = make_net().fit(data, y)
        np.testing.assert_allclose(net.predict_proba(data), expected, atol=1e-6)
    weighted = make_net().fit(data, None, sample_weight=weight).predict_proba(X)
    np.testing.assert_allclose(
        weighted, make_net().fit(X, Y, sample_weight=weight).predict_proba(X), atol=1e-6
    )
    subset = torch.utils.data.Subset(data, np.arange(60))
    half = make_net().fit(subset, None, sample_weight=weight[:60]).predict_proba(X)
    direct = make_net().fit(X[:60], Y[:60], sample_weight=weight[:60]).predict_proba(X)
    np.testing.assert_allclose(half, direct, atol=1e-6)


@pytest.mark.slow
def test_own_collate_function_and_iterator_options():
    def reverse(items):
        X, y = torch.utils.data.default_collate(items)
        return X.flip(1), y

    net = make_net(iterator_train__collate_fn=reverse, iterator_train__shuffle=True)
    net.fit(X, Y, sample_weight=np.ones(len(X)))
    assert net.history[-1, "train_batch_count"] == 5
    # What it makes of the samples is what trains, with weights and without.
    for weight in (None, np.ones(len(X))):
        collated = make_net(iterator_train__collate_fn=reverse, train_split=None)
        collated.fit(X, Y, sample_weight=weight)
        turned = make_net(train_split=None).fit(X[:, ::-1].copy(), Y, sample_weight=weight)
        np.testing.assert_allclose(collated.predict_proba(X), turned.predict_proba(X), atol=1e-6)


def test_dict_input():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(6, 3)

        def forward(self, left, right):
            return self.linear(torch.cat([left, right], 1))

    data = {"left": X[:, :2], "right": X[:, 2:]}
    net = CalibratedNetClassifier(Two, max_epochs=2, lr=0.1)
    net.fit(data, NAMES, sample_weight=np.ones(len(X)))
    assert net.predict(data).shape == (len(X),)


def test_images_as_input():
    images = X.reshape(-1, 1, 2, 3)
    net = make_net().fit(images, Y)
    np.testing.assert_array_equal(net.predict_proba(images), make_net().fit(X, Y).predict_proba(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.where(np.arange(6) == 2, np.nan, X)}, "X contains NaN"),
        ({"y": np.where(Y == 0, np.nan, Y)}, "y contains NaN"),
        ({"y": Y + 0.25}, "Unknown label type: continuous"),
        ({"y": np.zeros(len(X))}, r"y must hold at least two classes, got one class: 0.0"),
        ({"y": Y[:-1]}, "X and y must have the same number of samples, got 120 and 119"),
        ({"y": None}, "requires y to be passed"),
        (
            {"sample_weight": np.full(len(X), -1.0)},
            "sample_weight must be finite and not negative, got -1.0 in row 0",
        ),
        ({"sample_weight": np.zeros(len(X))}, "sample_weight must not be zero everywhere"),
        (
            {"sample_weight": np.ones((len(X), 1))},
            r"sample_weight must have shape \(120,\), got shape \(120, 1\)",
        ),
        (
            {"difficulty_weight": np.full(len(X), np.inf)},
            "difficulty_weight must be finite, got NaN or infinity",
        ),
        (
            {"difficulty_weight": np.ones(3)},
            r"difficulty_weight must have shape \(120,\), got shape \(3,\)",
        ),
        (
            {"difficulty_weight": np.ones(len(X))},
            "criterion must take .*, got CrossEntropyLoss, which has no use for difficulty_weight",
        ),
    ],
)
def test_bad_data_is_told_in_one_sentence(change, message):
    with pytest.raises(ValueError, match=message):
        make_net().fit(**{"X": X, "y": Y} | change)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"module__n_classes": 4}, r"n_classes=3\), got shape \(20, 4\)"),
        ({"criterion": nn.NLLLoss}, "must take the logits .* got NLLLoss"),
        ({"random_state": "seed"}, "random_state"),
        ({"modul__hidden": 1}, "unexpected argument"),
        ({"lr": float("nan")}, "The 'lr' parameter .* must be a float in the range"),
        ({"predict_nonlinearity": "auto"}, "The 'predict_nonlinearity' parameter"),
        ({"optimizer": 3}, "The 'optimizer' parameter .* must be a callable"),
        ({"optimizer": "adamm"}, "optimizer must be a class of torch.optim or its name"),
        ({"callbacks": TrainingDynamics()}, "The 'callbacks' parameter .* must be an instance of"),
    ],
)
def test_bad_parameters_are_told_in_one_sentence(params, message):
    with pytest.raises(ValueError, match=message):
        make_net(**params).fit(X, Y)


def test_a_module_is_not_given_by_name():
    with pytest.raises(ValueError, match=r"^module must be a class or .*, got 'MLP'"):
        make_net().set_params(module="MLP").fit(X, Y)


def test_weights_are_never_dropped():
    class BatchLoss(nn.Module):
        def forward(self, logits, target):
            return logits.logsumexp(1).mean() - logits[:, 0].mean()

    net = CalibratedNetClassifier(MLP, criterion=BatchLoss)
    with pytest.raises(ValueError, match="got BatchLoss, which has no use for sample_weight"):
        net.fit(X, Y, sample_weight=np.ones(len(X)))


def test_dataset_without_visible_labels_needs_y():
    class Hidden(torch.utils.data.Dataset):
        def __len__(self):
            return len(X)

        def __getitem__(self, i):
            return X[i], Y[i]

    with pytest.raises(ValueError, match="X shows no labels"):
        make_net().fit(Hidden(), None)
    assert make_net().fit(Hidden(), Y).score(Hidden(), Y) > 0.3


def test_wrong_number_of_features_at_predict():
    with pytest.raises(ValueError, match="expecting 6 features"):
        make_net().fit(X, Y).predict(X[:, :5])


@pytest.mark.slow
def test_mixed_precision_computes_the_module_in_bfloat16_and_the_loss_in_float32():
    class Watch(MLP):
        def forward(self, X):
            logits = super().forward(X)
            assert logits.dtype == torch.bfloat16
            return logits

    class Loss(nn.CrossEntropyLoss):
        def forward(self, logits, target):
            assert logits.dtype == torch.float32
            return super().forward(logits, target)

    params = {"mixed_precision": "bf16", "max_epochs": 10, "lr": 0.1, "random_state": 0}
    net = CalibratedNetClassifier(Watch, criterion=Loss, **params).fit(X, Y)
    proba = net.predict_proba(X)
    assert proba.dtype == np.float32
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-5)
    assert net.decision_function(X).dtype == np.float32
    assert net.score(X, Y) > 0.7


@pytest.mark.slow
def test_one_process_under_accelerate():
    accelerate = pytest.importorskip("accelerate")

    class AcceleratedNet(AccelerateMixin, CalibratedNetClassifier):
        pass

    class Loss(nn.Module):
        def forward(self, logits, target, *, sample_weight=None):
            np.testing.assert_array_equal(sample_weight, net._fit_.batch_samples + 1)
            losses = nn.functional.cross_entropy(logits, target, reduction="none")
            return (losses * sample_weight).sum() / sample_weight.sum()

    net = AcceleratedNet(
        MLP,
        accelerator=accelerate.Accelerator(cpu=True),
        criterion=Loss,
        max_epochs=8,
        lr=0.02,
        batch_size=20,
        prioritizer=EpochPrioritizer(MaxEntropySelector(fraction=0.5), warmup_epochs=6),
        random_state=0,
    )
    net.fit(X, NAMES, sample_weight=np.arange(len(X)) + 1.0)
    assert net.history[:, "samples_seen"] == [120] * 6 + [60] * 2
    assert net.score(X, NAMES) > 0.7


def test_set_params_builds_the_module_anew_with_the_sizes_of_the_data():
    net = make_net().fit(X, Y)
    net.set_params(module__hidden_layer_sizes=(5,))
    assert net.module_.layers[1].out_features == 5
    assert net.partial_fit(X, Y).predict_proba(X).shape == (len(X), 3)


def test_predict_nonlinearity_of_the_user_is_kept():
    net = make_net(predict_nonlinearity=None).fit(X, Y)
    np.testing.assert_allclose(net.predict_proba(X), net.decision_function(X), atol=1e-6)


@pytest.mark.slow
def test_module_with_several_outputs():
    class Two(MLP):
        def forward(self, X):
            return super().forward(X), X

    net = CalibratedNetClassifier(
        Two, module__hidden_layer_sizes=(16,), random_state=0, lr=0.1
    ).fit(X, Y)
    assert net.predict_proba(X).shape == net.decision_function(X).shape == (len(X), 3)


@pytest.mark.slow
@pytest.mark.usefixtures("on_host")
def test_workers_of_the_loader_keep_samples_and_weights_together():
    class Loss(nn.Module):
        def forward(self, logits, target, *, sample_weight=None):
            np.testing.assert_array_equal(sample_weight, weight[net._fit_.batch_samples])
            return nn.functional.cross_entropy(logits, target)

    weight = np.random.RandomState(0).rand(len(X)).astype(np.float32)
    net = make_net(criterion=Loss, iterator_train__num_workers=1, max_epochs=1)
    net.fit(X, Y, sample_weight=weight)
    assert len(net.history) == 1


def test_initialize_before_the_first_fit():
    sizes = {"module__n_features": 6, "module__n_classes": 3}
    net = make_net(**sizes).initialize().partial_fit(X, NAMES)
    assert net.classes_.tolist() == ["cat", "dog", "eel"]
    warm = make_net(warm_start=True, **sizes).initialize().fit(X, NAMES)
    assert len(warm.history) == len(net.history) == 3


def test_labels_of_another_kind_are_told():
    net = make_net(max_epochs=1).fit(X, NAMES)
    with pytest.raises(ValueError, match=r"y must hold labels among .*, got . in row 0"):
        net.partial_fit(X, Y)


@pytest.mark.slow
def test_grid_search_over_slices_of_a_dataset():
    data = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    search = GridSearchCV(make_net(max_epochs=1), {"lr": [0.1, 0.01]}, cv=2, error_score="raise")
    search.fit(SliceDataset(data), SliceDataset(data, idx=1), sample_weight=np.ones(len(X)))
    plain = clone(search).fit(X, Y, sample_weight=np.ones(len(X)))
    assert search.best_score_ == plain.best_score_


@pytest.mark.slow
def test_difficulty_aware_training_end_to_end():
    net = make_net(criterion=DifficultyAwareLoss, criterion__alpha=0.3, max_epochs=10)
    aware = DifficultyAwareClassifier(net).fit(X, NAMES)
    assert aware.score(X, NAMES) > 0.7
    assert aware.estimator_.criterion_.alpha == 0.3


@pytest.mark.slow
def test_defaults_train_on_all_samples():
    net = CalibratedNetClassifier(MLP, random_state=0).fit(X, Y)
    assert len(net.history) == 50
    assert net.history[-1, "train_batch_count"] == 4  # 120 samples in batches of 32
    assert "valid_loss" not in net.history[-1]
    assert net.score(X, Y) > 0.85


def test_mixed_labels_are_refused():
    mixed = [0, "a", 1] * 40
    for labels in (mixed, np.array(mixed, dtype=object)):
        with pytest.raises(ValueError, match="y must hold labels of one type, got int, str"):
            make_net().fit(X, labels)


@pytest.mark.parametrize("name", ["sample_weight", "difficulty_weight"])
@pytest.mark.parametrize(
    "values", [np.full(120, "1"), np.full(120, np.datetime64("2020-01-01")), np.ones(120) * 1j]
)
def test_weights_that_are_no_numbers_are_refused(name, values):
    with pytest.raises((TypeError, ValueError), match=f"{name} must hold real numbers"):
        make_net(criterion=DifficultyAwareLoss).fit(X, Y, **{name: values})


def test_missing_labels():
    for missing, message in ((None, "labels of one type, got NoneType, str"), (np.nan, "NaN")):
        with pytest.raises(ValueError, match=message):
            make_net().fit(X, np.where(Y == 0, missing, NAMES.astype(object)))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"module__dropout": 0.5, "mixup_alpha": 0.3}])
def test_threads_give_the_nets_of_one_after_the_other(options):
    def proba(seed):
        net = CalibratedNetClassifier(MLP, random_state=seed, max_epochs=5, **options)
        return net.fit(X, Y).predict_proba(X)

    before = torch.get_rng_state()
    expected = [proba(seed) for seed in (0, 1, 0, 1)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(proba, (0, 1, 0, 1)))
    np.testing.assert_array_equal(found, expected)
    assert torch.equal(torch.get_rng_state(), before)


class ModelOutput(OrderedDict):
    """What transformers return: a mapping whose entries are attributes as well."""

    def __getattr__(self, name):
        return self[name]


@dataclass
class OutputObject:
    hidden: torch.Tensor
    logits: torch.Tensor


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrapped",
    [
        lambda z: ModelOutput(hidden=z + 1, logits=z),
        lambda z: {"hidden": z + 1, "logits": z},
        lambda z: OutputObject(z + 1, z),
        lambda z: (z, z + 1),
    ],
)
def test_logits_may_stand_in_a_mapping_an_object_or_a_tuple(wrapped):
    class Wrapping(MLP):
        def forward(self, X):
            return wrapped(super().forward(X))

    options = {"max_epochs": 2, "random_state": 0, "train_split": ValidSplit(5)}
    dynamics = TrainingDynamics()
    expected, net = (
        CalibratedNetClassifier(module, callbacks=[callback], **options).fit(X, Y)
        for module, callback in ((MLP, TrainingDynamics()), (Wrapping, dynamics))
    )
    np.testing.assert_array_equal(net.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_array_equal(net.decision_function(X), expected.decision_function(X))
    assert net.history[:, "valid_loss"] == expected.history[:, "valid_loss"]
    assert dynamics.prediction_.shape == (3, len(X))
    assert np.isfinite(adversarial_input_margin(net, X)).all()


@pytest.mark.parametrize("output", [{"scores": torch.zeros(1)}, None, [torch.zeros(1)]])
def test_an_output_without_logits_is_named(output):
    class Odd(MLP):
        def forward(self, X):
            return output

    kind = type(output).__name__
    with pytest.raises(TypeError, match=f"module must give a tensor of logits, .* got {kind}"):
        CalibratedNetClassifier(Odd).fit(X, Y)


@pytest.mark.slow
def test_bools_reach_the_batches_as_numbers():
    kinds = set()

    class Watching(Callback):
        def on_batch_begin(self, net, batch=None, **kwargs):
            kinds.add(batch[1].dtype)

    class Own(skorch.dataset.Dataset):  # collated item by item
        pass

    for options in ({}, {"dataset": Own}, {"classes": [True, False]}):
        callbacks = [Watching(), TrainingDynamics()]
        options |= {"callbacks": callbacks, "train_split": ValidSplit(5), "max_epochs": 30}
        net = CalibratedNetClassifier(MLP, lr=0.05, random_state=0, **options).fit(X, Y > 0)
        assert net.predict(X).dtype == bool
        assert net.score(X, Y > 0) > 0.8
        assert net.history[-1, "valid_acc"] > 0.7
    assert kinds == {torch.uint8}


@pytest.mark.slow
@pytest.mark.parametrize(
    "split",
    [
        ValidSplit(5, stratified=True),
        ValidSplit(4),
        ValidSplit(None),
        ValidSplit(0.25, random_state=0),
        ValidSplit(GroupKFold(3)),
        lambda dataset, y, **given: ValidSplit(GroupKFold(3))(dataset, y, **given),
    ],
    ids=["stratified", "folds", "default", "fraction", "splitter", "function"],
)
@pytest.mark.parametrize("labels", [NAMES, torch.tensor(Y)], ids=["text", "tensor"])
def test_groups_are_trained_on_or_held_out(split, labels):
    class Net(CalibratedNetClassifier):
        def get_split_datasets(self, *args, **kwargs):
            parts = super().get_split_datasets(*args, **kwargs)
            self.parts_ = [np.asarray(part.indices) for part in parts]
            return parts

    groups = np.random.default_rng(0).integers(0, 12, len(Y))
    visit = pd.DataFrame({"clinic": groups // 4, "patient": np.array(list("abcd"))[groups % 4]})
    net = Net(MLP, max_epochs=1, random_state=0, train_split=split)
    for given in (groups, visit):
        for fit in (net.fit, net.partial_fit):
            fit(X, labels, groups=given)
            train, valid = net.parts_
            assert sorted([*train, *valid]) == list(range(len(Y)))
            assert len(valid) > 0
            assert not set(groups[train]) & set(groups[valid])


def test_groups_that_cannot_be_held_out_are_refused():
    net = make_net(max_epochs=1)
    with pytest.raises(ValueError, match=r"groups must have at least 5 values.* got 3"):
        net.fit(X, Y, groups=Y)
    with pytest.raises(ValueError, match="groups must have one entry for every sample, 120, got"):
        net.fit(X, Y, groups=Y[:-1])
    net.set_params(train_split=lambda dataset, y: (dataset, None))
    with pytest.raises(ValueError, match="train_split must take groups"):
        net.fit(X, Y, groups=Y)
    net.set_params(train_split=None).fit(X, Y, groups=Y)  # nothing is held out
