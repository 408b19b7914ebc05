"""Clouds of points whose color is a number, with a color bar beside the axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..utils import import_optional
from ._base import COLORS, MANY_POINTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOR_BAR = "color bar"
# Above, points of different colors take minutes and hide each other: cells show their means.
MANY_COLORS = 50_000
N_CELLS = 300


def point_style(n_points: int) -> dict[str, Any]:
    """Return size and opacity with which so many points can be told apart."""
    sizes = ((300, 24), (MANY_POINTS, 8), (MANY_COLORS, 3))
    return {
        "s": next((size for limit, size in sizes if n_points <= limit), 1),
        "alpha": 0.7 if n_points <= MANY_COLORS else 0.3,
        "linewidths": 0,
        "rasterized": n_points > MANY_POINTS,
    }


def draw_points(
    ax: Axes,
    position: NDArray[np.floating],
    values: NDArray[np.floating] | None,
    *,
    label: str,
    limits: tuple[float, float, float],
    hard_is_low: bool = False,
    **kwargs: Any,
) -> Any:
    """Draw points (n, 2) from blue (easy) to vermilion (hard), or in blue without `values`.

    Very many are drawn as means of cells, unless there are options for points. `limits` are the
    values of the two ends and of the middle of the colors.
    """
    # In random order, the same every time: no part of the samples covers another.
    order = np.random.default_rng(0).permutation(len(position))
    x, y = position[order].T
    style = point_style(len(x))
    if values is None:
        return ax.scatter(x, y, **{**style, "color": COLORS[0], **kwargs})
    colors = import_optional("matplotlib.colors", extra="plots")
    ends = [COLORS[0], "#BBBBBB", COLORS[1]]
    color_map = colors.LinearSegmentedColormap.from_list(
        "easy to hard", ends[::-1] if hard_is_low else ends
    )
    low, middle, high = limits
    # Half of the colors on either side of the middle, however skewed the values are.
    norm = colors.Normalize(low, high)
    if low < middle < high:
        norm = colors.TwoSlopeNorm(middle, low, high)
    mapping = {"cmap": color_map, "norm": norm}
    if len(x) > MANY_COLORS and not kwargs:
        points = _draw_cells(ax, x, y, values[order], mapping)
    else:
        points = ax.scatter(x, y, **{"c": values[order], **style, **mapping, **kwargs})
    _draw_color_bar(ax, points, label, values)
    return points


def _draw_cells(
    ax: Axes, x: NDArray[Any], y: NDArray[Any], values: NDArray[Any], mapping: dict[str, Any]
) -> Any:
    """Draw the mean value in the cells of a grid; cells without a point stay empty."""
    count, x_edges, y_edges = np.histogram2d(x, y, N_CELLS)
    total = np.histogram2d(x, y, (x_edges, y_edges), weights=values)[0]
    mean = np.ma.masked_array(total / np.maximum(count, 1), mask=count == 0)
    return ax.pcolormesh(x_edges, y_edges, mean.T, rasterized=True, **mapping)


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
