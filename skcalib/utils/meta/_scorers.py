"""Calls of a difficulty scorer, or of a Pipeline that ends in one, for meta-estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ..checking._validation import check_has
from ._private import _check_method_params, _num_samples, _safe_indexing


def fit_difficulty(
    scorer: Any, X: Any, y: ArrayLike | None = None, **fit_params: Any
) -> tuple[Any, NDArray]:
    """Fit a scorer, or a Pipeline that ends in one, and rank the samples that it was fitted on.

    The samples pass through the transformers of a Pipeline once, by `fit_transform`, which
    ``memory=`` can cache. `fit_params` go to the scorer itself. Where a step resamples, the scorer
    is fitted on what the step returns, and the given samples are scored as new ones. Fits in
    place: pass a clone. Return the fitted scorer or Pipeline, and the difficulty (n_samples,).
    """
    if isinstance(scorer, FrozenEstimator):
        return scorer, score(scorer, X, y)
    if not isinstance(scorer, Pipeline):
        _check_scores(scorer, "fit_difficulty")
        # A scorer without the mixin may lack `fit_ranking`.
        ranked = getattr(scorer, "fit_ranking", scorer.fit_difficulty)
        return scorer, ranked(X, y, **fit_params)
    if any(_resamples(step) for _, step in scorer.steps[:-1]):
        if fit_params:
            raise ValueError(
                f"{', '.join(fit_params)} must be None where a step of the Pipeline resamples, "
                "got values for the samples before it."
            )
        return scorer, score(scorer.fit(X, y), X, y)
    *steps, (name, final) = scorer.steps
    # With memory, a Pipeline fits copies of its transformers and puts them into its steps.
    before = Pipeline([*steps, (name, "passthrough")], memory=scorer.memory)
    final, difficulty = fit_difficulty(final, before.fit_transform(X, y), y, **fit_params)
    return Pipeline([*before.steps[:-1], (name, final)], memory=scorer.memory), difficulty


def _resamples(step: Any) -> bool:
    """Tell whether a step is a sampler, as in imbalanced-learn, which acts in `fit` alone."""
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
    """Return the scorer fitted on the samples `used` alone, and the difficulty (n_samples,).

    It is NaN for the others, such as samples of weight 0, which some scorers cannot score.
    """
    n_samples = _num_samples(X)
    if len(used) < n_samples:
        params = _check_method_params(X, params, indices=used)
        X, y = _safe_indexing(X, used), None if y is None else y[used]
    difficulty = np.full(n_samples, np.nan)
    fitted, difficulty[used] = fit_difficulty(scorer, X, y, **params)
    return fitted, difficulty


def _check_scores(scorer: Any, method: str) -> None:
    what = "a difficulty scorer or a Pipeline that ends in one"
    check_has(scorer, method, name="scorer", what=what)
