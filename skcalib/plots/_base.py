"""What all displays share: their axes, the text of a user, colors, reference lines, the legend."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..utils import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Okabe and Ito's colors, told apart by the color-blind, without black and yellow, which vanish on
# a dark or a light ground. There is one marker more, so that pairs repeat after 42 curves.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Above, artists are drawn as pixels within vector graphics, which would be megabytes otherwise.
MANY_POINTS = 5000
REFERENCE_STYLE = ":"
# Corners of the axes by preference, with the direction in which each lies.
CORNERS = {
    "upper left": (0, 1),
    "lower right": (1, 0),
    "upper right": (1, 1),
    "lower left": (0, 0),
}


def plain_text(text: Any, *, width: int = 0, n_lines: int = 2) -> str:
    """Return `text` such that matplotlib shows it letter by letter.

    A dollar sign starts no formula. A leading underscore does not hide an entry of the legend.
    With `width`, longer text is wrapped, and ends in "..." after `n_lines` lines.
    """
    shown = str(text)
    if width:
        shown = textwrap.fill(shown, max(width, 8), max_lines=n_lines, placeholder="...")
    shown = shown.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


class BaseDisplay:
    """Base of the displays. A subclass defines `_measure`, and `plot` calls `_open_axes` first."""

    name: str | None = None
    ax_: Axes
    figure_: Figure | SubFigure

    def _measure(self) -> str:
        """Return the number in the legend with the name of what it is, "" for none."""
        return ""

    def __repr__(self) -> str:
        parts = [repr(self.name) if self.name else "", self._measure()]
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
        """Return how many letters of an axis label go along the axes."""
        pixels = self.ax_.bbox.height if vertical else self.ax_.bbox.width
        points = 72 * pixels / self.figure_.dpi
        font_size = self.ax_.xaxis.label.get_fontproperties().get_size_in_points()
        return int(points / (0.55 * font_size))

    def _style(self, name: str, kwargs: dict[str, Any], n_points: int) -> dict[str, Any]:
        """Return the style of the next curve on the axes: `kwargs` over that of the house."""
        cbook = import_optional("matplotlib.cbook", extra="plots")
        lines = import_optional("matplotlib.lines", extra="plots")
        number = sum(line.get_linestyle() != REFERENCE_STYLE for line in self.ax_.lines)
        style = {
            "color": COLORS[number % len(COLORS)],
            "marker": MARKERS[number % len(MARKERS)],
            "rasterized": n_points > MANY_POINTS,
        }
        if name or self._measure():
            style["label"] = self._label(name)
        return {**style, **cbook.normalize_kwargs(kwargs, lines.Line2D)}

    def _label(self, name: str) -> str:
        measure = self._measure()
        if not (name and measure):
            return plain_text(name, width=36) or measure
        if len(name) + len(measure) <= 32:
            return plain_text(f"{name} ({measure})")
        return f"{plain_text(name, width=32)}\n{measure}"

    def _draw_reference(self, x: Any, y: Any, label: str | None = None, color: Any = None) -> None:
        """Draw a dotted line, by default in the color of text; with a label, only once."""
        if label is None or label not in self.ax_.get_legend_handles_labels()[1]:
            color = color or import_optional("matplotlib", extra="plots").rcParams["text.color"]
            self.ax_.plot(x, y, color=color, linestyle=REFERENCE_STYLE, label=label)

    def _draw_legend(self) -> None:
        """Put the legend where no curve is.

        Up to three entries go into the emptiest corner. More go beside the axes, or above narrow
        ones, if the figure has a layout that makes room for them.
        """
        n_entries = len(self.ax_.get_legend_handles_labels()[1])
        if not n_entries:
            return
        narrow = self._characters() < 36
        place: dict[str, Any] = {"loc": self._emptiest_corner()}
        if n_entries > 3 and self.figure_.get_layout_engine() is not None:
            place = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0), "borderaxespad": 0.0}
            if narrow:
                place |= {"loc": "lower left", "bbox_to_anchor": (0.0, 1.02)}
        self.ax_.legend(fontsize="x-small" if narrow else "small", **place)

    def _emptiest_corner(self) -> str:
        self.ax_.get_xlim(), self.ax_.get_ylim()  # bring the limits up to date
        to_axes = self.ax_.transData + self.ax_.transAxes.inverted()
        hidden = dict.fromkeys(CORNERS, 0.0)
        for line in self.ax_.lines:
            if line.get_linestyle() != REFERENCE_STYLE:
                points = to_axes.transform(_along(np.asarray(line.get_xydata(), dtype=np.float64)))
                for corner, (right, top) in CORNERS.items():
                    inside = (np.abs(points - (right, top)) < (0.6, 0.35)).all(axis=1)
                    hidden[corner] += inside.mean()
        return min(hidden, key=hidden.__getitem__)


def _along(vertices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return some 1000 points along the line through `vertices`."""
    place = np.linspace(0, len(vertices) - 1, 1000)
    number = np.arange(len(vertices))
    return np.column_stack([np.interp(place, number, axis) for axis in vertices.T])
