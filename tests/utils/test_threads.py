"""Chunks in threads: in order, with buffers of their own, and the BLAS left as it was."""

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from skcalib.difficulty import RMDScorer
from skcalib.difficulty.gaussian import _class_distances, _statistics
from skcalib.utils import _threads
from skcalib.utils._threads import blas_threads, map_chunks, single_blas_thread


@pytest.fixture(autouse=True)
def _blas_of_two_threads():
    with threadpool_limits(limits=2, user_api="blas"):
        assert blas_threads() == 2
        yield


@pytest.fixture(params=[1, 3])
def n_threads(request, monkeypatch):
    monkeypatch.setattr(_threads, "blas_threads", lambda: request.param)
    return request.param


def test_results_come_in_the_order_of_the_rows(n_threads):
    def slow_first(rows, _):
        time.sleep(0.02 if rows.start == 0 else 0.0)
        return rows.start, rows.stop

    found = list(map_chunks(slow_first, 10, 4, lambda: None))
    assert found == [(0, 4), (4, 8), (8, 10)]


def test_no_two_chunks_at_once_share_buffers(n_threads):
    made, lock = [], threading.Lock()

    def make():
        with lock:
            made.append(np.zeros(1))
            return made[-1]

    def use(rows, buffer):
        buffer[0] = rows.start
        time.sleep(0.002)
        return buffer[0] == rows.start

    assert all(map_chunks(use, 30, 1, make))
    assert 1 <= len(made) <= n_threads


def test_results_do_not_pile_up(n_threads):
    started = []

    def note(rows, _):
        started.append(rows.start)

    results = map_chunks(note, 100, 1, lambda: None)
    next(results)
    time.sleep(0.05)
    assert len(started) <= n_threads + 1
    results.close()
    assert len(started) < 100


def test_an_error_in_a_chunk_is_raised_and_the_limit_restored(n_threads):
    before = blas_threads()

    def fail(rows, _):
        raise ValueError(f"rows from {rows.start}")

    with pytest.raises(ValueError, match="rows from 0"):
        list(map_chunks(fail, 10, 2, lambda: None))
    assert blas_threads() == before


def test_chunks_hold_the_blas_to_one_thread(monkeypatch):
    monkeypatch.setattr(_threads, "blas_threads", lambda: 2)
    inside = list(map_chunks(lambda *_: blas_threads(), 4, 1, lambda: None))
    assert inside == [1] * 4


def test_other_threads_than_the_main_one_change_no_limit():
    before, seen = blas_threads(), []

    def work():
        with single_blas_thread():
            seen.append(blas_threads())
        names = map_chunks(lambda *_: threading.current_thread().name, 4, 1, lambda: None)
        seen.append(set(names))

    thread = threading.Thread(target=work, name="alone")
    thread.start()
    thread.join()
    assert seen == [before, {"alone"}]


def test_number_of_threads_changes_no_digit(monkeypatch):
    monkeypatch.setattr(_statistics, "_CHUNK_ELEMENTS", 64)
    monkeypatch.setattr(_statistics, "_MIN_CHUNK_ROWS", 16)
    monkeypatch.setattr(_class_distances, "_CHUNK_ELEMENTS", 64)
    monkeypatch.setattr(_class_distances, "_MIN_CHUNK_ROWS", 16)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 6)).astype(np.float32), rng.integers(0, 4, 200)
    weight = rng.integers(0, 3, 200).astype(float)
    found = []
    for number in (1, 3):
        monkeypatch.setattr(_threads, "blas_threads", lambda number=number: number)
        scorer = RMDScorer().fit(X, y, sample_weight=weight)
        found.append([scorer.difficulty(X, y), scorer.difficulty(X), scorer.transform(X)])
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three)
