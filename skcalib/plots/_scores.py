"""Displays of scores: risk against coverage, decomposition, losses compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import ttest_1samp

from ..metrics import (
    area_under_risk_coverage,
    coverage_at_risk,
    risk_coverage_curve,
    score_decomposition,
)
from ..utils._arrays import check_numbers, check_weights
from ..utils._labels import format_labels, shorten
from ..utils._numeric import compute_binomial_interval
from ..utils._output import import_optional
from ._base import GROUND, MARKERS, THIN, BaseDisplay, PredictionDisplay, escape_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# The risk-coverage curve.

# The curve starts at this number of samples: the error rate of fewer is mostly chance.
FEWEST = 30
# A band of more points would look the same and take longer to fill.
N_BAND_POINTS = 1000


@dataclass(repr=False, eq=False)
class RiskCoverageDisplay(PredictionDisplay):
    """Risk-coverage curve: the error rate of the most confident samples.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. Good confidence keeps the
    curve low up to a high coverage; useless confidence keeps it at the error rate. The dotted line
    is the best possible ranking, which has all errors last. The curve starts at 30 samples, or at
    a fifth of all samples if there are few. Below that, the error rate is mostly chance.

    A classifier that abstains, such as :class:`~skcalib.selection.SelectiveClassifier`, is drawn
    by its own confidence, with a mark at its threshold.

    Parameters
    ----------
    coverage : ndarray of shape (n_thresholds,)
        Accepted fraction of the samples, increasing to 1.
    risk : ndarray of shape (n_thresholds,)
        Error rate of the accepted samples.
    area : float, default=None
        Area under the curve (AURC), shown in the title.
    n_samples : float, default=None
        Number of samples, or sum of their weights, for the band and the start of the curve; None
        draws no band, and the whole curve.
    confidence_level : float, default=0.95
        Level of the band, an exact binomial interval of the error rate at every coverage.
    chosen : tuple of two floats, default=None
        Coverage and risk of a point to mark.
    name : str, default=None
        Name of the model in the title or, of several, in the legend.

    Attributes
    ----------
    line_, ax_, figure_ : matplotlib Artist, Axes and Figure
        The curve, its axes and the figure.

    See Also
    --------
    skcalib.metrics.risk_coverage_curve : The numbers behind the curve.
    skcalib.metrics.area_under_risk_coverage : Its area.
    skcalib.selection.SelectiveClassifier : Answers only where its error rate is bounded.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skcalib.plots import RiskCoverageDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X[::2], y[::2])
    >>> display = RiskCoverageDisplay.from_estimator(model, X[1::2], y[1::2])
    >>> round(display.area, 3)
    0.002
    """

    coverage: NDArray[np.float64]
    risk: NDArray[np.float64]
    _: KW_ONLY
    area: float | None = None
    n_samples: float | None = None
    confidence_level: float | None = 0.95
    chosen: tuple[float, float] | None = None
    name: str | None = None

    @classmethod
    def _predictions(
        cls, estimator: Any, X: Any, y: ArrayLike, options: dict[str, Any]
    ) -> dict[str, Any]:
        predictions = super()._predictions(estimator, X, y, options)
        if hasattr(estimator, "confidence_samples") and "confidence" not in options:
            predictions["confidence"] = estimator.confidence_samples(X)
            one = not isinstance(estimator.threshold_, np.ndarray)
            if one and not {"target_risk", "threshold"} & set(options):
                predictions["threshold"] = estimator.threshold_
        return predictions

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        confidence: str | ArrayLike = "msp",
        target_risk: float | None = None,
        threshold: float | None = None,
        confidence_level: float | None = 0.95,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the risk-coverage curve of given probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
            True labels, integers or strings, or soft labels, see
            :func:`~skcalib.metrics.expected_calibration_error`.
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
            Probabilities of the classes or of the positive class.
        confidence : {"msp", "entropy", "margin"} or array-like of shape (n_samples,), \
default="msp"
            What orders the samples, see :func:`~skcalib.metrics.risk_coverage_curve`.
        target_risk : float, default=None
            Marks the largest coverage of an error rate of at most this.
        threshold : float, default=None
            Marks the coverage at which samples of larger confidence are accepted. Not with
            `target_risk`.
        confidence_level : float or None, default=0.95
            Level in (0, 1) of the band: an exact binomial interval of the error rate at every
            coverage, with weights counted as numbers of samples. None draws no band.
        sample_weight, labels, pos_label : of :func:`~skcalib.metrics.risk_coverage_curve`
        name : str, default=None
            Name of the display, which its title or legend shows.
        **kwargs : dict
            Options of :meth:`plot`.

        Returns
        -------
        display : RiskCoverageDisplay
            The display, plotted.
        """
        if target_risk is not None and threshold is not None:
            raise ValueError(
                f"threshold must be None with target_risk, got {threshold!r} and {target_risk!r}."
            )
        options: dict[str, Any] = {
            "confidence": confidence,
            "sample_weight": sample_weight,
            "labels": labels,
            "pos_label": pos_label,
        }
        curve = risk_coverage_curve(y_true, y_proba, **options)
        area = area_under_risk_coverage(y_true, y_proba, **options)
        n_samples = len(np.asarray(y_true))
        weight = check_weights(sample_weight, n_samples)
        chosen = None
        if target_risk is not None:
            limit = coverage_at_risk(y_true, y_proba, risk=target_risk, **options)
            chosen = _find_last_point(curve, int(np.sum(curve.coverage <= limit)))
        elif threshold is not None:
            chosen = _find_last_point(curve, int(np.sum(curve.threshold > threshold)))
        return cls(
            curve.coverage,
            curve.risk,
            area=area,
            n_samples=float(n_samples if weight is None else weight.sum()),
            confidence_level=confidence_level,
            chosen=chosen,
            name=name,
        ).plot(**kwargs)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        name: str | None = None,
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
        ref_line : bool, default=True
            Whether to draw the curve of the best possible ranking.
        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot` for the curve.

        Returns
        -------
        display : RiskCoverageDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        label = self._open_axes(ax, name)
        # Eight markers, at one of ten places within each eighth of the coverage, so that those of
        # several curves do not hide each other.
        shift = (len(self.ax_.lines) % 10 + 0.5) / 80
        start = 0
        if self.n_samples is not None:
            first = min(FEWEST / self.n_samples, 0.2)
            start = int(np.searchsorted(self.coverage, first - 1e-9))
        x, risk = self.coverage[start:], self.risk[start:]
        marked = np.searchsorted(x, shift + np.arange(8) / 8)
        markers = {"markevery": np.unique(marked).tolist()}
        self.line_ = self._draw_curve(x, risk, label, kwargs, **markers)
        if self.n_samples is not None and self.confidence_level is not None:
            places = np.searchsorted(x, np.linspace(x[0], x[-1], min(len(x), N_BAND_POINTS)))
            places = np.unique(places)
            counts = x[places] * self.n_samples
            ends = compute_binomial_interval(risk[places], counts, self.confidence_level)
            self._draw_band(x[places], *ends, color=self.line_.get_color())
        if ref_line:
            self._draw_oracle()
        if self.chosen is not None:
            self._draw_chosen(*self.chosen)
        self.ax_.set(xlabel="Coverage", ylabel="Risk (error rate)", xlim=(0, 1))
        ticker = import_optional("matplotlib.ticker", extra="plots")
        self.ax_.xaxis.set_major_formatter(ticker.PercentFormatter(1, decimals=0))
        self.ax_.yaxis.set_major_formatter(ticker.PercentFormatter(1))
        self._set_limits()
        self._explain()
        return self

    def _draw_oracle(self) -> None:
        """Draw the risk of a ranking with all correct samples first and all errors last."""
        accuracy = 1 - self.risk[-1]
        x = np.linspace(accuracy, 1, 100)
        # At a coverage of c, `accuracy` is correct and the rest of c is wrong; no error at c = 0.
        y = 1 - accuracy / np.maximum(x, np.finfo(np.float64).tiny)
        label = "Best possible ranking"
        shown = self.ax_.get_legend_handles_labels()[1]
        self._draw_reference(
            np.append(0, x), np.append(0, y), None if label in shown else label,
            self.line_.get_color(),
        )  # fmt: skip

    def _draw_chosen(self, coverage: float, risk: float) -> None:
        color = self.line_.get_color()
        self.ax_.plot([coverage, coverage, 0], [0, risk, risk], color=color, linewidth=THIN)
        self.ax_.plot(
            coverage, risk, color=color, marker="*", markersize=14, linestyle="", zorder=3,
            markeredgecolor=self.ax_.get_facecolor(),
            label=f"Error {risk:.1%} at coverage {coverage:.1%}",
        )  # fmt: skip

    def _set_limits(self) -> None:
        """Fit the axes to the curves above a coverage of 5 %: below it are few samples."""
        curves = [np.asarray(line.get_xydata(), dtype=np.float64) for line in self.ax_.lines]
        highest = max(curve[curve[:, 0] >= 0.05, 1].max(initial=0.0) for curve in curves)
        # Without errors, highest is 0, and matplotlib warns about axes from 0 to 0.
        self.ax_.set_ylim(0, 1.15 * highest or 1.0)

    def _measure(self) -> tuple[str, str]:
        return ("", "") if self.area is None else ("AURC", f"{self.area:.4f}")


def _find_last_point(curve: Any, n_points: int) -> tuple[float, float] | None:
    """Return coverage and risk of the `n_points`-th point of the curve; None for 0."""
    if n_points == 0:
        return None
    return float(curve.coverage[n_points - 1]), float(curve.risk[n_points - 1])


# Miscalibration and discrimination of several models, with lines of equal score.

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
            True labels, integers or strings, or soft labels, see
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
        points = np.array([np.asarray(line.get_xydata())[0] for line in self._find_curves()])
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


# Scores of several methods over seeds: dots, mean and interval, one row for every method.

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
                raise ValueError(
                    f"baseline must be one of {format_labels(values)}, got {shorten(baseline)}."
                )
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
        width = self._count_characters()
        # Names take up to a third of the width, and the more lines the fewer rows there are.
        height = self._count_characters(vertical=True) // (2 * max(len(self.scores), 1))
        n_lines = min(max(height, 1), 3)
        names = [
            escape_text(method, width=min(width // 3, 24), n_lines=n_lines)
            for method in self.scores
        ]
        self.ax_.set_yticks(range(len(names)), names, size="small" if width < 40 else "medium")
        self.ax_.set_ylim(len(names) - 0.5, -0.5)
        xlabel = self.score_name
        if self.baseline is not None:
            self.ax_.axvline(0, color=self.ax_.xaxis.label.get_color(), linestyle=":")
            xlabel = f"{self.score_name} minus that of {self.baseline}"
        self.ax_.set_xlabel(escape_text(xlabel, width=width * 4 // 5))
        if name:
            # The names of the methods take some of the width.
            self.ax_.set_title(escape_text(name, width=width * 3 // 4))

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
            low, high = _compute_interval(values, self.confidence_level)
            self.intervals_[method] = low, high
            self.ax_.plot([low, high], [row, row], color=color, linewidth=2)
        ground = self.ax_.get_facecolor()
        self.ax_.plot(
            mean, row, color=color, marker=marker, markersize=MEAN, markeredgecolor=ground,
            zorder=ABOVE,
        )  # fmt: skip


def _compute_interval(values: NDArray[np.float64], confidence_level: float) -> tuple[float, float]:
    """Return Student's interval of the mean."""
    if np.ptp(values) == 0:
        # The interval is the mean then, and scipy would warn.
        return float(values[0]), float(values[0])
    low, high = ttest_1samp(values, 0).confidence_interval(confidence_level)
    return float(low), float(high)
