import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skcalib.difficulty._networks import clone_with_seed, train_recorded

# Whole batches in the given order: epochs of `fit` and of `partial_fit` are the same.
PLAIN = {"shuffle": False, "batch_size": 60, "learning_rate_init": 0.05, "random_state": 3}


@pytest.fixture(scope="module")
def data():
    X, y = make_blobs(60, n_features=3, centers=3, cluster_std=3.0, random_state=0)
    return X, y


def test_the_seed_reaches_every_step():
    pipeline = make_pipeline(StandardScaler(), MLPClassifier(random_state=1))
    model = clone_with_seed(pipeline, 7)
    assert model[-1].random_state == 7
    assert pipeline[-1].random_state == 1


def untrained_labels(net, X, y, seed):
    """Draw the weights as scikit-learn documents it: Glorot, layer by layer."""
    rng, hidden = np.random.RandomState(seed), X
    sizes = [X.shape[1], *net.hidden_layer_sizes, len(np.unique(y))]
    for i, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:])):  # noqa: RUF007
        bound = np.sqrt(6 / (fan_in + fan_out))
        weights = rng.uniform(-bound, bound, (fan_in, fan_out))
        hidden = hidden @ weights + rng.uniform(-bound, bound, fan_out)
        if i < len(sizes) - 2:
            hidden = np.maximum(hidden, 0)
    return hidden.argmax(axis=1)


@pytest.mark.slow
def test_mlp_goes_through_the_epochs_of_fit(data):
    X, y = data
    net = MLPClassifier((8, 4), max_iter=200, tol=0.01, n_iter_no_change=3, **PLAIN)
    reference = clone(net).fit(X, y)
    history = train_recorded(net, X, y, X, seed=3)
    np.testing.assert_array_equal(history[0], untrained_labels(net, X, y, 3))
    assert len(history) == reference.n_iter_ + 1
    assert reference.n_iter_ < 200  # It stopped by itself.
    np.testing.assert_allclose(net.loss_curve_, reference.loss_curve_)
    np.testing.assert_array_equal(history[-1], reference.predict(X))


def test_mlp_stops_at_max_iter_without_a_warning(data):
    X, y = data
    net = MLPClassifier((4,), max_iter=5, tol=0.0, learning_rate="adaptive", solver="sgd")
    assert len(train_recorded(net, X, y, X[:7], seed=0)) == 6


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "lbfgs", "max_iter": 1000},
        {"early_stopping": True, "tol": 1e9, "n_iter_no_change": 2},
    ],
)
def test_epochs_that_cannot_be_observed(data, options):
    X, y = data
    net = MLPClassifier((4,), random_state=0, **options)
    assert train_recorded(net, X, y, X, seed=0) is None
    assert net.predict(X).shape == (60,)


@pytest.mark.slow
def test_weights_and_pipelines_reach_the_network(data):
    X, y = data
    net = MLPClassifier((8,), max_iter=30, tol=0.0, n_iter_no_change=30, **PLAIN)
    pipeline = make_pipeline(StandardScaler(), clone(net))
    weight = np.where(y == 0, 0.0, 1.0)
    history = train_recorded(pipeline, X, y, X, sample_weight=weight, seed=0)
    scaled = StandardScaler().fit_transform(X)
    expected = train_recorded(net, scaled, y, scaled, sample_weight=weight, seed=0)
    np.testing.assert_array_equal(history, expected)
    np.testing.assert_array_equal(pipeline.predict(X), history[-1])
    assert not (history[-1] == 0).any()  # Class 0 weighs nothing.


@pytest.mark.slow
def test_pipelines_may_be_nested_and_have_a_memory(data, tmp_path):
    X, y = data
    net = MLPClassifier((8,), max_iter=10, tol=0.0, n_iter_no_change=30, **PLAIN)
    scaled = PolynomialFeatures().fit_transform(StandardScaler().fit_transform(X))
    expected = train_recorded(clone(net), scaled, y, scaled, seed=0)
    for memory in (None, str(tmp_path)):
        inner = make_pipeline(PolynomialFeatures(), clone(net), memory=memory)
        nested = make_pipeline("passthrough", StandardScaler(), inner, memory=memory)
        np.testing.assert_array_equal(train_recorded(nested, X, y, X, seed=0), expected)
        np.testing.assert_array_equal(nested.predict(X), expected[-1])


def test_skorch_nets_are_watched(data):
    torch = pytest.importorskip("torch")
    skorch = pytest.importorskip("skorch")
    X, y = data[0].astype(np.float32), data[1].astype(np.int64)
    seen = []

    class Watch(skorch.callbacks.Callback):
        def on_epoch_end(self, net, **kwargs):
            with torch.no_grad():
                seen.append(net.module_.eval()(torch.from_numpy(X)).argmax(1).numpy())

    net = skorch.NeuralNetClassifier(
        torch.nn.Linear, module__in_features=3, module__out_features=3, max_epochs=4, lr=0.1,
        criterion=torch.nn.CrossEntropyLoss, train_split=None, verbose=0, callbacks=[Watch()],
    )  # fmt: skip
    state = torch.get_rng_state()
    first = train_recorded(clone(net), X[:40], y[:40], X, seed=5)
    assert torch.equal(torch.get_rng_state(), state)
    assert len(first) == 5
    np.testing.assert_array_equal(first[1:], seen[-4:])
    second = train_recorded(clone(net), X[:40], y[:40], X, seed=5)
    np.testing.assert_array_equal(first, second)
    assert not train_recorded(
        clone(net).set_params(callbacks="disable"), X[:40], y[:40], X, seed=5
    )


def test_the_epoch_in_which_a_callback_stops_the_training_is_recorded(data):
    torch = pytest.importorskip("torch")
    skorch = pytest.importorskip("skorch")
    X, y = data[0].astype(np.float32), data[1].astype(np.int64)

    class StopAfterThree(skorch.callbacks.Callback):
        def on_epoch_end(self, net, **kwargs):
            if len(net.history) == 3:
                raise KeyboardInterrupt  # As EarlyStopping does.

    net = skorch.NeuralNetClassifier(
        torch.nn.Linear, module__in_features=3, module__out_features=3, max_epochs=9, lr=0.1,
        criterion=torch.nn.CrossEntropyLoss, train_split=None, verbose=0,
        callbacks=[StopAfterThree()],
    )  # fmt: skip
    history = train_recorded(net, X, y, X, seed=5)
    assert len(history) == 4
    np.testing.assert_array_equal(history[-1], net.predict(X))
