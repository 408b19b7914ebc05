import numpy as np
import pandas as pd
import pytest

from skcalib.utils._output import as_table, get_row_index

COLUMNS = {"label": np.array(["a", "bc"]), "p": np.array([0.5, 1.0])}


def test_array_of_records():
    table = as_table(COLUMNS, as_frame=False)
    assert table.dtype.names == ("label", "p")
    assert table["label"].dtype == "U2"
    assert table.tolist() == [("a", 0.5), ("bc", 1.0)]
    objects = {name: column.astype(object) for name, column in COLUMNS.items()}
    assert as_table(objects, as_frame=False).dtype == [("label", "U2"), ("p", object)]


def test_frame_keeps_the_index():
    table = as_table(COLUMNS, as_frame=True, index=[7, 3])
    pd.testing.assert_frame_equal(table, pd.DataFrame(COLUMNS, index=[7, 3]))


@pytest.mark.parametrize("rows", [pd.Series([1, 2], index=[7, 3]), pd.DataFrame([1, 2], [7, 3])])
def test_index_of_the_first_that_has_one(rows):
    assert get_row_index(np.zeros(2), [1, 2], rows).tolist() == [7, 3]


def test_arrays_and_lists_have_no_index():
    assert get_row_index(np.zeros(2), [1, 2], (1, 2), None) is None
