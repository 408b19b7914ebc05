"""Error rate by difficulty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..difficulty import error_rate_by_difficulty, score_difficulty
from ..utils import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class DifficultyDisplay:
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
    >>> display = DifficultyDisplay.from_estimator(classifier, scorer, X, y, n_groups=5)
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
        scorer: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Predict and score samples, and plot the error rate.

        Parameters
        ----------
        estimator : object
            Fitted classifier.
        scorer : difficulty scorer or Pipeline that ends in one
            Fitted, on other samples or on the same.
        X : array-like of shape (n_samples, n_features)
            Input of both.
        y : array-like of shape (n_samples,)
            True labels.
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
        pyplot = import_optional("matplotlib.pyplot", extra="plots")
        self.ax_ = pyplot.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        n_groups = len(self.error_rate)
        percentile = 100 * (np.arange(n_groups) + 0.5) / n_groups
        label = self.name if name is None else name
        self.line_ = self.ax_.plot(
            percentile, self.error_rate, **{"marker": "o", "label": label, **kwargs}
        )[0]
        all_samples = "All samples"
        if self.overall is not None and all_samples not in self._legend_labels():
            self.ax_.axhline(self.overall, color="k", linestyle=":", label=all_samples)
        self.ax_.set(
            xlabel="Difficulty percentile (easy to hard)", ylabel="Error rate", xlim=(0, 100)
        )
        self.ax_.set_ylim(bottom=0)
        if self._legend_labels():
            self.ax_.legend(loc="upper left")
        return self

    def _legend_labels(self) -> list[str]:
        return self.ax_.get_legend_handles_labels()[1]
