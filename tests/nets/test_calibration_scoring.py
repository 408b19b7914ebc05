import pickle

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.datasets import make_classification
from skorch.callbacks import Checkpoint, EarlyStopping

from skcalib import metrics
from skcalib.nets import MLP, CalibratedNetClassifier, CalibrationScoring

X, Y = make_classification(200, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
NAMES = np.array(["z", "a", "m"])[Y]


def naive_ece(y, proba, n_bins):
    confidence, correct = proba.max(axis=1), proba.argmax(axis=1) == y
    total = 0.0
    for b in range(n_bins):
        inside = (confidence > b / n_bins) & (confidence <= (b + 1) / n_bins)
        if inside.any():
            total += inside.mean() * abs(correct[inside].mean() - confidence[inside].mean())
    return total


def hold_out(data, y):
    return [torch.utils.data.Subset(data, part) for part in np.split(np.arange(200), [120])]


def make_net(*callbacks, **params):
    params = {
        "optimizer": torch.optim.SGD,
        "max_epochs": 4,
        "lr": 0.1,
        "random_state": 0,
        "train_split": hold_out,
        **params,
    }
    return CalibratedNetClassifier(MLP, callbacks=list(callbacks), **params)


@pytest.mark.parametrize("use_caching", [True, False])
@pytest.mark.parametrize("labels", [Y, NAMES])
def test_records_the_error_of_the_held_out_samples(labels, use_caching):
    net = make_net(CalibrationScoring(n_bins=7, use_caching=use_caching)).fit(X, labels)
    columns = np.searchsorted(net.classes_, labels[120:])
    expected = naive_ece(columns, net.predict_proba(X[120:]), 7)
    np.testing.assert_allclose(net.history[-1, "valid_ece"], expected, rtol=1e-4)
    assert len(net.history[:, "valid_ece_best"]) == 4


@pytest.mark.parametrize(
    "name",
    [
        "expected_calibration_error",
        "classwise_calibration_error",
        "refined_log_loss",
        "area_under_risk_coverage",
    ],
)
def test_probabilities_stay_on_the_device(device, trips, name):
    scoring = CalibrationScoring(metric=name).initialize()
    net = make_net(device=device, batch_size=50, max_epochs=1).fit(X, Y)
    del trips[:]
    found = scoring.scoring(net, X, Y)
    assert max(trips) <= 2 * len(X)  # of three classes
    proba = net.predict_proba(X).astype(np.float64)
    assert found == pytest.approx(getattr(metrics, name)(Y, proba), rel=1e-5)


def test_probabilities_of_the_users_own_are_scored():
    class Uniform(CalibratedNetClassifier):
        def predict_proba(self, X):
            return np.full((len(X), 3), 1 / 3)

    net = Uniform(MLP, max_epochs=1, random_state=0, train_split=None).fit(X, Y)
    scoring = CalibrationScoring(metric="brier").initialize()
    assert scoring.scoring(net, X, Y) == pytest.approx(2 / 3)
    plain = make_net(max_epochs=1).fit(X, Y)
    own = CalibrationScoring(metric=lambda y, proba: proba.std(axis=0, ddof=1).sum()).initialize()
    assert own.scoring(plain, X, Y) == pytest.approx(plain.predict_proba(X).std(0, ddof=1).sum())


@pytest.mark.slow
def test_the_held_out_samples_are_not_predicted_once_more():
    class Counting(MLP):
        n_rows = 0

        def forward(self, X):
            Counting.n_rows += len(X)
            return super().forward(X)

    totals = []
    for callbacks in ([], [CalibrationScoring()], [CalibrationScoring(use_caching=False)]):
        Counting.n_rows = 0
        make_net(*callbacks).set_params(module=Counting, max_epochs=2).fit(X, Y)
        totals.append(Counting.n_rows)
    assert totals[0] == totals[1] == totals[2] - 2 * 80


def test_training_samples_and_other_options():
    monitors = [CalibrationScoring(on_train=True), CalibrationScoring(norm="max", name="mce")]
    net = make_net(*monitors).fit(X, Y)
    assert net.history[-1, "mce"] >= naive_ece(Y[120:], net.predict_proba(X[120:]), 15)
    assert 0 <= net.history[-1, "train_ece"] <= 1


def test_early_stopping_and_checkpoints_go_by_it(tmp_path):
    stop = EarlyStopping(monitor="valid_ece", patience=2, threshold=0.9)
    keep = Checkpoint(monitor="valid_ece_best", dirname=str(tmp_path))
    net = make_net(CalibrationScoring(), stop, keep, max_epochs=40).fit(X, Y)
    assert len(net.history) < 40
    assert (tmp_path / "params.pt").exists()


def naive_refinement(y, proba):
    log_proba, samples = np.log(proba.astype(float)), np.arange(len(y))

    def loss(log_temperature):
        scaled = log_softmax(log_proba / np.exp(log_temperature), axis=1)
        return -scaled[samples, y].mean()

    return minimize_scalar(loss, bounds=(-6, 6), method="bounded", options={"xatol": 1e-8}).fun


@pytest.mark.parametrize("use_caching", [True, False])
def test_refinement_is_the_log_loss_after_the_best_temperature(use_caching):
    monitor = CalibrationScoring(metric="refined_log_loss", use_caching=use_caching)
    net = make_net(monitor, CalibrationScoring(metric="refined_log_loss", on_train=True)).fit(
        X, NAMES
    )
    columns = np.searchsorted(net.classes_, NAMES[120:])
    expected = naive_refinement(columns, net.predict_proba(X[120:]))
    np.testing.assert_allclose(net.history[-1, "valid_refined_log_loss"], expected, rtol=1e-5)
    assert net.history[-1, "valid_refined_log_loss"] < net.history[-1, "valid_loss"]
    assert net.history[-1, "train_refined_log_loss"] > 0


@pytest.mark.slow
def test_early_stopping_by_refinement_goes_back_to_the_best_epoch():
    stop = EarlyStopping(
        monitor="valid_refined_log_loss", patience=10, threshold=0, load_best=True
    )
    monitor = CalibrationScoring(metric="refined_log_loss")
    net = make_net(monitor, stop, lr=0.5, max_epochs=200).fit(X, NAMES)
    recorded = net.history[:, "valid_refined_log_loss"]
    assert len(recorded) < 200
    assert np.argmin(recorded) < len(recorded) - 1
    columns = np.searchsorted(net.classes_, NAMES[120:])
    found = naive_refinement(columns, net.predict_proba(X[120:]))
    np.testing.assert_allclose(found, min(recorded), rtol=1e-5)


def test_a_class_may_be_missing_among_the_validation_samples():
    order = np.argsort(Y, kind="stable")
    net = make_net(CalibrationScoring(metric="refined_log_loss")).fit(X[order], Y[order])
    assert set(Y[order][120:]) < {0, 1, 2}
    assert np.isfinite(net.history[:, "valid_refined_log_loss"]).all()


def test_an_unknown_metric_is_named():
    with pytest.raises(ValueError, match=r"^metric must be a function or one of .*got 'refine"):
        make_net(CalibrationScoring(metric="refinement")).fit(X, Y)


@pytest.mark.slow
def test_clone_and_pickle():
    net = make_net(CalibrationScoring(n_bins=9)).fit(X, Y)
    again = pickle.loads(pickle.dumps(net))
    assert again.history[:, "valid_ece"] == net.history[:, "valid_ece"]
    fresh = clone(net)
    assert fresh.callbacks[0].n_bins == 9
    assert fresh.fit(X, Y).history[:, "valid_ece"] == net.history[:, "valid_ece"]


def test_without_validation_samples_it_says_so():
    with pytest.raises(ValueError, match="train_split must hold out samples for CalibrationSc"):
        make_net(CalibrationScoring(), train_split=None).fit(X, Y)
    net = make_net(CalibrationScoring(on_train=True), train_split=None).fit(X, Y)
    assert 0 <= net.history[-1, "train_ece"] <= 1


@pytest.mark.parametrize("name", ["on_train", "use_caching"])
def test_flags_are_booleans(name):
    with pytest.raises(TypeError, match=f"{name} must be True or False, got 'False'"):
        make_net(CalibrationScoring(**{name: "False"})).fit(X, Y)


def test_bad_parameter():
    with pytest.raises(ValueError, match="n_bins"):
        make_net(CalibrationScoring(n_bins=0)).fit(X, Y)


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(TypeError, match="name must be a str or None, got 3"):
        CalibrationScoring(name=3).initialize()
