"""Net benefit against the threshold from which on one acts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..metrics import decision_curve
from ..utils._output import import_optional
from ._base import THIN, PredictionDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALL, NONE, PREDICTED = "Act on all", "Act on none", "As predicted"
# Numbers of false actions that one right one is worth, as ticks.
_ODDS = (9999, 1999, 999, 499, 199, 99, 49, 19, 9, 4, 2, 1, 0.5, 0.25, 0.1, 0.05, 0.01)
# Least distance of two ticks, as a fraction of the axis.
_APART = 0.08


@dataclass(repr=False, eq=False)
class DecisionCurveDisplay(PredictionDisplay):
    """Decision curve: the net benefit of acting on the samples above a threshold.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one, with ``ax=`` on the axes
    of another model, such as the recalibrated one. The model is worth acting on where its curve is
    above both reference lines: acting on all samples and acting on none. The dotted line is the
    net benefit that the probabilities claim; a calibrated model delivers it. The upper axis has
    the costs behind a threshold: how many false actions one right action is worth.

    Parameters
    ----------
    curve : structured array of shape (n_thresholds,)
        The lines of one model in the table of :func:`~skcalib.metrics.decision_curve`.
    name : str, default=None
        Name of the model in the title or, of several, in the legend.

    Attributes
    ----------
    line_, predicted_ : matplotlib Artists
        The curve, and what the model predicts; None if it is not drawn.
    ax_, figure_ : matplotlib Axes and Figure
        The axes and the figure.

    See Also
    --------
    skcalib.metrics.decision_curve : The numbers.
    skcalib.metrics.net_benefit : At one threshold.
    ReliabilityDisplay : Whether the probabilities are right.

    References
    ----------
    .. [1] A. J. Vickers, E. B. Elkin, "Decision Curve Analysis: A Novel Method for Evaluating
       Prediction Models", Medical Decision Making 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.plots import DecisionCurveDisplay
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.beta(1, 4, size=500)
    >>> display = DecisionCurveDisplay.from_predictions(
    ...     rng.uniform(size=500) < risk, risk, thresholds=np.arange(1, 41) / 100, random_state=0
    ... )
    >>> display.ax_.get_xlabel()
    'Act from this probability on'
    """

    curve: NDArray[Any]
    _: KW_ONLY
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        thresholds: ArrayLike | None = None,
        groups: Any = None,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        confidence_level: float = 0.95,
        n_resamples: int = 999,
        random_state: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the decision curve of given probabilities.

        Parameters
        ----------
        y_true : of :func:`~skcalib.metrics.expected_calibration_error`
        y_proba : array-like of shape (n_samples,) or (n_samples, 2)
            Probabilities of the positive class or of both classes, of which the second is
            positive.
        thresholds, groups, sample_weight : of :func:`~skcalib.metrics.decision_curve`
        labels, pos_label, confidence_level : of :func:`~skcalib.metrics.decision_curve`
        n_resamples, random_state : of :func:`~skcalib.metrics.decision_curve`
        name : str, default=None
            Name of the display, which its title or legend shows.
        **kwargs : dict
            Options of :meth:`plot`.

        Returns
        -------
        display : DecisionCurveDisplay
            The display, plotted.
        """
        curve = decision_curve(
            y_true,
            y_proba,
            thresholds=thresholds,
            groups=groups,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
            confidence_level=confidence_level,
            n_resamples=n_resamples,
            random_state=random_state,
        )
        return cls(np.asarray(curve), name=name).plot(**kwargs)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        interval: str | None = "pointwise",
        predicted: bool = True,
        ref_line: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve; return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes new ones.
        name : str, default=None
            Name to show. None takes the name of the display.
        interval : {"pointwise", "band"} or None, default="pointwise"
            Intervals at every threshold, or a band that holds the whole curve.
        predicted : bool, default=True
            Whether to draw the net benefit that the model predicts.
        ref_line : bool, default=True
            Whether to draw the lines of acting on all and on none.
        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot` for the curve.

        Returns
        -------
        display : DecisionCurveDisplay
            The display itself.

        Raises
        ------
        ValueError
            If `interval` is none of these.
        """
        if interval not in ("pointwise", "band", None):
            raise ValueError(f"interval must be 'pointwise', 'band' or None, got {interval!r}.")
        label = self._open_axes(ax, name)
        is_first = not self._find_curves()
        curve = np.sort(self.curve, order="threshold")
        x = curve["threshold"]
        if is_first and len(x) > 2 and np.ptp(np.diff(np.log(x))) < 1e-6:
            self.ax_.set_xscale("log")  # thresholds at equal ratios
        markers: dict[str, Any] = {"marker": ""}
        self.line_ = self._draw_curve(x, curve["net_benefit"], label, kwargs, **markers)
        color = self.line_.get_color()
        if interval is not None:
            ends = ("low", "high") if interval == "pointwise" else ("band_low", "band_high")
            self._draw_band(x, *(curve[end] for end in ends), color=color)
        self.predicted_ = None
        if predicted:
            shown = PREDICTED not in [line.get_label() for line in self.ax_.lines]
            (self.predicted_,) = self.ax_.plot(
                x,
                curve["predicted"],
                color=color,
                linestyle=":",
                label=PREDICTED if shown else None,
            )
        if ref_line and is_first:
            gray = self.ax_.xaxis.label.get_color()
            options: dict[str, Any] = {"color": gray, "linewidth": THIN, "zorder": 1}
            self.ax_.plot(x, curve["act_on_all"], label=ALL, **options)
            self.ax_.axhline(0, linestyle="--", label=NONE, **options)
        self.ax_.set(xlabel="Act from this probability on", ylabel="Net benefit per sample")
        self._set_limits(curve)
        if is_first:
            self._draw_odds()
        self._explain()
        return self

    def _set_limits(self, curve: NDArray[Any]) -> None:
        """Show the thresholds at which a model acts at all, and little of a negative benefit."""
        acts = curve["predicted"] > 0
        right = float(curve["threshold"][acts].max(initial=curve["threshold"][0]))
        left = float(curve["threshold"][0])
        names = ["net_benefit", "high", *(["predicted"] if self.predicted_ is not None else [])]
        highest = max(float(np.max(curve[name][acts], initial=0.0)) for name in names)
        if len(self._find_curves()) > 1:
            left, right = min(left, self.ax_.get_xlim()[0]), max(right, self.ax_.get_xlim()[1])
            highest = max(highest, self.ax_.get_ylim()[1] / 1.05)
        if left < right:
            self.ax_.set_xlim(left, right)
        highest = highest or 1.0
        self.ax_.set_ylim(-0.25 * highest, 1.05 * highest)

    def _draw_odds(self) -> None:
        """Draw the upper axis: false actions that a right one is worth, (1 - t) / t."""
        ticker = import_optional("matplotlib.ticker", extra="plots")
        upper = self.ax_.secondary_xaxis("top")
        upper.set_xlabel("False actions that a right action is worth", fontsize="small")
        to_axes = self.ax_.transScale.transform
        low, high = self.ax_.get_xlim()
        ends = to_axes([[low, 0], [high, 0]])[:, 0]
        ticks: list[float] = []
        last = -np.inf
        for odds in _ODDS:
            t = 1 / (1 + odds)
            place = float((to_axes([[t, 0]])[0, 0] - ends[0]) / (ends[1] - ends[0]))
            if 0 <= place <= 1 and place - last >= _APART:
                ticks.append(t)
                last = place
        upper.xaxis.set_major_locator(ticker.FixedLocator(ticks))
        upper.xaxis.set_minor_locator(ticker.NullLocator())
        upper.xaxis.set_major_formatter(ticker.FuncFormatter(lambda t, _: _format_odds(t)))
        upper.tick_params(labelsize="small")


def _format_odds(threshold: float) -> str:
    """Return (1 - t) / t as text."""
    if not 0 < threshold < 1:
        return ""
    odds = (1 - threshold) / threshold
    return f"{odds:.0f}" if odds > 10 else f"{odds:.3g}"
