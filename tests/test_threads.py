"""Eight threads get what one gets, and the process is afterwards as it was."""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from skcalib.difficulty import KNNScorer, PredictionDepthScorer, RMDScorer
from skcalib.labels import LabelIssueFinder
from skcalib.metrics import expected_calibration_error
from skcalib.posthoc import PostHocCalibratedClassifier
from skcalib.report import CalibrationReport
from skcalib.selection import SelectiveClassifier
from skcalib.utils import SkcalibWarning
from skcalib.utils._output import collecting, warn

N_THREADS = 8
X, Y = load_digits(n_class=4, return_X_y=True)
X = X[:400].astype(np.float32) / 16
Y = Y[:400]


@pytest.fixture(autouse=True)
def _switch_often():
    former = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(former)


def check(call, arguments):
    """Compare the results of eight threads with those of one."""
    expected = [call(argument) for argument in arguments]
    with ThreadPoolExecutor(N_THREADS) as pool:
        found = list(pool.map(call, arguments))
    for one, eight in zip(expected, found):
        assert_array_equal(one, eight)


def parts(n_parts=24):
    return [X[k : 300 + 3 * k] for k in range(n_parts)]


@pytest.mark.parametrize(
    "scorer",
    [
        RMDScorer(),
        KNNScorer(),
        PredictionDepthScorer(
            FrozenEstimator(MLPClassifier((8,), max_iter=20, random_state=0)), n_neighbors=5
        ),
    ],
    ids=lambda scorer: type(scorer).__name__,
)
def test_difficulty(scorer):
    if isinstance(scorer, PredictionDepthScorer):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            scorer.estimator.estimator.fit(X, Y)
    fitted = scorer.fit(X, Y)
    check(fitted.difficulty, parts(12))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [PostHocCalibratedClassifier, SelectiveClassifier])
def test_classifiers(kind):
    model = kind(LogisticRegression(max_iter=1000)).fit(X, Y)
    check(model.predict, parts())


@pytest.mark.slow
def test_layers_of_a_shared_module():
    torch = pytest.importorskip("torch")
    from skcalib.embeddings import LayerEmbedder

    torch.set_num_threads(1)
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(64, 32), torch.nn.Dropout(0.5), torch.nn.ReLU(), torch.nn.Linear(32, 4)
    ).train()
    embedder = LayerEmbedder(module, ["0", "2"]).fit(X)
    check(embedder.transform, parts(60))
    assert all(part.training for part in module.modules())
    assert not any(part._forward_hooks for part in module.modules())
    with collecting():  # the network is not trained
        scorer = PredictionDepthScorer(FrozenEstimator(module), n_neighbors=5).fit(X, Y)
    check(scorer.difficulty, parts(16))
    assert all(part.training for part in module.modules())


def test_placing_layers_in_a_shared_module():
    torch = pytest.importorskip("torch")
    from skcalib.embeddings import LayerEmbedder

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(64, 64)

        def forward(self, x):
            return x + self.linear(x)

    torch.set_num_threads(1)
    module = torch.nn.Sequential(Block(), Block(), torch.nn.Linear(64, 4))
    expected = ["0:sum", "1:sum"]
    with ThreadPoolExecutor(N_THREADS) as pool:
        found = list(
            pool.map(lambda _: LayerEmbedder(module).fit(X).layer_names_, range(3 * N_THREADS))
        )
    assert found == [expected] * len(found)


def test_a_hook_does_not_hear_the_user_run_the_module():
    torch = pytest.importorskip("torch")
    from skcalib.embeddings import LayerEmbedder

    torch.set_num_threads(1)
    module = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.Linear(8, 4))
    embedder = LayerEmbedder(module, ["0"]).fit(X)
    expected = embedder.transform(X)
    other = torch.zeros(7, 64)
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(lambda: [module(other) for _ in range(400)])
        for _ in range(40):
            assert_array_equal(embedder.transform(X), expected)
        running.result()


@pytest.mark.slow
def test_reports():
    rng = np.random.default_rng(0)
    p = rng.random(100)
    y = (rng.random(100) < p**2).astype(int)
    filters, shown = list(warnings.filters), warnings.showwarning

    def report(n):
        page = CalibrationReport.from_predictions(y[:n], p[:n])
        return [page.results_["summary"]["headline"], *page.results_["warnings"]]

    check(report, [60, 70, 80])
    assert warnings.filters == filters
    assert warnings.showwarning is shown


# Threads share the filters of warnings; a forest warns where another thread has emptied them.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`sklearn.utils.parallel.delayed` should be used")
def test_finders():
    features = np.column_stack([X, np.tile(np.arange(4), 100)])

    def find(n):
        with collecting() as doubts:
            found = LabelIssueFinder(n_refits=0).fit(features[:n], Y[:n])
        return [*found.issues_["p_label_correct"].tolist(), *map(hash, doubts)]

    # The checks of scikit-learn change the filters of the process, so that these may differ.
    with warnings.catch_warnings():
        check(find, [150, 170, 190, 210])


@pytest.mark.slow
def test_a_report_hears_no_warnings_of_others():
    rng = np.random.default_rng(0)
    p = rng.random(60)
    y = (rng.random(60) < p).astype(int)
    with ThreadPoolExecutor(2) as pool, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        def others():
            for _ in range(200):
                warnings.warn("of another tenant", UserWarning, stacklevel=1)

        running = pool.submit(others)
        page = CalibrationReport.from_predictions(y, p)
        running.result()
    assert not any("tenant" in text for text in page.results_["warnings"])
    assert sum("tenant" in str(w.message) for w in caught) == 200


def test_warnings_are_collected_in_their_thread_alone():
    with ThreadPoolExecutor(1) as pool, collecting() as notes:
        warn("here")
        with pytest.raises(SkcalibWarning, match="there"):  # an error in tests
            pool.submit(warn, "there").result()
    assert notes == ["here"]


def test_metrics():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), size=400)
    check(lambda part: expected_calibration_error(Y[: len(part)], part), [proba] * 16)
