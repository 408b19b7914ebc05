"""What all displays share: their axes, the text of a user, colors, reference lines, the title."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ..utils import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

# Okabe and Ito's colors, told apart by the color-blind, without black and yellow, which vanish on
# a dark or a light ground. There is one marker more, so that pairs repeat after 42 curves.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Above, artists are drawn as pixels within vector graphics, which would be megabytes otherwise.
MANY_POINTS = 5000
# Letters that fit below axes of 3.8 inches. Smaller ones have no room for a legend beside them,
# nor for more than the curves in it.
NARROW = 50
# Of the axes below a diagram: height and distance, as fractions of its height.
BELOW_HEIGHT, BELOW_GAP = 0.18, 0.06


def plain_text(text: Any, *, width: int | None = None, n_lines: int = 2, tail: str = "") -> str:
    """Return `text` and `tail` such that matplotlib shows them letter by letter.

    A dollar sign starts no formula. A leading underscore does not hide an entry of the legend.
    With `width`, a text is wrapped, and one of more than `n_lines` such lines ends in "...".
    """
    shown = str(text)
    if width is not None:
        width = max(width, 8)
        room = max(width * n_lines - len(tail), 8)
        if len(shown) > room:
            shown = shown[: room - 3] + "..."
        shown = "\n".join(textwrap.wrap(shown + tail, width, break_on_hyphens=False))
    else:
        shown += tail
    shown = shown.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


class Curve(NamedTuple):
    """A line that a display has drawn, and what is said of it; a label of the user wins."""

    name: str
    what: str
    value: str
    title: str
    label: str | None

    def entry(self, common: str = "", n_lines: int = 2) -> str:
        """Return the entry of a legend; what all curves measure in common is its title."""
        if self.label is not None:
            return self.label
        measure = self.value if common else ": ".join(filter(None, (self.what, self.value)))
        tail = f": {measure}" if self.name and measure else measure
        return plain_text(self.name, width=32, n_lines=n_lines, tail=tail)


# Of every line on axes that a display has drawn, for those that follow on the same axes.
_CURVES: WeakKeyDictionary[Line2D, Curve] = WeakKeyDictionary()


class BaseDisplay:
    """Base of the displays. `plot` of a subclass calls `_open_axes` first, `_explain` last."""

    name: str | None = None
    ax_: Axes
    figure_: Figure | SubFigure

    def _measure(self) -> tuple[str, str]:
        """Return what was measured, and the number; empty for nothing."""
        return "", ""

    def _details(self) -> list[str]:
        """Return what the title says besides, above wide axes: an item each."""
        return []

    def __repr__(self) -> str:
        parts = [repr(self.name) if self.name else "", ": ".join(filter(None, self._measure()))]
        return f"{type(self).__name__}({', '.join(filter(None, parts))})"

    def _open_axes(self, ax: Axes | None, name: str | None, **figure_options: Any) -> str:
        """Set `ax_` and `figure_`, and return the name to show, "" for none."""
        pyplot = import_optional("matplotlib.pyplot", extra="plots")
        for given in (name, self.name):
            if not (given is None or isinstance(given, str)):
                raise TypeError(f"name must be a str or None, got {given!r}.")
        if ax is None:
            ax = pyplot.subplots(layout="constrained", **figure_options)[1]
        elif not isinstance(ax, pyplot.Axes):
            raise TypeError(f"ax must be a matplotlib Axes or None, got {ax!r}.")
        elif ax.figure is None:
            raise ValueError("ax must be part of a figure, got Axes removed from theirs.")
        self.ax_, self.figure_ = ax, ax.figure
        return name or self.name or ""

    def _characters(self, *, vertical: bool = False) -> int:
        """Return how many letters of an axis label go along the axes, before any layout."""
        box, figure = self.ax_.get_position(original=True), self.figure_.bbox
        pixels = box.height * figure.height if vertical else box.width * figure.width
        font_size = self.ax_.xaxis.label.get_fontproperties().get_size_in_points()
        # 72 points are an inch; a letter is about 0.55 times as wide as the size of its font.
        return int(72 * pixels / self.figure_.dpi / (0.55 * font_size))

    def _draw_curve(
        self, x: Any, y: Any, name: str, kwargs: dict[str, Any], **defaults: Any
    ) -> Line2D:
        """Draw a line in the next color, with the next marker; `kwargs` have the last word."""
        cbook = import_optional("matplotlib.cbook", extra="plots")
        lines = import_optional("matplotlib.lines", extra="plots")
        # `c` becomes `color` and so on: with both forms of one option matplotlib raises.
        given = cbook.normalize_kwargs(kwargs, lines.Line2D)
        what, value = self._measure()
        # The font of the title is smaller than that in which letters are counted.
        width, wide = int(1.2 * self._characters()), self._characters() >= NARROW
        facts = [": ".join(filter(None, (what, value))), *(self._details() if wide else [])]
        parts = [name, ", ".join(filter(None, facts))]
        title = "\n".join(plain_text(part, width=width, n_lines=3) for part in parts if part)
        curve = Curve(name, what, value, title, given.get("label"))
        # Reference lines, and lines of the user's own, take no color from the curves.
        number = len(self._curves())
        style = {
            "color": COLORS[number % len(COLORS)],
            "marker": MARKERS[number % len(MARKERS)],
            "markersize": 5,
            "rasterized": len(x) > MANY_POINTS,
            # With None matplotlib makes up a label with an underscore, which no legend shows.
            "label": curve.entry() or None,
        }
        line: Line2D = self.ax_.plot(x, y, **{**style, **defaults, **given})[0]
        _CURVES[line] = curve
        return line

    def _curves(self) -> dict[Line2D, Curve]:
        """Return the lines on the axes that displays have drawn, rather than the user."""
        return {line: _CURVES[line] for line in self.ax_.lines if line in _CURVES}

    def _draw_band(self, x: Any, lower: Any, upper: Any, **options: Any) -> None:
        """Fill between the ends of a band."""
        style = {"alpha": 0.2, "linewidth": 0, "rasterized": len(x) > MANY_POINTS}
        self.ax_.fill_between(x, lower, upper, **{**style, **options})

    def _draw_bars(self, x: Any, y: Any, lower: Any, upper: Any, line: Line2D) -> None:
        """Draw an interval of every point in the color of its line."""
        # Rounding may put an end on the wrong side of its point.
        ends = (y - lower).clip(0), (upper - y).clip(0)
        color = line.get_color()
        self.ax_.errorbar(x, y, yerr=ends, fmt="none", ecolor=color, elinewidth=1, capsize=2)

    def _draw_reference(self, x: Any, y: Any, label: str | None = None, color: Any = None) -> None:
        """Draw a dotted line, by default in the color of text; with a label, only once."""
        if label is None or label not in [line.get_label() for line in self.ax_.lines]:
            color = color or import_optional("matplotlib", extra="plots").rcParams["text.color"]
            self.ax_.plot(x, y, color=color, linestyle=":", label=label)

    def _open_below(self, label: str) -> tuple[Axes, bool]:
        """Return axes below those of the display, with the same x axis, and whether they are new.

        Displays on the same axes share them.
        """
        for child in self.ax_.child_axes:
            if child.get_label() == label:
                return child, False  # type: ignore[return-value]
        bottom = BELOW_HEIGHT + BELOW_GAP
        if self.figure_.get_layout_engine() is None:
            # No layout will make room below: take it from the axes.
            box = self.ax_.get_position(original=True)
            # The inset is measured in heights of the diagram: height * (1 + bottom) fills the box.
            height = box.height / (1 + bottom)
            self.ax_.set_position((box.x0, box.y1 - height, box.width, height))
        else:
            # A layout measures the room below from the bottom of the cell, so a square stands on
            # it: one that floats in the middle would have its labels cut off.
            self.ax_.set_anchor("S")
        below = self.ax_.inset_axes((0, -bottom, 1, BELOW_HEIGHT), sharex=self.ax_, label=label)
        below.set_ylabel("Count", fontsize="small")
        ticker = import_optional("matplotlib.ticker", extra="plots")
        below.yaxis.set_major_locator(ticker.MaxNLocator(2, integer=True))
        below.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))
        # The axes below show the label and the numbers of the x axis that they share.
        self.ax_.tick_params(labelbottom=False)
        return below, True

    def _explain(self) -> None:
        """Say what was drawn: one curve in the title, several in a legend.

        A title of the user stays. What has a label, such as a band, is in the legend.
        """
        curves = self._curves()
        if self.ax_.get_title() in {"", *(curve.title for curve in curves.values())}:
            title = next(iter(curves.values())).title if len(curves) == 1 else ""
            self.ax_.set_title(title, fontsize="small")
        narrow, several = self._characters() < NARROW, len(curves) > 1
        what = {curve.what for curve in curves.values()}
        common = what.pop() if several and len(what) == 1 else ""
        entries: dict[Any, str] = {
            line: curve.entry(common, 1 if narrow else 2)
            for line, curve in curves.items()
            if several or curve.label is not None
        }
        if not narrow:
            others = zip(*self.ax_.get_legend_handles_labels())
            entries |= {artist: label for artist, label in others if artist not in curves}
        entries = {artist: label for artist, label in entries.items() if label}
        if not entries:
            return
        size = "x-small" if narrow else "small"
        options: dict[str, Any] = {"fontsize": size, "title_fontsize": size, "alignment": "left"}
        if common:
            options["title"] = f"{common}:"
        if len(entries) > 3 and not narrow and self.figure_.get_layout_engine() is not None:
            options |= {"loc": "upper left", "bbox_to_anchor": (1.02, 1), "borderaxespad": 0}
            self.ax_.legend(entries.keys(), entries.values(), **options)
        else:
            # The best place takes long to find among very many points.
            many = any(len(np.asarray(line.get_xdata())) > MANY_POINTS for line in curves)
            options["loc"] = "upper left" if many else "best"
            # A layout would shrink the axes for a legend that is wider than they are.
            self.ax_.legend(entries.keys(), entries.values(), **options).set_in_layout(False)
