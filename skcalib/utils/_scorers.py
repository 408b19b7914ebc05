"""What meta-estimators need of a difficulty scorer, or of a Pipeline that ends in one."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ._private import _check_method_params, _num_samples, _safe_indexing


class _FinalStep(BaseEstimator):
    """Last step of a Pipeline whose `fit_predict` returns the difficulty of the fitted samples."""

    def __init__(self, scorer: Any, fit_params: dict[str, Any] | None = None) -> None:
        self.scorer = scorer
        self.fit_params = fit_params

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        self.fit_predict(X, y)
        return self

    def fit_predict(self, X: Any, y: ArrayLike | None = None) -> NDArray:
        self.scorer_, difficulty = fit_difficulty(self.scorer, X, y, **(self.fit_params or {}))
        return difficulty


def fit_difficulty(
    scorer: Any, X: Any, y: ArrayLike | None = None, **fit_params: Any
) -> tuple[Any, NDArray]:
    """Fit a scorer, or a Pipeline ending in one, and score the fitted samples by order.

    The samples pass through the transformers of a Pipeline once, by `fit_transform`, so that
    ``memory=`` spares them a second time. `fit_params` go to the scorer itself. Where a step
    resamples, the scorer is fitted on what it returns, and the samples given are scored as new
    ones. Fits in place: pass a clone.

    Returns
    -------
    scorer : estimator
        The fitted scorer or Pipeline.
    difficulty : ndarray of shape (n_samples,)
        Difficulty of the samples.
    """
    if isinstance(scorer, FrozenEstimator):
        return scorer, score(scorer, X, y)
    if not isinstance(scorer, Pipeline):
        _check_scores(scorer, "fit_difficulty")
        # Unbiased values are not the best order: see RelativeMahalanobisScorer._fit_ranking.
        score_fitted = getattr(scorer, "_fit_ranking", scorer.fit_difficulty)
        return scorer, score_fitted(X, y, **fit_params)
    if any(_resamples(step) for _, step in scorer.steps[:-1]):
        if fit_params:
            raise ValueError(
                f"{', '.join(fit_params)} must be None where a step of the Pipeline resamples, "
                "got values for the samples before it."
            )
        return scorer, score(scorer.fit(X, y), X, y)
    name, final = scorer.steps[-1]
    # `fit_predict` of a Pipeline fits the transformers, each once, and returns what its last
    # step does. With memory it fits copies of them, which only `recording` holds.
    recorder = _FinalStep(final, fit_params)
    recording = Pipeline([*scorer.steps[:-1], (name, recorder)], memory=scorer.memory)
    difficulty = recording.fit_predict(X, y)
    fitted = Pipeline([*recording.steps[:-1], (name, recorder.scorer_)], memory=scorer.memory)
    return fitted, difficulty


def _resamples(step: Any) -> bool:
    """Tell whether a step is a sampler, as in imbalanced-learn: at work in `fit` alone."""
    return hasattr(step, "fit_resample")


def score(scorer: Any, X: Any, y: ArrayLike | None = None) -> NDArray:
    """Return the difficulty of samples by a fitted scorer, or by a Pipeline that ends in one."""
    while isinstance(scorer, Pipeline):
        for _, step in scorer.steps[:-1]:
            if step not in (None, "passthrough") and not _resamples(step):
                X = step.transform(X)
        scorer = scorer[-1]
    _check_scores(scorer, "difficulty")
    return scorer.difficulty(X, y)


def fit_difficulty_of_used(
    scorer: Any, X: Any, y: NDArray | None, used: NDArray[np.intp], params: dict[str, Any]
) -> tuple[Any, NDArray]:
    """Fit to the samples `used` alone; the difficulty (n_samples,) of the others is NaN.

    Samples of weight 0 are left out in this way: some scorers could not judge them.
    """
    n_samples = _num_samples(X)
    if len(used) < n_samples:
        params = _check_method_params(X, params, indices=used)
        X, y = _safe_indexing(X, used), None if y is None else y[used]
    difficulty = np.full(n_samples, np.nan)
    fitted, difficulty[used] = fit_difficulty(scorer, X, y, **params)
    return fitted, difficulty


def _check_scores(scorer: Any, method: str) -> None:
    if not hasattr(scorer, method):
        raise TypeError(
            "scorer must be a difficulty scorer or a Pipeline that ends in one, "
            f"got {type(scorer).__name__}, which has no {method}."
        )
