"""The reliability diagram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..metrics import expected_calibration_error, reliability_curve
from ..utils import import_optional
from ..utils._proba import wilson_interval
from ._base import NARROW, BaseDisplay, plain_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The histogram in axes coordinates of the diagram: below it, as wide.
HISTOGRAM_HEIGHT, HISTOGRAM_GAP = 0.18, 0.06
HISTOGRAM_LABEL = "histogram of the confidences"


class ReliabilityDisplay(BaseDisplay):
    """Reliability diagram: accuracy against confidence, and how many samples are where.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. A curve below the
    diagonal is overconfident, above it underconfident.

    Parameters
    ----------
    prob_true : ndarray of shape (n_bins,)
        Accuracy, or fraction of the positive class, of every bin; NaN where a bin is empty.
    prob_pred : ndarray of shape (n_bins,)
        Mean confidence of every bin; NaN where a bin is empty.
    count : ndarray of shape (n_cells,)
        Number of samples, or sum of their weights, in cells of equal width: the histogram.
    edges : ndarray of shape (n_cells + 1,)
        Edges of the cells.
    calibration_error : float, default=None
        Expected calibration error, shown in the legend.
    band : tuple of two ndarrays of shape (n_bins,), default=None
        Lower and upper end of an interval of `prob_true`.
    strategy : {"uniform", "quantile"}, default="uniform"
        How the bins were made, shown in the legend.
    name : str, default=None
        Name of the model in the legend.
    pos_label : int, bool or str, default=None
        The positive class, where the diagram is about one class rather than the top label.

    Attributes
    ----------
    line_ : matplotlib Artist
        The reliability curve.
    ax_ : matplotlib Axes
        Axes with the curve.
    histogram_ax_ : matplotlib Axes or None
        Axes with the number of samples, below.
    figure_ : matplotlib Figure
        Figure that holds both.

    See Also
    --------
    skcalib.metrics.reliability_curve : The numbers behind the diagram.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skcalib.plots import ReliabilityDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X[::2], y[::2])
    >>> display = ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2], n_bins=5)
    >>> round(display.calibration_error, 2)
    0.1
    """

    def __init__(
        self,
        prob_true: NDArray[np.float64],
        prob_pred: NDArray[np.float64],
        count: NDArray[np.float64],
        edges: NDArray[np.float64],
        *,
        calibration_error: float | None = None,
        band: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
        strategy: str = "uniform",
        name: str | None = None,
        pos_label: Any = None,
    ) -> None:
        self.prob_true = prob_true
        self.prob_pred = prob_pred
        self.count = count
        self.edges = edges
        self.calibration_error = calibration_error
        self.band = band
        self.strategy = strategy
        self.name = name
        self.pos_label = pos_label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        pos_label: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the reliability diagram of a fitted classifier.

        With two classes it is about the positive class, with more about the top label.

        Parameters
        ----------
        estimator : object
            Fitted classifier with `predict_proba`.
        X : array-like of shape (n_samples, n_features)
            Input.
        y : array-like of shape (n_samples,)
            True labels.
        pos_label : int, bool or str, default=None
            The positive class of two, by default the second of ``estimator.classes_``.
        name : str, default=None
            Name in the legend, by default that of the class of the estimator.
        **kwargs : dict
            Passed to :meth:`from_predictions`.

        Returns
        -------
        display : ReliabilityDisplay
            The display, plotted.
        """
        y_proba = np.asarray(estimator.predict_proba(X))
        labels = list(estimator.classes_)
        if len(labels) == 2:
            pos_label = labels[1] if pos_label is None else pos_label
            if pos_label not in labels:
                raise ValueError(f"pos_label must be one of {labels}, got {pos_label!r}.")
            y_proba = y_proba[:, labels.index(pos_label)]
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(
            y, y_proba, labels=labels, pos_label=pos_label, name=name, **kwargs
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        n_bins: int = 15,
        strategy: str = "uniform",
        confidence_level: float | None = 0.95,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the reliability diagram of given probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, integers or strings.
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
            Probabilities of the classes (the diagram of the top label) or of the positive class.
        n_bins : int, default=15
            Number of bins.
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width or of equal weight; the histogram has equal widths.
        confidence_level : float or None, default=0.95
            Level in (0, 1) of a Wilson interval of the accuracy of every bin, drawn as a band.
            Weights count as numbers of samples. None draws no band.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        labels : array-like of shape (n_classes,), default=None
            Labels of the columns of `y_proba`.
        pos_label : int, bool or str, default=None
            The positive class where `y_proba` has shape (n_samples,).
        name : str, default=None
            Name in the legend.
        **kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        display : ReliabilityDisplay
            The display, plotted.
        """
        options: dict[str, Any] = {
            "n_bins": n_bins,
            "strategy": strategy,
            "sample_weight": sample_weight,
            "labels": labels,
            "pos_label": pos_label,
        }
        curve = reliability_curve(y_true, y_proba, **options)
        if pos_label is None and np.ndim(y_proba) == 1:
            pos_label = 1 if labels is None else np.asarray(labels)[1]
        band = None
        if confidence_level is not None:
            band = wilson_interval(curve.prob_true, curve.bin_weight, confidence_level)
        cells = curve
        if strategy == "quantile":
            # Equal counts tell nothing: the histogram keeps bins of equal width.
            cells = reliability_curve(y_true, y_proba, **{**options, "strategy": "uniform"})
        display = cls(
            curve.prob_true,
            curve.prob_pred,
            cells.bin_weight,
            cells.edges,
            calibration_error=expected_calibration_error(y_true, y_proba, **options),
            band=band,
            strategy=strategy,
            name=name,
            pos_label=pos_label,
        )
        return display.plot(**kwargs)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        ref_line: bool = True,
        histogram: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; a new figure by default.
        name : str, default=None
            Name in the legend, by default that of the display.
        ref_line : bool, default=True
            Whether to draw the diagonal of perfect calibration.
        histogram : bool, default=True
            Whether to draw the number of samples of every bin in axes of their own, below. A
            second display on the same axes draws into the same histogram.
        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot` for the curve.

        Returns
        -------
        display : ReliabilityDisplay
            The display itself.
        """
        label = self._open_axes(ax, name)
        if ref_line:
            self._draw_reference([0, 1], [0, 1], "Perfectly calibrated")
        self._draw_bins(label, kwargs)
        self.ax_.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel=self._axis_label(1))
        self.ax_.set_box_aspect(1)
        self.histogram_ax_ = self._draw_histogram() if histogram else None
        (self.histogram_ax_ or self.ax_).set_xlabel(self._axis_label(0))
        self._draw_legend()
        return self

    def _measure(self) -> tuple[str, str]:
        if self.calibration_error is None:
            return "", ""
        kind = "top-label" if self.pos_label is None else "positive-class"
        bins = "bins" if self.strategy == "uniform" else "equal-mass bins"
        return f"{kind} ECE, {len(self.prob_true)} {bins}", f"{self.calibration_error:.3f}"

    def _axis_label(self, axis: int) -> str:
        if self.pos_label is None:
            return ("Confidence", "Accuracy")[axis]
        width = self._characters(vertical=axis == 1) * 3 // 4
        text = ("Predicted probability", "Observed fraction")[axis]
        name = plain_text(f"of class {self.pos_label}", width=width, n_lines=1)
        one_line = self._characters() >= NARROW and len(text) + len(name) < width
        return text + (" " if one_line else "\n") + name

    def _draw_bins(self, name: str, kwargs: dict[str, Any]) -> None:
        filled = ~np.isnan(self.prob_true)
        x = self.prob_pred[filled]
        self.line_ = self._draw_curve(x, self.prob_true[filled], name, kwargs)
        if self.band is not None:
            lower, upper = (end[filled] for end in self.band)
            color = self.line_.get_color()
            self.ax_.fill_between(x, lower, upper, color=color, alpha=0.15, linewidth=0)

    def _draw_histogram(self) -> Axes:
        """Draw the counts below the diagram, as an outline that leaves others visible."""
        ticker = import_optional("matplotlib.ticker", extra="plots")
        drawn: list[Any] = [a for a in self.ax_.child_axes if a.get_label() == HISTOGRAM_LABEL]
        below: Axes = drawn[0] if drawn else self._open_histogram()
        color = self.line_.get_color()
        if not drawn:
            below.stairs(self.count, self.edges, fill=True, color=color, alpha=0.15)
        below.stairs(self.count, self.edges, color=color)
        below.set_ylabel("Count", fontsize="small")
        below.yaxis.set_major_locator(ticker.MaxNLocator(2, integer=True))
        below.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))
        self.ax_.set_xlabel("")
        self.ax_.tick_params(labelbottom=False)
        return below

    def _open_histogram(self) -> Axes:
        bottom = HISTOGRAM_HEIGHT + HISTOGRAM_GAP
        if self.figure_.get_layout_engine() is None:
            # No layout will make room below: take it from the axes.
            box = self.ax_.get_position(original=True)
            height = box.height / (1 + bottom)
            self.ax_.set_position((box.x0, box.y1 - height, box.width, height))
        place = (0, -bottom, 1, HISTOGRAM_HEIGHT)
        return self.ax_.inset_axes(place, sharex=self.ax_, label=HISTOGRAM_LABEL)
