"""Reliability diagrams: of the top label or the positive class, and of every class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..metrics import (
    calibration_error_interval,
    expected_calibration_error,
    isotonic_reliability_curve,
    reliability_curve,
    score_decomposition,
    smooth_calibration_error,
    smooth_reliability_curve,
)
from ..utils._numeric import compute_binomial_interval
from ..utils._proba import as_two_columns, check_predictions
from ._base import FEW, NARROW, PredictionDisplay, escape_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# The reliability diagram, and the numbers that it shows.

ALONE = "band or area of a curve that is alone"
HISTOGRAM_LABEL = "histogram of the confidences"
# Resamples of the error's interval: more would not change the two digits that are shown.
N_RESAMPLES = 200
# Curves drawn for a band: the default of the functions.
N_CURVES = 999
# For so many samples the interval of the error takes about a second; for more it is narrow.
FEW_SAMPLES = 20_000
# Bins of the histogram within the part of [0, 1] that the axes show, and at most in [0, 1].
N_CELLS, MAX_CELLS = 15, 3000
# Room around what the axes show, as a fraction of it.
MARGIN = 0.02


@dataclass(repr=False, eq=False)
class ReliabilityDisplay(PredictionDisplay):
    """Reliability diagram: accuracy against confidence, and how many samples are where.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. A curve below the
    diagonal is overconfident, above it underconfident; the area between is filled. Bars are
    intervals of the accuracy of a bin, and should reach the diagonal. At each confidence, the
    curve of a calibrated model lies in the gray band. Area and band are drawn only for a curve
    that is alone on its axes. Larger dots are bins of more samples; bins of fewer than ten have
    empty dots and no line.

    If the model is calibrated, one of twenty bars misses the diagonal, and most curves leave the
    band somewhere. With ``simultaneous=True``, bars and bands have their level at all bins or
    confidences at once, and the legend says so.

    The diagram of a fitted classifier is about the positive class where there are two classes,
    and about the top label where there are more.

    Parameters
    ----------
    prob_true : ndarray of shape (n_points,)
        Accuracy, or fraction of the positive class, of every bin (NaN if empty) or at every
        confidence.
    prob_pred : ndarray of shape (n_points,)
        Mean confidence of every bin (NaN if empty), or the confidences.
    count : ndarray of shape (n_histogram,)
        Number of samples, or sum of their weights, in bins of equal width: the histogram.
    edges : ndarray of shape (n_histogram + 1,)
        Edges of the bins.
    calibration_error : float, default=None
        Calibration error, shown in the title: the expected one or, for the smooth curve, the
        smooth one.
    interval : tuple of two floats, default=None
        Its ends, shown in the title.
    decomposition : ScoreDecomposition, default=None
        Decomposition of the Brier score, shown in the title.
    bin_count : ndarray of shape (n_points,), default=None
        Number of samples of every bin; None draws all dots alike, and the line through all.
    band : tuple of two ndarrays of shape (n_points,), default=None
        For bins, lower and upper end of an interval of `prob_true`; for the other kinds, those of
        the band for a calibrated model.
    confidence_level : float, default=None
        Level of band and interval.
    simultaneous : bool, default=False
        Whether the band has its level at all bins or confidences at once; the legend says it.
    window : tuple of two floats, default=None
        Confidences that the axes show; None shows [0, 1].
    kind, strategy : of :meth:`from_predictions`
    n_bins : int, default=None
        Number of bins. None means as many as there are points.
    name : str, default=None
        Name of the model in the title or, of several, in the legend.
    pos_label : int, bool or str, default=None
        The positive class, where the diagram is about one class rather than the top label.

    Attributes
    ----------
    line_, ax_, figure_ : matplotlib Artist, Axes and Figure
        The reliability curve, its axes and the figure.
    histogram_ax_ : matplotlib Axes or None
        Axes with the number of samples, below.

    See Also
    --------
    skcalib.metrics.reliability_curve : The numbers behind the diagram.
    skcalib.metrics.isotonic_reliability_curve : Those with ``kind="isotonic"``.
    skcalib.metrics.smooth_reliability_curve : Those with ``kind="smooth"``.
    ClassReliabilityDisplay : One diagram for every class.
    skcalib.report.CalibrationReport : The diagram and more, as one page.

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

    prob_true: NDArray[np.float64]
    prob_pred: NDArray[np.float64]
    count: NDArray[np.float64]
    edges: NDArray[np.float64]
    _: KW_ONLY
    calibration_error: float | None = None
    interval: tuple[float, float] | None = None
    decomposition: Any = None
    bin_count: NDArray[np.float64] | None = None
    band: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    confidence_level: float | None = None
    simultaneous: bool = False
    window: tuple[float, float] | None = None
    kind: str = "bins"
    n_bins: int | None = None
    strategy: str = "uniform"
    name: str | None = None
    pos_label: Any = None

    @classmethod
    def _predictions(
        cls, estimator: Any, X: Any, y: ArrayLike, options: dict[str, Any]
    ) -> dict[str, Any]:
        predictions = super()._predictions(estimator, X, y, options)
        labels = list(estimator.classes_)
        if len(labels) == 2:
            pos_label = labels[1] if options.get("pos_label") is None else options["pos_label"]
            if pos_label not in labels:
                raise ValueError(f"pos_label must be one of {labels}, got {pos_label!r}.")
            options["pos_label"] = pos_label
            y_proba = np.asarray(predictions["y_proba"])
            predictions["y_proba"] = y_proba[:, labels.index(pos_label)]
        return predictions

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        kind: str = "bins",
        n_bins: int = 15,
        strategy: str = "uniform",
        confidence_level: float | None = 0.95,
        simultaneous: bool = False,
        interval: bool | None = None,
        zoom: float | None = None,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the reliability diagram of given probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
            True labels, integers or strings, or soft labels, see
            :func:`~skcalib.metrics.expected_calibration_error`.
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
            Probabilities of the classes (the diagram of the top label) or of the positive class.
        kind : {"bins", "isotonic", "smooth"}, default="bins"
            "bins": the accuracy of bins. "isotonic": isotonic regression of accuracy on
            confidence, which needs no bins. "smooth": mean accuracy under the kernel of the smooth
            error.
        n_bins : int, default=15
            Number of bins of the curve, of the expected error and of the histogram.
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width or of equal weight; the histogram has equal widths.
        confidence_level : float or None, default=0.95
            Level in (0, 1) of the bars (exact binomial intervals of the accuracy of every bin,
            weights counted as numbers of samples) or, for the other kinds, of the band. None
            draws neither.
        simultaneous : bool, default=False
            Whether bars and bands have their level at all bins or confidences at once: bars by
            Bonferroni's correction, bands as in
            :func:`~skcalib.metrics.isotonic_reliability_curve`. By default each bar, and the band
            at each confidence, has its level by itself.
        interval : bool, default=None
            Whether the title has the bootstrap interval of the error, at `confidence_level` or
            0.95. None shows it for up to 20 000 samples, but not for the smooth error, where it
            takes seconds.
        zoom : float, default=None
            Fraction of the samples, around the median confidence, that the axes show, such as 0.99
            for rare positives. None shows [0, 1].
        sample_weight, labels : of :func:`~skcalib.metrics.expected_calibration_error`
        pos_label : int, bool or str, default=None
            The positive class where `y_proba` has shape (n_samples,), and of a fitted classifier
            of two classes; by default the second.
        name : str, default=None
            Name of the display, which its title or legend shows.
        **kwargs : dict
            Options of :meth:`plot`.

        Returns
        -------
        display : ReliabilityDisplay
            The display, plotted.
        """
        data: dict[str, Any] = {
            "y_true": y_true, "y_proba": y_proba, "sample_weight": sample_weight,
            "labels": labels, "pos_label": pos_label,
        }  # fmt: skip
        check_predictions(*data.values())
        numbers = compute_diagram(
            data, kind=kind, bins={"n_bins": n_bins, "strategy": strategy},
            confidence_level=confidence_level, simultaneous=simultaneous,
            interval=interval, zoom=zoom,
        )  # fmt: skip
        if pos_label is None and np.ndim(y_proba) == 1:
            pos_label = 1 if labels is None else np.asarray(labels)[1]
        return cls(**numbers, name=name, pos_label=pos_label).plot(**kwargs)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        ref_line: bool = True,
        histogram: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Draw the diagram; return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes new ones.
        name : str, default=None
            Name to show. None takes the name of the display.
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
            Itself, with ``ax_`` and ``figure_``.
        """
        label = self._open_axes(ax, name)
        if ref_line:
            self._draw_reference([0, 1], [0, 1], "_diagonal")
        self._draw_points(label, kwargs)
        self._set_limits()
        self.ax_.set_ylabel(self._label_axis(1))
        self.ax_.set_box_aspect(1)
        self.histogram_ax_ = self._draw_histogram() if histogram else None
        (self.histogram_ax_ or self.ax_).set_xlabel(self._label_axis(0))
        self._explain()
        return self

    def _measure(self) -> tuple[str, str]:
        of_what = "top-label" if self.pos_label is None else "positive-class"
        if self.decomposition is not None:
            value = self.decomposition.miscalibration
            return f"{of_what} Brier miscalibration", f"{value:.4f}"
        if self.calibration_error is None:
            return "", ""
        return f"{of_what} {self.error_name()}", f"{self.calibration_error:.3f}"

    def error_name(self) -> str:
        """Return the name of the calibration error, such as "ECE, 15 bins".

        Returns
        -------
        name : str
            The metric, as a legend shows it.
        """
        if self.kind == "smooth":
            return "smooth ECE"
        n_bins = len(self.prob_true) if self.n_bins is None else self.n_bins
        return f"ECE, {n_bins} {'bins' if self.strategy == 'uniform' else 'equal-mass bins'}"

    def _details(self) -> list[str]:
        lines = []
        if self.decomposition is not None:
            parts = self.decomposition
            lines += [
                f"discrimination {parts.discrimination:.4f}",
                f"uncertainty {parts.uncertainty:.4f}",
                f"Brier score {parts.score:.4f}",
            ]
            if self.calibration_error is not None:
                lines.append(f"{self.error_name()}: {self.calibration_error:.3f}")
        if self.interval is not None:
            level = 0.95 if self.confidence_level is None else self.confidence_level
            lines.append(f"{level:.0%} interval {self.interval[0]:.3f} to {self.interval[1]:.3f}")
        if self.bin_count is not None and self.bin_count.any():
            filled = self.bin_count > 0
            for name, values in zip(self._name_axes(), (self.prob_pred, self.prob_true)):
                mean = np.average(values[filled], weights=self.bin_count[filled])
                lines.append(f"{name.lower()} {mean:.3f}")
        n_samples = self.count.sum()
        return [*lines, f"n = {n_samples:,.0f}" if n_samples >= 1000 else f"n = {n_samples:g}"]

    def _name_axes(self) -> tuple[str, str]:
        if self.pos_label is None:
            return "Confidence", "Accuracy"
        if self._count_characters() < NARROW:
            return "Probability", "Fraction"
        return "Predicted probability", "Observed fraction"

    def _label_axis(self, axis: int) -> str:
        text = self._name_axes()[axis]
        if self.pos_label is None:
            return text
        width = self._count_characters(vertical=axis == 1) * 3 // 4
        name = escape_text(f"of class {self.pos_label}", width=width, n_lines=1)
        return f"{text} {name}" if len(text) + len(name) < width else f"{text}\n{name}"

    def _draw_points(self, name: str, kwargs: dict[str, Any]) -> None:
        x, y = self.prob_pred, self.prob_true
        if self.kind != "bins":
            # NaN interrupts the smooth curve.
            self.line_ = self._draw_curve(x, y, name, kwargs, marker="", linewidth=2)
            level = "" if self.confidence_level is None else f"{self.confidence_level:.0%} of "
            where = "as whole curves" if self.simultaneous else "at each confidence"
            label = f"{level}calibrated models,\n{where}"
            self._fill_alone(x, self.band, color="gray", label=label)
            return
        filled = ~np.isnan(y)
        count = np.where(filled, np.inf, 0) if self.bin_count is None else self.bin_count
        enough = count >= FEW
        # Areas in square points; the largest dot is about a twentieth as wide as the axes.
        largest = 2.5 * self._count_characters()
        size = 36.0 if self.bin_count is None else 10 + largest * count / count.max()
        self.line_ = self._draw_curve(x[enough], y[enough], name, kwargs, markersize=3.5)
        color, marker = self.line_.get_color(), self.line_.get_marker()
        for chosen, face in ((enough, color), (filled & ~enough, "none")):
            self.ax_.scatter(
                x[chosen], y[chosen], s=np.broadcast_to(size, len(x))[chosen],
                marker=marker, facecolor=face, edgecolor=color,
            )  # fmt: skip
        if self.band is not None:
            lower, upper = (end[filled] for end in self.band)
            label = f"{self.confidence_level:.0%} intervals,\nall bins at once"
            options = {"label": label} if self.simultaneous else {}
            self._draw_bars(x[filled], y[filled], lower, upper, self.line_, **options)
        x, y = x[enough], y[enough]
        self._fill_alone(x, (x, y), color=self.line_.get_color())

    def _fill_alone(self, x: NDArray[np.float64], band: Any, **options: Any) -> None:
        """Fill a band if the curve is the only one: the bands of several would mix."""
        for drawn in [c for c in self.ax_.collections if c.get_gid() == ALONE]:
            drawn.remove()
        if band is not None and len(self._find_curves()) == 1:
            self._draw_band(x, *band, gid=ALONE, **options)

    def _set_limits(self) -> None:
        """Show [0, 1], or the window and the curve within it: the same on both axes."""
        low, high = self.window or (0.0, 1.0)
        x, y = self.prob_pred, self.prob_true
        # False for NaN as well.
        shown = y[(x >= low) & (x <= high) & ~np.isnan(y)]
        if len(shown):
            low, high = min(low, shown.min()), max(high, shown.max())
        margin = MARGIN * max(high - low, 1e-9)
        limits = low - margin, high + margin
        if len(self._find_curves()) > 1:
            # Several displays share the axes: show the union of their limits.
            limits = min(limits[0], self.ax_.get_xlim()[0]), max(limits[1], self.ax_.get_xlim()[1])
        self.ax_.set(xlim=limits, ylim=limits)

    def _draw_histogram(self) -> Axes:
        """Draw the counts below the diagram, as an outline that leaves others visible."""
        below, new = self._open_below(HISTOGRAM_LABEL)
        color = self.line_.get_color()
        if new:
            # Only the first histogram is filled: the colors of several would mix.
            below.stairs(self.count, self.edges, fill=True, color=color, alpha=0.2)
        below.stairs(self.count, self.edges, color=color)
        self.ax_.set_xlabel("")
        return below


def compute_diagram(
    data: dict[str, Any],
    *,
    kind: str,
    bins: dict[str, Any],
    confidence_level: float | None,
    simultaneous: bool,
    interval: bool | None,
    zoom: float | None,
) -> dict[str, Any]:
    """Return the arguments of a display; `data` are those of a metric, `bins` its options."""
    if kind not in ("bins", "isotonic", "smooth"):
        raise ValueError(f"kind must be 'bins', 'isotonic' or 'smooth', got {kind!r}.")
    window = None if zoom is None else _find_zoom_window(data, zoom)
    # Bins of equal weight have equal counts: the histogram keeps bins of equal width.
    count, edges = _count_confidences(data, bins["n_bins"], window)
    numbers = {
        **_compute_curve(data, kind, bins, confidence_level, simultaneous),
        **bins,
        "kind": kind,
        "confidence_level": confidence_level,
        "simultaneous": simultaneous,
        "window": window,
        "count": count,
        "edges": edges,
    }
    metric: Callable[..., Any] = expected_calibration_error
    options = bins
    if kind == "smooth":
        metric, options = smooth_calibration_error, {}
    numbers["calibration_error"] = metric(**data, **options)
    if interval is None:
        # The smooth error is computed again for every resample, which takes seconds.
        interval = kind != "smooth" and len(data["y_true"]) <= FEW_SAMPLES
    if interval:
        level = 0.95 if confidence_level is None else confidence_level
        resamples: dict[str, Any] = {
            "n_resamples": N_RESAMPLES,
            "random_state": 0,
            "confidence_level": level,
        }
        numbers["interval"] = calibration_error_interval(
            **data, metric=metric, **resamples, **options
        )
    return numbers


def _compute_curve(
    data: dict[str, Any],
    kind: str,
    bins: dict[str, Any],
    confidence_level: float | None,
    simultaneous: bool,
) -> dict[str, Any]:
    """Return the points of the curve, its band, and the numbers that only this kind has."""
    if kind == "bins":
        curve: Any = reliability_curve(**data, **bins)
        # Weights are scaled to a mean of one: they count as many samples as there are.
        only = {"bin_count": curve.bin_weight * (len(data["y_true"]) / curve.bin_weight.sum())}
    elif kind == "smooth":
        options = _choose_band_options(confidence_level, simultaneous)
        curve, only = smooth_reliability_curve(**data, **options), {}
    else:
        binary = _reduce_to_binary(data)
        options = _choose_band_options(confidence_level, simultaneous)
        curve = isotonic_reliability_curve(**binary, **options)
        only = {"decomposition": score_decomposition(**binary)}
    band = None
    if confidence_level is not None:
        n_bars = np.count_nonzero(curve.bin_weight) if kind == "bins" and simultaneous else 1
        band = (
            compute_binomial_interval(
                curve.prob_true, curve.bin_weight, 1 - (1 - confidence_level) / n_bars
            )
            if kind == "bins"
            else (curve.lower, curve.upper)
        )
    return {"prob_true": curve.prob_true, "prob_pred": curve.prob_pred, "band": band, **only}


def _choose_band_options(confidence_level: float | None, simultaneous: bool) -> dict[str, Any]:
    if confidence_level is None:
        # One resample, the fewest that the functions take; their band is not drawn.
        return {"n_resamples": 1, "random_state": 0}
    # At least one of the curves has to be left out of a simultaneous band.
    needed = int(np.ceil(1 / (1 - confidence_level))) if simultaneous else 0
    return {
        "n_resamples": max(N_CURVES, needed),
        "random_state": 0,
        "confidence_level": confidence_level,
        "simultaneous": simultaneous,
    }


def _reduce_to_binary(data: dict[str, Any]) -> dict[str, Any]:
    """Return labels 0 and 1 and the probability of 1; for the top label, 1 means correct."""
    predictions = check_predictions(**data)
    proba, positive = predictions.proba, predictions.of_class(1)
    if proba.ndim == 2:
        positive, proba = predictions.of_columns(proba.argmax(axis=1)), proba.max(axis=1)
    return {
        "y_true": as_two_columns(positive), "y_proba": proba, "sample_weight": predictions.counts,
    }  # fmt: skip


def _find_zoom_window(data: dict[str, Any], fraction: float) -> tuple[float, float]:
    """Return the two quantiles of the confidence between which the middle `fraction` lies."""
    if isinstance(fraction, bool) or not 0 < fraction <= 1:
        raise ValueError(f"zoom must be a number in (0, 1] or None, got {fraction!r}.")
    confidence = _reduce_to_binary(data)["y_proba"]
    low, high = np.quantile(confidence, [(1 - fraction) / 2, (1 + fraction) / 2])
    return float(low), float(high)


def _count_confidences(
    data: dict[str, Any], n_bins: int, window: tuple[float, float] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the counts in bins of equal width of all confidences, and their edges."""
    if window is not None:
        width = max(window[1] - window[0], N_CELLS / MAX_CELLS)
        n_bins = int(np.ceil(N_CELLS / width))
    bins = reliability_curve(**data, n_bins=n_bins)
    return bins.bin_weight, bins.edges


# Reliability diagrams of the classes, one small panel each.

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
            True labels, integers or strings, or soft labels, see
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
                "y_true": as_two_columns(predictions.of_class(k)),
                "y_proba": predictions.proba[:, k],
                "sample_weight": sample_weight,
            }
            numbers = compute_diagram(
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

        Returns
        -------
        display : ClassReliabilityDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        numbers = {"n_panels": n_panels, "n_columns": 1 if n_columns is None else n_columns}
        for key, number in numbers.items():
            if isinstance(number, bool) or not isinstance(number, Integral) or number < 1:
                raise ValueError(f"{key} must be an int of at least 1, got {number!r}.")
        drawn = list(self.displays.items())[:n_panels]
        n_wide = n_columns or min(4, len(drawn))
        n_high = -(-len(drawn) // n_wide)
        title = self._open_axes(ax, name, figsize=(2.1 * n_wide + 0.3, 2.4 * n_high + 0.6))
        heading = self._write_heading(title, len(drawn))
        top = LINE * (heading.count("\n") + 1)
        height = max((self._inches() - top) / n_high, 0.1)
        grid = self._open_grid(n_wide, [top, *[height] * n_high], heading, size="small")
        places = [grid[i // n_wide + 1, i % n_wide] for i in range(len(drawn))]
        self.axes_ = np.array([self.figure_.add_subplot(place) for place in places])
        for i, (panel, (label, display)) in enumerate(zip(self.axes_, drawn)):
            display.plot(ax=panel, histogram=False, **kwargs)
            width = display._count_characters()
            error = f"{display.calibration_error:.3f}"
            lines = [escape_text(label, width=width, n_lines=1)]
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

    def _write_heading(self, title: str, n_drawn: int) -> str:
        """Return the title, what is drawn, and how many classes are left out."""
        first, n_classes = next(iter(self.displays.values())), len(self.displays)
        text = f"Observed fraction against probability, by class; {first.error_name()}"
        if first.simultaneous and first.confidence_level is not None:
            text += f"; {first.confidence_level:.0%} for all of a panel at once"
        if n_drawn < n_classes:
            text += f"; {n_drawn} of {n_classes} classes, of the largest errors"
        # Letters are counted in the font of the axis labels; that of the heading is smaller.
        width = int(1.2 * self._count_characters())
        return "\n".join(escape_text(part, width=width) for part in (title, text) if part)
