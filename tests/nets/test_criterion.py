import inspect

import numpy as np
import pytest
import torch
from sklearn.model_selection import GridSearchCV
from skorch.dataset import ValidSplit
from torch import nn

import skcalib.losses
from skcalib.losses import CorrectnessRankingLoss, DifficultyAwareLoss, UncertaintyWeightedLoss
from skcalib.nets import MLP, CalibratedNetClassifier
from skcalib.utils import SkcalibWarning

RNG = np.random.RandomState(0)
X = RNG.randn(90, 4).astype(np.float32)
Y = RNG.randint(3, size=90)
WEIGHT = RNG.rand(90)

LOSSES = sorted(
    (
        loss
        for name in skcalib.losses.__all__
        if inspect.isclass(loss := getattr(skcalib.losses, name)) and issubclass(loss, nn.Module)
    ),
    key=lambda loss: loss.__name__,
)


def make_net(criterion, **params):
    params = {
        "max_epochs": 2,
        "optimizer": torch.optim.SGD,
        "lr": 0.05,
        "random_state": 0,
        "batch_size": 30,
        "train_split": ValidSplit(5, stratified=True),
        **params,
    }
    return CalibratedNetClassifier(
        MLP, module__hidden_layer_sizes=(8,), criterion=criterion, **params
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_of_the_package_trains(loss):
    given = {"sample_weight": WEIGHT}
    if loss().uses_difficulty_weight:
        given["difficulty_weight"] = RNG.rand(90)
    net = make_net(loss).fit(X, Y, **given)
    assert np.isfinite(net.history[:, "train_loss"] + net.history[:, "valid_loss"]).all()
    np.testing.assert_allclose(net.predict_proba(X).sum(axis=1), 1, rtol=1e-5)


def test_all_losses_are_covered():
    assert len(LOSSES) >= 10


@pytest.mark.parametrize("loss", [DifficultyAwareLoss, UncertaintyWeightedLoss])
def test_difficulty_weight_that_a_loss_needs_is_asked_for(loss):
    with pytest.raises(ValueError, match=f"{loss.__name__} needs difficulty_weight"):
        make_net(loss).fit(X, Y)


def test_difficulty_weight_that_a_loss_ignores_is_refused():
    with pytest.raises(ValueError, match="makes no use of difficulty_weight"):
        make_net(skcalib.losses.FocalLoss).fit(X, Y, difficulty_weight=WEIGHT)


def split_off_other_data(data, y):
    other = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    return data, other


@pytest.mark.parametrize("loss", [DifficultyAwareLoss, CorrectnessRankingLoss])
def test_validation_samples_from_elsewhere_are_judged_by_cross_entropy(loss):
    given = {"difficulty_weight": WEIGHT} if loss is DifficultyAwareLoss else {}
    net = make_net(loss, train_split=split_off_other_data, max_epochs=3, batch_size=90)
    with pytest.warns(SkcalibWarning, match=f"which {loss.__name__} needs: valid_loss is their"):
        net.fit(X, Y, **given)
    expected = -np.log(net.predict_proba(X)[np.arange(90), Y]).mean()
    np.testing.assert_allclose(net.history[-1, "valid_loss"], expected, rtol=1e-5)


@pytest.mark.usefixtures("on_host")
def test_ranking_loss_gets_the_fraction_of_past_epochs_in_which_a_sample_was_correct():
    class Spy(CorrectnessRankingLoss):
        def forward(self, logits, target, *, history=None, **given):
            if self.training:
                samples = net._fit_.batch_samples
                right = np.asarray(correct)[:, samples] if correct else np.zeros((1, len(samples)))
                np.testing.assert_allclose(history, right.mean(axis=0), rtol=1e-6)
                epoch[samples] = (logits.argmax(1) == target).float()
                seen.append(len(samples))
                if sum(seen) % 90 == 0:
                    correct.append(epoch.clone().numpy())
            return super().forward(logits, target, history=history, **given)

    correct, seen, epoch = [], [], torch.zeros(90)
    net = make_net(Spy, train_split=None, max_epochs=4)
    net.fit(X, Y)
    assert len(correct) == 4
    assert 0 < np.mean(correct) < 1


def test_history_starts_anew_with_partial_fit():
    net = make_net(CorrectnessRankingLoss).fit(X, Y).partial_fit(X[:60], Y[:60])
    assert len(net.history) == 4


def test_weights_need_batches_that_know_their_samples():
    def lists(data, y):
        return [data[i] for i in range(len(data))], None

    with pytest.raises(ValueError, match="iterator_train must be a DataLoader, and"):
        make_net(nn.CrossEntropyLoss, train_split=lists).fit(X, Y, sample_weight=WEIGHT)
    assert make_net(nn.CrossEntropyLoss, train_split=lists).fit(X, Y).score(X, Y) > 0.2


def test_sum_reduction_with_weights():
    net = make_net(nn.CrossEntropyLoss, criterion__reduction="sum", lr=0, batch_size=-1)
    net.set_params(train_split=None, max_epochs=1).fit(X, Y, sample_weight=WEIGHT)
    expected = -(WEIGHT * np.log(net.predict_proba(X)[np.arange(90), Y])).sum()
    np.testing.assert_allclose(net.history[-1, "train_loss"], expected, rtol=1e-5)


def test_loss_that_gives_no_value_a_sample_refuses_weights():
    class Batch(nn.Module):
        reduction = "mean"

        def forward(self, logits, target):
            return nn.functional.cross_entropy(logits, target)

    with pytest.raises(ValueError, match="criterion must give one loss for every sample"):
        make_net(Batch).fit(X, Y, sample_weight=WEIGHT)


def test_instance_of_a_loss():
    loss = skcalib.losses.FocalLoss(gamma=1.5)
    net = make_net(loss).fit(X, Y)
    assert net.criterion is loss
    assert net.criterion_.gamma == 1.5


CLASS_WEIGHT = torch.tensor([1.0, 2.0, 0.5])
# Of every loss two parameters, or weights and labels to ignore where it has none of its own.
OWN = {
    "BSCEGRALoss": {"order": 1.5, "exponent": 2.0},
    "BSCELoss": {"order": 1.5, "exponent": 2.0},
    "BrierLoss": {"weight": CLASS_WEIGHT, "ignore_index": 5},
    "CorrectnessRankingLoss": {"strength": 0.3, "confidence": "margin"},
    "CrossEntropyLoss": {"weight": CLASS_WEIGHT, "ignore_index": 5},
    "DifficultyAwareLoss": {"alpha": 0.5, "weight": CLASS_WEIGHT},
    "DualFocalLoss": {"gamma": 2.0, "detach_weight": True},
    "EntropyRegularizedLoss": {"alpha": 0.5, "weight": CLASS_WEIGHT},
    "FocalLoss": {"gamma": 3.0, "detach_weight": True},
    "LabelSmoothingLoss": {"alpha": 0.2, "weight": CLASS_WEIGHT},
    "LogitNormLoss": {"strength": 0.3, "p": 2.0},
    "MMCELoss": {"strength": 3.0, "weighted": True},
    "PolyLoss": {"epsilon": 2.0, "weight": CLASS_WEIGHT},
    "SampleDependentFocalLoss": {"gammas": (4.0, 2.0), "detach_weight": True},
    "UncertaintyWeightedLoss": {"weight": CLASS_WEIGHT, "ignore_index": 5},
    "ZeroHingeLoss": {"weight": CLASS_WEIGHT, "ignore_index": 5},
}


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_parameters_beside_an_instance_are_merged(loss):
    own = OWN[loss.__name__]
    options = {"max_epochs": 1, "train_split": None}
    values = {"difficulty_weight": WEIGHT} if loss(**own).uses_difficulty_weight else {}

    def trained(criterion, **params):
        return make_net(criterion, **options, **params).fit(X, Y, **values)

    expected = trained(loss(**own, reduction="sum")).decision_function(X)
    # Every parameter once beside an instance of the others, which the user's object keeps.
    every = own | {"reduction": "sum"}
    for name, value in every.items():
        instance = loss(**{other: every[other] for other in every if other != name})
        before = repr(instance)
        net = trained(instance, **{f"criterion__{name}": value})
        np.testing.assert_array_equal(net.decision_function(X), expected)
        assert repr(instance) == before


@pytest.mark.slow
def test_a_loss_by_instance_class_and_name_everywhere():
    options = {"max_epochs": 1, "train_split": None}
    expected = make_net(skcalib.losses.FocalLoss, **options).fit(X, Y).predict_proba(X)
    forms = [skcalib.losses.FocalLoss(), "FocalLoss", "focal_loss", "focal"]
    for form in forms:
        for net in (
            make_net(form, **options),
            make_net(nn.CrossEntropyLoss, **options).set_params(criterion=form),
            make_net(nn.CrossEntropyLoss, **options).fit(X, Y).set_params(criterion=form),
        ):
            np.testing.assert_array_equal(net.fit(X, Y).predict_proba(X), expected)
    grid = {"criterion": [*forms, nn.CrossEntropyLoss], "criterion__reduction": ["sum", "mean"]}
    search = GridSearchCV(make_net("focal", **options), grid, cv=2, error_score="raise")
    score = search.fit(X, Y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(score[2:8], np.tile(score[:2], 3))
    net = make_net("focal", **options).fit(X, Y).set_params(criterion__gamma=3.0)
    assert net.criterion_.gamma == 3.0
    with pytest.raises(ValueError, match=r"^criterion must be a class .*FocalLoss.*got 'focale'"):
        make_net("focale").fit(X, Y)


def test_parameters_beside_an_instance_of_torch():
    given = nn.CrossEntropyLoss(weight=CLASS_WEIGHT)
    net = make_net(given, criterion__label_smoothing=0.3).fit(X, Y)
    expected = make_net(nn.CrossEntropyLoss(weight=CLASS_WEIGHT, label_smoothing=0.3)).fit(X, Y)
    np.testing.assert_array_equal(net.predict_proba(X), expected.predict_proba(X))
    assert given.label_smoothing == 0


class _Open(skcalib.losses.FocalLoss):
    def __init__(self, **params):
        super().__init__(gamma=5.0, **params)


class _Changed(nn.CrossEntropyLoss):
    def __init__(self, label_smoothing=0.0):
        super().__init__(label_smoothing=label_smoothing)


def test_an_instance_that_cannot_be_rebuilt_refuses_parameters():
    changed = _Changed()
    changed.extra = 1
    for criterion in (_Open(detach_weight=True), changed):
        message = r"^criterion__reduction must be set in the _\w+ itself, or criterion .* instance"
        with pytest.raises(ValueError, match=message):
            make_net(criterion, criterion__reduction="sum").fit(X, Y)
    # The weights of a trained module would be lost.
    with pytest.raises(ValueError, match=r"^module__hidden_layer_sizes must be set in the MLP"):
        make_net(nn.CrossEntropyLoss).set_params(module=MLP(4, 3)).fit(X, Y)


def test_optimizer_by_name():
    expected = make_net(nn.CrossEntropyLoss, optimizer__momentum=0.9).fit(X, Y).predict_proba(X)
    net = make_net(nn.CrossEntropyLoss).set_params(optimizer="sgd", optimizer__momentum=0.9)
    np.testing.assert_array_equal(net.fit(X, Y).predict_proba(X), expected)
    instance = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
    for optimizer in (instance, "sgdd"):
        with pytest.raises(ValueError, match=r"^optimizer must be a class"):
            make_net(nn.CrossEntropyLoss, optimizer=optimizer).fit(X, Y)


@pytest.mark.parametrize(
    "function", [skcalib.losses.functional.focal_loss, nn.functional.cross_entropy]
)
def test_a_loss_as_a_function_is_named(function):
    message = r"^criterion must be a class or an instance .*, got the function \w+\.$"
    with pytest.raises(ValueError, match=message):
        make_net(function).fit(X, Y)
    assert make_net(lambda: skcalib.losses.FocalLoss(gamma=1.5)).fit(X, Y).criterion_.gamma == 1.5


def test_a_number_called_weight_is_no_class_weight():
    class Scaled(nn.CrossEntropyLoss):
        def __init__(self):
            super().__init__()
            del self.weight
            self.weight = 2.0

        def forward(self, logits, target):
            losses = nn.functional.cross_entropy(logits, target, reduction="none")
            return self.weight * (losses if self.reduction == "none" else losses.mean())

    options = {"lr": 0, "batch_size": -1, "train_split": None, "max_epochs": 1}
    net = make_net(Scaled, **options).fit(X, Y, sample_weight=WEIGHT)
    losses = -np.log(net.predict_proba(X)[np.arange(90), Y])
    expected = 2 * np.average(losses, weights=WEIGHT)
    np.testing.assert_allclose(net.history[-1, "train_loss"], expected, rtol=1e-5)
