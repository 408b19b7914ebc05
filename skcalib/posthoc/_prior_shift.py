"""Prior shift: adapt probabilities to other class frequencies, with intervals of these."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, logsumexp, softmax
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags

from ..utils._arrays import as_floats
from ..utils._compat import Interval, StrOptions, _fit_context
from ..utils._labels import check_column_labels
from ..utils._numeric import compute_binomial_interval
from ..utils._output import rename_argument, warn
from ..utils._proba import SMALLEST_PROBABILITY
from ._base import PostHocCalibrator, make_linear_formula
from ._constants import (
    ERROR_OF_FREQUENCIES,
    LEVEL,
    MOST_STANDARD_ERRORS,
    PRIOR_VARIANCE,
    STRENGTH,
    STRENGTH_OF_FREQUENCIES,
    WEAK,
    WIDE,
)

# Intervals of class frequencies that were estimated from unlabeled samples.
#
# The estimate has three errors: of the random sample, of the calibration of the scores, and of the
# training frequencies if they are the mean of the training scores. For the first, the profile
# likelihood gives an interval for every class. For the second, the log-odds of a class are moved
# by an offset and a slope, as uncertain as those of a calibrator fitted to as many samples as
# there are training scores. The third is the standard error of that mean.

# Largest log-odds; a frequency beyond counts as 0 or 1.
_FARTHEST = 30.0


class Estimated(NamedTuple):
    """Estimated frequencies, and the data behind them.

    ``proba`` (n, K) are the probabilities of the new samples, and ``weight`` is how many samples
    each counts for. ``priors`` are the estimated frequencies, with ``pseudo`` pseudo-samples per
    class. ``training`` are the training frequencies; ``training_proba`` are probabilities of
    held-out training samples, or None.
    """

    proba: NDArray[np.float64]
    weight: NDArray[np.float64]
    priors: NDArray[np.float64]
    training: NDArray[np.float64]
    pseudo: NDArray[np.float64]
    training_proba: NDArray[np.float64] | None


def compute_priors_interval(found: Estimated, error_of_frequencies: float) -> NDArray[np.float64]:
    """Return a 95 % interval for every class, (K, 2)."""
    ratio = found.proba / found.training
    logits = np.log(found.priors)
    posterior = ratio * found.priors
    posterior /= posterior.sum(axis=1, keepdims=True)
    covariance = _compute_covariance(posterior, found)
    of_frequencies = _compute_score_covariance(posterior, found)
    ends = np.empty((len(logits), 2))
    for k, prior in enumerate(found.priors):
        # Gradient of the log-odds of class k in the logits of all classes.
        slope = -found.priors / (1 - prior)
        slope[k] = 1.0
        direction = covariance @ slope
        variance = float(slope @ direction)
        # Along this path the log-odds of class k change by 1 per step, at the least loss.
        path = direction / variance
        # By the delta method, from the covariance of the calibrator's offset and slope.
        by_calibrator = slope @ covariance @ _score_by_calibrator(posterior, found, k)
        of_calibrator = _compute_calibrator_covariance(posterior, found, k, error_of_frequencies)
        other_variance = float(
            by_calibrator @ of_calibrator @ by_calibrator + direction @ of_frequencies @ direction
        )
        for column, sign in enumerate((-1.0, 1.0)):
            step = _find_distance(ratio, found, logits, sign * path, np.sqrt(variance))
            moved = softmax(logits + sign * step * path)[k]
            distance = logit(np.clip(moved, 1e-13, 1 - 1e-13)) - logit(prior)
            far = np.hypot(distance, np.sqrt(chi2.ppf(LEVEL, 1) * other_variance))
            ends[k, column] = expit(np.clip(logit(prior) + sign * far, -_FARTHEST, _FARTHEST))
    return ends


def _compute_covariance(posterior: NDArray[np.float64], found: Estimated) -> NDArray[np.float64]:
    """Return the covariance of the logits of the estimated frequencies."""
    score = posterior - found.priors
    of_pseudo = np.diag(found.priors) - np.outer(found.priors, found.priors)
    information = score.T @ (score * found.weight[:, np.newaxis]) + found.pseudo.sum() * of_pseudo
    # Logits are defined up to a constant: the information is singular.
    return np.linalg.pinv(information, hermitian=True)


def _compute_score_covariance(
    posterior: NDArray[np.float64], found: Estimated
) -> NDArray[np.float64]:
    """Return the covariance of the score from the standard error of the training frequencies."""
    if found.training_proba is None:
        return np.zeros((len(found.priors),) * 2)
    weighted = posterior * found.weight[:, np.newaxis]
    # Of the score by the logarithms of the training frequencies.
    derivative = posterior.T @ weighted - np.diag(weighted.sum(axis=0))
    relative = found.training_proba / found.training
    relative = relative - relative.mean(axis=0)
    moved = relative @ derivative
    return moved.T @ moved / len(relative) ** 2


def _find_distance(
    ratio: NDArray[np.float64],
    found: Estimated,
    logits: NDArray[np.float64],
    path: NDArray[np.float64],
    spread: float,
) -> float:
    """Return how far along a path the log-likelihood falls by half a quantile of chi-squared."""
    most = chi2.ppf(LEVEL, 1) / 2

    def log_likelihood(step: float) -> float:
        at = logits + step * path
        at = at - logsumexp(at)
        return float(found.weight @ np.log(ratio @ np.exp(at) + 1e-300) + found.pseudo @ at)

    best = log_likelihood(0.0)

    def missing(step: float) -> float:
        return best - log_likelihood(step) - most

    far = spread
    while missing(far) < 0 and far < 2 * _FARTHEST:
        far *= 2
    return far if missing(far) < 0 else float(brentq(missing, 0.0, far, xtol=1e-4))


def _score_by_calibrator(
    posterior: NDArray[np.float64], found: Estimated, k: int
) -> NDArray[np.float64]:
    """Return the derivative of the score by an offset and a slope of class k, (K, 2)."""
    moves = np.zeros((len(found.priors), 2))
    for column, z in enumerate(_compute_offset_and_slope(found.proba[:, k])):
        excess = -posterior * (posterior[:, k] * z)[:, np.newaxis]
        excess[:, k] += posterior[:, k] * z
        if found.training_proba is not None:  # the training frequencies move too
            of_k = found.training_proba[:, k]
            z_before = _compute_offset_and_slope(of_k)[column]
            change = -(found.training_proba * (of_k * z_before)[:, np.newaxis]).mean(axis=0)
            change[k] += (of_k * z_before).mean()
            relative = change / found.training
            excess -= posterior * (relative - (posterior @ relative)[:, np.newaxis])
        moves[:, column] = found.weight @ excess
    return moves


def _compute_offset_and_slope(proba: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the derivatives of the log-odds by an offset and a slope, (2, n)."""
    x = np.clip(logit(np.clip(proba, 1e-13, 1 - 1e-13)), -_FARTHEST, _FARTHEST)
    return np.stack([np.ones_like(x), x])


def _compute_calibrator_covariance(
    posterior: NDArray[np.float64], found: Estimated, k: int, error: float
) -> NDArray[np.float64]:
    """Return the covariance of the offset and the slope of class k."""
    if found.training_proba is not None:
        of_k = found.training_proba[:, k]
        z = _compute_offset_and_slope(of_k)
        information = (z * (of_k * (1 - of_k))) @ z.T + np.eye(2) / PRIOR_VARIANCE
        return np.linalg.inv(information).astype(np.float64)
    of_k = found.proba[:, k]
    # Reweight the new samples to the training frequencies.
    as_trained = found.weight * (posterior @ (found.training / found.priors))
    steep = float(as_trained @ (of_k * (1 - of_k)) / as_trained.sum())
    variance = error / len(found.priors) * found.training[k] / max(steep, 1e-6) ** 2
    return np.diag([min(variance, PRIOR_VARIANCE), 0.0])


# Prior shift: adapt probabilities to other class frequencies.


class PriorShift(PostHocCalibrator):
    """Adapt probabilities to class frequencies other than those of the training set.

    If the samples of each class look as in training, and only the class frequencies differ, Bayes'
    rule gives the new probabilities: ``p(k | x) * priors[k] / training_priors[k]``, divided by
    their sum. The new priors are the first of these that is available:

    - `priors`;
    - the priors before the training set was subsampled, by `sampling_rate`;
    - the class frequencies of the `y` given to `fit`, labels from the new population;
    - an estimate from the X given to `fit`, unlabeled samples of the new population: by the EM
      algorithm of Saerens et al. [1]_ with a Dirichlet prior, `prior_strength` pseudo-samples per
      class at the training frequencies. (Without a prior, EM sets rare classes to 0 even if
      nothing has shifted.) The estimate is then shrunk toward the training frequencies, as far as
      chance or miscalibration may explain the mean probabilities (see Notes).

    The probabilities must be calibrated for the training set: apply prior shift after calibration.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), default=None
        Class frequencies of the new population, in [0, 1] with sum 1: in the order of `classes_`,
        or a Series with the classes as its index.
    training_priors : array-like of shape (n_classes,) or "uniform", default=None
        Class frequencies that the model was trained on, above 0 with sum 1; required unless
        `sampling_rate` or `training_scores` are given. Use "uniform" for balanced training sets
        and balanced weights (``class_weight="balanced"``).
    training_scores : array-like of shape (n_training_samples, n_classes) or \
            (n_training_samples,), default=None
        Scores, in the form of X, of held-out samples from the training population. To estimate
        the new priors from unlabeled samples, pass these rather than `training_priors`: their mean
        probabilities also contain the bias of the model.
    sampling_rate : float or array-like of shape (n_classes,), default=None
        Fraction of the samples of every class, in (0, 1], that was kept when the training set was
        subsampled. A float is for two classes: that of the first, if all of the second was kept.
    input : {"logits", "proba"}, default="logits"
        What X holds. Probabilities below 1e-12 count as 1e-12.
    prior_strength : float, default=None
        Pseudo-samples per class of the Dirichlet prior of EM, 0 or more. Larger values keep the
        priors closer to those of training; 0 is maximum likelihood, without shrinking. None means
        1 with `training_scores`, and 5 without, because the model's own error then looks like a
        shift.
    max_iter : int, default=10000
        Maximum number of iterations of EM.
    tol : float, default=1e-8
        EM stops when no prior changes by more than this.
    classes : array-like of shape (n_classes,), default=None
        Labels of the columns of X. None means 0, ..., n_classes - 1 or, for other labels, the
        sorted labels of `y`.

    Attributes
    ----------
    priors_ : ndarray of shape (n_classes,)
        Class frequencies of the new population.
    training_priors_ : ndarray of shape (n_classes,)
        Class frequencies of the training set. Like `priors_` and `priors_interval_`, it does not
        exist with `sampling_rate` and without `training_priors`.
    priors_interval_ : ndarray of shape (n_classes, 2)
        Ends of a 95 % interval of every prior. For an estimate from unlabeled samples, it accounts
        for the random sample, for the standard error of the training frequencies that
        `training_scores` show, and for the calibration error that a calibrator leaves when it is
        fitted to as many samples as these (without them, for an average error of mean
        probabilities). For labels it is that of Clopper and Pearson. For known
        priors both ends are the prior.
    trust_ : float
        Fraction of the estimated shift that is kept, in [0, 1]; 1 if nothing was estimated.
    ratio_ : ndarray of shape (n_classes,)
        Factors for the probabilities of the classes, before rows are divided by their sum.
    n_iter_ : int
        Number of iterations of EM; 1 if nothing was estimated.
    classes_, n_features_in_, feature_names_in_ : ndarray, int and ndarray of str
        Labels, number and names of the columns of X.

    Warns
    -----
    ConvergenceWarning
        If EM stops at `max_iter`.
    SkcalibWarning
        If an estimated prior is uncertain by more than a factor of two, as those of rare classes
        are. With `training_scores`, also if the model is more or less confident on the unlabeled
        samples than other class frequencies can explain.

    See Also
    --------
    PostHocCalibratedClassifier : Calibrate the classifier first.

    Notes
    -----
    Let m be the mean probabilities of the new samples, t the training priors, and D the sum over
    classes of (m - t)^2 / t. By chance alone, D has the mean c. With `training_priors`, which are
    frequencies and not mean probabilities, the model's own error adds to D, .03 on average. The
    logarithm of the ratio of new to old priors is multiplied by `trust_`: ``1 - (c + .03) / D``,
    or ``1 - c / D`` with `training_scores`, and 0 if that is negative.

    References
    ----------
    .. [1] M. Saerens, P. Latinne, C. Decaestecker, "Adjusting the Outputs of a Classifier to New a
       Priori Probabilities: A Simple Procedure", Neural Computation 2002.
    .. [2] A. Dal Pozzolo, O. Caelen, R. A. Johnson, G. Bontempi, "Calibrating Probability with
       Undersampling for Unbalanced Classification", SSCI 2015 (`sampling_rate`).

    Examples
    --------
    For training, one negative in ten was kept [2]_:

    >>> from skcalib.posthoc import PriorShift
    >>> shift = PriorShift(sampling_rate=0.1, input="proba").fit([0.2, 0.5, 0.9])
    >>> shift.predict_proba([0.2, 0.5, 0.9]).round(3)
    array([[0.976, 0.024],
           [0.909, 0.091],
           [0.526, 0.474]])

    Estimate new class frequencies from unlabeled samples:

    >>> import numpy as np
    >>> from skcalib.datasets import make_predictions
    >>> y, proba, _ = make_predictions(4000, n_classes=2, random_state=0)
    >>> new = 2000 + np.flatnonzero((y[2000:] == 1) | (np.arange(2000) % 4 == 0))
    >>> shift = PriorShift(training_scores=proba[:2000], input="proba").fit(proba[new])
    >>> round(float(y[new].mean()), 2), round(float(shift.priors_[1]), 2)
    (0.79, 0.77)
    """

    _takes_scores = False
    _data_params = ("training_scores",)

    def _warn_of_absent(self, scores: Any, codes: NDArray, some: NDArray, rows: Any) -> None:
        """Do not warn: a new population may lack a class."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PostHocCalibrator._parameter_constraints,
        # Scores whose unit means nothing have no probabilities to shift.
        "input": [StrOptions({"logits", "proba"})],
        "priors": ["array-like", None],
        "training_priors": ["array-like", StrOptions({"uniform"}), None],
        "training_scores": ["array-like", None],
        "sampling_rate": [Interval(Real, 0, 1, closed="right"), "array-like", None],
        "prior_strength": [Interval(Real, 0, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        priors: ArrayLike | None = None,
        *,
        training_priors: ArrayLike | str | None = None,
        training_scores: ArrayLike | None = None,
        sampling_rate: ArrayLike | float | None = None,
        input: str = "logits",
        prior_strength: float | None = None,
        max_iter: int = 10_000,
        tol: float = 1e-8,
        classes: ArrayLike | None = None,
    ) -> None:
        self.priors = priors
        self.training_priors = training_priors
        self.training_scores = training_scores
        self.sampling_rate = sampling_rate
        self.input = input
        self.prior_strength = prior_strength
        self.max_iter = max_iter
        self.tol = tol
        self.classes = classes

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: Any = None,
    ) -> Self:
        """Set or estimate the new priors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores of samples of the new population; for two classes also those of the second
            class alone. If the priors follow from parameters or `y`, only the number of columns
            matters.
        y : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            Labels of these samples, if there are any, or the fraction of people who gave each
            label.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; only their ratios matter.
        groups : array-like of shape (n_samples,), default=None
            Not used; present for consistency with other calibrators.

        Returns
        -------
        self : object
            The fitted calibrator.

        Raises
        ------
        ValueError
            If both `priors` and `sampling_rate`, or both `training_priors` and `training_scores`,
            are given; if neither of the last two nor `sampling_rate` is; if one of them does not
            match the classes; or if X, `y` and `sample_weight` have different lengths.

        Warns
        -----
        SkcalibWarning
            If X seems to hold probabilities and ``input="logits"``.
        """
        return self._check_and_fit(X, y, sample_weight)

    def _read_labels(self, y: ArrayLike | None, scores: NDArray) -> tuple[NDArray, Any]:
        if y is not None:
            return super()._read_labels(y, scores)
        n_classes = max(2, scores.shape[1])
        if self.classes is None:
            return np.arange(n_classes), None
        classes = np.asarray(self.classes)
        check_column_labels(classes, n_classes, what="one for every column of X", name="classes")
        return classes, None

    def _fit(self, scores: NDArray, y: NDArray | None, sample_weight: NDArray | None) -> None:
        if self.priors is not None and self.sampling_rate is not None:
            raise ValueError(
                "priors must be None if sampling_rate is given, got both: the rate gives them."
            )
        if self.training_priors is not None and self.training_scores is not None:
            raise ValueError(
                "training_priors must be None if training_scores are given, got both: they follow "
                "from the scores."
            )
        training_proba = self._training_proba()
        training, k = self._known_training_priors(training_proba), len(self.classes_)
        self.n_iter_, self.trust_ = 1, 1.0
        for name in ("training_priors_", "priors_", "priors_interval_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if self.sampling_rate is not None:
            self.ratio_ = 1 / _check_rate(self.sampling_rate, self.classes_)
            if training is not None:
                priors = training * self.ratio_
                self.training_priors_, self.priors_ = training, priors / priors.sum()
                self.priors_interval_ = np.stack([self.priors_] * 2, axis=1)
            return
        if training is None:
            raise ValueError(
                "training_priors must be given: the class frequencies that the model was trained "
                'on, such as np.bincount(y_train) / len(y_train), or "uniform" after balanced '
                "training; got None."
            )
        self.training_priors_ = training
        if self.priors is not None:
            self.priors_ = _check_priors(self.priors, self.classes_, "priors", low=0.0)
            self.priors_interval_ = np.stack([self.priors_] * 2, axis=1)
        elif y is not None:
            count = np.bincount(y, sample_weight, minlength=k)
            self.priors_ = count / count.sum()
            n = np.full(k, _compute_n_effective(sample_weight, len(y)))
            ends = compute_binomial_interval(self.priors_, n, LEVEL)
            self.priors_interval_ = np.stack(ends, axis=1)
        else:
            proba = self._probabilities(scores)
            weight = np.ones(len(proba)) if sample_weight is None else sample_weight
            self.priors_ = self._estimate(proba, weight, training_proba)
        # Not 0: a class with prior 0 stays possible where no other class is.
        self.ratio_ = np.maximum(self.priors_, SMALLEST_PROBABILITY) / training

    def _probabilities(self, scores: NDArray) -> NDArray[np.float64]:
        return softmax(self._as_logits(scores).astype(np.float64), axis=1)

    def _training_proba(self) -> NDArray[np.float64] | None:
        if self.training_scores is None:
            return None
        with rename_argument("X", "training_scores"):
            return self._probabilities(self._read_scores(self.training_scores, reset=False))

    def _known_training_priors(self, training_proba: NDArray | None) -> NDArray[np.float64] | None:
        if training_proba is not None:
            mean = np.maximum(training_proba.mean(axis=0), SMALLEST_PROBABILITY)
            return mean / mean.sum()
        if self.training_priors is None:
            return None
        if isinstance(self.training_priors, str):
            return np.full(len(self.classes_), 1 / len(self.classes_))
        return _check_priors(self.training_priors, self.classes_, "training_priors", low=1e-12)

    def _trust(self, proba: NDArray, weight: NDArray, training_proba: NDArray | None) -> float:
        """Return `trust_`, the part of D that chance and the model's error do not explain."""
        training, fraction = self.training_priors_, weight / weight.sum()
        mean = fraction @ proba
        distance = float(np.sum((mean - training) ** 2 / training))
        of_draw = float(np.sum(fraction @ (proba - mean) ** 2 / training)) / weight.sum()
        if training_proba is None:
            chance = of_draw + ERROR_OF_FREQUENCIES
        else:
            chance = of_draw + float(np.sum(training_proba.var(axis=0) / training)) / len(
                training_proba
            )
        return max(0.0, 1 - chance / distance) if distance > 0 else 0.0

    def _estimate(
        self, proba: NDArray, weight: NDArray, training_proba: NDArray | None
    ) -> NDArray:
        """Return the estimated priors, shrunk toward those of training by `trust_`."""
        training, strength = self.training_priors_, self.prior_strength
        if strength is None:
            strength = STRENGTH if training_proba is not None else STRENGTH_OF_FREQUENCIES
        priors = self._most_likely(proba, weight, _compute_pseudo_samples(strength, training))
        if strength:
            self.trust_ = self._trust(proba, weight, training_proba)
            priors = training * (priors / training) ** self.trust_
            priors /= priors.sum()
        self.priors_interval_ = self._interval(proba, weight, training_proba, priors)
        if training_proba is not None:
            _warn_of_other_confidence(proba, weight, training_proba, priors / training)
        if self.trust_ > 0:
            _warn_of_wide(self.priors_interval_, self.classes_)
        return priors

    def _interval(
        self,
        proba: NDArray,
        weight: NDArray,
        training_proba: NDArray | None,
        priors: NDArray,
    ) -> NDArray[np.float64]:
        """Return the interval of the priors (n_classes, 2), extended to contain the estimate."""
        training = self.training_priors_
        samples = weight * (_compute_n_effective(weight, len(weight)) / weight.sum())
        # With a weak prior, so that the interval depends on the data and not on `prior_strength`.
        pseudo = _compute_pseudo_samples(WEAK, training)
        found = self._most_likely(proba, samples, pseudo)
        estimated = Estimated(proba, samples, found, training, pseudo, training_proba)
        low, high = compute_priors_interval(estimated, ERROR_OF_FREQUENCIES).T
        return np.stack([np.minimum(low, priors), np.maximum(high, priors)], axis=1)

    def _most_likely(
        self, proba: NDArray, weight: NDArray, pseudo: NDArray
    ) -> NDArray[np.float64]:
        """Return the priors that make samples and pseudo-samples most likely, by EM."""
        # The likelihood of sample i is proportional to sum_k proba_ik priors_k / training_k.
        ratio = proba / self.training_priors_
        # Posterior mode under Dirichlet(1 + pseudo): pseudo-counts are added to expected counts.
        priors = self.training_priors_
        self.n_iter_, change = 0, np.inf
        while self.n_iter_ < self.max_iter and change > self.tol:
            self.n_iter_ += 1
            joint = ratio * priors
            count = weight @ (joint / joint.sum(axis=1, keepdims=True)) + pseudo
            updated = count / count.sum()
            change = np.abs(updated - priors).max()
            priors = updated
        if change > self.tol:
            warn(
                f"The estimate of the priors stopped after max_iter={self.max_iter} iterations; "
                "increase max_iter or tol.",
                ConvergenceWarning,
            )
        return priors

    def _predict_proba(self, scores: NDArray) -> NDArray:
        return softmax(self._as_logits(scores) + np.log(self.ratio_), axis=1)

    def _formula(self) -> dict[str, Any]:
        return make_linear_formula(intercept=np.log(self.ratio_))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags


def _compute_pseudo_samples(strength: float, training: NDArray) -> NDArray[np.float64]:
    """Return the pseudo-samples of every class."""
    return strength * len(training) * training


def _compute_n_effective(weight: NDArray | None, n: int) -> float:
    """Return the effective number of samples (Kish)."""
    return float(n) if weight is None else float(weight.sum() ** 2 / (weight @ weight))


def _warn_of_wide(interval: NDArray, classes: NDArray) -> None:
    """Warn if a frequency is uncertain by more than a factor of two."""
    wide = np.flatnonzero(interval[:, 1] > WIDE * interval[:, 0])
    if not len(wide):
        return
    k = wide[np.argmax(interval[wide, 1] / np.maximum(interval[wide, 0], SMALLEST_PROBABILITY))]
    low, high = (f"{end:.2g}" if end >= 1e-4 else "0" for end in interval[k])
    warn(
        f"The frequencies of {len(wide)} of {len(classes)} classes are uncertain by more than a "
        f"factor of {WIDE}: that of class {classes[k : k + 1].tolist()[0]} may be {low} to "
        f"{high} (priors_interval_). Label 100 random samples first, and fit with them."
    )


def _warn_of_other_confidence(
    proba: NDArray, weight: NDArray, training_proba: NDArray, ratio: NDArray
) -> None:
    """Warn if the mean confidence differs from that of training samples weighted by `ratio`."""
    share = training_proba @ ratio
    share /= share.sum()
    sure = (training_proba**2).sum(axis=1)
    expected = share @ sure
    found = weight @ (proba**2).sum(axis=1) / weight.sum()
    error = np.sqrt(share @ (sure - expected) ** 2 * (share @ share + 1 / weight.sum()))
    if abs(found - expected) > MOST_STANDARD_ERRORS * error + SMALLEST_PROBABILITY:
        warn(
            f"The model is {'less' if found < expected else 'more'} confident on X than other "
            "class frequencies explain: the classes look different than in training_scores, or "
            "the scores are not calibrated. The estimated priors may be wrong; labels of X would "
            "show it."
        )


def _check_priors(
    priors: ArrayLike, classes: NDArray, name: str, *, low: float
) -> NDArray[np.float64]:
    """Return valid priors, each at least `low`, with sum 1."""
    k, numbers = len(classes), _read_numbers_by_class(priors, classes, name)
    if numbers.shape != (k,) or not np.all(numbers >= low) or abs(numbers.sum() - 1) > 1e-3:
        least = "above 0" if low > 0 else "of 0 or more"
        raise ValueError(
            f"{name} must hold {k} frequencies {least} that sum to 1, one for each class, "
            f"got {priors!r}."
        )
    return numbers / numbers.sum()


def _check_rate(rate: ArrayLike | float, classes: NDArray) -> NDArray[np.float64]:
    """Return a valid sampling rate for every class."""
    k, numbers = len(classes), _read_numbers_by_class(rate, classes, "sampling_rate")
    if numbers.ndim == 0 and k == 2:
        numbers = np.array([float(numbers), 1.0])
    if numbers.shape != (k,) or not np.all((numbers > 0) & (numbers <= 1)):
        raise ValueError(
            f"sampling_rate must hold {k} fractions in (0, 1], one per class, or for two classes "
            f"that of the first, got {rate!r}."
        )
    return numbers


def _read_numbers_by_class(values: ArrayLike, classes: NDArray, name: str) -> NDArray[np.float64]:
    """Return numbers in the order of the classes; a Series is reordered by its index.

    (``y.value_counts(normalize=True)`` has the most frequent class first.)
    """
    if isinstance(values, Mapping):
        raise TypeError(f"{name} must be an array or a Series, a number per class, got a dict.")
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
