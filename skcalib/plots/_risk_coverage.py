"""The risk-coverage curve."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..metrics import area_under_risk_coverage, coverage_at_risk, risk_coverage_curve
from ..utils.checking._arrays import check_weights
from ..utils.checking._proba import binomial_interval
from ..utils.meta._optional import import_optional
from ._base import THIN, PredictionDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
            True labels, integers or strings, or shares of people, see
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
            chosen = _last_point(curve, int(np.sum(curve.coverage <= limit)))
        elif threshold is not None:
            chosen = _last_point(curve, int(np.sum(curve.threshold > threshold)))
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
            ends = binomial_interval(risk[places], counts, self.confidence_level)
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


def _last_point(curve: Any, n_points: int) -> tuple[float, float] | None:
    """Return coverage and risk of the `n_points`-th point of the curve; None for 0."""
    if n_points == 0:
        return None
    return float(curve.coverage[n_points - 1]), float(curve.risk[n_points - 1])
