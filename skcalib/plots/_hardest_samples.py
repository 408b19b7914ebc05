"""The hardest and the easiest samples of a data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..difficulty import score_difficulty
from ._base import BaseDisplay, plain_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class HardestSamplesDisplay(BaseDisplay):
    """Grid of images: the hardest samples in the upper row, the easiest in the lower.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. No sample is shown twice.

    Parameters
    ----------
    images : sequence of n_samples images
        Anything that :meth:`matplotlib.axes.Axes.imshow` takes: arrays of shape
        (height, width) or (height, width, channels), or PIL images.
    difficulty : ndarray of shape (n_samples,)
        Difficulty of each, larger = harder.
    labels : ndarray of shape (n_samples,), default=None
        Written above the images.
    name : str, default=None
        Title of the grid.

    Attributes
    ----------
    hardest_ : ndarray of shape (n_columns,)
        Numbers of the samples shown above, hardest first.
    easiest_ : ndarray of shape (n_columns,)
        Numbers of the samples shown below, easiest first.
    axes_ : ndarray of matplotlib Axes of shape (2, n_columns)
        Axes of the images.
    ax_ : matplotlib Axes
        Axes that contains the grid.
    figure_ : matplotlib Figure
        Figure that contains the grid.

    See Also
    --------
    DifficultyDisplay : Error rate against difficulty.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skcalib.difficulty import RelativeMahalanobisScorer
    >>> from skcalib.plots import HardestSamplesDisplay
    >>> digits = load_digits()
    >>> scorer = RelativeMahalanobisScorer().fit(digits.data, digits.target)
    >>> display = HardestSamplesDisplay.from_estimator(
    ...     scorer, digits.data, digits.target, images=digits.images, n_columns=5
    ... )
    >>> display.axes_.shape
    (2, 5)
    """

    def __init__(
        self,
        images: Any,
        difficulty: NDArray[np.floating],
        *,
        labels: NDArray[Any] | None = None,
        name: str | None = None,
    ) -> None:
        self.images = images
        self.difficulty = difficulty
        self.labels = labels
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        images: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Score samples and show the hardest and easiest.

        Parameters
        ----------
        estimator : difficulty scorer or Pipeline that ends in one
            Fitted.
        X : array-like or sequence of n_samples samples
            What the scorer takes.
        y : array-like of shape (n_samples,), default=None
            Labels; written above the images. None shows the label-free difficulty.
        images : sequence of n_samples images, default=None
            None takes `X`.
        name : str, default=None
            Title of the grid.
        **kwargs : dict
            Passed to :meth:`from_predictions`.

        Returns
        -------
        display : HardestSamplesDisplay
            The display, plotted.
        """
        images = X if images is None else images
        difficulty = score_difficulty(estimator, X, y)
        return cls.from_predictions(images, difficulty, labels=y, name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        images: Any,
        difficulty: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Show the hardest and easiest of samples that have been scored.

        Parameters
        ----------
        images : sequence of n_samples images
            Arrays of shape (height, width) or (height, width, channels), or PIL images.
        difficulty : array-like of shape (n_samples,)
            Difficulty, larger = harder. NaN, where a scorer has no answer, is not shown.
        labels : array-like of shape (n_samples,), default=None
            Written above the images.
        name : str, default=None
            Title of the grid.
        **kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        display : HardestSamplesDisplay
            The display, plotted.

        Raises
        ------
        ValueError
            If the arguments differ in length or the images are not images.
        """
        scores = np.asarray(difficulty, dtype=float)
        if scores.ndim != 1 or not np.isfinite(scores).any():
            raise ValueError(
                "difficulty must be 1-D and have a finite value, got "
                f"{np.isfinite(scores).sum()} of them in shape {scores.shape}."
            )
        if len(images) != len(scores):
            raise ValueError(
                "images and difficulty must have the same number of rows, "
                f"got {len(images)} and {len(scores)}."
            )
        names = None if labels is None else np.asarray(labels)
        if names is not None and names.shape != scores.shape:
            raise ValueError(f"labels must have shape {scores.shape}, got {names.shape}.")
        shape = np.shape(images[0])
        if len(shape) not in (2, 3):
            raise ValueError(
                "images must have shape (height, width) or (height, width, channels) each, "
                f"got {shape}."
            )
        return cls(images, scores, labels=names, name=name).plot(**kwargs)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        n_columns: int = 8,
        **kwargs: Any,
    ) -> Self:
        """Draw the grid.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes whose place the grid takes; a new figure by default.
        name : str, default=None
            Title of the grid, by default the name of the display.
        n_columns : int, default=8
            Number of samples in each row.
        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.imshow`.

        Returns
        -------
        display : HardestSamplesDisplay
            The display itself.
        """
        if n_columns < 1:
            raise ValueError(f"n_columns must be at least 1, got {n_columns}.")
        known = np.flatnonzero(np.isfinite(self.difficulty))
        order = known[np.argsort(self.difficulty[known], kind="stable")]
        n_shown = min(n_columns, (len(order) + 1) // 2)
        # Of an odd number of samples, the one in the middle is among the hardest.
        self.hardest_, self.easiest_ = order[::-1][:n_shown], order[: len(order) // 2][:n_shown]
        title = self._open_axes(ax, name, figsize=(1.2 * n_shown + 0.4, 3.4))
        place = self.ax_.get_subplotspec()
        if place is None:
            raise ValueError("ax must be part of a grid of subplots, got one placed by hand.")
        self.ax_.set_axis_off()
        self.axes_ = place.subgridspec(2, n_shown, wspace=0.1, hspace=0.45).subplots(squeeze=False)
        self._plot_row(self.axes_[0], self.hardest_, "hardest", kwargs)
        self._plot_row(self.axes_[1], self.easiest_, "easiest", kwargs)
        if title:
            self.ax_.set_title(plain_text(title, width=self._characters()), pad=24)
        return self

    def _plot_row(
        self, axes: NDArray[Any], samples: NDArray[np.intp], name: str, kwargs: dict[str, Any]
    ) -> None:
        axes[0].set_ylabel(name)
        for ax in axes[len(samples) :]:
            ax.set_axis_off()
        for ax, sample in zip(axes, samples):
            ax.imshow(self.images[sample], **{"cmap": "gray_r", **kwargs})
            ax.set(xticks=[], yticks=[])
            title = f"{self.difficulty[sample]:.3g}"
            if self.labels is not None:
                title = f"{plain_text(self.labels[sample])}\n{title}"
            ax.set_title(title, fontsize="small")
