"""Rows of unit length, read on demand."""

import numpy as np
import pytest

from skcalib.utils._backends import UnitRows


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("index", [slice(None), slice(3, 7), np.array([8, 2, 2])])
def test_rows_have_unit_length_and_their_direction(dtype, index):
    X = np.random.default_rng(0).normal(size=(10, 4)).astype(dtype)
    rows = UnitRows(X)
    assert (len(rows), rows.shape, rows.dtype) == (10, (10, 4), dtype)
    wide = X[index].astype(np.float64)
    expected = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    assert rows[index].dtype == (np.float64 if dtype is np.float64 else np.float32)
    rtol = 1e-14 if dtype is np.float64 else 1e-6
    np.testing.assert_allclose(rows[index], expected, rtol=rtol)


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(np.float16, 6e4), (np.float32, 1e38), (np.float32, 1e-44), (float, 1e300)],
)
def test_no_square_overflows_or_vanishes(dtype, scale):
    row = np.array([[1.0, 1.0, -0.5, 0.0]]) * scale
    unit = UnitRows(row.astype(dtype))[:]
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(unit[0, :2], 2 / 3, rtol=0.05)


def test_a_row_of_zeros_is_named():
    X = np.ones((6, 2))
    X[4] = 0
    for index in (slice(None), slice(3, 6), np.array([1, 4])):
        with pytest.raises(ValueError, match="got one in row 4"):
            UnitRows(X)[index]
    assert len(UnitRows(X)[:4]) == 4
