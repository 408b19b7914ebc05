"""What runs on dask arrays, and how close it comes: 20 parts against memory."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skcalib import metrics, posthoc
from skcalib.difficulty import NoveltyDetector, RMDScorer
from skcalib.labels import LabelIssueFinder, find_label_issues
from skcalib.metrics import CalibrationAccumulator
from skcalib.posthoc import PostHocCalibratedClassifier
from skcalib.report import CalibrationReport
from skcalib.selection import MaxEntropySelector, SelectiveClassifier

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

N, K, N_PARTS = 4000, 4, 20
RNG = np.random.default_rng(0)
TRUE = RNG.normal(scale=1.5, size=(N, K))
Y = (RNG.uniform(size=(N, 1)) > softmax(TRUE, axis=1).cumsum(axis=1)[:, :-1]).sum(axis=1)
LOGITS = 2 * TRUE + np.linspace(0.5, -0.5, K)
PROBA = softmax(LOGITS, axis=1)
MODEL = LogisticRegression().fit(LOGITS[::2], Y[::2])
FINDER = LabelIssueFinder("precomputed").fit(PROBA[::8], Y[::8])


# Every accumulator keeps the sums of these.
OF_BINS = ("expected_calibration_error", "maximum_calibration_error", "debiased_calibration_error")


def added_up(name):
    metrics = () if name in OF_BINS else (name,)
    return lambda y, proba, logits: (
        CalibrationAccumulator(metrics=metrics, labels=range(K)).update(y, proba).result(name)
    )


def of_rows(name, given="proba"):
    if given == "logits":
        return lambda y, proba, logits: getattr(metrics, name)(logits)
    return lambda y, proba, logits: getattr(metrics, name)(proba)


def error(name):
    return lambda y, proba, logits: getattr(metrics, name)(y, proba)


def map_(name, **options):
    return lambda y, proba, logits: (
        getattr(posthoc, name)(input="logits", **options).fit(logits, y).predict_proba(logits)
    )


def fit_of(name):
    return lambda y, proba, logits: getattr(posthoc, name)().fit(proba, y)


def served(fitted, method="predict_proba"):
    return lambda y, proba, logits: getattr(fitted, method)(logits)


# What is sums or rows is equal to rounding.
EXACT = 1e-6
# The search in memory ends where a step would save 1e-9 of the log-loss.
SEARCHED = 2e-5
# Confidences in cells of 1 in 2000 of the log-odds.
CELLS = 5e-3
RUNS = {
    **{name: (added_up(name), EXACT) for name in (
        *OF_BINS, "classwise_calibration_error", "smooth_calibration_error",
        "ks_calibration_error", "brier",
    )},
    # As a logarithm: the evidence against this model has 290 digits.
    "e_value": (lambda y, p, z: np.log(added_up("e_value")(y, p, z)), EXACT),
    **{name: (of_rows(name), EXACT) for name in (
        "confidence_score", "predictive_entropy", "probability_margin",
    )},
    **{name: (of_rows(name, "logits"), EXACT) for name in ("max_logit_score", "energy_score")},
    **{name: (map_(name), SEARCHED) for name in (
        "TemperatureScaling", "VectorScaling", "MatrixScaling", "StructuredVectorScaling",
        "StructuredMatrixScaling", "DirichletCalibration",
    )},
    **{name: (map_(name), CELLS) for name in (
        "BetaCalibration", "IsotonicCalibration",
    )},
    "HistogramBinning": (map_("HistogramBinning", strategy="uniform"), EXACT),
    "StackedCalibration.predict_proba": (
        served(posthoc.StackedCalibration(input="logits").fit(LOGITS[:400], Y[:400])), EXACT,
    ),
    "PostHocCalibratedClassifier": (
        lambda y, p, z: PostHocCalibratedClassifier(FrozenEstimator(MODEL), "temperature")
        .fit(z, y).predict_proba(z),
        SEARCHED,
    ),
    "SelectiveClassifier": (
        lambda y, p, z: np.atleast_1d(
            SelectiveClassifier(FrozenEstimator(MODEL), risk=0.3).fit(z, y).coverage_
        ),
        CELLS,
    ),
    "SelectiveClassifier.accept": (
        served(
            SelectiveClassifier(FrozenEstimator(MODEL), risk=0.3).fit(LOGITS, Y), "accept"
        ),
        EXACT,
    ),
    "score_labels": (
        lambda y, p, z: FINDER.score_labels(p, y)["p_label_correct"], EXACT,
    ),
    "LabelIssueFinder": (
        lambda y, p, z: LabelIssueFinder("precomputed").fit(p, y).noise_matrix_, EXACT,
    ),
    "LabelIssueFinder.label_proba_": (
        lambda y, p, z: LabelIssueFinder("precomputed").fit(p, y).label_proba_, EXACT,
    ),
    "RMDScorer": (lambda y, p, z: RMDScorer().fit(z, y).difficulty(z, y), EXACT),
    "NoveltyDetector": (
        served(NoveltyDetector(RMDScorer()).fit(LOGITS[:500], Y[:500]), "score_samples"), EXACT,
    ),
    "MaxEntropySelector": (
        lambda y, p, z: MaxEntropySelector(fraction=0.1).fit(PROBA[:40]).select(p), EXACT,
    ),
}  # fmt: skip
# Not on all chunks: the error says to take a sample.
SAMPLED = {
    **{name: fit_of(name) for name in (
        "StackedCalibration", "EnsembleTemperatureScaling", "GroupwiseCalibration",
    )},
    "PriorShift": lambda y, p, z: posthoc.PriorShift().fit(p),
    '"auto"': lambda y, p, z: PostHocCalibratedClassifier(FrozenEstimator(MODEL)).fit(z, y),
    "find_label_issues": lambda y, p, z: find_label_issues("precomputed", p, y),
    "LabelIssueFinder": lambda y, p, z: LabelIssueFinder().fit(z, y),
    "CalibrationReport": lambda y, p, z: CalibrationReport.from_predictions(y, p),
    **{name: error(name) for name in (
        "reliability_curve", "calibration_error_interval", "calibration_test",
        "risk_coverage_curve", "isotonic_reliability_curve", "smooth_reliability_curve",
    )},
}  # fmt: skip
GUIDE = (Path(__file__).parents[2] / "docs/reference/engines.rst").read_text()


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def parts(array):
    lazy = da.from_array(array, chunks=(N // N_PARTS, *array.shape[1:]))
    assert lazy.numblocks[0] == N_PARTS
    return lazy


@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize("name", RUNS)
def test_twenty_parts_are_what_memory_is(name):
    call, tolerance = RUNS[name]
    found = call(parts(Y), parts(PROBA), parts(LOGITS))
    expected = np.asarray(call(Y, PROBA, LOGITS), dtype=np.float64)
    found = np.asarray(found.compute() if hasattr(found, "compute") else found, np.float64)
    # The mean: a sample at the end of a cell may go to the next.
    assert found.shape == expected.shape
    assert np.nanmean(np.abs(found - expected)) <= tolerance
    if tolerance == EXACT:
        np.testing.assert_allclose(found, expected, rtol=EXACT, atol=EXACT)


# Passes over all scores. The labels are passed over once more by what has to know the classes.
ONE_PASS = [
    *OF_BINS,
    *("classwise_calibration_error", "smooth_calibration_error"),
    *("ks_calibration_error", "brier", "e_value", "SelectiveClassifier"),
]
LAZY = [
    *("confidence_score", "predictive_entropy", "probability_margin", "max_logit_score"),
    *("energy_score", "StackedCalibration.predict_proba", "SelectiveClassifier.accept"),
    *("NoveltyDetector", "score_labels"),
]
ONCE_AND_SERVED = [
    *("BetaCalibration", "IsotonicCalibration", "HistogramBinning", "RMDScorer"),
    "MaxEntropySelector",
]
PASSES = {
    **dict.fromkeys(ONE_PASS, (1, 1)),
    **dict.fromkeys(LAZY, (0, 0)),
    **dict.fromkeys(ONCE_AND_SERVED, (1, 1)),
    **dict.fromkeys(("LabelIssueFinder", "LabelIssueFinder.label_proba_"), (2, 2)),
    **dict.fromkeys(("TemperatureScaling", "PostHocCalibratedClassifier"), (3, 4)),
    **{name: (5, 10) for name, (_, tolerance) in RUNS.items() if tolerance == SEARCHED
       and name not in ("TemperatureScaling", "PostHocCalibratedClassifier")},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize("name", RUNS)
def test_number_of_passes(name):
    read = 0

    def counted(block):
        nonlocal read
        read += 1
        return block

    def noted(array):
        empty = np.empty((0, K), array.dtype)
        return parts(array).map_blocks(counted, dtype=array.dtype, meta=empty)

    found = RUNS[name][0](parts(Y), noted(PROBA), noted(LOGITS))
    low, high = PASSES[name]
    assert low * N_PARTS <= read <= high * N_PARTS
    if hasattr(found, "compute"):
        before = read
        found.compute()
        assert read == before + N_PARTS


def test_labels_are_read_once_before_a_map_of_a_histogram():
    read = 0

    def counted(block):
        nonlocal read
        read += 1
        return block

    labels = parts(Y).map_blocks(counted, dtype=Y.dtype, meta=Y[:0])
    posthoc.IsotonicCalibration(input="logits").fit(parts(LOGITS), labels)
    assert read == 2 * N_PARTS


@pytest.mark.parametrize("name", SAMPLED)
def test_what_takes_no_chunks_says_to_take_a_sample(name):
    with pytest.raises(TypeError, match=r"take a sample|is fitted to a sample"):
        SAMPLED[name](parts(Y), parts(PROBA), parts(LOGITS))


@pytest.mark.parametrize("name", [*RUNS, *SAMPLED])
def test_the_guide_names_it(name):
    assert name.partition(".")[0] in GUIDE
