"""The data map of a training: confidence in the label against its variability."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..difficulty.records import confidence_variability, consistency_score
from ..utils.checking._validation import check_has
from ._base import GROUND, BaseDisplay, plain_text
from ._points import draw_points

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
    skcalib.difficulty.records.confidence_variability : The horizontal axis.
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
            self.ax_.set_title(plain_text(name, width=self._characters()))
