import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from skcalib.utils import SkcalibWarning
from skcalib.utils.checking._groups import copy_codes, merged, n_copies, together, warn_of_copies
from skcalib.utils.meta._estimators import folds_of

X = np.random.default_rng(0).normal(size=(120, 3))
COPIES = np.append(np.arange(120), [5, 5, 0, 119])
Y = np.arange(120) % 2


def of_any_kind(rows):
    yield X[rows]
    yield X[rows].astype(np.float32)
    yield csr_array(X[rows])
    yield [f"text {row}" for row in rows]
    yield np.array([[row, str(row)] for row in rows], dtype=object)
    yield X[rows].reshape(len(rows), 1, 3)
    pd = pytest.importorskip("pandas")
    yield pd.DataFrame({"number": X[rows, 0], "text": [f"text {row}" for row in rows]})


def test_equal_rows_of_any_kind_are_found():
    for given in of_any_kind(COPIES):
        codes = copy_codes(given)
        np.testing.assert_array_equal(codes, COPIES)
        assert n_copies(codes) == 4
    for given in of_any_kind(np.arange(120)):
        assert copy_codes(given) is None
    assert n_copies(None) == 0


def test_signs_of_zero_and_stored_zeros_are_equal():
    rows = np.append(np.arange(1.0, 100), [0.0, -0.0])[:, None]
    assert n_copies(copy_codes(rows)) == 1
    stored = csr_array(np.column_stack([np.append(np.arange(1.0, 100), 99.0), np.ones(100)]))
    stored.data[-1] = 0.0
    other = csr_array(np.column_stack([np.append(np.arange(1.0, 100), 99.0), np.zeros(100)]))
    assert n_copies(copy_codes(stored)) == 0
    assert n_copies(copy_codes(other)) == 1


def test_rows_without_an_entry_are_no_copies():
    words = csr_array(np.vstack([np.diag(np.arange(1.0, 61)), np.zeros((10, 60))]))
    assert copy_codes(words) is None


def test_few_distinct_rows_are_no_copies():
    assert copy_codes(np.arange(200) % 49) is None  # fewer than ten a fold
    assert copy_codes(np.arange(200) % 50) is not None
    assert copy_codes(np.arange(200) % 50, n_folds=10) is None


def test_what_cannot_be_compared_is_no_copy():
    assert copy_codes([{"a": 1}] * 100) is None


@pytest.mark.parametrize(
    "cv", [5, None, KFold(4, shuffle=True, random_state=0), StratifiedKFold(3)]
)
def test_equal_rows_are_in_one_fold(cv):
    labels = Y[COPIES]
    folds = folds_of(cv, X[COPIES], labels)
    for train, test in folds:
        assert not np.isin(COPIES[test], COPIES[train]).any()
    held_out = np.sort(np.concatenate([test for _, test in folds]))
    np.testing.assert_array_equal(held_out, np.arange(len(COPIES)))


def test_groups_are_encoded_once_and_joined_by_equal_rows():
    text = np.array([None if i < 4 else f"p{i // 4}" for i in range(len(COPIES))], dtype=object)
    codes, n_found = together(X[COPIES], text)
    assert n_found == 4
    # Rows 0 and 5 were copied to rows 120 to 122, of the last but one group.
    assert codes[0] == codes[5] == codes[122]
    for train, test in folds_of(3, X[COPIES], Y[COPIES], text):
        assert not np.isin(codes[test], codes[train]).any()
    for train, test in folds_of(GroupKFold(3), X[COPIES], Y[COPIES], text):
        assert not np.isin(COPIES[test], COPIES[train]).any()


def test_a_row_that_all_groups_have_joins_none():
    groups = np.repeat(np.arange(20), 10)
    rows = np.arange(200)
    rows[::10] = 0  # the first row of every group
    np.testing.assert_array_equal(merged(groups, rows), groups)


def test_many_copies_and_unlike_labels_bring_a_warning():
    warn_of_copies(copy_codes(X[COPIES]), Y[COPIES])  # 4 of 124 with the same labels: none
    labels = Y[COPIES]
    labels[-1] = 1 - labels[-1]
    with pytest.warns(
        SkcalibWarning, match="4 of the 124 rows of X are .* 1 of them with another"
    ):
        folds_of(5, X[COPIES], labels)
    with pytest.warns(
        SkcalibWarning, match="120 of the 240 rows of X are equal to an earlier one;"
    ):
        folds_of(5, np.tile(X, (2, 1)), np.tile(Y, 2))


def test_folds_that_are_given_leave_out_what_they_say():
    given = KFold(4, shuffle=True, random_state=0)
    listed = list(given.split(X[COPIES]))
    for cv in (given, listed):
        for (train, test), (before, expected) in zip(folds_of(cv, X[COPIES], Y[COPIES]), listed):
            np.testing.assert_array_equal(test, expected)
            kept = before[~np.isin(COPIES[before], COPIES[test])]
            np.testing.assert_array_equal(train, kept)
