import pickle

import numpy as np
import pytest

from skcalib.metrics import (
    CalibrationAccumulator,
    expected_calibration_error,
    reliability_curve,
)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=200)
    return rng.integers(3, size=200), proba, rng.uniform(size=200)


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
    with pytest.raises(ValueError, match=r"^sample_weight must have a finite sum .* got inf\.$"):
        stream.update(y, proba, sample_weight=np.full(len(y), 1e308))
    assert stream.result() == before


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
    from skcalib.utils import _blocks

    monkeypatch.setattr(_blocks, "BLOCK_SIZE", 30)
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
    with pytest.raises(ValueError, match=r"columns of the updates before, \(3,\), got \(2,\)"):
        CalibrationAccumulator(labels=None).update([0, 2], proba[:2]).update([0], [[0.5, 0.5]])


def test_positive_class_alone_at_first():
    stream = CalibrationAccumulator(pos_label="yes").update(["yes"], [0.6])
    stream.update(["no", "yes"], [0.6, 0.7]).update(["no"], [0.3])
    y, p = ["yes", "no", "yes", "no"], [0.6, 0.6, 0.7, 0.3]
    expected = expected_calibration_error(y, p, pos_label="yes")
    assert stream.result() == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"columns of the updates before, \(\), got \(2,\)"):
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


@pytest.mark.parametrize("other", [{"n_bins": 5}, {"norm": "max"}])
def test_unlike_accumulators_do_not_add_up(other):
    with pytest.raises(ValueError, match="same norm and the same bins"):
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
