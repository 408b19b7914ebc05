import pickle

import numpy as np
import pytest
import skorch
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris
from skorch.callbacks import Callback, EarlyStopping
from skorch.dataset import ValidSplit

from skcalib.difficulty.training_dynamics import (
    area_under_margin,
    forgetting_events,
    iteration_learned,
)
from skcalib.metrics import predictive_entropy
from skcalib.nets import MLP, CalibratedNetClassifier, EpochPrioritizer, TrainingDynamics
from skcalib.selection import MaxEntropySelector

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


class Snapshots(Callback):
    """The probabilities of every epoch, by predict_proba."""

    def on_train_begin(self, net, X=None, y=None, **kwargs):
        self.proba_ = [net.predict_proba(X)]
        self.X_ = X

    def on_epoch_end(self, net, **kwargs):
        self.proba_.append(net.predict_proba(self.X_))


def make_net(*callbacks, **params):
    params = {
        "max_epochs": 4,
        "lr": 0.05,
        "random_state": 0,
        "batch_size": 32,
        "optimizer": torch.optim.SGD,
        "train_split": ValidSplit(5, stratified=True),
        **params,
    }
    return CalibratedNetClassifier(MLP, callbacks=list(callbacks), **params)


def test_record_of_all_samples_equals_predictions_epoch_by_epoch():
    dynamics, snapshots = TrainingDynamics(), Snapshots()
    make_net(dynamics, snapshots).fit(X, NAMES)
    proba = np.stack(snapshots.proba_)
    assert proba.shape == (5, 150, 3)
    np.testing.assert_array_equal(dynamics.prediction_, proba.argmax(2))
    np.testing.assert_array_equal(dynamics.label_, Y)
    of_label = proba[:, np.arange(150), Y]
    others = np.where(np.eye(3, dtype=bool)[Y], 0, proba).max(axis=2)
    np.testing.assert_allclose(dynamics.confidence_, of_label, atol=1e-6)
    np.testing.assert_allclose(dynamics.margin_, np.log(of_label / others), rtol=1e-4, atol=1e-5)
    entropy = [predictive_entropy(p) for p in proba]
    np.testing.assert_allclose(dynamics.entropy_, entropy, rtol=1e-5, atol=1e-6)
    assert dynamics.prediction_.dtype == np.int8
    assert {getattr(dynamics, f"{n}_").dtype for n in ("margin", "confidence", "entropy")} == {
        np.dtype(np.float32)
    }


@pytest.mark.usefixtures("on_host")
def test_entropies_near_the_largest_choose_as_those_of_float64():
    class Exact(Callback):
        def on_epoch_begin(self, net, dataset_train=None, **kwargs):
            logits = net.module_(torch.as_tensor(dataset_train.X)).detach().double()
            self.entropy_ = [
                *getattr(self, "entropy_", []),
                predictive_entropy(logits.softmax(1).numpy()),
            ]

    # Inputs near 0: most entropies are within .002, a step of half precision, of log 3.
    dynamics, exact = TrainingDynamics(), Exact()
    make_net(dynamics, exact, lr=1e-3, train_split=None).fit(X * 0.02, Y)
    for found, entropy in zip(dynamics.entropy_, exact.entropy_):
        assert np.median(np.log(3) - entropy) < 2e-3
        # The same samples, or others whose entropies float32 (a step of 1.2e-7) cannot tell apart.
        chosen, wanted = np.sort(entropy[found.argsort()[-15:]]), np.sort(entropy)[-15:]
        np.testing.assert_allclose(chosen, wanted, rtol=0, atol=2.4e-7)


@pytest.mark.slow
def test_feeds_the_measures_of_difficulty():
    dynamics = TrainingDynamics()
    make_net(dynamics, max_epochs=10).fit(X, Y)
    assert iteration_learned(dynamics.prediction_).shape == (150,)
    assert forgetting_events(dynamics.prediction_, dynamics.label_).shape == (150,)
    expected = dynamics.margin_.astype(np.float64).mean(axis=0)
    np.testing.assert_allclose(area_under_margin(dynamics.margin_), expected)


@pytest.mark.slow
def test_guides_another_training():
    dynamics = TrainingDynamics()
    make_net(dynamics).fit(X, Y)
    selector = MaxEntropySelector(fraction=0.2)
    net = make_net(prioritizer=EpochPrioritizer(selector, target=dynamics.entropy_))
    assert net.fit(X, Y).history[:, "samples_seen"] == [120, 24, 24, 24]


@pytest.mark.slow
def test_goes_on_with_a_warm_start_and_starts_anew_with_a_cold_one():
    dynamics = TrainingDynamics()
    net = make_net(dynamics, max_epochs=2).fit(X, Y)
    net.partial_fit(X, Y)
    assert dynamics.prediction_.shape == (5, 150)
    assert not (dynamics.prediction_ == -1).any()
    net.partial_fit(X[:100], Y[:100])
    assert dynamics.margin_.shape == (3, 100)
    assert net.fit(X, Y)
    assert dynamics.margin_.shape == (3, 150)


def test_early_stopping_leaves_no_empty_lines():
    dynamics = TrainingDynamics()
    net = make_net(dynamics, EarlyStopping(patience=1, threshold=10.0), max_epochs=30)
    net.fit(X, Y)
    steps = len(net.history)
    assert steps < 30
    assert len(dynamics.margin_) in (steps, steps + 1)
    assert np.isfinite(dynamics.margin_).all()


@pytest.mark.slow
def test_clone_and_pickle():
    dynamics = TrainingDynamics()
    net = make_net(dynamics).fit(X, Y)
    again = dict(pickle.loads(pickle.dumps(net)).callbacks_)["TrainingDynamics"]
    np.testing.assert_array_equal(again.margin_, dynamics.margin_)
    fresh = clone(net)
    assert not hasattr(fresh.callbacks[0], "margin_")
    assert fresh.fit(X, Y).callbacks[0].get_params() == {"every": "epoch"}


def test_large_logits_stay_finite():
    dynamics = TrainingDynamics()
    make_net(dynamics, lr=0.0).fit(X * 1e7, Y)
    assert np.isfinite(dynamics.margin_).all()
    assert np.isfinite(dynamics.entropy_).all()


def test_needs_labels():
    class Hidden(torch.utils.data.Dataset):
        def __len__(self):
            return len(X)

        def __getitem__(self, i):
            return X[i].astype(np.float32), Y[i]

    net = make_net(TrainingDynamics(), classes=[0, 1, 2], train_split=None)
    with pytest.raises(ValueError, match="y must be given to fit for TrainingDynamics"):
        net.fit(Hidden(), None)


def test_needs_a_net_that_knows_its_samples():
    net = skorch.NeuralNetClassifier(
        MLP, module__n_features=4, module__n_classes=3, callbacks=[TrainingDynamics()]
    )
    with pytest.raises(TypeError, match=r"a CalibratedNetClassifier .*, got Neural"):
        net.fit(X.astype(np.float32), Y)


@pytest.mark.slow
@pytest.mark.parametrize("every", ["epoch", 1, 3, 1000])
@pytest.mark.usefixtures("on_host")
def test_records_every_few_steps_and_leaves_the_training_as_it_is(every):
    class Steps(Callback):
        """The predictions of the module after every step of training."""

        def on_train_begin(self, net, X=None, **kwargs):
            self.answers_ = [self.ask(net)]

        def on_batch_end(self, net, training=False, **kwargs):
            if training:
                self.answers_.append(self.ask(net))

        def ask(self, net):
            net.module_.eval()
            with torch.no_grad():
                return net.module_(torch.as_tensor(X, dtype=torch.float32)).argmax(1).numpy()

    dynamics, steps = TrainingDynamics(every=every), Steps()
    options = {"module__dropout": 0.3, "max_epochs": 3}
    net = make_net(dynamics, steps, **options).fit(X, NAMES)
    answers = np.stack(steps.answers_)
    assert len(answers) == 3 * 4 + 1  # of 120 training samples in batches of 32
    rows = {"epoch": [0, 4, 8, 12], 1: range(13), 3: [0, 3, 6, 9, 12], 1000: [0, 12]}[every]
    np.testing.assert_array_equal(dynamics.step_, rows)
    np.testing.assert_array_equal(dynamics.prediction_, answers[list(rows)])
    alone = make_net(**options).fit(X, NAMES)
    np.testing.assert_array_equal(net.predict_proba(X), alone.predict_proba(X))
    # The definition: the first recorded step from which on the prediction is the final one.
    learned = iteration_learned(dynamics.prediction_, steps=dynamics.step_)
    for i in range(150):
        settled = [
            step
            for j, step in enumerate(rows)
            if (answers[list(rows)[j:], i] == answers[-1, i]).all()
        ]
        assert learned[i] == settled[0]
    net.partial_fit(X, NAMES)  # goes on counting
    assert dynamics.step_[-1] == 24


@pytest.mark.parametrize("every", [0, -1, True, 1.5, "step", None])
def test_steps_must_be_a_number_or_epochs(every):
    with pytest.raises(ValueError, match=r"every must be 'epoch' or a number of steps"):
        make_net(TrainingDynamics(every=every)).fit(X, Y)


@pytest.mark.parametrize("steps", [[0, 1], [0, 2, 1], [0, 1, np.nan], [[0, 1, 2]]])
def test_numbers_of_steps_increase(steps):
    with pytest.raises(ValueError, match="steps must"):
        iteration_learned([[0, 1], [1, 1], [1, 1]], steps=steps)
