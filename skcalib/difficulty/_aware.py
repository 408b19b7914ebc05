"""A classifier trained with a weight per sample that follows its difficulty."""

from __future__ import annotations

from inspect import signature
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import UNUSED, process_routing

from ..utils.checking._arrays import check_weights
from ..utils.meta._estimators import (
    DelegatingClassifier,
    check_fit_takes,
    fit_clone,
    group_params,
    last_step,
    samples_and_labels,
    warn_if_fitted,
)
from ..utils.meta._private import HasMethods, Interval, StrOptions, _fit_context, _routing_enabled
from ..utils.meta._scorers import fit_difficulty_of_used
from ._weights import difficulty_weights
from .gaussian import RelativeMahalanobisScorer


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
       Pre-trained Models for Reliable Prediction", NeurIPS 2023.

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
        X, labels = samples_and_labels(X, y)
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
        final, _ = last_step(scorer)
        scorer_params: dict[str, Any] = {}
        of_groups = group_params(self.estimator, groups)
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
