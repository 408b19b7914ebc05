"""What judges one row at a time is lazy on dask arrays, and equal to memory."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from skcalib import metrics, posthoc
from skcalib.difficulty import NoveltyDetector, RMDScorer
from skcalib.selection import SelectiveClassifier

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(0)
N = 240
Y = RNG.integers(0, 3, N)
NAMES = np.array(["ant", "bee", "cat"])[Y]
X = RNG.normal(size=(N, 4)) + 1.5 * np.eye(3, 4)[Y]
LOGITS = RNG.normal(size=(N, 3)) + 1.5 * np.eye(3)[Y]
PROBA = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
MAPS = [
    name
    for name in posthoc.__all__
    if name not in ("PostHocCalibratedClassifier", "PostHocCalibrator", "GroupwiseCalibration")
]


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def chunks(array, rows=(100, 0, 99, 41)):
    whole = (array.shape[1:],) if array.ndim > 1 else ()
    return da.from_array(array, chunks=(rows, *whole))


def check_lazy(function, array, expected=None):
    """Nothing is computed before it is asked for, and then it is what memory gives."""
    computed = []
    lazy = chunks(array).map_blocks(
        lambda block: computed.append(1) or block, dtype=array.dtype, meta=array[:0]
    )
    found = function(lazy)
    assert isinstance(found, da.Array)
    assert not computed
    expected = function(array) if expected is None else expected
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    values = found.compute()
    assert values.dtype == expected.dtype
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(values, expected, atol=1e-6)
    else:
        np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["confidence_score", "predictive_entropy", "probability_margin"])
def test_confidence_of_every_row(name, dtype):
    check_lazy(getattr(metrics, name), PROBA.astype(dtype))
    check_lazy(getattr(metrics, name), PROBA[:, 0].astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_logits(dtype):
    check_lazy(metrics.max_logit_score, LOGITS.astype(dtype))
    check_lazy(lambda z: metrics.energy_score(z, temperature=2), LOGITS.astype(dtype))


@pytest.mark.parametrize("options", [{}, {"order": np.inf, "exponent": 1}])
@pytest.mark.parametrize("y", [Y, NAMES], ids=["int", "str"])
def test_brier_score_of_every_row(y, options):
    order = np.argsort(y, kind="stable")  # no chunk has all classes
    y, proba = y[order], PROBA[order]

    def brier(labels_given, **more):
        return lambda p: metrics.generalized_brier_score(labels_given, p, **options, **more)

    expected = brier(y)(proba)
    for given in (y, chunks(y)):
        check_lazy(brier(given), proba, expected)
        check_lazy(brier(given, labels=np.unique(y)), proba, expected)
    is_first = (Y == 0).astype(int)
    check_lazy(brier(chunks(is_first)), PROBA[:, 0], brier(is_first)(PROBA[:, 0]))


@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MAPS)
def test_every_map(name, dtype):
    options = {"training_priors": np.full(3, 1 / 3)} if name == "PriorShift" else {}
    scores = (LOGITS if name != "PriorShift" else np.log(PROBA)).astype(dtype)
    calibrator = getattr(posthoc, name)(**options).fit(scores, NAMES)
    for method in ("predict_proba", "transform", "predict"):
        check_lazy(getattr(calibrator, method), scores)
    calibrator.set_params(input="proba").fit(PROBA.astype(dtype), NAMES)
    check_lazy(calibrator.predict_proba, PROBA.astype(dtype))


def test_one_score_for_two_classes():
    calibrator = posthoc.BetaCalibration().fit(LOGITS[:, 0], Y == 0)
    check_lazy(calibrator.predict_proba, LOGITS[:, 0])


@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize(
    "model",
    [
        posthoc.PostHocCalibratedClassifier(GaussianNB(), "temperature"),
        SelectiveClassifier(LogisticRegression(), risk=0.3),
        SelectiveClassifier(GaussianNB(), confidence=RMDScorer(), risk=0.3),
        NoveltyDetector(RMDScorer()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_fitted_models_serve_chunks(model):
    model.fit(X, NAMES)
    methods = (
        "predict", "predict_proba", "decision_function", "accept", "confidence_samples",
        "score_samples",
    )  # fmt: skip
    served = [name for name in methods if hasattr(model, name)]
    assert len(served) >= 2
    for name in served:
        check_lazy(getattr(model, name), X)


@pytest.mark.slow
def test_what_cannot_be_done_is_said_before_it_is_computed():
    calibrator = posthoc.TemperatureScaling().fit(LOGITS, Y)
    with pytest.raises(ValueError, match="X has 2 features"):
        calibrator.predict_proba(chunks(LOGITS)[:, :2])
    with pytest.raises(TypeError, match=r"^X must be a dask array .*, got shape \(240, 3, 1\)"):
        calibrator.predict_proba(chunks(LOGITS)[:, :, None])
    frames = pytest.importorskip("dask.dataframe")
    frame = frames.from_dask_array(da.from_array(LOGITS, chunks=(100, 3)))
    with pytest.raises(TypeError, match=r"to_dask_array\(lengths=True\) makes one"):
        calibrator.predict_proba(frame)
    with pytest.raises(ValueError, match=r"NaN"):
        calibrator.predict_proba(chunks(np.full((240, 3), np.nan))).compute()
