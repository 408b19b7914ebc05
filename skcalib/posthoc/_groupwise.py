"""One calibrator for all samples, and shrunken corrections for groups of them."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from ..utils._arrays import (
    average_to_one,
    check_readable,
    check_weights,
    is_soft,
)
from ..utils._compat import StrOptions, _fit_context
from ..utils._labels import encode_groups
from ..utils._proba import expand_soft_labels
from ._base import PostHocCalibrator
from ._constants import FRACTIONS, LEAST_SAMPLES, MOST_CLASSES_TO_SHIFT, NONE_DIFFERS, SPREADS
from ._registry import CALIBRATORS, get_calibrator
from ._shifts import compute_log_proba, fit_shifts


class GroupwiseCalibration(PostHocCalibrator):
    """Calibrate all samples by one map, and correct it for groups that differ.

    A model can be calibrated overall and miscalibrated for a group. One map for all samples cannot
    repair that, and a separate map for each group learns from few samples. Here the probabilities
    p of a common map become ``softmax((1 + s) log(p) + b)`` in each group, and a prior shared by
    all groups shrinks the slope s and the shifts b to 0. The corrections are averages over priors
    (how many groups differ, and by how much), weighted by the likelihood of the labels. So if no
    group differs, all keep the common map; if one does, only that one is corrected.

    Parameters
    ----------
    calibrator : PostHocCalibrator, str or None, default="auto"
        The common map; a clone is fitted, with `input` and `classes` set to those of this
        calibrator. For names see :class:`PostHocCalibratedClassifier`; "none" and None leave the
        probabilities unchanged.
    input, classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    calibrator_ : PostHocCalibrator
        The common map.
    groups_ : ndarray of shape (n_groups,)
        The groups, sorted; None stands for missing values. With several columns, every
        combination that occurs is a group, named "name=value, ...".
    shifts_ : ndarray of shape (n_groups, n_classes)
        The shifts b of the groups, in logits; 0 with more than 100 classes.
    slopes_ : ndarray of shape (n_groups,)
        The slopes s of the groups: negative if the common map is overconfident there.
    differs_ : ndarray of shape (n_groups,)
        Posterior probability that a group differs from the common map.
    classes_, n_features_in_, feature_names_in_, unit_ : of :class:`PostHocCalibrator`

    See Also
    --------
    skcalib.metrics.groupwise_calibration_error : Find groups that are miscalibrated.
    PostHocCalibratedClassifier : Takes the groups from columns of X (`by_columns`).

    Notes
    -----
    In the prior, a group differs with probability f, and otherwise has b = s = 0. If it differs,
    b and s are normal around 0, with standard deviations that all groups share: 0, .25, .5 or 1
    for b and 0 or .3 for s. f is 0 (with prior probability .05), .1, .3 or 1. Laplace's
    approximation gives the posterior probabilities of all combinations, and `shifts_` and
    `slopes_` are the posterior means. Groups of fewer than 10 samples keep the common map.

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
        """Fit the common map, and the corrections for the groups.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Logits, or probabilities with ``input="proba"``, one column per class in the order of
            `classes_`; for two classes also the score of the second class alone.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or the fraction of people who gave each label (see
            :meth:`PostHocCalibrator.fit`).
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; only their ratios matter.
        groups : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns), \
                default=None
            Which samples belong together, such as those of a patient: folds of the common map
            keep them together.
        by : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns), \
                default=None
            The group to correct for: texts, numbers, intervals or categories; several columns are
            combined. None means one group.

        Returns
        -------
        self : object
            The fitted calibrator.

        Raises
        ------
        ValueError
            If X, `y`, `sample_weight`, `groups` and `by` have different lengths.
        """
        super().fit(X, y, sample_weight, groups)
        return self._fit_by(X, y, sample_weight, by)

    def _fit_aligned(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: Any = None,
        *,
        by: Any = None,
    ) -> Self:
        super()._fit_aligned(X, y, sample_weight, groups)
        return self._fit_by(X, y, sample_weight, by)

    def _fit_by(self, X: ArrayLike, y: ArrayLike, sample_weight: Any, by: Any) -> Self:
        """Fit the corrections for the groups, after the common map."""
        proba = super().predict_proba(X)
        if by is None:
            by = np.zeros(len(proba), dtype=int)
        self.groups_, of_sample = encode_groups(by, len(proba), name="by")
        weight = average_to_one(check_weights(sample_weight, len(proba)))
        weight = np.ones(len(proba)) if weight is None else weight
        _, codes = self._read_labels(y, self._read_scores(X, reset=False))
        logs = compute_log_proba(proba)
        if is_soft(codes):
            samples, codes, weight = expand_soft_labels(codes, weight)
            logs, of_sample = logs[samples], of_sample[samples]
        self._fit_groups(logs, codes, weight, of_sample)
        return self

    def predict_proba(self, X: ArrayLike, *, by: Any = None) -> NDArray:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores in the form that `fit` got.
        by : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns), \
                default=None
            The group of every sample. A group that was not in `fit` gets the common map, and so do
            all samples if `by` is None.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`; rows sum to 1.
        """
        check_readable(X, name="X")  # no dask arrays: the groups are in memory
        proba = super().predict_proba(X)
        if by is None:
            return proba
        names, of_sample = encode_groups(by, len(proba), name="by")
        position = {name: k for k, name in enumerate(self.groups_.tolist())}
        group = np.array([position.get(name, -1) for name in names.tolist()])[of_sample]
        differs = self.shifts_.any(axis=1) | (self.slopes_ != 0)
        rows = np.flatnonzero((group >= 0) & differs[group])
        group = group[rows]
        logits = (1 + self.slopes_[group, None]) * compute_log_proba(proba[rows]) + self.shifts_[
            group
        ]
        proba[rows] = softmax(logits, axis=1)
        return proba

    def predict(self, X: ArrayLike, *, by: Any = None) -> NDArray:
        """Return the class with the largest calibrated probability.

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
        calibrator = get_calibrator(self.calibrator).set_params(**given)
        self.calibrator_ = calibrator._check_and_fit(scores, y, sample_weight, groups, warns=False)

    def _predict_proba(self, scores: NDArray) -> NDArray:
        return self.calibrator_.predict_proba(scores)

    def _formula(self) -> dict[str, Any]:
        raise NotImplementedError(
            "GroupwiseCalibration has a map for every group and no formula for other programs; "
            "that of the common map is calibrator_.to_json()."
        )

    def _fit_groups(
        self, log_proba: NDArray, y: NDArray, weight: NDArray, of_sample: NDArray[np.intp]
    ) -> None:
        """Fit every group under every spread, and average by posterior probability."""
        n_groups, k = len(self.groups_), log_proba.shape[1]
        large = np.flatnonzero(np.bincount(of_sample, weight, n_groups) >= LEAST_SAMPLES)
        spreads = [pair for pair in SPREADS if k <= MOST_CLASSES_TO_SHIFT or not pair[0]]
        theta = np.zeros((len(spreads), n_groups, k + 1))
        evidence = np.zeros((len(spreads), n_groups))
        # A single group needs no correction.
        for g in large if n_groups > 1 else []:
            rows = of_sample == g
            for m, spread in enumerate(spreads):
                theta[m, g], evidence[m, g] = fit_shifts(
                    log_proba[rows], y[rows], weight[rows], *spread
                )
        # Log-likelihoods, relative to b = s = 0, for each fraction f, spread and group: f times
        # the evidence if the group differs, 1 - f if not.
        with np.errstate(divide="ignore"):
            if_differs = np.log(FRACTIONS)[:, None, None] + evidence
            if_not = np.broadcast_to(np.log1p(-FRACTIONS)[:, None, None], if_differs.shape)
        either = np.logaddexp(if_differs, if_not)
        likelihood = either[..., large].sum(axis=2)
        # The last hypothesis: no group differs (log-likelihood 0).
        prior_odds = np.log1p(-NONE_DIFFERS) - np.log(NONE_DIFFERS * likelihood.size)
        posterior = softmax(np.append(likelihood.ravel() + prior_odds, 0.0))
        differs = posterior[:-1].reshape(likelihood.shape)[..., None] * np.exp(if_differs - either)
        self.differs_ = np.where(np.isin(np.arange(n_groups), large), differs.sum((0, 1)), 0.0)
        mean = np.einsum("fmg,mgk->gk", differs, theta)
        self.shifts_, self.slopes_ = mean[:, :k], mean[:, k]
