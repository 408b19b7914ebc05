"""Two processes on the loopback give the numbers of one, also where one of them is killed."""

import os
import signal
import threading
import time

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier

from skcalib.difficulty import DifficultyProfiler, LossScorer, PredictionDepthScorer, RMDScorer
from skcalib.metrics import calibration_error_interval, expected_calibration_error, get_scorer
from skcalib.posthoc import PostHocCalibratedClassifier
from skcalib.selection import MaxEntropySelector

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

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
PROBA = RNG.dirichlet(np.ones(3), N)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            memory_limit=None,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _lazy(array, seconds=0.0):
    """Return the array in 20 chunks, each of which takes some time to come."""
    lazy = da.from_array(array, chunks=(30, *array.shape[1:]))
    return lazy.map_blocks(lambda block: (time.sleep(seconds), block)[1], dtype=array.dtype)


def _alone(compute):
    with dask.config.set(scheduler="synchronous"):
        return compute()


def _results(seconds=0.0):
    """Return what is computed in chunks, with chunks that take some time."""
    features, proba, labels = _lazy(X, seconds), _lazy(PROBA, seconds), _lazy(Y)
    scorer = RMDScorer().fit(features, labels)
    selector = MaxEntropySelector(fraction=0.3).fit(PROBA[:30])
    return [
        scorer.covariance_,
        scorer.difficulty(features, labels).compute(),
        scorer.transform(features).compute(),
        expected_calibration_error(labels, proba),
        *(chosen.compute() for chosen in selector.select(proba, labels)),
    ]


def test_two_processes_give_the_numbers_of_one(client):
    for value, expected in zip(_results(), _alone(_results)):
        np.testing.assert_array_equal(value, expected)


def test_nothing_is_lost_with_a_worker(client):
    expected = _alone(_results)
    before = client.run(os.getpid)
    killed = next(iter(before.values()))
    timer = threading.Timer(0.6, os.kill, (killed, signal.SIGKILL))
    timer.start()
    results = _results(seconds=0.05)
    timer.join()
    for value, other in zip(results, expected):
        np.testing.assert_array_equal(value, other)
    client.wait_for_workers(2, timeout=300)
    assert killed not in client.run(os.getpid).values()


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


@pytest.mark.parametrize("compute", [_profile, _grid, _loss, _bootstrap])
def test_jobs_of_joblib_run_on_the_workers(client, compute):
    expected = compute()
    with joblib.parallel_config(backend="dask"):
        results = compute()
    for value, other in zip(results, expected):
        np.testing.assert_array_equal(value, other)


def test_a_profile_runs_on_the_workers_that_are_left(client):
    # A worker that is lost during the jobs takes along what joblib has sent to it alone.
    expected = _profile()
    address, killed = next(iter(client.run(os.getpid).items()))
    os.kill(killed, signal.SIGKILL)
    while address in client.nthreads():
        time.sleep(0.01)
    with joblib.parallel_config(backend="dask"):
        results = _profile()
    for value, other in zip(results, expected):
        np.testing.assert_array_equal(value, other)
