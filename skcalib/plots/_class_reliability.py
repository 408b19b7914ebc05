"""Reliability diagrams of the classes, one small panel each."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..utils.checking._shares import two_sided
from ..utils.checking._validation import check_predictions
from ._base import FEW, PredictionDisplay, plain_text
from ._reliability import ReliabilityDisplay, diagram_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Letters along a panel that has room for numbers at its axes; inches of a line of the heading.
ROOM_FOR_NUMBERS, LINE = 10, 0.19


@dataclass(repr=False, eq=False)
class ClassReliabilityDisplay(PredictionDisplay):
    """Reliability diagrams of the probabilities of the classes, one small panel each.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. Every panel is a
    :class:`ReliabilityDisplay` of one class against the rest. Classes are ranked by their error,
    largest first; classes of fewer than ten samples come last. The title says how many classes
    are left out.

    Parameters
    ----------
    displays : dict of label -> ReliabilityDisplay
        The diagrams of all classes, in the order of the panels.
    name : str, default=None
        Title of the grid.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (n_panels,)
        Axes of the panels.
    ax_, figure_ : matplotlib Axes and Figure
        Axes whose place the grid takes, and the figure.

    See Also
    --------
    ReliabilityDisplay : The diagram of the top label or of one class.
    skcalib.metrics.classwise_calibration_error : The errors of all panels, from bins.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalib.plots import ClassReliabilityDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X[::2], y[::2])
    >>> display = ClassReliabilityDisplay.from_estimator(model, X[1::2], y[1::2], n_bins=5)
    >>> [int(label) for label in display.displays], display.axes_.shape
    ([2, 1, 0], (3,))
    """

    displays: dict[Any, ReliabilityDisplay]
    _: KW_ONLY
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        kind: str = "bins",
        n_bins: int = 10,
        strategy: str = "uniform",
        confidence_level: float | None = 0.95,
        simultaneous: bool = False,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the diagrams of given probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
            True labels, integers or strings, or shares of people, see
            :func:`~skcalib.metrics.expected_calibration_error`.
        y_proba : array-like of shape (n_samples, n_classes)
            Probabilities of the classes.
        kind, n_bins, strategy : of :meth:`ReliabilityDisplay.from_predictions`
        confidence_level, sample_weight, labels : of :meth:`ReliabilityDisplay.from_predictions`
        simultaneous : bool, default=False
            Whether bars and bands of a panel have their level at all bins or confidences at once,
            for every class by itself; the heading says so.
        name : str, default=None
            Name of the display, which its title or legend shows.
        **kwargs : dict
            Options of :meth:`plot`.

        Returns
        -------
        display : ClassReliabilityDisplay
            The display, plotted.
        """
        predictions = check_predictions(
            y_true, y_proba, sample_weight=sample_weight, labels=labels
        )
        if predictions.proba.ndim == 1:
            raise ValueError("y_proba must have a column for every class, got shape (n_samples,).")
        bins: dict[str, Any] = {"n_bins": n_bins, "strategy": strategy}
        n_samples = [predictions.of_class(k).sum() for k in range(len(predictions.classes))]
        diagrams = []
        for k, n in enumerate(n_samples):
            data: dict[str, Any] = {
                "y_true": two_sided(predictions.of_class(k)),
                "y_proba": predictions.proba[:, k],
                "sample_weight": sample_weight,
            }
            numbers = diagram_numbers(
                data, kind=kind, bins=bins, confidence_level=confidence_level,
                simultaneous=simultaneous, interval=False, zoom=None,
            )  # fmt: skip
            diagrams.append(ReliabilityDisplay(**numbers, name=f"n = {n:,.0f}", pos_label=1))
        # The last key counts first: classes of few samples, whose error is mostly chance, rank
        # last.
        errors = np.array([diagram.calibration_error for diagram in diagrams])
        order = np.lexsort([-errors, np.array(n_samples) < FEW])
        displays = {predictions.classes[k]: diagrams[k] for k in order}
        return cls(displays, name=name).plot(**kwargs)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        n_panels: int = 12,
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
        n_panels : int, default=12
            Largest number of panels. Classes of smaller error are left out.
        n_columns : int, default=None
            Number of panels in a row; None makes up to four.
        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot` for the curves.
        """
        numbers = {"n_panels": n_panels, "n_columns": 1 if n_columns is None else n_columns}
        for key, number in numbers.items():
            if isinstance(number, bool) or not isinstance(number, Integral) or number < 1:
                raise ValueError(f"{key} must be an int of at least 1, got {number!r}.")
        drawn = list(self.displays.items())[:n_panels]
        n_wide = n_columns or min(4, len(drawn))
        n_high = -(-len(drawn) // n_wide)
        title = self._open_axes(ax, name, figsize=(2.1 * n_wide + 0.3, 2.4 * n_high + 0.6))
        heading = self._heading(title, len(drawn))
        top = LINE * (heading.count("\n") + 1)
        height = max((self._inches() - top) / n_high, 0.1)
        grid = self._open_grid(n_wide, [top, *[height] * n_high], heading, size="small")
        places = [grid[i // n_wide + 1, i % n_wide] for i in range(len(drawn))]
        self.axes_ = np.array([self.figure_.add_subplot(place) for place in places])
        for i, (panel, (label, display)) in enumerate(zip(self.axes_, drawn)):
            display.plot(ax=panel, histogram=False, **kwargs)
            width = display._characters()
            error = f"{display.calibration_error:.3f}"
            lines = [plain_text(label, width=width, n_lines=1)]
            line = f"{error}, {display.name}"
            lines.append(line if len(line) <= width else error)
            panel.set_title("\n".join(lines), size="small")
            if panel.get_legend() is not None:
                panel.get_legend().remove()
            ticks = [0, 0.5, 1] if width >= ROOM_FOR_NUMBERS else []
            panel.set(xlabel="", ylabel="", xticks=ticks, yticks=ticks)
            # The heading names the axes, and only the outer panels have numbers.
            panel.tick_params(
                labelbottom=i + n_wide >= len(drawn), labelleft=i % n_wide == 0, labelsize="small"
            )
        return self

    def _heading(self, title: str, n_drawn: int) -> str:
        """Return the title, what is drawn, and how many classes are left out."""
        first, n_classes = next(iter(self.displays.values())), len(self.displays)
        text = f"Observed fraction against probability, by class; {first.error_name()}"
        if first.simultaneous and first.confidence_level is not None:
            text += f"; {first.confidence_level:.0%} for all of a panel at once"
        if n_drawn < n_classes:
            text += f"; {n_drawn} of {n_classes} classes, of the largest errors"
        # Letters are counted in the font of the axis labels; that of the heading is smaller.
        width = int(1.2 * self._characters())
        return "\n".join(plain_text(part, width=width) for part in (title, text) if part)
