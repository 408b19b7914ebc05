import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB

from skcalib.difficulty import LossScorer, NoveltyDetector, RMDScorer, cross_val_difficulty
from skcalib.labels import LabelIssueFinder
from skcalib.posthoc import PostHocCalibratedClassifier
from skcalib.selection import SelectiveClassifier
from skcalib.utils import SkcalibWarning
from skcalib.utils._estimators import make_folds
from skcalib.utils._labels import (
    count_duplicates,
    encode_duplicates,
    find_related,
    warn_of_duplicates,
)

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
        codes = encode_duplicates(given)
        np.testing.assert_array_equal(codes, COPIES)
        assert count_duplicates(codes) == 4
    for given in of_any_kind(np.arange(120)):
        assert encode_duplicates(given) is None
    assert count_duplicates(None) == 0


def test_signs_of_zero_and_stored_zeros_are_equal():
    rows = np.append(np.arange(1.0, 100), [0.0, -0.0])[:, None]
    assert count_duplicates(encode_duplicates(rows)) == 1
    stored = csr_array(np.column_stack([np.append(np.arange(1.0, 100), 99.0), np.ones(100)]))
    stored.data[-1] = 0.0
    other = csr_array(np.column_stack([np.append(np.arange(1.0, 100), 99.0), np.zeros(100)]))
    assert count_duplicates(encode_duplicates(stored)) == 0
    assert count_duplicates(encode_duplicates(other)) == 1


def test_rows_without_an_entry_are_no_copies():
    words = csr_array(np.vstack([np.diag(np.arange(1.0, 61)), np.zeros((10, 60))]))
    assert encode_duplicates(words) is None


def test_few_distinct_rows_are_no_duplicates():
    assert encode_duplicates(np.arange(200) % 49) is None
    assert encode_duplicates(np.arange(200) % 50) is not None


def test_equal_rows_with_unlike_labels_are_different_samples():
    rows, labels = X[COPIES], Y[COPIES].astype(str).astype(object)
    np.testing.assert_array_equal(encode_duplicates(rows, labels), COPIES)
    labels[-1] = "other"  # a copy of row 119
    codes = encode_duplicates(rows, labels)
    np.testing.assert_array_equal(codes, np.append(COPIES[:-1], 120))
    shares = np.where(labels[:, None] == ["0", "1", "other"], 0.8, 0.1)
    np.testing.assert_array_equal(encode_duplicates(rows, shares), codes)
    # One of three that differs: none of them is a duplicate.
    assert encode_duplicates(np.append(np.arange(60), [7, 7]), np.append(np.zeros(61), 1)) is None


def test_what_cannot_be_compared_is_no_copy():
    assert encode_duplicates([{"a": 1}] * 100) is None


@pytest.mark.parametrize(
    "cv", [5, None, KFold(4, shuffle=True, random_state=0), StratifiedKFold(3)]
)
def test_duplicates_are_in_one_part_of_a_fold_where_they_are_named(cv):
    labels = Y[COPIES]
    for train, test in make_folds(cv, X[COPIES], labels, duplicates=COPIES):
        assert not np.isin(COPIES[test], COPIES[train]).any()
    folds = make_folds(cv, X[COPIES], labels)
    held_out = np.sort(np.concatenate([test for _, test in folds]))
    np.testing.assert_array_equal(held_out, np.arange(len(COPIES)))


@pytest.mark.parametrize("cv", [3, KFold(4, shuffle=True, random_state=0), StratifiedKFold(3)])
def test_folds_are_those_of_cv_whatever_the_rows(cv):
    splitter = StratifiedKFold(3) if cv == 3 else cv
    expected = splitter.split(X[COPIES], Y[COPIES])
    for (train, test), (train_too, test_too) in zip(
        make_folds(cv, X[COPIES], Y[COPIES]), expected
    ):
        np.testing.assert_array_equal(train, train_too)
        np.testing.assert_array_equal(test, test_too)


def test_groups_overrule_duplicates():
    text = np.array([None if i < 4 else f"p{i // 4}" for i in range(len(COPIES))], dtype=object)
    codes, n_found = find_related(X[COPIES], text)
    assert n_found == 0
    assert len(np.unique(codes)) == len(COPIES) // 4  # although groups share rows
    for cv in (3, GroupKFold(3)):
        for train, test in make_folds(cv, X[COPIES], Y[COPIES], text):
            assert not np.isin(codes[test], codes[train]).any()
    codes, n_found = find_related(X[COPIES], None)
    np.testing.assert_array_equal(codes, COPIES)
    assert n_found == 4


def test_many_duplicates_bring_a_warning_that_names_groups(recwarn):
    warn_of_duplicates(None)
    warn_of_duplicates(np.append(np.arange(90), np.arange(10)))  # a tenth: none
    assert not recwarn
    message = "^11 of the 100 rows of X equal an earlier one, label included.* pass groups="
    with pytest.warns(SkcalibWarning, match=message):
        warn_of_duplicates(np.append(np.arange(89), np.arange(11)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "fit",
    [
        lambda *rows, **of: PostHocCalibratedClassifier(GaussianNB(), cv=3).fit(*rows, **of),
        lambda *rows, **of: NoveltyDetector(RMDScorer(), cv=3).fit(*rows, **of),
        lambda *rows, **of: SelectiveClassifier(GaussianNB(), risk=0.4, cv=3).fit(*rows, **of),
        lambda *rows, **of: LabelIssueFinder(GaussianNB(), cv=3).fit(*rows, **of),
        lambda *rows, **of: cross_val_difficulty(RMDScorer(), *rows, cv=3, **of),
        lambda *rows, **of: LossScorer(GaussianNB(), cv=3).fit_difficulty(*rows, **of),
    ],
)
def test_a_table_twice_brings_one_warning_and_none_with_groups(fit, recwarn):
    rows, labels = np.tile(X + 3 * Y[:, None], (2, 1)), np.tile(Y, 2)
    fit(rows, labels)
    found = [str(w.message) for w in recwarn if "equal an earlier one" in str(w.message)]
    assert [text.partition(",")[0] for text in found] == [
        "120 of the 240 rows of X equal an earlier one"
    ]
    recwarn.clear()
    fit(rows, labels, groups=np.tile(np.arange(120), 2))
    assert not [w for w in recwarn if "equal an earlier one" in str(w.message)]


def test_folds_that_are_given_lose_the_duplicates_of_what_they_leave_out():
    given = KFold(4, shuffle=True, random_state=0)
    listed = list(given.split(X[COPIES]))
    for cv in (given, listed):
        folds = make_folds(cv, X[COPIES], Y[COPIES], duplicates=COPIES)
        for (train, test), (before, expected) in zip(folds, listed):
            np.testing.assert_array_equal(test, expected)
            kept = before[~np.isin(COPIES[before], COPIES[test])]
            np.testing.assert_array_equal(train, kept)
