"""The same distances from tensors, worked on where they lie."""

import pickle

import numpy as np
import pytest
import torch

from skcalib.difficulty import RelativeMahalanobisScorer, RMDScorer, _gaussians

N, D, K = 600, 40, 5


def _data(n=N, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    means = np.random.default_rng(9).normal(size=(K, D))
    return (means[y] + rng.normal(size=(n, D))).astype(np.float32), y


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(_gaussians, "BLOCK_SIZE", 64)
    monkeypatch.setattr(_gaussians, "BLOCK_ROWS", 32)


@pytest.mark.parametrize("options", [{}, {"relative": False}, {"normalize": True}])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("dtype", "rtol"),
    [(torch.float64, 1e-9), (torch.float32, 1e-4), (torch.float16, 1e-4), (torch.bfloat16, 1e-4)],
)
def test_equal_those_of_arrays(device, dtype, rtol, weighted, options):
    X, y = _data()
    weight = np.random.default_rng(1).integers(0, 3, N) if weighted else None
    tensor = torch.tensor(X, device=device).to(dtype)
    array = tensor.float().cpu().numpy() if dtype is torch.bfloat16 else tensor.cpu().numpy()
    expected = RMDScorer(**options).fit(array, y, weight)
    scorer = RMDScorer(**options).fit(tensor, torch.tensor(y, device=device), weight)
    scale = np.abs(expected.transform(array)).max()
    for call in (
        lambda fitted, samples: fitted.difficulty(samples),
        lambda fitted, samples: fitted.difficulty(samples, y),
        lambda fitted, samples: fitted.score_samples(samples),
        lambda fitted, samples: fitted.transform(samples),
    ):
        wanted, found = call(expected, array), call(scorer, tensor)
        assert isinstance(found, np.ndarray)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, atol=rtol * scale)
        # Fitted there and asked here, and the other way round.
        np.testing.assert_allclose(call(scorer, array), wanted, atol=rtol * scale)
        np.testing.assert_allclose(call(expected, tensor), wanted, atol=rtol * scale)
    np.testing.assert_array_equal(scorer.predict(tensor), expected.predict(array))
    np.testing.assert_allclose(
        scorer.leave_one_out_difficulty(tensor, y, weight),
        expected.leave_one_out_difficulty(array, y, weight),
        atol=10 * rtol * scale,
    )


@pytest.mark.slow
def test_samples_do_not_go_to_the_host(device, trips):
    X, y = _data(n=4000)
    tensor = torch.tensor(X, device=device, requires_grad=True)
    scorer = RMDScorer(normalize=True).fit(tensor, torch.tensor(y, device=device))
    scorer.partial_fit(tensor[:1000], y[:1000])
    scorer.difficulty(tensor, y)
    scorer.difficulty(tensor)
    scorer.score_samples(tensor)
    scorer.predict(tensor)
    scorer.transform(tensor)
    scorer.fit_difficulty(tensor, y)
    scorer.leave_one_out_transform(tensor, y)
    # Distances to all classes are the largest; the samples are 8 times as many numbers.
    assert max(trips) == 4000 * K


@pytest.mark.filterwarnings("ignore:These classes have a single sample")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("options", [{}, {"relative": False}, {"shrinkage": 0.1}])
def test_left_out_samples_are_those_of_arrays(device, dtype, options):
    X, y = _data()
    X[:, 3] = 0
    X[7, 3] = 1.0  # without this sample, no variance
    y[9] = K  # without this one, no class
    weight = np.random.default_rng(1).integers(0, 3, N)
    weight[[7, 9]] = 1
    array = X.astype(np.dtype(str(dtype).removeprefix("torch.")))
    tensor = torch.tensor(array, device=device)
    rtol = 1e-9 if dtype is torch.float64 else 1e-3
    for method in ("leave_one_out_difficulty", "leave_one_out_transform"):
        found, expected = (
            getattr(RMDScorer(**options).fit(rows, y, weight), method)(rows, y, weight)
            for rows in (tensor, array)
        )
        assert found.dtype == expected.dtype
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(np.isfinite(found), finite)
        largest = np.abs(expected[finite]).max()
        np.testing.assert_allclose(found[finite], expected[finite], atol=rtol * largest)


def test_parts_may_be_arrays_and_tensors(device):
    X, y = _data()
    tensor = torch.tensor(X, device=device)
    mixed = RMDScorer().partial_fit(X[:200], y[:200], classes=range(K + 1))
    mixed.partial_fit(tensor[:0], y[:0]).partial_fit(tensor[200:], y[200:])
    whole = RMDScorer().fit(X, y)
    np.testing.assert_allclose(mixed.difficulty(tensor), whole.difficulty(X), atol=2e-3)
    assert np.isinf(mixed.transform(tensor)[:, K]).all()


def test_directions_of_little_variance_are_found_in_float64(device):
    X, y = _data()
    X[:, 1] = X[:, 0] * (1 + 1e-5 * np.random.default_rng(3).normal(size=N))
    tensor = torch.tensor(X, device=device)
    np.testing.assert_allclose(
        RMDScorer().fit(tensor, y).covariance_, RMDScorer().fit(X, y).covariance_, rtol=1e-9
    )


def test_bad_values_are_named(device):
    X, y = _data()
    tensor = torch.tensor(X, device=device)
    scorer = RMDScorer().fit(tensor, y)
    tensor[7, 3] = np.nan
    for call in (scorer.transform, scorer.difficulty, scorer.predict):
        with pytest.raises(ValueError, match="Input X contains NaN"):
            call(tensor)
    for fit in (scorer.fit, scorer.partial_fit, RMDScorer(normalize=True).fit):
        with pytest.raises(ValueError, match="Input X contains NaN"):
            fit(tensor, y)
    with pytest.raises(ValueError, match="expecting 40 features"):
        scorer.transform(tensor[:, :3])
    with pytest.raises(ValueError, match="y"):
        scorer.difficulty(torch.ones((2, D), device=device), [0, 99])


def test_a_pickle_needs_no_device(device):
    X, y = _data()
    tensor = torch.tensor(X, device=device)
    scorer = RelativeMahalanobisScorer().fit(tensor, y)
    scorer.difficulty(tensor)
    assert b"torch" not in pickle.dumps(scorer)


@pytest.mark.filterwarnings("ignore:The samples are too few")
@pytest.mark.parametrize("case", ["plain", "constant", "sum", "between classes alone", "few"])
@pytest.mark.parametrize(
    "options", [{}, {"relative": False}, {"shrinkage": "auto"}, {"shrinkage": 0.1}]
)
@pytest.mark.parametrize("n_classes", [K, 2 * D])
def test_covariances_are_decomposed_on_the_device(device, monkeypatch, case, options, n_classes):
    X, y = _data()[0].astype(np.float64), np.arange(N) % n_classes
    if case == "constant":
        X[:, 3] = 7
    elif case == "sum":
        X[:, 5] = X[:, 6] - 2 * X[:, 7]
    elif case == "between classes alone":
        X[:, 2] = 10 * y
    elif case == "few":
        few = y < D / 4
        X, y = X[few][: D // 2], y[few][: D // 2]
    expected = RMDScorer(**options).fit(X, y).difficulty(X, y)

    def refuse(*args, **options):
        raise AssertionError("decomposed on the host")

    for name in ("cholesky", "eigh", "qr", "svd", "inv"):
        monkeypatch.setattr(np.linalg, name, refuse)
    tensor = torch.tensor(X, device=device)
    for scorer in (
        RMDScorer(**options).fit(tensor, y),
        RMDScorer(**options).partial_fit(tensor, y),  # decomposed when it is asked
    ):
        found = scorer.difficulty(tensor, y)
        np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())
        assert b"torch" not in pickle.dumps(scorer)


@pytest.mark.parametrize("n", [N, 4 * N])
def test_number_of_transfers(device, trips, monkeypatch, n):
    monkeypatch.setattr(_gaussians, "BLOCK_ROWS", 4 * N)  # a single block
    X, y = _data(n)
    tensor, labels = torch.tensor(X, device=device), torch.tensor(y, device=device)
    scorer = RMDScorer().fit(tensor, labels)
    # Labels, the points about which is summed, the sums and the scatter; then the variances,
    # whether all directions vary, the coordinates of the distances and their weights.
    statistics, coordinates = [n, K * D, K * D, D * D], [D, 1, D * (K - 1), K - 1]
    assert sorted(trips) == sorted(statistics + coordinates)
    for call, expected in (
        (scorer.difficulty, [1, n]),
        (scorer.score_samples, [1, n]),
        (scorer.predict, [1, n]),
        (scorer.transform, [1, n * K]),
        (lambda samples: scorer.difficulty(samples, y), [1, n]),
    ):
        del trips[:]
        call(tensor)
        assert trips == expected


@pytest.mark.slow
def test_the_scatter_stays_until_the_end(device, trips):
    X, y = _data(n=4000)
    X[500:] += 50  # classes that move away from their first samples
    scorer = RMDScorer().fit(torch.tensor(X, device=device), y)
    assert trips.count(D * D) == 1
    np.testing.assert_allclose(scorer.covariance_, RMDScorer().fit(X, y).covariance_, atol=1e-3)
