"""Displays of a training: data map, probes along the layers, depth held out and trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..difficulty.training_dynamics import (
    confidence_variability,
    consistency_score,
    difficulty_quadrant,
)
from ..utils._arrays import as_floats, check_has
from ..utils._labels import as_label_matrix, check_labels_like
from ..utils._numeric import compute_binomial_interval
from ._base import (
    GROUND,
    MANY_COLORS,
    N_CELLS,
    BaseDisplay,
    PredictionDisplay,
    choose_opacity,
    choose_point_style,
    draw_points,
    escape_text,
)

# The data map of a training: confidence in the label against its variability.

# Places and names of the regions of the map, from the paper. The cloud is a bow that opens to the
# left: there is room inside it.
REGIONS = (
    (0.03, 0.75, "easy to learn", "left", "center"),
    (0.97, 0.5, "ambiguous", "right", "center"),
    (0.03, 0.25, "hard to learn", "left", "center"),
)


@dataclass(repr=False, eq=False)
class TrainingMapDisplay(BaseDisplay):
    """Data map: mean probability of the label against its spread through a training.

    Use :meth:`from_dynamics` or :meth:`from_predictions` to create one. Samples whose label stays
    improbable are hard to learn, and often mislabeled; samples whose label is probable in some
    epochs only are ambiguous [1]_.

    Parameters
    ----------
    variability : ndarray of shape (n_samples,)
        Standard deviation of the probability of the label over the epochs.
    confidence : ndarray of shape (n_samples,)
        Mean of that probability.
    correctness : ndarray of shape (n_samples,), default=None
        Fraction of the epochs at which the prediction is the label, shown as color.
    name : str, default=None
        Title of the axes.

    Attributes
    ----------
    scatter_, ax_, figure_ : matplotlib Artist, Axes and Figure
        The points, their axes and the figure.

    See Also
    --------
    skcalib.nets.TrainingDynamics : Records a training.
    skcalib.difficulty.training_dynamics.confidence_variability : The horizontal axis.
    EmbeddingMapDisplay : The samples by their features.

    References
    ----------
    .. [1] S. Swayamdipta, R. Schwartz, N. Lourie, Y. Wang, H. Hajishirzi, N. Smith, Y. Choi,
       "Dataset Cartography: Mapping and Diagnosing Datasets with Training Dynamics", EMNLP 2020,
       Sec. 2.

    Examples
    --------
    >>> from skcalib.plots import TrainingMapDisplay
    >>> y_proba = [[0.5, 0.6, 0.2], [0.9, 0.3, 0.1], [1.0, 0.6, 0.3]]
    >>> display = TrainingMapDisplay.from_predictions(y_proba)
    >>> display.confidence.round(1)
    array([0.8, 0.5, 0.2])
    """

    variability: NDArray[np.float64]
    confidence: NDArray[np.float64]
    _: KW_ONLY
    correctness: NDArray[np.float64] | None = None
    name: str | None = None

    @classmethod
    def from_dynamics(cls, dynamics: Any, *, name: str | None = None, **kwargs: Any) -> Self:
        """Plot the record of a training.

        Parameters
        ----------
        dynamics : TrainingDynamics
            Callback of a fitted net. The row of the untrained network is left out.
        name : str, default=None
            Name of the display, which its title or legend shows.
        **kwargs : dict
            Options of :meth:`plot`.

        Returns
        -------
        display : TrainingMapDisplay
            The display, plotted.
        """
        recorded = ("confidence_", "prediction_", "label_")
        what = "a TrainingDynamics that has recorded a training"
        check_has(dynamics, *recorded, name="dynamics", what=what)
        return cls.from_predictions(
            dynamics.confidence_[1:],
            predictions=dynamics.prediction_[1:],
            y=dynamics.label_,
            name=name,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_proba: ArrayLike,
        *,
        predictions: ArrayLike | None = None,
        y: ArrayLike | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot a given record.

        Parameters
        ----------
        y_proba : array-like of shape (n_epochs, n_samples)
            Probability of the label of every sample after every epoch, in [0, 1].
        predictions : array-like of shape (n_epochs, n_samples), default=None
            Predicted labels, which with `y` give the color; None draws one color.
        y : array-like of shape (n_samples,), default=None
            Labels.
        name : str, default=None
            Name of the display, which its title or legend shows.
        **kwargs : dict
            Options of :meth:`plot`.

        Returns
        -------
        display : TrainingMapDisplay
            The display, plotted.
        """
        variability = confidence_variability(y_proba)
        confidence = np.asarray(y_proba).mean(axis=0, dtype=np.float64)
        if (predictions is None) != (y is None):
            raise ValueError("predictions must be given together with y, got one of them alone.")
        fraction = None
        if predictions is not None and y is not None:
            fraction = consistency_score(predictions, y)
            if fraction.shape != confidence.shape:
                raise ValueError(
                    f"predictions must have as many columns as y_proba, {len(confidence)}, "
                    f"got {len(fraction)}."
                )
        return cls(variability, confidence, correctness=fraction, name=name).plot(**kwargs)

    def _draw(self, name: str, kwargs: dict[str, Any]) -> None:
        self.scatter_ = draw_points(
            self.ax_,
            np.column_stack([self.variability, self.confidence]),
            self.correctness,
            label="Fraction of epochs correct",
            hard_is_low=True,
            limits=(0.0, 1.0),
            **kwargs,
        )
        for x, y, text, ha, va in REGIONS:
            self.ax_.annotate(
                text, (x, y), xycoords="axes fraction", ha=ha, va=va,
                size="small",
                bbox={**GROUND, "facecolor": self.ax_.get_facecolor()},
            )  # fmt: skip
        self.ax_.set(xlim=(-0.01, None), ylim=(-0.03, 1.03))
        self.ax_.set(xlabel="Variability", ylabel="Mean confidence in the label")
        if name:
            self.ax_.set_title(escape_text(name, width=self._count_characters()))


# The inference learning curve: accuracy of the probes along the network.


@dataclass(repr=False, eq=False)
class ProbeAccuracyDisplay(PredictionDisplay):
    """Inference learning curve: accuracy of the probe of every layer [1]_.

    Use :meth:`from_estimator`, with a fitted
    :class:`~skcalib.difficulty.PredictionDepthScorer`, or :meth:`from_predictions` to create one.
    Bars are exact binomial intervals of 95 %.

    Parameters
    ----------
    accuracy : ndarray of shape (n_layers,)
        Accuracy of the probes, in the order of the layers.
    layer_names : sequence of str, default=None
        Their names; by default their numbers.
    n_samples : int, default=None
        Number of samples, for the bars; None draws none.
    name : str, default=None
        Name in the title or, of several curves, in the legend.

    Attributes
    ----------
    line_, ax_, figure_ : matplotlib Artist, Axes and Figure
        The curve, its axes and the figure.

    See Also
    --------
    skcalib.difficulty.PredictionDepthScorer : The probes.
    DifficultyPlaneDisplay : The depths of the samples.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, Sec. 3.1. Calls: :ref:`paper-depth`.

    Examples
    --------
    >>> from skcalib.plots import ProbeAccuracyDisplay
    >>> display = ProbeAccuracyDisplay.from_predictions([0, 1], [[0, 0], [0, 1]])
    >>> display.accuracy
    array([0.5, 1. ])
    """

    accuracy: NDArray[np.float64]
    _: KW_ONLY
    layer_names: Sequence[str] | None = None
    n_samples: int | None = None
    name: str | None = None

    @classmethod
    def _predictions(
        cls, estimator: Any, X: Any, y: ArrayLike, options: dict[str, Any]
    ) -> dict[str, Any]:
        what = "a PredictionDepthScorer"
        check_has(estimator, "probe_predict", name="estimator", what=what)
        predictions = estimator.probe_predict(X, y)
        return {"probe_predictions": predictions, "layer_names": estimator.layer_names_}

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        probe_predictions: ArrayLike,
        *,
        layer_names: Sequence[str] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the curve of given predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.
        probe_predictions : array-like of shape (n_samples, n_layers)
            Labels predicted by the probes, in the order of the layers.
        layer_names : sequence of str of length n_layers, default=None
            Names of the layers.
        name : str, default=None
            Name of the display, which its title or legend shows.
        **kwargs : dict
            Options of :meth:`plot`.

        Returns
        -------
        display : ProbeAccuracyDisplay
            The display, plotted.
        """
        predictions = as_label_matrix(probe_predictions, name="probe_predictions")
        truth = check_labels_like(
            y_true, name="y_true", n_samples=len(predictions), like=predictions
        )
        if layer_names is not None and len(layer_names) != predictions.shape[1]:
            raise ValueError(
                f"layer_names must hold {predictions.shape[1]} names, got {len(layer_names)}."
            )
        accuracy = (predictions == truth[:, np.newaxis]).mean(axis=0)
        return cls(accuracy, layer_names=layer_names, n_samples=len(predictions), name=name).plot(
            **kwargs
        )

    def _draw(self, name: str, kwargs: dict[str, Any]) -> None:
        n_layers = len(self.accuracy)
        x = np.arange(n_layers)
        self.line_ = self._draw_curve(x, self.accuracy, name, kwargs)
        if self.n_samples is not None:
            ends = compute_binomial_interval(
                self.accuracy, np.full(n_layers, self.n_samples), 0.95
            )
            self._draw_bars(x, self.accuracy, *ends, self.line_)
        names = range(n_layers) if self.layer_names is None else self.layer_names
        # A name for every layer, or for every second, third, ... where names would overlap. A
        # slanted name takes about three letters of the axis; -(-a // b) rounds up.
        n_ticks = max(1, self._count_characters() // 3)
        ticks = range(0, n_layers, -(-n_layers // n_ticks))
        self.ax_.set_xticks(
            ticks,
            [escape_text(names[tick], width=24, n_lines=1) for tick in ticks],
            rotation=45,
            ha="right",
            rotation_mode="anchor",
        )
        self.ax_.set(xlabel="Probe", ylabel="Accuracy", ylim=(0, 1.02))
        self._explain()


# The plane of difficulty: depth of samples when held out against depth when trained on.

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
        :func:`~skcalib.difficulty.training_dynamics.difficulty_quadrant`. Samples of another form,
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
    skcalib.difficulty.training_dynamics.difficulty_quadrant : The form of every sample.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, Sec. 4. Calls: :ref:`paper-depth`.

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
        depth_held_out : of :func:`~skcalib.difficulty.training_dynamics.difficulty_quadrant`
        depth_trained : of :func:`~skcalib.difficulty.training_dynamics.difficulty_quadrant`
        threshold : of :func:`~skcalib.difficulty.training_dynamics.difficulty_quadrant`
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
        style = choose_point_style(n_samples) | {"alpha": FAINT}
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
            counts = [np.asarray(hexagons.get_array()) for hexagons in self.scatters_.values()]
            of_all = np.concatenate(counts)
            for color, count, hexagons in zip(self._colors(), counts, self.scatters_.values()):
                hexagons.set(array=None, color=color, alpha=choose_opacity(count, of_all))
        self.ax_.margins(*MARGINS)
        self.ax_.set(xlabel="Prediction depth, held out", ylabel="Prediction depth, trained on")
        if name:
            self.ax_.set_title(escape_text(name, width=self._count_characters()))
