"""What all displays share: their axes, the text of a user, colors, reference lines, the legend."""

from __future__ import annotations

import textwrap
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..utils import import_optional

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

# Okabe and Ito's colors, told apart by the color-blind, without black and yellow, which vanish on
# a dark or a light ground. There is one marker more, so that pairs repeat after 42 curves.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Above, artists are drawn as pixels within vector graphics, which would be megabytes otherwise.
MANY_POINTS = 5000
# Axes are narrow where a label of fewer letters fits below them, about 3.8 inches.
NARROW = 50
# Corners of the axes by preference, with the direction in which each lies.
CORNERS = {
    "upper left": (0, 1),
    "lower right": (1, 0),
    "upper right": (1, 1),
    "lower left": (0, 0),
}


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
    """A line that a display has drawn: its name and, if any, what was measured and the value.

    The details are further lines of the legend, where it has room for them.
    """

    name: str
    what: str
    value: str
    details: tuple[str, ...] = ()


# Of every line on axes that a display has drawn, for those that follow on the same axes.
_CURVES: WeakKeyDictionary[Artist, Curve] = WeakKeyDictionary()


class BaseDisplay:
    """Base of the displays. `plot` of a subclass calls `_open_axes` first, `_draw_legend` last."""

    name: str | None = None
    ax_: Axes
    figure_: Figure | SubFigure

    def _measure(self) -> tuple[str, str]:
        """Return what the number in the legend is, and the number; empty for none."""
        return "", ""

    def _details(self) -> list[str]:
        """Return further lines of the legend, which a curve gets that is alone on wide axes."""
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
        curve = Curve(name, *self._measure(), tuple(self._details()))
        if given.get("label") is not None:
            curve = Curve(str(given["label"]), "", "")
        # Reference lines, and lines of the user's own, take no color from the curves.
        number = sum(line in _CURVES for line in self.ax_.lines)
        style = {
            "color": COLORS[number % len(COLORS)],
            "marker": MARKERS[number % len(MARKERS)],
            # With None matplotlib makes up a label with an underscore, which no legend shows.
            "label": self._label(curve) or None,
            "markersize": 4 if self._characters() < NARROW else 6,
            "rasterized": len(x) > MANY_POINTS,
        }
        line: Line2D = self.ax_.plot(x, y, **{**style, **defaults, **given})[0]
        _CURVES[line] = curve
        return line

    def _draw_band(self, x: Any, lower: Any, upper: Any, line: Line2D, **options: Any) -> None:
        """Fill between the ends of a band in the color of its line."""
        many = len(x) > MANY_POINTS
        style = {"color": line.get_color(), "alpha": 0.15, "linewidth": 0, "rasterized": many}
        self.ax_.fill_between(x, lower, upper, **{**style, **options})

    def _is_curve(self, artist: Artist) -> bool:
        """Tell whether a display has drawn the line, rather than the user."""
        return artist in _CURVES

    def _label(self, curve: Curve) -> str:
        """Return name and measure, in lines of at most two thirds of the axes."""
        name, measure = curve.name, ": ".join(filter(None, curve[1:3]))
        line = f"{name} ({measure})" if name and measure else name or measure
        width = min(self._characters() * 2 // 3, 36)
        if len(line) <= width:
            return plain_text(line)
        lines = [(name, 2), (measure, 4)]
        return "\n".join(plain_text(text, width=width, n_lines=n) for text, n in lines if text)

    def _draw_reference(self, x: Any, y: Any, label: str | None = None, color: Any = None) -> None:
        """Draw a dotted line, by default in the color of text; with a label, only once."""
        if label is None or label not in self.ax_.get_legend_handles_labels()[1]:
            color = color or import_optional("matplotlib", extra="plots").rcParams["text.color"]
            self.ax_.plot(x, y, color=color, linestyle=":", label=label)

    def _draw_legend(self) -> None:
        """Put the legend where no curve is.

        Up to three entries of five lines go into the emptiest corner. More go beside the axes, or
        above narrow ones, where there is room for them.
        """
        handles, labels, title = self._legend_entries()
        if not labels:
            return
        narrow = self._characters() < NARROW
        n_lines = "\n".join([*labels, title or ""]).count("\n") + 1
        many = len(labels) > 3 or n_lines > 6
        size = "xx-small" if narrow and many else "x-small" if narrow or many else "small"
        options: dict[str, Any] = {
            "handles": handles, "labels": labels, "title": title, "alignment": "left",
            "fontsize": size, "title_fontsize": size,
        }  # fmt: skip
        above = narrow or self._legend_goes_above()
        if many and (self._has_room_above(n_lines) if above else self._has_room_beside()):
            options |= {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0), "borderaxespad": 0.0}
            if above:
                options |= {"loc": "lower left", "bbox_to_anchor": (0.0, 1.02)}
            if narrow:
                options |= {"labelspacing": 0.2, "handlelength": 1.5}
            elif above:
                options["ncols"] = 2
            # Axes of a fixed shape float in their place: to the side that is not the legend's, and
            # up to a legend above, which leaves room for labels below.
            self.ax_.set_anchor("NW" if above else "SW")
            self.ax_.legend(**options)
        else:
            legend = self.ax_.legend(**options, **{"loc": self._emptiest_corner()})
            # A layout would shrink the axes for a legend that is wider than they are.
            legend.set_in_layout(False)

    def _legend_goes_above(self) -> bool:
        """Tell whether there is something else beside the axes."""
        return False

    def _legend_entries(self) -> tuple[list[Any], list[str], str | None]:
        """Return handles, labels and title: what several curves have in common is the title.

        Narrow axes have no entry for reference lines.
        """
        handles, labels = self.ax_.get_legend_handles_labels()
        found = [_CURVES[handle] for handle in handles if handle in _CURVES]
        narrow = self._characters() < NARROW
        if narrow or len(found) > 1:
            # Of the rest, reference lines alone are worth their place on wide axes.
            kept = [h in _CURVES or (h in self.ax_.lines and not narrow) for h in handles]
            handles, labels = list(compress(handles, kept)), list(compress(labels, kept))
        elif found and self._has_room_beside():
            labels = [
                "\n".join([label, *_CURVES[handle].details]) if handle in _CURVES else label
                for handle, label in zip(handles, labels)
            ]
        measures = {curve.what for curve in found}
        common = len(found) > 1 and len(measures) == 1 and "" not in measures
        # On narrow axes more than three names get a line each, unless they differ in the measure.
        one_line = narrow and len(found) > 3 and len(measures) == 1
        if not (common or one_line):
            return handles, labels, None
        # There the font is smaller than that in which letters are counted.
        width = min(int(self._characters() * (1.3 if one_line else 2 / 3)), 44 if one_line else 32)
        # From here on there is one measure, or none: the title has its name, every entry a value.
        for i, handle in enumerate(handles):
            if handle in _CURVES:
                name, _, value, _ = _CURVES[handle]
                tail = f": {value}" if name and value else value
                n_lines = 1 if one_line else 2
                labels[i] = plain_text(name, width=width, n_lines=n_lines, tail=tail)
        title = plain_text(measures.pop(), width=width, tail=":") if common else None
        return handles, labels, title

    def _has_room_above(self, n_lines: int) -> bool:
        """Tell whether a layout may take as many lines, of 0.12 inches, from the axes."""
        if self.figure_.get_layout_engine() is None:
            return False
        return bool(0.12 * n_lines * self.figure_.dpi < 0.4 * self.figure_.bbox.height)

    def _has_room_beside(self) -> bool:
        """Tell whether a layout makes room, or square axes on the left leave 2 inches."""
        if self.figure_.get_layout_engine() is not None:
            return True
        box = self.ax_.get_position(original=True)
        pixels = box.width * self.figure_.bbox.width
        # Height over width, where it is set: of the widths that fit, the smaller one is drawn.
        aspect = self.ax_.get_box_aspect()
        if aspect is not None:
            pixels = min(pixels, box.height * self.figure_.bbox.height / aspect)
        free = (1 - box.x0) * self.figure_.bbox.width - pixels
        return self.figure_.axes == [self.ax_] and bool(free > 2 * self.figure_.dpi)

    def _emptiest_corner(self) -> str:
        self.ax_.get_xlim(), self.ax_.get_ylim()  # bring the limits up to date
        to_axes = self.ax_.transData + self.ax_.transAxes.inverted()
        hidden = dict.fromkeys(CORNERS, 0.0)
        for line in self.ax_.lines:
            if line in _CURVES:
                vertices = np.asarray(line.get_xydata(), dtype=np.float64)
                points = _along(to_axes.transform(vertices))
                for corner, (right, top) in CORNERS.items():
                    # About the size of a legend of three entries, in fractions of the axes.
                    inside = (np.abs(points - (right, top)) < (0.65, 0.35)).all(axis=1)
                    hidden[corner] += inside.mean()
        # Of equally empty corners the first, which CORNERS prefers.
        return min(hidden, key=hidden.__getitem__)


def _along(vertices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return some 1000 points along the line through `vertices`."""
    # As many points on every segment, whatever its length.
    place = np.linspace(0, len(vertices) - 1, 1000)
    number = np.arange(len(vertices))
    return np.column_stack([np.interp(place, number, axis) for axis in vertices.T])
