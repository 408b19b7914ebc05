"""Tensors on an accelerator: what is read of them, and in which precision torch computes."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data as sklearn_validate

from skcalib.difficulty._networks import count_free_bytes, put_floats_on
from skcalib.utils import _backends
from skcalib.utils._backends import (
    TensorRows,
    UnitRows,
    collect_blocks,
    exact_products,
    get_back_end,
    is_on_accelerator,
    take_rows,
)
from skcalib.utils._estimators import validate_rows
from skcalib.utils._numeric import iter_blocks

DTYPES = {
    torch.float16: (np.float16, np.float32),
    torch.bfloat16: (np.float32, np.float32),
    torch.float32: (np.float32, np.float32),
    torch.float64: (np.float64, np.float64),
    torch.int32: (np.float64, np.float64),
    torch.bool: (np.float64, np.float64),
}


def test_tensors_of_the_cpu_and_without_data_are_left_to_numpy():
    for values in (torch.ones(2, 2), torch.ones(2, 2, device="meta"), np.ones((2, 2)), [[1.0]]):
        assert not is_on_accelerator(values)


def test_sparse_tensors_are_no_rows(device):
    assert is_on_accelerator(torch.ones(2, 2, device=device))
    assert not is_on_accelerator(torch.eye(2, device=device).to_sparse())


@pytest.mark.slow
def test_torch_is_not_imported():
    code = (
        "import sys, numpy as np; from skcalib.difficulty import RMDScorer, KNNScorer\n"
        "X, y = np.random.default_rng(0).normal(size=(20, 3)), [0, 1] * 10\n"
        "RMDScorer().fit(X, y).difficulty(X, y); KNNScorer().fit(X).difficulty(X)\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_come_as_floats_on_their_device(device, dtype):
    values = torch.arange(12, device=device).reshape(4, 3).to(dtype)
    rows = TensorRows(values)
    known_as, work = DTYPES[dtype]
    assert (len(rows), rows.shape, rows.dtype) == (4, (4, 3), known_as)
    xp, place = get_back_end(rows)
    assert xp is torch
    for index in (slice(1, 3), place(np.array([3, 0]))):
        block = rows[index]
        assert block.device.type == device
        assert block.cpu().numpy().dtype == work
        np.testing.assert_array_equal(block.cpu().numpy(), values[index].cpu().float().numpy())


def test_blocks_of_rows_come_to_the_host_or_stay(device):
    values = torch.arange(12.0, device=device).reshape(4, 3)
    ((rows, block),) = iter_blocks(TensorRows(values))
    assert type(block) is np.ndarray
    np.testing.assert_array_equal(block, np.arange(12.0).reshape(4, 3)[rows])
    ((_, there),) = iter_blocks(TensorRows(values), on_device=True)
    assert torch.equal(there, values)


def test_a_part_of_the_rows_is_read_to_find_nan(device, monkeypatch):
    TensorRows(torch.empty(3, 0, device=device)).check_finite()
    values = torch.ones(8, 2, 3, device=device)
    values[5, 1, 2] = torch.nan
    monkeypatch.setattr(_backends, "_CHECKED_SIZE", 12)
    read, to_host = [], _backends.to_host
    monkeypatch.setattr(_backends, "to_host", lambda v: read.append(v.shape) or to_host(v))
    with pytest.raises(ValueError, match="contains NaN"):
        TensorRows(values).check_finite()
    assert read == [(2, 2, 3)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_floats_of_a_tensor_stay_or_go_to_the_host(device, dtype):
    tensor = torch.arange(12, device=device).reshape(4, 3).to(dtype)
    there, here = put_floats_on(tensor.device, tensor), put_floats_on(None, tensor)
    assert there.device.type == device
    assert there.cpu().numpy().dtype == DTYPES[dtype][1]
    for found in (there.cpu().numpy(), here):
        np.testing.assert_array_equal(found, tensor.double().cpu().numpy())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f8", np.uint8, bool])
def test_floats_of_an_array_stay_or_go_to_the_device(device, dtype):
    array = np.arange(6).reshape(3, 2).astype(dtype)[::-1]
    wide = np.float64 if np.dtype(dtype).itemsize == 8 else np.float32
    there = put_floats_on(torch.device(device), array)
    assert there.device.type == device
    for found in (there.cpu().numpy(), put_floats_on(None, array)):
        assert found.dtype == wide
        np.testing.assert_array_equal(found, array)


def test_free_memory_counts_what_torch_keeps(monkeypatch):
    assert count_free_bytes(torch.device("cpu")) == np.inf
    for name, value in {
        "mem_get_info": (1000, 5000), "memory_reserved": 300, "memory_allocated": 100
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    assert count_free_bytes(torch.device("cuda")) == 1200


def test_rows_of_unit_length(device):
    X = np.random.default_rng(0).normal(size=(6, 4))
    unit = UnitRows(TensorRows(torch.tensor(1e200 * X, device=device)))
    expected = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(unit[2:5].cpu().numpy(), expected[2:5], rtol=1e-14)
    X[4] = 0
    with pytest.raises(ValueError, match="got one in row 4"):
        UnitRows(TensorRows(torch.tensor(X, device=device)))[3:]


@pytest.mark.parametrize(
    ("shape", "dtype"), [((0, 3), float), ((4, 0), float), ((4, 3), complex), ((4,), float)]
)
def test_shapes_are_judged_in_the_words_of_scikit_learn(device, shape, dtype):
    X = np.zeros(shape, dtype)
    with pytest.raises(ValueError) as expected:
        sklearn_validate(BaseEstimator(), X, dtype=[np.float64])
    with pytest.raises(ValueError) as raised:
        validate_rows(BaseEstimator(), torch.tensor(X, device=device), dtype=[np.float64])
    assert str(expected.value) in str(raised.value)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_are_judged_in_the_words_of_scikit_learn(device, monkeypatch, value, dtype):
    monkeypatch.setattr(_backends, "_CHECKED_SIZE", 6)
    X = torch.ones((7, 3), dtype=dtype, device=device)
    X[5, 1] = value
    with pytest.raises(ValueError, match=r"^Input X contains (NaN|infinity)"):
        validate_rows(BaseEstimator(), X)
    with config_context(assume_finite=True):
        validate_rows(BaseEstimator(), X)
    with pytest.raises(ValueError, match=r"^Input X contains (NaN|infinity)"):
        validate_rows(BaseEstimator(), X[:, None, :], allow_nd=True)
    assert validate_rows(BaseEstimator(), X[:3, :, None], allow_nd=True).shape == (3, 3, 1)


def test_number_of_features_is_that_of_fit(device):
    estimator = BaseEstimator()
    rows, y = validate_rows(estimator, torch.ones((4, 3), device=device), np.arange(4))
    assert rows.shape == (4, 3)
    assert y.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="X has 2 features, but BaseEstimator is expecting 3"):
        validate_rows(estimator, torch.ones((4, 2), device=device), reset=False)
    with pytest.raises(ValueError, match=r"^X and y must have the same number of samples, got 4"):
        validate_rows(estimator, torch.ones((4, 3), device=device), np.arange(3))


def _precision():
    cuda = torch.backends.cuda.matmul
    # torch < 2.9 has but a switch.
    products = cuda.fp32_precision if hasattr(cuda, "fp32_precision") else cuda.allow_tf32
    return products, torch.get_float32_matmul_precision()


def _is_exact():
    return _precision()[0] in ("ieee", False)


@pytest.fixture(params=["medium", "high", "highest"])
def precision(request):
    former = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(request.param)
    yield request.param
    torch.set_float32_matmul_precision(former)


def test_products_are_exact_and_settings_are_given_back(device, precision):
    before = _precision()
    X = torch.ones((4, 3), device=device, requires_grad=True)
    seen = []

    def compute(rows):
        seen.append((_is_exact(), torch.is_autocast_enabled(device)))
        product = X[rows] @ X.T
        assert product.dtype == torch.float32
        assert not product.requires_grad
        with exact_products(X):  # once more, inside
            pass
        return rows

    found = []
    with torch.autocast(device, dtype=torch.bfloat16):
        collect_blocks(compute, X, 2, found.append, blocks_at_once=1)
        assert torch.is_autocast_enabled(device)
    assert found == [slice(0, 2), slice(2, 4)]
    assert seen == 2 * [(True, False)]
    assert _precision() == before
    with pytest.raises(ZeroDivisionError), exact_products(X):
        1 / 0  # noqa: B018
    assert _precision() == before


def test_two_threads_do_not_lose_the_settings(device, precision):
    before = _precision()
    X = torch.ones(2, device=device)
    inexact = []

    def work():
        for _ in range(50):
            with exact_products(X):
                inexact.append(not _is_exact())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(inexact)
    assert _precision() == before


def test_many_blocks_are_one_on_an_accelerator(device):
    found = []
    collect_blocks(lambda rows: rows, torch.ones((100, 2), device=device), 2, found.append)
    assert found == [slice(0, 64), slice(64, 100)]
    found.clear()
    collect_blocks(lambda rows: rows, np.ones((100, 2)), 50, found.append)
    assert found == [slice(0, 50), slice(50, 100)]


def test_rows_are_taken_by_position(device):
    matrix, positions = np.arange(12.0).reshape(6, 2), np.array([5, 0, 0])
    expected = [[10.0, 11.0], [0.0, 1.0], [0.0, 1.0]]
    np.testing.assert_array_equal(take_rows(matrix, positions), expected)
    there = [torch.tensor(array, device=device) for array in (matrix, positions)]
    assert take_rows(*there).tolist() == expected
