"""Activations of a network on an accelerator: probed where they lie."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.difficulty import DifficultyProfiler, PredictionDepthScorer, _networks
from skcalib.utils import _backends

torch = pytest.importorskip("torch")
skorch = pytest.importorskip("skorch")
nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore:The depth is undefined")

K = 5


@pytest.fixture(scope="module")
def data():
    X, y = make_blobs(240, n_features=16, centers=3, cluster_std=6.0, random_state=0)
    X = X.astype(np.float32)
    X[40:80:2], y[40:80:2] = X[41:80:2], y[41:80:2]
    return X, y


def module(n_features=16, n_out=3):
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(n_features, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, n_out)
    )


def images(n=60):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 1, 6, 6)).astype(np.float32) + y[:, None, None, None] / 2, y


def conv():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(128, 2))


def on_host(monkeypatch, call):
    """Return what comes out where no device counts as an accelerator."""
    with monkeypatch.context() as patch:
        patch.setattr(_backends, "ACCELERATORS", set())
        return call()


def assert_same(found, expected, device):
    # A GPU may round the activations otherwise, and so another neighbor may be the nearest.
    assert type(found) is np.ndarray
    assert found.dtype == expected.dtype
    different = (found != expected) & ~((found != found) & (expected != expected))
    assert different.mean() <= (0 if device == "cpu" else 0.02)


@pytest.mark.parametrize("place", ["array", "tensor"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"metric": "cosine"},
        {"exclude_self": True},
        {"n_components": 8, "random_state": 0},
        {"layers": ["0", ""], "batch_size": 7},
        {"metric": "manhattan", "algorithm": "brute"},
    ],
)
def test_depths_are_those_of_arrays(device, monkeypatch, data, options, place):
    X, y = data
    train, queries = X[:180], X[160:]
    scorer = PredictionDepthScorer(module(), n_neighbors=K, **options)
    expected = on_host(monkeypatch, lambda: clone(scorer).fit(train, y[:180]))
    there = (lambda rows: torch.tensor(rows, device=device)) if place == "tensor" else np.asarray
    scorer.set_params(estimator=module().to(device)).fit(there(train), y[:180])
    arguments = {"y": y[160:]} if scorer.exclude_self else {}
    for method in ("probe_predict", "probe_predict_proba", "difficulty"):
        ask = getattr(expected, method)
        wanted = on_host(monkeypatch, lambda ask=ask: ask(queries, **arguments))
        assert_same(getattr(scorer, method)(there(queries), **arguments), wanted, device)
    # What was fitted to arrays takes tensors, and the other way round.
    wanted = on_host(monkeypatch, lambda: expected.difficulty(queries))
    assert_same(scorer.difficulty(queries), wanted, device)
    assert_same(scorer.difficulty(torch.tensor(queries, device=device)), wanted, device)


@pytest.mark.parametrize("exclude_self", [False, True])
def test_activations_do_not_go_to_the_host(device, data, trips, exclude_self):
    X, y = data
    train = torch.tensor(X, device=device, requires_grad=True)
    scorer = PredictionDepthScorer(
        module().to(device), n_neighbors=K, exclude_self=exclude_self
    ).fit(train, torch.tensor(y, device=device))
    scorer.difficulty(train, y)
    for probe in scorer.probes_:
        assert probe.search.train_.device.type == device
    # Neighbors; every layer has more numbers.
    assert max(trips) == (K + exclude_self) * len(X)


@pytest.mark.parametrize("shape", ["(n, 1, 6, 6)", "pooled"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.int64])
def test_images(device, monkeypatch, trips, shape, dtype):
    X, y = images()
    tensor = (10 * torch.tensor(X)).to(dtype)
    options = {"n_neighbors": K, "pooling": "mean" if shape == "pooled" else None}
    scorer = PredictionDepthScorer(conv(), **options)
    array = tensor.numpy()
    expected = on_host(monkeypatch, lambda: scorer.fit(array, y).probe_predict(array))
    scorer = PredictionDepthScorer(conv().to(device), **options)
    del trips[:]
    there = tensor.to(device)
    assert_same(scorer.fit(there, y).probe_predict(there), expected, device)
    assert max(trips) == K * len(X)
    with pytest.raises(ValueError, match=r"X must hold samples of shape \(1, 6, 6\), as in fit"):
        scorer.difficulty(there[..., :5])


def test_bad_values_are_named(device):
    X, y = images()
    X[3, 0, 2, 2] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        PredictionDepthScorer(conv().to(device)).fit(torch.tensor(X, device=device), y)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (skorch.NeuralNetClassifier, {"criterion": nn.CrossEntropyLoss}),
        (skorch.NeuralNetBinaryClassifier, {"module__n_out": 1}),
    ],
)
def test_nets(device, monkeypatch, data, trips, kind, options):
    X, y = data
    net = kind(module, device=device, **options).initialize()
    y = y if kind is skorch.NeuralNetClassifier else y > 0
    scorer = PredictionDepthScorer(FrozenEstimator(net), n_neighbors=K)
    expected = on_host(monkeypatch, lambda: scorer.fit(X, y).probe_predict(X))
    del trips[:]
    there = torch.tensor(X, device=device)
    assert_same(scorer.fit(there, y).probe_predict(there), expected, device)
    assert max(trips) == K * len(X)


class Mirrored(skorch.NeuralNetClassifier):
    """A net with a rule of its own for its probabilities."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


def test_probabilities_from_the_host_are_taken_to_the_device(device, monkeypatch, data):
    X, y = data
    net = Mirrored(module, criterion=nn.CrossEntropyLoss, device=device).initialize()
    scorer = PredictionDepthScorer(FrozenEstimator(net), n_neighbors=K)
    expected = on_host(monkeypatch, lambda: scorer.fit(X, y).probe_predict(X))
    found = scorer.fit(torch.tensor(X, device=device), y).probe_predict(X)
    assert_same(found, expected, device)
    assert scorer.probes_[-1].search.train_.device.type == device


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_what_does_not_fit_is_searched_on_the_host(device, monkeypatch, data, dtype):
    X, y = data
    there = torch.tensor(X, device=device).to(dtype)
    scorer = PredictionDepthScorer(module().to(device), n_neighbors=K)
    # Input and first layer: in float32, but an input in float64.
    n_bytes = len(X) * ((8 if dtype is torch.float64 else 4) * 16 + 4 * 24)
    depths = []
    for free, stays in ((2 * n_bytes, True), (2 * n_bytes - 1, False)):
        monkeypatch.setattr(_networks, "count_free_bytes", lambda where, free=free: free)
        depths.append(scorer.fit(there, y).difficulty(there))
        for probe in scorer.probes_:
            assert isinstance(probe.search.train_, torch.Tensor) == stays
    assert_same(depths[1], depths[0], device)


def test_a_pickle_is_searched_on_the_host(device, data):
    X, y = data
    scorer = PredictionDepthScorer(module().to(device), n_neighbors=K).fit(X, y)
    again = pickle.loads(pickle.dumps(scorer))
    for probe in again.probes_:
        assert isinstance(probe.search.train_, np.ndarray)
    for queries in (X, torch.tensor(X, device=device)):
        assert_same(again.difficulty(queries), scorer.difficulty(queries), device)


def test_networks_of_scikit_learn_and_pipelines_read_arrays(device, data):
    X, y = data
    there = torch.tensor(X, device=device)
    mlp = MLPClassifier((8,), tol=1e9, n_iter_no_change=5, random_state=0)
    net = skorch.NeuralNetClassifier(
        module, criterion=nn.CrossEntropyLoss, device=device, verbose=0, max_epochs=1
    )
    for estimator in (mlp, make_pipeline(StandardScaler(), net)):
        torch.manual_seed(0)
        scorer = PredictionDepthScorer(estimator, n_neighbors=K).fit(there, y)
        np.testing.assert_array_equal(scorer.difficulty(there), scorer.difficulty(X))
    # Behind the steps of a Pipeline that are scikit-learn's, the network is on its device.
    assert scorer.probes_[1].search.train_.device.type == device


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_study_of_tensors_is_that_of_arrays(device, data, tmp_path, dtype):
    from skcalib.nets import MLP, CalibratedNetClassifier

    X, y = data
    net = CalibratedNetClassifier(
        MLP,
        module__hidden_layer_sizes=(12,),
        max_epochs=2,
        device=device,
        random_state=0,
        verbose=0,
    )
    profiler = DifficultyProfiler(
        PredictionDepthScorer(net, n_neighbors=K), n_repeats=2, test_size=0.5, random_state=0,
        folder=tmp_path,
    )  # fmt: skip
    there = torch.tensor(X, device=device).to(dtype)
    found = profiler.fit(there, y).profile_
    stored = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("output.pkl")}
    assert len(stored) == 2
    # The same study: its repeats are read.
    profiler.fit(there.clone(), y)
    profiler.fit(there.cpu().numpy(), y)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("output.pkl")} == stored
    fresh = clone(profiler).set_params(folder=None).fit(there.cpu().numpy(), y)
    if device == "cpu":
        np.testing.assert_array_equal(fresh.depth_, profiler.depth_)
        np.testing.assert_array_equal(fresh.iteration_learned_, profiler.iteration_learned_)
        for name in found.dtype.names:
            np.testing.assert_array_equal(fresh.profile_[name], found[name])


@pytest.mark.parametrize("n", [120, 240])
@pytest.mark.parametrize("exclude_self", [False, True])
def test_number_of_transfers(device, data, trips, exclude_self, n):
    X, y = data
    there, labels = torch.tensor(X[:n], device=device), torch.tensor(y[:n], device=device)
    layers = ["0", "2"]
    scorer = PredictionDepthScorer(
        module().eval().to(device), layers=layers, n_neighbors=K, exclude_self=exclude_self
    )
    # The input, each layer and the output.
    n_probes = 1 + len(layers) + 1
    scorer.fit(there, labels)
    # Labels, four checks of the input, predictions; of every probe the center, whether all is
    # finite and the scale; of the last one the votes.
    assert len(trips) == 6 + 3 * n_probes + 3
    del trips[:]
    scorer.difficulty(there, y[:n])
    # Two checks, predictions; of every probe whether all is finite, whether any distance is
    # searched again, and the neighbors; where a sample does not vote on itself, which it is.
    assert len(trips) == 3 + 3 * n_probes + 2 * exclude_self
