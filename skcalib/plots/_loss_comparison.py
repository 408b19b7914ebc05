"""Scores of several methods over seeds: dots, mean and interval, one row for every method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import ttest_1samp

from ..utils.checking._labels import cut, shown
from ..utils.checking._validation import check_numbers
from ._base import MARKERS, BaseDisplay, plain_text

# Style of the dot of a seed; size and z-order of the marker of a mean.
DOTS = {"markersize": 4, "alpha": 0.5, "linestyle": ""}
MEAN, ABOVE = 9, 3


@dataclass(repr=False, eq=False)
class LossComparisonDisplay(BaseDisplay):
    """Dot plot of the scores of several losses or methods over seeds or folds.

    Use :meth:`from_scores` to create one. Every method has a row, with a dot for every seed, the
    mean and its interval by Student's t; the first method is on top. With a baseline, the dots are
    differences from it, seed by seed: effects of a seed on all methods cancel.

    Parameters
    ----------
    scores : dict of str -> ndarray of shape (n_seeds,)
        Scores of every method, or their differences to the baseline.
    score_name : str, default="Score"
        Name of the scores.
    baseline : str, default=None
        Method that was subtracted from the scores.
    confidence_level : float or None, default=0.95
        Level of the intervals; None draws none.
    name : str, default=None
        Title of the axes.

    Attributes
    ----------
    intervals_ : dict of str -> tuple of two floats
        Interval of the mean of every method with two seeds or more.
    ax_, figure_ : matplotlib Axes and Figure
        Axes of the dots, and the figure.

    See Also
    --------
    DecompositionDisplay : Models by miscalibration and discrimination.
    skcalib.losses.BSCEGRALoss : One of the losses to compare.

    Notes
    -----
    The interval covers the variation of the mean over seeds, on this data set and this split. It
    covers neither another test set nor, for folds of one data set, their dependence.

    Examples
    --------
    >>> from skcalib.plots import LossComparisonDisplay
    >>> display = LossComparisonDisplay.from_scores(
    ...     {"cross-entropy": [0.06, 0.05, 0.07], "focal": [0.03, 0.02, 0.03]},
    ...     score_name="ECE",
    ...     baseline="cross-entropy",
    ... )
    >>> display.scores["focal"].round(2)
    array([-0.03, -0.03, -0.04])
    """

    scores: dict[str, NDArray[np.float64]]
    _: KW_ONLY
    score_name: str = "Score"
    baseline: str | None = None
    confidence_level: float | None = 0.95
    name: str | None = None

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, ArrayLike],
        *,
        score_name: str = "Score",
        baseline: str | None = None,
        confidence_level: float | None = 0.95,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the scores of several methods.

        Parameters
        ----------
        scores : dict of str -> array-like of shape (n_seeds,)
            Scores of every method, in the order of the rows; with a baseline, in the order of the
            same seeds.
        score_name : str, default="Score"
            Name of the scores, such as "ECE".
        baseline : str, default=None
            One of the methods: its scores are subtracted from those of the others.
        confidence_level : float or None, default=0.95
            Level in (0, 1) of the intervals of the means; None draws none.
        name : str, default=None
            Name of the display, which its title or legend shows.
        **kwargs : dict
            Options of :meth:`plot`.

        Returns
        -------
        display : LossComparisonDisplay
            The display, plotted.
        """
        if not isinstance(scores, Mapping) or not scores:
            raise ValueError(f"scores must be a dict of at least one method, got {scores!r}.")
        if confidence_level is not None and not 0 < confidence_level < 1:
            raise ValueError(f"confidence_level must be in (0, 1), got {confidence_level!r}.")
        values = {
            str(key): check_numbers(x, f"scores[{key!r}]", ndim=(1,)).astype(np.float64)
            for key, x in scores.items()
        }
        if baseline is not None:
            if baseline not in values:
                raise ValueError(f"baseline must be one of {shown(values)}, got {cut(baseline)}.")
            reference = values.pop(baseline)
            for key, x in values.items():
                if len(x) != len(reference):
                    raise ValueError(
                        f"scores[{key!r}] must hold as many seeds as the baseline, "
                        f"{len(reference)}, got {len(x)}."
                    )
            values = {key: x - reference for key, x in values.items()}
        return cls(
            values,
            score_name=score_name,
            baseline=baseline,
            confidence_level=confidence_level,
            name=name,
        ).plot(**kwargs)

    @property
    def _figure_size(self) -> tuple[float, float]:  # type: ignore[override]
        return 6.4, 1.2 + 0.45 * max(len(self.scores), 2)

    def _draw(self, name: str, kwargs: dict[str, Any]) -> None:
        self.intervals_: dict[str, tuple[float, float]] = {}
        for row, (method, values) in enumerate(self.scores.items()):
            self._draw_row(row, method, values, kwargs)
        width = self._characters()
        # Names take up to a third of the width, and the more lines the fewer rows there are.
        height = self._characters(vertical=True) // (2 * max(len(self.scores), 1))
        n_lines = min(max(height, 1), 3)
        names = [
            plain_text(method, width=min(width // 3, 24), n_lines=n_lines)
            for method in self.scores
        ]
        self.ax_.set_yticks(range(len(names)), names, size="small" if width < 40 else "medium")
        self.ax_.set_ylim(len(names) - 0.5, -0.5)
        xlabel = self.score_name
        if self.baseline is not None:
            self.ax_.axvline(0, color=self.ax_.xaxis.label.get_color(), linestyle=":")
            xlabel = f"{self.score_name} minus that of {self.baseline}"
        self.ax_.set_xlabel(plain_text(xlabel, width=width * 4 // 5))
        if name:
            # The names of the methods take some of the width.
            self.ax_.set_title(plain_text(name, width=width * 3 // 4))

    def _draw_row(
        self, row: int, method: str, values: NDArray[np.float64], kwargs: dict[str, Any]
    ) -> None:
        colors = self._colors()
        color, marker = colors[row % len(colors)], MARKERS[row % len(MARKERS)]
        # Dots spread around the line of the mean, so that equal ones do not hide each other.
        place = row + 0.25 * np.linspace(-1, 1, len(values)) * (len(values) > 1)
        style = {**DOTS, "color": color, "marker": marker}
        self.ax_.plot(values, place, **{**style, **kwargs})
        mean = values.mean()
        if self.confidence_level is not None and len(values) > 1:
            low, high = _interval(values, self.confidence_level)
            self.intervals_[method] = low, high
            self.ax_.plot([low, high], [row, row], color=color, linewidth=2)
        ground = self.ax_.get_facecolor()
        self.ax_.plot(
            mean, row, color=color, marker=marker, markersize=MEAN, markeredgecolor=ground,
            zorder=ABOVE,
        )  # fmt: skip


def _interval(values: NDArray[np.float64], confidence_level: float) -> tuple[float, float]:
    """Return Student's interval of the mean."""
    if np.ptp(values) == 0:
        # The interval is the mean then, and scipy would warn.
        return float(values[0]), float(values[0])
    low, high = ttest_1samp(values, 0).confidence_interval(confidence_level)
    return float(low), float(high)
