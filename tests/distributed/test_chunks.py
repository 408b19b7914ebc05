"""Dask arrays in any chunks give what arrays in memory give, lazily and without a copy of them."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skcalib.difficulty import RMDScorer
from skcalib.metrics import (
    CalibrationAccumulator,
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    generalized_brier_score,
    maximum_calibration_error,
    reliability_curve,
    smooth_calibration_error,
)
from skcalib.selection import MaxEntropySelector

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(0)
N = 300
Y = RNG.integers(0, 3, N)
X = RNG.normal(size=(N, 5)) + 2 * np.eye(3, 5)[Y] + 7
PROBA = RNG.dirichlet(np.ones(3), N)
WEIGHT = RNG.uniform(size=N) * (np.arange(N) > 120)  # none at all in the first chunks
NAMES = np.array(["ant", "bee", "cat"])[Y]
CHUNKS = [(50, 2), ((1, 0, 199, 100), 5), (N, 5)]


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def _chunked(array, rows=70):
    return da.from_array(array, chunks=(rows, *array.shape[1:]))


def _fail(block):
    raise AssertionError("computed")


def _not_computed(array):
    return _chunked(array).map_blocks(_fail, dtype=array.dtype, meta=array[:0])


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("y", [Y, _chunked(Y), _chunked(NAMES, 31)], ids=["memory", "int", "str"])
@pytest.mark.parametrize("options", [{}, {"normalize": True}, {"relative": False}], ids=str)
def test_fit_is_that_of_the_whole(chunks, y, options):
    lazy = da.from_array(X, chunks=chunks)
    expected = RMDScorer(**options).fit(X, np.asarray(y), sample_weight=WEIGHT)
    for weight in (WEIGHT, _chunked(WEIGHT)):
        scorer = RMDScorer(**options).fit(lazy, y, sample_weight=weight)
        np.testing.assert_array_equal(scorer.classes_, expected.classes_)
        np.testing.assert_allclose(scorer.covariance_, expected.covariance_, atol=1e-12)
        np.testing.assert_allclose(scorer.transform(X), expected.transform(X), atol=1e-9)


@pytest.mark.parametrize("chunks", CHUNKS)
def test_scores_are_lazy_and_those_of_the_whole(chunks):
    scorer = RMDScorer().fit(X, Y)
    lazy = da.from_array(X, chunks=chunks)
    for scores, expected in (
        (scorer.difficulty(lazy, Y), scorer.difficulty(X, Y)),
        (scorer.difficulty(lazy, _chunked(Y)), scorer.difficulty(X, Y)),
        (scorer.difficulty(lazy), scorer.difficulty(X)),
        (scorer.score_samples(lazy), scorer.score_samples(X)),
        (scorer.transform(lazy), scorer.transform(X)),
        (scorer.predict(lazy), scorer.predict(X)),
    ):
        assert isinstance(scores, da.Array)
        assert (scores.shape, scores.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(scores.compute(), expected, rtol=1e-9, atol=1e-9)


def test_scores_keep_the_state_and_the_precision_of_their_call():
    scorer = RMDScorer().fit(X, Y)
    single = X.astype(np.float32)
    expected = scorer.transform(single)
    lazy = scorer.transform(_chunked(single))
    scorer.partial_fit(X + 5, Y)
    assert lazy.dtype == np.float32
    np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-4, atol=1e-4)


def test_partial_fit_goes_on_from_memory_to_chunks_and_back():
    expected = RMDScorer().fit(X, Y)
    scorer = RMDScorer().partial_fit(_chunked(X[:100], 30), Y[:100], classes=[0, 1, 2, 9])
    scorer.partial_fit(X[100:200], Y[100:200]).partial_fit(_chunked(X[200:], 9), Y[200:])
    np.testing.assert_allclose(scorer.covariance_, expected.covariance_, atol=1e-12)
    np.testing.assert_allclose(scorer.difficulty(X, Y), expected.difficulty(X, Y), atol=1e-9)
    assert scorer.classes_.tolist() == [0, 1, 2, 9]
    with pytest.raises(ValueError, match="y must hold labels among"):
        scorer.partial_fit(_chunked(X), _chunked(Y + 1))
    np.testing.assert_allclose(scorer.covariance_, expected.covariance_, atol=1e-12)


def test_float32_sums_that_lose_directions_are_made_again():
    narrow = np.column_stack([X, X[:, 0] + 1e-5 * RNG.normal(size=N)]).astype(np.float32)
    expected, scorer = RMDScorer().fit(narrow, Y), RMDScorer().fit(_chunked(narrow), Y)
    assert scorer._statistics.work_eps == expected._statistics.work_eps == np.finfo(float).eps
    np.testing.assert_allclose(scorer.covariance_, expected.covariance_, rtol=1e-9)
    wide = narrow.astype(float)
    np.testing.assert_allclose(scorer.difficulty(wide), expected.difficulty(wide), atol=1e-4)


def test_chunks_of_unknown_size():
    lazy, label = _chunked(X), _chunked(Y)
    some = lazy[:, 0] > np.median(X[:, 0])
    chosen = X[:, 0] > np.median(X[:, 0])
    scorer = RMDScorer().fit(lazy[some], label[some])
    expected = RMDScorer().fit(X[chosen], Y[chosen])
    np.testing.assert_allclose(scorer.covariance_, expected.covariance_, atol=1e-12)
    assert len(scorer.difficulty(lazy[some], label[some]).compute()) == chosen.sum()
    nothing = lazy[lazy[:, 0] > 1e9]
    assert scorer.transform(nothing).compute().shape == (0, 3)
    with pytest.raises(ValueError, match=r"^y must have the samples of X, in chunks of known"):
        scorer.fit(lazy[some], Y)
    with pytest.raises(ValueError, match=r"^X must have chunks of known sizes"):
        MaxEntropySelector().fit(PROBA).select(_chunked(PROBA)[some])


@pytest.mark.parametrize(
    ("y", "proba"),
    [(Y, PROBA), (NAMES, PROBA), (Y > 0, PROBA[:, 0]), (np.ones(N, int), PROBA[:, 0])],
    ids=["int", "str", "binary", "one label"],
)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
def test_errors_are_those_of_the_whole(y, proba, weight):
    lazy = da.from_array(proba, chunks=60)
    for label in (y, _chunked(y, 40)):
        sums = CalibrationAccumulator(7, norm="l2").update(label, lazy, sample_weight=weight)
        for metric, options in (
            (expected_calibration_error, {"norm": "l2"}),
            (maximum_calibration_error, {}),
            (debiased_calibration_error, {}),
        ):
            expected = metric(y, proba, n_bins=7, sample_weight=weight, **options)
            assert sums.result(metric.__name__) == pytest.approx(expected, rel=1e-12)
        curve = reliability_curve(y, proba, n_bins=7, sample_weight=weight)
        for part, other in zip(sums.curve(), curve):
            np.testing.assert_allclose(part, other, rtol=1e-12)


def test_labels_of_all_chunks_name_the_columns():
    # By themselves, chunks with labels 1 and 2 alone would take them for columns 1 and 2.
    y = np.sort(Y) + 1
    value = CalibrationAccumulator().update(_chunked(y), _chunked(PROBA)).result()
    assert value == pytest.approx(expected_calibration_error(y, PROBA), rel=1e-12)


@pytest.mark.parametrize("rows", [10, 5, 3])
@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [([-1, 1], None), ([1, 2], 2), ([1, 2], 1), (["n", "y"], "y"), (["a", "a"], "a"), ([3, 3], 5)],
)
def test_one_class_of_two_may_be_all_of_a_chunk(labels, pos_label, rows):
    y, p = np.repeat(labels, 5), np.linspace(0.1, 0.8, 10)
    chunks = _chunked(y, rows), _chunked(p, rows)
    error = CalibrationAccumulator(pos_label=pos_label).update(*chunks).result()
    assert error == pytest.approx(expected_calibration_error(y, p, pos_label=pos_label), rel=1e-12)
    scores = generalized_brier_score(*chunks, pos_label=pos_label)
    expected = generalized_brier_score(y, p, pos_label=pos_label)
    np.testing.assert_allclose(scores, expected, rtol=1e-12)


def test_accumulator_gives_the_other_errors_of_chunks():
    metrics = (classwise_calibration_error, smooth_calibration_error)
    names = [metric.__name__ for metric in metrics]
    accumulator = CalibrationAccumulator(metrics=[*names, "brier"])
    accumulator.update(_chunked(Y[:200]), _chunked(PROBA[:200])).update(Y[200:], PROBA[200:])
    for metric in (*metrics, debiased_calibration_error):
        assert accumulator.result(metric.__name__) == pytest.approx(metric(Y, PROBA), abs=1e-9)
    score = generalized_brier_score(Y, PROBA).mean()
    assert accumulator.result("brier") == pytest.approx(score)


@pytest.mark.parametrize("criterion", ["entropy", "margin", "least_confidence", "random"])
@pytest.mark.parametrize("sampling", ["top", "soft"])
@pytest.mark.parametrize("estimator", [None, LogisticRegression()], ids=["proba", "model"])
def test_select_takes_the_same_samples(criterion, sampling, estimator):
    proba = PROBA.round(1)  # with ties
    proba /= proba.sum(axis=1, keepdims=True)
    selector = MaxEntropySelector(
        estimator, fraction=0.2, criterion=criterion, sampling=sampling, random_state=0
    ).fit(proba[:50], Y[:50])
    expected = selector.select(proba, np.arange(N))
    chosen = selector.select(da.from_array(proba, chunks=(70, 2)), np.arange(N))
    for part, other in zip(chosen, expected):
        assert isinstance(part, da.Array)
        np.testing.assert_array_equal(part.compute(), other)
    only = selector.select(_chunked(proba))
    np.testing.assert_array_equal(only.compute(), expected[0])


# dask.dataframe calls pandas in a way that pandas 3 announces to end.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame:DeprecationWarning")
@pytest.mark.parametrize("target", ["zarr", "parquet"])
def test_zarr_in_and_zarr_or_parquet_out(tmp_path, target):
    zarr = pytest.importorskip("zarr")
    source = zarr.create_array(tmp_path / "X", shape=X.shape, chunks=(80, 5), dtype=X.dtype)
    source[:] = X
    lazy = da.from_zarr(str(tmp_path / "X"))
    scorer = RMDScorer().fit(lazy, Y)
    difficulty = scorer.difficulty(lazy, Y)
    if target == "zarr":
        difficulty.to_zarr(str(tmp_path / "difficulty"))
        written = zarr.open(tmp_path / "difficulty")[:]
    else:
        frames = pytest.importorskip("dask.dataframe")
        pytest.importorskip("pyarrow")
        frames.from_dask_array(difficulty, columns="difficulty").to_frame().to_parquet(tmp_path)
        written = frames.read_parquet(tmp_path)["difficulty"].compute()
    np.testing.assert_allclose(written, RMDScorer().fit(X, Y).difficulty(X, Y), atol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RMDScorer().fit(_not_computed(X)[:, 0], Y), r"^X cannot be used: Expected 2D"),
        (lambda: RMDScorer().fit(_not_computed(X), Y[:7]), r"^y must have the samples of X"),
        (lambda: RMDScorer().fit(X, _not_computed(Y)), r"^y must be in memory here"),
        (lambda: RMDScorer().fit(X, Y).difficulty(_not_computed(X)[:, 1:]), r"^X has 4 features"),
        (lambda: RMDScorer().fit_difficulty(_not_computed(X), Y), r"^X must be in memory here"),
        (lambda: RMDScorer().fit(_chunked(X), Y, sample_weight=0 * WEIGHT), r"^X must have sampl"),
        (
            lambda: expected_calibration_error(Y, _not_computed(PROBA)),
            r"^y_proba must be in memory here, .*CalibrationAccumulator\(\).update\(y_true, ",
        ),
        (lambda: expected_calibration_error(_not_computed(Y), PROBA), r"^y_true must be in mem"),
        (
            lambda: CalibrationAccumulator().update(Y, _chunked(2 * PROBA)),
            r"must hold probabilities in \[0, 1\]",
        ),
        (lambda: classwise_calibration_error(Y, _not_computed(PROBA)), r"^y_proba must be in mem"),
        (lambda: MaxEntropySelector().fit(_not_computed(PROBA)), r"^X must be in memory here"),
    ],
)
def test_what_does_not_fit_is_named_before_it_is_computed(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.slow
def test_dask_is_not_imported_for_arrays_in_memory():
    code = (
        "import sys, numpy as np; from skcalib.difficulty import RMDScorer;"
        "from skcalib.metrics import expected_calibration_error;"
        "X = np.eye(4); y = [0, 0, 1, 1]; RMDScorer().fit(X, y).difficulty(X);"
        "expected_calibration_error([0, 1], [[1, 0], [0, 1]]); print('dask' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "False"
