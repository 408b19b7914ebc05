"""Error rate by difficulty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..difficulty import error_rate_by_difficulty, score_difficulty
from ._base import BaseDisplay, plain_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class DifficultyDisplay(BaseDisplay):
    """Error rate of a classifier in groups of samples of rising difficulty.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. A curve that rises
    means that the difficulty tells where the classifier errs.

    Parameters
    ----------
    error_rate : ndarray of shape (n_groups,)
        Error rate of each group, from the easiest to the hardest.
    overall : float, default=None
        Error rate of all samples, drawn as a line.
    name : str, default=None
        Name in the legend.

    Attributes
    ----------
    line_ : matplotlib Artist
        The curve.
    ax_ : matplotlib Axes
        Axes with the curve.
    figure_ : matplotlib Figure
        Figure that contains the curve.

    See Also
    --------
    skcalib.difficulty.error_rate_by_difficulty : The numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalib.difficulty import RelativeMahalanobisScorer
    >>> from skcalib.plots import DifficultyDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = RelativeMahalanobisScorer().fit(X, y)
    >>> classifier = GaussianNB().fit(X, y)
    >>> display = DifficultyDisplay.from_estimator(
    ...     classifier, X, y, scorer=scorer, n_groups=5
    ... )
    >>> display.error_rate.round(2)
    array([0.  , 0.  , 0.  , 0.03, 0.17])
    """

    def __init__(
        self,
        error_rate: NDArray[np.float64],
        *,
        overall: float | None = None,
        name: str | None = None,
    ) -> None:
        self.error_rate = error_rate
        self.overall = overall
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        scorer: Any,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Predict and score samples, and plot the error rate.

        Parameters
        ----------
        estimator : object
            Fitted classifier.
        X : array-like of shape (n_samples, n_features)
            Input of the classifier and of the scorer.
        y : array-like of shape (n_samples,)
            True labels.
        scorer : difficulty scorer or Pipeline that ends in one
            Fitted, on other samples or on the same.
        name : str, default=None
            Name in the legend, by default that of the class of the scorer.
        **kwargs : dict
            Passed to :meth:`from_predictions`.

        Returns
        -------
        display : DifficultyDisplay
            The display, plotted.
        """
        difficulty = score_difficulty(scorer, X, y)
        name = type(scorer).__name__ if name is None else name
        return cls.from_predictions(y, estimator.predict(X), difficulty, name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        difficulty: ArrayLike,
        *,
        n_groups: int = 10,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the error rate of given predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.
        y_pred : array-like of shape (n_samples,)
            Predicted labels.
        difficulty : array-like of shape (n_samples,)
            Difficulty, larger = harder.
        n_groups : int, default=10
            Number of groups of equal size.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        name : str, default=None
            Name in the legend.
        ax, **kwargs
            See :meth:`plot`.

        Returns
        -------
        display : DifficultyDisplay
            The display, plotted.
        """
        rate = error_rate_by_difficulty(
            y_true, y_pred, difficulty, n_groups=n_groups, sample_weight=sample_weight
        )
        # Groups have equal weight: the mean of their rates is the rate of all samples.
        return cls(rate, overall=float(rate.mean()), name=name).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Axes | None = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; a new figure by default.
        name : str, default=None
            Name in the legend, by default that of the display.
        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot` for the curve.

        Returns
        -------
        display : DifficultyDisplay
            The display itself.
        """
        label = self._open_axes(ax, name)
        n_groups = len(self.error_rate)
        if self.overall is not None:
            self._draw_reference([0, 100], [self.overall] * 2, "All samples")
        # The middle of every group.
        percentile = 100 * (np.arange(n_groups) + 0.5) / n_groups
        self.line_ = self._draw_curve(percentile, self.error_rate, label, kwargs)
        xlabel = plain_text("Difficulty percentile (easy to hard)", width=self._characters())
        self.ax_.set(xlabel=xlabel, ylabel="Error rate", xlim=(0, 100))
        self.ax_.set_ylim(bottom=0)
        self._draw_legend()
        return self
