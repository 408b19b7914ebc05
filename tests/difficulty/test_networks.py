import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.difficulty import PredictionDepthScorer
from skcalib.difficulty._networks import MLP_ACTIVATIONS
from skcalib.difficulty.training_dynamics import prediction_depth
from skcalib.utils import SkcalibWarning

# Networks of these tests are trained for a few epochs or not at all.
pytestmark = pytest.mark.filterwarnings("ignore:The depth is undefined")

torch = pytest.importorskip("torch")
skorch = pytest.importorskip("skorch")
nn = torch.nn
K = 5


@pytest.fixture(scope="module")
def data():
    X, y = make_blobs(120, n_features=4, centers=3, cluster_std=3.0, random_state=0)
    return X.astype(np.float32), y


def small_module(seed=0, n_out=3):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, n_out)
    )


def vote_by_hand(train, codes, queries):
    labels = []
    for row in queries:
        nearest = np.argsort(((train - row) ** 2).sum(axis=1), kind="stable")[:K]
        labels.append(np.bincount(codes[nearest], minlength=3).argmax())
    return np.array(labels)


def test_module_is_read_before_the_activation(data):
    X, y = data
    module = small_module()
    scorer = PredictionDepthScorer(module, n_neighbors=K, batch_size=32).fit(X, y)
    assert scorer.layer_names_ == ["input", "0", "softmax"]
    assert module.training  # The module is left as it was.
    module.eval()
    with torch.no_grad():
        hidden = module[0](torch.from_numpy(X)).numpy().astype(np.float64)
        logits = module(torch.from_numpy(X))
    module.train()
    proba = logits.double().softmax(1).numpy()
    expected = np.stack([vote_by_hand(a, y, a) for a in (X, hidden, proba)], axis=1)
    np.testing.assert_array_equal(scorer.probe_predict(X), expected)
    np.testing.assert_array_equal(
        scorer.difficulty(X), prediction_depth(expected, proba.argmax(axis=1))
    )


@pytest.mark.slow
def test_batch_size_does_not_matter(data):
    X, y = data
    depths = [
        PredictionDepthScorer(small_module(), n_neighbors=K, batch_size=size)
        .fit(X, y)
        .difficulty(X)
        for size in (1, 7, 200)
    ]
    np.testing.assert_array_equal(depths[0], depths[1])
    np.testing.assert_array_equal(depths[0], depths[2])


def test_named_layers_and_images():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1, 6, 6)).astype(np.float32)
    y = np.arange(40) % 2
    whole = PredictionDepthScorer(FrozenEstimator(net), layers=["0"], n_neighbors=K).fit(X, y)
    assert whole.layer_names_ == ["input", "0", "softmax"]
    assert [p.search.train_.shape[1] for p in whole.probes_] == [36, 48, 2]
    pooled = clone(whole).set_params(pooling="mean").fit(X, y)
    assert [p.search.train_.shape[1] for p in pooled.probes_] == [36, 3, 2]
    assert whole.difficulty(X).shape == (40,)
    with pytest.raises(ValueError, match=r"X must hold samples of shape \(1, 6, 6\), as in fit"):
        whole.difficulty(np.zeros((4, 1, 7, 7), dtype=np.float32))


def test_one_logit_is_two_classes(data):
    X, y = data
    module = small_module(n_out=1)
    names = np.array(["no", "yes"])
    scorer = PredictionDepthScorer(module, n_neighbors=K).fit(X, names[y % 2])
    final = names[(module.eval()(torch.from_numpy(X)).detach().numpy()[:, 0] > 0).astype(int)]
    np.testing.assert_array_equal(
        scorer.difficulty(X), prediction_depth(scorer.probe_predict(X), final)
    )


def test_outputs_of_classes_that_are_missing(data):
    X, y = data
    others = y != 1
    module = small_module()
    scorer = PredictionDepthScorer(module, n_neighbors=K).fit(X[others], y[others])
    final = module.eval()(torch.from_numpy(X)).argmax(1).numpy()
    assert (final == 1).any()
    np.testing.assert_array_equal(
        scorer.difficulty(X), prediction_depth(scorer.probe_predict(X), final)
    )
    assert np.isnan(scorer.difficulty(X)[final == 1]).all()  # No probe can say so.
    with pytest.raises(ValueError, match=r"estimator must have one output .*, got 3 outputs"):
        PredictionDepthScorer(module, n_neighbors=K).fit(X[others], np.where(y[others], 3, 0))
    with pytest.raises(ValueError, match=r"estimator must have one output .*, got 3 outputs"):
        PredictionDepthScorer(module, n_neighbors=K).fit(X[others], np.where(y[others], 1, -1))
    with pytest.raises(ValueError, match=r"estimator must have one output .*, got 3 outputs"):
        PredictionDepthScorer(module, n_neighbors=K).fit(
            X[others], np.array(["a", "b", "c"])[y[others]]
        ).difficulty(X)


class Softmaxed(nn.Module):
    """What skorch takes for granted where the criterion is left alone."""

    def __init__(self):
        super().__init__()
        self.inner = small_module()

    def forward(self, X):
        return self.inner(X).softmax(-1)


@pytest.mark.parametrize(
    ("module", "criterion"),
    [(small_module, nn.CrossEntropyLoss), (Softmaxed, nn.NLLLoss)],
)
def test_skorch_nets(data, module, criterion):
    X, y = data
    net = skorch.NeuralNetClassifier(
        module, criterion=criterion, max_epochs=3, train_split=None, verbose=0, lr=0.05
    )
    torch.manual_seed(0)
    scorer = PredictionDepthScorer(net, n_neighbors=K).fit(X, y.astype(np.int64))
    assert not hasattr(net, "module_")
    fitted = scorer.estimator_
    softmax = scorer.probe_predict(X)[:, -1]
    proba = fitted.predict_proba(X)
    np.testing.assert_array_equal(softmax, vote_by_hand(proba, y, proba))
    np.testing.assert_array_equal(
        scorer.difficulty(X), prediction_depth(scorer.probe_predict(X), fitted.predict(X))
    )
    frozen = PredictionDepthScorer(FrozenEstimator(fitted), n_neighbors=K).fit(X, y)
    np.testing.assert_array_equal(frozen.difficulty(X), scorer.difficulty(X))
    with pytest.raises(ValueError, match="sample_weight must be None"):
        clone(scorer).fit(X, y.astype(np.int64), sample_weight=np.ones(len(y)))


def test_calibrated_net_with_string_labels(data):
    from skcalib.nets import MLP, CalibratedNetClassifier

    X, y = data
    names = np.array(["cat", "ant", "bee"])
    net = CalibratedNetClassifier(
        MLP,
        max_epochs=2,
        train_split=None,
        module__hidden_layer_sizes=(6,),
        random_state=0,
        verbose=0,
    )
    piped = make_pipeline(StandardScaler(), net)
    scorer = PredictionDepthScorer(piped, n_neighbors=K).fit(X.astype(np.float64), names[y])
    final = scorer.estimator_.predict(X.astype(np.float64))
    np.testing.assert_array_equal(
        scorer.difficulty(X.astype(np.float64)),
        prediction_depth(scorer.probe_predict(X.astype(np.float64)), final),
    )
    assert np.isin(scorer.probe_predict(X), names).all()


@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_mlp_is_followed_to_its_output(data, activation, n_classes):
    X, y = data
    net = MLPClassifier(
        (5, 4), activation=activation, tol=1e9, n_iter_no_change=5, random_state=0
    ).fit(X, y % n_classes)
    scorer = PredictionDepthScorer(FrozenEstimator(net), n_neighbors=K).fit(X, y % n_classes)
    ((_, reading),) = scorer._reader.read(X)
    np.testing.assert_allclose(reading.layers[-1], net.predict_proba(X), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(reading.final, net.predict(X))
    # Every linear operation follows from the one before.
    weights, bias = net.coefs_[1], net.intercepts_[1]
    hidden = MLP_ACTIVATIONS[activation](reading.layers[1])
    np.testing.assert_allclose(reading.layers[2], hidden @ weights + bias, rtol=1e-4, atol=1e-5)


class Counting(nn.Module):
    """Counts the samples that pass through."""

    def __init__(self):
        super().__init__()
        self.inner, self.n_seen = nn.Linear(4, 3), 0

    def forward(self, X):
        self.n_seen += len(X)
        return self.inner(X)


class MirroredNet(skorch.NeuralNetClassifier):
    """A net with a rule of its own for its probabilities."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


@pytest.mark.parametrize("n_passes", [1, 2])
def test_network_runs_once_unless_its_probabilities_are_its_own(data, n_passes):
    X, y = data
    kind = skorch.NeuralNetClassifier if n_passes == 1 else MirroredNet
    net = kind(
        Counting, criterion=nn.CrossEntropyLoss, max_epochs=2, train_split=None, verbose=0, lr=0.05
    ).fit(X, y.astype(np.int64))
    scorer = PredictionDepthScorer(FrozenEstimator(net), layers=["inner"], n_neighbors=K)
    scorer.fit(X, y)
    net.module_.n_seen = 0
    ((_, reading),) = scorer._reader.read(X)
    assert net.module_.n_seen == n_passes * len(X)
    np.testing.assert_allclose(reading.layers[-1], net.predict_proba(X), rtol=1e-5)


def test_the_output_can_be_among_the_named_layers(data):
    X, y = data
    module = small_module()
    scorer = PredictionDepthScorer(module, layers=np.array(["", "0"]), n_neighbors=K).fit(X, y)
    assert scorer.layer_names_ == ["input", "", "0", "softmax"]
    ((_, reading),) = scorer._reader.read(X)
    logits = module.eval()(torch.from_numpy(X)).detach()
    np.testing.assert_allclose(reading.layers[1], logits, rtol=1e-5)
    np.testing.assert_allclose(reading.layers[-1], logits.softmax(1), rtol=1e-5)


def test_a_network_that_is_not_trained_is_noticed(data):
    X, y = data
    module = small_module()
    scorer = PredictionDepthScorer(module, n_neighbors=1)
    with pytest.warns(
        SkcalibWarning, match=r"undefined for (\d+) of 120 training samples"
    ) as seen:
        depth = scorer.fit(X, y).difficulty(X)
    n_undefined = int(str(seen[0].message).split()[5])
    assert n_undefined == np.isnan(depth).sum() > 60
    answers = module.eval()(torch.from_numpy(X)).argmax(1).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Fitted to its own answers, every sample has a depth.
        scorer.fit(X, answers)


@pytest.mark.slow
def test_of_many_samples_a_thousand_at_most_are_asked():
    X = np.zeros((3003, 4), dtype=np.float32)
    y = np.arange(3003) // 1502
    with pytest.warns(SkcalibWarning, match="undefined for 751 of 751 training samples"):
        PredictionDepthScorer(constant_module(2), n_neighbors=3003).fit(X, y)


def constant_module(answer):
    module = nn.Linear(4, 3)
    with torch.no_grad():
        module.weight.zero_()
        module.bias.copy_(torch.arange(3) == answer)
    return nn.Sequential(module)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_network_may_be_surer_of_one_class_than_float32_can_tell(data, n_classes):
    X, y = data[0].astype(np.float64), data[1] % n_classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPClassifier((3,), max_iter=2, random_state=0).fit(X, y)
    model.intercepts_[-1] += [170] if n_classes == 2 else [170, 0, 0]
    scorer = PredictionDepthScorer(FrozenEstimator(model), n_neighbors=3).fit(X, y)
    assert scorer.probe_predict(X).shape == (len(X), 3)


def test_net_may_be_surer_of_one_class_than_float32_can_tell(data):
    X, y = data
    net = skorch.NeuralNetClassifier(small_module, criterion=nn.CrossEntropyLoss).initialize()
    with torch.no_grad():
        net.module_[-1].bias += torch.tensor([95.0, 0.0, 0.0])  # e^-95 is no normal float32
    for model in (net.module_, FrozenEstimator(net)):
        scorer = PredictionDepthScorer(model, n_neighbors=3).fit(X, y)
        assert scorer.probe_predict(X).shape == (len(X), 3)
