"""The inference learning curve: accuracy of the probes along the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils.checking._labels import as_label_matrix, check_labels_like
from ..utils.checking._proba import binomial_interval
from ..utils.checking._validation import check_has
from ._base import PredictionDisplay, plain_text


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
       Difficulty", NeurIPS 2021, Sec. 3.1.

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
            ends = binomial_interval(self.accuracy, np.full(n_layers, self.n_samples), 0.95)
            self._draw_bars(x, self.accuracy, *ends, self.line_)
        names = range(n_layers) if self.layer_names is None else self.layer_names
        # A name for every layer, or for every second, third, ... where names would overlap. A
        # slanted name takes about three letters of the axis; -(-a // b) rounds up.
        n_ticks = max(1, self._characters() // 3)
        ticks = range(0, n_layers, -(-n_layers // n_ticks))
        self.ax_.set_xticks(
            ticks,
            [plain_text(names[tick], width=24, n_lines=1) for tick in ticks],
            rotation=45,
            ha="right",
            rotation_mode="anchor",
        )
        self.ax_.set(xlabel="Probe", ylabel="Accuracy", ylim=(0, 1.02))
        self._explain()
