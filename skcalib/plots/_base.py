"""Parts shared by all displays: axes, colors, reference lines, legends and clouds of points."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._output import import_optional, rename_argument

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D


# Parts shared by all displays: axes, colors, reference lines, titles and legends.

# Okabe and Ito's colors, distinct for color-blind readers, without black and yellow, which vanish
# on dark and light backgrounds. With one more marker, pairs repeat only after 42 curves.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Dark backgrounds get the lighter blue first, and yellow in place of the darker one.
DARK_COLORS = ("#56B4E9", *COLORS[1:5], "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# No line goes through means of fewer samples: they are mostly chance.
FEW = 10
# Artists of more points are drawn as pixels, also in vector graphics, which would grow too large.
MANY_POINTS = 5000
# Letters that fit along axes 3.8 inches wide. Narrower axes have no room for a legend beside them,
# and their legend lists the curves alone.
NARROW = 50
# Height of the axes below a diagram and their distance from it, as fractions of its height.
BELOW_HEIGHT, BELOW_GAP = 0.18, 0.06
# Styles of bars, thin lines, the background of a text among points, and bands.
BARS = {"fmt": "none", "elinewidth": 1, "capsize": 2}
THIN = 0.8
GROUND = {"alpha": 0.8, "lw": 0, "pad": 1}
BAND, DARK_BAND = {"alpha": 0.2, "linewidth": 0}, {"alpha": 0.35, "linewidth": 0}


def escape_text(text: Any, *, width: int | None = None, n_lines: int = 2, tail: str = "") -> str:
    """Return `text` and `tail` so that matplotlib shows every letter as it is.

    A dollar sign starts no formula, and a leading underscore hides no entry of a legend. With
    `width`, the text is wrapped and cut after `n_lines` lines, where it ends in "...".
    """
    shown = str(text)
    if width is not None:
        width = max(width, 8)
        room = max(width * n_lines - len(tail), 8)
        # Words that are not broken leave the ends of lines free, so fewer letters may fit.
        while True:
            short = shown if len(shown) <= room else shown[: room - 3] + "..."
            lines = textwrap.wrap(short + tail, width, break_on_hyphens=False)
            if len(lines) <= n_lines or room == 8:
                break
            room -= 1
        shown = "\n".join(lines)
    else:
        shown += tail
    shown = shown.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def is_dark(ax: Axes) -> bool:
    """Return whether the background of the axes is dark."""
    colors = import_optional("matplotlib.colors", extra="plots")
    *rgb, alpha = colors.to_rgba(ax.get_facecolor())
    return bool(alpha > 0.5 and sum(rgb) < 1.5)


@contextmanager
def reword_keyword_errors(display: object) -> Iterator[None]:
    """Raise a TypeError that names the display if matplotlib rejects a keyword."""
    try:
        yield
    except AttributeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        name = type(display).__name__
        raise TypeError(f"{name} has no such option, nor has matplotlib: {error}.") from error


class Curve(NamedTuple):
    """Texts on a line, for title and legend; a `label` of the user takes precedence."""

    name: str
    what: str
    value: str
    title: str
    label: str | None

    def entry(self, common: str = "", n_lines: int = 2, width: int = 32) -> str:
        """Return the entry of a legend, whose title is what all curves have in `common`."""
        if self.label is not None:
            return self.label
        measure = self.value if common else ": ".join(filter(None, (self.what, self.value)))
        tail = f": {measure}" if self.name and measure else measure
        return escape_text(self.name, width=width, n_lines=n_lines, tail=tail)


# The curve of each line, which later displays on the same axes look up.
_CURVES: WeakKeyDictionary[Line2D, Curve] = WeakKeyDictionary()


class BaseDisplay:
    """Base of the displays.

    A subclass defines `_draw` or, where its `plot` has options of its own, `plot`, which calls
    `_open_axes` first.
    """

    name: str | None = None
    ax_: Axes
    figure_: Figure | SubFigure
    # Width and height of a new figure in inches; None for matplotlib's.
    _figure_size: tuple[float, float] | None = None

    def plot(self, *, ax: Axes | None = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; a new figure by default.
        name : str, default=None
            Name in the title or in the legend, by default that of the display.
        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot` for lines and dots, and to
            :meth:`matplotlib.axes.Axes.scatter` for maps. Without them, a map draws more than
            20 000 samples as the means of small cells, the fainter the fewer samples they hold.

        Returns
        -------
        display : display of this class
            The display itself.
        """
        with reword_keyword_errors(self):
            self._draw(self._open_axes(ax, name, figsize=self._figure_size), kwargs)
        return self

    def _draw(self, name: str, kwargs: dict[str, Any]) -> None:
        """Draw on `ax_`; `name` is "" for none."""
        raise NotImplementedError

    def _measure(self) -> tuple[str, str]:
        """Return name and value of the number that the display shows, each "" for none."""
        return "", ""

    def _details(self) -> list[str]:
        """Return further items for the title of wide axes."""
        return []

    def __repr__(self) -> str:
        parts = [repr(self.name) if self.name else "", ": ".join(filter(None, self._measure()))]
        return f"{type(self).__name__}({', '.join(filter(None, parts))})"

    def _open_axes(
        self, ax: Axes | None, name: str | None, *, figsize: tuple[float, float] | None = None
    ) -> str:
        """Set `ax_` and `figure_`, and return the name to show, "" for none."""
        pyplot = import_optional("matplotlib.pyplot", extra="plots")
        for given in (name, self.name):
            if not (given is None or isinstance(given, str)):
                raise TypeError(f"name must be a str or None, got {given!r}.")
        if ax is None:
            ax = pyplot.subplots(layout="constrained", figsize=figsize)[1]
        elif not isinstance(ax, pyplot.Axes):
            raise TypeError(f"ax must be a matplotlib Axes or None, got {ax!r}.")
        elif ax.figure is None:
            raise ValueError("ax must be part of a figure, got Axes removed from theirs.")
        self.ax_, self.figure_ = ax, ax.figure
        return name or self.name or ""

    def _count_characters(self, *, vertical: bool = False) -> int:
        """Return how many letters of an axis label fit along the axes, before any layout."""
        box, figure = self.ax_.get_position(original=True), self.figure_.bbox
        pixels = box.height * figure.height if vertical else box.width * figure.width
        font_size = self.ax_.xaxis.label.get_fontproperties().get_size_in_points()
        # An inch has 72 points; a letter is about 0.55 times as wide as its font is high.
        return int(72 * pixels / self.figure_.dpi / (0.55 * font_size))

    def _inches(self) -> float:
        """Return the height of the axes, before any layout."""
        pixels = self.ax_.get_position(original=True).height * self.figure_.bbox.height
        return float(pixels / self.figure_.dpi)

    def _open_grid(
        self, n_columns: int, heights: list[float], heading: str, *, size: str, **spacing: float
    ) -> Any:
        """Return a grid in the place of `ax_`, with rows of `heights`: first the heading."""
        spec = self.ax_.get_subplotspec()
        if spec is None:
            raise ValueError("ax must be part of a grid of subplots, got one placed by hand.")
        self.ax_.set_axis_off()
        grid = spec.subgridspec(len(heights), n_columns, height_ratios=heights, **spacing)
        if heading:
            place: Any = {"ha": "center", "va": "top", "transform": self.ax_.transAxes}
            # Not in axes of its own, for which matplotlib before 3.11 reserves ever more room. The
            # grid has room for the text: a layout need not reserve it again.
            self.ax_.text(0.5, 1, heading, size=size, **place).set_in_layout(False)
        return grid

    def _draw_curve(
        self, x: Any, y: Any, name: str, kwargs: dict[str, Any], **defaults: Any
    ) -> Line2D:
        """Draw a line in the next color, with the next marker; `kwargs` take precedence."""
        cbook = import_optional("matplotlib.cbook", extra="plots")
        lines = import_optional("matplotlib.lines", extra="plots")
        # `c` becomes `color` and so on: with both forms of one option matplotlib raises.
        given = cbook.normalize_kwargs(kwargs, lines.Line2D)
        what, value = self._measure()
        # Letters are counted in the font of the axis labels; that of the title is smaller.
        width, wide = int(1.2 * self._count_characters()), self._count_characters() >= NARROW
        facts = ": ".join(filter(None, (what, value)))
        if wide:
            # Lines break between two facts, not within one.
            facts = ", ".join(filter(None, [facts, *self._details()]))
            facts = facts.replace(" ", "\N{NO-BREAK SPACE}").replace(",\N{NO-BREAK SPACE}", ", ")
        parts = [escape_text(part, width=width, n_lines=4) for part in (name, facts) if part]
        title = "\n".join(parts).replace("\N{NO-BREAK SPACE}", " ")
        curve = Curve(name, what, value, title, given.get("label"))
        # Reference lines and the user's own lines use up no color.
        number, colors = len(self._find_curves()), self._colors()
        style = {
            "color": colors[number % len(colors)],
            "marker": MARKERS[number % len(MARKERS)],
            "markersize": 5,
            "rasterized": len(x) > MANY_POINTS,
            # For None, matplotlib makes up a label that starts with "_": no legend shows it.
            "label": curve.entry() or None,
        }
        with reword_keyword_errors(self):
            line: Line2D = self.ax_.plot(x, y, **{**style, **defaults, **given})[0]
        _CURVES[line] = curve
        return line

    def _find_curves(self) -> dict[Line2D, Curve]:
        """Return the lines on the axes that displays have drawn, without the user's."""
        return {line: _CURVES[line] for line in self.ax_.lines if line in _CURVES}

    def _colors(self) -> tuple[str, ...]:
        """Return the colors of curves, which are visible on the background of the axes."""
        return DARK_COLORS if is_dark(self.ax_) else COLORS

    def _draw_band(self, x: Any, lower: Any, upper: Any, **options: Any) -> None:
        """Fill between the ends of a band."""
        style: dict[str, Any] = {**(DARK_BAND if is_dark(self.ax_) else BAND)}
        style["rasterized"] = len(x) > MANY_POINTS
        self.ax_.fill_between(x, lower, upper, **{**style, **options})

    def _draw_bars(
        self, x: Any, y: Any, lower: Any, upper: Any, line: Line2D, **options: Any
    ) -> None:
        """Draw an interval of every point in the color of its line."""
        # Rounding may put an end on the wrong side of its point. One array: of two with one point,
        # matplotlib 3.8 warns.
        ends = np.clip([y - lower, upper - y], 0, None)
        style: dict[str, Any] = {**BARS, "ecolor": line.get_color()}
        self.ax_.errorbar(x, y, yerr=ends, **style, **options)

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
            # Without a layout, the room below is taken from the axes.
            box = self.ax_.get_position(original=True)
            # The inset is measured in heights of the diagram: height * (1 + bottom) fills the box.
            height = box.height / (1 + bottom)
            self.ax_.set_position((box.x0, box.y1 - height, box.width, height))
        else:
            # A layout measures the room below from the bottom of the cell, so a square stands on
            # it: one in the middle would have its labels cut off.
            self.ax_.set_anchor("S")
        below = self.ax_.inset_axes((0, -bottom, 1, BELOW_HEIGHT), sharex=self.ax_, label=label)
        below.set_ylabel("Count", fontsize="small")
        ticker = import_optional("matplotlib.ticker", extra="plots")
        below.yaxis.set_major_locator(ticker.MaxNLocator(2, integer=True))
        below.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))
        # The shared x axis has its label and numbers below.
        self.ax_.tick_params(labelbottom=False)
        return below, True

    def _explain(self) -> None:
        """Describe one curve in the title, several in a legend.

        A title of the user stays. Other artists with a label, such as a band, join the legend.
        """
        curves = self._find_curves()
        if self.ax_.get_title() in {"", *(curve.title for curve in curves.values())}:
            title = next(iter(curves.values())).title if len(curves) == 1 else ""
            self.ax_.set_title(title, fontsize="small")
        narrow, several = self._count_characters() < NARROW, len(curves) > 1
        what = {curve.what for curve in curves.values()}
        common = what.pop() if several and len(what) == 1 else ""
        n_lines, width = (1, 32) if narrow else (2, 32) if len(curves) < 4 else (3, 24)
        entries: dict[Any, str] = {
            line: curve.entry(common, n_lines, width)
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
        free = not narrow or not self.ax_.get_title()
        if len(entries) > 3 and free and self.figure_.get_layout_engine() is not None:
            # The layout makes room above narrow axes, and beside others.
            options |= {"loc": "lower left", "bbox_to_anchor": (0, 1.02), "borderaxespad": 0}
            options["labelspacing"] = 0.2
            if not narrow:
                options |= {"loc": "upper left", "bbox_to_anchor": (1.02, 1)}
                # A square leaves the room to the legend.
                self.ax_.set_anchor("SW")
            self.ax_.legend(entries.keys(), entries.values(), **options)
        else:
            # Among very many points, the best place takes long to find.
            many = any(len(np.asarray(line.get_xdata())) > MANY_POINTS for line in curves)
            options["loc"] = "upper left" if many else "best"
            # A layout would shrink the axes for a legend that is wider than they are.
            self.ax_.legend(entries.keys(), entries.values(), **options).set_in_layout(False)


class PredictionDisplay(BaseDisplay):
    """Base of the displays of predictions of a fitted estimator."""

    @classmethod
    @rename_argument("y_true", "y")
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Plot the predictions of a fitted estimator.

        Parameters
        ----------
        estimator : object
            Fitted classifier with `predict_proba`, or the estimator that the display names
            instead.
        X : array-like of shape (n_samples, n_features)
            Input.
        y : array-like of shape (n_samples,)
            True labels.
        name : str, default=None
            Name in the title, by default that of the class of the estimator.
        **kwargs : dict
            Passed to :meth:`from_predictions`.

        Returns
        -------
        display : display of this class
            The display, plotted.
        """
        name = type(estimator).__name__ if name is None else name
        predictions = cls._predictions(estimator, X, y, kwargs)
        return cls.from_predictions(  # type: ignore[attr-defined]
            y, name=name, **predictions, **kwargs
        )

    @classmethod
    def _predictions(
        cls, estimator: Any, X: Any, y: ArrayLike, options: dict[str, Any]
    ) -> dict[str, Any]:
        """Return arguments of `from_predictions` from the estimator; may complete `options`."""
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"estimator must have predict_proba, got {type(estimator).__name__}; inside a "
                "skcalib.posthoc.PostHocCalibratedClassifier it has."
            )
        return {"y_proba": estimator.predict_proba(X), "labels": estimator.classes_}


# Clouds of points colored by a number, with a color bar beside the axes.

COLOR_BAR = "color bar"
# More points hide each other: bins show their mean instead, the fainter the fewer samples.
MANY_COLORS = 20_000
N_CELLS = 80
# From easy to hard: the hardest samples differ most from the background.
SHADES = ("#CCCCCC", "#E69F00", "#D55E00", "#8B1A00")
DARK_SHADES = ("#555555", "#D55E00", "#E69F00", "#FFF3B0")


def choose_point_style(n_points: int) -> dict[str, Any]:
    """Return the size and opacity that keep so many points visible."""
    return {
        "s": 24 if n_points <= 300 else 8 if n_points <= MANY_POINTS else 3,
        "alpha": 0.8,
        "linewidths": 0,
        "rasterized": n_points > MANY_POINTS,
    }


def choose_opacity(
    counts: NDArray[np.floating], of_all: NDArray[np.floating]
) -> NDArray[np.floating]:
    """Return the opacity of bins: less for fewer samples."""
    # A few bins may hold far more samples than all others.
    most = np.quantile(of_all, 0.99)
    return 0.15 + 0.85 * np.minimum(counts / most, 1) ** 0.3


def draw_points(
    ax: Axes,
    position: NDArray[np.floating],
    values: NDArray[np.floating] | None,
    *,
    label: str,
    limits: tuple[float, float],
    hard_is_low: bool = False,
    **kwargs: Any,
) -> Any:
    """Draw points (n, 2) from gray (easy) to red (hard), or in blue without `values`.

    More than MANY_COLORS are drawn as means of bins, unless there are options for points.
    `limits` are the values at the two ends of the colors.
    """
    # In a random order, the same every time: no part of the samples covers another.
    order = np.random.default_rng(0).permutation(len(position))
    x, y = position[order].T
    style = choose_point_style(len(x))
    if values is None:
        color = DARK_COLORS[0] if is_dark(ax) else COLORS[0]
        return ax.scatter(x, y, **{**style, "color": color, **kwargs})
    colors = import_optional("matplotlib.colors", extra="plots")
    shades = DARK_SHADES if is_dark(ax) else SHADES
    shades = colors.LinearSegmentedColormap.from_list(
        "easy to hard", shades[::-1] if hard_is_low else shades
    )
    mapping = {"cmap": shades, "norm": colors.Normalize(*limits)}
    if len(x) > MANY_COLORS and not kwargs:
        # Without mincnt, matplotlib 3.8.0 takes means of empty bins as well.
        grid: Any = {"gridsize": N_CELLS, "mincnt": 1}
        points: Any = ax.hexbin(x, y, C=values[order], linewidths=0.2, **grid, **mapping)
        # The same bins once more, for the number of samples in each.
        counted: Any = ax.hexbin(x, y, **grid)
        counts = np.asarray(counted.get_array())
        points.set_alpha(choose_opacity(counts, counts))
        counted.remove()
    else:
        points = ax.scatter(x, y, **{"c": values[order], **style, **mapping, **kwargs})
    _draw_color_bar(ax, points, label, values)
    return points


def _draw_color_bar(ax: Axes, points: Any, label: str, values: NDArray[np.floating]) -> None:
    # An inset moves with the axes, whatever the layout, and is replaced by a second display.
    for inset in [a for a in ax.child_axes if a.get_label() == COLOR_BAR]:
        inset.remove()
    beside = ax.inset_axes((1.03, 0, 0.04, 1), label=COLOR_BAR)
    low, high = points.get_clim()
    # A triangle where values lie beyond the colors.
    beyond = int(values.min() < low) + 2 * int(values.max() > high)
    extend = ("neither", "min", "max", "both")[beyond]
    bar: Any = ax.figure.colorbar(points, cax=beside, extend=extend)
    bar.solids.set_alpha(1)
    bar.set_label(label)
