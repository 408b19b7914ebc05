import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from torch import nn

from skcalib.nets import MLP, CalibratedNetClassifier, adversarial_input_margin

RNG = np.random.RandomState(0)
X = RNG.randn(60, 4).astype(np.float32)
Y = RNG.randint(3, size=60)


def fit(module=MLP, **params):
    params = {"max_epochs": 3, "lr": 0.1, "random_state": 0, "batch_size": 16, **params}
    return CalibratedNetClassifier(module, **params).fit(X, Y)


@pytest.mark.usefixtures("on_host")
def test_linear_network_has_the_exact_distance_to_its_hyperplanes():
    net = fit(module__hidden_layer_sizes=())
    weight = net.module_.layers[-1].weight.detach().numpy()
    logits = net.decision_function(X)
    expected = []
    for z in logits:
        i = z.argmax()
        gaps = [(z[i] - z[j]) / np.linalg.norm(weight[i] - weight[j]) for j in range(3) if j != i]
        expected.append(min(gaps))
    np.testing.assert_allclose(adversarial_input_margin(net, X), expected, rtol=1e-4)


@pytest.mark.usefixtures("on_host")
def test_gradient_agrees_with_finite_differences():
    net = fit(module__hidden_layer_sizes=(8,))
    module, expected = net.module_.double(), []
    for x in torch.from_numpy(X[:5]).double():
        z = module(x[None])[0].detach()
        i, step, distances = int(z.argmax()), 1e-6, []
        for j in {0, 1, 2} - {i}:
            slopes = []
            for axis in torch.eye(4, dtype=torch.float64) * step:
                up, down = (module((x + s * axis)[None])[0].detach() for s in (1, -1))
                slopes.append(float((up[i] - up[j]) - (down[i] - down[j])) / (2 * step))
            distances.append(float(z[i] - z[j]) / np.linalg.norm(slopes))
        expected.append(min(distances))
    net.module_.float()
    np.testing.assert_allclose(adversarial_input_margin(net, X[:5]), expected, rtol=1e-3)


def test_leaves_no_gradient_behind():
    net = fit()
    net.module_.zero_grad()
    adversarial_input_margin(net, X)
    assert all(p.grad is None for p in net.module_.parameters())


def test_dropout_plays_no_part():
    net = fit(module__hidden_layer_sizes=(8,), module__dropout=0.5, train_split=None)
    net.module_.train()
    margin = adversarial_input_margin(net, X)
    np.testing.assert_array_equal(adversarial_input_margin(net, X), margin)
    net.module_.layers[3].p = 0.0
    np.testing.assert_array_equal(adversarial_input_margin(net, X), margin)


def test_constant_network_is_infinitely_far():
    net = fit(module__hidden_layer_sizes=())
    nn.init.zeros_(net.module_.layers[-1].weight)
    assert np.isinf(adversarial_input_margin(net, X)).all()


def test_dataset_and_images():
    images = X.reshape(-1, 1, 2, 2)
    data = torch.utils.data.TensorDataset(torch.from_numpy(images), torch.from_numpy(Y))
    net = CalibratedNetClassifier(MLP, random_state=0, max_epochs=1).fit(images, Y)
    np.testing.assert_allclose(
        adversarial_input_margin(net, data), adversarial_input_margin(net, images), rtol=1e-5
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_plain_module_has_the_margins_of_the_net_and_stays_as_it_was(dtype):
    class Named(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return {"logits": self.inner(x)}

    net = fit(module__hidden_layer_sizes=(8,), module__dropout=0.5)
    expected = adversarial_input_margin(net, X)
    module = net.module_.to("cpu", dtype).train()
    module.layers[1].eval()  # a part in another mode
    module.zero_grad()
    former = [part.training for part in module.modules()]
    for data in (X, X.astype(np.float64), torch.from_numpy(X)):
        for size in (7, 256):
            got = adversarial_input_margin(module, data, batch_size=size)
            np.testing.assert_allclose(got, expected, rtol=1e-4)
    np.testing.assert_allclose(adversarial_input_margin(Named(module), X), expected, rtol=1e-4)
    assert [part.training for part in module.modules()] == former
    assert all(p.grad is None for p in module.parameters())


def test_needs_a_fitted_net_and_one_floating_point_tensor():
    with pytest.raises(NotFittedError):
        adversarial_input_margin(CalibratedNetClassifier(MLP), X)
    with pytest.raises(TypeError, match=r"or a torch.nn.Module, got LogisticRegression"):
        adversarial_input_margin(LogisticRegression(), X)
    with pytest.raises(ValueError, match=r"batch_size must be an integer >= 1, got 0"):
        adversarial_input_margin(nn.Linear(2, 2), X, batch_size=0)
    with pytest.raises(ValueError, match=r"net must give logits .* got shape \(60, 1\)"):
        adversarial_input_margin(nn.Linear(4, 1), X)
    with pytest.raises(ValueError, match=r"X must have a row for every sample"):
        adversarial_input_margin(nn.Linear(4, 2), X[:0])
    with pytest.raises(ValueError, match=r"floating-point numbers.* got torch.int64"):
        adversarial_input_margin(nn.Linear(4, 2), torch.ones(3, 4, dtype=torch.long))
    net = fit()
    with pytest.raises(ValueError, match=r"floating-point numbers.* got torch.int64"):
        adversarial_input_margin(net, torch.ones(3, 4, dtype=torch.long))
    with pytest.raises(ValueError, match="got dict"):
        adversarial_input_margin(net, {"X": X})
