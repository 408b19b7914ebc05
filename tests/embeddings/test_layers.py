"""LayerEmbedder: the activations a loop over single rows would see, the module left as it was."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import get_tags
from skorch import NeuralNetClassifier
from torch import nn

from skcalib.embeddings import LayerEmbedder

RNG = np.random.default_rng(0)


class Residual(nn.Module):
    """x + convolution(x), with the in-place activation that spoils a shared buffer."""

    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.conv(x)
        out += x
        return self.relu(out)


class Nested(nn.Module):
    """A residual sum around residual blocks."""

    def __init__(self, channels):
        super().__init__()
        self.inner = Residual(channels)

    def forward(self, x):
        return x + self.inner(x)


class SmallResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.blocks = nn.Sequential(Residual(4), Nested(4))
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(4, 5)
        self.never = nn.Linear(4, 4)

    def forward(self, x):
        x = self.blocks(self.relu(self.norm(self.stem(x))))
        return self.head(self.dropout(x.mean(dim=(2, 3))))


@pytest.fixture
def mlp():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 5), nn.ReLU(inplace=True), nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)
    )


@pytest.fixture
def resnet():
    torch.manual_seed(0)
    return SmallResNet()


@pytest.fixture
def X():
    return RNG.normal(size=(23, 6))


@pytest.fixture
def images():
    return RNG.normal(size=(7, 3, 8, 8)).astype(np.float32)


def _by_hand(mlp, X):
    """Return the pre-activations of the two hidden layers, and the logits, in float64 numpy."""
    weights = [
        (p.weight.detach().double().numpy(), p.bias.detach().double().numpy())
        for p in mlp
        if isinstance(p, nn.Linear)
    ]
    first = X @ weights[0][0].T + weights[0][1]
    second = np.maximum(first, 0) @ weights[1][0].T + weights[1][1]
    return first, second, np.tanh(second) @ weights[2][0].T + weights[2][1]


def test_activations_equal_the_formula(mlp, X):
    embedder = LayerEmbedder(mlp, batch_size=10).fit(X)
    assert embedder.layer_names_ == ["0", "2"]
    assert embedder.layer_sizes_ == [5, 4]
    first, second, logits = _by_hand(mlp, X)
    features = embedder.transform(X)
    assert features.dtype == np.float32
    assert_allclose(features, np.hstack([first, second]), atol=1e-6)
    for got, want in zip(embedder.transform_layers(X, output=True), (first, second, logits)):
        assert got.flags.c_contiguous
        assert_allclose(got, want, atol=1e-6)


def test_tensors_stay_where_the_module_is(mlp, X, device, trips):
    embedder = LayerEmbedder(mlp.to(device), batch_size=10).fit(X)
    found = embedder.transform_layers(X, output=True, as_tensors=True)
    assert not trips
    mlp.cpu()
    for got, want in zip(found, _by_hand(mlp, X)):
        assert (got.device.type, got.dtype, got.requires_grad) == (device, torch.float32, False)
        assert_allclose(got.cpu().numpy(), want, atol=1e-6)


def test_in_place_activation_does_not_reach_the_recorded_one(resnet, images):
    """The normalized stem, negative in places, is followed by an in-place ReLU."""
    resnet.eval()
    before = {}
    resnet.norm.register_forward_hook(lambda m, i, o: before.update(norm=o.clone()))
    with torch.no_grad():
        resnet(torch.tensor(images))
    assert (before["norm"] < 0).any()
    got = LayerEmbedder(resnet, ["norm"]).fit(images).transform(images)
    assert_array_equal(got, before["norm"].flatten(1).numpy())


def test_automatic_placement_of_a_residual_net(resnet, images):
    embedder = LayerEmbedder(resnet).fit(images)
    assert embedder.layer_names_ == ["norm", "blocks.0:sum", "blocks.1:sum"]
    assert embedder.layer_sizes_ == [256, 256, 256]


@pytest.mark.parametrize("n_rows", [1, 7])
def test_a_residual_sum_is_read_before_the_activation_that_follows(resnet, images, n_rows):
    resnet.eval()
    x = torch.tensor(images[:n_rows], dtype=torch.float32)
    with torch.no_grad():
        norm = resnet.norm(resnet.stem(x))
        first = norm.relu() + resnet.blocks[0].conv(norm.relu())
        inner = resnet.blocks[1].inner(first.relu())
    want = [norm, first, first.relu() + inner]
    assert (first < 0).any()
    embedder = LayerEmbedder(resnet, batch_size=3).fit(images)
    for got, layer in zip(embedder.transform_layers(images[:n_rows]), want):
        assert_allclose(got, layer.flatten(1).numpy(), atol=1e-6)


class Add(nn.Module):
    def forward(self, a, b):
        return a + b


@pytest.mark.parametrize("add", [Add(), torch.ao.nn.quantized.FloatFunctional()])
def test_an_addition_that_is_a_module_is_no_block(add):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.down = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)
            self.add = add

        def forward(self, x):
            add = self.add if isinstance(self.add, Add) else self.add.add
            return add(self.conv(x), self.down(x)).relu()

    net = nn.Sequential(Block(), nn.Flatten(), nn.Linear(12, 2))
    X = RNG.normal(size=(4, 3, 2, 2)).astype(np.float32)
    embedder = LayerEmbedder(net).fit(X)
    assert embedder.layer_names_ == ["0:sum"]
    with torch.no_grad():
        want = net[0].conv(torch.tensor(X)) + net[0].down(torch.tensor(X))
    assert_allclose(embedder.transform(X), want.flatten(1).numpy(), atol=1e-6)


def test_a_scaled_shortcut_is_read_as_it_is_computed():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(5, 5)

        def forward(self, x):
            return torch.add(self.linear(x), x, alpha=0.25)

    net = nn.Sequential(Block(), nn.ReLU(), nn.Linear(5, 2))
    X = RNG.normal(size=(4, 5)).astype(np.float32)
    embedder = LayerEmbedder(net, layers=["0"]).fit(X)
    with torch.no_grad():
        want = net[0].linear(torch.tensor(X)) + 0.25 * torch.tensor(X)
    assert_allclose(embedder.transform(X), want.numpy(), atol=1e-6)
    embedder = LayerEmbedder(net).fit(X)
    assert embedder.layer_names_ == ["0:sum"]
    assert_allclose(embedder.transform(X), want.numpy(), atol=1e-6)


@pytest.mark.parametrize(
    ("module", "want"),
    [
        (nn.Linear(6, 3), None),
        (nn.Sequential(nn.Linear(6, 3)), ["0"]),
        (nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 3), nn.Softmax(dim=1)), ["0"]),
        (nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 3), nn.Softmax(dim=1), nn.ReLU()), ["0"]),
        (nn.Sequential(nn.ReLU(), nn.Tanh()), None),
    ],
)
def test_automatic_placement_in_small_modules(module, want, X):
    if want is None:
        with pytest.raises(ValueError, match=r'layers must name submodules .* got "auto"'):
            LayerEmbedder(module).fit(X)
    else:
        assert LayerEmbedder(module).fit(X).layer_names_ == want


def test_automatic_placement_in_a_transformer():
    """A position embedding of the shape of one row is no residual sum."""

    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Linear(4, 8)
            self.add = PositionEmbedding(5, 8)
            self.blocks = nn.Sequential(
                *(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True) for _ in range(2))
            )
            self.head = nn.Linear(8, 3)

        def forward(self, x):
            return self.head(self.blocks(self.add(self.embed(x)))[:, 0])

    class PositionEmbedding(nn.Module):
        def __init__(self, n, d):
            super().__init__()
            self.position = nn.Parameter(torch.randn(1, n, d))

        def forward(self, x):
            return x + self.position

    X = RNG.normal(size=(1, 5, 4))
    embedder = LayerEmbedder(Tokens(), pooling="mean").fit(X)
    assert embedder.layer_names_ == ["embed", "blocks.0:sum", "blocks.1:sum"]
    assert embedder.layer_sizes_ == [8, 8, 8]


def test_pooling(resnet, images):
    flat = LayerEmbedder(resnet, ["stem"]).fit(images).transform(images)
    pooled = LayerEmbedder(resnet, ["stem"], pooling="mean").fit(images).transform(images)
    assert_allclose(pooled, flat.reshape(7, 4, 64).mean(axis=2), atol=1e-6)
    top = LayerEmbedder(resnet, ["stem"], pooling=lambda a: a.amax((2, 3))).fit(images)
    assert_allclose(top.transform(images), flat.reshape(7, 4, 64).max(axis=2))


def test_pooling_of_three_axes():
    X = RNG.normal(size=(4, 3, 9)).astype(np.float32)
    conv, linear = nn.Conv1d(3, 2, 3), nn.Linear(9, 5)
    for module, axis, size in [(conv, 2, 2), (linear, 1, 5)]:
        flat = LayerEmbedder(module, "").fit(X).transform(X)
        whole = module(torch.tensor(X)).detach().numpy()
        assert_array_equal(flat, whole.reshape(4, -1))
        pooled = LayerEmbedder(module, [""], pooling="mean").fit(X)
        assert pooled.layer_sizes_ == [size]
        assert_allclose(pooled.transform(X), whole.mean(axis=axis), atol=1e-6)


def test_batches_and_order_do_not_change_a_row(resnet, images):
    whole = LayerEmbedder(resnet).fit(images).transform(images)
    small = LayerEmbedder(resnet, batch_size=2).fit(images)
    assert_allclose(small.transform(images), whole, atol=1e-6)
    order = RNG.permutation(7)
    assert_allclose(small.transform(images[order]), whole[order], atol=1e-6)


def test_tensor_and_array_agree(mlp, X):
    embedder = LayerEmbedder(mlp).fit(X)
    want = embedder.transform(X)
    assert_array_equal(LayerEmbedder(mlp).fit(torch.tensor(X)).transform(torch.tensor(X)), want)
    assert_array_equal(embedder.transform(X.astype(np.float32)), want)
    assert_array_equal(embedder.transform(np.asfortranarray(X)), want)


def test_half_and_double_modules(mlp, X):
    first, second, _ = _by_hand(mlp, X)
    want = np.hstack([first, second])
    double = LayerEmbedder(mlp.double()).fit(X)
    assert_allclose(double.transform(X), want, atol=1e-6)
    half = LayerEmbedder(mlp.to(torch.bfloat16)).fit(X)
    assert_allclose(half.transform(X), want, atol=0.1)
    assert half.transform(X).dtype == np.float32


def test_tags(mlp):
    tags = get_tags(LayerEmbedder(mlp))
    assert tags.input_tags.two_d_array
    assert tags.input_tags.three_d_array
    assert tags.transformer_tags.preserves_dtype == ["float32"]


def test_integer_tensors_are_tokens():
    module = nn.Sequential(nn.Embedding(10, 3), nn.Linear(3, 2))
    tokens = torch.arange(8).reshape(2, 4)
    got = LayerEmbedder(module, ["0"]).fit(tokens).transform(tokens)
    assert_array_equal(got, module[0].weight.detach().numpy()[:8].reshape(2, 12))


def test_the_module_is_left_as_it_was(resnet, images):
    resnet.train()
    resnet.norm.eval()
    modes = [part.training for part in resnet.modules()]
    mean = resnet.norm.running_mean.clone()
    LayerEmbedder(resnet).fit(images).transform_layers(images, output=True)
    assert [part.training for part in resnet.modules()] == modes
    assert_array_equal(resnet.norm.running_mean, mean)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in resnet.modules())
    assert all(p.grad is None for p in resnet.parameters())
    resnet(torch.tensor(images)).sum().backward()


def test_the_module_is_left_as_it_was_after_an_error(resnet, images):
    for layers in ("auto", ["stem"]):
        with pytest.raises(ValueError, match=r"X must be .* got samples of shape \(2, \d+, \d+\)"):
            LayerEmbedder(resnet, layers).fit(images[:, :2])
    with pytest.raises(ZeroDivisionError):
        LayerEmbedder(resnet, ["stem"], pooling=lambda a: a / (1 // 0)).fit(images)
    assert all(part.training for part in resnet.modules())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in resnet.modules())


def test_skorch_nets(X):
    y = np.arange(23) % 3
    net = NeuralNetClassifier(
        nn.Sequential, module__args=[], max_epochs=1, train_split=None, verbose=0
    )
    with pytest.raises(TypeError, match=r"initialized or fitted, got NeuralNetClassifier"):
        LayerEmbedder(net).fit(X)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = nn.Linear(6, 4)
            self.out = nn.Linear(4, 3)

        def forward(self, x):
            return self.out(torch.relu(self.hidden(x)))

    net = NeuralNetClassifier(
        Net, criterion=nn.CrossEntropyLoss, max_epochs=1, train_split=None, verbose=0
    )
    net.fit(X.astype(np.float32), y)
    want = LayerEmbedder(net.module_).fit(X).transform(X)
    assert_array_equal(LayerEmbedder(net).fit(X).transform(X), want)
    frozen = clone(LayerEmbedder(FrozenEstimator(net))).fit(X)
    assert frozen.layer_names_ == ["hidden"]
    assert_array_equal(frozen.transform(X), want)


def test_in_a_pipeline_with_names(mlp, X):
    y = np.arange(23) % 2
    make_pipeline(LayerEmbedder(mlp), LogisticRegression()).fit(X, y).predict(X)
    embedder = LayerEmbedder(mlp, ["2", ""]).set_output(transform="pandas").fit(X)
    frame = embedder.transform(X)
    assert list(frame.columns) == [
        *(f"2_{i}" for i in range(4)),
        *(f"output_{i}" for i in range(3)),
    ]
    assert_array_equal(LayerEmbedder(mlp, ["2", ""]).fit_transform(pd.DataFrame(X)), frame)
    copy = clone(embedder)
    assert_array_equal(copy.fit(X).transform(X), frame)


class _Odd(nn.Module):
    """One part gives no tensor, one loses the sample axis, one is never called."""

    def __init__(self):
        super().__init__()
        self.nothing = nn.Identity()
        self.first = nn.Identity()
        self.turned = nn.Identity()
        self.never = nn.Identity()

    def forward(self, x):
        self.nothing({"x": x})
        self.turned(x.T)
        return self.first((x, 2 * x))[1]


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            ["turned"],
            r"layer 'turned' must give one row per sample \(1 here\), got shape \(6, 1\)",
        ),
        (["nothing"], r"layer 'nothing' must give one row per sample \(1 here\), got dict"),
        (["never"], r"layers must run in the forward pass of _Odd, got \['never'\]"),
        (["turnd"], r"submodules of _Odd, got 'turnd' \(near names: turned\)"),
        (["first", "first"], "more than once"),
        ([], "at least one layer"),
    ],
)
def test_layers_that_cannot_be_embedded(layers, message, X):
    with pytest.raises(ValueError, match=message):
        LayerEmbedder(_Odd(), layers).fit(X)


def test_the_first_tensor_of_a_tuple_is_taken(X):
    assert_array_equal(LayerEmbedder(_Odd(), "first").fit(X).transform(X), X.astype(np.float32))


def test_sizes_that_change_are_an_error():
    class Growing(nn.Module):
        def forward(self, x):
            return x.repeat(1, len(x))

    X = RNG.normal(size=(5, 2))
    with pytest.raises(ValueError, match=r"layer '' must give .* got 4 for rows 0 to 1 and 2"):
        LayerEmbedder(Growing(), [""], batch_size=2).fit(X).transform(X)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (torch.ones(3), "Expected 2D array"),
        (torch.ones(0, 6), r"Found array with 0 sample\(s\)"),
        (torch.full((2, 6), torch.nan), "NaN or infinity"),
        (torch.ones(2, 5), "X has 5 features, but LayerEmbedder is expecting 6"),
        (np.ones((2, 5)), "X has 5 features, but LayerEmbedder is expecting 6"),
        (np.full((2, 6), np.nan), "NaN"),
    ],
)
def test_bad_input(bad, message, mlp, X):
    embedder = LayerEmbedder(mlp).fit(X)
    with pytest.raises(ValueError, match=message):
        embedder.transform(bad)


def test_bad_parameters(mlp, X):
    with pytest.raises(TypeError, match=r"torch\.nn\.Module or a skorch net .* got LogisticRegr"):
        LayerEmbedder(LogisticRegression()).fit(X)
    with pytest.raises(ValueError, match="'pooling' parameter"):
        LayerEmbedder(mlp, pooling="median").fit(X)
    with pytest.raises(ValueError, match="'batch_size' parameter"):
        LayerEmbedder(mlp, batch_size=0).fit(X)
    with pytest.raises(NotFittedError):
        LayerEmbedder(mlp).transform(X)


def fitted_net():
    module = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    net = NeuralNetClassifier(module, max_epochs=1, verbose=0, criterion=nn.CrossEntropyLoss)
    X = RNG.normal(size=(30, 8)).astype(np.float32)
    return FrozenEstimator(net.fit(X, np.arange(30) % 3))


@pytest.mark.parametrize("make", [fitted_net, lambda: FrozenEstimator(fitted_net().module_)])
def test_a_net_is_hashed_by_its_content(make, tmp_path):
    embedder = LayerEmbedder(make(), "0")
    loaded = pickle.loads(pickle.dumps(embedder))
    hashed = joblib.hash(embedder)
    assert hashed == joblib.hash(loaded) == joblib.hash(copy.deepcopy(embedder))
    assert type(loaded.module) is type(embedder.module)
    X = RNG.normal(size=(20, 8)).astype(np.float32)
    steps = [("embed", embedder), ("classify", LogisticRegression())]
    features = Pipeline(steps, memory=str(tmp_path)).fit(X, X[:, 0] > 0)[0].transform(X)
    again = Pipeline([("embed", loaded), steps[1]], memory=str(tmp_path)).fit(X, X[:, 0] > 0)
    assert len(list(tmp_path.rglob("output.pkl"))) == 1
    assert_array_equal(again[0].transform(X), features)
    inside = loaded.module.estimator
    with torch.no_grad():
        getattr(inside, "module_", inside)[0].weight[0, 0] += 1
    assert joblib.hash(loaded) != hashed


def test_a_net_that_cannot_be_pickled_is_copied_all_the_same():
    module = nn.Sequential(nn.Linear(8, 3))
    module.note = lambda: 1
    copied = copy.deepcopy(LayerEmbedder(module, "0"))
    assert_array_equal(copied.module[0].weight.detach(), module[0].weight.detach())


@pytest.mark.slow
def test_a_pipeline_with_memory_finds_what_it_has_computed(tmp_path):
    module = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    embedder = LayerEmbedder(module, "0")
    assert joblib.hash(clone(embedder)) == joblib.hash(copy.deepcopy(embedder))
    X = np.random.RandomState(0).randn(60, 8).astype(np.float32)
    steps = [("embed", embedder), ("classify", LogisticRegression())]
    pipeline = Pipeline(steps, memory=str(tmp_path))
    search = GridSearchCV(pipeline, {"classify__C": [0.1, 1.0, 10.0]}, cv=3)
    search.fit(X, X[:, 0] > 0)
    # One entry for every fold and one for the refit, whatever C.
    assert len(list(tmp_path.rglob("output.pkl"))) == 4
    loaded = pickle.loads(pickle.dumps(embedder.fit(X)))
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))
    with torch.no_grad():
        module[0].weight[0, 0] += 1  # other numbers, another entry
    assert joblib.hash(embedder) != joblib.hash(loaded)
