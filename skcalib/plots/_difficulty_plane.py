"""The plane of difficulty: depth when held out against depth when trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..difficulty import difficulty_quadrant
from ..utils import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CORNERS = {
    "easy": ("easy", "left", "bottom"),
    "looks_like_other_class": ("looks like another class", "left", "top"),
    "ambiguous_without_label": ("ambiguous without its label", "right", "bottom"),
    "ambiguous": ("ambiguous", "right", "top"),
}


class DifficultyPlaneDisplay:
    """The four forms of difficulty, as a cloud of rows in the plane of their two depths.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one.

    Parameters
    ----------
    depth_held_out : ndarray of shape (n_samples,)
        Prediction depth in networks that did not train on the row.
    depth_trained : ndarray of shape (n_samples,)
        Prediction depth in networks that trained on the row.
    difficulty_type : ndarray of str of shape (n_samples,)
        Forms of difficulty, as from :func:`~skcalib.difficulty.difficulty_quadrant`.

    Attributes
    ----------
    scatters_ : dict of matplotlib Artist
        The points of every form.
    ax_ : matplotlib Axes
        Axes with the points.
    figure_ : matplotlib Figure
        Figure that holds them.

    See Also
    --------
    skcalib.difficulty.DifficultyProfiler : The study that measures the depths.

    References
    ----------
    Baldock, Maennel, Neyshabur, Deep Learning Through the Lens of Example Difficulty, NeurIPS
    2021, Sec. 4.

    Examples
    --------
    >>> from skcalib.plots import DifficultyPlaneDisplay
    >>> display = DifficultyPlaneDisplay.from_predictions([0, 1, 5, 4], [0, 5, 1, 5])
    >>> display.difficulty_type[[0, 3]].tolist()
    ['easy', 'ambiguous']
    """

    def __init__(
        self,
        depth_held_out: NDArray[np.float64],
        depth_trained: NDArray[np.float64],
        difficulty_type: NDArray[np.str_],
    ) -> None:
        self.depth_held_out = depth_held_out
        self.depth_trained = depth_trained
        self.difficulty_type = difficulty_type

    @classmethod
    def from_estimator(cls, estimator: Any, **kwargs: Any) -> Self:
        """Plot the profile of a fitted study.

        Parameters
        ----------
        estimator : DifficultyProfiler
            Fitted profiler.
        **kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        display : DifficultyPlaneDisplay
            The display, plotted.
        """
        columns = ("depth_held_out", "depth_trained", "difficulty_type")
        return cls(*(estimator.profile_[name] for name in columns)).plot(**kwargs)

    @classmethod
    def from_predictions(
        cls,
        depth_held_out: ArrayLike,
        depth_trained: ArrayLike,
        *,
        threshold: float | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot given depths.

        Parameters
        ----------
        depth_held_out : array-like of shape (n_samples,)
            Prediction depth in networks that did not train on the row.
        depth_trained : array-like of shape (n_samples,)
            Prediction depth in networks that trained on the row.
        threshold : float, default=None
            As in :func:`~skcalib.difficulty.difficulty_quadrant`.
        **kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        display : DifficultyPlaneDisplay
            The display, plotted.
        """
        form = difficulty_quadrant(depth_held_out, depth_trained, threshold=threshold)
        held_out = np.asarray(depth_held_out, dtype=np.float64)
        trained = np.asarray(depth_trained, dtype=np.float64)
        return cls(held_out, trained, form).plot(**kwargs)

    def plot(self, *, ax: Axes | None = None, jitter: float = 0.15, **kwargs: Any) -> Self:
        """Draw the points, and in every corner its name and its share of the rows.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; a new figure by default.
        jitter : float, default=0.15
            Points are moved at random by up to this many layers, so that equal depths can be
            told apart.
        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.scatter`.

        Returns
        -------
        display : DifficultyPlaneDisplay
            The display itself.
        """
        pyplot = import_optional("matplotlib.pyplot", extra="plots")
        self.ax_ = pyplot.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        noise = np.random.default_rng(0).uniform(-jitter, jitter, (2, len(self.difficulty_type)))
        self.scatters_ = {}
        for form, (label, horizontal, vertical) in CORNERS.items():
            rows = self.difficulty_type == form
            self.scatters_[form] = self.ax_.scatter(
                self.depth_held_out[rows] + noise[0, rows],
                self.depth_trained[rows] + noise[1, rows],
                **{"s": 8, "alpha": 0.5, "linewidths": 0, **kwargs},
            )
            x, y = 0.01 if horizontal == "left" else 0.99, 0.01 if vertical == "bottom" else 0.99
            text = f"{label}: {rows.mean():.1%}"
            self.ax_.text(
                x, y, text, transform=self.ax_.transAxes, ha=horizontal, va=vertical, size="small"
            )
        self.ax_.margins(0.12)
        self.ax_.set(
            xlabel="Prediction depth, held out",
            ylabel="Prediction depth, trained on",
        )
        return self
