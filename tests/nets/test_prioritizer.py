import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from torch import nn

from skcalib.nets import MLP, CalibratedNetClassifier, EpochPrioritizer
from skcalib.selection import MaxEntropySelector

# What a network saw is compared as arrays.
pytestmark = pytest.mark.usefixtures("on_host")

X, Y = make_classification(150, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=1)
X = X.astype(np.float32)
X[:, 0] = np.arange(len(X)) / 50  # the number of the sample: tells what was trained on


class SeenMLP(MLP):
    def __init__(self, n_features, n_classes):
        super().__init__(n_features, n_classes, hidden_layer_sizes=(8,))
        self.steps = []

    def forward(self, X):
        if self.training:
            self.steps.append((X[:, 0] * 50).round().long())
        return super().forward(X)


def make_net(module=SeenMLP, **params):
    params = {
        "max_epochs": 5,
        "batch_size": 10,
        "lr": 0.05,
        "train_split": None,
        "random_state": 0,
        **params,
    }
    options = {"selector": MaxEntropySelector(fraction=0.2), "warmup_epochs": 2}
    for name in ("selector", "warmup_epochs", "refresh_every", "target"):
        if name in params:
            options[name] = params.pop(name)
    return CalibratedNetClassifier(module, prioritizer=EpochPrioritizer(**options), **params)


def samples_of_epochs(net):
    counts = net.history[:, "train_batch_count"]
    steps = iter(net.module_.steps)
    return [torch.cat([next(steps) for _ in range(n)]).sort().values.numpy() for n in counts]


def test_trains_on_all_samples_and_then_on_those_of_largest_entropy():
    class Watching(SeenMLP):
        def forward(self, X):
            logits = super().forward(X)
            if not self.training:
                assert not torch.is_grad_enabled()
                assert len(X) == len(globals()["X"])  # one large batch, not ten small ones
                proba = torch.softmax(logits, 1)
                ranked = (-proba * proba.log()).sum(1).argsort(descending=True)
                self.expected = [*getattr(self, "expected", []), ranked[:30].sort().values]
            return logits

    net = make_net(Watching).fit(X, Y)
    epochs = samples_of_epochs(net)
    assert net.history[:, "samples_seen"] == [150, 150, 30, 30, 30]
    for samples in epochs[:2]:
        np.testing.assert_array_equal(samples, np.arange(150))
    assert len(net.module_.expected) == 3
    for samples, expected in zip(epochs[2:], net.module_.expected):
        np.testing.assert_array_equal(samples, expected)
    for name in ("selection_dur", "training_dur"):
        assert all(seconds >= 0 for seconds in net.history[:, name])


@pytest.mark.slow
def test_chosen_samples_are_shuffled_and_come_in_batches_for_training():
    net = make_net(iterator_train__batch_size=7).fit(X, Y)
    assert net.history[:, "train_batch_count"] == [22, 22, 5, 5, 5]
    order = torch.cat(net.module_.steps[-5:])
    assert (order.diff() < 0).any()


def test_a_choice_is_kept_until_refreshed():
    scores = np.random.RandomState(0).rand(6, len(X))
    net = make_net(target=scores, refresh_every=2, max_epochs=6, warmup_epochs=1).fit(X, Y)
    chosen = samples_of_epochs(net)[1:]
    for epoch, samples in zip((1, 1, 3, 3, 5), chosen):
        np.testing.assert_array_equal(samples, np.sort(np.argsort(-scores[epoch])[:30]))


def test_scores_guide_every_epoch_alike():
    scores = np.random.RandomState(0).rand(len(X))
    net = make_net(target=scores, selector=MaxEntropySelector(n_samples=7)).fit(X, Y)
    for samples in samples_of_epochs(net)[2:]:
        np.testing.assert_array_equal(samples, np.sort(np.argsort(-scores)[:7]))


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["entropy", "margin", "least_confidence"])
def test_a_fitted_classifier_guides_by_the_criterion_of_the_selector(criterion):
    target = LogisticRegression().fit(X, Y)
    selector = MaxEntropySelector(fraction=0.2, criterion=criterion)
    expected = clone(selector).fit(target.predict_proba(X)).get_support(indices=True)
    net = make_net(target=FrozenEstimator(target), selector=selector)
    for samples in samples_of_epochs(clone(net).fit(X, Y))[2:]:
        np.testing.assert_array_equal(samples, expected)


@pytest.mark.slow
def test_random_samples_differ_from_epoch_to_epoch_and_need_no_forward_pass():
    class TrainOnly(SeenMLP):
        def forward(self, X):
            assert self.training
            return super().forward(X)

    selector = MaxEntropySelector(fraction=0.2, criterion="random")
    first, second = (
        samples_of_epochs(make_net(TrainOnly, selector=selector).fit(X, Y)) for _ in "ab"
    )
    for a, b in zip(first, second):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[2], first[3])


@pytest.mark.slow
def test_random_samples_make_no_use_of_a_target():
    target = FrozenEstimator(LogisticRegression().fit(X, Y))
    selector = MaxEntropySelector(fraction=0.2, criterion="random")
    plain = samples_of_epochs(make_net(selector=selector).fit(X, Y))
    for given in (target, np.arange(150.0)):
        found = samples_of_epochs(make_net(selector=selector, target=given).fit(X, Y))
        for a, b in zip(found, plain):
            np.testing.assert_array_equal(a, b)
    grid = {"prioritizer__selector__criterion": ["entropy", "random"]}
    search = GridSearchCV(make_net(target=target, max_epochs=3), grid, cv=2, error_score="raise")
    assert np.isfinite(search.fit(X, Y).cv_results_["mean_test_score"]).all()


def test_no_more_than_a_batch_of_probabilities_is_held():
    seen = []

    class Counting(MaxEntropySelector):
        def score_proba(self, y_proba, **options):
            seen.append(len(y_proba))
            return super().score_proba(y_proba, **options)

    options = {"max_epochs": 3, "iterator_valid__batch_size": 40}
    make_net(MLP, selector=Counting(fraction=0.2), **options).fit(X, Y)
    assert seen == [40, 40, 40, 30]


def test_held_out_samples_are_never_chosen():
    scores = np.arange(len(X), dtype=float)
    net = make_net(target=scores, train_split=lambda data, y: half_split(data)).fit(X, Y)
    for samples in samples_of_epochs(net)[2:]:
        np.testing.assert_array_equal(samples, np.arange(80, 100))


def half_split(data):
    first, last = np.arange(100), np.arange(100, len(data))
    return torch.utils.data.Subset(data, first), torch.utils.data.Subset(data, last)


def test_weights_follow_the_chosen_samples():
    class Loss(nn.Module):
        def forward(self, logits, target, *, sample_weight=None):
            np.testing.assert_array_equal(sample_weight, net.module_.steps[-1] + 1.0)
            return nn.functional.cross_entropy(logits, target)

    net = make_net(criterion=Loss)
    net.fit(X, Y, sample_weight=np.arange(len(X)) + 1.0)


def test_warm_start_counts_the_epochs_on():
    net = make_net(max_epochs=2, warm_start=True).fit(X, Y).fit(X, Y)
    assert net.history[:, "samples_seen"] == [150, 150, 30, 30]


@pytest.mark.slow
def test_grid_search_over_the_selector_leaves_the_original_alone():
    selector = MaxEntropySelector()
    search = GridSearchCV(
        make_net(selector=selector, max_epochs=3),
        {"prioritizer__selector__fraction": [0.1, 0.5]},
        cv=2,
    )
    search.fit(X, Y)
    seen = search.best_estimator_.history[-1, "samples_seen"]
    assert seen == search.best_params_["prioritizer__selector__fraction"] * len(X)
    assert selector.fraction == 0.7


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"target": np.ones(3)}, r"shape \(150,\) or \(n_epochs, 150\), one .*, got shape \(3,\)"),
        ({"target": np.ones((2, 150))}, "each of the 5 epochs, got 2"),
        ({"target": np.full(150, np.nan)}, "target contains NaN"),
        (
            {"selector": MaxEntropySelector(LogisticRegression())},
            "selector must have estimator=None.*, got LogisticRegression",
        ),
        ({"target": np.ones(150), "selector": MaxEntropySelector(fraction=2.0)}, "'fraction'"),
        ({"selector": "entropy"}, "The 'selector' parameter .* must be an instance of"),
        ({"warmup_epochs": -1}, "The 'warmup_epochs' parameter"),
        ({"refresh_every": 0}, "The 'refresh_every' parameter"),
        (
            {"train_split": lambda data, y: (list(data), None)},
            "train_split must return torch Subsets .*for prioritizer",
        ),
    ],
)
def test_bad_parameters_are_told_in_one_sentence(params, message):
    with pytest.raises(ValueError, match=message):
        make_net(**params).fit(X, Y)


def test_target_must_be_fitted():
    with pytest.raises(NotFittedError):
        make_net(target=LogisticRegression()).fit(X, Y)


def test_no_parameter_of_a_missing_prioritizer():
    net = CalibratedNetClassifier(MLP)
    message = "prioritizer must be an EpochPrioritizer to set prioritizer__warmup_epochs, got None"
    with pytest.raises(ValueError, match=message):
        net.set_params(prioritizer__warmup_epochs=3)


def test_parameters_are_set_by_nested_names_and_cloned():
    net = make_net(warmup_epochs=1).set_params(
        prioritizer__warmup_epochs=3, prioritizer__selector__criterion="margin"
    )
    copy = clone(net)
    assert copy.get_params()["prioritizer__warmup_epochs"] == 3
    assert copy.prioritizer.selector.criterion == "margin"
    assert copy.prioritizer is not net.prioritizer


@pytest.mark.slow
def test_chosen_samples_of_every_epoch_are_kept():
    scores = np.random.RandomState(0).rand(len(X))
    net = make_net(target=scores, train_split=lambda data, y: half_split(data)).fit(X, Y)
    selected = net.prioritizer_.selected_
    assert selected.shape == (5, 150)
    assert selected.dtype == bool
    for mask, samples in zip(selected, samples_of_epochs(net)):
        np.testing.assert_array_equal(np.flatnonzero(mask), samples)
    assert not hasattr(net.prioritizer, "selected_")


@pytest.mark.slow
def test_soft_choice_draws_anew_in_every_epoch_in_proportion_to_the_scores():
    scores = np.where(np.arange(150) < 75, 9.0, 1.0)
    selector = MaxEntropySelector(n_samples=30, sampling="soft")
    net = make_net(selector=selector, target=scores, warmup_epochs=0, max_epochs=40).fit(X, Y)
    epochs = samples_of_epochs(net)
    assert all(len(np.unique(samples)) == 30 for samples in epochs)
    assert len({tuple(samples) for samples in epochs}) == 40
    # Nine tenths of the weight, and somewhat less as these are used up.
    assert 0.8 < np.mean([(samples < 75).mean() for samples in epochs]) < 0.92
    assert len(np.unique(np.concatenate(epochs))) > 120


def test_scores_to_draw_by_must_not_be_negative():
    selector = MaxEntropySelector(n_samples=30, sampling="soft")
    with pytest.raises(ValueError, match="target must hold no negative scores"):
        make_net(selector=selector, target=np.linspace(-1, 1, 150)).fit(X, Y)


@pytest.mark.slow
def test_scores_given_to_fit_are_split_by_folds():
    # The same numbers as a `target` that is cut by hand for every fold.
    scores = np.random.RandomState(0).rand(150, 3)
    net = make_net(max_epochs=3, warmup_epochs=0)
    grid = {"prioritizer__selector__fraction": [0.2, 0.6]}
    folds = KFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(net, grid, cv=folds, error_score="raise")
    search.fit(X, Y, target_score=scores)
    for i, (train, test) in enumerate(folds.split(X)):
        for j, fraction in enumerate(grid["prioritizer__selector__fraction"]):
            by_hand = make_net(target=scores[train].T, max_epochs=3, warmup_epochs=0)
            by_hand.set_params(prioritizer__selector__fraction=fraction).fit(X[train], Y[train])
            found = search.cv_results_[f"split{i}_test_score"][j]
            assert found == by_hand.score(X[test], Y[test])
    one = make_net().fit(X, Y, target_score=scores[:, 0])
    np.testing.assert_array_equal(
        one.prioritizer_.selected_, make_net(target=scores[:, 0]).fit(X, Y).prioritizer_.selected_
    )


@pytest.mark.parametrize(
    ("net", "scores", "message"),
    [
        (make_net(), np.ones(3), r"^target_score must have shape \(150,\) .*, got shape \(3,\)"),
        (make_net(), np.ones((150, 2)), "^target_score must hold .* each of the 5 epochs, got 2"),
        (make_net(target=np.ones(150)), np.ones(150), "^target must be None where fit is given"),
        (make_net().set_params(prioritizer=None), np.ones(150), "^prioritizer must be an Epoch"),
    ],
)
def test_wrong_scores_given_to_fit(net, scores, message):
    with pytest.raises(ValueError, match=message):
        net.fit(X, Y, target_score=scores)
