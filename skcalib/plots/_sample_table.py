"""Samples that are texts or rows of a table, a line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..utils._tables import row_index
from ._base import plain_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Letters between two columns, and of the note on columns without room.
GAP, NOTE = 2, 9
# Fewest letters of a column of text; words are narrower than the digits by which room is counted.
SHORTEST, NARROWER = 8, 1.15


class Column(NamedTuple):
    """A column of the table: its name and an entry for every line."""

    name: str
    entries: list[str]

    def width(self, longest: int) -> int:
        """Return how many letters the column takes; a long name does not make it wide."""
        return min(max(max(map(len, self.entries)), min(len(self.name), longest // 2)), longest)


def sample_columns(samples: Sequence[Any]) -> list[Column]:
    """Return the texts as one column, the rows of a table as a column for every feature."""
    if isinstance(samples[0], str):
        return [Column("text", [" ".join(text.split()) for text in samples])]
    names = row_index(samples[0])  # a list has a method of the name index
    n_features = len(samples[0])
    names = range(n_features) if names is None else names
    rows = [[_number(value) for value in sample] for sample in samples]
    return [Column(str(name), [row[i] for row in rows]) for i, name in enumerate(names)]


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float | np.floating) else str(value)


def draw_table(ax: Axes, columns: list[Column], colors: list[Any], n_letters: int) -> None:
    """Draw as many columns as `n_letters` have room for, and say how many are left out.

    The last column takes the room that is left, if it is a text longer than that. `colors` are
    those of the lines, None for the color of text.
    """
    n_lines = len(colors) + 1
    ax.set(xticks=[], yticks=[], xlim=(0, n_letters), ylim=(n_lines, 0))
    ax.axhline(1, color=ax.spines["left"].get_edgecolor(), linewidth=0.8)
    longest = max(n_letters // 4, SHORTEST)
    place = 1
    for i, column in enumerate(columns):
        left = n_letters - place - 1
        last = i == len(columns) - 1
        # Unless it is the last, a column leaves room for the note on those that have none.
        width = left if last else column.width(longest)
        if width < SHORTEST if last else place + width + GAP + NOTE > n_letters:
            ax.text(place, 0.5, f"+ {len(columns) - i} more", va="center", size="small")
            return
        lines = zip([column.name, *column.entries], [None, *colors])
        for line, (text, color) in enumerate(lines):
            shown = _cut(text, int(width * NARROWER) if last else width)
            style = {} if color is None else {"color": color}
            ax.text(
                place, line + 0.5, plain_text(shown), va="center", size="small", **style
            ).set_in_layout(False)
        place += width + GAP


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 2, 1)]}.."
