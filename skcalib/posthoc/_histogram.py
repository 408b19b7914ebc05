"""Histogram binning: a constant probability in every bin."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils.computing._binning import bin_index, bin_sums, quantile_sums, uniform_edges
from ..utils.meta._private import Interval, StrOptions
from ._one_vs_rest import OneVsRestCalibrator, as_samples


class BinMap(NamedTuple):
    """The map of one class: edges (n_bins + 1,), and the value of every bin (n_bins,)."""

    edges: NDArray[np.float64]
    values: NDArray[np.float64]


def _bin_map(edges: NDArray[np.float64], sums: NDArray[np.float64]) -> BinMap:
    """Return the fraction of positives in every bin; `sums` are weight, confidence, positives."""
    weight, _, positives = sums
    # Empty bins get their midpoint, the constant closest to the identity.
    values = (edges[1:] + edges[:-1]) / 2
    filled = weight > 0
    values[filled] = positives[filled] / weight[filled]
    return BinMap(edges, values)


class HistogramBinning(OneVsRestCalibrator):
    """Replace every probability by the fraction of positives in its bin.

    The probabilities of the samples given to `fit` are put into bins; a new probability becomes
    the fraction of the samples in its bin that belong to the class [1]_.

    With more than two classes each is calibrated against the rest, and the probabilities of a row
    are divided by their sum, so they are calibrated less well. With two classes there is one map.

    Parameters
    ----------
    n_bins : int, default=15
        Number of bins; "quantile" may make fewer.
    strategy : {"quantile", "uniform"}, default="quantile"
        "quantile" makes bins of equal mass, "uniform" bins of equal width. Equal probabilities
        always fall in one bin. A bin without samples gets its midpoint.
    input, classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    calibrators_ : list of BinMap
        For every calibrated class the ``edges`` of the bins and their ``values``.
    classes_, n_features_in_, feature_names_in_ : ndarray, int and ndarray of str
        Labels, number and names of the columns of X.

    See Also
    --------
    IsotonicCalibration : Bins that follow the data.
    PostHocCalibratedClassifier : A classifier and any calibrator as one estimator.

    References
    ----------
    .. [1] B. Zadrozny, C. Elkan, "Obtaining Calibrated Probability Estimates from Decision Trees
       and Naive Bayesian Classifiers", ICML 2001.

    Examples
    --------
    >>> from skcalib.posthoc import HistogramBinning
    >>> proba, y = [0.1, 0.2, 0.7, 0.8, 0.9, 0.9], [0, 0, 1, 0, 1, 0]
    >>> binning = HistogramBinning(n_bins=2, input="proba").fit(proba, y)
    >>> binning.predict_proba([0.3, 0.95]).round(2)
    array([[0.67, 0.33],
           [0.67, 0.33]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OneVsRestCalibrator._parameter_constraints,
        "n_bins": [Interval(Integral, 1, None, closed="left")],
        "strategy": [StrOptions({"quantile", "uniform"})],
    }

    def __init__(
        self,
        *,
        n_bins: int = 15,
        strategy: str = "quantile",
        input: str = "logits",
        classes: ArrayLike | None = None,
    ) -> None:
        self.n_bins = n_bins
        self.strategy = strategy
        self.input = input
        self.classes = classes

    def _class_sums(self, p: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray) -> Any:
        if self.strategy == "uniform":
            return bin_sums(p, positive, sample_weight, uniform_edges(self.n_bins))
        return super()._class_sums(p, positive, sample_weight)

    def _fit_sums(self, sums: Any) -> BinMap:
        if self.strategy == "uniform":
            return _bin_map(uniform_edges(self.n_bins), sums)
        # Edges are largest probabilities of cells, so no cell is split between bins.
        positives, total, _ = sums.sums
        return self._fit_class(*as_samples(sums.largest, positives, total))

    def _fit_class(
        self, p: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray | None
    ) -> BinMap:
        if self.strategy == "uniform":
            edges = uniform_edges(self.n_bins)
            sums = bin_sums(p, positive, sample_weight, edges)
        else:
            edges, sums = quantile_sums(p, positive, sample_weight, self.n_bins)
        return _bin_map(edges, sums)

    def _map_class(self, learned: BinMap, p: NDArray) -> NDArray:
        return learned.values[bin_index(p, learned.edges)]

    def _formula_of_class(self, learned: BinMap) -> dict[str, Any]:
        return {"kind": "steps", "x": learned.edges[1:-1].tolist(), "y": learned.values.tolist()}
