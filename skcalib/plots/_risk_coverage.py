"""The risk-coverage curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..metrics import area_under_risk_coverage, risk_coverage_curve
from ._base import BaseDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class RiskCoverageDisplay(BaseDisplay):
    """Risk-coverage curve: the error rate of the most confident samples.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. Good confidence keeps the
    curve low up to a high coverage; confidence that says nothing keeps it at the error rate.

    Parameters
    ----------
    coverage : ndarray of shape (n_thresholds,)
        Accepted fraction of the samples, increasing to 1.
    risk : ndarray of shape (n_thresholds,)
        Error rate of the accepted samples.
    area : float, default=None
        Area under the curve (AURC), shown in the legend.
    name : str, default=None
        Name of the model in the legend.

    Attributes
    ----------
    line_ : matplotlib Artist
        The curve.
    ax_ : matplotlib Axes
        Axes with the curve.
    figure_ : matplotlib Figure
        Figure that holds them.

    See Also
    --------
    skcalib.metrics.risk_coverage_curve : The numbers behind the curve.
    skcalib.metrics.area_under_risk_coverage : Its area.

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

    def __init__(
        self,
        coverage: NDArray[np.float64],
        risk: NDArray[np.float64],
        *,
        area: float | None = None,
        name: str | None = None,
    ) -> None:
        self.coverage = coverage
        self.risk = risk
        self.area = area
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Plot the risk-coverage curve of a fitted classifier.

        Parameters
        ----------
        estimator : object
            Fitted classifier with `predict_proba`.
        X : array-like of shape (n_samples, n_features)
            Input.
        y : array-like of shape (n_samples,)
            True labels.
        name : str, default=None
            Name in the legend, by default that of the class of the estimator.
        **kwargs : dict
            Passed to :meth:`from_predictions`.

        Returns
        -------
        display : RiskCoverageDisplay
            The display, plotted.
        """
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(
            y, estimator.predict_proba(X), labels=estimator.classes_, name=name, **kwargs
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        confidence: str | ArrayLike = "msp",
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the risk-coverage curve of given probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, integers or strings.
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
            Probabilities of the classes or of the positive class.
        confidence : {"msp", "entropy", "margin"} or array-like of shape (n_samples,), \
default="msp"
            What orders the samples, see :func:`~skcalib.metrics.risk_coverage_curve`.
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
        display : RiskCoverageDisplay
            The display, plotted.
        """
        options: dict[str, Any] = {
            "confidence": confidence,
            "sample_weight": sample_weight,
            "labels": labels,
            "pos_label": pos_label,
        }
        curve = risk_coverage_curve(y_true, y_proba, **options)
        area = area_under_risk_coverage(y_true, y_proba, **options)
        return cls(curve.coverage, curve.risk, area=area, name=name).plot(**kwargs)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        ref_line: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; a new figure by default.
        name : str, default=None
            Name in the legend, by default that of the display.
        ref_line : bool, default=True
            Whether to draw the error rate, at which confidence that says nothing stays.
        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot` for the curve.

        Returns
        -------
        display : RiskCoverageDisplay
            The display itself.
        """
        label = self._open_axes(ax, name)
        # A marker every eighth of the coverage, between those of other curves.
        # Ten places within an eighth, by the number of lines that the axes have already.
        shift = (len(self.ax_.lines) % 10 + 0.5) / 80
        marked = np.searchsorted(self.coverage, shift + np.arange(8) / 8)
        markers = {"markevery": np.unique(marked).tolist()}
        self.line_ = self._draw_curve(self.coverage, self.risk, label, kwargs, **markers)
        if ref_line:
            color = self.line_.get_color()
            self._draw_reference([0, 1], [self.risk[-1]] * 2, color=color)
        self.ax_.set(xlabel="Coverage", ylabel="Risk (error rate)", xlim=(0, 1))
        self._set_limits()
        self._draw_legend()
        return self

    def _set_limits(self) -> None:
        """Fit the axes to the curves above a coverage of 5 %.

        Below, a curve is the error rate of a few samples: one error at the top makes it 1.
        """
        curves = [np.asarray(line.get_xydata(), dtype=np.float64) for line in self.ax_.lines]
        highest = max(curve[curve[:, 0] >= 0.05, 1].max(initial=0.0) for curve in curves)
        # Without any error highest is 0, and matplotlib warns of axes from 0 to 0.
        self.ax_.set_ylim(0, 1.15 * highest or 1.0)

    def _measure(self) -> tuple[str, str]:
        return ("", "") if self.area is None else ("AURC", f"{self.area:.4f}")
