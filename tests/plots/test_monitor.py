"""The display draws the evidence of a monitor, and the alarm where the monitor raised it."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

from skcalib.metrics import CalibrationMonitor
from skcalib.plots import MonitorDisplay


def watch(n_steps=12, changed=8, *, by=None, odds=0.4, rate=0.01, seed=0, update=None):
    """Return a monitor of days, from one of which on there are fewer positives."""
    rng = np.random.default_rng(seed)
    monitor = CalibrationMonitor(rate)
    for day in range(n_steps):
        p = rng.uniform(0.05, 0.6, 200)
        group = None if by is None else rng.choice(by[: 1 + day], 200)
        falls = np.full(200, day >= changed) & (by is None or group == by[0])
        y = rng.random(200) < np.where(falls, odds * p / (1 - p + odds * p), p)
        monitor.update(y.astype(int), p, by=group, name=f"day {day}")
        if update is not None:
            update.append((monitor.evidence().e_value, monitor.alarm_))
    return monitor


def example(**options):
    return MonitorDisplay.from_monitor(watch(odds=0.6), **options)


@pytest.mark.slow
@pytest.mark.parametrize("by", [None, ["north", "south", "west"]])
@pytest.mark.parametrize("changed", [4, 99])
def test_the_curve_is_the_evidence_after_every_step(by, changed):
    seen = []
    monitor = watch(changed=changed, by=by, update=seen)
    display = MonitorDisplay.from_monitor(CalibrationMonitor.from_json(monitor.to_json()))
    x, y = display.line_.get_xydata().T
    np.testing.assert_array_equal(x, np.arange(1, 13))
    np.testing.assert_allclose(10**y, [e_value for e_value, _ in seen])
    alarms = [alarm for _, alarm in seen]
    if changed == 99:
        assert alarms[-1] is display.alarm is display.since is display.alarm_ is None
        assert display.ax_.get_title() == "no alarm after 12 steps"
        assert not display.ax_.patches
        return
    first = next(i for i, alarm in enumerate(alarms) if alarm)
    since = re.search(r"Since (day \d+) ", alarms[-1])[1]
    assert (display.steps[display.alarm], display.steps[display.since]) == (f"day {first}", since)
    assert display.ax_.get_title() == f"alarm at day {first}, evidence since {since}"
    assert display.alarm_.get_xdata() == [first + 1]
    (shaded,) = display.ax_.patches
    extents = shaded.get_path().transformed(shaded.get_patch_transform()).get_extents()
    assert (extents.x0, extents.x1) == (display.since + 0.5, first + 1.5)


@pytest.mark.slow
def test_the_axis_ends_at_the_cube_of_the_alarm():
    display = MonitorDisplay.from_monitor(watch(30, changed=2, odds=0.3))
    assert display.line_.get_ydata().max() > 12
    assert 6 < display.ax_.get_ylim()[1] < 7
    (ring,) = display.alarm_.get_ydata()
    assert ring <= 6
    assert MonitorDisplay(["a"], np.array([2000.0])).plot().ax_.get_ylim()[1] < 7


@pytest.mark.slow
def test_two_monitors_of_the_same_rate_share_the_line():
    display = example(name="north")
    other = MonitorDisplay.from_monitor(watch(changed=99), ax=display.ax_, name="south")
    strict = MonitorDisplay.from_monitor(watch(rate=0.001), ax=display.ax_, name="strict")
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert [text.split(":")[0] for text in texts] == [
        *("north", "south", "strict"),
        *("Alarm, at 100", "Alarm, at 1000"),
    ]
    assert not display.ax_.patches
    lines = (display.line_, other.line_, strict.line_)
    assert len({line.get_color() for line in lines}) == 3
    dotted = [line for line in display.ax_.lines if line.get_linestyle() == ":"]
    np.testing.assert_allclose([line.get_ydata()[0] for line in dotted], [2, 3])


@pytest.mark.parametrize("n_steps", [1, 2, 40])
def test_ticks_have_the_names_of_the_steps(n_steps):
    ax = MonitorDisplay.from_monitor(watch(n_steps, changed=99)).ax_
    ax.figure.canvas.draw()
    ticks = {tick: text.get_text() for tick, text in zip(ax.get_xticks(), ax.get_xticklabels())}
    named = {tick: text for tick, text in ticks.items() if text}
    assert named
    assert all(text == f"day {tick - 1:.0f}" for tick, text in named.items())
    assert {t.get_text() for t in ax.get_yticklabels()} >= {"1", "10", "100"}


def test_what_is_no_monitor_and_one_without_steps_are_refused():
    with pytest.raises(TypeError, match="monitor must be a CalibrationMonitor, got str"):
        MonitorDisplay.from_monitor("{}")
    with pytest.raises(ValueError, match="at least one step, got none: call update first"):
        MonitorDisplay.from_monitor(CalibrationMonitor())
    assert not plt.get_fignums()


def test_a_state_whose_groups_have_steps_of_their_own_is_refused():
    text = watch(2, by=["a", "b"]).to_json()
    parts = text.rpartition('"day 1"')
    with pytest.raises(ValueError, match="steps of a group must be among those of all"):
        CalibrationMonitor.from_json(f'{parts[0]}"day 7"{parts[2]}')
