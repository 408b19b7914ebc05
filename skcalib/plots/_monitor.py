"""Evidence of a monitor after every step, and where its alarm is raised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..metrics import CalibrationMonitor
from ..utils._output import import_optional
from ._base import BAND, DARK_BAND, BaseDisplay, escape_text, is_dark

# The axis ends where the logarithm of the evidence is this many times that of the alarm: what has
# gone wrong for long would press all that came before to the bottom.
_ABOVE_ALARM = 3
# Most markers on a curve, and a label that no legend shows.
_MARKERS = 60
_SHADED = "_steps of the alarm"


@dataclass(repr=False, eq=False)
class MonitorDisplay(BaseDisplay):
    """Evidence of a monitor after every step, with the alarm, and since when something is wrong.

    Use :meth:`from_monitor` to create one. As long as the probabilities are right, the evidence
    stays small, and the probability that it ever reaches the dotted line is at most
    `false_alarm_rate`. A ring marks the alarm. The shaded steps are those that the sentence of
    the alarm is about; several monitors on the same axes have no shade. The axis is logarithmic,
    and ends at the cube of the evidence that raises an alarm.

    Parameters
    ----------
    steps : sequence of str
        Names of the steps.
    log_e : ndarray of shape (n_steps,)
        Logarithm of the e-value of all steps so far, after every step.
    false_alarm_rate : float, default=0.01
        Probability of a false alarm, ever, in (0, 1). There is an alarm where the e-value is at
        least ``1 / false_alarm_rate``.
    alarm, since : int or None, default=None
        Positions of the step of the alarm and of the first one that it is about.
    name : str, default=None
        Name of the monitor in the title or, of several, in the legend.

    Attributes
    ----------
    line_, alarm_ : matplotlib Artists
        The curve, and the ring at the alarm; None if there is none.
    ax_, figure_ : matplotlib Axes and Figure
        The axes and the figure.

    See Also
    --------
    skcalib.metrics.CalibrationMonitor : The alarm and its sentence.
    ReliabilityDisplay : How the probabilities are wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import CalibrationMonitor
    >>> from skcalib.plots import MonitorDisplay
    >>> rng = np.random.default_rng(0)
    >>> monitor = CalibrationMonitor()
    >>> for day in range(12):
    ...     proba = rng.uniform(0.05, 0.6, 300)
    ...     y = rng.random(300) < (proba if day < 8 else 0.6 * proba)
    ...     _ = monitor.update(y.astype(int), proba, name=f"day {day}")
    >>> MonitorDisplay.from_monitor(monitor)
    MonitorDisplay(alarm at day 8)
    """

    steps: Sequence[str]
    log_e: NDArray[np.floating]
    _: KW_ONLY
    false_alarm_rate: float = 0.01
    alarm: int | None = None
    since: int | None = None
    name: str | None = None

    @classmethod
    def from_monitor(
        cls, monitor: CalibrationMonitor, *, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Plot the evidence of a monitor.

        Parameters
        ----------
        monitor : CalibrationMonitor
            Monitor with at least one step. That of a state in a file is
            ``CalibrationMonitor.from_json(text)``. The evidence is that of all samples and
            groups together, by which the alarm is raised.
        name : str, default=None
            Name of the display, which its title or legend shows.
        **kwargs : dict
            Options of :meth:`plot`.

        Returns
        -------
        display : MonitorDisplay
            The display, plotted.

        Raises
        ------
        TypeError
            If `monitor` is not a CalibrationMonitor.
        ValueError
            If it has no step.
        """
        if not isinstance(monitor, CalibrationMonitor):
            raise TypeError(f"monitor must be a CalibrationMonitor, got {type(monitor).__name__}.")
        if not monitor.steps_:
            raise ValueError("monitor must have at least one step, got none: call update first.")
        trace = monitor._trace()
        display = cls(
            trace.names,
            trace.log_e,
            false_alarm_rate=monitor.false_alarm_rate,
            alarm=trace.alarm,
            since=trace.since,
            name=name,
        )
        return display.plot(**kwargs)

    def _measure(self) -> tuple[str, str]:
        n = len(self.steps)
        quiet = f"no alarm after {n} step{'s' if n > 1 else ''}"
        return "", quiet if self.alarm is None else f"alarm at {self.steps[self.alarm]}"

    def _details(self) -> list[str]:
        return [] if self.since is None else [f"evidence since {self.steps[self.since]}"]

    def _draw(self, name: str, kwargs: dict[str, Any]) -> None:
        # Powers of ten, which never overflow.
        y = np.asarray(self.log_e) / np.log(10)
        x, level = np.arange(1, len(y) + 1), -np.log10(self.false_alarm_rate)
        is_first = not self._find_curves()
        self.line_ = self._draw_curve(x, y, name, kwargs, markevery=-(-len(y) // _MARKERS))
        color = self.line_.get_color()
        label = f"Alarm, at {1 / self.false_alarm_rate:g}"
        if label not in [line.get_label() for line in self.ax_.lines]:
            text = import_optional("matplotlib", extra="plots").rcParams["text.color"]
            self.ax_.axhline(level, color=text, linestyle=":", label=label)
        self.alarm_ = None
        if self.alarm is not None:
            ring: dict[str, Any] = {"markersize": 13, "fillstyle": "none", "clip_on": False}
            at = min(float(y[self.alarm]), _ABOVE_ALARM * level)
            (self.alarm_,) = self.ax_.plot(x[self.alarm], at, "o", color=color, **ring)
        self._shade(color, is_first=is_first)
        self.ax_.set(xlabel="Step", ylabel="Evidence against the probabilities")
        self._set_limits(y, level, is_first=is_first)
        if is_first:
            self._name_ticks()
        self._explain()

    def _shade(self, color: Any, *, is_first: bool) -> None:
        """Shade the steps that the alarm is about; those of several monitors would overlap."""
        for patch in [patch for patch in self.ax_.patches if patch.get_label() == _SHADED]:
            patch.remove()
        if is_first and self.alarm is not None and self.since is not None:
            style: dict[str, Any] = DARK_BAND if is_dark(self.ax_) else BAND
            ends = self.since + 0.5, self.alarm + 1.5
            self.ax_.axvspan(*ends, color=color, label=_SHADED, **style)

    def _set_limits(self, y: NDArray[np.floating], level: float, *, is_first: bool) -> None:
        """Show all steps, and evidence up to the cube of that which raises an alarm."""
        n_steps = 0.5 if is_first else self.ax_.get_xlim()[1]
        self.ax_.set_xlim(0.5, max(len(y) + 0.5, n_steps))
        low = min(0.0, float(y.min()))
        high = max(level, min(float(y.max()), _ABOVE_ALARM * level))
        low, high = low - 0.06 * (high - low), high + 0.06 * (high - low)
        if not is_first:
            low, high = min(low, self.ax_.get_ylim()[0]), max(high, self.ax_.get_ylim()[1])
        self.ax_.set_ylim(low, high)

    def _name_ticks(self) -> None:
        """Write powers of ten as numbers, and steps by their names."""
        ticker = import_optional("matplotlib.ticker", extra="plots")
        room = self._count_characters()
        names = [escape_text(step, width=min(16, room // 2 - 2), n_lines=1) for step in self.steps]
        n_ticks = max(1, room // (max(len(name) for name in names) + 4))
        ticks = range(0, len(names), -(-len(names) // n_ticks))
        x_axis, y_axis = self.ax_.xaxis, self.ax_.yaxis
        x_axis.set_major_locator(ticker.FixedLocator([1 + i for i in ticks]))
        x_axis.set_major_formatter(ticker.FixedFormatter([names[i] for i in ticks]))
        y_axis.set_major_locator(ticker.MaxNLocator(7, integer=True))
        y_axis.set_major_formatter(ticker.FuncFormatter(_write_power))


def _write_power(exponent: float, _: Any = None) -> str:
    """Return a power of ten as text."""
    k = round(exponent)
    return f"{10.0**k:g}" if -4 <= k <= 4 else f"$10^{{{k}}}$"
