"""Isotonic calibration: the best increasing map of a probability."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from ._one_vs_rest import OneVsRestCalibrator


class IsotonicCalibration(OneVsRestCalibrator):
    """Map every probability by isotonic regression on the labels.

    The map is the increasing function with the least squared error, and also the least log-loss,
    on the samples given to `fit`; it is linear between them [1]_. It needs many samples, and it
    gives probabilities of exactly 0 and 1: a single wrong one makes the log-loss infinite.

    With more than two classes each is calibrated against the rest, and the probabilities of a row
    are divided by their sum, so they are calibrated less well. With two classes there is one map.

    Parameters
    ----------
    input, classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    calibrators_ : list of sklearn.isotonic.IsotonicRegression
        The map of every calibrated class.
    classes_, n_features_in_, feature_names_in_ : ndarray, int and ndarray of str
        Labels, number and names of the columns of X.

    See Also
    --------
    BetaCalibration : A smooth increasing map with three parameters.
    skcalib.metrics.score_decomposition : The loss that isotonic calibration would save.
    PostHocCalibratedClassifier : A classifier and any calibrator as one estimator.

    References
    ----------
    .. [1] B. Zadrozny, C. Elkan, "Transforming Classifier Scores into Accurate Multiclass
       Probability Estimates", KDD 2002.

    Examples
    --------
    >>> from skcalib.posthoc import IsotonicCalibration
    >>> proba, y = [0.1, 0.2, 0.7, 0.8, 0.9, 0.95], [0, 0, 1, 0, 1, 1]
    >>> isotonic = IsotonicCalibration(input="proba").fit(proba, y)
    >>> isotonic.predict_proba([0.15, 0.75, 0.99])
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """

    def _fit_class(
        self, p: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray | None
    ) -> IsotonicRegression:
        # Probabilities beyond those given to fit take the value at the nearer end.
        regression = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        return regression.fit(p, positive.astype(np.float64), sample_weight=sample_weight)

    def _map_class(self, learned: IsotonicRegression, p: NDArray) -> NDArray:
        return learned.predict(p)

    def _formula_of_class(self, learned: IsotonicRegression) -> dict[str, Any]:
        x, y = learned.X_thresholds_.tolist(), learned.y_thresholds_.tolist()
        return {"kind": "line", "x": x, "y": y}
