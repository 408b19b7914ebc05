"""Streams: failures, order, single samples, and what sums in float32 lose."""

import copy

import numpy as np
import pytest
from scipy.stats import spearmanr

from skcalib.difficulty import RMDScorer, _distances, _gaussians
from skcalib.utils import SkcalibWarning


def _data(n_samples=400, n_features=6, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_samples) % n_classes)
    return rng.normal(size=(n_samples, n_features)) + rng.normal(size=(4, n_features))[y], y


@pytest.fixture
def _small_chunks(monkeypatch):
    monkeypatch.setattr(_gaussians, "BLOCK_SIZE", 64)
    monkeypatch.setattr(_gaussians, "BLOCK_ROWS", 16)


class FailingMap(np.ndarray):
    """An array whose last chunk cannot be read."""

    def __getitem__(self, rows):
        if isinstance(rows, slice) and rows.stop is not None and rows.stop >= len(self):
            raise OSError("no such block")
        return np.asarray(self)[rows]


def _state(scorer):
    return [scorer.classes_, *(getattr(scorer._statistics, name) for name in STATISTICS)]


STATISTICS = ["count", "weight", "reference", "sums", "scatter", "input_eps", "work_eps"]
# Functions that an update calls, and how many of the calls succeed.
PLACES = [
    ("_compute_sums", 0), ("_compute_sums", 1), ("_compute_sums", 5), ("_compute_sums", 11),
    ("_compute_class_sums", 3), ("_compute_class_sums", 0),
    ("replace", 1), ("replace", 2), ("replace", 3), ("replace", 4),
]  # fmt: skip


@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize(("name", "successes"), PLACES)
def test_an_update_that_fails_changes_nothing(monkeypatch, name, successes, error):
    X, y = _data()
    new = np.where(y[200:] == 3, 9, y[200:])  # with a class that is new
    scorer = RMDScorer().partial_fit(X[:200], y[:200])
    clean = RMDScorer().partial_fit(X[:200], y[:200]).partial_fit(X[200:], new)
    before = copy.deepcopy(_state(scorer))
    function, calls = getattr(_gaussians, name), []

    def fail(*args, **kwargs):
        calls.append(name)
        if len(calls) > successes:
            raise error("stop")
        return function(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(_gaussians, name, fail)
        with pytest.raises(error, match="stop"):
            scorer.partial_fit(X[200:], new)
    for old, now in zip(before, _state(scorer), strict=True):
        np.testing.assert_array_equal(old, now)
    scorer.partial_fit(X[200:], new)
    np.testing.assert_array_equal(scorer.difficulty(X[200:], new), clean.difficulty(X[200:], new))
    np.testing.assert_array_equal(scorer.class_count_, clean.class_count_)


@pytest.mark.parametrize("name", ["with_references", "with_classes"])
def test_a_merge_that_fails_changes_nothing(monkeypatch, name):
    X, y = _data()
    left, right = RMDScorer().fit(X[:200], y[:200]), RMDScorer().fit(X[200:], y[200:] + 1)
    before = copy.deepcopy(_state(left))

    def fail(*_):
        raise KeyboardInterrupt("stop")

    with monkeypatch.context() as patch:
        patch.setattr(_gaussians.GaussianStatistics, name, fail)
        with pytest.raises(KeyboardInterrupt, match="stop"):
            left.merge(right)
    for old, now in zip(before, _state(left), strict=True):
        np.testing.assert_array_equal(old, now)


@pytest.mark.usefixtures("_small_chunks")
def test_a_memory_map_that_fails_in_the_middle_changes_nothing():
    X, y = _data()
    statistics = RMDScorer().fit(X, y)._statistics
    before = copy.deepcopy(statistics)
    with pytest.raises(OSError, match="no such block"):
        statistics.with_samples(X.view(FailingMap), y)
    for name in STATISTICS:
        np.testing.assert_array_equal(getattr(statistics, name), getattr(before, name))


def test_a_rejected_batch_changes_nothing():
    X, y = _data()
    scorer = RMDScorer().partial_fit(X[:200], y[:200])
    before = copy.deepcopy(_state(scorer))
    with pytest.raises(ValueError, match="contains NaN"):
        scorer.partial_fit(np.where(X > 1, np.nan, X), y)
    for old, now in zip(before, _state(scorer), strict=True):
        np.testing.assert_array_equal(old, now)


@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("row", [0, 250, 399])
@pytest.mark.parametrize("values", [[np.nan], [np.inf], [-np.inf], [np.inf, -np.inf]])
@pytest.mark.parametrize("normalize", [False, True])
def test_a_value_that_is_not_finite_is_found_wherever_it_is(dtype, row, values, normalize):
    X, y = _data()
    X = X.astype(dtype)
    bad = X.copy()
    rows = np.resize(np.flatnonzero(y == y[row]), len(values))  # in one class: they may cancel
    rows[0] = row
    bad[rows, 3] = values
    weight = np.ones(len(X))
    weight[rows] = 0.0
    message = f"Input X contains {'NaN' if np.isnan(values[0]) else 'infinity'}"
    scorer = RMDScorer(normalize=normalize).fit(X, y)
    before = copy.deepcopy(_state(scorer))
    for fit in (scorer.fit, scorer.partial_fit):
        for sample_weight in (None, np.ones(len(X)), weight):
            # scikit-learn adds up the values to find out: inf - inf.
            with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=message):
                fit(bad, y, sample_weight=sample_weight)
    for old, now in zip(before, _state(scorer), strict=True):
        np.testing.assert_array_equal(old, now)


def test_a_sum_that_overflows_is_no_value_that_is_not_finite():
    X, y = _data()
    with pytest.raises(ValueError, match="squares to be finite in its precision"):
        RMDScorer().fit((1e37 * (X + 20)).astype(np.float32), y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "distance", "unit"),
    [
        (50, 1e3, 1.0),
        (500, 1e2, 1.0),
        *(
            pytest.param(20, distance, unit, marks=pytest.mark.long)
            for distance, unit in [(1e2, 1.0), (1e3, 1.0), (1e3, 1e-3)]
        ),
    ],
)
def test_far_samples_may_come_first_in_a_float32_stream(size, distance, unit):
    X, y = _data(20_000)
    X[:20] += distance
    X = (unit * X).astype(np.float32)
    wide = X.astype(np.float64)
    exact = RMDScorer().fit(wide, y).difficulty(wide, y)
    for order in [np.arange(20_000), np.arange(20_000)[::-1]]:
        stream = RMDScorer()
        for rows in np.split(order, 20_000 // size):
            stream.partial_fit(X[rows], y[rows])
        error = np.abs(stream.difficulty(X, y) - exact).max() / exact.std()
        assert error < (2e-4 if distance == 1e2 else 4e-3)


@pytest.mark.slow
@pytest.mark.usefixtures("_small_chunks")
def test_far_samples_may_come_first_in_one_float32_fit():
    X, y = _data(20_000)
    X[:20] += 1e3
    X = X.astype(np.float32)
    wide = X.astype(np.float64)
    exact = RMDScorer().fit(wide, y).difficulty(wide, y)
    error = np.abs(RMDScorer().fit(X, y).difficulty(X, y) - exact).max() / exact.std()
    assert error < 4e-3


def _ill_conditioned(condition):
    rng = np.random.default_rng(0)
    X, y = _data(4000, 20)
    rotation = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    return (X * np.geomspace(1, condition**-0.5, 20) @ rotation).astype(np.float32), y


@pytest.mark.parametrize("condition", [1e4, 1e7, 1e9, 1e12])
def test_float32_of_high_condition_keeps_the_ranking(condition):
    X, y = _ill_conditioned(condition)
    wide = X.astype(np.float64)
    exact = RMDScorer(tol=0.0).fit(wide, y).difficulty(wide, y)
    assert spearmanr(RMDScorer().fit(X, y).difficulty(X, y), exact)[0] > 0.9999


def test_a_stream_says_that_float32_loses_directions():
    X, y = _ill_conditioned(1e9)
    stream = RMDScorer()
    for rows in np.split(np.arange(4000), 4):
        stream.partial_fit(X[rows], y[rows])
    message = r"[1-9] directions of X have too little variance for sums in float32"
    with pytest.warns(SkcalibWarning, match=message) as record:
        stream.difficulty(X, y)
    assert record[0].filename == __file__
    stream.difficulty(X, y)  # says it once
    wide = RMDScorer().partial_fit(X.astype(np.float64), y)
    wide.difficulty(X, y)


@pytest.mark.filterwarnings("ignore:The samples are too few")
def test_few_samples_of_many_features_are_no_loss_of_float32():
    X, y = _data(20, 40)
    X = X.astype(np.float32)
    stream = RMDScorer(relative=False).partial_fit(X, y)
    stream.difficulty(X, y)
    assert stream._distances.form.rank == 16


def test_labels_that_occur_once_are_named_where_they_count():
    X, y = _data()
    names = y.astype(str).astype(object)
    names[[3, 7]] = ["0 ", "x"]
    message = r"single sample each: \['0 ', 'x'\]\. .* difficulty\(X, y\) finds it very easy"
    with pytest.warns(SkcalibWarning, match=message) as record:
        RMDScorer().fit(X, names)
    assert [warning.filename for warning in record] == [__file__]
    # A stream is silent until it is used: the second sample may still come.
    stream = RMDScorer().partial_fit(X, names)
    with pytest.warns(SkcalibWarning, match=message):
        copy.deepcopy(stream).difficulty(X)
    stream.partial_fit(X[:2], ["0 ", "x"]).difficulty(X)


@pytest.mark.parametrize("weight", [0.1, 1.0])
def test_a_single_sample_of_small_weight_is_named(weight):
    X, y = _data()
    y[3] = 7
    weights = np.full(400, weight)
    with pytest.warns(SkcalibWarning, match=r"single sample each: \[7\]"):
        RMDScorer().fit(X, y, sample_weight=weights)
    weights[3] = 0.0
    RMDScorer().fit(X, y, sample_weight=weights)
    weights[3] = 2.0  # as two copies, which are not named either
    RMDScorer().fit(X, y, sample_weight=weights)
    RMDScorer().fit(np.vstack([X, X[3:4]]), np.append(y, 7))


def test_merged_classes_of_one_are_counted():
    X, y = _data()
    y[[3, 300]] = 7
    left, right = RMDScorer().partial_fit(X[:200], y[:200]), RMDScorer()
    right.partial_fit(X[200:], y[200:])
    left.merge(right).difficulty(X)
    assert left.class_count_[-1] == 2


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_merging_a_class_of_total_weight_one(weight):
    # Its mean is no stand-in for the reference of the other side.
    X, y = _data()
    y[:4] = 7
    weights = np.where(y == 7, weight, 1.0)
    left = RMDScorer().partial_fit(X[:1], y[:1], sample_weight=weights[:1])
    right = RMDScorer().partial_fit(X[1:], y[1:], sample_weight=weights[1:])
    whole = RMDScorer().fit(X, y, sample_weight=weights)
    for merged in [copy.deepcopy(left).merge(right), copy.deepcopy(right).merge(left)]:
        np.testing.assert_allclose(merged.means_, whole.means_, atol=1e-12)
        np.testing.assert_allclose(merged.difficulty(X, y), whole.difficulty(X, y), atol=1e-9)


def test_constants_are_kept_between_calls(monkeypatch):
    X, y = _data()
    scorer = RMDScorer().fit(X, y)
    expected = scorer.difficulty(X, y), scorer.difficulty(X), scorer.transform(X)
    monkeypatch.setattr(_distances, "_Polynomial", None)
    found = scorer.difficulty(X, y), scorer.difficulty(X), scorer.transform(X)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize(("dtype", "unit"), [(np.float32, 1e25), (np.float64, 1e200)])
def test_overflow_is_said_when_the_scorer_is_used(dtype, unit):
    X, y = _data()
    X[:, :2] *= unit
    stream = RMDScorer()
    for rows in np.split(np.arange(400), 2):
        stream.partial_fit(X[rows].astype(dtype), y[rows])
    with pytest.raises(ValueError, match="X must be small enough for its squares to be finite"):
        stream.difficulty(X)
