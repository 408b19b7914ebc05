"""Miscalibration and discrimination of several models, with lines of equal score."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from ..metrics import score_decomposition
from ..utils.meta._optional import import_optional
from ._base import GROUND, THIN, PredictionDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The uncertainty of the models on each axes. It depends on the labels alone.
_UNCERTAINTY: WeakKeyDictionary[Axes, float] = WeakKeyDictionary()
ISO_LINE = "line of equal score"
# Lines of equal score stand behind the points.
FAINT = 0.3


@dataclass(repr=False, eq=False)
class DecompositionDisplay(PredictionDisplay):
    """Plane of miscalibration and discrimination, with a point for every model.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one, with ``ax=`` on the axes
    of another model. The score is miscalibration minus discrimination plus an uncertainty that all
    models share: it is equal along slanted lines, and better toward the upper left [1]_.

    Parameters
    ----------
    decomposition : ScoreDecomposition
        Miscalibration, discrimination, uncertainty and score, as from
        :func:`~skcalib.metrics.score_decomposition`.
    scoring_rule : {"brier", "log_loss"}, default="brier"
        The score.
    name : str, default=None
        Name of the model in the title or, of several, in the legend.

    Attributes
    ----------
    line_, ax_, figure_ : matplotlib Artist, Axes and Figure
        The point, its axes and the figure.

    See Also
    --------
    skcalib.metrics.score_decomposition : The numbers.
    ReliabilityDisplay : The diagram of one model.

    References
    ----------
    .. [1] T. Dimitriadis, T. Gneiting, A. I. Jordan, P. Vogel, "Evaluating Probabilistic
       Classifiers: The Triptych", International Journal of Forecasting 2024, Sec. 3.

    Examples
    --------
    >>> from skcalib.plots import DecompositionDisplay
    >>> display = DecompositionDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> round(display.decomposition.score, 3)
    0.085
    """

    decomposition: Any
    _: KW_ONLY
    scoring_rule: str = "brier"
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        scoring_rule: str = "brier",
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the point of given probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
            True labels, integers or strings, or shares of people, see
            :func:`~skcalib.metrics.expected_calibration_error`.
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
            Probabilities of the classes, whose decompositions are added up, or of the positive
            class.
        scoring_rule : {"brier", "log_loss"}, default="brier"
            The score.
        sample_weight, labels, pos_label : of :func:`~skcalib.metrics.score_decomposition`
        name : str, default=None
            Name of the display, which its title or legend shows.
        **kwargs : dict
            Options of :meth:`plot`.

        Returns
        -------
        display : DecompositionDisplay
            The display, plotted.

        Raises
        ------
        ValueError
            If the score is infinite, or the axes hold a model of other samples.
        """
        parts = score_decomposition(
            y_true,
            y_proba,
            scoring_rule=scoring_rule,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
        )
        if not np.isfinite(parts.score):
            raise ValueError(
                "y_proba must give the true label a positive probability for the log-loss to be "
                "drawn, got an infinite score."
            )
        return cls(parts, scoring_rule=scoring_rule, name=name).plot(**kwargs)

    def _draw(self, name: str, kwargs: dict[str, Any]) -> None:
        parts = self.decomposition
        known = _UNCERTAINTY.setdefault(self.ax_, parts.uncertainty)
        if not np.isclose(known, parts.uncertainty, rtol=1e-6):
            raise ValueError(
                "ax must hold models of the same samples and score, got an uncertainty of "
                f"{known:.6g} beside {parts.uncertainty:.6g}."
            )
        self.line_ = self._draw_curve(
            [parts.miscalibration], [parts.discrimination], name, kwargs,
            linestyle="", markersize=8, zorder=3,
        )  # fmt: skip
        self._set_limits()
        self._draw_iso_lines()
        self.ax_.set_xlabel("Miscalibration (smaller = better)")
        self.ax_.set_ylabel("Discrimination (larger = better)")
        self._explain()

    def _measure(self) -> tuple[str, str]:
        score = "Brier score" if self.scoring_rule == "brier" else "log-loss"
        return score, f"{self.decomposition.score:.4f}"

    def _details(self) -> list[str]:
        return [f"uncertainty {self.decomposition.uncertainty:.4f}"]

    def _set_limits(self) -> None:
        """Leave room around the points; miscalibration begins at 0."""
        points = np.array([np.asarray(line.get_xydata())[0] for line in self._curves()])
        low, high = points.min(axis=0), points.max(axis=0)
        right = 1.25 * high[0] or 0.01
        # Not the range alone: models of equal discrimination would differ by rounding.
        pad = max(0.3 * (high[1] - low[1]), 0.3 * right)
        self.ax_.set(xlim=(0, right), ylim=(low[1] - pad, high[1] + pad))

    def _draw_iso_lines(self) -> None:
        """Draw and label the lines of equal score; replace those of an earlier display."""
        drawn: list[Any] = [*self.ax_.lines, *self.ax_.texts]
        for artist in drawn:
            if artist.get_gid() == ISO_LINE:
                artist.remove()
        ticker = import_optional("matplotlib.ticker", extra="plots")
        right, (bottom, top) = self.ax_.get_xlim()[1], self.ax_.get_ylim()
        # score = x - y + uncertainty is best in the upper left corner, worst in the lower right.
        uncertainty = self.decomposition.uncertainty
        best, worst = uncertainty - top, right - bottom + uncertainty
        color = self.ax_.xaxis.label.get_color()
        for score in ticker.MaxNLocator(6).tick_values(best, worst):
            y = np.array([0, right]) + uncertainty - score
            if y[0] < top and y[1] > bottom:
                self.ax_.plot(
                    [0, right], y, color=color, alpha=FAINT, gid=ISO_LINE, linewidth=THIN
                )
                # The score stands where the line reaches the right or the upper border, inside.
                # Along the line, x and y rise by the same amount.
                place = (right, y[1]) if y[1] <= top else (right - (y[1] - top), top)
                self.ax_.annotate(
                    f"{score:.4g}", place, xytext=(-2, -2), textcoords="offset points",
                    ha="right", va="top", size="x-small", color=color, gid=ISO_LINE,
                    bbox={**GROUND, "facecolor": self.ax_.get_facecolor()},
                )  # fmt: skip
