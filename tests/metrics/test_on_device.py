"""Probabilities of a tensor are reduced where they lie: a number a sample leaves the device."""

import numpy as np
import pytest
import torch

from skcalib import metrics
from skcalib.metrics import CalibrationAccumulator, _calibration_error
from skcalib.utils import _numeric

N, K = 500, 40
# What is a function of confidence and correctness, or of a score a sample, alone.
OF_ONE_NUMBER = {
    "expected_calibration_error": {},
    "maximum_calibration_error": {"strategy": "quantile"},
    "debiased_calibration_error": {},
    "ks_calibration_error": {},
    "smooth_calibration_error": {},
    "reliability_curve": {},
    "area_under_risk_coverage": {"confidence": "entropy"},
    "excess_area_under_risk_coverage": {},
    "risk_coverage_curve": {"confidence": "margin"},
    "accuracy_at_coverage": {"coverage": 0.5},
    "coverage_at_risk": {"risk": 0.5},
}


@pytest.fixture
def data(device, monkeypatch):
    for module in (_numeric, _calibration_error):
        monkeypatch.setattr(module, "BLOCK_SIZE", 100)  # several blocks
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(K, 0.2), size=N).astype(np.float32)
    y = (proba.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1).clip(0, K - 1)
    proba[:9] = 1 / K  # ties, of which the first class is predicted
    return y, proba, torch.tensor(y, device=device), torch.tensor(proba, device=device)


@pytest.mark.parametrize("name", OF_ONE_NUMBER)
def test_probabilities_do_not_go_to_the_host(data, trips, name):
    y, proba, y_there, there = data
    metric, options = getattr(metrics, name), OF_ONE_NUMBER[name]
    both = metric(y_there, there, **options), metric(y, proba, **options)
    found, expected = (np.hstack(r if isinstance(r, tuple) else [r]) for r in both)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    assert max(trips) in (N, 2**14 + 1)  # a number a sample, or the grid of the smooth error


@pytest.mark.parametrize(
    "name",
    [
        "expected_calibration_error",
        "classwise_calibration_error",
        "refined_log_loss",
        "area_under_risk_coverage",
        "excess_area_under_risk_coverage",
        "area_under_generalized_risk_coverage",
        "accuracy_at_coverage",
        "ks_calibration_error",
        "smooth_calibration_error",
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_on_the_device_are_those_of_arrays(data, name, weighted, soft, dtype):
    y, proba, _, there = data
    rng = np.random.default_rng(1)
    weight = 3 * rng.random(N) * (rng.random(N) < 0.9) if weighted else None
    truth = rng.dirichlet(np.ones(K), N) if soft else y
    metric = getattr(metrics, name)
    found = metric(truth, there.to(getattr(torch, np.dtype(dtype).name)), sample_weight=weight)
    expected = metric(truth, proba.astype(dtype), sample_weight=weight)
    assert found == pytest.approx(expected, rel=1e-6 if dtype == np.float32 else 1e-10)


@pytest.mark.parametrize("n_bins", [1, 2, 15])
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_bins_of_classes_are_those_of_arrays(data, n_bins, strategy, dtype):
    y, proba, _, there = data
    proba = np.hstack([proba[:, :4].round(2), np.zeros((N, K - 4))])  # ties, few distinct values
    proba[:, 4] = 1 - proba[:, :4].sum(axis=1)
    proba[: N // 2, :5] = 0.5, 0.5, 0, 0, 0  # on an edge
    proba[-9:, :5] = 1.0005, -0.0005, 0, 0, 0  # rounded
    proba, device = proba.astype(dtype), there.device
    error, options = metrics.classwise_calibration_error, {"strategy": strategy, "n_bins": n_bins}
    for weight in (None, np.random.default_rng(1).integers(0, 4, N)):
        found, expected = (
            error(y, p, average=None, norm="max", sample_weight=weight, **options)
            for p in (torch.tensor(proba, device=device), proba)
        )
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("name", ["predictive_entropy", "confidence_score", "probability_margin"])
def test_scores_are_made_on_the_device(data, trips, name):
    _, proba, _, there = data
    score = getattr(metrics, name)
    found = score(there)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, score(proba), atol=1e-6)
    assert max(trips) < N  # a block
    assert score(there.double()).dtype == np.float64


def test_accumulator_takes_batches_of_tensors(data, trips):
    y, proba, y_there, there = data
    summed = ("classwise_calibration_error", "smooth_calibration_error", "brier")
    ours, expected = CalibrationAccumulator(), CalibrationAccumulator(metrics=summed)
    everything = CalibrationAccumulator(metrics=summed)
    for rows in (slice(0, 200), slice(200, 200), slice(200, N)):
        ours.update(y_there[rows], there[rows])
        expected.update(y[rows], proba[rows])
    assert max(trips) == 300
    for rows in (slice(0, 200), slice(200, N)):
        everything.update(y_there[rows], there[rows])
    edges = [0, 0, 0.2, 0.2, 0.5, 1]
    weight = np.random.default_rng(0).random(N)
    found, wanted = (
        CalibrationAccumulator(edges=edges).update(y, given, sample_weight=weight)
        for given in (there, proba)
    )
    np.testing.assert_allclose(found.sums_, wanted.sums_, atol=1e-9)
    np.testing.assert_allclose(found.weight_norms_, wanted.weight_norms_, atol=1e-9)
    np.testing.assert_allclose(ours.sums_, expected.sums_, atol=1e-9)
    for metric in ("expected_calibration_error", *summed):
        assert everything.result(metric) == pytest.approx(expected.result(metric), abs=1e-7)


class RefuseNondeterministic(torch.overrides.TorchFunctionMode):
    """Raise as CUDA does under torch.use_deterministic_algorithms(True)."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        weighted = len(args) > 1 or kwargs.get("weights") is not None
        if name in ("histc", "median", "put_") or (name == "bincount" and weighted):
            raise RuntimeError(f"{name} has no deterministic implementation")
        return function(*args, **kwargs)


@pytest.mark.parametrize(
    "name",
    [
        *OF_ONE_NUMBER,
        "area_under_generalized_risk_coverage",
        "classwise_calibration_error",
        "refined_log_loss",
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_deterministic_algorithms_are_enough(data, name, weighted):
    y, proba, y_there, there = data
    weight = np.random.default_rng(1).integers(0, 4, N) if weighted else None
    metric, options = getattr(metrics, name), OF_ONE_NUMBER.get(name, {})
    expected = metric(y, proba, sample_weight=weight, **options)
    with RefuseNondeterministic():
        found = metric(y_there, there, sample_weight=weight, **options)
    found, expected = (np.hstack(r if isinstance(r, tuple) else [r]) for r in (found, expected))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_deterministic_algorithms_are_enough_for_an_accumulator(data):
    y, proba, y_there, there = data
    names = ("classwise_calibration_error", "smooth_calibration_error", "ks_calibration_error")
    with RefuseNondeterministic():
        found = CalibrationAccumulator(metrics=names).update(y_there, there)
    expected = CalibrationAccumulator(metrics=names).update(y, proba)
    for name in ("expected_calibration_error", *names):
        assert found.result(name) == pytest.approx(expected.result(name), abs=1e-7)


@pytest.mark.parametrize("name", ["expected_calibration_error", "area_under_risk_coverage"])
def test_autocast_of_the_caller_does_not_round(data, device, name):
    y, proba, y_there, there = data
    metric, options = getattr(metrics, name), OF_ONE_NUMBER.get(name, {})
    with torch.autocast(device, dtype=torch.bfloat16):
        found = metric(y_there, there, **options)
    assert found == pytest.approx(metric(y, proba, **options), abs=1e-7)


@pytest.mark.slow
def test_sums_are_in_float64(device):
    # In float32 a sum of 2**25 halves stops at 2**24.
    there = torch.full((2**25, 2), 0.5, device=device, dtype=torch.float16)
    labels = np.zeros(2**25, dtype=np.int8)
    assert metrics.expected_calibration_error(labels, there) == 0.5


# What is taken to the host beside the labels and four numbers that show the rows to be
# probabilities, whatever the number of samples of a block: what is reduced there.
TRANSFERS = {
    "expected_calibration_error": ({}, [3 * 15]),
    # How many confidences differ; which of them tie, in four; and the area.
    "area_under_risk_coverage": ({}, 6 * [1]),
    "area_under_risk_coverage by entropy": ({"confidence": "entropy"}, 6 * [1]),
    "area_under_generalized_risk_coverage": ({}, 2 * [1]),
    "accuracy_at_coverage": ({}, 2 * [1]),
    "ks_calibration_error": ({}, 2 * [1]),
    # The edges, then the sums between them.
    "maximum_calibration_error": ({"strategy": "quantile"}, [14, 3 * 15]),
    "smooth_calibration_error": ({}, [2**14 + 1]),
}


def _rows(n, device):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(K, 0.2), size=n).astype(np.float32)
    return torch.tensor(rng.integers(0, K, n), device=device), torch.tensor(proba, device=device)


@pytest.mark.parametrize("n", [N, 4 * N])
@pytest.mark.parametrize("name", TRANSFERS)
def test_transfers_of_a_metric(device, trips, name, n):
    options, reduced = TRANSFERS[name]
    getattr(metrics, name.partition(" ")[0])(*_rows(n, device), **options)
    assert sorted(trips) == sorted([n, 4, *reduced])


@pytest.mark.parametrize("n", [N, 4 * N])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_transfers_of_sums_over_classes(device, trips, n, weighted, strategy):
    weight = np.ones(n) if weighted else None
    options = {"strategy": strategy, "n_bins": 10, "sample_weight": weight}
    metrics.classwise_calibration_error(*_rows(n, device), **options)
    of_quantiles = [K * 9] if strategy == "quantile" else []
    assert sorted(trips) == sorted([4, n, 3 * K * 10, *of_quantiles])


@pytest.mark.parametrize("n", [N, 4 * N])
def test_transfers_of_a_search(device, trips, n):
    # Labels, the check, whether a label is below the top, and five sums a step of the search.
    metrics.refined_log_loss(*_rows(n, device))
    assert trips[:3] == [n, 4, 1]
    assert set(trips[3:]) == {5}
    assert len(trips) <= 15


@pytest.mark.parametrize("score", ["predictive_entropy", "confidence_score", "probability_margin"])
def test_transfers_of_a_score(device, trips, score):
    _, proba = _rows(N, device)
    getattr(metrics, score)(proba)
    assert trips == [4, N]


@pytest.mark.parametrize(
    ("summed", "expected"),
    [
        (["expected_calibration_error"], [N, 4, 3 * 15]),
        (["log_loss"], [N, 4, 3 * 15, 1]),
        (["brier"], [N, 4, 3 * 15, 1]),
        (["log_loss", "brier", "accuracy", "overconfidence"], [N, 4, 3 * 15, 1, 1, 1, 1]),
        (["log_loss", "ks_calibration_error"], [N, 4, 3 * 15, 1, 2**14]),
    ],
)
def test_transfers_of_a_batch(device, trips, summed, expected):
    # Bins of confidence are always summed. All rows are checked once, whatever else is summed.
    accumulator = CalibrationAccumulator(metrics=summed)
    for _ in range(2):
        del trips[:]
        accumulator.update(*_rows(N, device))
        assert sorted(trips) == sorted(expected)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["log_loss", "brier", "accuracy", "overconfidence"])
def test_losses_are_those_of_arrays(data, trips, name, weighted, soft):
    y, proba, _, there = data
    rng = np.random.default_rng(1)
    weight = rng.random(N) if weighted else None
    truth = rng.dirichlet(np.ones(K), N) if soft else y
    found = []
    for given in (there, proba):
        accumulator = CalibrationAccumulator(metrics=[name])
        found.append(accumulator.update(truth, given, sample_weight=weight).result(name))
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert soft or max(trips) < N  # a block


def test_half_precision_is_checked_on_the_device(device, trips):
    # Rounded rows that no longer sum to 1 within the tolerance of float32.
    rough = torch.full((N, 43), 1 / 43, device=device).bfloat16()
    assert (rough.float().sum(1) - 1).abs().min() > 2e-3
    del trips[:]
    metrics.predictive_entropy(rough)
    assert trips == [4, 1, N]
    with pytest.raises(ValueError, match="must sum to 1"):
        metrics.predictive_entropy(rough.float() * 1.01)


@pytest.mark.parametrize("value", [float("nan"), -0.1, 1.2, float("inf")])
def test_bad_values_are_named(device, value):
    y, proba = _rows(N, device)
    proba[7, 3] = value
    with pytest.raises(ValueError, match="in row 7, column 3"):
        metrics.expected_calibration_error(y, proba)
