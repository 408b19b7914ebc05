"""Results of chunks in one, and arrays in the chunks of another."""

import numpy as np
import pytest

from skcalib.posthoc._dask import take_every
from skcalib.selection._selectors import choose_samples
from skcalib.utils._backends import (
    InMemory,
    align_chunks,
    find_distinct_labels,
    map_rows,
    reduce_chunks,
)

da = pytest.importorskip("dask.array")


def in_chunks(values, size=3):
    return da.from_array(values, chunks=(size, *[1] * (values.ndim - 1)))


@pytest.mark.parametrize("n_chunks", range(1, 9))
def test_every_chunk_is_combined_once_and_in_order(n_chunks):
    x, y = np.arange(3 * n_chunks), np.arange(3 * n_chunks) ** 2
    columns = align_chunks(True, x=in_chunks(x), y=y, none=None)

    def of_chunk(x, y, none, told):
        assert none is None
        return [*x, *y, told]

    expected = [
        part for k in range(n_chunks) for part in [*x[3 * k : 3 * k + 3], *y[3 * k : 3 * k + 3], k]
    ]
    found = reduce_chunks(of_chunk, lambda a, b: a + b, *columns, list(range(n_chunks)))
    assert found == expected


@pytest.mark.parametrize("at_once", [False, True])
def test_what_is_in_memory_comes_in_the_chunks_of_the_first(at_once):
    X, y = np.arange(16).reshape(8, 2), np.arange(8) % 3
    first, here, there = align_chunks(at_once, X=in_chunks(X), y=y, z=in_chunks(X[:, 0], 5))
    assert first.chunks == ((3, 3, 2), (2,))
    assert there.chunks == ((3, 3, 2),)
    assert isinstance(here, InMemory) == at_once
    assert here.numblocks == (3,)
    assert find_distinct_labels(here).tolist() == [0, 1, 2]
    assert take_every(here, 3).tolist() == y[::3].tolist()
    assert take_every(first, 3).tolist() == X[::3].tolist()
    assert take_every(None, 3) is None


@pytest.mark.parametrize("values", [np.ones((2, 2, 2)), np.ones(())])
def test_arrays_of_one_or_two_dimensions_alone_are_taken(values):
    with pytest.raises(TypeError, match="X must be a dask array of one or two dimensions, got sh"):
        align_chunks(X=da.from_array(values))
    with pytest.raises(TypeError, match="got ndarray"):
        align_chunks(X=values)


@pytest.mark.parametrize("at_once", [False, True])
def test_arrays_of_other_samples_are_refused(at_once):
    for other in (np.arange(7), in_chunks(np.arange(7))):
        with pytest.raises(ValueError, match="y must have the samples of X"):
            align_chunks(at_once, X=in_chunks(np.arange(8)), y=other)


def test_rows_are_mapped_and_chosen_in_their_chunks():
    X = np.random.default_rng(0).random((8, 2))
    doubled = map_rows(lambda factor, rows: factor * rows.sum(axis=1), 2, "X", in_chunks(X))
    assert doubled.chunks == ((3, 3, 2),)
    np.testing.assert_allclose(doubled.compute(), 2 * X.sum(axis=1))
    chosen, y = choose_samples(
        lambda scores: scores > np.median(scores),
        lambda column, rows: rows[:, column],
        1,
        *align_chunks(X=in_chunks(X), y=np.arange(8)),
    )
    expected = np.flatnonzero(X[:, 1] > np.median(X[:, 1]))
    assert y.compute().tolist() == expected.tolist()
    np.testing.assert_array_equal(chosen.compute(), X[expected])


def test_matrices_beside_the_first_come_with_all_columns_in_one_chunk():
    x, P = np.arange(8), np.arange(16).reshape(8, 2)
    for given in (P, in_chunks(P, 5)):
        _, other = align_chunks(x=in_chunks(x), P=given)
        assert other.chunks == ((3, 3, 2), (2,))
        np.testing.assert_array_equal(other.compute(), P)
    with pytest.raises(ValueError, match="P must have the samples of x"):
        align_chunks(x=in_chunks(x), P=P[:7])


def test_chunks_of_unknown_sizes_are_matched_by_their_order():
    x, P = in_chunks(np.arange(8)), in_chunks(np.arange(16).reshape(8, 2))
    unknown = x[x >= 0]
    first, other = align_chunks(x=unknown, P=P)
    assert first is unknown
    assert other.chunks == ((3, 3, 2), (2,))
    with pytest.raises(ValueError, match="P must have the samples of x"):
        align_chunks(x=unknown, P=P.rechunk({0: 4}))
    X = P[x >= 0]
    with pytest.raises(ValueError, match="X must have chunks of known sizes, got unknown ones"):
        choose_samples(np.isfinite, lambda column, rows: rows[:, column], 1, X)
