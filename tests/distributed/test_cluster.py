"""Two processes on the loopback give the numbers of one, also where one of them is killed."""

import os
import signal
import threading
import time
from contextlib import contextmanager
from functools import cache

import joblib
import numpy as np
import pytest
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier

from skcalib.difficulty import DifficultyProfiler, LossScorer, PredictionDepthScorer, RMDScorer
from skcalib.labels import LabelIssueFinder
from skcalib.metrics import CalibrationAccumulator, calibration_error_interval, get_scorer
from skcalib.posthoc import (
    IsotonicCalibration,
    PostHocCalibratedClassifier,
    TemperatureScaling,
    VectorScaling,
)
from skcalib.selection import MaxEntropySelector, SelectiveClassifier

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
cloudpickle = pytest.importorskip("cloudpickle")
Delayed = pytest.importorskip("dask.delayed").Delayed

# One cluster, where --dist loadgroup keeps the tests of a group together.
pytestmark = [
    pytest.mark.xdist_group("cluster"),
    # What is expected is computed without the cluster, of which older versions of dask warn.
    pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler when a distributed"),
]

RNG = np.random.default_rng(0)
N = 600
Y = RNG.integers(0, 3, N)
X = RNG.normal(size=(N, 6)) + np.eye(3, 6)[Y]
PROBA = 0.5 * (RNG.dirichlet(np.ones(3), N) + np.eye(3)[Y])
STATED = softmax(2 * X[:, :3], axis=1)  # too sure


@contextmanager
def _start():
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit=None,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with _start() as client:
        yield client


@pytest.fixture
def own_client():
    """A cluster of a test that kills a worker: whether dask starts another is not ours to test."""
    with _start() as client:
        yield client


def _lazy(array, seconds=0.0):
    """Return the array in 6 chunks, each of which takes some time to come."""
    lazy = da.from_array(array, chunks=(100, *array.shape[1:]))
    return lazy.map_blocks(lambda block: (time.sleep(seconds), block)[1], dtype=array.dtype)


@cache
def _alone(compute):
    with dask.config.set(scheduler="synchronous"):
        return compute()


def _results(seconds=0.0):
    """Return what is computed in chunks, with chunks that take some time."""
    features, proba, labels = _lazy(X, seconds), _lazy(PROBA, seconds), _lazy(Y)
    scorer = RMDScorer().fit(features, labels)
    selector = MaxEntropySelector(fraction=0.3).fit(PROBA[:100])
    return [
        scorer.covariance_,
        scorer.difficulty(features, labels).compute(),
        scorer.transform(features).compute(),
        CalibrationAccumulator().update(labels, proba).result(),
        *(chosen.compute() for chosen in selector.select(proba, labels)),
    ]


@pytest.mark.slow
def test_two_processes_give_the_numbers_of_one(client):
    for value, expected in zip(_results(), _alone(_results)):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.slow
def test_nothing_is_lost_with_a_worker(own_client):
    expected = _alone(_results)
    before = own_client.run(os.getpid)
    killed = next(iter(before.values()))
    timer = threading.Timer(0.6, os.kill, (killed, signal.SIGKILL))
    timer.start()
    results = _results(seconds=0.05)
    timer.join()
    for value, other in zip(results, expected):
        np.testing.assert_array_equal(value, other)
    assert killed not in own_client.run(os.getpid).values()


def _fits(seconds=0.0, labels=Y):
    """Return what is fitted by several passes over chunks."""
    proba = _lazy(STATED, seconds)
    maps = [
        calibrator(input="proba").fit(proba, labels)
        for calibrator in (TemperatureScaling, VectorScaling, IsotonicCalibration)
    ]
    frozen = FrozenEstimator(LogisticRegression().fit(X[:100], Y[:100]))
    selective = SelectiveClassifier(frozen, risk=0.4).fit(_lazy(X, seconds), labels)
    finder = LabelIssueFinder("precomputed").fit(proba, labels)
    return [
        *(found.predict_proba(STATED) for found in maps),
        *(selective.threshold_, finder.noise_rate_, finder.noise_matrix_),
        finder.issues_["p_label_correct"].compute(),
    ]


@pytest.mark.slow
def test_fits_by_sums_over_two_processes(client):
    for value, expected in zip(_fits(), _alone(_fits)):
        np.testing.assert_allclose(value, expected, atol=1e-9)


@pytest.mark.long
@pytest.mark.slow
def test_no_sum_is_lost_with_a_worker(own_client):
    # Labels in memory would be lost with the worker that has them; dask makes these anew.
    expected = _alone(_fits)
    killed = next(iter(own_client.run(os.getpid).values()))
    timer = threading.Timer(0.6, os.kill, (killed, signal.SIGKILL))
    timer.start()
    results = _fits(seconds=0.02, labels=_lazy(Y))
    timer.join()
    for value, other in zip(results, expected):
        np.testing.assert_allclose(value, other, atol=1e-9)
    assert killed not in own_client.run(os.getpid).values()


@pytest.mark.slow
def test_labels_in_memory_go_to_the_workers_and_not_with_the_graph(client, monkeypatch):
    graphs = []
    compute = Delayed.compute

    def noted(lazy):
        graphs.append(cloudpickle.dumps(dict(lazy.__dask_graph__())))
        return compute(lazy)

    monkeypatch.setattr(Delayed, "compute", noted)
    labels = np.arange(N) % 3
    maps = [
        TemperatureScaling(input="proba", bounds=(1.0, 1.0)).fit(_lazy(STATED), y)
        for y in (labels, _lazy(labels))
    ]
    assert len(graphs) > 2
    inside = [labels[:100].tobytes() in graph for graph in graphs]
    # dask sends what it was told to hold.
    assert not any(inside[: len(inside) // 2])
    assert all(inside[len(inside) // 2 :])
    np.testing.assert_allclose(maps[0].uniform_weight_, maps[1].uniform_weight_)


def _profile():
    net = MLPClassifier((8,), learning_rate_init=0.02, max_iter=15, tol=0.0, random_state=0)
    scorer = PredictionDepthScorer(net, n_neighbors=5)
    profiler = DifficultyProfiler(scorer, n_repeats=4, test_size=0.25, random_state=0)
    profiler.fit(X, Y)
    return [profiler.predictions_, profiler.depth_, profiler.iteration_learned_]


def _grid():
    scoring = get_scorer("neg_expected_calibration_error")
    model = PostHocCalibratedClassifier(LogisticRegression(), cv=2)
    search = GridSearchCV(model, {"estimator__C": [0.01, 1.0]}, cv=2, scoring=scoring)
    return [search.fit(X, Y).cv_results_["mean_test_score"]]


def _loss():
    return [LossScorer(LogisticRegression(), cv=3).fit_difficulty(X, Y)]


def _bootstrap():
    return [calibration_error_interval(Y, PROBA, n_resamples=40, random_state=0)]


@pytest.mark.slow
@pytest.mark.parametrize("compute", [_profile, _grid, _loss, _bootstrap])
def test_jobs_of_joblib_run_on_the_workers(client, compute):
    expected = compute()
    with joblib.parallel_config(backend="dask"):
        results = compute()
    for value, other in zip(results, expected):
        np.testing.assert_array_equal(value, other)


@pytest.mark.slow
def test_a_profile_runs_on_the_workers_that_are_left(own_client):
    # A worker that is lost during the jobs takes along what joblib has sent to it alone.
    expected = _profile()
    address, killed = next(iter(own_client.run(os.getpid).items()))
    os.kill(killed, signal.SIGKILL)
    while address in own_client.nthreads():
        time.sleep(0.1)
    with joblib.parallel_config(backend="dask"):
        results = _profile()
    for value, other in zip(results, expected):
        np.testing.assert_array_equal(value, other)
