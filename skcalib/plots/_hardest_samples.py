"""The hardest and the easiest samples of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..difficulty import score_difficulty
from ..utils._arrays import as_array, as_floats, check_same_length
from ..utils._output import (
    get_row_index,
    open_image,
    take_sample,
)
from ._base import COLORS, NARROW, THIN, BaseDisplay, escape_text, reword_keyword_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Letters between two columns, and letters of the note on columns that have no room.
GAP, NOTE = 2, 9
# Fewest letters of a column, and the number of monospaced letters in the width of one counted.
SHORTEST, MONOSPACE = 8, 0.9
# All in inches. Width of a table, room around the two, and height of their lines: usual and least.
TABLE_WIDTH, TABLE_ROOM, TABLE_LINE, LEAST_LINE = 8.0, 0.6, 0.22, 0.18
# Width of an image, and the least and the largest height; heights of a title and a caption's line.
IMAGE_WIDTH, LOWEST, HIGHEST, TITLE, CAPTION = 1.1, 0.6, 3.0, 0.4, 0.15


@dataclass(repr=False, eq=False)
class HardestSamplesDisplay(BaseDisplay):
    """The hardest samples above, the easiest below: images in a grid, texts and rows in tables.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. Every sample comes with
    its label, its name in the index of a DataFrame or Series or else its number, its difficulty,
    and its suggested label where the two labels differ. No sample is shown twice.

    Parameters
    ----------
    samples : sequence of n_samples images, texts or rows of a table
        Images are arrays of shape (height, width) or (height, width, channels), or PIL images;
        a DataFrame or an array of shape (n_samples, n_features) is a table.
    difficulty : ndarray of shape (n_samples,)
        Difficulty of each, larger = harder.
    labels : ndarray of shape (n_samples,), default=None
        Written above the samples.
    suggested_labels : ndarray of shape (n_samples,), default=None
        Written after the label if the two differ.
    name : str, default=None
        Title of the grid.

    Attributes
    ----------
    hardest_ : ndarray of shape (n_shown,)
        Numbers of the samples shown above, hardest first.
    easiest_ : ndarray of shape (n_shown,) or (n_shown - 1,)
        Numbers of the samples shown below, easiest first.
    axes_ : ndarray of matplotlib Axes of shape (2, n_shown) or (2, 1)
        Axes of the images, or of the two tables.
    ax_, figure_ : matplotlib Axes and Figure
        Axes whose place the grid takes, and the figure.

    See Also
    --------
    DifficultyDisplay : Error rate against difficulty.
    skcalib.labels.LabelIssueFinder : Suggests labels.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skcalib.difficulty import RelativeMahalanobisScorer
    >>> from skcalib.plots import HardestSamplesDisplay
    >>> digits = load_digits()
    >>> scorer = RelativeMahalanobisScorer().fit(digits.data, digits.target)
    >>> display = HardestSamplesDisplay.from_estimator(
    ...     scorer, digits.data, digits.target, samples=digits.images, n_columns=5
    ... )
    >>> display.axes_.shape
    (2, 5)
    """

    samples: Any
    difficulty: NDArray[np.floating]
    _: KW_ONLY
    labels: NDArray[Any] | None = None
    suggested_labels: NDArray[Any] | None = None
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        samples: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Score samples and show the hardest and easiest.

        Parameters
        ----------
        estimator : difficulty scorer or Pipeline that ends in one
            Fitted.
        X : array-like or sequence of n_samples samples
            What the scorer takes.
        y : array-like of shape (n_samples,), default=None
            Labels; written above the samples. None shows the label-free difficulty.
        samples : sequence of n_samples images, texts or rows of a table, default=None
            What is shown. None takes `X`.
        name : str, default=None
            Title of the grid.
        **kwargs : dict
            Passed to :meth:`from_predictions`.

        Returns
        -------
        display : HardestSamplesDisplay
            The display, plotted.
        """
        samples = X if samples is None else samples
        difficulty = score_difficulty(estimator, X, y)
        return cls.from_predictions(samples, difficulty, labels=y, name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        samples: Any,
        difficulty: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        suggested_labels: ArrayLike | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Show the hardest and easiest of samples that have been scored.

        Parameters
        ----------
        samples, labels, suggested_labels, name : of :class:`HardestSamplesDisplay`
        difficulty : array-like of shape (n_samples,)
            Difficulty, larger = harder. NaN, where a scorer has no answer, is not shown.
        **kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        display : HardestSamplesDisplay
            The display, plotted.
        """
        scores = as_floats(difficulty, name="difficulty").astype(np.float64, copy=False)
        if scores.ndim != 1 or not np.isfinite(scores).any():
            raise ValueError(
                "difficulty must be 1-D and have a finite value, got "
                f"{np.isfinite(scores).sum()} of them in shape {scores.shape}."
            )
        names: dict[str, Any] = {"labels": labels, "suggested_labels": suggested_labels}
        given = {key: as_array(x, name=key) for key, x in names.items() if x is not None}
        for key, array in given.items():
            if array.ndim != 1:
                raise ValueError(f"{key} must have shape (n_samples,), got {array.shape}.")
        check_same_length(samples=samples, difficulty=scores, **given)
        shape = np.shape(_take_sample(samples, 0))
        if len(shape) > 3 or (not shape and not isinstance(_take_sample(samples, 0), str)):
            raise ValueError(
                "samples must be texts, rows of a table or images of shape (height, width) or "
                f"(height, width, channels), got one of shape {shape}."
            )
        return cls(samples, scores, **given, name=name).plot(**kwargs)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        n_columns: int | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the grid; return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes whose place the grid takes. None makes new ones.
        name : str, default=None
            Title of the grid. None takes the name of the display.
        n_columns : int, default=None
            Number of samples in each row of images, or lines of each table, fewer where there are
            not twice as many. None shows up to eight, as many as there is room for.
        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.imshow`; only for images.

        Returns
        -------
        display : HardestSamplesDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        whole = isinstance(n_columns, Integral) and not isinstance(n_columns, bool)
        if n_columns is not None and not (whole and n_columns >= 1):
            raise ValueError(f"n_columns must be an int of at least 1 or None, got {n_columns!r}.")
        images = np.ndim(_take_sample(self.samples, 0)) > 1
        if kwargs and not images:
            raise TypeError(f"samples must be images for options of imshow, got {list(kwargs)}.")
        # Easiest first; the sort is stable, so ties stand in the order of the samples.
        known = np.flatnonzero(np.isfinite(self.difficulty))
        order = known[np.argsort(self.difficulty[known], kind="stable")]
        # With an odd number of samples, the middle one counts among the hardest.
        n_shown = min(n_columns or 8, (len(order) + 1) // 2)
        title = self._open_axes(ax, name, figsize=self._choose_grid_size(n_shown))
        if n_columns is None:
            # An image takes ten letters. A table takes half of the height, less a line of names.
            room = (
                self._count_letters() // 10 if images else int(self._inches() / 2 / LEAST_LINE) - 1
            )
            n_shown = min(n_shown, max(1, room))
        self.hardest_, self.easiest_ = order[::-1][:n_shown], order[: len(order) // 2][:n_shown]
        if images:
            self._draw_images(n_shown, title, kwargs)
        else:
            self._draw_tables(title)
        for first, label in zip(self.axes_[:, 0], ("hardest", "easiest")):
            first.set_ylabel(label, fontsize="small")
        return self

    def _draw_images(self, n_shown: int, title: str, kwargs: dict[str, Any]) -> None:
        captions = self._write_captions(self._count_letters() // n_shown)
        n_lines = max(caption.count("\n") for caption in captions.values()) + 1
        self.axes_ = self._open_rows(n_shown, n_lines, title)
        for row, numbers in zip(self.axes_, (self.hardest_, self.easiest_)):
            for ax in row[len(numbers) :]:
                ax.set_axis_off()
            for ax, number in zip(row, numbers):
                ax.set(xticks=[], yticks=[], anchor="N")
                with reword_keyword_errors(self):
                    ax.imshow(_take_sample(self.samples, number), **{"cmap": "gray_r", **kwargs})
                caption = ax.set_title(captions[number], fontsize="small", pad=3)
                caption.set_in_layout(False)
                if ", rather " in self._label_of(number):
                    caption.set_color(COLORS[1])

    def _draw_tables(self, title: str) -> None:
        self.axes_ = self._open_rows(1, 0, title)
        both = np.concatenate([self.hardest_, self.easiest_])
        difficulties = dict(zip(both, format_distinct(self.difficulty[both])))
        for ax, numbers in zip(self.axes_[:, 0], (self.hardest_, self.easiest_)):
            if not len(numbers):
                ax.set_axis_off()
                continue
            labels = [self._label_of(number) for number in numbers]
            columns = [("#", [self._name_of(number) for number in numbers])]
            # The first column to go where room is scarce: the order shows the difficulty already.
            if self._count_characters() >= NARROW:
                columns.append(("difficulty", [difficulties[number] for number in numbers]))
            if any(labels):
                columns.append(("label", labels))
            columns += make_columns([_take_sample(self.samples, number) for number in numbers])
            ax.set(xticks=[], yticks=[], ylim=(len(numbers) + 1, 0))
            ax.axhline(1, color=ax.spines["left"].get_edgecolor(), linewidth=THIN)
            lines = align_lines(columns, int(MONOSPACE * self._count_letters()) - 2)
            for line, (text, label) in enumerate(zip(lines, ["", *labels])):
                style = {"color": COLORS[1]} if ", rather " in label else {}
                ax.text(
                    0.01, line + 0.5, escape_text(text), va="center", size="small",
                    family="monospace", **style,
                ).set_in_layout(False)  # fmt: skip

    def _count_letters(self) -> int:
        """Return how many letters of the small font go along the grid."""
        # `_characters` counts in matplotlib's medium font, 1.2 times the small one.
        return int(1.2 * self._count_characters())

    def _choose_grid_size(self, n_shown: int) -> tuple[float, float]:
        shape = np.shape(_take_sample(self.samples, 0))
        if len(shape) < 2:
            return TABLE_WIDTH, 2 * TABLE_LINE * (n_shown + 1) + TABLE_ROOM
        height = min(max(IMAGE_WIDTH * shape[0] / shape[1], LOWEST), HIGHEST)
        # A tenth of the width is between the images, and four lines of captions above each.
        width = max(1.1 * IMAGE_WIDTH * n_shown, 2.0)
        return width + TITLE, 2 * (height + 4 * CAPTION) + TITLE

    def _open_rows(self, n_columns: int, n_lines: int, title: str) -> NDArray[Any]:
        """Return the axes of the samples, in the place of `ax_`.

        Captions are wider than small images, and a layout that made room for them would leave none
        for the images. So they are not part of it: rows of the grid are left free for them.
        """
        # Never 0: the constrained layout divides by it.
        top, caption = TITLE if title else 0.01, max(CAPTION * n_lines, 0.05)
        image = max((self._inches() - top) / 2 - caption, 0.2)
        heading = escape_text(title, width=self._count_characters())
        heights = [top, caption, image, caption, image]
        grid = self._open_grid(n_columns, heights, heading, size="medium", wspace=0.1, hspace=0)
        rows = [[self.figure_.add_subplot(grid[r, c]) for c in range(n_columns)] for r in (2, 4)]
        return np.array(rows)

    def _write_captions(self, width: int) -> dict[int, str]:
        """Return label, number and difficulty of every sample that is shown."""
        numbers = np.concatenate([self.hardest_, self.easiest_])
        captions = {}
        for number, difficulty in zip(numbers, format_caption_numbers(self.difficulty[numbers])):
            name = escape_text(f"#{self._name_of(number)}", width=width)
            line = f"{name}: {difficulty}"
            caption = line if len(line) <= width else f"{name}\n{difficulty}"
            label = self._label_of(number)
            text = f"{escape_text(label, width=width)}\n" if label else ""
            captions[number] = text + caption
        return captions

    def _name_of(self, number: int) -> str:
        """Return the name of a sample in the index of the samples, else its number."""
        index = get_row_index(self.samples)
        return str(number if index is None else index[number])

    def _label_of(self, number: int) -> str:
        """Return the label of a sample and, where it is another one, the suggested label."""
        values = (self.labels, self.suggested_labels)
        given = dict.fromkeys(str(array[number]) for array in values if array is not None)
        return ", rather ".join(given)


def _take_sample(samples: Any, number: int) -> Any:
    """Return a sample by position: a text, a row, or the pixels of an image."""
    sample = take_sample(samples, number)
    if hasattr(sample, "toarray"):  # a sparse row
        return sample.toarray()[0]
    if isinstance(sample, PurePath) or hasattr(sample, "thumbnail"):
        return np.asarray(open_image(sample, extra="report").convert("RGB"))
    return sample


def format_distinct(values: NDArray[np.floating]) -> list[str]:
    """Return numbers with three digits, or with up to seven where fewer make them equal."""
    # More than seven would run into the next caption. With too few digits, "g" writes 1234 as
    # 1.23e+03; only numbers from a million on keep that form.
    n_values, large = len(np.unique(values)), np.abs(values).max() >= 1e6
    for digits in range(3, 8):
        texts = [f"{value:.{digits}g}" for value in values]
        if len(set(texts)) == n_values and (large or not any("e+" in text for text in texts)):
            break
    return texts


def format_caption_numbers(values: NDArray[np.floating]) -> list[str]:
    """Return what `format_distinct` does; positive numbers that are tiny beside others as "<"."""
    largest = float(np.abs(values).max())
    tiny = 10.0 ** (np.floor(np.log10(largest)) - 2) if largest else 0.0
    texts = zip(values, format_distinct(values))
    return [f"<{tiny:g}" if 0 < v < tiny and "e-" in text else text for v, text in texts]


def make_columns(samples: Sequence[Any]) -> list[tuple[str, list[str]]]:
    """Return the texts as one column, the rows of a table as a column for every feature."""
    if isinstance(samples[0], str):
        return [("text", [" ".join(text.split()) for text in samples])]
    names = get_row_index(samples[0])  # a list has a method of the name index
    names = range(len(samples[0])) if names is None else names
    return [
        (str(name), [_format_number(row) for row in column])
        for name, column in zip(names, zip(*samples))
    ]


def _format_number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float | np.floating) else str(value)


def align_lines(columns: list[tuple[str, list[str]]], n_letters: int) -> list[str]:
    """Return the names and the entries of the columns as lines of at most `n_letters`.

    Columns that do not fit are counted. The last one is cut to the room that is left.
    """
    lines = [""] * (1 + len(columns[0][1]))
    longest = max(n_letters // 4, SHORTEST)
    for i, (name, entries) in enumerate(columns):
        room, last = n_letters - len(lines[0]), i == len(columns) - 1
        # A long name does not make a column wide.
        width = min(max(len(name[: longest // 2]), *map(len, entries)), longest)
        # A column before the last leaves room for the note.
        if room < SHORTEST if last else width + GAP + NOTE > room:
            lines[0] += f"+ {len(columns) - i} more"
            break
        width = room if last else width
        texts = [c if len(c) <= width else f"{c[: width - 2]}.." for c in (name, *entries)]
        lines = [line + text.ljust(width + GAP) for line, text in zip(lines, texts)]
    return lines
