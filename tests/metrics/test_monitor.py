import json
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binom

from skcalib.metrics import CalibrationAccumulator, CalibrationMonitor
from tests.metrics.test_e_values import draw, of_two


def days(n_days, n=200, slope=1.0, since=0, seed=0):
    """Yield labels and probabilities; the stated log-odds are too large from a day on."""
    rng = np.random.default_rng(seed)
    for day in range(n_days):
        z = rng.normal(0, 1.5, n)
        yield (rng.random(n) < expit(z)).astype(int), expit(z * (slope if day >= since else 1))


def monitored(batches, **options):
    monitor = CalibrationMonitor(**options)
    for k, (y, proba) in enumerate(batches):
        monitor.update(y, proba, name=f"day {k}")
    return monitor


def test_evidence_is_the_mean_of_e_values_that_start_at_every_step():
    batches = [(y, proba[:, 1]) for y, proba in (draw(12, seed=k) for k in range(4))]
    expected = 1 / 5  # not bet yet
    for j in range(4):
        y, p = (np.concatenate(part) for part in zip(*batches[j:]))
        expected += of_two(y, p) / ((j + 1) * (j + 2))
    monitor = monitored(batches)
    assert monitor.evidence().e_value == pytest.approx(expected, rel=1e-9)
    assert monitor.evidence().pvalue == pytest.approx(min(1, 1 / expected), rel=1e-9)


def test_groups_share_the_money():
    batches = [(y, proba[:, 1]) for y, proba in (draw(30, seed=k) for k in range(3))]
    monitor, alone = CalibrationMonitor(), {"": CalibrationMonitor()}
    for k, (y, p) in enumerate(batches):
        by = np.array(["b", "a"])[np.arange(30) % 2] if k else np.full(30, "b")
        monitor.update(y, p, by=by)
        alone[""].update(y, p)
        for name in np.unique(by):
            group = alone.setdefault(str(name), CalibrationMonitor(labels=[0, 1]))
            group.update(y[by == name], p[by == name])
    # "b" appears before "a"; a sixth is kept for groups to come.
    shares = {"": 1 / 2, "b": 1 / 4, "a": 1 / 12}
    expected = sum(share * alone[g].evidence().e_value for g, share in shares.items()) + 1 / 6
    assert monitor.evidence().e_value == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_a_model_that_goes_wrong_late_is_found_with_the_day():
    batches = list(days(90, slope=1.5, since=60))
    monitor = monitored(batches)
    assert monitor.alarm_.startswith("Since day ")
    assert 55 <= int(monitor.alarm_.split()[2]) <= 65
    assert "is too sure" in monitor.alarm_
    assert "are positive" in monitor.alarm_
    assert repr(monitor).startswith(
        "CalibrationMonitor(false_alarm_rate=0.01, steps=90, alarm=Since day "
    )
    # Bets that started on the first day alone are still behind after the thirty bad ones.
    total = CalibrationAccumulator(metrics=["e_value"])
    for y, proba in batches[:70]:
        total.update(y, proba)
    assert total.evidence().pvalue > 0.01
    assert monitored(batches[:70]).alarm_ is not None


@pytest.mark.slow
def test_an_alarm_stays_and_right_models_raise_none():
    right = monitored(days(60))
    assert right.alarm_ is None
    assert repr(right).endswith("steps=60, alarm=none)")
    monitor = monitored(days(10, slope=2))
    summary = monitor.alarm_
    for y, proba in days(30, seed=1):
        monitor.update(y, proba)
    assert monitor.alarm_ == summary


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [4, pytest.param(15, marks=pytest.mark.long)])
def test_false_alarms_over_many_steps(n_draws):
    alarms = [
        monitored(days(40, n=50, seed=s), false_alarm_rate=0.1).alarm_ for s in range(n_draws)
    ]
    # More have a probability of less than .005 at 10 %.
    assert sum(alarm is not None for alarm in alarms) <= binom.isf(0.005, n_draws, 0.1)


def test_the_group_that_is_wrong_is_named():
    monitor = CalibrationMonitor(labels=["no", "yes"])
    for (y, proba), (y_bad, proba_bad) in zip(days(8), days(8, slope=3, seed=1)):
        y, proba = np.concatenate([y, y_bad[:50]]), np.concatenate([proba, proba_bad[:50]])
        by = np.repeat(["site A", "site B"], [200, 50])
        monitor.update(np.array(["no", "yes"])[y], np.column_stack([1 - proba, proba]), by=by)
    assert monitor.alarm_.startswith("site B: Since 1 (")
    assert "are correct" in monitor.alarm_
    with pytest.raises(ValueError, match=r"^by must be passed in every step or in none, got none"):
        monitor.update(["no"], [[0.5, 0.5]])
    plain = monitored(days(2))
    with pytest.raises(ValueError, match=r"^by must be .* got some in this one\.$"):
        plain.update([0, 1], [0.5, 0.5], by=["a", "b"])


def test_named_columns_are_matched_within_groups():
    pd = pytest.importorskip("pandas")
    y, proba = draw(80, 3)
    names = np.array(["ant", "bee", "cat"])
    frame = pd.DataFrame(proba, columns=names)
    by = np.arange(80) % 2
    first, second = CalibrationMonitor(), CalibrationMonitor()
    for order in (["cat", "ant", "bee"], names):
        first.update(names[y], frame[order], by=by)
        second.update(names[y], frame, by=by)
    assert first.evidence() == pytest.approx(second.evidence(), rel=1e-9)
    lists = CalibrationMonitor(labels=names)
    for _ in range(2):
        lists.update(names[y].tolist(), proba.tolist(), by=list(by))
    assert lists.evidence() == pytest.approx(second.evidence(), rel=1e-9)


@pytest.mark.parametrize("names", [["", "a"], ["None", None]])
def test_groups_that_would_be_one_as_text_are_refused(names):
    y, proba = np.arange(40) % 2, np.full(40, 0.5)
    monitor = CalibrationMonitor().update(y, proba, by=["b"] * 40)
    before = monitor.to_json()
    by = np.array(names, dtype=object)[np.arange(40) // 20]
    with pytest.raises(ValueError, match="names are not empty and differ as text"):
        monitor.update(y, proba, by=by)
    assert monitor.to_json() == before


def test_steps_are_recorded_and_a_failed_one_leaves_no_trace():
    monitor = monitored(days(3, n=50))
    assert [step["name"] for step in monitor.steps_] == ["day 0", "day 1", "day 2"]
    assert [step["samples"] for step in monitor.steps_] == [50, 50, 50]
    before = monitor.to_json()
    for y, proba, by in (([0, 2], [0.5, 0.5], None), ([0, 1], [0.5, np.nan], None)):
        with pytest.raises(ValueError, match=r"^y_(true|proba) "):
            monitor.update(y, proba, by=by)
    assert monitor.update([], []).to_json() == before  # no labels have arrived
    assert CalibrationMonitor().evidence() == (1.0, 1.0)
    with pytest.raises(ValueError, match="false_alarm_rate"):
        CalibrationMonitor(false_alarm_rate=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("by", [None, ["a", "b"] * 100])
def test_json_keeps_every_bit(by):
    batches = list(days(6, slope=1.3))
    whole, parts = CalibrationMonitor(), CalibrationMonitor()
    for k, (y, proba) in enumerate(batches):
        whole.update(y, proba, by=by, name=k)
        parts = CalibrationMonitor.from_json(parts.to_json()).update(y, proba, by=by, name=k)
    assert parts.to_json() == whole.to_json()
    assert parts.alarm_ == whole.alarm_


@pytest.mark.parametrize("text", ["", "{}", '{"format": "other"}', "nan", "false_alarm_rate"])
def test_text_that_is_no_monitor_is_refused(text):
    state = json.loads(monitored(days(2)).to_json())
    if text == "nan":
        state["streams"][""]["exact"]["log_alternatives"][0] = float("nan")
    if text == "false_alarm_rate":
        state["false_alarm_rate"] = 2
    with pytest.raises(ValueError, match=r"^text must be what to_json of a monitor returned, got"):
        CalibrationMonitor.from_json(
            json.dumps(state) if text in ("nan", "false_alarm_rate") else text
        )


def test_groups_of_dask_arrays_are_refused():
    da = pytest.importorskip("dask.array")
    y, proba = da.from_array([0, 1], chunks=1), da.from_array([0.2, 0.7], chunks=1)
    assert CalibrationMonitor().update(y, proba).steps_[0]["samples"] == 2
    with pytest.raises(TypeError, match=r"^by must be None where"):
        CalibrationMonitor().update(y, proba, by=[0, 1])


def rounded(n_days, decimals=2, odds=1.0, n_classes=2, seed=0):
    """Yield labels and rounded probabilities, many of them small; odds of class 1 are off."""
    rng = np.random.default_rng(seed)
    for _ in range(n_days):
        z = rng.normal(0, 1.5, (200, n_classes)) - 4 * (np.arange(n_classes) == 1)
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        y = (p.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1).clip(0, n_classes - 1)
        p = p * np.where(np.arange(n_classes) == 1, odds, 1)
        p /= p.sum(axis=1, keepdims=True)
        yield y, np.round(p[:, 1] if n_classes == 2 else p, decimals)


@pytest.mark.slow
@pytest.mark.parametrize(("n_classes", "decimals"), [(2, 2), (2, 3), (3, 2)])
def test_rounded_probabilities_raise_no_false_alarm_and_faults_are_found(n_classes, decimals):
    options = {"decimals": decimals, "n_classes": n_classes}
    for seed in range(3):
        monitor = monitored(rounded(25, seed=seed, **options), labels=range(n_classes))
        assert monitor.alarm_ is None
        assert monitor.decimals_ == decimals
    monitor = monitored(rounded(30, odds=2.5, **options), labels=range(n_classes))
    assert "the probabilities of class 1 are too high" in monitor.alarm_
    assert f"The probabilities have {decimals} decimals" in monitor.caveats_[0]
    assert monitored(days(3)).caveats_ == []


def maps_of_log_odds():
    """Return the slopes and shifts of all maps of two classes."""
    scaled = np.exp(1.2 * np.array([-1, -1 / 2, -1 / 4, -1 / 8, -1 / 16, -1 / 32]))
    slopes = np.array([*scaled, 1.0, *(1 / scaled[::-1])])
    shifts = 1.5 / 1.2 * np.log(slopes)
    return [array.ravel() for array in np.meshgrid(slopes, shifts)]


def test_the_e_value_of_rounded_probabilities_by_hand():
    y, p = np.array([1, 0, 0, 1, 0, 0, 1]), np.array([0.02, 0.02, 0.02, 0.3, 0.3, 0.0, 1.0])
    monitor = CalibrationMonitor(labels=[0, 1]).update(y, p)
    total = 0
    for slope, shift in zip(*maps_of_log_odds()):
        q = expit(slope * logit(np.clip(p, 0.0025, 0.9975)) + shift)
        # Of all probabilities that round to p, the one nearest to q.
        theta = np.minimum(np.maximum(q, p - 0.005), p + 0.005)
        ratio = np.where(y == 1, q / theta, (1 - q) / (1 - theta))
        total += np.prod(ratio) + np.prod(ratio[(p > 0) & (p < 1)])
    mean = total / (2 * 13 * 13)
    assert monitor.evidence().e_value == pytest.approx(mean / 2 + 1 / 2, rel=1e-9)


@pytest.mark.parametrize("p", [0, 0.007, 0.01, 0.35, 0.999, 1])
def test_the_mean_e_value_is_at_most_1_under_any_probability_that_rounds_to_p(p):
    found = [CalibrationMonitor(labels=[0, 1]).update([y], [p]) for y in (0, 1)]
    half_width = 0.5 / 10 ** found[0].decimals_
    negative, positive = (monitor.evidence().e_value for monitor in found)
    for theta in np.linspace(max(p - half_width, 0), min(p + half_width, 1), 5):
        assert (1 - theta) * negative + theta * positive <= 1 + 1e-12
    assert max(negative, positive) > 1


def test_rows_that_were_divided_by_their_sum_are_rounded_ones():
    for y, p in rounded(1, n_classes=3):
        divided = p / p.sum(axis=1, keepdims=True)
        found = [CalibrationMonitor(labels=range(3)).update(y, q) for q in (p, divided)]
        assert [monitor.decimals_ for monitor in found] == [2, 2]
        assert found[0].evidence() == pytest.approx(found[1].evidence(), rel=1e-9)
    with pytest.raises(ValueError, match="must sum to 1"):
        CalibrationMonitor(labels=range(3)).update([0, 1], [[0.5, 0.2, 0.2], [0.2, 0.3, 0.5]])


@pytest.mark.slow
def test_exact_and_rounded_steps_of_groups_are_kept_as_text():
    steps = [*rounded(2), *days(2), *rounded(2, decimals=3)]
    by = np.array(["a", "b"])[np.arange(200) % 2]
    whole, parts = CalibrationMonitor(), CalibrationMonitor()
    for y, p in steps:
        whole.update(y, p, by=by)
        parts = CalibrationMonitor.from_json(parts.to_json()).update(y, p, by=by)
    assert parts.to_json() == whole.to_json()
    assert whole.decimals_ == 3
    first = json.loads(monitored(days(2)).to_json())
    first["format"] = first["format"].replace("2", "1")
    del first["rounding"]
    stream = first["streams"][""]
    stream["log_alternatives"] = stream.pop("exact")["log_alternatives"]
    del stream["rounded"]
    monitor = CalibrationMonitor.from_json(json.dumps(first))
    assert monitor.evidence() == monitored(days(2)).evidence()


@pytest.mark.slow
def test_threads_lose_no_step():
    batches = list(days(60, n=40))
    monitor = CalibrationMonitor()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda batch: monitor.update(*batch), batches))
    finally:
        sys.setswitchinterval(interval)
    assert len(monitor.steps_) == 60
    assert sum(step["samples"] for step in monitor.steps_) == 60 * 40
    assert sorted(step["name"] for step in monitor.steps_) == sorted(map(str, range(1, 61)))
    copied = pickle.loads(pickle.dumps(monitor))
    assert copied.update(*batches[0]).steps_[:-1] == monitor.steps_
