"""Labels judged in chunks are those judged in memory: noise rate, flips, and every row."""

import pickle

import numpy as np
import pytest
from scipy.special import softmax

from skcalib.datasets import flip_labels
from skcalib.labels import LabelIssueFinder, find_label_issues
from skcalib.report import CalibrationReport, LabelReviewPage
from skcalib.utils import SkcalibWarning

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
N = 900


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def judged(k, *, n=N, sharp=3.0, fraction=0.1, seed=0):
    """Probabilities of true classes, of which class 0 is rare, and labels with flips."""
    rng = np.random.default_rng(seed)
    true = np.minimum(rng.integers(0, k, n), rng.integers(0, 2 * k, n))
    proba = softmax(rng.normal(size=(n, k)) + sharp * np.eye(k)[true], axis=1)
    return proba, flip_labels(true, fraction=fraction, random_state=seed)[0]


def chunks(array):
    if array is None:
        return None
    n = len(array)
    return da.from_array(array, chunks=((n // 2, 0, 1, n - n // 2 - 1), *array.shape[1:]))


def with_zeros(proba):
    proba = np.where(proba < 0.02, 0, proba)
    proba[:9] = np.eye(proba.shape[1])[0]
    return proba / proba.sum(axis=1, keepdims=True)


NAMES = np.array(["a", "bcd", "efghij"])
P, Y = judged(3)
RNG = np.random.default_rng(0)
WEIGHT = RNG.integers(0, 4, N).astype(float)
CASES = {
    "two": (*judged(2), {}, {}),
    "three": (P, Y, {}, {}),
    "many": (*judged(30, sharp=5.0), {}, {}),
    "zeros": (with_zeros(P), Y, {}, {}),
    "texts": (P, NAMES[Y], {}, {}),
    "objects": (P, NAMES[Y].astype(object), {}, {}),
    "whether": ((P / P.sum(axis=1, keepdims=True))[:, :2] / P[:, :2].sum(axis=1, keepdims=True),
                Y % 2 == 1, {}, {}),
    "absent": (P[Y < 2], Y[Y < 2], {}, {}),
    "weights": (P, Y, {"sample_weight": WEIGHT}, {}),
    "verified": (P, Y, {"verified": RNG.random(N) < 0.2}, {}),
    "one pair": (P, np.where((Y == 0) & (RNG.random(N) < 0.4), 1, Y), {}, {}),
    "random": (P, Y, {}, {"noise": "random", "threshold": 0.2}),
    "single": (P.astype(np.float32), Y.astype(np.int8), {}, {}),
}  # fmt: skip
SUMS = "noise_rate_", "noise_rate_interval_", "noise_matrix_", "class_noise_rate_"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize("largest", [10**6, 200])  # how many samples the search looks at
@pytest.mark.parametrize("name", CASES)
def test_chunks_are_judged_as_in_memory(name, largest, monkeypatch):
    for constant in ("SOME_SAMPLES", "BLOCK_ELEMENTS"):
        monkeypatch.setattr(f"skcalib.labels._noise_model.{constant}", largest)
    proba, y, of_rows, options = CASES[name]
    expected = LabelIssueFinder("precomputed", **options).fit(proba, y, **of_rows)
    lazy = {key: chunks(values) for key, values in of_rows.items()}
    finder = LabelIssueFinder("precomputed", **options).fit(chunks(proba), chunks(y), **lazy)
    # Logarithms of single precision differ in the seventh digit.
    close = {"rtol": 1e-6, "atol": 1e-6}
    for attribute in SUMS:
        found = getattr(finder, attribute)
        np.testing.assert_allclose(found, getattr(expected, attribute), **close)
    np.testing.assert_array_equal(finder.classes_, expected.classes_)
    assert (finder.caveats_, finder.base_models_) == (expected.caveats_, expected.base_models_)
    issues, label_proba = dask.compute(finder.issues_, finder.label_proba_)
    np.testing.assert_allclose(label_proba, expected.label_proba_, **close)
    assert finder.label_proba_.dtype == label_proba.dtype == expected.label_proba_.dtype
    assert finder.issues_.dtype == issues.dtype
    for column in ("label", "suggested_label", "is_issue"):
        np.testing.assert_array_equal(issues[column], expected.issues_[column])
    for column in ("p_label_correct", "margin", "difficulty"):
        np.testing.assert_allclose(issues[column], expected.issues_[column], **close)
    assert np.isnan(issues["novelty"]).all()


@pytest.mark.slow
def test_labels_in_memory_and_new_ones():
    finder = LabelIssueFinder("precomputed").fit(chunks(P), NAMES[Y])
    assert len(pickle.dumps(finder._to_send())) < 5000  # what goes to every process
    issues = finder.issues_.compute()
    np.testing.assert_array_equal(finder.score_labels(P, NAMES[Y])["label"], issues["label"])
    lazy = finder.score_labels(chunks(P), NAMES[Y]).compute()
    np.testing.assert_allclose(lazy["p_label_correct"], issues["p_label_correct"], atol=1e-12)
    assert finder.fit(P, NAMES[Y]).draw_samples_to_check(5).shape == (5,)  # as if nothing had been


@pytest.mark.slow
def test_no_text_is_cut():
    finder = LabelIssueFinder("precomputed").fit(P, NAMES[Y].astype(object))
    issues = finder.score_labels(chunks(P), chunks(NAMES[Y].astype(object))).compute()
    np.testing.assert_array_equal(issues["label"], NAMES[Y])
    np.testing.assert_array_equal(issues["suggested_label"], finder.issues_["suggested_label"])


@pytest.mark.slow
def test_a_mask_leaves_chunks_of_unknown_sizes():
    mask = da.from_array(P[:, 0] > 0.2, chunks=100)
    X, y = (da.from_array(a, chunks=(100, *a.shape[1:]))[mask] for a in (P, Y))
    finder = LabelIssueFinder("precomputed").fit(X, y)
    expected = LabelIssueFinder("precomputed").fit(P[P[:, 0] > 0.2], Y[P[:, 0] > 0.2])
    assert finder.noise_rate_ == pytest.approx(expected.noise_rate_, abs=1e-12)
    assert len(finder.issues_.compute()) == len(expected.issues_)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The probabilities hardly predict")
def test_what_is_wrong_is_said():
    finder = LabelIssueFinder("precomputed")
    with pytest.raises(ValueError, match="groups must be None"):
        finder.fit(chunks(P), Y, groups=Y)
    with pytest.raises(TypeError, match=r"votes must be None.* take a sample"):
        finder.fit(chunks(P), votes=Y[:, None])
    with pytest.raises(TypeError, match=r"X must be in memory.*take a sample.*score_labels"):
        LabelIssueFinder().fit(chunks(P), Y)
    with pytest.raises(TypeError, match="X must be in memory"):
        finder.fit({"a": chunks(P)}, Y)
    with pytest.raises(TypeError, match="X must be in memory"):
        find_label_issues("precomputed", chunks(P), Y)
    with pytest.raises(ValueError, match=r"X must have shape \(n_samples, n_classes\)"):
        finder.fit(chunks(P[:, 0]), Y)
    with pytest.raises(ValueError, match="y must hold at least two classes"):
        finder.fit(chunks(P), np.zeros(N, int))
    with pytest.raises(ValueError, match="sample_weight must not be zero everywhere"):
        finder.fit(chunks(P), Y, np.zeros(N))
    with pytest.raises(ValueError, match=r"sample_weight must be finite and not negative, got -1"):
        finder.fit(chunks(P), Y, -np.ones(N))
    with pytest.raises(ValueError, match="verified must be boolean"):
        finder.fit(chunks(P), Y, verified=np.ones(N))
    with pytest.raises(ValueError, match="y must have the samples of X"):
        finder.fit(chunks(P), Y[1:])
    with pytest.raises(ValueError, match=r"X must.*sum to 1"):
        finder.fit(chunks(np.where(np.arange(N)[:, None] == 700, 0.9, P)), Y)
    with pytest.raises(ValueError, match="X must have one column for each class in y"):
        finder.fit(chunks(P), np.array(["a", "b"])[Y % 2])
    assert not hasattr(finder, "classes_")
    with pytest.warns(SkcalibWarning, match="columns of X seem to be in another order"):
        finder.fit(chunks(P[:, [1, 2, 0]]), Y)
    with pytest.warns(SkcalibWarning, match="multiply them by"):
        finder.fit(chunks(P), Y, np.full(N, 1 / N))


@pytest.mark.slow
def test_checks_need_memory():
    finder = LabelIssueFinder("precomputed").fit(chunks(P), Y)
    assert finder.n_checks_ == 0
    assert not finder.is_trustworthy_
    for method, *arguments in (
        ("draw_samples_to_check",),
        ("update_with_checks", [1, 2], [0, 1]),
        ("noise_rate_by", Y),
        ("n_more_checks",),
    ):
        with pytest.raises(
            TypeError, match=rf"^{method} needs .* sample, .* score_labels\(X, y\)"
        ):
            getattr(finder, method)(*arguments)
    with pytest.raises(TypeError, match="in memory"):
        LabelReviewPage.from_finder(finder, P)
    with pytest.raises(TypeError, match="in memory"):
        CalibrationReport.from_predictions(Y, P, finder=finder)
