import itertools
import json
import pickle
import re

import numpy as np
import pytest
from scipy.special import expit, logit, softmax

from skcalib.metrics import CalibrationAccumulator, CalibrationMonitor
from skcalib.metrics._e_values import describe_change  # private: no alarm ever says "No change"

HALVES = [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 0]
LOG_SLOPES, SHIFTS = ([sign * top * half for half in HALVES for sign in (-1, 1)][:13]
                      for top in (1.2, 1.5))  # fmt: skip


def stream(**options):
    return CalibrationAccumulator(metrics=["e_value"], **options)


def of_two(y, p):
    """The mixture of likelihood ratios, sample by sample and map by map."""
    total = 0.0
    for log_slope in LOG_SLOPES:
        for shift in SHIFTS:
            q = expit(np.exp(log_slope) * logit(p) + shift)
            total += np.prod(np.where(y == 1, q / p, (1 - q) / (1 - p)))
    return total / 169


def of_several(y, proba):
    rows, n_classes = np.arange(len(y)), proba.shape[1]
    total = 0.0
    for log_slope in LOG_SLOPES:
        q = softmax(np.exp(log_slope) * np.log(proba), axis=1)
        total += 0.5 / 13 * np.prod(q[rows, y] / proba[rows, y])
    for k in range(n_classes):
        for shift in SHIFTS:
            q = softmax(np.log(proba) + shift * (np.arange(n_classes) == k), axis=1)
            total += 0.5 / 13 / n_classes * np.prod(q[rows, y] / proba[rows, y])
    return total


def draw(n, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), size=n)
    return (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), proba


@pytest.mark.parametrize("n_classes", [2, 3, 12])
def test_evidence_is_the_mean_return_of_all_maps(n_classes):
    y, proba = draw(40, n_classes)
    expected = of_two(y, proba[:, 1]) if n_classes == 2 else of_several(y, proba)
    e_value, pvalue = stream(labels=range(n_classes)).update(y, proba).evidence()
    assert e_value == pytest.approx(expected, rel=1e-9)
    assert pvalue == pytest.approx(min(1, 1 / expected), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_bets_are_fair_over_all_labels_that_could_have_been(n_classes):
    """The promise itself: the mean of the e-value is 1 where the probabilities are right."""
    _, proba = draw(4, n_classes)

    def mean_evidence():
        for labels in itertools.product(range(n_classes), repeat=4):
            y = np.array(labels)
            e_value, _ = stream(labels=range(n_classes)).update(y, proba).evidence()
            yield np.prod(proba[np.arange(4), y]) * e_value

    assert sum(mean_evidence()) == pytest.approx(1, abs=1e-9)
    # A label that cannot be is taken for one that hardly can: never more than fair.
    proba[0] = np.eye(n_classes)[0]
    assert 1 - 1e-5 < sum(mean_evidence()) <= 1 + 1e-12


def test_one_column_and_two_are_the_same():
    y, proba = draw(60)
    one, two = stream().update(y, proba[:, 1]), stream().update(y, proba)
    assert one.evidence() == pytest.approx(two.evidence(), rel=1e-9)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_parts_add_up_in_any_order(n_classes):
    y, proba = draw(200, n_classes)
    parts = [stream(labels=range(n_classes)).update(y[k::5], proba[k::5]) for k in range(5)]
    whole = stream().update(y, proba)
    assert sum(parts[::-1]).evidence() == pytest.approx(whole.evidence(), rel=1e-9)
    da = pytest.importorskip("dask.array")
    chunks = da.from_array(y, chunks=60), da.from_array(proba, chunks=(60, -1))
    assert stream().update(*chunks).evidence() == pytest.approx(whole.evidence(), rel=1e-9)


def test_a_label_of_probability_zero_is_much_evidence_and_no_infinity():
    total = stream().update([1, 0], [0.0, 0.5])
    assert total.evidence().e_value > 100
    assert np.isfinite(total.metric_sums_["e_value"]).all()


def test_evidence_beyond_the_largest_number():
    total = stream().update([1] * 9999, [1e-9] * 9999)
    assert total.evidence() == (np.inf, 0.0)


def test_wrong_models_are_found_and_right_ones_are_not():
    rng = np.random.default_rng(1)
    z = rng.normal(0, 2, size=3000)
    # As many as the probabilities say in every region: chance moves no odds.
    y = np.empty(3000, dtype=int)
    order = np.argsort(z)
    y[order] = np.diff(np.floor(np.cumsum(expit(z[order])) + 0.5), prepend=0)
    assert stream().update(y, expit(z)).evidence().pvalue > 0.05
    for wrong, verdict, what, repair in (
        (1.5 * z, "is too sure", "all log-odds", 1 / 1.5),
        (z / 1.5, "is not sure enough", "all log-odds", 1.5),
        (z - 0.5, "probabilities of class 1 are too low", "the odds of class 1", np.exp(0.5)),
    ):
        total = stream().update(y, expit(wrong))
        assert total.evidence().pvalue < 1e-6
        check_explanation(alarm(y, expit(wrong)), verdict, what, repair)


def alarm(y, proba):
    """Return the sentence of the alarm that these samples raise."""
    return CalibrationMonitor().update(y, proba).alarm_


def check_explanation(sentence, verdict, what, repair):
    assert verdict in sentence
    found = float(re.search(rf"{what} by about ([0-9.]*[0-9])", sentence)[1])
    # The grid has steps of a factor of two.
    assert 0.5 < np.log(found) / np.log(repair) < 2


def test_several_classes_are_explained_by_name():
    y, proba = draw(4000, 3)
    names = np.array(["bird", "cat", "dog"])
    sharp = proba**1.5 / (proba**1.5).sum(axis=1, keepdims=True)
    total = stream().update(names[y], sharp)
    assert total.evidence().pvalue < 1e-6
    check_explanation(alarm(names[y], sharp), "is too sure", "all log-odds", 1 / 1.5)
    moved = proba * [1, 0.6, 1]
    moved /= moved.sum(axis=1, keepdims=True)
    total = stream().update(names[y], moved)
    assert total.evidence().pvalue < 1e-6
    sentence, cat = alarm(names[y], moved), "probabilities of class cat are too low"
    check_explanation(sentence, cat, "the odds of class cat", 1 / 0.6)
    assert describe_change(np.zeros(169), None).startswith("No change")


def test_what_evidence_needs():
    y, proba = draw(20)
    with pytest.raises(ValueError, match=r"^metrics must name 'e_value' .*, got \[\]\.$"):
        CalibrationAccumulator().update(y, proba).evidence()
    with pytest.raises(ValueError, match="has no samples yet"):
        stream().evidence()
    total = stream()
    with pytest.raises(ValueError, match=r"^sample_weight must be None where the e-value"):
        total.update(y, proba, sample_weight=np.ones(20))
    assert not total.sums_.any()


EVERY_METRIC = [
    "classwise_calibration_error",
    "smooth_calibration_error",
    "brier",
    "e_value",
]


@pytest.mark.parametrize("names", [None, ["a", "b", "c"]])
@pytest.mark.parametrize("norm", ["l1", "max"])
def test_json_keeps_every_bit(names, norm):
    y, proba = draw(300, 3)
    y = y if names is None else np.array(names)[y]
    total = CalibrationAccumulator(7, norm=norm, metrics=EVERY_METRIC, labels=names)
    total.update(y[:200], proba[:200])
    found = CalibrationAccumulator.from_json(total.to_json())
    assert found.to_json() == total.to_json()
    for metric in ("expected_calibration_error", *EVERY_METRIC):
        assert found.result(metric) == total.result(metric)
    # It goes on, and adds up with what never was text.
    assert found.update(y[200:], proba[200:]).evidence() == (
        total.update(y[200:], proba[200:]).evidence()
    )
    assert (found + total).sums_.tolist() == (2 * total.sums_).tolist()
    assert found.classes_.dtype == total.classes_.dtype


def test_json_of_an_accumulator_without_samples_or_with_a_positive_class():
    empty = CalibrationAccumulator.from_json(stream().to_json())
    assert pickle.dumps(empty.update([0, 1], [0.1, 0.8]).sums_) == pickle.dumps(
        stream().update([0, 1], [0.1, 0.8]).sums_
    )
    named = stream(pos_label=np.str_("yes")).update(["no", "yes"], [0.1, 0.8])
    again = CalibrationAccumulator.from_json(named.to_json()).update(["yes"], [0.8])
    assert again.classes_.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="columns of the updates before"):
        again.update(["yes"], [[0.2, 0.8]])


@pytest.mark.parametrize(
    "text", ["", "[1]", '"x"', "{}", '{"format": "other"}', "sums", "state", "nan"]
)
def test_text_that_is_no_accumulator_is_refused(text):
    state = json.loads(stream().update([0, 1], [0.1, 0.8]).to_json())
    if text == "sums":
        text = json.dumps(state | {"sums_": [[1.0]]})
    elif text == "state":
        text = json.dumps({name: value for name, value in state.items() if name != "classes_"})
    elif text == "nan":
        text = json.dumps(state | {"metric_sums_": {"e_value": [float("nan")]}})
    with pytest.raises(ValueError, match=r"^text must be what to_json of an accumulator returned"):
        CalibrationAccumulator.from_json(text)


def test_a_slope_alone_is_told_without_a_shift_of_any_class():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2000, 3))
    y = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    sentence = alarm(y, softmax(logits, axis=1))
    assert (
        "The model is too sure. To fit the labels, multiply all log-odds by about 0." in sentence
    )
    assert "the odds of" not in sentence
