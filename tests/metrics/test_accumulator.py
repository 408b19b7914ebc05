import json
import pickle
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skcalib
from skcalib.datasets import make_predictions
from skcalib.metrics import (
    CalibrationAccumulator,
    calibration_error_interval,
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    generalized_brier_score,
    ks_calibration_error,
    maximum_calibration_error,
    reliability_curve,
    smooth_calibration_error,
)
from skcalib.utils import SkcalibWarning

METRICS = (
    "classwise_calibration_error",
    "smooth_calibration_error",
    "brier",
)


def of_the_whole(y, proba, weight, n_bins):
    """Every result of an accumulator, by the functions of the same names."""
    options = {"n_bins": n_bins, "sample_weight": weight}
    score = generalized_brier_score(y, proba)
    return {
        "expected_calibration_error": expected_calibration_error(y, proba, **options),
        "maximum_calibration_error": maximum_calibration_error(y, proba, **options),
        "debiased_calibration_error": debiased_calibration_error(y, proba, **options),
        "classwise_calibration_error": classwise_calibration_error(y, proba, **options),
        "smooth_calibration_error": smooth_calibration_error(y, proba, sample_weight=weight),
        "brier": np.average(score, weights=weight),
    }


def read_only(accumulator):
    """As it comes out of another process by pickle protocol 5, buffers out of band."""
    buffers = []
    state = pickle.dumps(accumulator, protocol=5, buffer_callback=buffers.append)
    found = pickle.loads(state, buffers=[bytes(buffer.raw()) for buffer in buffers])
    assert not found.sums_.flags.writeable
    return found


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=200)
    y = (proba.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1).clip(0, 2)
    return y, proba, rng.uniform(size=200)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_pieces_give_the_whole(data, norm):
    y, proba, weight = data
    stream = CalibrationAccumulator(7, norm=norm)
    for start in range(0, 200, 33):
        rows = slice(start, start + 33)
        assert stream.update(y[rows], proba[rows], sample_weight=weight[rows]) is stream
    expected = expected_calibration_error(y, proba, n_bins=7, norm=norm, sample_weight=weight)
    assert stream.result() == pytest.approx(expected, abs=1e-14)
    curve = reliability_curve(y, proba, n_bins=7, sample_weight=weight)
    for ours, whole in zip(stream.curve(), curve):
        np.testing.assert_allclose(ours, whole, rtol=1e-13)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    cuts=st.lists(st.integers(0, 90), max_size=6),
    tree=st.randoms(use_true_random=False),
    weighted=st.booleans(),
    binary=st.booleans(),
)
def test_every_tree_over_every_chunking_gives_every_metric_of_the_whole(
    cuts, tree, weighted, binary
):
    rng = np.random.default_rng(len(cuts))
    proba = rng.dirichlet(np.ones(3), size=90)
    y = (proba.cumsum(axis=1) < rng.random((90, 1))).sum(axis=1)
    weight = rng.uniform(0.5, 3, size=90) if weighted else None
    if binary:
        y, proba = (y == 1).astype(int), proba[:, 1]
    # Equal cuts leave empty chunks.
    ends = [0, *sorted(cuts), 90]
    options = {"metrics": METRICS, "labels": [0, 1] if binary else [0, 1, 2]}
    parts = []
    for rows in map(slice, ends[:-1], ends[1:]):
        part = CalibrationAccumulator(5, **options)
        w = None if weight is None else weight[rows]
        parts.append(part.update(y[rows], proba[rows], sample_weight=w))
    parts.append(CalibrationAccumulator(5, **options))
    tree.shuffle(parts)
    while len(parts) > 1:
        left, right = parts.pop(), parts.pop(tree.randrange(len(parts)))
        parts.append(left + read_only(right))
    (total,) = parts
    for name, expected in of_the_whole(y, proba, weight, 5).items():
        assert total.result(name) == pytest.approx(expected, abs=1e-8), name


def test_state_from_another_process_goes_on(data):
    y, proba, _ = data
    stream = read_only(CalibrationAccumulator(metrics=METRICS).update(y[:90], proba[:90]))
    stream.update(y[90:], proba[90:])
    for name, expected in of_the_whole(y, proba, None, 15).items():
        assert stream.result(name) == pytest.approx(expected, abs=1e-8), name


def test_sum_begins_with_nothing(data):
    y, proba, _ = data
    parts = [CalibrationAccumulator().update(y[k::4], proba[k::4]) for k in range(4)]
    assert sum(parts).result() == reduce(lambda a, b: a + b, parts).result()
    alone = sum(parts[:1])
    assert alone is not parts[0]
    assert alone.update(y, proba).sums_.sum() > parts[0].sums_.sum()


def test_no_samples_add_nothing(data):
    y, proba, _ = data
    stream = CalibrationAccumulator().update(np.empty(0, int), np.empty((0, 3)))
    assert stream.classes_ is None
    stream.update(y, proba).update([], [])
    assert stream.result() == expected_calibration_error(y, proba)
    for arguments in (([], proba[:1]), (y[:1], np.empty((0, 3)))):
        with pytest.raises(ValueError, match=r"^y_(true|proba) must have"):
            stream.update(*arguments)


def test_metrics_without_sums_are_refused(data):
    y, proba, _ = data
    stream = CalibrationAccumulator(metrics=["brier"]).update(y, proba)
    with pytest.raises(ValueError, match=r"^metric must be one of .*got 'smooth_ece'; name it in"):
        stream.result("smooth_calibration_error")
    for metrics in ("classwise_calibration_error", ["multilabel_calibration_error"]):
        with pytest.raises(ValueError, match=r"^metrics must be (a sequence|one) of"):
            CalibrationAccumulator(metrics=metrics)


def test_options_of_the_parts_are_kept(data):
    y, proba, _ = data
    names = np.array(["c", "b", "a"])
    total = CalibrationAccumulator() + CalibrationAccumulator(labels=names)
    assert total.update(names[y], proba).classes_.tolist() == ["c", "b", "a"]
    with pytest.raises(ValueError, match="same labels add up"):
        CalibrationAccumulator(labels=[0, 1]) + CalibrationAccumulator(labels=names)


def test_accumulators_add_up(data):
    y, proba, _ = data
    parts = [CalibrationAccumulator().update(y[k::4], proba[k::4]) for k in range(4)]
    total = parts[0] + parts[1] + parts[2] + parts[3]
    assert total.result() == pytest.approx(expected_calibration_error(y, proba), abs=1e-14)
    assert sum(parts[1:], start=parts[0]).result() == total.result()
    # The parts are as they were.
    assert parts[0].sums_.sum() < total.sums_.sum()
    assert (parts[0] + CalibrationAccumulator()).result() == parts[0].result()


def test_state_does_not_grow(data):
    y, proba, _ = data
    stream = CalibrationAccumulator().update(y, proba)
    size = len(pickle.dumps(stream))
    for _ in range(20):
        stream.update(y, proba)
    assert len(pickle.dumps(stream)) == size
    assert pickle.loads(pickle.dumps(stream)).result() == stream.result()


def test_columns_are_matched_by_name_from_update_to_update(data):
    pd = pytest.importorskip("pandas")
    y, proba, _ = data
    names = np.array(["bird", "cat", "dog"])
    frame = pd.DataFrame(proba, columns=names)
    stream = CalibrationAccumulator()
    stream.update(names[y[:90]], frame[["dog", "bird", "cat"]][:90])
    stream.update(names[y[90:]], frame[90:])
    assert stream.result() == pytest.approx(expected_calibration_error(y, proba), abs=1e-14)


def test_extreme_weights(data):
    y, proba, weight = data
    expected = expected_calibration_error(y, proba, norm="l2", sample_weight=weight)
    for scale in (1e-200, 1e300):
        stream = CalibrationAccumulator(norm="l2")
        stream.update(y, proba, sample_weight=scale * weight)
        assert stream.result() == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(stream.sums_[0].sum(), scale * weight.sum())


def test_weights_with_an_infinite_sum_are_refused(data):
    y, proba, _ = data
    stream = CalibrationAccumulator().update(y, proba)
    before = stream.result()
    with pytest.raises(ValueError, match=r"sums over all updates are finite, .* got inf: divide"):
        stream.update(y, proba, sample_weight=np.full(len(y), 1e308))
    assert stream.result() == before


def test_weights_whose_losses_have_an_infinite_sum_are_refused():
    y, wrong, weight = np.array([0, 1, 1]), np.eye(2)[[1, 0, 0]], np.full(3, 0.4e308)
    # The weights have a finite sum, and with a Brier score of 2 each the losses have none.
    assert CalibrationAccumulator().update(y, wrong, sample_weight=weight).result() == 1
    stream = CalibrationAccumulator(metrics=["brier"])
    with pytest.raises(ValueError, match=r"^sample_weight must be so small that .* losses"):
        stream.update(y, wrong, sample_weight=weight)


def test_given_edges(data):
    y, proba, _ = data
    edges = reliability_curve(y, proba, strategy="quantile", n_bins=5).edges
    stream = CalibrationAccumulator(edges=edges).update(y, proba)
    expected = expected_calibration_error(y, proba, strategy="quantile", n_bins=5)
    assert stream.result() == expected


def test_labels_and_positive_class(data):
    y, proba, _ = data
    names = np.array(["a", "b", "c"])
    stream = CalibrationAccumulator(labels=names)
    for name, code in zip(names, range(3)):
        stream.update(np.full((y == code).sum(), name), proba[y == code])
    expected = expected_calibration_error(y, proba)
    assert stream.result() == pytest.approx(expected, abs=1e-14)
    stream = CalibrationAccumulator(pos_label="b").update(names[1 * (y == 1)], proba[:, 1])
    expected = expected_calibration_error((y == 1).astype(int), proba[:, 1])
    assert stream.result() == expected


def test_a_failed_update_leaves_no_trace(data, monkeypatch):
    from skcalib.utils import _numeric

    monkeypatch.setattr(_numeric, "BLOCK_SIZE", 30)
    y, proba, _ = data
    stream = CalibrationAccumulator().update(y, proba)
    before = stream.sums_.copy()
    broken = proba.copy()
    broken[-1] = 0.5
    with pytest.raises(ValueError, match="must sum to 1"):
        stream.update(y, broken)
    np.testing.assert_array_equal(stream.sums_, before)


def test_the_first_update_settles_the_classes():
    proba = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]])
    stream = CalibrationAccumulator().update([1, 2, 3], proba)
    # Alone, 1 and 2 would be taken as columns.
    stream.update([1, 2], proba[:2])
    y, twice = [1, 2, 3, 1, 2], np.concatenate([proba, proba[:2]])
    assert stream.result() == pytest.approx(expected_calibration_error(y, twice))
    assert stream.classes_.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"y_true must hold labels among .* got 4 in row 1"):
        stream.update([1, 4], proba[:2])
    with pytest.raises(ValueError, match=r"columns of the updates before, 3, .*, got 2, one"):
        CalibrationAccumulator(labels=None).update([0, 2], proba[:2]).update([0], [[0.5, 0.5]])


def test_positive_class_alone_at_first():
    stream = CalibrationAccumulator(pos_label="yes").update(["yes"], [0.6])
    stream.update(["no", "yes"], [0.6, 0.7]).update(["no"], [0.3])
    y, p = ["yes", "no", "yes", "no"], [0.6, 0.6, 0.7, 0.3]
    expected = expected_calibration_error(y, p, pos_label="yes")
    assert stream.result() == pytest.approx(expected)
    with pytest.raises(
        ValueError, match=r"columns of the updates before, one, of the .*, got 2, one"
    ):
        stream.update(["no"], [[0.5, 0.5]])


def test_accumulators_of_other_classes_do_not_add_up():
    first = CalibrationAccumulator().update([0, 1], [[0.5, 0.5]] * 2)
    with pytest.raises(ValueError, match="same classes add up"):
        first + CalibrationAccumulator().update(["a", "b"], [[0.5, 0.5]] * 2)
    with pytest.raises(ValueError, match="same classes add up"):
        first + CalibrationAccumulator().update([0, 1], [0.5, 0.5])


def test_nothing_yet():
    with pytest.raises(ValueError, match="no samples yet: call update first"):
        CalibrationAccumulator().result()
    with pytest.raises(ValueError, match="no samples yet: call update first"):
        CalibrationAccumulator().curve()


@pytest.mark.parametrize("other", [{"n_bins": 5}, {"norm": "max"}, {"metrics": METRICS}])
def test_unlike_accumulators_do_not_add_up(other):
    with pytest.raises(ValueError, match="same norm, the same bins and the same metrics"):
        CalibrationAccumulator() + CalibrationAccumulator(**other)
    with pytest.raises(TypeError):
        CalibrationAccumulator() + 1


@pytest.mark.parametrize(
    "edges", [[0.0], [0.1, 1.0], [0.0, 0.9], [0.0, 0.7, 0.3, 1.0], [[0.0, 1.0]], [0, np.nan, 1]]
)
def test_bad_edges(edges):
    with pytest.raises(ValueError, match="edges must increase from 0 to 1"):
        CalibrationAccumulator(edges=edges)


@pytest.mark.parametrize("options", [{"n_bins": 0}, {"norm": "l3"}])
def test_bad_options(options):
    with pytest.raises(ValueError, match=f"'{next(iter(options))}' parameter"):
        CalibrationAccumulator(**options)


@pytest.mark.parametrize("metrics", [3, None, [["a"]], "smooth_calibration_error"])
def test_metrics_that_are_no_names_are_named(metrics):
    with pytest.raises(ValueError, match=r"^metrics must be (a sequence|one) of"):
        CalibrationAccumulator(metrics=metrics)


@pytest.mark.parametrize("norm", ["l2", "max"])
def test_classwise_error_takes_the_norm(norm):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=200)
    y = (proba.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1).clip(0, 2)
    name = "classwise_calibration_error"
    total = CalibrationAccumulator(5, norm=norm, metrics=(name,)).update(y, proba)
    expected = classwise_calibration_error(y, proba, n_bins=5, norm=norm)
    assert total.result(name) == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "metric",
    ["expected_calibration_error", "maximum_calibration_error", "debiased_calibration_error"],
)
@pytest.mark.parametrize(("power", "n_bins"), [(1.0, 15), (1.5, 15), (1.1, 200)])
def test_interval_from_sums_is_that_of_the_samples(metric, power, n_bins):
    rng = np.random.default_rng(1)
    p = rng.uniform(size=3000)
    y = (rng.uniform(size=3000) < p**power).astype(int)
    accumulator = CalibrationAccumulator(n_bins)
    accumulator.update(y[:1000], p[:1000]).update(y[1000:], p[1000:])
    found = accumulator.interval(metric, random_state=0)
    expected = calibration_error_interval(
        y, p, metric=getattr(skcalib.metrics, metric), n_bins=n_bins, random_state=0
    )
    # Other resamples of the same distribution, but for the confidences within a bin.
    assert found == pytest.approx(expected, abs=0.12 * (expected[1] - expected[0]))
    if metric == "expected_calibration_error":
        assert found[1] == pytest.approx(expected[1], rel=0.03)
    assert accumulator.interval(metric, random_state=0) == found


@pytest.mark.parametrize("said", [1 - 1e-4, 1 - 1e-7, 1 - 1e-10])
def test_interval_of_a_nearly_perfect_model_without_errors_begins_at_0(said):
    # By chance there is no error either: the sums differ by rounding alone.
    proba = np.full((200, 3), (1 - said) / 2)
    proba[:, 0] = said - np.linspace(0, 1e-6, 200) * (1 - said)
    proba /= proba.sum(axis=1, keepdims=True)
    for seed in range(5):
        y = np.zeros(200, dtype=int)
        accumulator = CalibrationAccumulator(labels=[0, 1, 2]).update(y, proba)
        low, high = accumulator.interval(n_resamples=100, random_state=seed)
        assert low == 0
        assert 0.01 < high < 0.03


def test_interval_of_a_stream_of_a_billion_samples():
    y, proba, counts = [1, 0, 1, 0], [0.35, 0.35, 0.75, 0.75], [1.5e8, 2.5e8, 4.4e8, 1.6e8]
    accumulator = CalibrationAccumulator(10)
    accumulator.update(y, proba, sample_weight=counts, frequency_weight=True)
    low, high = accumulator.interval(random_state=0)
    # ECE = (1e7 + 1e7) / 1e9; its standard error is 1.5e-5.
    assert low == pytest.approx(0.02, abs=6e-5)
    assert high == pytest.approx(0.02, abs=6e-5)
    assert low < 0.02 < high


def test_interval_of_an_accumulator_is_asked_for_what_it_keeps():
    accumulator = CalibrationAccumulator(metrics=("smooth_calibration_error",))
    with pytest.raises(ValueError, match="no samples yet"):
        accumulator.interval()
    assert repr(accumulator) == "CalibrationAccumulator(n_bins=15, samples=0)"
    many = CalibrationAccumulator(metrics=()).update([0], [0.2], sample_weight=[12345678])
    assert "samples=12345678," in repr(many)
    accumulator.update([0, 1], [0.2, 0.7])
    with pytest.raises(ValueError, match="got 'smooth_ece'"):
        accumulator.interval("smooth_calibration_error")
    with pytest.raises(ValueError, match="confidence_level must be in"):
        accumulator.interval(confidence_level=95)
    for number in (0, -1, 1.5):
        with pytest.raises(ValueError, match="n_resamples must be an integer of at least 1"):
            accumulator.interval(n_resamples=number)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_ks_error_is_that_of_the_function_up_to_the_gaps_of_a_cell(n_classes):
    y, proba, _ = make_predictions(5000, n_classes=n_classes, temperature=1.5, random_state=0)
    proba = proba[:, 1] if n_classes == 2 else proba
    weight = np.random.default_rng(0).uniform(size=5000)
    parts = [CalibrationAccumulator(metrics=["ks_calibration_error"]) for _ in range(3)]
    for k, part in enumerate(parts):
        part.update(y[k::3], proba[k::3], sample_weight=weight[k::3])
    found = sum(parts).result("ks_calibration_error")
    exact = ks_calibration_error(y, proba, sample_weight=weight)
    confidence = proba if n_classes == 2 else proba.max(axis=1)
    correct = y == 1 if n_classes == 2 else proba.argmax(axis=1) == y
    of_cells = np.bincount((confidence * 2**14).astype(int), weight * abs(confidence - correct))
    assert exact - of_cells.max() / weight.sum() <= found <= exact + 1e-12
    assert found == pytest.approx(exact, rel=0.01)
    # Probabilities at the ends of cells lose nothing.
    y, stated = [0, 1, 0, 0, 1], [0.0, 0.25, 0.25, 0.5, 1.0]
    exact = ks_calibration_error(y, stated)
    stream = CalibrationAccumulator(metrics=["ks_calibration_error"]).update(y, stated)
    assert stream.result("ks_calibration_error") == pytest.approx(exact, abs=1e-15)


def survey(n=600, seed=0):
    """A calibrated model, sampled with unlike probabilities: labels, risks, inverse weights."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 3, size=6 * n)
    inclusion = 0.03 + 0.5 * rng.random(6 * n) ** 4
    kept = rng.random(6 * n) < inclusion
    p = p[kept]
    return (rng.random(len(p)) < p).astype(int), p, 1 / inclusion[kept]


@pytest.mark.slow
def test_weights_of_merged_parts_count_as_effective_numbers_of_samples():
    y, p, weight = survey()
    cuts = np.array_split(np.arange(len(y)), 3)
    parts = [CalibrationAccumulator() for _ in cuts]
    for part, rows, scale in zip(parts, cuts, (1.0, 5.0, 0.2)):
        part.update(y[rows], p[rows], sample_weight=scale * weight[rows])
    total = sum(parts)
    merged = weight * np.repeat([1.0, 5.0, 0.2], [len(rows) for rows in cuts])
    index = np.minimum((p * 15).astype(int), 14)
    expected = np.bincount(index, merged) ** 2 / np.bincount(index, merged**2)
    np.testing.assert_allclose(total.n_effective_[: len(expected)], expected, rtol=1e-9)
    # Other units of the weights change nothing.
    scaled = CalibrationAccumulator().update(y, p, sample_weight=1e-200 * merged)
    found = [x.interval(random_state=0) for x in (total, scaled)]
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    rows = calibration_error_interval(y, p, sample_weight=merged, random_state=0)
    assert found[0] == pytest.approx(rows, abs=0.12 * (rows[1] - rows[0]))


@pytest.mark.slow
def test_the_interval_of_weighted_sums_holds_and_accuses_few_calibrated_models():
    accused = 0
    for seed in range(60):
        y, p, weight = survey(seed=seed)
        first = CalibrationAccumulator().update(y[::2], p[::2], sample_weight=weight[::2])
        total = first.update(y[1::2], p[1::2], sample_weight=9 * weight[1::2])
        accused += total.interval(n_resamples=99, random_state=seed)[0] > 0
    assert accused <= 6  # at a level of .025, .997 of the time


def test_frequency_weights_are_numbers_of_samples(data):
    y, proba, _ = data
    counts = np.random.default_rng(0).integers(0, 4, size=len(y))
    table = CalibrationAccumulator().update(y, proba, sample_weight=counts, frequency_weight=True)
    every = CalibrationAccumulator().update(np.repeat(y, counts), np.repeat(proba, counts, axis=0))
    np.testing.assert_allclose(table.sums_, every.sums_)
    np.testing.assert_allclose(table.weight_norms_, every.weight_norms_)
    np.testing.assert_array_equal(table.n_effective_, every.sums_[0])
    assert table.interval(random_state=0) == pytest.approx(every.interval(random_state=0))
    with pytest.raises(ValueError, match=r"^frequency_weight must be True if .*, got 3\.$"):
        table.update(y, proba, frequency_weight=3)


@pytest.mark.slow
def test_weights_in_chunks_have_the_norms_of_the_whole():
    da = pytest.importorskip("dask.array")
    y, p, weight = survey()
    chunks = [da.from_array(values, chunks=150) for values in (y, p, weight)]
    for counts in (False, True):
        whole = CalibrationAccumulator(labels=[0, 1])
        whole.update(y, p, sample_weight=weight, frequency_weight=counts)
        parts = CalibrationAccumulator(labels=[0, 1]).update(
            *chunks[:2], sample_weight=chunks[2], frequency_weight=counts
        )
        np.testing.assert_allclose(parts.weight_norms_, whole.weight_norms_, rtol=1e-12)


def test_text_of_format_1_is_read_and_says_what_it_lacks():
    y, p, _ = survey()
    stream = CalibrationAccumulator().update(y, p)
    state = json.loads(stream.to_json())
    del state["weight_norms_"]
    state["format"] = state["format"].replace("2", "1")
    with pytest.warns(SkcalibWarning, match="format 1, without the norms of weights"):
        found = CalibrationAccumulator.from_json(json.dumps(state))
    # Without weights nothing is lost.
    assert found.interval(random_state=0) == stream.interval(random_state=0)
    state = json.loads(stream.to_json()) | {"weight_norms_": [[1.0]]}
    with pytest.raises(ValueError, match=r"'weight_norms_' must have shape"):
        CalibrationAccumulator.from_json(json.dumps(state))
