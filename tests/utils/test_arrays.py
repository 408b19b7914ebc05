import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skcalib.utils._arrays import (
    as_array,
    as_features,
    as_floats,
    as_numeric_features,
    check_readable,
    is_soft,
)
from skcalib.utils._output import rename_argument


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_are_returned_as_they_are(dtype):
    values = np.ones((2, 3), dtype=dtype)
    assert as_floats(values, name="x") is values


@pytest.mark.parametrize("values", [[1, 2], [True, False], np.array([1, 0.5], dtype=object)])
def test_other_numbers_become_float64(values):
    array = as_floats(values, name="x")
    assert array.dtype == np.float64
    assert array.tolist() == [float(value) for value in values]


@pytest.mark.parametrize(
    "values",
    [
        ["0.5", "0.5"],
        np.array(["0.5", "1"], dtype=object),
        np.array([b"0.5", 1], dtype=object),
        np.array([1, 2], dtype="datetime64[s]"),
        np.array([1, 2], dtype="timedelta64[ns]"),
        np.array([np.timedelta64(1, "ns")], dtype=object),
        [1j, 2],
    ],
)
def test_text_dates_and_durations_are_no_numbers(values):
    with pytest.raises(TypeError, match=r"^x must hold real numbers, got dtype"):
        as_floats(values, name="x")


@pytest.mark.parametrize(
    "values",
    [
        np.ma.array([1.0, 2.0], mask=[0, 1]),
        [np.ma.array([1.0, 2.0], mask=[0, 1]), [1.0, 2.0]],
    ],
)
def test_masks_are_errors(values):
    for read in (as_array, as_floats, as_features, check_readable):
        with pytest.raises(ValueError, match=r"^x must not be masked, got a masked array"):
            read(values, name="x")


def test_masked_arrays_without_masked_entries_lose_nothing():
    values = np.ma.array([1.0, 2.0], mask=False)
    assert as_floats(values, name="x").tolist() == [1.0, 2.0]
    assert as_features(values, name="x") is values


def test_tensors_are_detached_and_widened():
    torch = pytest.importorskip("torch")
    values = torch.tensor([[0.25, 0.75]], requires_grad=True)
    for read in (as_array, as_floats, as_features):
        found = read(values, name="x")
        assert isinstance(found, np.ndarray)
        assert np.shares_memory(found, values.detach().numpy())
        narrow = read(values.bfloat16(), name="x")
        assert narrow.dtype == np.float32
        assert narrow.tolist() == [[0.25, 0.75]]


def test_tensors_without_data_are_named():
    torch = pytest.importorskip("torch")
    for read in (as_array, as_features):
        with pytest.raises(TypeError, match=r"^x cannot be read as a numpy array"):
            read(torch.ones(2, 2, device="meta"), name="x")


@pytest.mark.parametrize("dtype", ["datetime64[s]", "timedelta64[s]"])
def test_features_are_not_dates(dtype):
    values = np.ones((3, 2), dtype=dtype)
    for X in (values, list(values)):
        with pytest.raises(TypeError, match=r"^X must hold numbers, got dtype"):
            as_numeric_features(X)
        assert as_features(X) is X  # the affair of an estimator inside


def test_frames_stay_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.0]})
    assert as_features(frame) is frame
    column = frame["a"]
    assert as_features(column, name="x") is column
    with pytest.raises(TypeError, match=r"^X must hold numbers, got dtype datetime64"):
        as_numeric_features(frame.assign(c=pd.to_datetime(["2026-01-01", "2026-01-02"])))
    with pytest.raises(TypeError, match=r"^X must hold numbers, got dtype timedelta64"):
        as_numeric_features(frame.assign(c=pd.to_timedelta([1, 2])))


def test_other_features_stay_what_they_are():
    for X in ([[1.0, 2.0]], [], ["a", "b"], np.ones(3), None, "text"):
        assert as_features(X) is X


@pytest.mark.parametrize("values", [{"a": [1.0]}, {1.0, 2.0}, (x for x in [1.0])])
def test_features_are_no_dict_set_or_generator(values):
    with pytest.raises(TypeError, match=f"^X must be array-like, got {type(values).__name__}"):
        as_features(values)


@pytest.mark.parametrize("kind", [sparse.dok_array, sparse.csr_array])
def test_sparse_features_are_left_to_scikit_learn(kind):
    X = kind(np.eye(3))
    assert as_features(X) is X


@pytest.mark.parametrize("rows", [[np.ones(2), np.zeros(2)], [[0.5], [0.5, 1.0]]])
def test_column_of_arrays_is_told_how_to_become_a_matrix(rows):
    column = pd.Series(rows, dtype=object)
    for values in (column, column.to_numpy()):
        with pytest.raises(ValueError, match=r"^x must be an array of two .*: np\.stack\(x\)"):
            as_floats(values, name="x")


def test_errors_speak_of_the_argument_as_the_user_calls_it():
    for kind in (TypeError, ValueError):
        with (
            pytest.raises(kind, match=r"^y must be so, not my_y_true\.$"),
            rename_argument("y_true", "y"),
        ):
            raise kind("y_true must be so, not my_y_true.")
    other = ValueError("X must be so.")
    with pytest.raises(ValueError, match="X must") as caught, rename_argument("y_true", "y"):
        raise other
    assert caught.value is other


def test_a_frame_that_is_not_read_yet_has_to_be_collected():
    class LazyFrame:  # of polars
        pass

    with pytest.raises(TypeError, match=r"^y_proba must be in memory, got a LazyFrame: pass y_"):
        as_array(LazyFrame(), name="y_proba")


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (np.full((3, 2), 0.5), True),
        ([[0.5, 0.5]], True),
        (pd.DataFrame({"a": [0.5], "b": [0.5]}), True),
        (np.zeros((3, 1)), False),
        ([[1], [0]], False),
        (np.zeros((3, 2, 2)), False),
        (np.zeros(3), False),
        ([0, 1], False),
        ([], False),
    ],
)
def test_shares_are_told_by_their_shape(y, expected):
    assert is_soft(y) is expected
