"""The plane of difficulty: depth of samples when held out against depth when trained on."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..difficulty.records import difficulty_quadrant
from ..utils.checking._arrays import as_floats
from ._base import GROUND, BaseDisplay, plain_text
from ._points import MANY_COLORS, N_CELLS, opacity, point_style

# The corner of each form of difficulty in the plane (right, top), and its text there.
FORMS = {
    "easy": (0, 0, "easy"),
    "looks_like_other_class": (0, 1, "looks like\nanother class"),
    "ambiguous_without_label": (1, 0, "ambiguous\nwithout its label"),
    "ambiguous": (1, 1, "ambiguous"),
}
# Points are moved at random by up to this many layers: equal depths would hide each other.
JITTER = 0.15
# Forms overlap in the plane.
FAINT = 0.5
# Room around the points, which leaves the corners to the texts.
MARGINS = (0.12, 0.2)
COLUMNS = ("depth_held_out", "depth_trained", "difficulty_type")


@dataclass(repr=False, eq=False)
class DifficultyPlaneDisplay(BaseDisplay):
    """The four forms of difficulty, as a cloud of samples in the plane of their two depths.

    Use :meth:`from_profile` or :meth:`from_predictions` to create one. Every corner has its name
    and its fraction of the samples. Points are moved at random by up to 0.15 layers, so that
    equal depths do not hide each other.

    Parameters
    ----------
    depth_held_out : ndarray of shape (n_samples,)
        Prediction depth in networks that did not train on the sample; larger = harder.
    depth_trained : ndarray of shape (n_samples,)
        Prediction depth in networks that trained on the sample; larger = harder.
    difficulty_type : ndarray of str of shape (n_samples,)
        Forms of difficulty, as from
        :func:`~skcalib.difficulty.records.difficulty_quadrant`. Samples of another form,
        such as "undefined", are not drawn, but count in the fractions.
    name : str, default=None
        Title of the axes.

    Attributes
    ----------
    scatters_ : dict of matplotlib Artist
        The points of every form.
    ax_, figure_ : matplotlib Axes and Figure
        Axes of the points, and the figure.

    See Also
    --------
    skcalib.difficulty.DifficultyProfiler : The study that measures the depths.
    skcalib.difficulty.records.difficulty_quadrant : The form of every sample.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, Sec. 4.

    Examples
    --------
    >>> from skcalib.plots import DifficultyPlaneDisplay
    >>> display = DifficultyPlaneDisplay.from_predictions([0, 1, 5, 4], [0, 5, 1, 5])
    >>> display.difficulty_type[[0, 3]].tolist()
    ['easy', 'ambiguous']
    """

    depth_held_out: NDArray[np.float64]
    depth_trained: NDArray[np.float64]
    difficulty_type: NDArray[np.str_]
    _: KW_ONLY
    name: str | None = None

    @classmethod
    def from_profile(cls, profile: Any, *, name: str | None = None, **kwargs: Any) -> Self:
        """Plot the profile of a study.

        Parameters
        ----------
        profile : structured array or DataFrame of n_samples rows
            The `profile_` of a fitted :class:`~skcalib.difficulty.DifficultyProfiler`.
        name : str, default=None
            Name of the display, which its title or legend shows.
        **kwargs : dict
            Options of :meth:`plot`.

        Returns
        -------
        display : DifficultyPlaneDisplay
            The display, plotted.
        """
        try:
            columns = [np.asarray(profile[column]) for column in COLUMNS]
        except (TypeError, ValueError, LookupError):
            raise TypeError(
                f"profile must be a table with the columns {', '.join(COLUMNS)}, "
                f"got {type(profile).__name__}."
            ) from None
        return cls(*columns, name=name).plot(**kwargs)

    @classmethod
    def from_predictions(
        cls,
        depth_held_out: ArrayLike,
        depth_trained: ArrayLike,
        *,
        threshold: float | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot given depths.

        Parameters
        ----------
        depth_held_out, depth_trained : of :func:`~skcalib.difficulty.records.difficulty_quadrant`
        threshold : of :func:`~skcalib.difficulty.records.difficulty_quadrant`
        name : str, default=None
            Name of the display, which its title or legend shows.
        **kwargs : dict
            Options of :meth:`plot`.

        Returns
        -------
        display : DifficultyPlaneDisplay
            The display, plotted.
        """
        held_out = as_floats(depth_held_out, name="depth_held_out")
        trained = as_floats(depth_trained, name="depth_trained")
        form = difficulty_quadrant(held_out, trained, threshold=threshold)
        return cls(held_out, trained, form, name=name).plot(**kwargs)

    def _draw(self, name: str, kwargs: dict[str, Any]) -> None:
        n_samples = len(self.difficulty_type)
        # A fixed seed: the same picture every time, and no draw from the user's generator.
        noise = np.random.default_rng(0).uniform(-JITTER, JITTER, (2, n_samples))
        style = point_style(n_samples) | {"alpha": FAINT}
        x, y = self.depth_held_out + noise[0], self.depth_trained + noise[1]
        as_cells = n_samples > MANY_COLORS and not kwargs
        self.scatters_: dict[str, Any] = {}
        for color, (form, (right, top, text)) in zip(self._colors(), FORMS.items()):
            chosen = self.difficulty_type == form
            if as_cells:
                # Cells of the same size for all forms.
                extent = (np.nanmin(x), np.nanmax(x), np.nanmin(y), np.nanmax(y))
                self.scatters_[form] = self.ax_.hexbin(
                    x[chosen], y[chosen], gridsize=N_CELLS, mincnt=1, linewidths=0.2, extent=extent
                )
            else:
                self.scatters_[form] = self.ax_.scatter(
                    x[chosen], y[chosen], **{**style, "color": color, **kwargs}
                )
            self.ax_.annotate(
                f"{text}\n{chosen.mean():.1%}",
                (right, top),
                # 4 points from the corner toward the middle: +4 at 0, -4 at 1.
                xytext=(4 - 8 * right, 4 - 8 * top),
                xycoords="axes fraction",
                textcoords="offset points",
                ha="right" if right else "left",
                va="top" if top else "bottom",
                color=color,
                size="small",
                bbox={**GROUND, "facecolor": self.ax_.get_facecolor()},
            )
        if as_cells:
            counts = [np.asarray(cells.get_array()) for cells in self.scatters_.values()]
            of_all = np.concatenate(counts)
            for color, count, cells in zip(self._colors(), counts, self.scatters_.values()):
                cells.set(array=None, color=color, alpha=opacity(count, of_all))
        self.ax_.margins(*MARGINS)
        self.ax_.set(xlabel="Prediction depth, held out", ylabel="Prediction depth, trained on")
        if name:
            self.ax_.set_title(plain_text(name, width=self._characters()))
