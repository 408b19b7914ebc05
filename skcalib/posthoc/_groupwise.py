"""One calibrator for all samples, and how groups of them differ from it."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax

from ..utils.checking._arrays import (
    check_weights,
    count_unit,
    holds_shares,
    refuse_unreadable,
    scale_weights,
)
from ..utils.checking._groups import group_codes
from ..utils.checking._guard import refuse_other_rows
from ..utils.checking._shares import rows_of
from ..utils.meta._private import StrOptions, _fit_context
from ._base import SMALLEST, PostHocCalibrator
from ._limits import (
    FRACTIONS,
    LEAST_SAMPLES,
    MOST_CLASSES_TO_SHIFT,
    NONE_DIFFERS,
    SPREADS,
)
from ._registry import CALIBRATORS, calibrator_of

_MOST_STEPS = 50
_LEAST_GAIN = 1e-9


class GroupwiseCalibration(PostHocCalibrator):
    """Calibrate all samples by one map, and groups by as much as they differ from it.

    A model can be calibrated on the whole and off for a group. One map for all does not see that,
    and a map for each group learns from few samples. Here the probabilities p of the common map
    become ``softmax((1 + s) log(p) + b)`` in a group, and a prior that the groups share draws the
    slope s and the shifts b to 0. The result averages over how many groups differ and by how much,
    weighted by the likelihood of the labels: if no group differs, all keep the common map, and a
    single bad group is moved alone.

    Parameters
    ----------
    calibrator : PostHocCalibrator, str or None, default="auto"
        The common map; a clone is fitted, with the `input` and `classes` of this one. Names are
        those of :class:`PostHocCalibratedClassifier`; "none" and None leave the probabilities as
        they are.
    input, classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    calibrator_ : PostHocCalibrator
        The common map.
    groups_ : ndarray of shape (n_groups,)
        The groups, sorted; None stands for missing values. Of several columns, every combination
        that occurs is a group, called "name=value, ...".
    shifts_ : ndarray of shape (n_groups, n_classes)
        The shifts b of the groups, in logits; 0 where there are more than 100 classes.
    slopes_ : ndarray of shape (n_groups,)
        The slopes s of the groups: below 0 where the common map is overconfident.
    differs_ : ndarray of shape (n_groups,)
        How likely it is, in [0, 1], that a group differs from the common map at all.
    classes_, n_features_in_, feature_names_in_ : ndarray, int and ndarray of str
        Labels, number and names of the columns of X, as for :class:`PostHocCalibrator`.

    See Also
    --------
    skcalib.metrics.groupwise_calibration_error : Which groups the probabilities are off for.
    PostHocCalibratedClassifier : Takes the groups from columns of X, by `by_columns`.

    Notes
    -----
    A group has b = s = 0 with probability 1 - f, otherwise normal b and s with standard deviations
    that are the same for all groups. These are 0, .25, .5 or 1 for b and 0 or .3 for s; f is 0
    (with probability .05), .1, .3 or 1. Laplace's approximation gives their posterior
    probabilities, and `shifts_` and `slopes_` are means over them. Groups of fewer than 10 samples
    keep the common map.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.posthoc import GroupwiseCalibration
    >>> rng = np.random.default_rng(0)
    >>> logits, group = rng.normal(size=3000), rng.choice(["a", "b", "c"], 3000)
    >>> y = rng.random(3000) < 1 / (1 + np.exp(-logits + (group == "c")))
    >>> model = GroupwiseCalibration().fit(logits, y, by=group)
    >>> model.predict_proba([0.0, 0.0], by=["a", "c"])[:, 1].round(2)
    array([0.52, 0.3 ])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PostHocCalibrator._parameter_constraints,
        "calibrator": [PostHocCalibrator, StrOptions(set(CALIBRATORS)), None],
    }

    _has_folds = True

    def __init__(
        self,
        calibrator: PostHocCalibrator | str | None = "auto",
        *,
        input: str = "logits",
        classes: ArrayLike | None = None,
    ) -> None:
        self.calibrator = calibrator
        self.input = input
        self.classes = classes

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: Any = None,
        *,
        by: Any = None,
    ) -> Self:
        """Fit the common map, and how the groups differ from it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores, as :meth:`PostHocCalibrator.fit` takes them.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or shares of people, see :meth:`PostHocCalibrator.fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; a weight of k counts as k equal samples.
        groups : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns), \
                default=None
            Which samples belong together, such as those of a patient: folds of the common map
            keep them together.
        by : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns), \
                default=None
            What the samples differ by: texts, numbers, intervals or categories. None is one group.

        Returns
        -------
        self : object
            The fitted calibrator.

        Raises
        ------
        ValueError
            If X, `y`, `sample_weight` and `by` do not fit together.
        """
        refuse_other_rows(X=X, y=y, by=by)
        super().fit(X, y, sample_weight, groups)
        proba = super().predict_proba(X)
        if by is None:
            by = np.zeros(len(proba), dtype=int)
        self.groups_, of_sample = group_codes(by, len(proba), name="by")
        weight, unit = scale_weights(check_weights(sample_weight, len(proba)))
        weight = np.ones(len(proba)) if weight is None else weight * count_unit(unit)
        _, codes = self._read_labels(y, self._read_scores(X, reset=False))
        logs = _log(proba)
        if holds_shares(codes):
            samples, codes, weight = rows_of(codes, weight)
            logs, of_sample = logs[samples], of_sample[samples]
        self._fit_groups(logs, codes, weight, of_sample)
        return self

    def predict_proba(self, X: ArrayLike, *, by: Any = None) -> NDArray:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores of the form that `fit` was given.
        by : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns), \
                default=None
            The group of every sample; one that was not in `fit` gets the common map, as do all
            samples where `by` is None.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`; rows sum to 1.
        """
        refuse_unreadable(X, name="X")  # chunks: the groups are in memory
        proba = super().predict_proba(X)
        if by is None:
            return proba
        names, of_sample = group_codes(by, len(proba), name="by")
        place = {name: k for k, name in enumerate(self.groups_.tolist())}
        place_of_sample = np.array([place.get(name, -1) for name in names.tolist()])[of_sample]
        moved = self.shifts_.any(axis=1) | (self.slopes_ != 0)
        rows = np.flatnonzero((place_of_sample >= 0) & moved[place_of_sample])
        group = place_of_sample[rows]
        logits = (1 + self.slopes_[group, None]) * _log(proba[rows]) + self.shifts_[group]
        proba[rows] = softmax(logits, axis=1)
        return proba

    def predict(self, X: ArrayLike, *, by: Any = None) -> NDArray:
        """Return the class of the largest calibrated probability.

        Parameters
        ----------
        X, by : of :meth:`predict_proba`

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predicted labels.
        """
        proba = self.predict_proba(X, by=by)
        return self.classes_[proba.argmax(axis=1)]

    def _fit(
        self,
        scores: NDArray,
        y: NDArray,
        sample_weight: NDArray | None,
        groups: NDArray[np.intp] | None = None,
    ) -> None:
        given = {"input": self.input, "classes": list(range(len(self.classes_)))}
        calibrator = calibrator_of(self.calibrator).set_params(**given)
        self.calibrator_ = calibrator._check_and_fit(scores, y, sample_weight, groups, tell=False)

    def _predict_proba(self, scores: NDArray) -> NDArray:
        return self.calibrator_.predict_proba(scores)

    def _formula(self) -> dict[str, Any]:
        raise NotImplementedError(
            "GroupwiseCalibration has a map for every group, and no formula for other programs; "
            "calibrator_ is the common map."
        )

    def _fit_groups(
        self, log_proba: NDArray, y: NDArray, weight: NDArray, of_sample: NDArray[np.intp]
    ) -> None:
        n_groups, k = len(self.groups_), log_proba.shape[1]
        large = np.flatnonzero(np.bincount(of_sample, weight, n_groups) >= LEAST_SAMPLES)
        spreads = [pair for pair in SPREADS if k <= MOST_CLASSES_TO_SHIFT or not pair[0]]
        theta = np.zeros((len(spreads), n_groups, k + 1))
        evidence = np.zeros((len(spreads), n_groups))
        # With one group the common map is the map of that group.
        for g in large if n_groups > 1 else []:
            rows = of_sample == g
            for m, spread in enumerate(spreads):
                theta[m, g], evidence[m, g] = _fit_group(
                    log_proba[rows], y[rows], weight[rows], *spread
                )
        # Per fraction f, spread and group: f times its likelihood if it differs, and 1 - f if not.
        with np.errstate(divide="ignore"):
            other = np.log(FRACTIONS)[:, None, None] + evidence
            same = np.broadcast_to(np.log1p(-FRACTIONS)[:, None, None], other.shape)
        either = np.logaddexp(other, same)
        likelihood = either[..., large].sum(axis=2)
        # Where no group differs at all, the likelihood is 1.
        odds = np.log1p(-NONE_DIFFERS) - np.log(NONE_DIFFERS * likelihood.size)
        posterior = softmax(np.append(likelihood.ravel() + odds, 0.0))
        differs = posterior[:-1].reshape(likelihood.shape)[..., None] * np.exp(other - either)
        self.differs_ = np.where(np.isin(np.arange(n_groups), large), differs.sum((0, 1)), 0.0)
        mean = np.einsum("fmg,mgk->gk", differs, theta)
        self.shifts_, self.slopes_ = mean[:, :k], mean[:, k]


def _log(proba: NDArray) -> NDArray[np.float64]:
    return np.log(np.maximum(proba.astype(np.float64), SMALLEST))


def _fit_group(
    log_proba: NDArray, y: NDArray, weight: NDArray, shift: float, slope: float
) -> tuple[NDArray[np.float64], float]:
    """Return the most likely shifts b and slope s (K + 1,), and the log of their evidence.

    p = softmax((1 + s) log_proba + b). They are normal about 0 with the standard deviations
    `shift` and `slope`. The evidence is against b = s = 0, by Laplace's approximation.
    """
    n, k = log_proba.shape
    free = np.append(np.full(k, shift > 0), slope > 0)
    precision = np.append(np.full(k, shift), slope)[free] ** -2.0
    label = np.arange(n), y
    theta = np.zeros(k + 1)

    def loss_at(theta: NDArray) -> tuple[float, NDArray]:
        logits = (1 + theta[k]) * log_proba + theta[:k]
        log_q = logits - logsumexp(logits, axis=1, keepdims=True)
        penalty = 0.5 * float(precision @ theta[free] ** 2)
        return penalty - float(weight @ log_q[label]), np.exp(log_q)

    loss, proba = loss_at(theta)
    none = loss
    for _ in range(_MOST_STEPS):
        residual = weight[:, None] * proba
        residual[label] -= weight
        gradient = np.append(residual.sum(axis=0), np.vdot(residual, log_proba))[free]
        gradient += precision * theta[free]
        hessian = _hessian(log_proba, proba, weight)[np.ix_(free, free)] + np.diag(precision)
        step = np.zeros(k + 1)
        step[free] = -np.linalg.solve(hessian, gradient)
        gain, length = -float(gradient @ step[free]), 1.0
        if gain < _LEAST_GAIN:
            break
        latest, proba = loss_at(theta + step)
        while latest > loss and length > 1e-6:
            length /= 2
            latest, proba = loss_at(theta + length * step)
        theta, loss = theta + length * step, latest
    _, volume = np.linalg.slogdet(hessian)
    return theta, none - loss + 0.5 * float(np.log(precision).sum() - volume)


def _hessian(log_proba: NDArray, proba: NDArray, weight: NDArray) -> NDArray[np.float64]:
    """Return the second derivatives, in the shifts and the slope, of the summed log-loss."""
    weighted = weight[:, None] * proba
    mean = np.einsum("ik,ik->i", proba, log_proba)
    centered = weighted * (log_proba - mean[:, None])
    shifts = np.diag(weighted.sum(axis=0)) - weighted.T @ proba
    cross = centered.sum(axis=0)
    return np.block([[shifts, cross[:, None]], [cross, np.vdot(centered, log_proba)]])
