"""Beta calibration: an increasing map with three parameters."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit

from ..utils.computing._cells import cells_of
from ..utils.computing._temperature import best_uniform_weight, uniform_prior
from ..utils.meta._private import StrOptions
from ._base import SMALLEST
from ._one_vs_rest import OneVsRestCalibrator, as_samples

# Every parametrization as a design matrix: one row per parameter, with its coefficients of
# log p, -log(1 - p) and 1.
_DESIGNS = {
    "abm": np.eye(3),
    "am": np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    "ab": np.eye(3)[:2],
}
_MOST_ROUNDS = 30
_TOLERANCE = 1e-5


class BetaMap(NamedTuple):
    """The map of one class: ``expit(a log(p) - b log(1 - p) + c)``, mixed with w of uniform."""

    a: float
    b: float
    c: float
    uniform_weight: float = 0.0


class BetaCalibration(OneVsRestCalibrator):
    """Map every probability by the ratio of two beta densities.

    A probability p becomes ``expit(a log(p) - b log(1 - p) + c)`` with a, b >= 0, mixed with a
    uniform component, ``(1 - w) expit(...) + w / n_classes``, and fitted by least log-loss. Unlike
    Platt scaling, the family contains the identity (a = b = 1, c = 0), so a calibrated model stays
    calibrated [1]_.

    With more than two classes each is calibrated against the rest, and the probabilities of a row
    are divided by their sum, so they are calibrated less well. With two classes there is one map.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}, default="abm"
        "abm" fits a, b and c; "am" sets a = b, which is Platt scaling of the logit; "ab" sets
        c = 0.
    uniform : bool, default=True
        Whether to fit a uniform component with every map; False is beta calibration as published.
    input : {"logits", "proba"}, default="logits"
        What X holds: logits, whose softmax are probabilities, or probabilities. They are clipped
        to [1e-7, 1 - 1e-7].
    classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    calibrators_ : list of BetaMap
        ``a``, ``b``, ``c`` and ``uniform_weight`` (w) of every calibrated class.
    classes_, n_features_in_, feature_names_in_ : ndarray, int and ndarray of str
        Labels, number and names of the columns of X.

    See Also
    --------
    IsotonicCalibration : Fits any increasing map.
    DirichletCalibration : The same family for all classes at once.
    PostHocCalibratedClassifier : A classifier and any calibrator as one estimator.

    Notes
    -----
    The log-loss is convex in (a, b, c) and is minimized under the bounds a, b >= 0; the paper
    drops a negative parameter and fits again.

    References
    ----------
    .. [1] M. Kull, T. Silva Filho, P. Flach, "Beta Calibration: a Well-founded and Easily
       Implemented Improvement on Logistic Calibration for Binary Classifiers", AISTATS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.posthoc import BetaCalibration
    >>> proba = np.array([0.1, 0.2, 0.3, 0.6, 0.8, 0.9, 0.99, 0.99])
    >>> beta = BetaCalibration(input="proba").fit(proba, [0, 0, 1, 0, 1, 1, 1, 0])
    >>> beta.predict_proba([0.3, 0.99]).round(2)
    array([[0.65, 0.35],
           [0.29, 0.71]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OneVsRestCalibrator._parameter_constraints,
        "parameters": [StrOptions(set(_DESIGNS))],
        "uniform": ["boolean"],
    }

    def __init__(
        self,
        *,
        parameters: str = "abm",
        uniform: bool = True,
        input: str = "logits",
        classes: ArrayLike | None = None,
    ) -> None:
        self.parameters = parameters
        self.uniform = uniform
        self.input = input
        self.classes = classes

    def _fit_class(
        self, p: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray | None
    ) -> BetaMap:
        weight = np.ones(len(p)) if sample_weight is None else sample_weight
        return self._fit_features(_features(p), positive, weight)

    def _class_sums(self, p: NDArray, positive: NDArray[np.bool_], sample_weight: NDArray) -> Any:
        of_features = sample_weight * _features(p)[:, :2].T
        summands = np.where(positive, sample_weight, 0), sample_weight, *of_features
        return cells_of(p, np.array(summands), are_proba=True)

    def _fit_sums(self, sums: Any) -> BetaMap:
        positives, total, *of_features = sums.sums
        cell, positive, weight = as_samples(np.arange(len(total)), positives, total)
        features = np.column_stack([*(of_features / total), np.ones_like(total)])
        return self._fit_features(features[cell], positive, weight)

    def _fit_features(
        self, features: NDArray, positive: NDArray[np.bool_], weight: NDArray
    ) -> BetaMap:
        design = _DESIGNS[self.parameters]
        # One column per parameter: the logit is columns @ theta.
        columns = features @ design.T
        # Start at the identity, a = b = 1 and c = 0, or the nearest map of the parametrization.
        theta = np.linalg.lstsq(design.T, np.array([1.0, 1.0, 0.0]), rcond=None)[0]
        # a and b are bounded by 0; c is free.
        slopes = design[:, 0] + design[:, 1] > 0
        if not self.uniform:
            return BetaMap(
                *map(float, _regression(columns, positive, weight, theta, slopes) @ design)
            )
        n, k = weight.sum(), len(self.classes_)
        chance = np.where(positive, 1 / k, 1 - 1 / k)
        # EM: r is the posterior probability that a label comes from the map, and not from the
        # uniform component.
        uniform_weight, r = uniform_prior(n), np.ones(len(weight))
        for _ in range(_MOST_ROUNDS):
            theta, before = _regression(columns, positive, weight * r, theta, slopes), theta
            of_label = expit(np.where(positive, 1, -1) * (columns @ theta))
            uniform_weight = best_uniform_weight(of_label, chance, weight / n, n, uniform_weight)
            mapped = (1 - uniform_weight) * of_label
            r = mapped / (mapped + uniform_weight * chance)
            if np.abs(theta - before).max() < _TOLERANCE:
                break
        a, b, c = map(float, theta @ design)
        return BetaMap(a, b, c, float(uniform_weight))

    def _map_class(self, learned: BetaMap, p: NDArray) -> NDArray:
        *theta, weight = learned
        return (1 - weight) * expit(_features(p) @ np.array(theta)) + weight / len(self.classes_)

    def _formula_of_class(self, learned: BetaMap) -> dict[str, Any]:
        a, b, c, weight = learned
        return {"kind": "beta", "a": a, "b": b, "c": c, "w": weight, "zero": SMALLEST}


def _regression(
    columns: NDArray, positive: NDArray, weight: NDArray, start: NDArray, slopes: NDArray
) -> NDArray:
    """Return the theta of least log-loss of expit(columns @ theta), with `slopes` >= 0."""
    fraction = weight / weight.sum()
    sign = np.where(positive, 1.0, -1.0)

    def loss_and_gradient(theta: NDArray) -> tuple[float, NDArray]:
        # Log-loss log(1 + exp(-margin)), of derivative -expit(-margin) in the margin.
        margin = sign * (columns @ theta)
        gradient = -(fraction * sign * expit(-margin)) @ columns
        return float(fraction @ np.logaddexp(0, -margin)), gradient

    return minimize(
        loss_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None) if slope else (None, None) for slope in slopes],
        options={"gtol": 1e-9, "ftol": 1e-15, "maxiter": 1000},
    ).x


def _features(p: NDArray) -> NDArray:
    p = np.clip(p, SMALLEST, 1 - SMALLEST)
    return np.column_stack([np.log(p), -np.log1p(-p), np.ones_like(p)])
