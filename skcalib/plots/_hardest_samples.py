"""The hardest and the easiest images of a data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..difficulty import score_difficulty
from ..utils import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class HardestSamplesDisplay:
    """Grid of images: the hardest samples in the upper row, the easiest in the lower.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one.

    Parameters
    ----------
    images : sequence of n_samples images
        Anything that :meth:`matplotlib.axes.Axes.imshow` takes: arrays of shape
        (height, width) or (height, width, channels), or PIL images.
    difficulty : ndarray of shape (n_samples,)
        Difficulty of each, larger = harder.
    labels : ndarray of shape (n_samples,), default=None
        Written above the images.

    Attributes
    ----------
    hardest_ : ndarray of shape (n_columns,)
        Rows of the samples shown above, hardest first.
    easiest_ : ndarray of shape (n_columns,)
        Rows of the samples shown below, easiest first.
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
    >>> difficulty = RelativeMahalanobisScorer().fit(
    ...     digits.data, digits.target
    ... ).difficulty(digits.data, digits.target)
    >>> display = HardestSamplesDisplay.from_predictions(
    ...     digits.images, difficulty, labels=digits.target, n_columns=5
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
    ) -> None:
        self.images = images
        self.difficulty = difficulty
        self.labels = labels

    @classmethod
    def from_estimator(
        cls,
        scorer: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        images: Any = None,
        n_columns: int = 8,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Score samples and show the hardest and easiest.

        Parameters
        ----------
        scorer : difficulty scorer or Pipeline that ends in one
            Fitted.
        X : array-like or sequence of n_samples samples
            What the scorer takes.
        y : array-like of shape (n_samples,), default=None
            Labels; written above the images. None shows the label-free difficulty.
        images : sequence of n_samples images, default=None
            None takes `X`.
        n_columns, ax, **kwargs
            See :meth:`plot`.

        Returns
        -------
        display : HardestSamplesDisplay
            The display, plotted.
        """
        return cls.from_predictions(
            X if images is None else images,
            score_difficulty(scorer, X, y),
            labels=y,
            n_columns=n_columns,
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        images: Any,
        difficulty: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        n_columns: int = 8,
        ax: Axes | None = None,
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
        n_columns, ax, **kwargs
            See :meth:`plot`.

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
        return cls(images, scores, labels=names).plot(n_columns=n_columns, ax=ax, **kwargs)

    def plot(self, *, n_columns: int = 8, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the grid.

        Parameters
        ----------
        n_columns : int, default=8
            Number of samples in each row.
        ax : matplotlib Axes, default=None
            Axes whose place the grid takes; a new figure by default.
        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.imshow`.

        Returns
        -------
        display : HardestSamplesDisplay
            The display itself.
        """
        if n_columns < 1:
            raise ValueError(f"n_columns must be at least 1, got {n_columns}.")
        pyplot = import_optional("matplotlib.pyplot", extra="plots")
        known = np.flatnonzero(np.isfinite(self.difficulty))
        order = known[np.argsort(self.difficulty[known], kind="stable")]
        self.easiest_, self.hardest_ = order[:n_columns], order[::-1][:n_columns]
        n_shown = len(self.easiest_)
        if ax is None:
            ax = pyplot.figure(figsize=(1.2 * n_shown + 0.4, 3.4)).add_subplot()
        self.ax_, self.figure_ = ax, ax.figure
        self.ax_.set_axis_off()
        place = self.ax_.get_subplotspec()
        if place is None:
            raise ValueError("ax must be part of a grid of subplots, got one placed by hand.")
        grid = place.subgridspec(2, n_shown, wspace=0.1, hspace=0.45)
        self.axes_ = grid.subplots(squeeze=False)
        for row, (name, samples) in enumerate(
            [("hardest", self.hardest_), ("easiest", self.easiest_)]
        ):
            self._plot_row(self.axes_[row], samples, kwargs)
            self.axes_[row, 0].set_ylabel(name)
        return self

    def _plot_row(
        self, axes: NDArray[Any], samples: NDArray[np.intp], kwargs: dict[str, Any]
    ) -> None:
        for ax, sample in zip(axes, samples):
            ax.imshow(self.images[sample], **{"cmap": "gray_r", **kwargs})
            ax.set(xticks=[], yticks=[])
            title = f"{self.difficulty[sample]:.3g}"
            if self.labels is not None:
                title = f"{self.labels[sample]}\n{title}"
            ax.set_title(title, fontsize="small")
