"""Every estimator, metric and the report under settings of numpy, scikit-learn and Python.

A job returns numbers; a row of the matrix is a job under one setting, and must return the same.
"""

import contextlib
import hashlib
import inspect
import json
import locale
import multiprocessing
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib import difficulty, labels, metrics, posthoc, selection
from skcalib.report import CalibrationReport
from skcalib.utils import SkcalibWarning

pytestmark = pytest.mark.slow

N, K = 120, 3
RNG = np.random.default_rng(0)
Y = np.arange(N) % K
X = RNG.normal(size=(N, 4)) + 0.8 * Y[:, None]
Z = RNG.normal(size=(N, K)) + 2 * np.eye(K)[Y]


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


P = softmax(Z)
PROBABILITIES = {
    "plain": P,
    "subnormal class": softmax(Z - [0, 0, 735.0]),
    "one-hot": np.eye(K)[P.argmax(axis=1)],
}
WEIGHT = RNG.random(N) + 0.1
OF_TWO = {"net_benefit", "decision_curve"}  # two classes alone
OTHERS = {"prediction_powered_interval", "multilabel_calibration_error"}


def as_numbers(value):
    """Return all numbers of a result."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, np.ndarray) and value.dtype.names:
        value = [value[name] for name in value.dtype.names]
    if isinstance(value, list | tuple):
        return np.concatenate([as_numbers(part) for part in value]) if value else np.zeros(0)
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        text = "\n".join(map(str, array.ravel().tolist()))
        return np.array([int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)], dtype=float)
    return array.astype(float).ravel()


def metric_job(name, kind):
    function, proba, truth = getattr(metrics, name), PROBABILITIES[kind], Y
    if name in OF_TWO:
        proba, truth = proba[:, 1], Y == 1
    parameters = inspect.signature(function).parameters
    options = {"n_resamples": 9, "random_state": 0}
    options = {key: value for key, value in options.items() if key in parameters}
    if name == "groupwise_calibration_error":
        options["by"] = np.arange(N) % 2
    if name == "net_benefit":
        options["threshold"] = 0.3
    if name == "expected_cost":
        options |= {"costs": 1 - np.eye(K)}
    if "sample_weight" in parameters and kind != "plain":
        options["sample_weight"] = WEIGHT
    return lambda: function(truth, proba, **options)


def calibrator_job(name, kind):
    calibrator = getattr(posthoc, name)
    proba = PROBABILITIES[kind]
    return lambda: calibrator(input="proba").fit(proba, Y).predict_proba(proba)


ESTIMATORS = {
    "PostHocCalibratedClassifier": lambda: posthoc.PostHocCalibratedClassifier(GaussianNB(), cv=2),
    "of a Pipeline": lambda: posthoc.PostHocCalibratedClassifier(
        make_pipeline(StandardScaler(), GaussianNB()), posthoc.TemperatureScaling(), cv=2
    ),
    "stacked": lambda: posthoc.PostHocCalibratedClassifier(
        GaussianNB(), posthoc.VectorScaling(), cv=2, ensemble=True
    ),
    "SelectiveClassifier": lambda: selection.SelectiveClassifier(GaussianNB(), risk=0.4, cv=2),
    "SubsetClassifier": lambda: selection.SubsetClassifier(
        GaussianNB(), selection.MaxEntropySelector(GaussianNB(), fraction=0.6)
    ),
    "DifficultyAwareClassifier": lambda: difficulty.DifficultyAwareClassifier(
        LogisticRegression(), fit_param="sample_weight"
    ),
    "LabelIssueFinder": lambda: labels.LabelIssueFinder(GaussianNB(), cv=2),
    "LabelCleaningClassifier": lambda: labels.LabelCleaningClassifier(
        GaussianNB(), labels.LabelIssueFinder(GaussianNB(), cv=2)
    ),
    "RMDScorer": lambda: difficulty.RMDScorer(),
    "KNNScorer": lambda: difficulty.KNNScorer(),
    "KMeansPrototypeScorer": lambda: difficulty.KMeansPrototypeScorer(4, random_state=0),
    "NoveltyDetector": lambda: difficulty.NoveltyDetector(difficulty.RMDScorer()),
    "LossScorer": lambda: difficulty.LossScorer(GaussianNB(), cv=2),
    "DifficultySelector": lambda: selection.DifficultySelector(
        difficulty.RMDScorer(), fraction=0.5
    ),
    "GridSearchCV": lambda: GridSearchCV(
        posthoc.PostHocCalibratedClassifier(GaussianNB(), cv=2),
        {"cv": [2, 3]},
        cv=2,
        scoring=metrics.get_scorer("expected_calibration_error"),
    ),
}
METHODS = ("predict", "predict_proba", "score_samples", "predict_with_rejection")


def estimator_job(name, features=X, truth=Y):
    def job():
        fitted = ESTIMATORS[name]().fit(features, truth)
        found = [
            getattr(fitted, method)(features) for method in METHODS if hasattr(fitted, method)
        ]
        if isinstance(fitted, labels.LabelIssueFinder):
            found.append(fitted.label_proba_)
        return found or fitted.transform(features)

    return job


def monitor_job(kind):
    def job():
        monitor = metrics.CalibrationMonitor().update(Y, PROBABILITIES[kind])
        sums = metrics.CalibrationAccumulator(metrics=["e_value", "log_loss"])
        sums.update(Y, PROBABILITIES[kind])
        copy = metrics.CalibrationMonitor.from_json(monitor.to_json())
        return [copy.evidence(), sums.result(), sums.result("log_loss"), sums.evidence()]

    return job


def report_job():
    report = CalibrationReport.from_predictions(Y, P)
    assert "</html>" in report.to_html()
    return [report.results_["overview"]["accuracy"]["value"], report.to_markdown()]


METRICS = [
    name
    for name in metrics.__all__
    if inspect.isfunction(function := getattr(metrics, name))
    and list(inspect.signature(function).parameters)[:2] == ["y_true", "y_proba"]
    and name not in OTHERS
]
CALIBRATORS = [
    *("TemperatureScaling", "VectorScaling", "MatrixScaling", "DirichletCalibration"),
    *("StructuredMatrixScaling", "StructuredVectorScaling", "EnsembleTemperatureScaling"),
    *("BetaCalibration", "IsotonicCalibration", "HistogramBinning"),
]
JOBS = {f"{name}, {kind}": metric_job(name, kind) for name in METRICS for kind in PROBABILITIES}
JOBS |= {
    f"{name}, {kind}": calibrator_job(name, kind) for name in CALIBRATORS for kind in PROBABILITIES
}
JOBS |= {f"monitor, {kind}": monitor_job(kind) for kind in PROBABILITIES}
JOBS |= {name: estimator_job(name) for name in ESTIMATORS}
JOBS["CalibrationReport"] = report_job


@cache
def expected(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return as_numbers(JOBS[name]())


@contextlib.contextmanager
def strict_numpy():
    """Let numpy raise for everything, as a user who looks for a fault does."""
    with np.errstate(all="raise"):
        yield


@contextlib.contextmanager
def warnings_as_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SkcalibWarning)
        yield


SETTINGS = {
    "numpy raises": strict_numpy,
    "warnings are errors": warnings_as_errors,
    "pandas": lambda: sklearn.config_context(transform_output="pandas"),
    "polars": lambda: sklearn.config_context(transform_output="polars"),
    "routing": lambda: sklearn.config_context(enable_metadata_routing=True),
    "assume_finite": lambda: sklearn.config_context(assume_finite=True),
    "no validation": lambda: sklearn.config_context(skip_parameter_validation=True),
}
# What settings of scikit-learn cannot reach is run under those of numpy and Python alone.
ROWS = [
    (name, setting)
    for name in JOBS
    for setting in SETTINGS
    if setting in ("numpy raises", "warnings are errors")
    or name in ESTIMATORS
    or (setting == "assume_finite" and name.endswith(", plain"))
    or (setting == "pandas" and name == "CalibrationReport")
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "setting"), [pytest.param(*row, id=" under ".join(row)) for row in ROWS]
)
def test_a_setting_changes_nothing(name, setting):
    if setting in ("pandas", "polars"):
        pytest.importorskip(setting)
    wanted = expected(name)
    with SETTINGS[setting]():
        found = JOBS[name]()
    np.testing.assert_allclose(as_numbers(found), wanted, rtol=1e-9, atol=1e-12)


def masked(values):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(values, columns=list("abcd")).astype("Float64")


def read_only(values):
    copied = values.copy()
    copied.setflags(write=False)
    return copied


TYPES = {
    "read-only": read_only,
    "Fortran order": np.asfortranarray,
    "strided": lambda values: np.repeat(values, 2, axis=1)[:, ::2],
    "big-endian": lambda values: values.astype(">f8"),
    "nullable": masked,
    "arrow": lambda values: masked(values).astype("double[pyarrow]"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_type_of_features_changes_nothing(name, kind):
    if kind == "arrow":
        pytest.importorskip("pyarrow")
    features = TYPES[kind](X)
    found = estimator_job(name, features, read_only(Y))()
    np.testing.assert_allclose(as_numbers(found), expected(name), rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    ["PostHocCalibratedClassifier", "SelectiveClassifier", "LabelIssueFinder", "SubsetClassifier"],
)
def test_categories_and_sparse_rows(name):
    pd = pytest.importorskip("pandas")
    names = np.array(["ant", "bee", "cat"])
    text = pd.Series(pd.Categorical(names[Y], categories=[*names[::-1], "dog"]))
    estimator = ESTIMATORS[name]()
    wanted = estimator.fit(X, names[Y])
    method = "predict_proba" if hasattr(wanted, "predict_proba") else "score_samples"
    if name == "LabelIssueFinder":
        found = ESTIMATORS[name]().fit(X, text).label_proba_
        np.testing.assert_allclose(found, wanted.label_proba_)
        return
    found = getattr(ESTIMATORS[name]().fit(X, text), method)(X)
    np.testing.assert_allclose(found, getattr(wanted, method)(X))
    if name != "SubsetClassifier":
        linear = {"estimator": LogisticRegression()}
        dense = ESTIMATORS[name]().set_params(**linear).fit(X, Y)
        sparse = ESTIMATORS[name]().set_params(**linear).fit(csr_array(X), Y)
        assert np.abs(dense.predict_proba(X) - sparse.predict_proba(csr_array(X))).max() < 1e-3


@pytest.mark.parametrize("dtype", ["float16", "float32", "longdouble", "bfloat16"])
@pytest.mark.parametrize("metric", ["expected_calibration_error", "score_decomposition"])
def test_short_and_long_floats(metric, dtype):
    function = getattr(metrics, metric)
    if dtype == "bfloat16":
        torch = pytest.importorskip("torch")
        proba = torch.tensor([[0.25, 0.75], [0.5, 0.5], [0.875, 0.125]]).to(torch.bfloat16)
        exact = proba.to(torch.float64).numpy()
    else:
        proba = np.array([[0.25, 0.75], [0.5, 0.5], [0.875, 0.125]], dtype=dtype)
        exact = proba.astype(float)
    np.testing.assert_allclose(
        as_numbers(function([1, 0, 1], proba)), as_numbers(function([1, 0, 1], exact)), rtol=1e-3
    )


def test_huge_values_are_refused_or_give_probabilities():
    for scale in (1e30, 1e150):
        with pytest.raises(ValueError, match=r"^X must hold logits of at most"):
            posthoc.TemperatureScaling().fit(Z * scale, Y)
    for scale in (1e5, 1e10):
        fitted = posthoc.TemperatureScaling().fit(Z * scale, Y)
        proba = fitted.predict_proba(Z * scale)
        assert np.isfinite(proba).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1)


QUICK = [
    *("expected_calibration_error, plain", "score_decomposition, one-hot", "monitor, one-hot"),
    *("BetaCalibration, plain", "SelectiveClassifier", "LabelIssueFinder", "RMDScorer"),
]


def results():
    """Return the results of some jobs as text."""
    warnings.simplefilter("ignore")
    return {name: as_numbers(JOBS[name]()).round(9).tolist() for name in QUICK}


@pytest.mark.filterwarnings("ignore")
def test_eight_threads():
    with ThreadPoolExecutor(8) as pool:
        found = [(name, pool.submit(JOBS[name])) for name in QUICK for _ in range(3)]
    for name, done in found:
        np.testing.assert_allclose(as_numbers(done.result()), expected(name), rtol=1e-9)


SCRIPT = """
import json, locale, sys
for name in ("de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "C.UTF-8"):
    try:
        locale.setlocale(locale.LC_ALL, name)
        break
    except locale.Error:
        pass
from tests.test_settings import of_process
print(json.dumps(of_process(sys.argv[1])))
"""


def of_process(method):
    """Return the results of a process that this one starts."""
    with multiprocessing.get_context(method).Pool(1) as pool:
        return pool.apply(results)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_optimized_with_another_hash_locale_and_start_of_processes(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    seed = {"fork": "2", "spawn": "3"}[method]
    run = subprocess.run(
        [sys.executable, "-O", "-c", SCRIPT, method],
        env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        check=True,
    )
    for name, values in json.loads(run.stdout.splitlines()[-1]).items():
        np.testing.assert_allclose(values, expected(name), rtol=1e-7, atol=1e-8)


def test_numbers_of_a_page_have_points_in_every_locale():
    before = locale.setlocale(locale.LC_NUMERIC)
    with contextlib.suppress(locale.Error):
        locale.setlocale(locale.LC_NUMERIC, "de_DE.UTF-8")
    try:
        state = metrics.CalibrationMonitor().update(Y, P).to_json()
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)
    assert metrics.CalibrationMonitor.from_json(state).to_json() == state
