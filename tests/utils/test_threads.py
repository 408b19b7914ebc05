"""Chunks in threads: collected in order, and the BLAS left as it was."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from skcalib.difficulty import RMDScorer, _distances, _gaussians
from skcalib.utils import _backends
from skcalib.utils._backends import collect_chunks, count_blas_threads


@pytest.fixture(autouse=True)
def _blas_of_two_threads():
    with threadpool_limits(limits=2, user_api="blas"):
        assert count_blas_threads() == 2
        yield


@pytest.fixture(params=[1, 3])
def n_threads(request, monkeypatch):
    monkeypatch.setattr(_backends, "count_blas_threads", lambda: request.param)
    return request.param


def test_results_are_collected_in_the_order_of_the_rows(n_threads):
    def slow_first(rows):
        time.sleep(0.02 if rows.start == 0 else 0.0)
        return rows.start, rows.stop

    found = []
    collect_chunks(slow_first, 10, 4, found.append)
    assert found == [(0, 4), (4, 8), (8, 10)]


def test_results_do_not_pile_up(n_threads):
    waiting, most = set(), 0
    lock = threading.Lock()

    def compute(rows):
        nonlocal most
        with lock:
            waiting.add(rows.start)
            most = max(most, len(waiting))
        return rows.start

    def collect(start):
        time.sleep(0.001)
        with lock:
            waiting.remove(start)

    collect_chunks(compute, 60, 1, collect)
    assert not waiting
    assert most <= 2 * n_threads


def test_threads_go_on_while_results_are_collected(monkeypatch):
    monkeypatch.setattr(_backends, "count_blas_threads", lambda: 2)
    later_chunk, in_time = threading.Event(), []

    def compute(rows):
        if rows.start >= 4:
            later_chunk.set()
        return rows.start

    # Four chunks are under way. The fifth takes the place of the first, not that of all four.
    collect_chunks(
        compute, 8, 1, lambda start: start == 1 and in_time.append(later_chunk.wait(60))
    )
    assert in_time == [True]


def test_chunks_hold_the_blas_to_one_thread(monkeypatch):
    inside = []
    collect_chunks(lambda _: count_blas_threads(), 4, 1, inside.append)
    assert inside == [1] * 4
    assert count_blas_threads() == 2


def test_the_library_of_most_threads_counts(monkeypatch):
    libraries = [{"num_threads": 2}, {"num_threads": 5}]
    monkeypatch.setattr(_backends, "_find_blas", lambda: SimpleNamespace(info=lambda: libraries))
    assert count_blas_threads() == 5
    libraries.clear()
    assert count_blas_threads() == 1


def test_one_chunk_has_the_whole_blas():
    inside = []
    collect_chunks(lambda _: count_blas_threads(), 4, 4, inside.append)
    assert inside == [2]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["compute", "collect"])
def test_an_error_is_raised_and_the_limit_restored(n_threads, step, error):
    def fail(_):
        raise error("stop")

    steps = {"compute": lambda _: None, "collect": lambda _: None, step: fail}
    for _ in range(2):
        with pytest.raises(error, match="stop"):
            collect_chunks(steps["compute"], 10, 2, steps["collect"])
        assert not _backends._threads_in_use.locked()
    with threadpool_limits(limits=2, user_api="blas"):
        monitor = _backends._find_blas().info()
    assert all(library["num_threads"] == 2 for library in monitor)


def test_a_second_caller_computes_in_its_own_thread_and_changes_no_limit():
    names, first_is_in, second_is_done = set(), threading.Event(), threading.Event()

    def second():
        collect_chunks(lambda _: names.add(threading.current_thread().name), 4, 1)
        second_is_done.set()

    def wait(_):
        first_is_in.set()
        second_is_done.wait(60)
        return count_blas_threads()

    thread = threading.Thread(target=lambda: (first_is_in.wait(60), second()), name="second")
    thread.start()
    limits = []
    collect_chunks(wait, 4, 1, limits.append)
    thread.join()
    assert names == {"second"}
    assert limits == [1] * 4
    assert count_blas_threads() == 2


def test_number_of_threads_changes_no_digit(monkeypatch):
    monkeypatch.setattr(_gaussians, "BLOCK_SIZE", 64)
    monkeypatch.setattr(_gaussians, "BLOCK_ROWS", 16)
    monkeypatch.setattr(_distances, "BLOCK_SIZE", 64)
    monkeypatch.setattr(_distances, "BLOCK_ROWS", 16)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 6)).astype(np.float32), rng.integers(0, 4, 200)
    weight = rng.integers(0, 3, 200).astype(float)
    found = []
    for number in (1, 3):
        monkeypatch.setattr(_backends, "count_blas_threads", lambda number=number: number)
        scorer = RMDScorer().fit(X, y, sample_weight=weight)
        found.append([scorer.difficulty(X, y), scorer.difficulty(X), scorer.transform(X)])
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three)
