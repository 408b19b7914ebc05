"""Prior shift: the same classes, looking the same, but more or less frequent."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags

from ..utils._arrays import as_floats
from ..utils._labels import check_column_labels
from ..utils._private import Interval, StrOptions, _fit_context
from ..utils._proba import SMALLEST_PROBABILITY
from ._base import PostHocCalibrator


class PriorShift(PostHocCalibrator):
    """Adapt probabilities to class frequencies other than those of the training set.

    Where the classes look as they did in training but are more or less frequent, Bayes' rule gives
    the new probabilities: ``p(k | x) * priors[k] / training_priors[k]``, divided by their sum. The
    new priors are, in this order,

    - those given as `priors`;
    - those before the training set was thinned out, by `sampling_rate`;
    - the class frequencies of the `y` given to `fit`, labels of the new population;
    - without `y`, estimated from unlabeled samples of the new population, the X given to `fit`,
      by the EM algorithm of Saerens et al. [1]_: their likelihood is concave in the priors.

    The probabilities that go in have to be calibrated for the training set: prior shift comes
    after calibration.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), default=None
        Class frequencies of the new population, in the order of `classes_`, or a Series with the
        classes as its index: in [0, 1], sum 1.
    training_priors : "uniform" or array-like of shape (n_classes,), default="uniform"
        Class frequencies that the model was trained on, above 0, sum 1. "uniform" is right for
        balanced training sets and weights (``class_weight="balanced"``). Not needed for
        `sampling_rate` but to tell `priors_`.
    sampling_rate : float or array-like of shape (n_classes,), default=None
        Fraction, in (0, 1], of the samples of every class that were kept when the training set
        was drawn; a float is that of the first of two classes, of which the second was kept.
    input : {"logits", "proba"}, default="logits"
        What X holds. Probabilities below 1e-12 count as 1e-12.
    max_iter : int, default=10000
        Most iterations of EM.
    tol : float, default=1e-8
        EM ends where no prior changes by more.
    classes : array-like of shape (n_classes,), default=None
        Labels of the columns of X. None means 0, ..., n_classes - 1 or, for other labels, the
        sorted labels of `y`.

    Attributes
    ----------
    priors_ : ndarray of shape (n_classes,)
        Class frequencies of the new population.
    training_priors_ : ndarray of shape (n_classes,)
        Class frequencies of the training set.
    n_iter_ : int
        Number of iterations of EM; 1 where there was nothing to estimate.
    classes_ : ndarray of shape (n_classes,)
        Labels of the columns.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of X, where they are all strings.

    Warns
    -----
    ConvergenceWarning
        If EM stops at `max_iter`.

    See Also
    --------
    PostHocCalibratedClassifier : A classifier and any calibrator as one estimator.

    References
    ----------
    .. [1] M. Saerens, P. Latinne, C. Decaestecker, "Adjusting the Outputs of a Classifier to New a
       Priori Probabilities: A Simple Procedure", Neural Computation 2002.
    .. [2] A. Dal Pozzolo, O. Caelen, R. A. Johnson, G. Bontempi, "Calibrating Probability with
       Undersampling for Unbalanced Classification", SSCI 2015 (`sampling_rate`).

    Examples
    --------
    One negative of ten was kept for training [2]_:

    >>> from skcalib.posthoc import PriorShift
    >>> shift = PriorShift(sampling_rate=0.1, input="proba").fit([0.2, 0.5, 0.9])
    >>> shift.predict_proba([0.2, 0.5, 0.9]).round(3)
    array([[0.976, 0.024],
           [0.909, 0.091],
           [0.526, 0.474]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PostHocCalibrator._parameter_constraints,
        "priors": ["array-like", None],
        "training_priors": ["array-like", StrOptions({"uniform"})],
        "sampling_rate": [Interval(Real, 0, 1, closed="right"), "array-like", None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        priors: ArrayLike | None = None,
        *,
        training_priors: ArrayLike | str = "uniform",
        sampling_rate: ArrayLike | float | None = None,
        input: str = "logits",
        max_iter: int = 10_000,
        tol: float = 1e-8,
        classes: ArrayLike | None = None,
    ) -> None:
        self.priors = priors
        self.training_priors = training_priors
        self.sampling_rate = sampling_rate
        self.input = input
        self.max_iter = max_iter
        self.tol = tol
        self.classes = classes

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Find the new priors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores of samples of the new population; of two classes also those of the second alone.
            Where the priors follow from parameters or `y`, X tells the number of classes only.
        y : array-like of shape (n_samples,), default=None
            Labels of the new population, where there are any.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; a weight of k counts as k equal samples.

        Returns
        -------
        self : object
            The fitted calibrator.

        Raises
        ------
        ValueError
            If `priors` and `sampling_rate` are both given, if one of them or `training_priors`
            does not fit the classes, or if X, `y` and `sample_weight` do not fit together.

        Warns
        -----
        SkcalibWarning
            If X holds probabilities where ``input="logits"``.
        """
        return self._check_and_fit(X, y, sample_weight)

    def _read_labels(self, y: ArrayLike | None, n_classes: int) -> tuple[NDArray, Any]:
        if y is not None:
            return super()._read_labels(y, n_classes)
        if self.classes is None:
            return np.arange(n_classes), None
        classes = np.asarray(self.classes)
        check_column_labels(classes, n_classes, what="one for every column of X", name="classes")
        return classes, None

    def _fit(self, scores: NDArray, y: NDArray | None, sample_weight: NDArray | None) -> None:
        if self.priors is not None and self.sampling_rate is not None:
            raise ValueError(
                "priors must be None where sampling_rate is given, got both: the rate tells them."
            )
        k = len(self.classes_)
        self.training_priors_ = (
            np.full(k, 1 / k)
            if isinstance(self.training_priors, str)
            else _check_priors(self.training_priors, self.classes_, "training_priors", low=1e-12)
        )
        self.n_iter_ = 1
        if self.priors is not None:
            self.priors_ = _check_priors(self.priors, self.classes_, "priors", low=0.0)
        elif self.sampling_rate is not None:
            before = self.training_priors_ / _check_rate(self.sampling_rate, self.classes_)
            self.priors_ = before / before.sum()
        elif y is not None:
            count = np.bincount(y, sample_weight, minlength=k)
            self.priors_ = count / count.sum()
        else:
            proba = softmax(self._as_logits(scores).astype(np.float64), axis=1)
            self._estimate(proba, sample_weight)

    def _estimate(self, proba: NDArray, sample_weight: NDArray | None) -> None:
        """Find the priors of most likely samples, by EM."""
        # The likelihood of sample i is proportional to sum_k proba_ik priors_k / training_k.
        ratio = proba / self.training_priors_
        priors = self.training_priors_
        self.n_iter_, change = 0, np.inf
        while self.n_iter_ < self.max_iter and change > self.tol:
            self.n_iter_ += 1
            # Expectation: the posterior under the priors so far. Maximization: its mean.
            joint = ratio * priors
            mean = np.average(
                joint / joint.sum(axis=1, keepdims=True), axis=0, weights=sample_weight
            )
            change = np.abs(mean - priors).max()
            priors = mean
        if change > self.tol:
            warnings.warn(
                f"The estimate of the priors stopped after max_iter={self.max_iter} iterations; "
                "increase max_iter or tol.",
                ConvergenceWarning,
                # This method, _fit, _check_and_fit, fit, its two wrappers, the caller.
                stacklevel=7,
            )
        self.priors_ = priors

    def _predict_proba(self, scores: NDArray) -> NDArray:
        logits = self._as_logits(scores)
        # A prior of 0 rules a class out only where another one is possible.
        shift = np.log(np.maximum(self.priors_, SMALLEST_PROBABILITY) / self.training_priors_)
        return softmax(logits + shift, axis=1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags


def _check_priors(
    priors: ArrayLike, classes: NDArray, name: str, *, low: float
) -> NDArray[np.float64]:
    k, numbers = len(classes), _numbers_by_class(priors, classes, name)
    if numbers.shape != (k,) or not np.all(numbers >= low) or abs(numbers.sum() - 1) > 1e-3:
        least = "above 0" if low > 0 else "of 0 or more"
        raise ValueError(
            f"{name} must hold {k} frequencies {least} that sum to 1, one a class, got {priors!r}."
        )
    return numbers / numbers.sum()


def _check_rate(rate: ArrayLike | float, classes: NDArray) -> NDArray[np.float64]:
    k, numbers = len(classes), _numbers_by_class(rate, classes, "sampling_rate")
    if numbers.ndim == 0 and k == 2:
        numbers = np.array([float(numbers), 1.0])
    if numbers.shape != (k,) or not np.all((numbers > 0) & (numbers <= 1)):
        raise ValueError(
            f"sampling_rate must hold {k} fractions in (0, 1], one a class, or for two classes be "
            f"that of the first, got {rate!r}."
        )
    return numbers


def _numbers_by_class(values: ArrayLike, classes: NDArray, name: str) -> NDArray[np.float64]:
    """Return numbers, those of a Series in the order of the classes.

    ``y.value_counts(normalize=True)`` has the most frequent class first.
    """
    numbers = as_floats(values, name=name).astype(np.float64)
    index = getattr(values, "index", None)
    if index is None or callable(index) or numbers.ndim != 1:
        return numbers
    found, wanted = list(index), classes.tolist()
    if found == list(range(len(found))) or len(found) != len(wanted):
        return numbers
    if len(set(found)) < len(found) or set(found) != set(wanted):
        raise ValueError(f"{name} must have the classes as its index, {wanted}, got {found}.")
    return numbers[[found.index(label) for label in wanted]]
