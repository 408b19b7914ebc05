"""Logistic recalibration: one slope and one intercept per class, without penalty."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from ..metrics._risk_model import LogisticFit, fit_logistic
from ..utils._output import warn
from ._base import PostHocCalibrator, make_linear_formula


class SigmoidCalibration(PostHocCalibrator):
    """Update the intercept of a model, or its intercept and slope, by logistic regression.

    The probabilities are ``softmax(b z + a)`` with one slope b for all classes and an intercept
    for every class but the first. For two classes it is ``expit(b logit(p) + a)``: Platt's sigmoid
    [1]_, the logistic recalibration of risk models [2]_. The fit is by maximum likelihood without
    any penalty, so that on its samples the mean probability of every class is its frequency.
    ``slope=False`` keeps b = 1 and updates the intercepts alone, which needs the fewest samples.

    Parameters
    ----------
    slope : bool, default=True
        Whether to fit the slope; False keeps it 1.
    input, classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    slope_ : float
        The slope b; below 1, the model was overconfident.
    intercept_ : ndarray of shape (n_classes - 1,)
        The intercepts of all classes but the first, whose intercept is 0; of a class without
        samples 0.
    slope_se_ : float
        Standard error of `slope_`; 0 with ``slope=False``, NaN without a finite maximum.
    intercept_se_ : ndarray of shape (n_classes - 1,)
        Standard errors of `intercept_`; NaN for a class without samples.
    classes_, n_features_in_, feature_names_in_, unit_ : of :class:`PostHocCalibrator`

    Warns
    -----
    SkcalibWarning
        If the scores separate the classes, so that the likelihood has no finite maximum. The
        slope is then that of 25 steps of the search.

    See Also
    --------
    TemperatureScaling : A slope alone.
    VectorScaling : A slope for every class.
    skcalib.metrics.validation_summary : Whether an update is needed: slope and calibration in the
        large with intervals.
    sklearn.calibration.CalibratedClassifierCV : Its "sigmoid" calibrates each class against the
        rest, with labels that are drawn towards the class frequencies.

    Notes
    -----
    Standard errors are those of maximum likelihood, for the effective number of samples
    ``sum(w)^2 / sum(w^2)`` of weights w. With `groups` they are those of the sandwich, which sums
    over groups; predictions do not depend on groups.

    References
    ----------
    .. [1] J. Platt, "Probabilistic Outputs for Support Vector Machines and Comparisons to
       Regularized Likelihood Methods", 1999.
    .. [2] E. W. Steyerberg, G. J. J. M. Borsboom, H. C. van Houwelingen, M. J. C. Eijkemans,
       J. D. F. Habbema, "Validation and Updating of Predictive Logistic Regression Models",
       Statistics in Medicine 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.posthoc import SigmoidCalibration
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.beta(1, 4, size=2000)
    >>> y = rng.uniform(size=2000) < risk / 2
    >>> update = SigmoidCalibration(slope=False, input="proba").fit(risk, y)
    >>> print(f"{update.intercept_[0]:.2f}, standard error {update.intercept_se_[0]:.2f}")
    -1.04, standard error 0.08
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PostHocCalibrator._parameter_constraints,
        "slope": ["boolean"],
    }
    # The groups are for the standard errors.
    _has_folds = True

    def __init__(
        self, *, slope: bool = True, input: str = "logits", classes: ArrayLike | None = None
    ) -> None:
        self.slope = slope
        self.input = input
        self.classes = classes

    def _fit(
        self,
        scores: NDArray,
        y: NDArray,
        sample_weight: NDArray | None,
        groups: NDArray[np.intp] | None = None,
    ) -> None:
        logits = self._as_logits(scores).astype(np.float64)
        targets = np.eye(logits.shape[1])[y]
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        fit = fit_logistic(logits, targets, weight, free_slope=self.slope)
        if not fit.converged and fit.free_slope:
            warn(
                "The scores separate the classes: the slope has no finite best value, and is that "
                f"of the last step, {fit.slope:.3g}. Use more samples, or TemperatureScaling."
            )
        self._intercepts = fit.intercept
        self.slope_ = fit.slope
        self.intercept_ = fit.intercept[1:] - fit.intercept[0]
        self.slope_se_, self.intercept_se_ = _compute_standard_errors(
            fit, logits, targets, weight, groups
        )

    def _predict_proba(self, scores: NDArray) -> NDArray:
        logits = self._as_logits(scores)
        logits = logits.astype(np.result_type(logits.dtype, np.float32), copy=False)
        scaled = self.slope_ * logits.astype(np.float64) + self._intercepts
        return softmax(scaled, axis=1).astype(logits.dtype, copy=False)

    def _formula(self) -> dict[str, Any]:
        return make_linear_formula(coef=self.slope_, intercept=self._intercepts)


def _compute_standard_errors(
    fit: LogisticFit,
    logits: NDArray,
    targets: NDArray,
    weight: NDArray,
    groups: NDArray[np.intp] | None,
) -> tuple[float, NDArray[np.float64]]:
    """Return the standard errors of the slope, and of the intercepts but the first."""
    errors = np.full(1 + targets.shape[1], np.nan)
    if fit.converged:
        inverse = np.linalg.inv(fit.hessian)
        if groups is None:
            covariance = inverse * (weight @ weight) / weight.sum()
        else:
            codes = np.unique(groups, return_inverse=True)[1]
            of_groups = fit.derivatives(logits, targets, weight, codes) @ inverse
            n = len(of_groups)
            covariance = of_groups.T @ of_groups * n / max(n - 1, 1)
        found = np.sqrt(np.diag(covariance))
        errors[1 + fit.free] = found[int(fit.free_slope) :]
        errors[0] = found[0] if fit.free_slope else 0.0
    return float(errors[0]), errors[2:]
