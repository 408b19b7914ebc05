"""Many scores on a device are summed there to fit a temperature; everything else goes once."""

import pickle
import warnings

import numpy as np
import pytest
import torch

from skcalib.posthoc import TemperatureScaling
from skcalib.utils import _numeric

N, K = 300, 7
MANY = 8000  # with fewer, the samples with which the search starts would be all of them
pytestmark = [
    pytest.mark.filterwarnings("ignore:The temperature is at its"),
]


@pytest.fixture(autouse=True)
def _several_blocks(monkeypatch):
    monkeypatch.setattr(_numeric, "BLOCK_SIZE", 500)


def _data(n, temperature=2.0, n_classes=K):
    rng = np.random.default_rng(0)
    logits = 2 * temperature * rng.normal(size=(n, n_classes)).astype(np.float32)
    y = (logits / temperature + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits, y


def _softmax(logits):
    exponential = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponential / exponential.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n", [N, 4 * N])
def test_transfers_of_a_temperature(device, trips, n):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(K), size=n)
    y = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, K - 1)
    there = torch.tensor(proba, device=device)
    scaling = TemperatureScaling(input="proba").fit(there, torch.tensor(y, device=device))
    assert sorted(trips) == [n, n * K]
    assert scaling.temperature_ == TemperatureScaling(input="proba").fit(proba, y).temperature_
    del trips[:]
    scaling.predict_proba(there)
    assert trips == [n * K]


@pytest.mark.parametrize("mix_uniform", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["logits", "proba"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("n_classes", [2, K])
def test_temperatures_are_those_of_arrays(device, mix_uniform, weighted, kind, dtype, n_classes):
    scores, y = _data(MANY, n_classes=n_classes)
    if mix_uniform:
        y[::10] = np.random.default_rng(1).integers(0, n_classes, len(y[::10]))
    if kind == "proba":
        scores = _softmax(scores)
        scores[:5] = np.eye(n_classes, dtype=np.float32)[0]  # zeros
    weight = np.random.default_rng(2).integers(0, 3, MANY) if weighted else None
    there = torch.tensor(scores, device=device).to(dtype)
    options = {"input": kind, "mix_uniform": mix_uniform, "classes": list("abcdefg")[:n_classes]}
    labels = np.array(list("abcdefg"))[y]
    found = TemperatureScaling(**options).fit(there, labels, weight)
    expected = TemperatureScaling(**options).fit(there.cpu().numpy(), labels, weight)
    rtol = 1e-8 if dtype is torch.float64 else 1e-6
    assert found.temperature_ == pytest.approx(expected.temperature_, rel=rtol)
    assert found.uniform_weight_ == pytest.approx(expected.uniform_weight_, rel=1e-4, abs=1e-9)
    for name in ("n_features_in_", "unit_"):
        assert getattr(found, name) == getattr(expected, name)
    few = there[:10].cpu().numpy()
    np.testing.assert_allclose(found.predict_proba(few), expected.predict_proba(few), atol=1e-6)


@pytest.mark.parametrize("n", [MANY, 2 * MANY])
@pytest.mark.parametrize("kind", ["logits", "proba"])
def test_scores_do_not_go_to_the_host(device, trips, n, kind):
    logits, y = _data(n)
    scores = torch.tensor(logits if kind == "logits" else _softmax(logits), device=device)
    labels = torch.tensor(y, device=device)
    del trips[:]
    TemperatureScaling(input=kind).fit(scores, labels)
    # Labels; the least and the largest score; the rows with which the search starts; the sum of
    # all weights, and eight sums for every step of the search.
    once = [n, 2, len(range(0, n, n // 2**11)) * K]
    once += [2] if kind == "logits" else [1]  # the largest, or what counts as 0
    blocks = -(-n // (32 * (500 // K)))
    if kind == "proba":
        once += [4] * blocks  # they show that it holds probabilities
    for number in once:
        trips.remove(number)
    assert set(trips) == {1, 8}
    assert trips.count(1) == 1
    assert trips.count(8) < 8


@pytest.mark.parametrize("case", ["separable", "useless", "one in a thousand", "huge", "tiny"])
@pytest.mark.parametrize("mix_uniform", [False, True])
@pytest.mark.filterwarnings("ignore:X (is far below chance|seems to belong to rows)")
def test_extreme_temperatures_are_those_of_arrays(device, case, mix_uniform):
    logits, y = _data(MANY)
    if case != "useless":
        y = logits.argmax(axis=1)
    if case == "useless":
        y = logits.argmin(axis=1)
    elif case == "one in a thousand":
        y[5::1000] = logits[5::1000].argmin(axis=1)
    elif case in ("huge", "tiny"):
        y[::3] = 0
        logits *= 1e9 if case == "huge" else 1e-12
    fitted = [
        TemperatureScaling(mix_uniform=mix_uniform).fit(scores, y)
        for scores in (torch.tensor(logits, device=device), logits)
    ]
    assert fitted[0].temperature_ == pytest.approx(fitted[1].temperature_, rel=1e-5)
    found, expected = (scaling.predict_proba(logits) for scaling in fitted)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert b"torch" not in pickle.dumps(fitted[0])


def test_faults_and_what_the_sample_shows(device):
    logits, y = _data(MANY)
    there = torch.tensor(logits, device=device)
    proba = torch.tensor(_softmax(logits), device=device)
    for classes, scores, labels, message in (
        (None, proba, y, "X holds probabilities"),
        (None, there.flip(1), y, "columns of X seem to be in another order"),
        (None, there.flip(0), y, "rows in another order"),
        (range(K), there, np.where(y == 0, 1, y), r"y has no sample of class \[0\]"),
    ):
        with pytest.warns(UserWarning, match=message):
            TemperatureScaling(classes=classes).fit(scores, labels)
    bad = there.clone()
    bad[7, 3] = float("nan")
    with pytest.raises(ValueError, match="Input X contains NaN"):
        TemperatureScaling().fit(bad, y)
    with pytest.raises(ValueError, match="X must hold logits of at most"):
        TemperatureScaling().fit(there * 1e20, y)
    with pytest.raises(ValueError, match="X must sum to 1"):
        TemperatureScaling(input="proba").fit(proba * 0.9, y)
    with pytest.raises(ValueError, match=rf"same number of samples, got {MANY} and {MANY - 1}"):
        TemperatureScaling().fit(there, y[1:])


@pytest.mark.parametrize("kind", ["logits", "proba"])
def test_a_warning_counts_the_samples_of_the_user(device, kind):
    logits, y = _data(MANY)
    y[y == 0] = 1
    proba = _softmax(logits)
    scores = torch.tensor(logits if kind == "logits" else proba, device=device)
    weight = np.arange(MANY) % 3  # those of weight 0 were passed, too
    expected = f"predicts {proba[:, 0].sum(dtype=float):.0f} among {MANY} samples"
    assert proba[:, 0].sum() > 1000
    for given in (scores, scores.cpu().numpy()):
        with pytest.warns(UserWarning, match=expected):
            TemperatureScaling(input=kind, classes=range(K)).fit(given, y, weight)


@pytest.mark.parametrize("n_groups", [3, 4, 6, 500])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("error")
def test_repeats_in_a_group_count_once(device, n_groups, weighted):
    # The first three groups have a wrong label, and repeats of them show nothing more.
    groups = np.arange(MANY) % n_groups
    y = groups % 3
    logits = 2 * np.eye(3)[(y + (groups < 3)) % 3]
    logits += 0.3 * np.random.default_rng(0).normal(size=logits.shape)
    weight = 1.0 + np.arange(MANY) % 2 * (groups > 2) if weighted else None
    scores = torch.tensor(logits, device=device)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The temperature is at its")
        TemperatureScaling().fit(scores, y, weight, groups=groups)


def test_missing_options_and_soft_labels_are_read_on_the_host(device):
    logits, y = _data(MANY)
    logits[np.arange(0, MANY, 2), (y[::2] + 1) % K] = -np.inf
    there = torch.tensor(logits, device=device)
    expected = TemperatureScaling().fit(logits, y)
    assert TemperatureScaling().fit(there, y).temperature_ == expected.temperature_
    logits, y = _data(MANY)
    soft = 0.9 * np.eye(K)[y] + 0.1 / K
    expected = TemperatureScaling().fit(logits, soft)
    found = TemperatureScaling().fit(torch.tensor(logits, device=device), soft)
    assert found.temperature_ == expected.temperature_


def test_samples_of_weight_0_are_left_out(device):
    logits, y = _data(MANY)
    weight = np.zeros(MANY)
    weight[:N] = 1
    y[N:] = 0
    found = TemperatureScaling().fit(torch.tensor(logits, device=device), y, weight)
    expected = TemperatureScaling().fit(logits[:N], y[:N])
    assert found.temperature_ == pytest.approx(expected.temperature_, rel=1e-6)
