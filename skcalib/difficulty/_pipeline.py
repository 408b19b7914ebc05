"""Difficulty from a scorer, or from a Pipeline that ends in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from ..utils._optional import import_optional
from ..utils._tables import row_index

if TYPE_CHECKING:
    import pandas as pd


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
    """Fit a scorer, or a Pipeline ending in one, and score the fitted samples.

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
    if not isinstance(scorer, Pipeline):
        _check_scores(scorer, "fit_difficulty")
        return scorer, scorer.fit_difficulty(X, y, **fit_params)
    if any(_resamples(step) for _, step in scorer.steps[:-1]):
        if fit_params:
            raise ValueError(
                f"{', '.join(fit_params)} must be None where a step of the Pipeline resamples, "
                "got values for the samples before it."
            )
        return scorer, score_difficulty(scorer.fit(X, y), X, y)
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


@overload
def score_difficulty(
    scorer: Any, X: Any, y: ArrayLike | None = None, *, as_frame: Literal[False] = False
) -> NDArray[np.floating]: ...


@overload
def score_difficulty(
    scorer: Any, X: Any, y: ArrayLike | None = None, *, as_frame: bool
) -> NDArray[np.floating] | pd.Series: ...


def score_difficulty(
    scorer: Any, X: Any, y: ArrayLike | None = None, *, as_frame: bool = False
) -> NDArray[np.floating] | pd.Series:
    """Difficulty by a fitted scorer, or by a fitted Pipeline that ends in one.

    A Pipeline has no method ``difficulty``: its ``transform`` gives what the last step gives, and
    its ``score_samples`` the label-free score. Steps that resample take no part, as in prediction.

    Parameters
    ----------
    scorer : difficulty scorer or Pipeline that ends in one
        Fitted.
    X : array-like of shape (n_samples, n_features), or whatever the first step takes
        Samples.
    y : array-like of shape (n_samples,), default=None
        Labels. None asks for the label-free difficulty.
    as_frame : bool, default=False
        Return a pandas Series with the index of `X`, where that is of pandas.

    Returns
    -------
    difficulty : ndarray or Series of shape (n_samples,)
        Larger means harder.

    Raises
    ------
    TypeError
        If `scorer` is neither a difficulty scorer nor ends in one.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from skcalib.difficulty import RMDScorer, score_difficulty
    >>> X, y = load_digits(return_X_y=True)
    >>> pipe = make_pipeline(PCA(20, random_state=0), RMDScorer()).fit(X, y)
    >>> score_difficulty(pipe, X, y).shape
    (1797,)
    """
    samples = X
    while isinstance(scorer, Pipeline):
        for _, step in scorer.steps[:-1]:
            if step not in (None, "passthrough") and not _resamples(step):
                samples = step.transform(samples)
        scorer = scorer[-1]
    _check_scores(scorer, "difficulty")
    difficulty = scorer.difficulty(samples, y)
    if not as_frame:
        return difficulty
    pandas = import_optional("pandas", extra="pandas")
    return pandas.Series(difficulty, index=row_index(X), name="difficulty")


def _check_scores(scorer: Any, method: str) -> None:
    if not hasattr(scorer, method):
        raise TypeError(
            "scorer must be a difficulty scorer or a Pipeline that ends in one, "
            f"got {type(scorer).__name__}, which has no {method}."
        )
