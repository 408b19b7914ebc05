"""From difficulty to a weight for every sample, and a classifier trained with these weights."""

from __future__ import annotations

import sys
from inspect import signature
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import UNUSED, process_routing

from ..utils._arrays import as_array, check_numbers, check_weights
from ..utils._compat import (
    HasMethods,
    Interval,
    StrOptions,
    _fit_context,
    _routing_enabled,
    validate_params,
)
from ..utils._estimators import (
    DelegatingClassifier,
    check_fit_takes,
    fit_clone,
    fit_difficulty_of_used,
    get_group_params,
    get_last_step,
    read_samples,
    warn_if_fitted,
)
from ..utils._output import warn
from ._mahalanobis import RelativeMahalanobisScorer

# From difficulty to a weight per sample.

# Smaller weights have no effect.
_NEGLIGIBLE = 1e-6
# Largest difference between equal difficulties, relative to their range.
_ROUNDING = 1e-10
_POSITIVE = Interval(Real, 0, sys.float_info.max, closed="right")


@validate_params(
    {
        "difficulty": ["array-like"],
        "temperature": [_POSITIVE],
        "c": [_POSITIVE],
        "scale": [StrOptions({"rank", "minmax", "std"}), None],
        "sample_weight": ["array-like", None],
        "reference": ["array-like", None],
    }
)
def difficulty_weights(
    difficulty: ArrayLike,
    *,
    temperature: float = 0.3,
    c: float = 1e-3,
    scale: str | None = "rank",
    sample_weight: ArrayLike | None = None,
    reference: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Turn difficulty into weights between 0 and 1, larger for harder samples.

    Equation 10 of [1]_, computed in logarithms so that it does not overflow:

    .. math::

        s_i = \\frac{\\exp(d_i / T)}{\\max_j \\exp(d_j / T) + c}

    Parameters
    ----------
    difficulty : array-like of shape (n_samples,)
        Difficulty, larger = harder. Infinity, as for a sample that is left out and was the only
        one of its class, has the last rank. The other scales replace it by the largest finite
        difficulty.
    temperature : float, default=0.3
        T > 0. A small one concentrates the weight on the hardest samples.
    c : float, default=1e-3
        Positive constant that keeps the largest weight below 1.
    scale : {"rank", "minmax", "std"} or None, default="rank"
        How `difficulty` is scaled first. "rank" replaces it by its rank, "minmax" maps it
        linearly, both to [0, 1]; "std" subtracts the mean and divides by the standard deviation.
        All make `temperature` independent of the unit of the difficulty. Ranks give the same
        weights on every data set; with "minmax", they depend on the hardest and the easiest
        sample. Equal difficulties share their mean rank; constant difficulty becomes 0, so that
        all weights are equal. None is the equation as it stands: raw relative Mahalanobis
        distances grow with the number of features, which often leaves a single weight above 0.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights in the ranks and in the mean and standard deviation of "std". Samples of weight 0
        do not count, not even in a maximum or minimum, and get weight 0.
    reference : array-like of shape (n_reference,), default=None
        Difficulties from which ranks, ranges and the maximum come, in place of `difficulty`. Pass
        those of the training samples if `difficulty` is that of augmented views of them, as in
        [1]_. Values outside of their range are moved to its nearest end. Not with `sample_weight`.

    Returns
    -------
    weights : ndarray of shape (n_samples,)
        In (0, 1), up to the range of float64: below 1e-308 they underflow to 0, and the
        largest rounds to 1 where `c` is negligible beside its numerator.

    Warns
    -----
    SkcalibWarning
        If at least half of the weights are below 1e-6.

    See Also
    --------
    DifficultyAwareClassifier : Trains any classifier with such weights.
    RelativeMahalanobisScorer : A difficulty to start from.
    skcalib.losses.DifficultyAwareLoss : A loss that takes such weights.

    References
    ----------
    .. [1] P. Cui, D. Zhang, Z. Deng, Y. Dong, J. Zhu, "Learning Sample Difficulty from
       Pre-trained Models for Reliable Prediction", NeurIPS 2023. Calls: :ref:`paper-rmd`.

    Examples
    --------
    >>> from skcalib.difficulty import difficulty_weights
    >>> difficulty_weights([-120.0, 0.0, 60.0]).round(3)
    array([0.036, 0.189, 1.   ])
    >>> difficulty_weights([30.0, 99.0], reference=[-120.0, 0.0, 60.0]).round(3)
    array([0.435, 1.   ])
    """
    values = _check_difficulty(difficulty)
    if reference is not None:
        if sample_weight is not None:
            raise ValueError("sample_weight must be None where reference is given, got both.")
        return _weigh_on_scale_of(values, _check_difficulty(reference), scale, temperature, c)
    weight = check_weights(sample_weight, len(values))
    weights = np.zeros(len(values))
    used = slice(None) if weight is None else weight > 0
    scaled = _scale_difficulty(values[used], scale, None if weight is None else weight[used])
    weights[used] = _compute_weights(scaled, scaled.max(), temperature, c)
    negligible = int((weights[used] < _NEGLIGIBLE).sum())
    if 2 * negligible >= len(scaled):
        warn(
            f"{negligible} of {len(scaled)} difficulty weights are below {_NEGLIGIBLE:g}: "
            "most samples will have no effect. Use scale='rank' or a larger temperature."
        )
    return weights


def _compute_weights(
    scaled: NDArray[np.float64], largest: float, temperature: float, c: float
) -> NDArray[np.float64]:
    """Return exp(d / T) / (exp(largest / T) + c) of scaled difficulties d."""
    # The logarithm of exp(d/T) / (exp(max/T) + c), with exp(max/T) divided out of both. Overflows
    # become infinities of the right sign, and weights of 0 or 1.
    with np.errstate(over="ignore"):
        below_largest = (scaled - largest) / float(temperature)
        log_c_over_largest = np.log(float(c)) - largest / float(temperature)
    return np.exp(below_largest - np.logaddexp(0.0, log_c_over_largest))


def _weigh_on_scale_of(
    values: NDArray[np.float64],
    reference: NDArray[np.float64],
    scale: str | None,
    temperature: float,
    c: float,
) -> NDArray[np.float64]:
    """Return the weights of difficulties whose scale and maximum come from a reference."""
    scaled = _scale_difficulty(reference, scale, None)
    order = np.argsort(reference)
    # Every scale is increasing, and all except ranks are linear: between two difficulties of the
    # reference, the scaled ones are interpolated. Infinity gets the largest scaled value.
    n_finite = max(int((reference < np.inf).sum()), 1)
    finite = order[:n_finite]
    within = np.interp(values, reference[finite], scaled[finite])
    own = np.where(values < np.inf, within, scaled.max())
    return _compute_weights(own, scaled.max(), temperature, c)


def _check_difficulty(difficulty: ArrayLike) -> NDArray[np.float64]:
    """Return finite difficulties and positive infinities."""
    values = as_array(difficulty, name="difficulty")
    infinite = values == np.inf if values.dtype.kind == "f" else np.False_
    if not infinite.any():
        return check_numbers(values, "difficulty", ndim=(1,)).astype(np.float64, copy=False)
    numbers = check_numbers(np.where(infinite, 0.0, values), "difficulty", ndim=(1,))
    return np.where(infinite, np.inf, numbers)


def _scale_difficulty(
    values: NDArray[np.float64], scale: str | None, weight: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return finite scaled difficulties, (n,)."""
    finite = values < np.inf
    if not finite.any():
        return np.zeros_like(values)
    if scale == "rank" and values.min() < values.max():
        return _compute_ranks(values, weight)
    bounded = np.minimum(values, values[finite].max())
    if scale is None:
        return bounded
    if bounded.min() == bounded.max():
        return np.zeros_like(bounded)
    # Neither scale depends on a factor. A power of two changes no digit and avoids overflows.
    exponent = np.frexp(np.abs(bounded).max())[1]
    moderate = np.ldexp(bounded, -exponent)
    if scale == "minmax":
        return (moderate - moderate.min()) / (moderate.max() - moderate.min())
    relative = None if weight is None else weight / weight.max()
    centered = moderate - np.average(moderate, weights=relative)
    return centered / np.sqrt(np.average(centered**2, weights=relative))


def _compute_ranks(
    values: NDArray[np.float64], weight: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return the ranks, mapped to [0, 1]: 0 for the smallest value and 1 for the largest.

    Equal samples share their mean rank, at the middle of their weight: weight k is k copies.
    Copies may differ by rounding: products over samples depend on the order of the samples.
    """
    order = np.argsort(values, kind="stable")
    finite = values[order][: np.count_nonzero(values < np.inf)]
    exponent = np.frexp(np.abs(finite).max())[1]
    differences = np.diff(np.ldexp(finite, -exponent))
    # A difference starts a new rank, and all add up to the range; those by rounding are smaller.
    begins = np.zeros(len(values), dtype=bool)
    begins[1 : len(finite)] = differences > _ROUNDING * differences.sum()
    # Behind the finite values, all infinite ones share the last place.
    begins[len(finite) : len(finite) + 1] = True
    place = np.empty(len(values), dtype=np.intp)
    place[order] = np.cumsum(begins)
    # Relative, so that the sum of very large weights is finite.
    group_weight = np.bincount(place, None if weight is None else weight / weight.max())
    middle = np.cumsum(group_weight) - 0.5 * group_weight
    return ((middle - middle[0]) / (middle[-1] - middle[0]))[place]


# A classifier trained with a weight per sample that follows its difficulty.


class DifficultyAwareClassifier(DelegatingClassifier):
    """Classifier trained with a weight per sample that follows its difficulty.

    As weights of samples, difficulty rarely pays: on 71 small tasks with right labels,
    ``direction="up"`` cost .021 accuracy on average and .25 at worst, ``direction="down"`` .009
    and .12. With 10 or 20 % of the labels wrong, "up" cost .074 and "down" gained .020. Cleaning
    the labels gains more: :class:`~skcalib.labels.LabelCleaningClassifier`. Calibrate the
    classifier in either case.

    `fit` scores the difficulty of its own training samples, turns it into weights by
    :func:`difficulty_weights`, and trains the classifier with them. In cross-validation, nothing
    leaks from the validation fold.

    The classifier decides what the weight does. In a net with the loss
    :class:`skcalib.losses.DifficultyAwareLoss`, it is the strength of the entropy regularization,
    which keeps the net from being confident on hard samples [1]_. With
    ``fit_param="sample_weight"``, any scikit-learn classifier weighs its samples.

    Parameters
    ----------
    estimator : classifier
        The classifier. A clone is fitted.
    scorer : difficulty scorer or Pipeline ending in one, default=None
        Scores the difficulty. None means :class:`RelativeMahalanobisScorer`. In a Pipeline, the
        samples are embedded first; give it `memory` to embed them once for all values of
        `temperature` in a grid search.
    temperature, c, scale : of :func:`difficulty_weights`
    fit_param : str, default="difficulty_weight"
        Parameter of ``estimator.fit`` that takes the weights. For a Pipeline it carries the
        name of the step, as in ``'logisticregression__sample_weight'``.
    direction : {"up", "down"}, default="up"
        "up" gives harder samples larger weights. "down" takes one minus these: the hardest sample
        has almost no weight. With ranks, "down" removes about the fraction `temperature` of the
        total weight.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    scorer_ : difficulty scorer or Pipeline
        The fitted scorer.
    difficulty_ : ndarray of shape (n_samples,)
        Difficulty of the training samples, larger = harder. NaN where the weight is 0.
    weights_ : ndarray of shape (n_samples,)
        Weights of the training samples; 0 where `sample_weight` is 0.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted: those of `y`, and others that the classifier knows.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Of `estimator_`, where it has them.

    See Also
    --------
    difficulty_weights : The weights.
    skcalib.selection.SubsetClassifier : Leaves samples out instead of weighting them.
    skcalib.losses.DifficultyAwareLoss : A loss that uses difficulty in another way.

    References
    ----------
    .. [1] P. Cui, D. Zhang, Z. Deng, Y. Dong, J. Zhu, "Learning Sample Difficulty from
       Pre-trained Models for Reliable Prediction", NeurIPS 2023. Calls: :ref:`paper-rmd`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skcalib.difficulty import DifficultyAwareClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = DifficultyAwareClassifier(
    ...     LogisticRegression(), fit_param="sample_weight", direction="down"
    ... )
    >>> clf.fit(X, y).predict(X[:2])
    array([0, 0])
    >>> int(clf.weights_.argmin())
    118
    """

    # With metadata routing, `groups` are for a scorer and an estimator that request them.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"groups": UNUSED}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "scorer": [HasMethods("fit_difficulty"), Pipeline, None],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "c": [Interval(Real, 0, None, closed="neither")],
        "scale": [StrOptions({"rank", "minmax", "std"}), None],
        "fit_param": [str],
        "direction": [StrOptions({"up", "down"})],
    }

    def __init__(
        self,
        estimator: Any,
        scorer: Any = None,
        *,
        temperature: float = 0.3,
        c: float = 1e-3,
        scale: str | None = "rank",
        fit_param: str = "difficulty_weight",
        direction: str = "up",
    ) -> None:
        self.estimator = estimator
        self.scorer = scorer
        self.temperature = temperature
        self.c = c
        self.scale = scale
        self.fit_param = fit_param
        self.direction = direction

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Score the samples, then fit the classifier with the weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of n_samples objects
            Whatever the scorer and the classifier take.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Goes to the scorer and to the classifier. Where `fit_param` is itself a
            ``sample_weight``, the classifier gets the product of both.
        groups : array-like of shape (n_samples,), default=None
            Which samples belong together, for a scorer with folds and for the `fit` of a
            classifier that takes groups; where neither reads them, they are refused.
        **fit_params : dict
            Further parameters of ``estimator.fit``.

        Returns
        -------
        self : DifficultyAwareClassifier
            The fitted classifier.
        """
        X, labels = read_samples(X, y)
        weight = check_weights(sample_weight, len(labels))
        warn_if_fitted(estimator=self.estimator, scorer=self.scorer)
        scorer = clone(self._scorer())
        hint = " (fit_param names it, for instance fit_param='sample_weight')"
        check_fit_takes(self.estimator, self.fit_param, hint)
        if self.fit_param in fit_params:
            raise ValueError(
                f"{self.fit_param} must not be passed to fit: it is computed from the difficulty."
            )
        scorer_params, estimator_params = self._routed(scorer, weight, groups, fit_params)
        used = np.arange(len(labels)) if weight is None else np.flatnonzero(weight)
        self.scorer_, self.difficulty_ = fit_difficulty_of_used(
            scorer, X, labels, used, scorer_params
        )
        hard = difficulty_weights(
            self.difficulty_[used],
            temperature=self.temperature,
            c=self.c,
            scale=self.scale,
            sample_weight=None if weight is None else weight[used],
        )
        self.weights_ = np.zeros(len(labels))
        self.weights_[used] = hard if self.direction == "up" else 1 - hard
        # An estimator with one parameter for both weights gets their product.
        other_weight = estimator_params.get(self.fit_param, 1.0)
        estimator_params[self.fit_param] = self.weights_ * other_weight
        self._keep(fit_clone(self.estimator, X, labels, params=estimator_params), labels)
        return self

    def _scorer(self) -> Any:
        if self.scorer is not None:
            return self.scorer
        # Users cannot set the request of a default scorer.
        scorer = RelativeMahalanobisScorer()
        return scorer.set_fit_request(sample_weight=True) if _routing_enabled() else scorer

    def _routed(
        self,
        scorer: Any,
        weight: NDArray | None,
        groups: ArrayLike | None,
        fit_params: dict[str, Any],
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the parameters for the `fit` of the scorer and of the estimator."""
        if _routing_enabled():
            given = {} if groups is None else {"groups": groups}
            routed = process_routing(self, "fit", sample_weight=weight, **given, **fit_params)
            return dict(routed["scorer"]["fit"]), dict(routed["estimator"]["fit"])
        # `fit_difficulty` passes these to the scorer itself, however deep in Pipelines.
        final, _ = get_last_step(scorer)
        scorer_params: dict[str, Any] = {}
        of_groups = get_group_params(self.estimator, groups)
        fit_params = {**fit_params, **of_groups}
        if groups is not None:
            if "groups" in signature(final.fit_difficulty).parameters:
                scorer_params["groups"] = groups
            elif not of_groups:
                raise ValueError(
                    f"groups must be None for a scorer without folds, {type(final).__name__}, "
                    "and a classifier that takes none, got groups."
                )
        if weight is None:
            return scorer_params, fit_params
        check_fit_takes(final, "sample_weight", name="scorer")
        # In a Pipeline, sample weights go to the step that gets the difficulty.
        step, _, _ = self.fit_param.rpartition("__")
        name = f"{step}__sample_weight" if step else "sample_weight"
        check_fit_takes(self.estimator, name)
        return {**scorer_params, "sample_weight": weight}, {**fit_params, name: weight}

    def _inside(self) -> dict[str, Any]:
        return {"estimator": self.estimator, "scorer": self._scorer()}
