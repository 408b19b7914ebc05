"""Clouds of points colored by a number, with a color bar beside the axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..utils.meta._optional import import_optional
from ._base import COLORS, DARK_COLORS, MANY_POINTS, is_dark

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOR_BAR = "color bar"
# More points hide each other: cells show their mean instead, the fainter the fewer samples.
MANY_COLORS = 20_000
N_CELLS = 80
# From easy to hard: the hardest samples differ most from the background.
SHADES = ("#CCCCCC", "#E69F00", "#D55E00", "#8B1A00")
DARK_SHADES = ("#555555", "#D55E00", "#E69F00", "#FFF3B0")


def point_style(n_points: int) -> dict[str, Any]:
    """Return the size and opacity that keep so many points visible."""
    return {
        "s": 24 if n_points <= 300 else 8 if n_points <= MANY_POINTS else 3,
        "alpha": 0.8,
        "linewidths": 0,
        "rasterized": n_points > MANY_POINTS,
    }


def opacity(counts: NDArray[np.floating], of_all: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the opacity of cells: less for fewer samples."""
    # A few cells may hold far more samples than all others.
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

    More than MANY_COLORS are drawn as means of cells, unless there are options for points.
    `limits` are the values at the two ends of the colors.
    """
    # In a random order, the same every time: no part of the samples covers another.
    order = np.random.default_rng(0).permutation(len(position))
    x, y = position[order].T
    style = point_style(len(x))
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
        # Without mincnt, matplotlib 3.8.0 takes means of empty cells as well.
        grid: Any = {"gridsize": N_CELLS, "mincnt": 1}
        points: Any = ax.hexbin(x, y, C=values[order], linewidths=0.2, **grid, **mapping)
        # The same cells once more, for the number of samples in each.
        cells: Any = ax.hexbin(x, y, **grid)
        counts = np.asarray(cells.get_array())
        points.set_alpha(opacity(counts, counts))
        cells.remove()
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
