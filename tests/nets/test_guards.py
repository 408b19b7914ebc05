import copy
import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback, EarlyStopping
from skorch.exceptions import SkorchTrainingImpossibleError
from torch import nn
from torch.utils.data import IterableDataset, WeightedRandomSampler

from skcalib.difficulty import RMDScorer
from skcalib.losses import DifficultyAwareLoss, UncertaintyWeightedLoss
from skcalib.nets import MLP, CalibratedNetClassifier, EpochPrioritizer
from skcalib.nets._checks import _iter_trained_values
from skcalib.selection import MaxEntropySelector
from skcalib.utils import SkcalibWarning

X, Y = make_classification(120, 6, n_informative=5, n_redundant=0, n_classes=3, random_state=0)
X = X.astype(np.float32)


def make_net(module=MLP, **params):
    return CalibratedNetClassifier(module, **{"max_epochs": 3, "random_state": 0, **params})


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
@pytest.mark.parametrize("scale", [1e30, 1e37])
def test_a_net_that_leaves_the_finite_numbers_says_in_which_epoch(optimizer, scale):
    with pytest.raises(ValueError, match=r"became (nan|inf|NaN or infinite) ?in epoch 1 \(lr="):
        make_net(optimizer=optimizer).fit(X * scale, Y)


@pytest.mark.parametrize("lr", [1e6, float("inf"), 1e30])
def test_a_learning_rate_that_is_too_large_is_an_error(lr):
    with pytest.raises(ValueError, match="lr"):
        make_net(optimizer=torch.optim.SGD, lr=lr, max_epochs=20).fit(X, Y)


def test_numbers_are_looked_at_where_the_parameters_are():
    """Adam keeps its number of steps on the CPU: on a GPU, each would be a transfer."""
    module = nn.Linear(3, 2, device="meta")
    optimizer = torch.optim.Adam(module.parameters())
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    state = [value for values in optimizer.state.values() for value in values.values()]
    assert {value.device.type for value in state} == {"cpu", "meta"}
    values = list(_iter_trained_values(SimpleNamespace(module_=module, optimizer_=optimizer)))
    assert len(values) == 2 * 3  # a weight and a bias, each with two moments
    assert {value.device.type for value in values} == {"meta"}


def test_a_loss_that_becomes_nan_late_is_told_in_its_epoch():
    class Late(nn.CrossEntropyLoss):
        def forward(self, logits, target):
            late = len(net.history) == 3
            return super().forward(logits, target) * (torch.nan if late else 1.0)

    net = make_net(criterion=Late, max_epochs=5)
    with pytest.raises(ValueError, match="The loss became nan in epoch 3"):
        net.fit(X, Y)


class Softmax(MLP):
    def forward(self, X):
        return super().forward(X).softmax(dim=1)


def test_a_module_that_ends_in_a_softmax_is_told_once():
    with pytest.warns(SkcalibWarning, match="The module gives probabilities") as told:
        make_net(Softmax).fit(X, Y)
    assert len(told) == 1


@pytest.mark.slow
def test_logits_and_log_probabilities_are_taken_as_they_are():
    class LogSoftmax(MLP):
        def forward(self, X):
            return super().forward(X).log_softmax(dim=1)

    class Zeros(MLP):
        def forward(self, X):
            return super().forward(X) * 0

    for module in (MLP, LogSoftmax, Zeros):
        make_net(module).fit(X, Y)  # warnings are errors here


@pytest.mark.parametrize("loss", [DifficultyAwareLoss, UncertaintyWeightedLoss])
def test_a_raw_difficulty_is_not_taken_for_weights(loss):
    difficulty = RMDScorer().fit(X, Y).difficulty(X, Y)
    message = r"difficulty_weight must be in \[0, 1\], as skcalib.difficulty.difficulty_weights"
    with pytest.raises(ValueError, match=message):
        make_net(criterion=loss).fit(X, Y, difficulty_weight=difficulty)


@pytest.mark.parametrize(("name", "similar"), [("epochs", "max_epochs"), ("modul", "module")])
def test_an_unknown_parameter_is_named_with_a_similar_one(name, similar):
    message = f"CalibratedNetClassifier has no parameter '{name}'. Did you mean '{similar}'?"
    with pytest.raises(TypeError, match=re.escape(message)):
        make_net(**{name: 3})


def test_a_subclass_may_have_parameters_of_its_own():
    class Own(CalibratedNetClassifier):
        def __init__(self, module, *, depth=1, **kwargs):
            super().__init__(module, **kwargs)
            self.depth = depth

    assert Own(MLP, depth=2, lr=0.1, module__hidden_layer_sizes=(3,)).get_params()["depth"] == 2


@pytest.mark.parametrize("monitor", ["valid_loss", "valid_acc_best"])
def test_callbacks_that_need_validation_say_so(monitor):
    callbacks = [EarlyStopping(monitor=monitor)]
    message = f"train_split must hold out samples for EarlyStopping, which monitors '{monitor}'"
    with pytest.raises(ValueError, match=message):
        make_net(callbacks=callbacks).fit(X, Y)


class Interrupt(Callback):
    """Do what Python does at Ctrl-C, once, in the middle of the second epoch."""

    ended_ = False

    def on_batch_end(self, net, training=None, **kwargs):
        if training and len(net.history) == 2 and not self.ended_:
            signal.raise_signal(signal.SIGINT)

    def on_train_end(self, net, **kwargs):
        self.ended_ = True


def test_ctrl_c_ends_the_fit_and_leaves_a_usable_net():
    net = make_net(callbacks=[Interrupt()])
    with pytest.raises(KeyboardInterrupt):
        net.fit(X, Y)
    assert dict(net.callbacks_)["Interrupt"].ended_
    assert len(net.history) == 1
    assert net.predict(X).shape == (120,)
    net.partial_fit(X, Y)
    assert len(net.history[:, "train_loss"]) == 4


class PressesCtrlC:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)


class Delete(Callback):
    """Press Ctrl-C where Python swallows it: in `initialize`, or in the second epoch."""

    def __init__(self, n_epochs):
        self.n_epochs = n_epochs

    def initialize(self):
        if not self.n_epochs:
            PressesCtrlC()
        return self

    def on_batch_begin(self, net, training=None, **kwargs):
        if training and self.n_epochs and len(net.history) == self.n_epochs + 1:
            PressesCtrlC()


@pytest.mark.parametrize("n_epochs", [0, 1])
@pytest.mark.filterwarnings("ignore:Exception ignored in")
def test_ctrl_c_ends_the_fit_where_python_swallows_it(n_epochs):
    net = make_net(max_epochs=1000, callbacks=[Delete(n_epochs)])
    with pytest.raises(KeyboardInterrupt):
        net.fit(X, Y)
    assert len(net.history) == n_epochs


def test_ctrl_c_ends_a_grid_search():
    search = GridSearchCV(make_net(callbacks=[Interrupt()]), {"lr": [0.1, 0.01]}, cv=2)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)


def test_a_callback_may_still_stop_the_training():
    class Stop(Callback):
        def on_epoch_end(self, net, **kwargs):
            raise KeyboardInterrupt

    assert len(make_net(callbacks=[Stop()]).fit(X, Y).history) == 1


LONG_FIT = """
import signal
import numpy as np
from sklearn.model_selection import GridSearchCV
from skcalib.nets import MLP, CalibratedNetClassifier, EpochPrioritizer
X, y = np.random.RandomState(0).randn(200, 4), np.arange(200) % 2
net = CalibratedNetClassifier(MLP, max_epochs=100_000)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have had it ignored
print("begin", flush=True)
try:
    GridSearchCV(net, {"lr": [0.1, 0.01]}, cv=2).fit(X, y)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for one child alone")
def test_ctrl_c_ends_a_search_in_a_process_of_its_own():
    command = [sys.executable, "-c", LONG_FIT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "begin\n"
            time.sleep(1.0)
            child.send_signal(signal.SIGINT)
            rest, _ = child.communicate(timeout=300)
        finally:
            child.kill()
    assert rest == "interrupted\n"


@pytest.mark.filterwarnings("ignore:Exception ignored in")
def test_ctrl_c_leaves_a_choice_for_every_finished_epoch():
    prioritizer = EpochPrioritizer(MaxEntropySelector(fraction=0.5))
    net = make_net(max_epochs=1000, callbacks=[Delete(2)], prioritizer=prioritizer)
    with pytest.raises(KeyboardInterrupt):
        net.fit(X, Y)
    assert len(net.prioritizer_.selected_) == len(net.history) == 2


def test_rows_without_finite_logits_are_named():
    net = make_net().fit(X, Y)
    large = np.concatenate([X[:3], np.full_like(X[:1], 3e38), X[:1]])
    for predict in (net.predict, net.predict_proba, net.decision_function):
        with pytest.raises(ValueError, match=r"^X must give finite logits, got \w+ for row 3:"):
            predict(large)
    with torch.no_grad():
        next(net.module_.parameters()).fill_(torch.nan)
    with pytest.raises(ValueError, match=r"got nan for rows 0, 1, 2, 3, 4, \.\.\.: .*module_ are"):
        net.predict(X)


@pytest.mark.usefixtures("on_host")
def test_masked_classes_have_probability_0():
    class Masked(torch.nn.Linear):
        def forward(self, X):
            return super().forward(X).index_fill(1, torch.tensor([1]), -torch.inf)

    net = CalibratedNetClassifier(Masked(6, 3), classes=[0, 1, 2], max_epochs=1)
    proba = net.fit(X[Y != 1], Y[Y != 1]).predict_proba(X)
    assert (proba[:, 1] == 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-6)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(zip(X, Y.tolist()))


def test_a_stream_trains_and_predicts_as_in_skorch():
    options = {"max_epochs": 2, "train_split": None, "batch_size": 40, "classes": [0, 1, 2]}
    start = torch.nn.Linear(6, 3)
    plain = NeuralNetClassifier(
        copy.deepcopy(start), criterion=torch.nn.CrossEntropyLoss, lr=0.1, verbose=0, **options
    )
    net = CalibratedNetClassifier(start, optimizer="sgd", lr=0.1, **options).fit(Stream())
    np.testing.assert_array_equal(net.forward(X), plain.fit(Stream(), None).forward(X))
    np.testing.assert_array_equal(net.predict(Stream()), net.predict(X))
    with pytest.raises(
        ValueError, match=r"^X must be a dataset with a length where sample_weight"
    ):
        net.fit(Stream(), sample_weight=np.ones(len(X)))


def test_a_module_in_float64():
    options = {"max_epochs": 2, "train_split": None, "iterator_train__shuffle": False, "lr": 0.1}
    start = torch.nn.Linear(6, 3, dtype=torch.float64)
    plain = NeuralNetClassifier(
        copy.deepcopy(start),
        criterion=torch.nn.CrossEntropyLoss,
        batch_size=32,
        verbose=0,
        **options,
    ).fit(X.astype(np.float64), Y)
    for given in (X.astype(np.float64), torch.as_tensor(X).double()):
        net = CalibratedNetClassifier(start, optimizer="sgd", **options).fit(given, Y)
        np.testing.assert_allclose(net.forward(given), plain.forward(X.astype("f8")), atol=1e-5)
        assert net.module_.weight.dtype == torch.float64


def test_a_last_batch_of_one_with_batch_norm_is_named():
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 3))
    options = {"batch_size": len(X) - 1, "max_epochs": 1, "train_split": None}
    with pytest.raises(ValueError, match=r"^batch_size must leave no last batch of one sample"):
        CalibratedNetClassifier(module, **options).fit(X, Y)
    CalibratedNetClassifier(module, iterator_train__drop_last=True, **options).fit(X, Y)


def test_a_sampler_beside_a_prioritizer_is_refused():
    sampler = WeightedRandomSampler(np.ones(len(X)), len(X))
    net = make_net(
        prioritizer=EpochPrioritizer(MaxEntropySelector()), iterator_train__sampler=sampler
    )
    with pytest.raises(ValueError, match=r"^iterator_train__sampler must be left out with a prio"):
        net.fit(X, Y)


def test_messages_in_the_words_of_skorch():
    with pytest.raises(TypeError, match=r"Did you mean 'optimizer__momentum'\?"):
        make_net(optimizer_momentum=0.9)
    with pytest.raises(ValueError, match=r"^classes must hold all labels, or be None .* got none"):
        make_net(classes=[]).fit(X, Y)
    net = make_net().fit(X, Y)
    net.trim_for_prediction()
    with pytest.raises(SkorchTrainingImpossibleError, match="trimmed for prediction"):
        net.fit(X, Y)


@pytest.mark.usefixtures("on_host")
def test_a_criterion_of_another_name():
    class Own(CalibratedNetClassifier):
        def initialize_criterion(self):
            self.loss_ = torch.nn.CrossEntropyLoss()
            return self

    class WithLoss(Own):
        def get_loss(self, y_pred, y_true, X=None, training=False):
            return self.loss_(y_pred, y_true)

    assert WithLoss(MLP, max_epochs=1).fit(X, Y).predict(X).shape == Y.shape
    with pytest.raises(AttributeError, match="initialize_criterion of Own must set criterion_"):
        Own(MLP, max_epochs=1).fit(X, Y)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_a_scripted_module_is_refused():
    scripted = torch.jit.script(torch.nn.Linear(4, 3))
    with pytest.raises(TypeError, match=r"before torch.jit.script, .* script module_ after fit"):
        CalibratedNetClassifier(scripted).fit(np.zeros((6, 4), np.float32), [0, 1, 2] * 2)
